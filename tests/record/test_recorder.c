/* SPDX-License-Identifier: Apache-2.0
 *
 * What an iteration looks like once it is over: numbers, positions, fingerprints, and what is kept from one to the
 * next.
 */
#include "tap.h"
#include "fixture/world.h"

static void numbers_and_positions(void)
{
	struct world w;
	struct um_tensor *a, *b, *c, *old;

	world_init(&w);
	old = world_alloc(&w, 100, "old");
	a = world_alloc(&w, 200, "a");
	OP(&w, "set-up", W(a));
	is_int(w.recorder.it.ops.n, 0, "ops of set-up are not kept");
	world_iter(&w);
	is_u64(w.recorder.it.n, 1, "the first iteration is number 1");
	b = world_alloc(&w, 300, "b");
	OP(&w, "one", R(a), W(b));
	c = world_alloc(&w, 400, NULL);
	OP(&w, "two", R(b), U(a), world_use(c, UM_WRITE, 16, 32));
	world_free(&w, b);
	OP(&w, "three", R(c));
	world_free(&w, c);
	world_free(&w, old);
	world_iter(&w);
	is_int(w.it.tensors.n, 3, "births and used tensors are recorded, a tensor that is only freed is not");
	is_str(w.it.tensors.at[0].name, "b", "tensors are numbered by first appearance");
	is_str(w.it.tensors.at[1].name, "a", "tensors that live already follow in the order of use");
	ok(w.it.tensors.at[2].name == NULL, "a tensor without a name has none");
	is_int(w.it.tensors.at[0].birth, 0, "the first birth is before op 0");
	is_int(w.it.tensors.at[0].death, 2, "the first free is before op 2");
	is_int(w.it.tensors.at[1].birth, UM_NOWHERE, "an older one has no birth");
	is_int(w.it.tensors.at[1].death, UM_NOWHERE, "a tensor that is not freed lives on");
	is_int(w.it.tensors.at[2].birth, 1, "the second birth is before op 1");
	is_int(w.it.tensors.at[2].death, 3, "freed after the last op");
	is_u64(w.it.tensors.at[2].born_iter, 1, "the birth is of this iteration");
	is_u64(w.it.tensors.at[2].born_ord, 1, "the second birth has ordinal 1");
	is_int(w.it.births.n, 2, "the iteration has two births");
	is_int(w.it.births.at[1], 2, "the second is tensor 2");
	is_int(w.it.ops.n, 3, "the iteration has three ops");
	is_int(w.it.ops.at[1].first_use, 2, "uses lie one after the other");
	is_int(w.it.ops.at[1].n_uses, 3, "the second op has three uses");
	is_u64(w.it.uses.at[4].off, 16, "the use of a part has its offset");
	is_u64(w.it.uses.at[4].bytes, 32, "the use has the bytes that were read");
	is_int(w.it.uses.at[3].access, UM_UPDATE, "the uses are recorded");
	is_int(w.it.incomplete, 0, "all was kept");
	ok(a->born_iter == 0 && a->born_ord == 1, "a tensor knows when it was born");
	world_fini(&w);
}

/* One iteration over tensors of the world; `variant` changes one thing. */
static uint64_t signature_of(int variant)
{
	struct world w;
	struct um_tensor *x, *y, *t;
	struct um_event event = {.kind = UM_EV_OP};
	struct um_use uses[2];
	uint64_t signature;

	world_init(&w);
	if (variant == 1)
		world_alloc(&w, 12345, "shifts addresses and ids");
	x = world_alloc(&w, 512, "x");
	y = world_alloc(&w, variant == 2 || variant == 15 ? 513 : 512, "y");
	world_iter(&w);
	t = world_alloc(&w, variant == 3 ? 65 : 64, "t");
	OP(&w, variant == 4 ? "mul" : "add", R(x), W(t));
	if (variant == 5)
		world_free(&w, t);
	uses[0] = R(variant == 6 ? x : y);
	uses[1] = variant == 7 ? U(x) : W(x);
	if (variant == 8)
		uses[0].off = 8, uses[0].bytes = 504;
	if (variant == 9)
		uses[0].bytes = 504;
	if (variant == 15)
		uses[0].bytes = 512;
	if (variant == 10)
		uses[0].touched = 8;
	event.op.name = "next";
	event.op.uses = uses;
	event.op.n_uses = variant == 11 ? 1 : 2;
	event.op.stream = variant == 12;
	event.op.cost.ns = variant == 13 ? 99 : 0;
	world_feed(&w, &event);
	if (variant == 14)
		world_alloc(&w, 64, "late");
	world_iter(&w);
	signature = w.it.signature;
	world_fini(&w);
	return signature;
}

