/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan begins on a device that is in use: how many evictions its first prefetches wait for.
 */
#include "gpu/null.h"
#include "sim/sim.h"
#include "replay/executor_state.h"

#include "plan_make.h"

#define BASE (16 * MIB2)
#define SLOTS(...) ((const int[]){__VA_ARGS__, -1})
#define OTHERS 40 /* blocks that the plan does not use */
#define PLANNED 4 /* blocks of the plan: one by op 0, the others by op 1 */

static const struct um_app_streams streams = {.n = 1, .live = 1};

/* The blocks [first, end) are, or may be, on the device. */
struct residency {
	uint64_t first, end;
	enum um_residency known;
	int recent_first; /* ops have used the blocks in descending order */
	int dead; /* no tensor lives in the blocks that the plan does not use */
	uint64_t live; /* blocks of tensors alive at once; 0: any number */
	uint64_t turns; /* resident blocks of tensors that take turns in the supplied slot; 0: not known */
};

static enum um_residency resides(void *user, uint64_t addr, uint64_t *last)
{
	const struct residency *r = user;
	uint64_t block = (addr - BASE) / MIB2;

	*last = 1 + (r->recent_first ? PLANNED + OTHERS - block : block);
	return addr >= BASE + r->first * MIB2 && addr < BASE + r->end * MIB2 ? r->known : UM_NOT_RESIDENT;
}

static int is_dead(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	const struct residency *r = user;

	(void)bytes;
	(void)waits;
	return r->dead && addr >= BASE + PLANNED * MIB2;
}

/* `cpu`: the CPU uses the second slot before the op that does. */
static void make_plan(struct um_plan *plan, int cpu)
{
	um_plan_init(plan);
	make_slot(plan, BASE, MIB2, -1, -1);
	make_slot(plan, BASE + MIB2, (PLANNED - 1) * MIB2, -1, -1);
	for (int i = 0; i < 2; i++) {
		plan->sched.slots.at[i].bound.v = (uint64_t)i + 1;
		plan->sched.slots.at[i].bound_addr = plan->sched.slots.at[i].place;
	}
	make_op(plan, "a", cpu ? SLOTS(1) : SLOTS(0), UM_UPDATE);
	if (cpu)
		plan->sched.ops.at[0].stream = UM_STREAM_CPU;
	make_op(plan, "b", SLOTS(1), UM_UPDATE);
}

struct result {
	uint32_t first, last; /* number of evictions that these prefetches wait for */
	uint32_t first_drops, last_drops; /* the same of discards */
	uint32_t outs; /* evictions */
	uint64_t blocks; /* prefetched */
	uint64_t listed; /* evicted blocks that hints have prefetched */
	uint64_t evicted; /* the first block that was evicted */
	uint64_t dropped; /* blocks that are discarded as the plan begins, */
	uint32_t drops; /* in as many requests */
	uint64_t dropped_later; /* and as its next iteration begins */
};

static uint64_t live_peak(void *user)
{
	const struct residency *r = user;

	return r->live ? r->live * MIB2 : UINT64_MAX;
}

static uint64_t supplied_away(void *user, uint64_t *resident)
{
	const struct residency *r = user;

	*resident = r->turns;
	return r->turns ? 0 : PLANNED;
}

/* What the plan is like. */
struct plan_kind {
	unsigned flags; /* of its second slot */
	int driver_evicts;
	int larger; /* the device has more memory than `capacity` */
	int cpu; /* its first op is an access of the CPU */
	uint64_t untouched; /* further blocks in use, which no op has used */
	uint64_t unused; /* number of its first blocks that are outside the memory in use */
};

/* Evicted blocks from number `first` on. */
static uint64_t count_evicted(const struct um_executor *ex, uint32_t outs, uint64_t first)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < outs; i++) {
		const struct um_request *r = &ex->lanes.evict[UM_LANE_OUT].ring[i];

		for (uint64_t a = r->addr; a < r->addr + r->bytes; a += MIB2)
			n += a >= BASE + first * MIB2;
	}
	return n;
}

static uint64_t count_dropped(const struct um_executor *ex)
{
	const struct um_lanes_evict *q = &ex->lanes.evict[UM_LANE_DROP];
	uint64_t n = 0;

	for (uint32_t i = 0; i < um_lanes_evict_queued(&ex->lanes, UM_LANE_DROP); i++)
		n += q->ring[i].bytes / MIB2;
	return n;
}

/* Begins the plan on a device of `capacity` blocks. Hints have prefetched the blocks from number `listed` on. */
static struct result begin_kind(struct residency on_device, uint64_t capacity, uint64_t listed, struct plan_kind kind)
{
	struct um_executor_host host = {.may_discard = is_dead,
					.residency = resides,
					.live_peak = live_peak,
					.supplied_away = supplied_away,
					.streams = &streams,
					.user = &on_device,
					.budget_blocks = capacity,
					.larger = kind.larger};
	struct um_executor_range used = {BASE, (PLANNED + OTHERS) * MIB2};
	struct um_compiled_plan program;
	struct um_cursor cursor;
	struct um_executor *ex;
	struct um_gpu *gpu;
	struct um_plan plan;
	struct result r = {0};
	uint32_t ins;

