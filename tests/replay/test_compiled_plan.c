/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans over slots become actions over whole blocks. Cases worked by hand; addresses in units of 2 MiB from 16.
 */
#include "replay/compiled_plan.h"

#include "plan_make.h"

#define BASE (16 * MIB2)
#define STEADY p.iterations[UM_COMPILED_PLAN_STEADY]

#define SLOTS(...) ((const int[]){__VA_ARGS__, -1})

static unsigned count(const struct um_compiled_plan *p, enum um_action_kind kind)
{
	unsigned n = 0;

	for (size_t i = 0; i < p->iterations[UM_COMPILED_PLAN_STEADY].actions.n; i++)
		n += p->iterations[UM_COMPILED_PLAN_STEADY].actions.at[i].kind == kind;
	return n;
}

static const struct um_action *nth(const struct um_compiled_plan *p, enum um_action_kind kind, unsigned n)
{
	for (size_t i = 0; i < p->iterations[UM_COMPILED_PLAN_STEADY].actions.n; i++)
		if (p->iterations[UM_COMPILED_PLAN_STEADY].actions.at[i].kind == kind && n-- == 0)
			return &p->iterations[UM_COMPILED_PLAN_STEADY].actions.at[i];
	tap_bail("no such action");
}

/* Two persistent slots of two blocks that take turns in two blocks of memory. */
static void turns(void)
{
	const uint64_t others[] = {BASE - MIB2, BASE, BASE + 3 * MIB2, BASE + 4 * MIB2};
	struct um_plan plan;
	struct um_compiled_plan p;
	uint64_t host;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, 2 * MIB2, -1, -1);
	make_slot(&plan, BASE + 2 * MIB2, 2 * MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_UPDATE);
	make_op(&plan, "b", SLOTS(1), UM_UPDATE);
	make_hint(&plan, UM_HINT_EVICT, 0, 1, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 0, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_EVICT, 1, 0, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 1, 0, 2 * MIB2);
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "turns: the plan compiles");
	is_u64(STEADY.n_in, 2, "turns: two ins, the blocks of a slot in one run");
	is_u64(STEADY.n_out, 2, "turns: two outs, the blocks of a slot in one run");
	is_u64(count(&p, UM_ACTION_DISCARD), 0, "turns: nothing is discarded");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 0)->addr, BASE, "turns: slot 0 comes first");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 0)->bytes, 2 * MIB2, "turns: a prefetch covers whole blocks");
	is_int(nth(&p, UM_ACTION_PREFETCH, 0)->room, 1, "turns: it waits for the first out of this iteration");
	is_int(nth(&p, UM_ACTION_PREFETCH, 1)->room, 2, "turns: the other for both");
	is_int(STEADY.gate[0], 1, "turns: op 0 waits for the first in");
	is_int(STEADY.gate[1], 2, "turns: op 1 for the second");
	is_u64(p.iterations[0].actions.n, 4, "turns: the first iteration is like all others");
	is_u64(p.stays.n, 2, "turns: but slot 1 may stay until it does");
	is_u64(p.stays.at[0].addr, BASE + 2 * MIB2, "turns: both blocks of it");
	ok(p.settled, "turns: the second is like all others");
	is_u64(p.over, 0, "turns: there is always room");
	um_compiled_plan_fini(&p);
	p.run_out = 1;
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "turns: the plan compiles with shorter runs");
	is_u64(STEADY.n_out, 4, "turns: then a block leaves at a time");
	plan.budget = 2 * MIB2;
	ok(um_compiled_plan_host(&plan, NULL, 0, &host) == 0 && host == 4 * MIB2,
	   "turns: all four blocks leave, and take host memory");
	ok(um_compiled_plan_host(&plan, others, 4, &host) == 0 && host == 6 * MIB2,
	   "turns: of four that have left before, the plan's own count once");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* Three slots share a block: it leaves only when the last one is told to, and with one copy. */
static void shared(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
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
	ok(um_compiled_plan_build(&plan, 4, &p) == 0, "shared: the plan compiles");
	is_u64(STEADY.n_out, 1, "shared: the block leaves once");
	is_u64(nth(&p, UM_ACTION_EVICT, 0)->at, 3, "shared: when what was born in it has died");
	is_u64(STEADY.n_in, 1, "shared: and returns once");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 0)->at, 3, "shared: for the op that needs it");
	is_int(nth(&p, UM_ACTION_PREFETCH, 0)->room, 1, "shared: after it has left");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* A slot is born in memory that was freed an op before, and is not used yet when room is needed. */
