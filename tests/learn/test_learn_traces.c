/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded workloads: does what repeats become one schedule, and what does not repeat none? Each trace is played as it
 * is, and once more with its last iteration played several times over, as a long run would.
 */
#include "io/umtrace.h"
#include "tap.h"
#include "fixture/world.h"

#define TAIL 4 /* times that the last iteration is played again */

static const char *data_dir;

/* Tensors by trace id. */
struct cast {
	struct um_tensor **at;
	size_t n;
};

static void put(struct cast *c, uint64_t id, struct um_tensor *t)
{
	if (id >= c->n) {
		size_t n = (id + 1) * 2;

		c->at = realloc(c->at, n * sizeof *c->at);
		if (!c->at)
			abort();
		memset(c->at + c->n, 0, (n - c->n) * sizeof *c->at);
		c->n = n;
	}
	c->at[id] = t;
}

static void play_op(struct world *w, const struct cast *c, const struct um_event *ev)
{
	static struct um_use *uses;
	static uint32_t room;
	struct um_event event = *ev;

	if (ev->op.n_uses > room) {
		room = ev->op.n_uses * 2;
		uses = realloc(uses, room * sizeof *uses);
		if (!uses)
			abort();
	}
	for (uint32_t i = 0; i < ev->op.n_uses; i++) {
		uses[i] = ev->op.uses[i];
		uses[i].tensor = c->at[uses[i].id.v];
		uses[i].id = uses[i].tensor->id;
	}
	/* in a tail tensors have other ids than in the file */
	event.op.uses = uses;
	event.op.n_relaunch = 0;
	world_feed(w, &event);
}

static void play(struct world *w, struct cast *c, const struct um_event *ev)
{
	switch (ev->kind) {
	case UM_EV_ALLOC:
		put(c, ev->alloc.id.v, world_alloc(w, ev->alloc.bytes, ev->alloc.name));
		break;
	case UM_EV_FREE:
		world_free(w, c->at[ev->free.id.v]);
		put(c, ev->free.id.v, NULL);
		break;
	case UM_EV_OP:
		play_op(w, c, ev);
		break;
	case UM_EV_ITER:
		world_iter(w);
		break;
	case UM_EV_DEAD:
		break;
	}
}

/* What a name in the last iteration stands for when that iteration is played again: a tensor born in it under another
 * id that is alive at its start has the role of its counterpart. Births are matched by order. */
struct tail {
	size_t first, last; /* events of the last iteration: (first, last) */
	size_t before; /* the iter event before `first` */
};

static struct tail find_tail(const struct um_trace *t)
{
	struct tail tail = {0};

	tail.last = um_trace_length(t);
	for (size_t i = 0; i < tail.last; i++)
		if (um_trace_event(t, i)->kind == UM_EV_ITER) {
			tail.before = tail.first;
			tail.first = i;
		}
	return tail;
}

static uint64_t birth_id(const struct um_trace *t, size_t from, size_t to, size_t ord)
{
	for (size_t i = from; i < to; i++)
		if (um_trace_event(t, i)->kind == UM_EV_ALLOC && ord-- == 0)
			return um_trace_event(t, i)->alloc.id.v;
	return 0;
}

/* After the last iteration: what the next one would call by the ids of the one before is now what was born here. */
static void rename_births(const struct um_trace *t, const struct tail *tail, struct cast *c)
{
	size_t ord = 0;

	for (size_t i = tail->first; i < tail->last; i++) {
		const struct um_event *ev = um_trace_event(t, i);
		uint64_t old;

		if (ev->kind != UM_EV_ALLOC)
			continue;
		old = birth_id(t, tail->before, tail->first, ord++);
		if (old && c->at[ev->alloc.id.v] && !c->at[old]) {
			c->at[old] = c->at[ev->alloc.id.v];
			c->at[ev->alloc.id.v] = NULL;
		}
	}
}

struct outcome {
	char changed[96]; /* by iteration: '0', '1', or 'e' */
	const char *flaw;
	struct um_schedule last;
	UM_VEC(uint64_t) live; /* by op of the last iteration: bytes alive */
};

static void outcome_fini(struct outcome *o)
{
	um_schedule_fini(&o->last);
	um_vec_fini(&o->live);
}

static uint64_t bytes_alive(const struct world *w)
{
	struct um_tree_node *node = um_tree_first(&w->registry.live);
	uint64_t bytes = 0;

	for (; node; node = um_tree_next(node))
		bytes += um_tree_entry(node, struct um_tensor, node)->bytes;
	return bytes;
}

/* Slots that are alive during an op, in the steady state. */
static uint64_t bytes_planned(const struct um_schedule *s, int32_t op)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *slot = &s->slots.at[i];
		int born = slot->birth < 0 || op >= slot->birth, gone = slot->death >= 0 && op >= slot->death;

		if (slot->birth >= 0 && slot->death <= slot->birth ? born || !gone : born && !gone)
			bytes += slot->bytes;
	}
	return bytes;
}

/* Does the schedule hold as much memory alive, op by op, as the workload did? What the iteration never touches is no
 * slot, so the two may differ, but always by the same. */
