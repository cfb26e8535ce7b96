/* SPDX-License-Identifier: Apache-2.0
 *
 * What is cut out of a record is what marks would have made of it, and where an iteration is made to begin.
 */
#include "learn/iteration_cut.h"
#include "learn/iteration_start.h"

#include "fixture/world.h"
#include "tap.h"

struct app {
	struct world w;
	struct um_tensor *weight[3], *grad[3], *flip, *flop, *state, *held;
};

static void begin(struct app *a)
{
	world_init(&a->w);
	for (int i = 0; i < 3; i++)
		a->weight[i] = world_alloc(&a->w, 1000 + (unsigned)i, "w");
	a->flip = world_alloc(&a->w, 77, "flip");
	a->flop = world_alloc(&a->w, 77, "flop");
	a->state = world_alloc(&a->w, UM_BLOCK_BYTES, "state");
}

/* Gradients live until the next step; two buffers swap; a state is held for a step after its last use. */
static void step(struct app *a)
{
	struct um_tensor *act[3], *swap = a->flip, *next;
	struct world *w = &a->w;

	OP(w, "load", R(a->flip), W(a->flop));
	if (a->held)
		world_free(w, a->held);
	next = world_alloc(w, UM_BLOCK_BYTES, NULL);
	for (int i = 0; i < 3; i++) {
		act[i] = world_alloc(w, 5000, NULL);
		OP(w, "forward", R(a->weight[i]), W(act[i]));
	}
	for (int i = 0; i < 3; i++) {
		if (a->grad[i])
			world_free(w, a->grad[i]);
		a->grad[i] = world_alloc(w, 1000 + (unsigned)i, NULL);
		OP(w, "backward", R(act[i]), W(a->grad[i]));
		world_free(w, act[i]);
	}
	for (int i = 0; i < 3; i++)
		OP(w, "update", R(a->grad[i]), U(a->weight[i]), R(a->state), W(next));
	a->held = a->state;
	a->state = next;
	a->flip = a->flop;
	a->flop = swap;
}

#define OPS 10u

/* Four steps, marked or in one. `out`: the third. */
static void run(int marked, struct um_iteration *out)
{
	struct um_cut cut = {.before = OPS, .from = 2 * OPS, .to = 3 * OPS, .n = 3};
	struct app a = {0};

	begin(&a);
	world_iter(&a.w);
	for (int i = 0; i < 4; i++) {
		step(&a);
		if (marked || i == 3)
			world_iter(&a.w);
		if (marked && i == 2) {
			*out = a.w.it;
			um_iteration_init(&a.w.it);
		}
	}
	if (!marked && um_iteration_cut(&a.w.it, &cut, out))
		tap_bail("no memory");
	world_fini(&a.w);
}

static int same_ops(const struct um_iteration *a, const struct um_iteration *b)
{
	int same = a->ops.n == b->ops.n && a->uses.n == b->uses.n;

	for (size_t i = 0; i < a->ops.n && same; i++)
		same = a->ops.at[i].hash == b->ops.at[i].hash && a->ops.at[i].first_use == b->ops.at[i].first_use;
	for (size_t i = 0; i < a->uses.n && same; i++)
		same = a->uses.at[i].tensor == b->uses.at[i].tensor && a->uses.at[i].access == b->uses.at[i].access;
	return same;
}

static int same_births(const struct um_iteration *a, const struct um_iteration *b)
{
	int same =
		a->births.n == b->births.n && a->late_frees.n == b->late_frees.n && a->idle_frees.n == b->idle_frees.n;

	for (size_t i = 0; i < a->births.n && same; i++)
		same = a->births.at[i] == b->births.at[i];
	for (size_t i = 0; i < a->late_frees.n && same; i++)
		same = a->late_frees.at[i].born_ord == b->late_frees.at[i].born_ord &&
		       a->late_frees.at[i].pos == b->late_frees.at[i].pos;
	for (size_t i = 0; i < a->idle_frees.n && same; i++)
		same = a->idle_frees.at[i].id.v == b->idle_frees.at[i].id.v &&
		       a->idle_frees.at[i].pos == b->idle_frees.at[i].pos;
	return same;
}

