/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan that does not fit on the device begins: which of the blocks that it prefetches later stay until then.
 */
#include "replay/executor_kept.h"

#include "plan_make.h"

#define BASE (16 * MIB2)
#define BIRTHS 4
#define BLOCKS 4 /* of each */
#define CAPACITY 12

/* The blocks [first, end) are, or may be, on the device. */
struct residency {
	uint64_t first, end;
	enum um_residency known;
	uint64_t dead; /* number of the plan's first blocks that have no content */
};

static enum um_residency resides(void *user, uint64_t addr, uint64_t *last)
{
	const struct residency *r = user;

	*last = 1;
	return addr >= BASE + r->first * MIB2 && addr < BASE + r->end * MIB2 ? r->known : UM_NOT_RESIDENT;
}

/* Each op writes a tensor that is freed after it. Its memory is discarded only when others need the room. */
static void make_births(struct um_plan *plan)
{
	const char *const name[BIRTHS] = {"a", "b", "c", "d"};

	um_plan_init(plan);
	for (int i = 0; i < BIRTHS; i++)
		make_slot(plan, BASE + (uint64_t)i * BLOCKS * MIB2, BLOCKS * MIB2, i, i + 1);
	for (int i = 0; i < BIRTHS; i++)
		make_op(plan, name[i], (const int[]){i, -1}, UM_WRITE);
}

static int is_dead(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	const struct residency *r = user;

	(void)bytes;
	(void)waits;
	return addr < BASE + r->dead * MIB2;
}

struct result {
	uint64_t n, highest; /* blocks that stay, and number of the one at the highest address */
	uint64_t occupied; /* by the plan at most, as compiled */
};

/* `n_kept` blocks stay in any case, the first ones; `dead` ones of dead memory may stay. */
static struct result find_dead(struct residency on_device, uint64_t capacity, uint64_t n_kept, uint64_t dead)
{
	struct um_executor ex = {.host = {.residency = resides, .may_discard = is_dead, .user = &on_device}};
	struct um_kept kept = {0};
	struct um_compiled_plan program;
	struct um_cursor cursor;
	struct um_plan plan;
	struct result r = {0};

	make_births(&plan);
	um_compiled_plan_init(&program);
	um_cursor_init(&cursor);
	if (um_compiled_plan_build(&plan, CAPACITY, &program) || um_cursor_follow(&cursor, &plan.sched))
		tap_bail("set-up");
	for (uint64_t i = 0; i < n_kept; i++)
		if (um_vec_push(&kept, BASE + i * MIB2))
			tap_bail("no memory");
	if (um_kept_add_in_turn(&ex, &program, capacity, dead, &cursor, &kept))
		tap_bail("no memory");
	r.n = kept.n;
	r.highest = kept.n ? (kept.at[kept.n - 1] - BASE) / MIB2 : 0;
	for (size_t i = 0; i < program.occupied.n; i++)
		r.occupied = program.occupied.at[i] > r.occupied ? program.occupied.at[i] : r.occupied;
	um_vec_fini(&kept);
	um_cursor_fini(&cursor);
	um_compiled_plan_fini(&program);
	um_plan_fini(&plan);
	return r;
}

static struct result find(struct residency on_device, uint64_t capacity, uint64_t n_kept)
{
	return find_dead(on_device, capacity, n_kept, 0);
}

/* A gradient that is born at op 2 and freed at op 1 of the next iteration; its older tensor is elsewhere. */
static void locate(void)
{
	const struct um_action before = {.kind = UM_ACTION_PREFETCH, .at = 0, .slot = 0, .addr = BASE, .bytes = MIB2};
	struct um_action born = before;
	struct um_cursor cursor;
	struct um_plan plan;

	um_plan_init(&plan);
	make_slot(&plan, BASE, MIB2, 2, 1);
	plan.sched.slots.at[0].bound.v = 1;
	plan.sched.slots.at[0].bound_addr = BASE + 8 * MIB2;
	for (int i = 0; i < 3; i++)
		make_op(&plan, "a", (const int[]){-1}, UM_WRITE);
	um_cursor_init(&cursor);
	if (um_cursor_follow(&cursor, &plan.sched))
		tap_bail("no memory");
	born.at = 2;
	is_u64(um_executor_locate_born(&before, &cursor).addr, BASE + 8 * MIB2,
	       "before the birth an action is of the older tensor, where that is");
	is_u64(um_executor_locate_born(&born, &cursor).addr, BASE,
	       "from the birth on an action is of the planned place");
	um_cursor_fini(&cursor);
	um_plan_fini(&plan);
}

int main(void)
{
	const struct residency all = {0, BIRTHS * BLOCKS, UM_RESIDENT, 0},
			       late = {2 * BLOCKS, 4 * BLOCKS, UM_RESIDENT, 0},
			       any = {0, BIRTHS * BLOCKS, UM_RESIDENCY_UNKNOWN, 0},
			       dead = {0, BIRTHS * BLOCKS, UM_RESIDENT, BIRTHS * BLOCKS},
			       part = {0, BIRTHS * BLOCKS, UM_RESIDENT, BLOCKS};
	struct result r = find(all, CAPACITY, 0);

	is_u64(r.occupied, CAPACITY, "the plan occupies as many blocks as there are");
	is_u64(r.n, CAPACITY, "as many blocks stay as fit on the device");
	is_u64(r.highest, CAPACITY - 1, "those stay that are prefetched first");
	r = find(late, CAPACITY, 0);
	is_u64(r.n, CAPACITY - 2 * BLOCKS, "blocks stay as long as what is prefetched before them leaves room");
	is_u64(r.highest, CAPACITY - 1, "the ones that are prefetched last do not stay");
	is_u64(find(all, CAPACITY, 3).n, CAPACITY, "blocks that stay in any case are counted once");
	is_u64(find(all, CAPACITY - 2, 0).n, CAPACITY - 2, "on a smaller device fewer blocks stay");
	is_u64(find(all, BIRTHS * BLOCKS, 0).n, BIRTHS * BLOCKS, "all blocks stay that fit on the device");
	r = find_dead(dead, CAPACITY, 0, 5);
	is_u64(r.n, 5, "as much dead memory stays as may");
	is_u64(r.highest, 4, "the dead memory stays that is prefetched first");
	is_u64(find_dead(dead, CAPACITY, 3, 2).n, 5, "dead memory that stays in any case does not count");
	is_u64(find_dead(part, CAPACITY, 0, 1).n, 1 + CAPACITY - BLOCKS, "blocks with content stay beside dead memory");
	is_u64(find(any, CAPACITY, 0).n, 0, "no block stays of which it is not known whether it is resident");
	locate();
	return tap_done();
}