static void born_early(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, MIB2, 0, 1);
	make_slot(&plan, BASE, MIB2, 2, 4);
	make_slot(&plan, BASE + MIB2, MIB2, 2, 3);
	make_slot(&plan, BASE + 2 * MIB2, MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_WRITE);
	make_op(&plan, "b", SLOTS(3), UM_READ);
	make_op(&plan, "c", SLOTS(2, 3), UM_WRITE);
	make_op(&plan, "d", SLOTS(1), UM_WRITE);
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "born early: the plan compiles");
	is_u64(p.peak, 2, "born early: there is always room");
	is_u64(nth(&p, UM_ACTION_DISCARD, 0)->addr, BASE, "born early: the memory is discarded");
	is_u64(nth(&p, UM_ACTION_DISCARD, 0)->at, 1, "born early: before a slot is born in it");
	um_compiled_plan_fini(&p);
	plan.sched.slots.at[1].birth = 1;
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "born early: the plan compiles with a birth at the free");
	is_u64(p.peak, 3, "born early: then the memory is not discarded");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* Three slots take turns, each of which leaves before the next one comes. Returns the peak with room for `capacity`
 * blocks. */
static uint64_t peak_of(uint64_t capacity)
{
	struct um_plan plan;
	struct um_compiled_plan p;
	uint64_t peak;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	for (uint32_t i = 0; i < 3; i++) {
		make_slot(&plan, BASE + i * MIB2, MIB2, -1, -1);
		make_hint(&plan, UM_HINT_EVICT, i, (i + 2) % 3, 0, MIB2);
		make_hint(&plan, UM_HINT_PREFETCH, i, i, 0, MIB2);
	}
	make_op(&plan, "a", SLOTS(0), UM_UPDATE);
	make_op(&plan, "b", SLOTS(1), UM_UPDATE);
	make_op(&plan, "c", SLOTS(2), UM_UPDATE);
	ok(um_compiled_plan_build(&plan, capacity, &p) == 0, "peak: the plan compiles");
	peak = p.peak;
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
	return peak;
}

static void peak(void)
{
	is_u64(peak_of(2), 2, "peak: prefetches wait for evictions where there is no room");
	is_u64(peak_of(3), 3, "peak: a block that is evicted counts until a prefetch waits for that");
}

/* Memory of freed slots stays while room lasts; the one needed last is discarded when there is none. */
static void trims(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, MIB2, 0, 1);
	make_slot(&plan, BASE + MIB2, MIB2, 1, 2);
	make_slot(&plan, BASE + 2 * MIB2, MIB2, 2, 3);
	make_op(&plan, "a", SLOTS(0), UM_WRITE);
	make_op(&plan, "b", SLOTS(1), UM_WRITE);
	make_op(&plan, "c", SLOTS(2), UM_WRITE);
	for (int i = 0; i < 3; i++)
		make_hint(&plan, UM_HINT_PREFETCH, i, i, 0, MIB2);
	ok(um_compiled_plan_build(&plan, 3, &p) == 0, "trims: builds with room for all");
	is_u64(STEADY.n_in + STEADY.n_out + STEADY.n_drop, 0, "trims: what stays resident needs nothing");
	um_compiled_plan_fini(&p);
	um_compiled_plan_init(&p);
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "trims: builds with room for two");
	ok(STEADY.n_drop > 0 && count(&p, UM_ACTION_DISCARD) == STEADY.n_drop, "trims: there are discards");
	is_u64(STEADY.n_out, 0, "trims: and no copies");
	is_u64(nth(&p, UM_ACTION_DISCARD, 0)->slot, UM_NO_SLOT, "trims: of memory in which nothing lives");
	is_u64(STEADY.n_in, STEADY.n_drop, "trims: as many come in as leave");
	/* the first one for discards of the previous iteration, all of which come before it */
	for (unsigned i = 1; i < STEADY.n_in; i++)
		ok(nth(&p, UM_ACTION_PREFETCH, i)->drops > 0, "trims: in %u waits for room", i);
	is_u64(p.over, 0, "trims: there is always room");
	um_compiled_plan_fini(&p);
	um_compiled_plan_init(&p);
	ok(um_compiled_plan_build(&plan, 0, &p) == 0 && p.over > 0, "trims: room for nothing is noticed");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* A hint on part of a slot's share of a block does not send the block away. */
