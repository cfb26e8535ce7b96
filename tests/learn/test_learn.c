/* SPDX-License-Identifier: Apache-2.0
 *
 * What the learner makes of the habits of real programs, each as small as it can be.
 */
#include "tap.h"
#include "fixture/world.h"

static const struct um_slot *named(const struct world *w, const char *name)
{
	static const struct um_slot none = {.birth = -9, .death = -9, .carry = 9999, .flags = 0xffff};

	for (size_t i = 0; i < w->sched.slots.n; i++)
		if (w->sched.slots.at[i].name && !strcmp(w->sched.slots.at[i].name, name))
			return &w->sched.slots.at[i];
	return &none;
}

static uint32_t index_of(const struct world *w, const struct um_slot *s)
{
	return (uint32_t)(s - w->sched.slots.at);
}

static void lives(const struct um_slot *s, int birth, int death, const char *what)
{
	if (!ok(s->birth == birth && s->death == death, "%s: lives %d, %d", what, birth, death))
		diag("  lives %d, %d", s->birth, s->death);
}

static void sound(const struct world *w, const char *what)
{
	is_str(world_flaw(&w->sched), NULL, "%s: the schedule is well formed", what);
}

/* Gradients born in backward, used by the optimizer, freed at the start of the next iteration; optimizer state made in
 * the first one. Iterations are A B B. */
static void training(void)
{
	struct world w;
	struct um_tensor *p, *grad = NULL, *state = NULL, *act;
	uint64_t last = 0;
	int signatures_differ = 0;

	world_init(&w);
	p = world_alloc(&w, 4096, "p");
	for (int step = 0; step < 4; step++) {
		world_iter(&w);
		if (step == 1)
			ok(named(&w, "state")->flags & UM_SLOT_GUESSED && named(&w, "grad")->flags & UM_SLOT_GUESSED,
			   "after one iteration: what was born and not freed is a guess");
		if (step == 1)
			lives(named(&w, "grad"), 1, 3, "and is taken to live to the end");
		if (step >= 2) {
			sound(&w, "training");
			is_int(w.changed, step == 2, "step %d: the schedule %s", step, step == 2 ? "is new" : "stays");
		}
		if (step)
			world_free(&w, grad);
		act = world_alloc(&w, 100, "act");
		OP(&w, "forward", R(p), W(act));
		grad = world_alloc(&w, 4096, "grad");
		OP(&w, "backward", R(act), W(grad));
		world_free(&w, act);
		if (step == 0)
			state = world_alloc(&w, 4096, "state");
		OP(&w, "optimizer", R(grad), U(p), step ? U(state) : W(state));
		signatures_differ |= step == 2 && last == w.it.signature;
		last = w.it.signature;
	}
	is_int(signatures_differ, 0, "the first iteration has another signature");
	world_iter(&w);
	is_int(w.changed, 0, "the schedule stays the same");
	is_int(w.sched.slots.n, 4, "the schedule has four slots");
	lives(named(&w, "grad"), 1, 0, "a gradient wraps");
	lives(named(&w, "act"), 0, 2, "an activation passes");
	lives(named(&w, "state"), -1, -1, "state made in the first iteration has come to stay");
	lives(named(&w, "p"), -1, -1, "a weight stays");
	is_u64(named(&w, "grad")->bound.v, grad->id.v, "bound to the one that is alive now");
	is_u64(named(&w, "grad")->place, grad->addr, "where it is");
	is_int(named(&w, "grad")->flags, UM_SLOT_FIXED, "whose place is settled");
	is_int(named(&w, "act")->flags, 0, "an activation has no fixed address");
	is_int(named(&w, "act")->carry, UM_NO_SLOT, "an activation is not carried to another slot");
	is_u64(named(&w, "act")->place, UINT64_MAX, "an activation has no place");
	is_int(named(&w, "grad")->carry, index_of(&w, named(&w, "grad")), "a gradient carries itself");
	is_int(w.sched.births.n, 2, "the iteration has two births");
	is_int(w.sched.births.at[1], index_of(&w, named(&w, "grad")), "the second is the gradient");
	is_u64(named(&w, "p")->bound.v, p->id.v, "a weight is bound to itself");
	world_fini(&w);
}

/* A state that every iteration reads from the one before, and makes anew. `overlap`: the old one is freed only when the
 * new one is there. */