static int same_tensors(const struct um_iteration *a, const struct um_iteration *b)
{
	int same = a->tensors.n == b->tensors.n;

	for (size_t i = 0; i < a->tensors.n && same; i++) {
		const struct um_iter_tensor *x = &a->tensors.at[i], *y = &b->tensors.at[i];

		same = x->id.v == y->id.v && x->bytes == y->bytes && x->birth == y->birth && x->death == y->death;
		if (x->born_iter + 1 >= a->n)
			same = same && x->born_iter == y->born_iter && x->born_ord == y->born_ord;
	}
	return same;
}

static void cut_equals_marked(void)
{
	struct um_iteration marked, cut;

	um_iteration_init(&marked);
	um_iteration_init(&cut);
	run(1, &marked);
	run(0, &cut);
	is_u64(cut.signature, marked.signature, "a cut has the fingerprint of a marked iteration");
	ok(same_tensors(&marked, &cut), "its tensors appear, are born and die likewise");
	ok(same_ops(&marked, &cut), "its ops and uses are the same");
	ok(same_births(&marked, &cut), "its births, and the frees of the births before, are the same");
	is_u64(cut.late_frees.n, 3, "three gradients are freed an iteration after their birth");
	is_u64(cut.idle_frees.n, 1, "the held state is freed without a use");
	um_iteration_fini(&marked);
	um_iteration_fini(&cut);
}

/* Steps of a recording that begins with set-up. */
static void set_up(void)
{
	struct um_cut cut = {.before = 0, .from = 0, .to = 3, .n = 1};
	struct um_iteration first, second;
	struct um_tensor *weight, *act;
	struct world w;

	world_init(&w);
	um_iteration_init(&first);
	um_iteration_init(&second);
	world_iter(&w);
	world_free(&w, world_alloc(&w, 300, "tried"));
	weight = world_alloc(&w, 1000, "w");
	for (int i = 0; i < 2; i++) {
		act = world_alloc(&w, 500, NULL);
		OP(&w, "forward", R(weight), W(act));
		OP(&w, "backward", R(act), U(weight));
		world_free(&w, act);
		OP(&w, "check", R(weight));
	}
	world_iter(&w);
	if (um_iteration_cut(&w.it, &cut, &first))
		tap_bail("no memory");
	cut = (struct um_cut){.before = 0, .from = 3, .to = 6, .n = 2};
	if (um_iteration_cut(&w.it, &cut, &second))
		tap_bail("no memory");
	is_u64(first.births.n, 1, "the first step bears its activation, and not what set-up bore");
	is_u64(first.signature, second.signature, "it has the fingerprint of the second one");
	ok(first.tensors.at[1].born_iter == 0 && first.tensors.at[1].birth == UM_NOWHERE,
	   "a tensor of set-up is older than the first step");
	is_u64(second.tensors.at[1].born_iter, 0, "for the second step it is no tensor of the first one");
	um_iteration_fini(&first);
	um_iteration_fini(&second);
	world_fini(&w);
}

static void start(void)
{
	struct um_iteration all;
	struct app a = {0};
	uint32_t at = 99;

	begin(&a);
	world_iter(&a.w);
	step(&a);
	for (int i = 0; i < 3; i++)
		OP(&a.w, "warm-up", R(a.weight[i]));
	for (int i = 0; i < 3; i++)
		step(&a);
	world_iter(&a.w);
	all = a.w.it;
	is_int(um_iteration_start(&all, OPS, 0, &at), 0, "a start is found");
	is_u64(at, 0, "an iteration begins where gradients and activations are used up");
	all.ops.n -= 4;
	is_int(um_iteration_start(&all, OPS, 0, &at), 0, "a start is found in a record that ends within a step");
	is_u64(at, 4, "it is the same place");
	world_fini(&a.w);
}

int main(void)
{
	cut_equals_marked();
	set_up();
	start();
	return tap_done();
}