static void partial(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, 3 * MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_UPDATE);
	make_op(&plan, "b", SLOTS(0), UM_UPDATE);
	make_hint(&plan, UM_HINT_EVICT, 1, 0, MIB2 / 2, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 0, MIB2 / 2, 2 * MIB2);
	ok(um_compiled_plan_build(&plan, 3, &p) == 0, "partial: the plan compiles");
	is_u64(STEADY.n_out, 1, "partial: one block is covered as a whole");
	is_u64(nth(&p, UM_ACTION_EVICT, 0)->addr, BASE + MIB2, "partial: the middle one");
	is_u64(nth(&p, UM_ACTION_EVICT, 0)->bytes, MIB2, "partial: the block is evicted alone");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

static void act_is(const struct um_compiled_iteration *iteration, unsigned n, enum um_action_kind kind, uint32_t at,
		   uint64_t block, int32_t room, const char *what)
{
	const struct um_action *a = &iteration->actions.at[n];

	ok(n < iteration->actions.n && a->kind == kind && a->at == at && a->addr == BASE + block * MIB2 &&
		   a->room == room,
	   "%s", what);
	if (n < iteration->actions.n)
		tap_diag_("kind %d, before op %u, block %d, room %d", a->kind, a->at, (int)((a->addr - BASE) / MIB2),
			  a->room);
}

/* What stays for ever has no hint; the first iteration finds none of it on the device. */
static void cold(uint64_t capacity)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, MIB2, -1, -1);
	make_slot(&plan, BASE + 8 * MIB2, MIB2, -1, -1);
	make_slot(&plan, BASE + 4 * MIB2, MIB2, 0, 2);
	make_op(&plan, "make", SLOTS(2), UM_WRITE);
	make_op(&plan, "use", SLOTS(1, 2), UM_READ);
	make_op(&plan, "last", SLOTS(0), UM_READ);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 2, 0, MIB2);
	ok(um_compiled_plan_build(&plan, capacity, &p) == 0, "cold: builds for %d blocks", (int)capacity);
	act_is(&p.iterations[0], 0, UM_ACTION_PREFETCH, 0, 8, 0, "cold: first comes what is used first");
	if (capacity > 2) {
		act_is(&p.iterations[0], 1, UM_ACTION_PREFETCH, 0, 0, 0, "cold: then, at once, what is used last");
		act_is(&p.iterations[0], 2, UM_ACTION_PREFETCH, 0, 4, 0, "cold: then what hints ask for");
		is_int(p.iterations[0].gate[2], 2, "cold: the last op waits for what came for it");
		is_u64(p.iterations[0].n_out, 0, "cold: nothing leaves");
	} else {
		act_is(&p.iterations[0], 1, UM_ACTION_PREFETCH, 0, 4, 0, "cold: then what hints ask for");
		act_is(&p.iterations[0], 2, UM_ACTION_DISCARD, 2, 4, 2, "cold: no room before something has died");
		act_is(&p.iterations[0], 3, UM_ACTION_PREFETCH, 2, 0, 0, "cold: then what is used last comes");
		is_u64(p.iterations[0].actions.at[3].drops, 1,
		       "cold: the block that is used last replaces the dead one");
	}
	is_u64(p.over, 0, "cold: there is always room");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* A tensor of the iteration before lies elsewhere than the next one of its name will. */