static void hidden_state(int overlap)
{
	struct world w;
	struct um_tensor *h, *next;

	world_init(&w);
	h = world_alloc(&w, 64, "h0");
	for (int step = 0; step < 5; step++) {
		struct um_tensor *tmp;

		world_iter(&w);
		if (step >= 2) {
			sound(&w, overlap ? "state, overlapping" : "state");
			is_int(w.changed, step == 2, "step %d: the schedule %s", step, step == 2 ? "is new" : "stays");
		}
		if (step == 4)
			h->flags = UM_TENSOR_TRANSIENT;
		tmp = world_alloc(&w, 32, "tmp");
		OP(&w, "in", R(h), W(tmp));
		if (!overlap)
			world_free(&w, h);
		next = world_alloc(&w, 64, "h");
		OP(&w, "out", R(tmp), W(next));
		if (overlap)
			world_free(&w, h);
		world_free(&w, tmp);
		h = next;
		OP(&w, "loss", R(h));
	}
	world_iter(&w);
	is_int(w.changed, 0, "the schedule stays");
	if (overlap) {
		const struct um_slot *old = &w.sched.slots.at[w.sched.uses.at[0].slot];
		const struct um_slot *young = &w.sched.slots.at[w.sched.uses.at[3].slot];

		is_int(w.sched.slots.n, 3, "the schedule has two slots for the state and one for the rest");
		lives(old, -1, 2, "the old one");
		lives(young, 1, 3, "the new one");
		is_int(old->carry, index_of(&w, young), "the new one becomes the old one");
		ok(old->bound.v == h->id.v && old->place == h->addr,
		   "the slot is bound to the tensor that replaces it");
		is_int(young->flags, 0, "where the next new one will lie is open");
	} else {
		is_int(w.sched.slots.n, 2, "the schedule has one slot for the state and one for the rest");
		is_int(w.sched.uses.at[0].slot, w.sched.uses.at[3].slot, "read and written: the same slot");
		lives(&w.sched.slots.at[w.sched.uses.at[0].slot], 1, 1, "the state wraps");
		is_u64(w.sched.slots.at[w.sched.uses.at[0].slot].bound.v, h->id.v,
		       "the slot is bound to the new tensor");
		is_int(w.sched.slots.at[w.sched.uses.at[0].slot].flags, UM_SLOT_FIXED,
		       "a promise for one of both does not count");
	}
	world_fini(&w);
}

static void swapping(void)
{
	struct world w;
	struct um_tensor *a, *b, *t;

	world_init(&w);
	a = world_alloc(&w, 64, "a");
	b = world_alloc(&w, 64, "b");
	a->flags = b->flags = UM_TENSOR_TRANSIENT;
	for (int step = 0; step < 4; step++) {
		world_iter(&w);
		if (step == 1)
			is_u64(w.sched.slots.at[0].carry, 0, "after one iteration the swap is unknown");
		if (step >= 2) {
			const struct um_slot *s = w.sched.slots.at;

			sound(&w, "swapping");
			ok(s[0].carry == 1 && s[1].carry == 0, "step %d: each is the other one next", step);
			ok(s[0].bound.v == a->id.v && s[1].bound.v == b->id.v, "both slots are bound to their tensors");
			ok(s[0].place == a->addr && s[1].place == b->addr, "both slots lie where their tensors lie");
			is_int(s[0].flags, UM_SLOT_FIXED, "a promise about a tensor is none about its part");
			is_int(w.changed, step == 2, "the schedule %s", step == 2 ? "is new" : "stays");
		}
		OP(&w, "step", R(a), W(b));
		t = a, a = b, b = t;
	}
	world_fini(&w);
}

/* Three buffers take turns, two at a time: who comes next was not seen in the iteration before. */
static void taking_turns(void)
{
	struct world w;
	struct um_tensor *t[3];

	world_init(&w);
	for (int i = 0; i < 3; i++)
		t[i] = world_alloc(&w, 64, "t");
	for (int step = 0; step < 6; step++) {
		world_iter(&w);
		if (step >= 2) {
			sound(&w, "taking turns");
			ok(w.sched.slots.at[0].carry == 1 && w.sched.slots.at[0].bound.v == t[step % 3]->id.v,
			   "step %d: the second is the first next", step);
			ok(w.sched.slots.at[1].bound.v == 0 && w.sched.slots.at[1].flags == UM_SLOT_GUESSED,
			   "the second slot is bound to another tensor by a guess");
			is_int(w.changed, step == 2, "the schedule %s", step == 2 ? "is new" : "stays");
		}
		OP(&w, "step", R(t[step % 3]), W(t[(step + 1) % 3]));
	}
	world_fini(&w);
}