static void fingerprints(void)
{
	static const struct {
		int same;
		const char *what;
	} variant[] = {{1, "the same again"},
		       {1, "other addresses and ids"},
		       {0, "the size of a tensor"},
		       {0, "the size of a birth"},
		       {0, "a name"},
		       {1, "where a tensor is freed"},
		       {0, "which tensor is used"},
		       {0, "read or written"},
		       {0, "an offset"},
		       {0, "a length"},
		       {1, "how much of it is really touched"},
		       {0, "one use less"},
		       {0, "the stream"},
		       {1, "the measured time"},
		       {0, "one birth more"},
		       {0, "the size of a tensor, used alike"}};
	uint64_t base = signature_of(0);

	for (int i = 0; i < (int)(sizeof variant / sizeof *variant); i++)
		ok((signature_of(i) == base) == variant[i].same, "%s: %s", variant[i].what,
		   variant[i].same ? "the same signature" : "another signature");
	ok(signature_of(8) != signature_of(9), "another offset changes the signature");
}

static void late_and_dead(void)
{
	struct world w;
	struct um_tensor *grad, *used, *p, *setup;

	world_init(&w);
	setup = world_alloc(&w, 8, "setup");
	p = world_alloc(&w, 64, "p");
	world_iter(&w);
	grad = world_alloc(&w, 64, "grad");
	used = world_alloc(&w, 32, "used");
	OP(&w, "a", W(grad), W(used), U(p));
	world_dead(&w, used);
	world_free(&w, setup);
	world_iter(&w);
	is_int(w.it.late_frees.n, 0, "the order of births before the first iteration is ignored");
	ok(!w.it.uses.at[0].dead_after && w.it.uses.at[1].dead_after, "the last use of what was declared dead");
	world_free(&w, grad);
	world_dead(&w, p);
	OP(&w, "b", R(used), U(p));
	OP(&w, "c", U(p));
	world_free(&w, used);
	world_dead(&w, p);
	OP(&w, "d", W(p));
	world_iter(&w);
	is_int(w.it.late_frees.n, 2, "tensors of the previous iteration are freed in this one, used or not");
	is_int(w.it.late_frees.at[0].born_ord, 0, "the late free names the first birth");
	is_int(w.it.late_frees.at[0].pos, 0, "one is freed before any op");
	is_int(w.it.late_frees.at[1].pos, 2, "the other is freed before op 2");
	is_u64(w.it.late_frees.at[1].bytes, 32, "the late free has the tensor's size");
	is_int(w.it.uses.at[1].dead_after, 0, "dead is said of the last use so far, not of an earlier one");
	is_int(w.it.uses.at[2].dead_after, 1, "the last use of this iteration is dead after it");
	is_int(w.it.uses.at[3].dead_after, 0, "a later use is not dead after it");
	for (int i = 0; i < 2; i++) {
		OP(&w, "e", R(p));
		if (i == 0)
			used = world_alloc(&w, 32, "used");
		world_iter(&w);
		is_int(w.it.late_frees.n, 0, "the next iterations start clean");
	}
	world_free(&w, used);
	world_iter(&w);
	is_int(w.it.late_frees.n, 0, "a tensor born two iterations ago counts as old");
	world_fini(&w);
}

