/* SPDX-License-Identifier: Apache-2.0
 *
 * The key of an iteration with the facts of an earlier one is not built anew. A program in which a single fact changes
 * now and then: its keys are those of the schedules.
 */
#include "learn/iteration_facts.h"

#include "fixture/world.h"
#include "tap.h"

#define STEPS 1000

enum change {
	NONE,
	SWAP, /* two buffers exchange their roles */
	FREE_LATER, /* a tensor of the previous iteration is freed an op later */
	FREE_UNUSED, /* likewise, one that no op of this iteration uses */
	FREE_BORN, /* a tensor of this iteration is freed an op later */
	REPLACE, /* an old tensor is another one */
	PROMISE, /* a tensor is declared transient */
	DEAD, /* the content of a tensor is declared dead */
	TOUCH, /* fewer bytes of a range are touched */
	PART, /* another part of a tensor is used */
	WHOLE, /* the whole is used beside its part */
	RELAUNCH, /* an op can be launched again */
	CHANGES
};

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % n;
}

struct program {
	struct world w;
	struct um_tensor *param, *whole, *parts[2], *buffers[2], *grad, *unused;
};

static void open_program(struct program *p)
{
	world_init(&p->w);
	p->param = world_alloc(&p->w, 64, "param");
	p->whole = world_alloc(&p->w, 4096, "whole");
	for (uint64_t i = 0; i < 2; i++) {
		p->parts[i] = world_add(&p->w, p->whole->addr + i * 1024, 512, "part", UM_TENSOR_ADOPTED);
		p->buffers[i] = world_alloc(&p->w, 256, "buffer");
	}
	p->grad = world_alloc(&p->w, 64, "grad");
	p->unused = world_alloc(&p->w, 32, "unused");
}

static void op_again(struct program *p, struct um_tensor *out, int again)
{
	const struct um_use use = W(out);
	struct um_event e = {.kind = UM_EV_OP,
			     .op = {.name = "again",
				    .uses = &use,
				    .n_uses = 1,
				    .relaunch = &out->id,
				    .n_relaunch = (uint32_t)again,
				    .relaunchable = again}};

	world_feed(&p->w, &e);
}

static void iteration(struct program *p, enum change change)
{
	struct world *w = &p->w;
	struct um_tensor *grad, *born, *was = p->buffers[0], *unused = p->unused;
	struct um_use touched = R(p->param);

	world_iter(w);
	if (change == REPLACE) {
		world_free(w, p->param);
		p->param = world_alloc(w, 64, "param");
		touched = R(p->param);
	}
	touched.touched = change == TOUCH ? 32 : 64;
	p->param->flags = change == PROMISE ? UM_TENSOR_TRANSIENT : 0;
	if (change == SWAP) {
		p->buffers[0] = p->buffers[1];
		p->buffers[1] = was;
	}
	OP(w, "first", touched, R(p->buffers[0]), W(p->buffers[1]));
	if (change == DEAD)
		world_dead(w, p->buffers[0]);
	OP(w, "part", R(p->parts[change == PART]), R(p->grad));
	if (change != FREE_LATER)
		world_free(w, p->grad);
	if (change != FREE_UNUSED)
		world_free(w, unused);
	born = world_alloc(w, 128, "born");
	grad = world_alloc(w, 64, "grad");
	p->unused = world_alloc(w, 32, "unused");
	op_again(p, born, change == RELAUNCH);
	if (change == FREE_LATER)
		world_free(w, p->grad);
	if (change == FREE_UNUSED)
		world_free(w, unused);
	if (change != FREE_BORN)
		world_free(w, born);
	if (change == WHOLE)
		OP(w, "last", W(grad), R(p->whole), W(p->unused));
	else
		OP(w, "last", W(grad), R(p->parts[0]), W(p->unused));
	if (change == FREE_BORN)
		world_free(w, born);
	p->grad = grad;
}

/* Each change comes alone, many times. */
static void changes(void)
{
	unsigned kept = 0, of[CHANGES] = {0}, never = 0;
	struct program p;

	open_program(&p);
	for (unsigned i = 0; i < STEPS; i++) {
		enum change change = (enum change)draw(CHANGES);

		for (int k = 0; k < 4; k++)
			iteration(&p, NONE);
		kept += p.w.changed == 0;
		iteration(&p, change);
		iteration(&p, NONE);
		of[change] += p.w.changed == 1;
	}
	is_u64(p.w.wrong_keys, 0, "the key that is known from the facts is that of the schedule");
	is_u64(kept, STEPS, "iterations that repeat keep the key");
	for (int k = NONE + 1; k < CHANGES; k++)
		never += of[k] == 0;
	is_u64(never, 0, "each kind of change gives another key");
	world_fini(&p.w);
}

static void repeats(void)
{
	struct um_previous_iteration before, now;
	uint64_t facts[2] = {0};
	struct program p;

	um_previous_iteration_init(&before);
	um_previous_iteration_init(&now);
	open_program(&p);
	for (int i = 0; i < 8; i++) {
		struct um_previous_iteration was = before;

		iteration(&p, NONE);
		before = now;
		now = was;
		if (um_previous_iteration_fill(&now, &p.w.it))
			tap_bail("out of memory");
		facts[0] = facts[1];
		facts[1] = um_iteration_facts(&p.w.it, &before, &now);
	}
	ok(facts[0] == facts[1], "iterations that repeat have equal facts");
	um_previous_iteration_fini(&before);
	um_previous_iteration_fini(&now);
	world_fini(&p.w);
}

int main(void)
{
	changes();
	repeats();
	return tap_done();
}