/* Four input buffers in turn: each iteration uses the next one or, with a window, the latest two. */
static void supplied(uint64_t bytes, int window)
{
	struct world w;
	struct um_tensor *in[4], *weight;
	const struct um_slot *s;
	int blocks = bytes >= UM_BLOCK_BYTES;

	world_init(&w);
	weight = world_alloc(&w, bytes, "weight");
	for (int i = 0; i < 4; i++)
		in[i] = world_alloc(&w, bytes, "in");
	for (int step = 0; step < 8; step++) {
		world_iter(&w);
		s = &w.sched.slots.at[0];
		if (step >= 2) {
			sound(&w, "supplied");
			is_int((s->flags & UM_SLOT_SUPPLIED) != 0, blocks,
			       "step %d: an input of %llu bytes is %ssupplied", step, (unsigned long long)bytes,
			       blocks ? "" : "not ");
			is_u64(s->carry, window ? UM_NO_SLOT : 0, "its slot %s", window ? "is passed on" : "keeps it");
			is_int(named(&w, "weight")->flags & UM_SLOT_SUPPLIED, 0, "a tensor of each iteration is not");
			is_int(w.changed, blocks && step == 2, "the schedule %s",
			       blocks && step == 2 ? "is new" : "stays");
		}
		OP(&w, "copy", W(in[step % 4]));
		if (window)
			OP(&w, "layer", R(in[step % 4]), R(in[(step + 3) % 4]), W(weight));
		else
			OP(&w, "layer", R(in[step % 4]), W(weight));
	}
	world_fini(&w);
}

struct network {
	struct um_tensor *p, *grad, *in, *out, *young, *old;
	struct um_tensor *batch[3];
	int n; /* iterations */
};

/* An activation passes, a gradient is freed in the next iteration, and two buffers swap. A state is read in the next
 * iteration, and freed in the one after that. Three batches take turns. */
static void train(struct world *w, struct network *n)
{
	struct um_tensor *act, *was = n->in, *state = world_alloc(w, UM_BLOCK_BYTES, "state"),
			       *batch = n->batch[n->n++ % 3];

	OP(w, "state", R(batch), R(n->young), W(state));
	world_free(w, n->old);
	n->old = n->young;
	n->young = state;
	if (n->grad)
		world_free(w, n->grad);
	act = world_alloc(w, 100, "act");
	OP(w, "forward", R(n->p), R(n->in), W(n->out), W(act));
	n->grad = world_alloc(w, UM_BLOCK_BYTES, "grad");
	OP(w, "backward", R(act), W(n->grad));
	world_free(w, act);
	n->in = n->out;
	n->out = was;
}

/* Iterations of a network, "A" or "B", of which each ends as the next one begins. */
static void run(struct world *w, struct network *a, const char *kinds)
{
	for (; *kinds; kinds++) {
		const char name[] = {*kinds, 0};

		if (*kinds == 'A')
			train(w, a);
		else
			OP(w, name, R(a->p));
		world_iter(w);
	}
}