	used.addr += kind.unused * MIB2;
	used.bytes += (kind.untouched - kind.unused) * MIB2;
	make_plan(&plan, kind.cpu);
	plan.sched.slots.at[1].flags |= kind.flags;
	um_compiled_plan_init(&program);
	um_cursor_init(&cursor);
	if (um_null_open(&gpu, 1ull << 30, 0) || um_compiled_plan_build(&plan, capacity, &program) ||
	    um_cursor_follow(&cursor, &plan.sched) || um_executor_open(&ex, gpu, &host))
		tap_bail("set-up");
	program.driver_evicts = kind.driver_evicts;
	if (listed < PLANNED + OTHERS)
		um_executor_note_prefetch(ex, BASE + listed * MIB2, (PLANNED + OTHERS - listed) * MIB2);
	um_executor_adopt(ex, &program, capacity, &used, 1, &cursor);
	r.outs = um_lanes_evict_queued(&ex->lanes, UM_LANE_OUT);
	r.dropped = count_dropped(ex);
	r.drops = um_lanes_evict_queued(&ex->lanes, UM_LANE_DROP);
	r.listed = count_evicted(ex, r.outs, listed);
	if (r.outs)
		r.evicted = (ex->lanes.evict[UM_LANE_OUT].ring[0].addr - BASE) / MIB2;
	um_executor_op(ex, 0, 0, &cursor, NULL, 0);
	um_executor_op(ex, 1, 0, &cursor, NULL, 0);
	ins = um_lanes_in_queued(&ex->lanes);
	if (!ins)
		tap_bail("no prefetch");
	r.first = ex->lanes.in_ring[0].wait;
	r.last = ex->lanes.in_ring[ins - 1].wait;
	r.first_drops = ex->lanes.in_ring[0].drops;
	r.last_drops = ex->lanes.in_ring[ins - 1].drops;
	for (uint32_t i = 0; i < ins; i++)
		r.blocks += ex->lanes.in_ring[i].bytes / MIB2;
	um_executor_begin(ex, &used, 1);
	r.dropped_later = count_dropped(ex) - r.dropped;
	um_executor_close(ex);
	gpu->api->close(gpu);
	um_cursor_fini(&cursor);
	um_compiled_plan_fini(&program);
	um_plan_fini(&plan);
	return r;
}

static struct result begin_listed(struct residency on_device, uint64_t capacity, uint64_t listed)
{
	return begin_kind(on_device, capacity, listed, (struct plan_kind){0});
}

static struct result begin_dead(uint64_t capacity, struct plan_kind kind)
{
	return begin_kind((struct residency){PLANNED, PLANNED + OTHERS, UM_RESIDENT, 0, 1, 0, 0}, capacity,
			  PLANNED + OTHERS, kind);
}

/* The device is full of blocks that the plan does not use; `turns` of them are of tensors for its supplied slot. */
static struct result begin_supplied(uint64_t turns)
{
	return begin_kind((struct residency){PLANNED, PLANNED + OTHERS, UM_RESIDENT, 0, 0, 0, turns}, OTHERS, PLANNED,
			  (struct plan_kind){.flags = UM_SLOT_SUPPLIED});
}

static struct result begin(struct residency on_device, uint64_t capacity)
{
	return begin_listed(on_device, capacity, PLANNED + OTHERS);
}

