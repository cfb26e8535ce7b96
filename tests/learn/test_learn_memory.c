/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory runs out somewhere between the first tensor and the last schedule: nothing crashes, nothing is lost, and the
 * iterations after it are learned again. By itself this test only runs the workload; learn_memory.sh runs it with
 * each allocation failing in turn (failrun.c).
 */
#include "record/heap.h"
#include "tap.h"
#include "fixture/world.h"

#include <errno.h>

long failmalloc_live(void) __attribute__((weak));

static long live(void)
{
	return failmalloc_live ? failmalloc_live() : 0;
}

#define STEPS 8

struct program {
	struct um_registry registry;
	struct um_recorder recorder;
	struct um_learner learner;
	struct um_heap heap;
	struct um_iteration it;
	int step; /* counted from 1; 0 before the first iteration */
	int failed; /* the last step in which something said that memory ran out, -1 none */
	int wrong; /* something said what it may not say */
};

/* A tensor or NULL: a program whose allocation failed does without. */
static struct um_tensor *make(struct program *p, uint64_t bytes, const char *name)
{
	struct um_event event = {.kind = UM_EV_ALLOC};
	struct um_tensor *t;
	uint64_t addr;
	int rc = um_heap_alloc(&p->heap, bytes, &addr);

	if (rc) {
		p->failed = p->step;
		p->wrong |= rc != -ENOMEM;
		return NULL;
	}
	rc = um_registry_add(&p->registry, addr, bytes, name, UM_ROLE_ACT, 0, &t);
	if (rc) {
		p->failed = p->step;
		p->wrong |= rc != -ENOMEM;
		um_heap_free(&p->heap, addr, bytes);
		return NULL;
	}
	event.alloc.id = t->id;
	event.alloc.tensor = t;
	event.alloc.bytes = bytes;
	event.alloc.name = name;
	p->wrong |= um_sink_feed(&p->recorder.sink, &event) != 0;
	return t;
}

static void drop(struct program *p, struct um_tensor *t)
{
	struct um_event event = {.kind = UM_EV_FREE};

	if (!t)
		return;
	event.free.id = t->id;
	event.free.tensor = t;
	p->wrong |= um_sink_feed(&p->recorder.sink, &event) != 0;
	um_heap_free(&p->heap, t->addr, t->bytes);
	p->wrong |= um_registry_remove(&p->registry, t) != 0;
}

static void op(struct program *p, const char *name, struct um_tensor *in, struct um_tensor *out)
{
	struct um_event event = {.kind = UM_EV_OP};
	struct um_use uses[2];

	if (!in || !out)
		return;
	uses[0] = R(in);
	uses[1] = in == out ? U(out) : W(out);
	event.op.name = name;
	event.op.uses = uses;
	event.op.n_uses = 2;
	event.op.relaunch = &out->id;
	event.op.n_relaunch = 1;
	event.op.relaunchable = 1;
	p->wrong |= um_sink_feed(&p->recorder.sink, &event) != 0;
}

/* Learns the iteration that ended. 1: the schedule is what the one before was. */
static int mark(struct program *p)
{
	struct um_event event = {.kind = UM_EV_ITER};
	struct um_schedule sched;
	uint64_t key = p->learner.key;
	int rc;

	um_schedule_init(&sched);
	um_recorder_take(&p->recorder, &p->it);
	rc = um_learner_feed(&p->learner, &p->it);
	if (!rc)
		rc = um_learner_know_key(&p->learner, &p->it);
	if (!rc)
		rc = um_learner_build(&p->learner, &p->it, &sched);
	if (rc) {
		if (rc == -ENOMEM || p->it.incomplete)
			p->failed = p->step;
		p->wrong |= (rc != -ENOMEM && rc != -ENODATA) || sched.slots.n || sched.ops.n;
	} else {
		p->wrong |= world_flaw(&sched) != NULL;
	}
	um_schedule_fini(&sched);
	p->wrong |= um_sink_feed(&p->recorder.sink, &event) != 0;
	return rc == 0 && p->learner.key == key;
}

/* Parts of one allocation, used beside the whole. */
static void parts(struct program *p, struct um_tensor *whole)
{
	struct um_event event = {.kind = UM_EV_ALLOC};
	struct um_tensor *t;
	int rc;

	if (!whole)
		return;
	rc = um_registry_add(&p->registry, whole->addr, 64, "part", UM_ROLE_ACT, UM_TENSOR_ADOPTED, &t);
	if (rc) {
		p->failed = p->step;
		p->wrong |= rc != -ENOMEM;
		return;
	}
	event.alloc.id = t->id;
	event.alloc.tensor = t;
	p->wrong |= um_sink_feed(&p->recorder.sink, &event) != 0;
	op(p, "part", t, t);
	op(p, "whole", whole, whole);
	event.kind = UM_EV_FREE;
	event.free.id = t->id;
	event.free.tensor = t;
	p->wrong |= um_sink_feed(&p->recorder.sink, &event) != 0;
	p->wrong |= um_registry_remove(&p->registry, t) != 0;
}

/* Are the last iterations known to be equal? */
static int run(struct program *p)
{
	struct um_tensor *w[3], *grad[3] = {NULL}, *act[3];
	static const char *const names[] = {"w0", "w1", "w2"};
	int known = 0;

	for (int i = 0; i < 3; i++)
		w[i] = make(p, 5000, names[i]);
	for (p->step = 1; p->step <= STEPS; p->step++) {
		known = mark(p);
		for (int i = 0; i < 3; i++) {
			drop(p, grad[i]);
			act[i] = make(p, 3000, "act");
			op(p, names[i], w[i], act[i]);
		}
		for (int i = 0; i < 3; i++) {
			grad[i] = make(p, 5000, "grad");
			op(p, "backward", act[i], grad[i]);
			drop(p, act[i]);
		}
		for (int i = 0; i < 3; i++)
			op(p, "optimizer", grad[i], w[i]);
		parts(p, w[0]);
	}
	for (int i = 0; i < 3; i++) {
		drop(p, grad[i]);
		drop(p, w[i]);
	}
	return known;
}

int main(void)
{
	struct program p;
	long before, after;
	int known = 0, ready;

	memset(&p, 0, sizeof p);
	p.failed = -1;
	printf("# a line, so that standard output has its buffer\n");
	before = live();
	um_registry_init(&p.registry);
	um_heap_init(&p.heap);
	um_iteration_init(&p.it);
	ready = um_recorder_init(&p.recorder) == 0 && um_learner_init(&p.learner) == 0 &&
		um_heap_add_region(&p.heap, 1ull << 40, 2 * UM_BLOCK_BYTES) == 0;
	if (ready)
		known = run(&p);
	else
		p.failed = STEPS;
	um_learner_fini(&p.learner);
	um_recorder_fini(&p.recorder);
	um_iteration_fini(&p.it);
	um_heap_fini(&p.heap);
	um_registry_fini(&p.registry);
	after = live();
	is_int(after, before, "every allocation is given back");
	ok(!p.wrong, "every failure says that memory ran out, and none leaves half a schedule");
	/* the last mark compares steps 7 and 6, and what is born in 5 is freed in 6: what failed earlier is
	 * forgotten */
	ok(known || p.failed > STEPS - 4, "unless memory ran out just now the last iterations are known");
	return tap_done();
}