static void interrupted(void)
{
	struct network a = {0};
	struct world w;
	uint64_t key;
	int held = 0;

	world_init(&w);
	a.p = world_alloc(&w, 4096, "p");
	a.in = world_alloc(&w, 64, "in");
	a.out = world_alloc(&w, 64, "out");
	a.young = world_alloc(&w, UM_BLOCK_BYTES, "state");
	a.old = world_alloc(&w, UM_BLOCK_BYTES, "state");
	for (int i = 0; i < 3; i++)
		a.batch[i] = world_alloc(&w, UM_BLOCK_BYTES, "batch");
	world_iter(&w);
	run(&w, &a, "ABA");
	ok(named(&w, "grad")->flags & UM_SLOT_GUESSED && !w.learner.observed,
	   "one iteration at a time: when a gradient is freed is a guess");
	run(&w, &a, "A");
	key = w.learner.key;
	ok(w.learner.observed, "two in a row show it");
	run(&w, &a, "BA");
	sound(&w, "interrupted");
	ok(w.learner.observed && w.learner.key == key,
	   "after another iteration the schedule is the one of two in a row");
	lives(named(&w, "grad"), 2, 1, "a gradient is freed in the next iteration");
	is_u64(named(&w, "grad")->bound.v, a.grad->id.v, "bound to the one that is alive now");
	ok(named(&w, "in")->carry == index_of(&w, named(&w, "out")) &&
		   named(&w, "out")->carry == index_of(&w, named(&w, "in")),
	   "buffers that swap are known to swap");
	ok(named(&w, "batch")->flags & UM_SLOT_SUPPLIED, "a batch in turn is known to be another one next");
	for (size_t i = 0; i < w.sched.slots.n; i++)
		held += w.sched.slots.at[i].bound.v == a.old->id.v;
	is_int(held, 1, "the state that is held without a use has a slot");
	run(&w, &a, "A");
	is_int(w.changed, 0, "the next one does not change the schedule");
	run(&w, &a, "BBCCDDEEFFGGHHA");
	ok(w.learner.key == key, "seven other kinds of iterations later it is still known");
	run(&w, &a, "IIA");
	ok(w.learner.key == key, "and what was met lately, when there is one more");
	run(&w, &a, "BBCCDDEEFFGGHHIIA");
	ok(named(&w, "grad")->flags & UM_SLOT_GUESSED,
	   "of more than eight kinds the one unused for longest is forgotten");
	is_int(w.wrong_keys, 0, "no key is found that its schedule does not have");
	world_fini(&w);
}

/* The iteration in between was not compared: what was two iterations ago says nothing. */
static void one_missed(void)
{
	struct world w;
	struct um_tensor *t[3];
	struct um_event event = {.kind = UM_EV_ITER};

	world_init(&w);
	for (int i = 0; i < 3; i++)
		t[i] = world_alloc(&w, 64, "t");
	world_iter(&w);
	for (int step = 0; step < 3; step++) {
		OP(&w, "step", R(t[step % 3]), R(t[(step + 1) % 3]), W(t[(step + 2) % 3]));
		if (step == 1) {
			um_recorder_take(&w.recorder, &w.it);
			world_feed(&w, &event);
		} else {
			world_iter(&w);
		}
	}
	is_int(w.sched.slots.at[0].carry, 0, "after a gap all tensors keep their slots");
	is_int(w.changed, 0, "the schedule is the same as after the first iteration");
	world_fini(&w);
}

/* A weight is freed in the last iteration. */
static void the_end(void)
{
	struct world w;
	struct um_tensor *p, *q;

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	q = world_alloc(&w, 64, "q");
	for (int step = 0; step < 3; step++) {
		world_iter(&w);
		OP(&w, "a", U(p), R(q));
		if (step == 2)
			world_free(&w, p);
		OP(&w, "b", U(q));
	}
	world_iter(&w);
	sound(&w, "the end");
	lives(named(&w, "p"), -1, 1, "what is freed for good");
	is_u64(named(&w, "p")->bound.v, 0, "no tensor takes its part next");
	ok(named(&w, "p")->flags & UM_SLOT_GUESSED, "the promise is a guess until more is known");
	is_int(w.changed, 1, "the schedule is another");
	world_fini(&w);
}

/* As the ring below, but each is made after the last op. */
static void ring_at_the_end(void)
{
	struct world w;
	struct um_tensor *t[3] = {NULL};
	const struct um_slot *born;

	world_init(&w);
	t[1] = world_alloc(&w, 64, "t");
	t[2] = world_alloc(&w, 64, "t");
	for (int step = 0; step < 6; step++) {
		world_iter(&w);
		OP(&w, "step", R(t[1]), R(t[2]));
		OP(&w, "tail", U(t[1]));
		world_free(&w, t[2]);
		t[2] = t[1];
		t[1] = world_alloc(&w, 64, "t");
	}
	world_iter(&w);
	sound(&w, "ring at the end");
	is_int(w.changed, 0, "the schedule stays");
	born = &w.sched.slots.at[w.sched.births.at[0]];
	lives(born, 1, 2, "the young one is there at the end, and not all the time");
	is_int(born->carry, UM_NO_SLOT, "the young one had no predecessor");
	is_int(w.sched.slots.at[0].carry, index_of(&w, born), "it becomes the middle one");
	lives(&w.sched.slots.at[1], -1, 2, "the old one is freed after the last op");
	world_fini(&w);
}