static void elsewhere(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, MIB2, 1, 1);
	plan.sched.slots.at[0].carry = 0;
	plan.sched.slots.at[0].bound.v = 7;
	plan.sched.slots.at[0].bound_addr = BASE + 5 * MIB2;
	make_op(&plan, "read", SLOTS(0), UM_READ);
	make_op(&plan, "make", SLOTS(0), UM_WRITE);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 0, 0, MIB2);
	ok(um_compiled_plan_build(&plan, 4, &p) == 0, "elsewhere: the plan compiles");
	act_is(&p.iterations[0], 0, UM_ACTION_PREFETCH, 0, 5, 0, "elsewhere: it is read where it lies");
	is_u64(p.iterations[0].actions.at[0].slot, UM_NO_SLOT, "elsewhere: whatever the slot's place is then");
	act_is(&p.iterations[0], 1, UM_ACTION_PREFETCH, 1, 0, 0, "elsewhere: the next one is made where it is planned");
	is_u64(p.iterations[1].actions.n, 1, "elsewhere: in the second iteration");
	act_is(&p.iterations[1], 0, UM_ACTION_DISCARD, 0, 5, -1, "elsewhere: what it lay in is given up");
	is_u64(STEADY.actions.n, 0, "elsewhere: then there is nothing to do");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* The same of a tensor that its successor outlives: both take turns at two places from the next iteration on. */
static void passed_on(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, MIB2, 0, -1);
	make_slot(&plan, BASE + MIB2, MIB2, -1, 1);
	plan.sched.slots.at[0].carry = UM_NO_SLOT;
	plan.sched.slots.at[1].carry = 0;
	plan.sched.slots.at[1].bound.v = 7;
	plan.sched.slots.at[1].bound_addr = BASE + 5 * MIB2;
	make_op(&plan, "make", SLOTS(0), UM_WRITE);
	make_op(&plan, "read", SLOTS(0), UM_READ);
	plan.sched.uses.at[0].slot = 1;
	plan.sched.uses.at[0].access = UM_READ;
	ok(um_compiled_plan_build(&plan, 4, &p) == 0, "passed on: the plan compiles");
	act_is(&p.iterations[0], 0, UM_ACTION_PREFETCH, 0, 5, 0, "passed on: it is read where it lies");
	is_u64(p.iterations[0].actions.n, 2, "passed on: and its successor's block is all else that is prefetched");
	is_u64(p.iterations[1].actions.at[0].addr, BASE + 5 * MIB2, "passed on: what it lay in is given up");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* A tensor is freed after the last op; its successor, which is alive then, has its slot in the next iteration. */
static void freed_last(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, MIB2, 0, 3);
	make_slot(&plan, BASE + MIB2, MIB2, -1, 3);
	make_slot(&plan, BASE + 2 * MIB2, MIB2, 0, 1);
	make_slot(&plan, BASE + 3 * MIB2, MIB2, 1, 2);
	plan.sched.slots.at[1].carry = 0;
	make_op(&plan, "make", SLOTS(0, 2), UM_WRITE);
	make_op(&plan, "work", SLOTS(3), UM_WRITE);
	make_op(&plan, "read", SLOTS(1), UM_READ);
	ok(um_compiled_plan_build(&plan, 3, &p) == 0, "freed last: the plan compiles");
	is_u64(STEADY.n_in, 2, "freed last: what the last op will read stays, so only two births are prefetched");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* A dead block goes as soon as it is dead, though room is wanted only later, and rather than that a copy is waited for
 * which has just begun. */
static void early_plan(struct um_plan *plan)
{
	um_plan_init(plan);
	make_slot(plan, BASE, MIB2, 0, 1);
	make_slot(plan, BASE + MIB2, MIB2, -1, -1);
	make_slot(plan, BASE + 2 * MIB2, MIB2, 3, 4);
	make_op(plan, "a", SLOTS(0), UM_WRITE);
	make_op(plan, "b", SLOTS(1), UM_UPDATE);
	make_op(plan, "c", SLOTS(1), UM_UPDATE);
	make_op(plan, "d", SLOTS(2), UM_WRITE);
	make_hint(plan, UM_HINT_PREFETCH, 0, 0, 0, MIB2);
	make_hint(plan, UM_HINT_PREFETCH, 1, 1, 0, MIB2);
	make_hint(plan, UM_HINT_EVICT, 3, 1, 0, MIB2);
	make_hint(plan, UM_HINT_PREFETCH, 3, 2, 0, MIB2);
}