int main(void)
{
	const struct residency others = {PLANNED, PLANNED + OTHERS, UM_RESIDENT, 0, 0, 0, 0},
			       recent = {PLANNED, PLANNED + OTHERS, UM_RESIDENT, 1, 0, 0, 0},
			       first = {0, OTHERS, UM_RESIDENT, 0, 0, 0, 0},
			       part = {0, PLANNED - 2, UM_RESIDENT, 0, 0, 0, 0},
			       any = {0, OTHERS + PLANNED, UM_RESIDENCY_UNKNOWN, 0, 0, 0, 0},
			       fitting = {0, OTHERS + PLANNED, UM_RESIDENCY_UNKNOWN, 0, 0, OTHERS, 0};
	struct result r = begin(others, OTHERS);

	is_u64(r.first, 1, "on a full device the first prefetch waits for one eviction");
	is_u64(r.last, PLANNED / UM_RUN_OUT, "the last prefetch waits for as many blocks as the plan brings");
	is_u64(r.outs, PLANNED / UM_RUN_OUT, "the plan evicts as many blocks as it brings");
	is_u64(r.blocks, PLANNED, "the plan prefetches its blocks");
	is_u64(r.evicted, PLANNED, "those leave that ops have used least recently");
	r = begin(recent, OTHERS);
	is_u64(r.evicted, OTHERS, "those leave at higher addresses, too, where ops have used these least recently");
	r = begin(others, OTHERS + 2);
	is_u64(r.first, 0, "with room for two blocks the first prefetch waits for none");
	is_u64(r.last, 1, "the last one waits for its own");
	r = begin(first, OTHERS);
	is_u64(r.last, 0, "what is on the device needs no room");
	is_u64(r.blocks, 0, "and is not prefetched again");
	is_u64(begin_kind(first, OTHERS, PLANNED + OTHERS, (struct plan_kind){.cpu = 1}).blocks, PLANNED - 1,
	       "what the CPU uses meanwhile is prefetched again");
	is_u64(begin_kind((struct residency){0, PLANNED, UM_RESIDENT, 0, 0, 0, 0}, PLANNED, 1,
			  (struct plan_kind){.flags = UM_SLOT_SUPPLIED})
		       .listed,
	       PLANNED - 1, "the tensor that a slot was supplied with before leaves room for the next one");
	r = begin(part, OTHERS);
	is_u64(r.blocks, PLANNED - 1, "a request of which a block is not on the device is made whole");
	r = begin(any, OTHERS);
	is_u64(r.last, 0, "where any block may be on the device no prefetch waits: no more are there than fit");
	is_u64(r.blocks, PLANNED, "and all blocks are prefetched");
	is_u64(begin_kind(any, OTHERS, PLANNED + OTHERS, (struct plan_kind){.larger = 1}).first, PLANNED / UM_RUN_OUT,
	       "on a device larger than the budget the first prefetch waits until the others fit");
	is_u64(begin_listed(fitting, PLANNED + OTHERS, 0).blocks, 0,
	       "what hints have prefetched is resident where all memory fits, and always has");
	is_u64(begin_listed(any, PLANNED + OTHERS, 0).blocks, PLANNED, "where it has not, it is prefetched again");
	is_u64(begin_kind(fitting, PLANNED + OTHERS + 1, 0, (struct plan_kind){.untouched = OTHERS}).blocks, 0,
	       "it is resident where all that hints have prefetched fits, and tensors have memory that no op has used");
	is_u64(begin_kind(fitting, PLANNED + OTHERS, 0, (struct plan_kind){.untouched = OTHERS}).blocks, PLANNED,
	       "it is prefetched again where that fills the device: the driver may have evicted for it");
	r = begin_listed(any, OTHERS, PLANNED + OTHERS / 2);
	is_u64(r.outs, PLANNED / UM_RUN_OUT, "as many blocks are evicted where hints have prefetched some of them");
	is_u64(r.listed, 0, "the blocks that they have prefetched stay");
	is_u64(begin_kind(others, OTHERS, PLANNED + OTHERS, (struct plan_kind){.unused = PLANNED}).outs,
	       PLANNED / UM_RUN_OUT, "blocks make room for a plan whose places no tensor has used yet");
	is_u64(begin_supplied(8).listed, 1, "no room is kept for a supplied tensor where all that take turns fit");
	is_u64(begin_supplied(OTHERS).listed, PLANNED + 1,
	       "room is kept for a supplied tensor where those that take turns do not fit");
	r = begin_dead(OTHERS, (struct plan_kind){0});
	is_u64(r.dropped, PLANNED, "as much dead memory is discarded as the plan needs");
	is_u64(r.outs, 0, "no dead memory is copied");
	is_u64(r.first_drops, 1, "the first prefetch waits for one discard");
	is_u64(r.last_drops, 1, "and so does the last one: it frees as many blocks as the plan brings");
	is_u64(r.dropped_later, PLANNED, "dead memory stays in the next iteration, too, where it has room");
	is_u64(begin_dead(OTHERS + PLANNED, (struct plan_kind){0}).dropped, 0,
	       "dead memory stays where all memory fits on the device");
	is_u64(begin_kind((struct residency){PLANNED, PLANNED + OTHERS, UM_RESIDENT, 0, 1, OTHERS, 0}, 2 * OTHERS,
			  PLANNED + OTHERS, (struct plan_kind){0})
		       .dropped,
	       PLANNED, "no more memory is taken than tensors needed at once");
	r = begin_dead(OTHERS, (struct plan_kind){.flags = UM_SLOT_SUPPLIED});
	is_u64(r.dropped, OTHERS, "all dead memory leaves room to supplied tensors");
	is_u64(r.drops, 1 + (OTHERS - 1) / UM_RUN_DEAD, "it is discarded in long runs");
	is_u64(begin_dead(OTHERS, (struct plan_kind){.driver_evicts = 1}).dropped, OTHERS,
	       "all dead memory is discarded where the driver evicts");
	return tap_done();
}