/* Each iteration makes one and frees the one from two iterations ago. */
static void ring(void)
{
	struct world w;
	struct um_tensor *t[3] = {NULL};

	world_init(&w);
	t[1] = world_alloc(&w, 64, "t");
	t[2] = world_alloc(&w, 64, "t");
	for (int step = 0; step < 6; step++) {
		world_iter(&w);
		if (step >= 2) {
			sound(&w, "ring");
			is_int(w.changed, step == 2, "step %d: the schedule %s", step, step == 2 ? "is new" : "stays");
		}
		t[0] = world_alloc(&w, 64, "t");
		OP(&w, "step", W(t[0]), R(t[1]), R(t[2]));
		world_free(&w, t[2]);
		OP(&w, "tail", R(t[0]));
		t[2] = t[1];
		t[1] = t[0];
	}
	world_iter(&w);
	is_int(w.sched.slots.n, 3, "the schedule has three slots");
	lives(&w.sched.slots.at[0], 0, 2, "the young one");
	lives(&w.sched.slots.at[1], -1, -1, "the middle one");
	lives(&w.sched.slots.at[2], -1, 1, "the old one");
	ok(w.sched.slots.at[1].carry == 0 && w.sched.slots.at[2].carry == 1, "each becomes the next older one");
	ok(w.sched.slots.at[1].bound.v == t[1]->id.v && w.sched.slots.at[2].bound.v == t[2]->id.v,
	   "all slots are bound in rotation");
	is_int(w.sched.slots.at[0].flags & UM_SLOT_GUESSED, 0, "nothing is guessed");
	world_fini(&w);
}

/* A tensor that is thrown away and made anew in every third iteration. */
static void replaced(void)
{
	struct world w;
	struct um_tensor *p, *t;
	char changed[16] = "";

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	t = world_alloc(&w, 32, "t");
	for (int step = 0; step < 10; step++) {
		world_iter(&w);
		if (step) {
			sound(&w, "replaced");
			changed[step - 1] = (char)('0' + w.changed);
		}
		if (step % 3 == 2) {
			world_free(&w, t);
			t = world_alloc(&w, 32, "t");
		}
		OP(&w, "a", U(t), R(p));
		if (step % 3 == 2)
			continue;
		OP(&w, "b", U(t));
	}
	/* steps    0    1    2    3    4    5    6    7    8
	 * replaced           *              *              *   */
	is_str(changed, "101101101", "known again at once after each replacement, and stays");
	world_iter(&w);
	lives(named(&w, "t"), -1, -1, "in between it is one that stays");
	is_u64(named(&w, "t")->bound.v, t->id.v, "the slot is bound to the latest tensor");
	world_fini(&w);
}

static void nested(void)
{
	struct world w;
	struct um_tensor *all, *half, *part, *inner;
	const struct um_sched_use *u;

	world_init(&w);
	all = world_add(&w, 1 << 20, 65536, "all", UM_TENSOR_ADOPTED);
	half = world_add(&w, (1 << 20) + 32768, 32768, "half", UM_TENSOR_ADOPTED);
	part = world_add(&w, (1 << 20) + 40960, 4096, "part", UM_TENSOR_ADOPTED | UM_TENSOR_TRANSIENT);
	for (int step = 0; step < 3; step++) {
		world_iter(&w);
		if (step)
			sound(&w, "parts of one allocation");
		OP(&w, "parts", R(part), W(half));
		world_dead(&w, half);
		inner = world_add(&w, 1 << 20, 4096, "inner", UM_TENSOR_ADOPTED);
		OP(&w, "inner", W(inner));
		if (step == 2) {
			all->flags |= UM_TENSOR_TRANSIENT;
			OP(&w, "whole", R(all));
		}
		world_free(&w, inner);
	}
	is_int(w.changed, 0, "while the whole is not used, parts are slots");
	u = w.sched.uses.at;
	ok(u[0].slot == u[1].slot && u[0].off == 8192 && u[0].bytes == 4096, "a part of a used part is the latter");
	is_int(u[1].dead_after, 0, "no promise is made for the overlapping use");
	is_int(w.sched.slots.at[u[0].slot].flags, UM_SLOT_FIXED, "adopted memory does not move");
	is_int(named(&w, "part")->flags, UM_SLOT_FIXED | UM_SLOT_TRANSIENT | UM_SLOT_UNMANAGED, "its own slot is idle");
	lives(named(&w, "inner"), 1, 2, "born in the iteration");
	ok(named(&w, "inner")->flags & UM_SLOT_FIXED && named(&w, "inner")->place == 1 << 20, "where it was adopted");
	world_iter(&w);
	u = w.sched.uses.at;
	sound(&w, "the whole and its parts");
	ok(u[0].slot == u[1].slot && u[1].slot == u[2].slot && u[2].slot == u[3].slot, "the whole is used: one slot");
	ok(u[0].off == 40960 && u[1].off == 32768 && u[2].off == 0 && u[3].bytes == 65536, "each part has its offset");
	is_str(w.sched.slots.at[u[0].slot].name, "all", "a use of a part belongs to the slot of the whole");
	is_int(w.sched.slots.at[u[0].slot].flags, UM_SLOT_FIXED, "what is promised of it is not promised of each part");
	is_int(w.sched.births.n, 1, "a birth inside it keeps a slot");
	ok(named(&w, "inner")->flags & UM_SLOT_UNMANAGED, "the slot of a part gets no hints");

	/* an allocation carved up within the iteration */
	all = world_add(&w, 1 << 24, 65536, "fresh", UM_TENSOR_ADOPTED);
	inner = world_add(&w, 1 << 24, 4096, "carved", UM_TENSOR_ADOPTED);
	inner->flags |= UM_TENSOR_TRANSIENT;
	OP(&w, "carved", W(inner));
	world_free(&w, inner);
	world_free(&w, all);
	world_iter(&w);
	u = w.sched.uses.at;
	is_int(u[0].slot, index_of(&w, named(&w, "carved")), "a whole that is not used takes nothing from its parts");
	ok(named(&w, "fresh")->flags & UM_SLOT_UNMANAGED, "a new part gets no hints");
	is_int(named(&w, "carved")->flags, UM_SLOT_FIXED | UM_SLOT_TRANSIENT, "a promise made after the birth counts");
	world_fini(&w);
}