/* `rotates`: other tensors take turns at two places. */
static void early(int rotates)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	early_plan(&plan);
	um_compiled_plan_init(&p);
	plan.d2h = 1; /* a byte a second: the copy is not over in time */
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "early: the plan compiles");
	if (rotates)
		plan.sched.slots.at[1].carry = 0;
	is_int(um_compiled_plan_issue_early(&p, &plan), 0, "early: its ins are looked at%s",
	       rotates ? ", and other tensors take turns at two places" : "");
	is_u64(nth(&p, UM_ACTION_DISCARD, STEADY.n_drop - 1)->addr, BASE, "early: what died makes room");
	is_u64(nth(&p, UM_ACTION_DISCARD, STEADY.n_drop - 1)->at, 1, "early: from when on it is dead");
	is_u64(nth(&p, UM_ACTION_PREFETCH, STEADY.n_in - 1)->at, 1, "early: the last in is issued then, too");
	is_u64(nth(&p, UM_ACTION_PREFETCH, STEADY.n_in - 1)->slot, UM_NO_SLOT, "early: before its tensor is born");
	ok(nth(&p, UM_ACTION_PREFETCH, STEADY.n_in - 1)->room <= 0, "early: which waits for no copy of this iteration");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* As before, with an in that cannot be issued as soon as there is room, since... */
enum cause { OUTLIVES, ON_HOST, ROTATES };

static void not_early(enum cause cause)
{
	static const char *const labels[] = {
		"not early: an in comes after the birth of what outlives the iteration",
		"not early: an in comes after what the CPU uses",
		"not early: an in comes after the birth of a tensor whose next one has another place"};
	struct um_plan plan;
	struct um_compiled_plan p;

	early_plan(&plan);
	um_compiled_plan_init(&p);
	plan.d2h = 1;
	if (cause == ON_HOST)
		plan.sched.ops.at[2].stream = UM_STREAM_CPU;
	else if (cause == OUTLIVES)
		plan.sched.slots.at[2].death = 0; /* the one of the iteration before may have its place until then */
	ok(um_compiled_plan_build(&plan, 3, &p) == 0, "not early: the plan compiles");
	if (cause == ROTATES)
		plan.sched.slots.at[1].carry = 2; /* it is born at the place of slot 1 in every second iteration */
	is_int(um_compiled_plan_issue_early(&p, &plan), 0, "not early: its ins are looked at");
	for (size_t i = 0; i < STEADY.actions.n; i++)
		if (STEADY.actions.at[i].kind == UM_ACTION_PREFETCH && STEADY.actions.at[i].addr == BASE + 2 * MIB2)
			is_u64(STEADY.actions.at[i].at, 3, "%s", labels[cause]);
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* Two slots leave after op a. The CPU uses one of them next, at once or after another op. */
static void for_cpu(int at_once)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	make_slot(&plan, BASE, MIB2, -1, -1);
	make_slot(&plan, BASE + MIB2, MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0, 1), UM_UPDATE);
	if (!at_once)
		make_op(&plan, "b", SLOTS(-1), UM_READ);
	make_op(&plan, "look", SLOTS(1), UM_READ);
	plan.sched.ops.at[plan.sched.ops.n - 1].stream = UM_STREAM_CPU;
	for (int i = 0; i < 4; i++)
		make_hint(&plan, i < 2 ? UM_HINT_PREFETCH : UM_HINT_EVICT, i / 2, i % 2, 0, MIB2);
	um_compiled_plan_init(&p);
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "for the CPU: the plan compiles");
	is_u64(nth(&p, UM_ACTION_EVICT, 0)->addr, BASE, "for the CPU: what it does not use is evicted");
	is_u64(STEADY.n_drop, at_once ? 1 : 0, "for the CPU: what it uses %s",
	       at_once ? "at once does not queue after that" : "later queues after that");
	if (at_once)
		is_u64(nth(&p, UM_ACTION_DROP_WITH_COPY, 0)->addr, BASE + MIB2, "for the CPU: it leaves with a copy");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* The plan of early_plan() with a proof, in which the copy takes 1 ms. `start`: of its four ops and its end, in ns. */
static void late_plan(struct um_plan *plan, const uint64_t *start)
{
	early_plan(plan);
	plan->d2h = 1000 * MIB2;
	plan->start = malloc(5 * sizeof *start);
	if (!plan->start)
		tap_bail("no memory");
	memcpy(plan->start, start, 5 * sizeof *start);
}