/* Older tensors that are freed without a use. */
static void idle(void)
{
	struct world w;
	struct um_tensor *setup, *old, *used, *small, *late;
	uint64_t id;

	world_init(&w);
	setup = world_alloc(&w, UM_BLOCK_BYTES, "setup");
	world_iter(&w);
	old = world_alloc(&w, 2 * UM_BLOCK_BYTES, "old");
	used = world_alloc(&w, UM_BLOCK_BYTES, "used");
	small = world_alloc(&w, UM_BLOCK_BYTES - 1, "small");
	id = old->id.v;
	OP(&w, "a", W(used));
	world_iter(&w);
	late = world_alloc(&w, UM_BLOCK_BYTES, "late");
	world_iter(&w);
	world_free(&w, setup);
	OP(&w, "b", R(used));
	world_free(&w, old);
	world_free(&w, used);
	world_free(&w, small);
	world_free(&w, late);
	world_iter(&w);
	is_int(w.it.idle_frees.n, 2, "frees of older tensors of a block or more, without a use, are recorded");
	is_int(w.it.idle_frees.at[0].pos, 0, "one is freed before any op");
	is_int(w.it.idle_frees.at[1].pos, 1, "the other is freed before op 1");
	is_u64(w.it.idle_frees.at[1].id.v, id, "the record names the tensor");
	is_u64(w.it.idle_frees.at[1].bytes, 2 * UM_BLOCK_BYTES, "it has the tensor's size");
	is_int(w.it.tensors.n, 1, "they are not among the tensors of the iteration");
	OP(&w, "c", R(world_alloc(&w, 64, "x")));
	world_iter(&w);
	is_int(w.it.idle_frees.n, 0, "the next iteration starts clean");
	world_fini(&w);
}

static void relaunch(void)
{
	struct world w;
	struct um_tensor *x, *y, *z;
	struct um_event event = {.kind = UM_EV_OP};
	struct um_use uses[3];
	struct um_tensor_id again[2];

	world_init(&w);
	x = world_alloc(&w, 64, "x");
	world_iter(&w);
	y = world_alloc(&w, 64, "y");
	z = world_alloc(&w, 64, "z");
	uses[0] = R(x), uses[1] = W(z), uses[2] = W(y);
	again[0] = y->id, again[1].v = 777;
	event.op.name = "f";
	event.op.uses = uses;
	event.op.n_uses = 3;
	event.op.relaunch = again;
	event.op.n_relaunch = 2;
	event.op.relaunchable = 1;
	event.op.phase = 'f';
	world_feed(&w, &event);
	event.op.n_relaunch = 0;
	event.op.relaunchable = 0;
	world_feed(&w, &event);
	world_iter(&w);
	is_int(w.it.ops.at[0].n_relaunch, 1, "one output can be made again; an id that the op does not use is dropped");
	is_int(w.it.relaunch.at[0], 0, "it is tensor 0");
	ok(w.it.ops.at[0].relaunchable && !w.it.ops.at[1].relaunchable, "ops say whether they may be launched again");
	is_int(w.it.ops.at[0].phase, 'f', "the phase is kept");
	world_fini(&w);
}

static void memory_is_reused(void)
{
	struct world w;
	struct um_tensor *x;
	const void *ops = NULL, *uses = NULL;
	int moved = 0;

	world_init(&w);
	x = world_alloc(&w, 64, "x");
	world_iter(&w);
	for (int step = 0; step < 8; step++) {
		char name[16];

		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof name, "op %d", i);
			OP(&w, name, U(x));
		}
		world_iter(&w);
		/* two iterations take turns: from the third on the arrays are those of the one before last */
		if (step >= 2 && step % 2 == 0)
			moved += ops != NULL && (w.it.ops.at != ops || w.it.uses.at != uses);
		if (step >= 2 && step % 2 == 0) {
			ops = w.it.ops.at;
			uses = w.it.uses.at;
		}
		if (step == 7) {
			is_int(w.it.ops.n, 100, "every op is there");
			is_str(w.it.ops.at[99].name, "op 99", "an op's name outlives the caller's string");
		}
	}
	is_int(moved, 0, "the memory of an iteration is used again");
	is_u64(w.recorder.names.n, 101, "a name is kept once");
	is_int(w.it.strings.n, 0, "names are not kept with the iteration");
	world_fini(&w);
}

static void nested(void)
{
	struct world w;
	struct um_tensor *a, *b, *c;

	world_init(&w);
	a = world_add(&w, 4096, 4096, "a", UM_TENSOR_ADOPTED);
	b = world_add(&w, 4096 + 512, 1024, "b", UM_TENSOR_ADOPTED);
	c = world_add(&w, 4096 + 768, 256, "c", UM_TENSOR_ADOPTED);
	world_iter(&w);
	OP(&w, "x", R(c), W(a));
	world_iter(&w);
	is_int(w.it.tensors.n, 2, "unused tensors are not recorded");
	is_int(w.it.nests.n, 2, "a part of a part lies in two");
	ok(w.it.nests.at[0].outer.v == b->id.v && w.it.nests.at[0].off == 256,
	   "nested tensors begin with the innermost");
	ok(w.it.nests.at[1].outer.v == a->id.v && w.it.nests.at[1].off == 768,
	   "the whole tensor is recorded with the offset of its part");
	OP(&w, "x", R(c));
	world_add(&w, 0, 65536, "around", UM_TENSOR_ADOPTED);
	world_iter(&w);
	is_int(w.it.incomplete, 1, "a birth around live ones is not learned from");
	is_int(w.rc, -ENODATA, "the recorder returns the error");
	world_fini(&w);
}