/* An op may be launched again if that makes whole slots again. */
static void relaunching(int with_whole)
{
	struct world w;
	struct um_tensor *all, *part;
	struct um_event event = {.kind = UM_EV_OP};
	struct um_use uses[1];

	world_init(&w);
	all = world_add(&w, 1 << 20, 8192, "all", UM_TENSOR_ADOPTED);
	part = world_add(&w, 1 << 20, 4096, "part", UM_TENSOR_ADOPTED);
	world_iter(&w);
	uses[0] = W(part);
	event.op.name = "make";
	event.op.uses = uses;
	event.op.n_uses = 1;
	event.op.relaunchable = 1;
	event.op.relaunch = &part->id;
	event.op.n_relaunch = 1;
	world_feed(&w, &event);
	if (with_whole)
		OP(&w, "use", R(all));
	world_iter(&w);
	is_int(w.sched.ops.at[0].relaunchable, !with_whole, with_whole ? "not if it makes a part" : "if it makes one");
	is_int(w.sched.ops.at[0].n_relaunch, !with_whole, "an op has relaunched outputs unless it makes a part");
	if (!with_whole)
		is_int(w.sched.relaunch.at[0], w.sched.uses.at[0].slot, "relaunched outputs are in terms of slots");
	world_fini(&w);
}

static void shapes_change(void)
{
	struct world w;
	struct um_tensor *p, *act;
	int never = 1;

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	for (int step = 0; step < 6; step++) {
		world_iter(&w);
		never &= step == 0 || w.changed == 1;
		act = world_alloc(&w, 1000 + (uint64_t)(step * 7 % 5) * 100, "act");
		OP(&w, "f", R(p), W(act));
		world_free(&w, act);
		OP(&w, "g", U(p));
	}
	ok(never, "changing sizes never give the same schedule");
	world_fini(&w);
}

static void death_moves(void)
{
	static const int death[] = {1, 1, 2, 2, 0, 0};
	static const char want[] = "101010";
	struct world w;
	struct um_tensor *p, *t;

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	for (int step = 0; step <= 6; step++) {
		world_iter(&w);
		if (step) {
			sound(&w, "a death that moves");
			is_int(w.changed, want[step - 1] - '0', "step %d: freed %s", step,
			       want[step - 1] == '1' ? "elsewhere" : "at the same place");
			lives(named(&w, "t"), 0, 1 + death[step - 1], "where it was freed last");
		}
		if (step == 6)
			break;
		t = world_alloc(&w, 64, "t");
		for (int i = 0; i < 3; i++) {
			OP(&w, "op", U(p));
			if (i == death[step])
				world_free(&w, t);
		}
	}
	world_fini(&w);
}