/* By the plan's proof op d waits for the copy: nothing dead need go for it. */
static void late(void)
{
	static const uint64_t start[] = {0, 10, 20, 2000000, 2000010};
	struct um_plan plan;
	struct um_compiled_plan p;

	late_plan(&plan, start);
	um_compiled_plan_init(&p);
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "late: the plan compiles");
	is_u64(STEADY.n_in, 2, "late: what is born last finds its memory there");
	is_u64(STEADY.n_drop, 1, "late: each iteration has one discard");
	is_u64(nth(&p, UM_ACTION_DISCARD, 0)->addr, BASE, "late: of what is wanted last");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 0)->addr, BASE, "late: it comes again");
	is_int(nth(&p, UM_ACTION_PREFETCH, 0)->room, 0, "late: when the copy of the iteration before is over");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* A plan's first evictions come after those of what was on the device before, and are late. By the middle of the
 * iteration the link has caught up. */
static void late_at_first(void)
{
	static const uint64_t begins[] = {0, 10, 20, 2000000, 100000000};
	static const uint64_t middle[] = {0, 10, 50000000, 52000000, 100000000};
	struct um_plan plan;
	struct um_compiled_plan p;

	for (int i = 0; i < 2; i++) {
		late_plan(&plan, i ? middle : begins);
		um_compiled_plan_init(&p);
		ok(um_compiled_plan_build(&plan, 2, &p) == 0, "late at first: the plan compiles");
		is_u64(p.iterations[0].n_drop, i ? 0 : 1, "late at first: %s",
		       i ? "an eviction in the middle of the iteration ends in time"
			 : "an eviction that begins the iteration does not, and dead memory makes room");
		um_compiled_plan_fini(&p);
		um_plan_fini(&plan);
	}
}

/* The CPU uses block 0, and the next op brings it back. Three blocks fit: the prefetch after that waits only for the
 * first eviction of the iteration, which is of its own block. */
static void back_from_cpu(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	for (uint32_t i = 0; i < 3; i++)
		make_slot(&plan, BASE + 2 * i * MIB2, MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0, 1), UM_UPDATE);
	make_op(&plan, "look", SLOTS(0), UM_READ);
	plan.sched.ops.at[1].stream = UM_STREAM_CPU;
	make_op(&plan, "b", SLOTS(0), UM_UPDATE);
	make_op(&plan, "c", SLOTS(2), UM_UPDATE);
	make_hint(&plan, UM_HINT_EVICT, 0, 2, 0, MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 1, 0, MIB2);
	make_hint(&plan, UM_HINT_EVICT, 2, 1, 0, MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 3, 2, 0, MIB2);
	um_compiled_plan_init(&p);
	ok(um_compiled_plan_build(&plan, 3, &p) == 0, "back from the CPU: the plan compiles");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 1)->addr, BASE, "back from the CPU: what the CPU used comes again");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 2)->addr, BASE + 4 * MIB2, "back from the CPU: then the next one comes");
	is_int(nth(&p, UM_ACTION_PREFETCH, 2)->room, 1, "back from the CPU: for which there was room before");
	is_u64(p.peak, 3, "back from the CPU: no more blocks are resident than there is room for");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* What the plan has no use for leaves with a copy, since the program has not said that it has none. But it does not
 * come back: it is discarded where it is overwritten, or freed. */
static void waste(int declared)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, MIB2, -1, -1);
	make_slot(&plan, BASE + MIB2, MIB2, 0, 3);
	make_op(&plan, "a", SLOTS(0), UM_WRITE);
	make_op(&plan, "b", SLOTS(1), UM_WRITE);
	make_op(&plan, "c", SLOTS(0), UM_READ);
	make_op(&plan, "d", SLOTS(0), UM_READ);
	plan.sched.uses.at[3].dead_after = declared;
	make_hint(&plan, UM_HINT_DISCARD, 0, 0, 0, MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 0, 0, MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 1, 0, MIB2);
	make_hint(&plan, UM_HINT_DISCARD, 2, 1, 0, MIB2);
	ok(um_compiled_plan_build(&plan, 2, &p) == 0, "waste: the plan compiles");
	is_u64(STEADY.n_out, declared ? 1 : 2, "waste: %s leaves with a copy",
	       declared ? "a tensor" : "each of two tensors");
	is_u64(STEADY.n_in, 2, "waste: each iteration has two returns");
	is_u64(nth(&p, UM_ACTION_DISCARD, 0)->at, 0, "waste: one is overwritten, which is waited for");
	is_u64(nth(&p, UM_ACTION_DISCARD, 0)->slot, 0, "waste: the discard is of slot 0");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 0)->drops, 1, "waste: before it comes");
	is_u64(STEADY.n_drop, 2, "waste: the other one has been freed");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* A plan over slot 0, which has another tensor in each iteration, and slot 1. */