static void between_take_and_mark(void)
{
	struct world w;
	struct um_tensor *x, *y;

	world_init(&w);
	x = world_alloc(&w, 64, "x");
	y = world_alloc(&w, 64, "y");
	world_iter(&w);
	OP(&w, "a", U(x));
	um_recorder_take(&w.recorder, &w.it);
	is_int(w.it.ops.n, 1, "the iteration is handed over with its op");
	world_dead(&w, x);
	OP(&w, "b", U(y));
	OP(&w, "c", U(x));
	is_int(w.recorder.it.tensors.n, 2, "events before the mark number their tensors anew");
	is_int(w.recorder.it.uses.at[1].tensor, 1, "each tensor of the op has its own use");
	world_fini(&w);
}

#define SCRIPT 12
#define SCRIPT_TENSORS 5

/* Two worlds in which the same happens; in one of them ops come by the hash that they had when they were learned. */
struct twins {
	struct world plain, repeating;
	struct um_tensor *t[2][SCRIPT_TENSORS];
	uint64_t hash[SCRIPT];
	struct um_use uses[SCRIPT * 2]; /* of the ops that come by their hash */
	uint32_t dice;
	int passed;
};

static uint32_t roll(struct twins *w, uint32_t sides)
{
	w->dice = w->dice * 1664525u + 1013904223u;
	return (w->dice >> 16) % sides;
}

/* 1: it was taken for what it had been. */
static int twins_pass(struct twins *w, const struct um_op *op, uint64_t hash, struct um_use *uses)
{
	struct um_iter_op *kept;

	if (!hash)
		return 0;
	memcpy(uses, op->uses, op->n_uses * sizeof *uses);
	kept = um_recorder_repeat(&w->repeating.recorder, hash, uses, op->n_uses);
	if (!kept)
		return 0;
	kept->cost = op->cost;
	kept->relaunchable = op->relaunchable != 0;
	w->passed++;
	return 1;
}

static void twins_op(struct twins *w, int i, int more, uint64_t ns, uint64_t hash)
{
	struct world *const both[] = {&w->plain, &w->repeating};
	char name[16];

	snprintf(name, sizeof name, "op %d", i);
	for (int k = 0; k < 2; k++) {
		struct um_tensor **t = w->t[k];
		struct um_use uses[] = {R(t[i % SCRIPT_TENSORS]), U(t[(i * 3 + 1) % SCRIPT_TENSORS]), W(t[4])};
		struct um_event event = {.kind = UM_EV_OP};

		uses[0].touched = ns % 2 ? 1 : uses[0].touched;
		event.op = (struct um_op){.name = name, .uses = uses, .n_uses = 1 + (uint32_t)(i % 2 + more)};
		event.op.cost.ns = ns;
		event.op.relaunchable = ns > 1;
		event.op.collective = i % 3 == 0;
		if (!k || !twins_pass(w, &event.op, hash, &w->uses[i + i / 2]))
			world_feed(both[k], &event);
	}
}

/* Something that a plan's schedule knows nothing of. */
static void twins_disturb(struct twins *w)
{
	struct world *const both[] = {&w->plain, &w->repeating};
	uint32_t kind = roll(w, 12), which = roll(w, SCRIPT_TENSORS);

	for (int k = 0; k < 2; k++) {
		if (kind == 0)
			world_dead(both[k], w->t[k][which]);
		if (kind == 1) {
			um_recorder_flush(&both[k]->recorder);
			w->t[k][which]->flags ^= UM_TENSOR_TRANSIENT;
		}
		if (kind == 2) {
			world_free(both[k], w->t[k][which]);
			w->t[k][which] = world_alloc(both[k], 64 + which, which ? "new" : NULL);
		}
	}
	if (kind == 3)
		twins_op(w, (int)roll(w, SCRIPT), 1, 0, 0);
}