/* Lives that umplan's positions cannot tell apart from wrapping ones. */
static void edges(void)
{
	struct world w;
	struct um_tensor *p, *t, *batch = NULL, *kept = NULL, *same = NULL, *spare;

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	for (int step = 0; step < 4; step++) {
		world_iter(&w);
		if (step == 1) {
			sound(&w, "edges, after one iteration");
			lives(named(&w, "batch"), 2, 2, "made for the next iteration, perhaps: there all the time");
			is_u64(named(&w, "batch")->bound.v, batch->id.v, "the one that is there");
			ok(named(&w, "batch")->flags & UM_SLOT_GUESSED, "the binding of the slot is a guess");
		}
		if (step > 1) {
			sound(&w, "edges");
			is_int(w.changed, step == 2, "step %d: the schedule %s", step, step == 2 ? "is new" : "stays");
		}
		t = world_alloc(&w, 64, "passing");
		world_free(&w, t);
		OP(&w, "a", U(p));
		if (kept) {
			world_free(&w, kept);
			world_free(&w, same);
		}
		same = world_alloc(&w, 48, "same");
		if (batch) {
			OP(&w, "b", R(batch), U(p));
			world_free(&w, batch);
		} else {
			OP(&w, "b", U(p));
		}
		kept = world_alloc(&w, 16, "kept");
		batch = world_alloc(&w, 128, "batch");
		spare = world_alloc(&w, 256, "spare");
		world_free(&w, spare);
	}
	world_iter(&w);
	lives(named(&w, "passing"), 0, 1, "a life between two ops is stretched over one");
	ok(named(&w, "passing")->flags & UM_SLOT_UNMANAGED, "a passing part gets no hints");
	lives(named(&w, "spare"), 1, 2, "after the last op too");
	lives(named(&w, "batch"), 2, 2, "made after the last op, freed after the last op of the next: one slot");
	lives(named(&w, "kept"), 2, 1, "never used, but it takes memory");
	lives(named(&w, "same"), 1, 1, "freed and made again at the same place: one slot, there all the time");
	world_fini(&w);
}

/* A new batch is there before the old one is freed: two at a time for a while, although the old one is not used any
 * more. */
static void unused_overlap(void)
{
	struct world w;
	struct um_tensor *p, *old = NULL, *batch;
	const struct um_slot *young, *before;

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	for (int step = 0; step < 4; step++) {
		world_iter(&w);
		batch = world_alloc(&w, 1000, "batch");
		OP(&w, "load", W(batch));
		if (old)
			world_free(&w, old);
		OP(&w, "train", R(batch), U(p));
		old = batch;
	}
	world_iter(&w);
	sound(&w, "overlap");
	is_int(w.changed, 0, "the schedule stays");
	is_int(w.sched.slots.n, 3, "the schedule has slots for the weight and two batches");
	young = &w.sched.slots.at[w.sched.births.at[0]];
	before = young + 1;
	lives(young, 0, 2, "the young one to the end");
	lives(before, -1, 1, "the old one until it is freed");
	is_int(before->carry, index_of(&w, young), "the old slot becomes the young one");
	is_u64(before->bound.v, batch->id.v, "the slot is bound to its tensor");
	world_fini(&w);
}

/* A variable of the program holds what is not used any more until it gets its next value. */
static void held(void)
{
	const uint64_t bytes = UM_BLOCK_BYTES;
	struct world w;
	struct um_tensor *state, *next, *old = NULL;

	world_init(&w);
	state = world_alloc(&w, bytes, "state");
	for (int step = 0; step < 6; step++) {
		world_iter(&w);
		if (step >= 2) {
			sound(&w, "held");
			is_int(w.changed, step == 2, "step %d: the schedule %s", step, step == 2 ? "is new" : "stays");
		}
		OP(&w, "read", R(state));
		if (old)
			world_free(&w, old);
		next = world_alloc(&w, bytes, "next");
		OP(&w, "step", R(state), W(next));
		old = state;
		state = next;
	}
	world_iter(&w);
	is_int(w.sched.slots.n, 3, "there is a slot for what is held");
	lives(&w.sched.slots.at[0], -1, -1, "what is used");
	lives(&w.sched.slots.at[1], 1, 2, "what is born");
	lives(&w.sched.slots.at[2], -1, 1, "what is held, until it is freed,");
	is_int(w.sched.slots.at[2].carry, 0, "what was used is held next");
	is_int(w.sched.slots.at[0].carry, 1, "what was born is used next");
	is_u64(w.sched.slots.at[2].bound.v, old->id.v, "the slot is bound to its tensor");
	world_free(&w, world_alloc(&w, bytes, "other"));
	world_fini(&w);
}