static int same_memory(const struct outcome *o)
{
	size_t n = o->last.ops.n;

	if (o->live.n != n || n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (o->live.at[i] - bytes_planned(&o->last, (int32_t)i) != o->live.at[0] - bytes_planned(&o->last, 0))
			return 0;
	return o->live.at[0] >= bytes_planned(&o->last, 0);
}

static void note(struct outcome *o, const struct world *w)
{
	size_t n = strlen(o->changed);

	if (w->iterations < 2)
		return;
	if (n + 1 < sizeof o->changed)
		o->changed[n] = w->rc ? 'e' : (char)('0' + w->changed);
	if (!w->rc && !o->flaw)
		o->flaw = w->wrong_keys ? "equal facts, another key" : world_flaw(&w->sched);
}

/* Plays the trace, then its last iteration `again` times, and closes with one more mark. */
static void run(const struct um_trace *t, int again, struct outcome *o)
{
	struct tail tail = find_tail(t);
	struct cast c = {0};
	struct world w;

	memset(o, 0, sizeof *o);
	um_schedule_init(&o->last);
	world_init(&w);
	for (size_t i = 0; i < tail.last; i++) {
		const struct um_event *ev = um_trace_event(t, i);

		if (i > tail.first && ev->kind == UM_EV_OP && um_vec_push(&o->live, bytes_alive(&w)))
			abort();
		play(&w, &c, ev);
		if (ev->kind == UM_EV_ITER)
			note(o, &w);
	}
	while (again-- > 0) {
		rename_births(t, &tail, &c);
		for (size_t i = tail.first; i < tail.last; i++) {
			play(&w, &c, um_trace_event(t, i));
			if (i == tail.first)
				note(o, &w);
		}
	}
	world_iter(&w);
	note(o, &w);
	if (um_schedule_copy(&o->last, &w.sched))
		abort();
	world_fini(&w);
	free(c.at);
}

static unsigned count_flag(const struct um_schedule *s, unsigned flag)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->slots.n; i++)
		n += (s->slots.at[i].flags & flag) != 0;
	return n;
}

static unsigned count_handed_on(const struct um_schedule *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->slots.n; i++)
		n += s->slots.at[i].carry != UM_NO_SLOT && s->slots.at[i].carry != i;
	return n;
}

static unsigned count_wrapped(const struct um_schedule *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->slots.n; i++)
		n += s->slots.at[i].birth >= 0 && s->slots.at[i].death <= s->slots.at[i].birth;
	return n;
}

/* `want`: changed, iteration by iteration; of the last schedule: how many slots are `wrapped` over the iteration's end,
 * how many are `handed` on to another slot's tensor, and how many are `guessed` (then memory need not agree). */
static void trace_case(const char *name, const char *want, unsigned wrapped, unsigned handed, unsigned guessed)
{
	char path[4096];
	struct um_diag diag;
	struct um_trace *t;
	struct outcome o;
	size_t n = strlen(want);

	snprintf(path, sizeof path, "%s/%s.umtrace.gz", data_dir, name);
	um_diag_init(&diag, path);
	if (um_trace_load(&t, path, &diag)) {
		ok(0, "%s: %s", name, diag.text);
		return;
	}
	run(t, 0, &o);
	is_str(o.changed, want, "%s: the schedule changes and stays as it should", name);
	is_str(o.flaw, NULL, "%s: every schedule is well formed", name);
	is_u64(count_flag(&o.last, UM_SLOT_GUESSED), guessed, "%s: the number of guessed slots is as expected", name);
	is_u64(count_wrapped(&o.last), wrapped, "%s: slots that live over the iteration's end", name);
	is_u64(count_handed_on(&o.last), handed, "%s: the number of slots with a successor is as expected", name);
	ok(same_memory(&o) || guessed, "%s: op by op as many bytes alive as there were", name);
	outcome_fini(&o);
	run(t, TAIL, &o);
	ok(strlen(o.changed) == n + TAIL, "%s: the trace is played beyond its end", name);
	/* where the trace ends in an iteration of a new kind, its repetition is the first to be known for one */
	is_str(o.changed + n + (want[n - 1] == '1'), &"0000"[want[n - 1] == '1'], "%s: and nothing changes", name);
	is_str(o.flaw, NULL, "%s: and all is well formed", name);
	outcome_fini(&o);
	um_trace_free(t);
}

int main(int argc, char **argv)
{
	static char dir[4096];
	const char *top = getenv("top_srcdir");

	snprintf(dir, sizeof dir, "%s/tests/data", top ? top : ".");
	data_dir = argc > 1 ? argv[1] : dir;
	/* gradients wrap: one for each parameter; a new batch comes before the old one is freed: two are handed on */
	trace_case("alexnet_b200", "110", 16, 2, 0);
	trace_case("vgg16", "110", 32, 2, 0);
	trace_case("resnet50", "110", 161, 2, 0);
	trace_case("cifar_vgg16_b100", "110", 57, 2, 0);
	trace_case("gpt2_small", "110", 148, 2, 0);
	/* gradients stay; the hidden state of three layers is handed on as well */
	trace_case("lstm_lm", "110", 0, 8, 0);
	trace_case("cg_laplace3d", "100000000000000000000000000000000000000000000000000000000000", 0, 0, 0);
	/* another length in every iteration: the sizes of the two inputs never say when they will be freed */
	trace_case("transformer_varlen", "11111111", 100, 0, 2);
	return tap_done();
}