static int same_ops(const struct um_iteration *a, const struct um_iteration *b)
{
	for (size_t i = 0; i < a->ops.n; i++) {
		const struct um_iter_op *x = &a->ops.at[i], *y = &b->ops.at[i];

		if (strcmp(x->name, y->name) != 0 || x->hash != y->hash || x->first_use != y->first_use ||
		    x->n_uses != y->n_uses || x->cost.ns != y->cost.ns || x->relaunchable != y->relaunchable ||
		    x->collective != y->collective)
			return 0;
	}
	for (size_t i = 0; i < a->uses.n; i++) {
		const struct um_iter_use *x = &a->uses.at[i], *y = &b->uses.at[i];

		if (x->tensor != y->tensor || x->access != y->access || x->off != y->off || x->bytes != y->bytes ||
		    x->touched != y->touched || x->dead_after != y->dead_after)
			return 0;
	}
	return 1;
}

static int same_iteration(const struct um_iteration *a, const struct um_iteration *b)
{
	if (a->signature != b->signature || a->ops.n != b->ops.n || a->uses.n != b->uses.n ||
	    a->tensors.n != b->tensors.n || a->incomplete || b->incomplete || !same_ops(a, b))
		return 0;
	for (size_t i = 0; i < a->tensors.n; i++) {
		const struct um_iter_tensor *x = &a->tensors.at[i], *y = &b->tensors.at[i];

		if (x->id.v != y->id.v || x->bytes != y->bytes || !x->name != !y->name || x->flags != y->flags ||
		    x->born_iter != y->born_iter || x->born_ord != y->born_ord || x->birth != y->birth ||
		    x->death != y->death)
			return 0;
	}
	return 1;
}

static void known_ops(void)
{
	struct twins w = {.dice = 1};
	int differ = 0;

	world_init(&w.plain);
	world_init(&w.repeating);
	for (int i = 0; i < SCRIPT_TENSORS; i++) {
		w.t[0][i] = world_alloc(&w.plain, 64 + (uint64_t)i, "t");
		w.t[1][i] = world_alloc(&w.repeating, 64 + (uint64_t)i, "t");
	}
	for (int step = 0; step < 400; step++) {
		world_iter(&w.plain);
		world_iter(&w.repeating);
		differ += step > 1 && !same_iteration(&w.plain.it, &w.repeating.it);
		for (int i = 0; i < SCRIPT; i++) {
			if (step % 4 == 3)
				twins_disturb(&w);
			if (step > 10 && roll(&w, 40) == 0)
				break;
			int more = step > 10 && roll(&w, 30) == 0;

			twins_op(&w, i, more, roll(&w, 3), more ? 0 : w.hash[i]);
			if (!step)
				w.hash[i] = w.plain.recorder.it.ops.at[i].hash;
		}
	}
	is_int(differ, 0, "an op that is known to be one of before is recorded as if it was not");
	ok(w.passed > 1000, "many ops are passed by (%d)", w.passed);
	world_fini(&w.plain);
	world_fini(&w.repeating);
}

/* What is only counted lies one behind the other. */
static void passed_in_a_row(void)
{
	struct world w;
	struct um_use uses[3];
	struct um_tensor *x;
	uint64_t hash;

	world_init(&w);
	x = world_alloc(&w, 64, "x");
	uses[0] = uses[1] = uses[2] = U(x);
	for (int step = 0; step < 3; step++) {
		world_iter(&w);
		OP(&w, "a", U(x));
		OP(&w, "a", U(x));
	}
	hash = w.recorder.it.ops.at[0].hash;
	world_iter(&w);
	ok(um_recorder_repeat(&w.recorder, hash, &uses[0], 1) != NULL, "an op is known");
	ok(um_recorder_repeat(&w.recorder, hash, &uses[2], 1) == NULL,
	   "an op whose uses lie elsewhere is not passed by");
	ok(um_recorder_repeat(&w.recorder, hash, &uses[1], 1) != NULL, "one whose uses are the next");
	ok(um_recorder_repeat(&w.recorder, hash, &uses[2], 1) == NULL,
	   "an op is not passed by more often than it was recorded");
	um_recorder_flush(&w.recorder);
	is_int(w.recorder.it.ops.n, 2, "all known ops are kept");
	world_fini(&w);
}

int main(void)
{
	numbers_and_positions();
	fingerprints();
	late_and_dead();
	idle();
	relaunch();
	memory_is_reused();
	nested();
	between_take_and_mark();
	known_ops();
	passed_in_a_row();
	return tap_done();
}