/* Frees of older tensors that no iteration repeats have no slot. */
static void let_go(void)
{
	struct world w;
	struct um_tensor *p, *stock[4];

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	for (int i = 0; i < 4; i++)
		stock[i] = world_alloc(&w, UM_BLOCK_BYTES, "stock");
	for (int step = 0; step < 4; step++) {
		world_iter(&w);
		OP(&w, "a", U(p));
		world_free(&w, stock[step]);
		OP(&w, "b", U(p));
	}
	world_iter(&w);
	is_int(w.changed, 0, "frees of tensors that were never used change no schedule");
	is_int(w.sched.slots.n, 1, "they have no slots");
	world_fini(&w);
}

static void nothing_to_learn(void)
{
	struct world w;
	struct um_tensor *p;

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	world_iter(&w);
	world_iter(&w);
	is_int(w.rc, -ENODATA, "an iteration without ops has no schedule");
	is_int(w.changed, -1, "the change stays unknown");
	OP(&w, "a", U(p));
	world_iter(&w);
	OP(&w, "a", U(p));
	w.recorder.it.incomplete = 1;
	world_iter(&w);
	is_int(w.rc, -ENODATA, "an incomplete iteration is not learned from");
	is_int(w.sched.slots.n, 0, "a failed learner has no schedule");
	OP(&w, "a", U(p));
	world_iter(&w);
	ok(w.rc == 0 && w.changed == 0, "what comes after it is what was known before");
	world_fini(&w);
}

static void what_is_copied(void)
{
	struct world w;
	struct um_tensor *p, *comm, *late;

	world_init(&w);
	p = world_alloc(&w, 64, "p");
	comm = world_alloc(&w, 64, "comm");
	p->role = UM_ROLE_PARAM;
	p->flags = UM_TENSOR_TRANSIENT;
	comm->flags = UM_TENSOR_UNMANAGED;
	world_iter(&w);
	OP(&w, "a", world_use(p, UM_READ, 8, 16), W(comm));
	world_dead(&w, comm);
	world_iter(&w);
	is_int(named(&w, "p")->role, UM_ROLE_PARAM, "the slot has its role");
	is_int(named(&w, "p")->flags, UM_SLOT_FIXED | UM_SLOT_TRANSIENT, "the slot has its promises");
	is_int(named(&w, "comm")->flags, UM_SLOT_FIXED | UM_SLOT_UNMANAGED, "what is kept out of managed memory");
	ok(w.sched.uses.at[0].off == 8 && w.sched.uses.at[0].bytes == 16, "the range of a use");
	ok(!w.sched.uses.at[0].dead_after && w.sched.uses.at[1].dead_after, "what is dead after it");
	is_u64(w.sched.ops.at[0].hash, w.it.ops.at[0].hash, "the op has its hash");
	is_str(w.sched.ops.at[0].name, "a", "the op has its name");
	OP(&w, "a", world_use(p, UM_READ, 8, 16), W(comm));
	world_iter(&w);
	is_int(w.changed, 1, "a promise that is not made again is a change");
	late = world_alloc(&w, 32, "late");
	late->flags |= UM_TENSOR_TRANSIENT;
	OP(&w, "a", W(late));
	world_iter(&w);
	is_int(named(&w, "late")->flags, UM_SLOT_TRANSIENT | UM_SLOT_GUESSED, "a promise after the birth counts");
	world_fini(&w);
}

int main(void)
{
	training();
	hidden_state(0);
	hidden_state(1);
	swapping();
	taking_turns();
	supplied(UM_BLOCK_BYTES, 0);
	supplied(UM_BLOCK_BYTES, 1);
	supplied(64, 0);
	interrupted();
	one_missed();
	the_end();
	ring_at_the_end();
	ring();
	replaced();
	nested();
	relaunching(0);
	relaunching(1);
	shapes_change();
	death_moves();
	edges();
	unused_overlap();
	held();
	let_go();
	nothing_to_learn();
	what_is_copied();
	return tap_done();
}
