/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans over slots become actions over whole blocks. Cases worked by hand; addresses in units of 2 MiB from 16.
 */
#include "replay/program.h"

#include "plan_make.h"

#define BASE (16 * MIB2)

#define SLOTS(...) ((const int[]){__VA_ARGS__, -1})

static unsigned count(const struct um_program *p, enum um_action_kind kind)
{
	unsigned n = 0;

	for (size_t i = 0; i < p->actions.n; i++)
		n += p->actions.at[i].kind == kind;
	return n;
}

static const struct um_action *nth(const struct um_program *p, enum um_action_kind kind, unsigned n)
{
	for (size_t i = 0; i < p->actions.n; i++)
		if (p->actions.at[i].kind == kind && n-- == 0)
			return &p->actions.at[i];
	tap_bail("no such action");
}

/* Two persistent slots of two blocks that take turns in two blocks of memory. */
static void turns(void)
{
	struct um_plan plan;
	struct um_program p;

	um_plan_init(&plan);
	um_program_init(&p);
	make_slot(&plan, BASE, 2 * MIB2, -1, -1);
	make_slot(&plan, BASE + 2 * MIB2, 2 * MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_UPDATE);
	make_op(&plan, "b", SLOTS(1), UM_UPDATE);
	make_hint(&plan, UM_HINT_EVICT, 0, 1, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 0, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_EVICT, 1, 0, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 1, 0, 2 * MIB2);
	ok(um_program_build(&plan, 2, &p) == 0, "turns: builds");
	is_u64(p.n_in, 2, "turns: two ins, the blocks of a slot in one run");
	is_u64(p.n_out, 2, "turns: two outs");
	is_u64(count(&p, UM_ACTION_DISCARD), 0, "turns: nothing is discarded");
	is_u64(nth(&p, UM_ACTION_IN, 0)->addr, BASE, "turns: slot 0 comes first");
	is_u64(nth(&p, UM_ACTION_IN, 0)->bytes, 2 * MIB2, "turns: whole");
	is_int(nth(&p, UM_ACTION_IN, 0)->room, 1, "turns: it waits for the first out of this iteration");
	is_int(nth(&p, UM_ACTION_IN, 1)->room, 2, "turns: the other for the second");
	is_int(p.gate[0], 1, "turns: op 0 waits for the first in");
	is_int(p.gate[1], 2, "turns: op 1 for the second");
	is_u64(p.start.n, 2, "turns: an iteration begins with two blocks");
	is_u64(p.start.at[0].addr, BASE + 2 * MIB2, "turns: those of slot 1");
	is_u64(p.over, 0, "turns: there is always room");
	um_program_fini(&p);
	um_plan_fini(&plan);
}

/* Three slots share a block: it leaves only when the last one is told to, and with one copy. */
static void shared(void)
{
	struct um_plan plan;
	struct um_program p;

	um_plan_init(&plan);
	um_program_init(&p);
	make_slot(&plan, BASE, MIB2 / 4, -1, -1);
	make_slot(&plan, BASE + MIB2 / 4, MIB2 / 4, -1, -1);
	make_slot(&plan, BASE + MIB2 / 2, MIB2 / 2, 1, 3); /* born in the block, dies in it */
	make_op(&plan, "a", SLOTS(0), UM_READ);
	make_op(&plan, "b", SLOTS(1, 2), UM_UPDATE);
	make_op(&plan, "c", SLOTS(2), UM_READ);
	make_op(&plan, "d", SLOTS(0), UM_READ);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 0, 0, MIB2 / 4);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 1, 0, MIB2 / 4);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 2, 0, MIB2 / 2);
	make_hint(&plan, UM_HINT_EVICT, 2, 0, 0, MIB2 / 4);
	make_hint(&plan, UM_HINT_EVICT, 2, 1, 0, MIB2 / 4);
	make_hint(&plan, UM_HINT_PREFETCH, 3, 0, 0, MIB2 / 4);
	ok(um_program_build(&plan, 4, &p) == 0, "shared: builds");
	is_u64(p.n_out, 1, "shared: the block leaves once");
	is_u64(nth(&p, UM_ACTION_OUT, 0)->at, 3, "shared: when what was born in it has died");
	is_u64(p.n_in, 1, "shared: and returns once");
	is_u64(nth(&p, UM_ACTION_IN, 0)->at, 3, "shared: for the op that needs it");
	is_int(nth(&p, UM_ACTION_IN, 0)->room, 1, "shared: after it has left");
	um_program_fini(&p);
	um_plan_fini(&plan);
}

/* Memory of freed slots stays while room lasts; the one needed last is discarded when there is none. */
static void trims(void)
{
	struct um_plan plan;
	struct um_program p;

	um_plan_init(&plan);
	um_program_init(&p);
	make_slot(&plan, BASE, MIB2, 0, 1);
	make_slot(&plan, BASE + MIB2, MIB2, 1, 2);
	make_slot(&plan, BASE + 2 * MIB2, MIB2, 2, 3);
	make_op(&plan, "a", SLOTS(0), UM_WRITE);
	make_op(&plan, "b", SLOTS(1), UM_WRITE);
	make_op(&plan, "c", SLOTS(2), UM_WRITE);
	for (int i = 0; i < 3; i++)
		make_hint(&plan, UM_HINT_PREFETCH, i, i, 0, MIB2);
	ok(um_program_build(&plan, 3, &p) == 0, "trims: builds with room for all");
	is_u64(p.n_in + p.n_out, 0, "trims: what stays resident needs nothing");
	um_program_fini(&p);
	um_program_init(&p);
	ok(um_program_build(&plan, 2, &p) == 0, "trims: builds with room for two");
	ok(p.n_out > 0 && count(&p, UM_ACTION_DISCARD) == p.n_out, "trims: only discards, no copies");
	is_u64(nth(&p, UM_ACTION_DISCARD, 0)->slot, UM_NO_SLOT, "trims: of memory in which nothing lives");
	is_u64(p.n_in, p.n_out, "trims: as many come in as leave");
	is_u64(p.over, 0, "trims: there is always room");
	um_program_fini(&p);
	um_program_init(&p);
	ok(um_program_build(&plan, 0, &p) == 0 && p.over > 0, "trims: room for nothing is noticed");
	um_program_fini(&p);
	um_plan_fini(&plan);
}

/* A hint on part of a slot's share of a block does not send the block away. */
static void partial(void)
{
	struct um_plan plan;
	struct um_program p;

	um_plan_init(&plan);
	um_program_init(&p);
	make_slot(&plan, BASE, 3 * MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_UPDATE);
	make_op(&plan, "b", SLOTS(0), UM_UPDATE);
	make_hint(&plan, UM_HINT_EVICT, 1, 0, MIB2 / 2, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 0, MIB2 / 2, 2 * MIB2);
	ok(um_program_build(&plan, 3, &p) == 0, "partial: builds");
	is_u64(p.n_out, 1, "partial: one block is covered as a whole");
	is_u64(nth(&p, UM_ACTION_OUT, 0)->addr, BASE + MIB2, "partial: the middle one");
	is_u64(nth(&p, UM_ACTION_OUT, 0)->bytes, MIB2, "partial: alone");
	um_program_fini(&p);
	um_plan_fini(&plan);
}

int main(void)
{
	turns();
	shared();
	trims();
	partial();
	return tap_done();
}