static void supplied_plan(struct um_plan *plan)
{
	um_plan_init(plan);
	make_slot(plan, BASE, MIB2, -1, -1);
	make_slot(plan, BASE + MIB2, MIB2, -1, -1);
	plan->sched.slots.at[0].flags = UM_SLOT_FIXED | UM_SLOT_SUPPLIED;
	make_op(plan, "a", SLOTS(1), UM_UPDATE);
	make_op(plan, "b", SLOTS(0, 1), UM_READ);
	make_op(plan, "c", SLOTS(1), UM_UPDATE);
	make_hint(plan, UM_HINT_PREFETCH, 1, 0, 0, MIB2);
	make_hint(plan, UM_HINT_EVICT, 2, 0, 0, MIB2);
}

/* What a slot will have is known from its first use on. */
static void supplied(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	supplied_plan(&plan);
	um_compiled_plan_init(&p);
	ok(um_compiled_plan_build(&plan, 3, &p) == 0, "supplied: the plan compiles");
	is_u64(STEADY.n_in, 1, "supplied: one block comes");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 0)->at, 1, "supplied: not before the op that uses it");
	is_u64(nth(&p, UM_ACTION_EVICT, 0)->at, 2, "supplied: it leaves after its last use");
	act_is(&p.iterations[0], 0, UM_ACTION_PREFETCH, 0, 1, 0,
	       "supplied: the first iteration prefetches slot 1 ahead");
	act_is(&p.iterations[0], 1, UM_ACTION_PREFETCH, 1, 0, 0, "supplied: but not slot 0");
	is_u64(p.stays.n, 0, "supplied: what was there before need not stay");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* Three slots, each with the latest tensor, the one before, and the one before that. */
static void window(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	for (uint32_t i = 0; i < 3; i++) {
		make_slot(&plan, BASE + i * MIB2, MIB2, -1, -1);
		plan.sched.slots.at[i].carry = i ? i - 1 : UM_NO_SLOT;
	}
	plan.sched.slots.at[0].flags = UM_SLOT_SUPPLIED;
	make_op(&plan, "a", SLOTS(0), UM_WRITE);
	make_op(&plan, "b", SLOTS(0, 1, 2), UM_READ);
	make_op(&plan, "c", SLOTS(0), UM_READ);
	ok(um_compiled_plan_build(&plan, 4, &p) == 0, "window: the plan compiles");
	is_u64(STEADY.n_in, 1, "window: the latest tensor comes");
	is_u64(nth(&p, UM_ACTION_PREFETCH, 0)->slot, 0, "window: where the first slot has it");
	is_u64(nth(&p, UM_ACTION_DISCARD, 0)->slot, 0, "window: what it had is overwritten");
	is_u64(STEADY.n_out, 1, "window: the oldest one leaves");
	is_u64(nth(&p, UM_ACTION_EVICT, 0)->slot, 2, "window: from the last slot");
	is_u64(nth(&p, UM_ACTION_EVICT, 0)->at, 2, "window: after its last use");
	is_int(p.ambiguous, 1, "window: it is not one block for one");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

int main(void)
{
	supplied();
	window();
	early(0);
	early(1);
	not_early(OUTLIVES);
	not_early(ON_HOST);
	not_early(ROTATES);
	late();
	late_at_first();
	back_from_cpu();
	for_cpu(1);
	for_cpu(0);
	waste(0);
	waste(1);
	cold(3);
	cold(2);
	elsewhere();
	passed_on();
	freed_last();
	turns();
	shared();
	born_early();
	peak();
	trims();
	partial();
	return tap_done();
}
