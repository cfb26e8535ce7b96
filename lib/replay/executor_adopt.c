/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_adopt.c - begins a compiled plan and its iterations: evicts what the plan does not use, advises
 */
#include "replay/executor_kept.h"

#include <errno.h>
#include <stdlib.h>

#define CLEARED_ITERATIONS 2 /* misplaced tensors may be carried over from the first iteration, and die in the second */

/* A resident block that stays as a plan begins. */
struct um_stayed {
	uint64_t addr;
	uint64_t last; /* number of the latest op that used it; 0: not known */
	int evicted; /* by an action of the plan's first iteration */
};

/* A block that may be resident, and that the plan need not have at once. */
struct um_leaving {
	uint64_t addr;
	uint64_t last; /* as above */
	int probable; /* it is probably resident */
};

struct um_cleared {
	uint64_t addr, end;
	uint64_t blocks; /* that it and those before it evict */
};

/* Evictions by one lane; addresses ascend. */
typedef UM_VEC(struct um_cleared) cleared_by;

/* Evictions of what a plan does not use. */
struct um_clearing {
	const uint64_t *keep; /* blocks that stay, ascending */
	size_t n_keep;
	const uint64_t *used; /* blocks that the plan uses, ascending */
	size_t n_used;
	struct um_kept others; /* further blocks that stay, ascending */
	int all; /* all blocks with content stay */
	uint64_t dead_room; /* number of further dead blocks that may stay */
	unsigned marked; /* streams with a mark after all ops so far */
	uint64_t resident; /* blocks that may be on the device */
	uint64_t unsure; /* those of them that the plan does not use, and stay */
	cleared_by lane[UM_EVICT_LANES];
	UM_VEC(struct um_stayed) stayed; /* addresses ascend */
	int failed; /* out of memory */
};

/* Blocks that the first k evictions of a lane make room for. */
static uint64_t blocks_of(const cleared_by *by, uint32_t k)
{
	return k ? by->at[k - 1].blocks : 0;
}

/* 0 or -EAGAIN. */
static int put_run(struct um_executor *ex, struct um_clearing *c, enum um_action_kind kind, struct um_executor_range r,
		   unsigned streams)
{
	uint32_t ins = um_lanes_in_queued(&ex->lanes); /* where there is room */

	if (kind != UM_ACTION_EVICT)
		return um_executor_drop(ex, kind, r, ins, streams, &c->marked, UM_LATER_OPS_WAIT);
	return um_lanes_evict(&ex->lanes, UM_LANE_OUT, kind, r.addr, r.bytes, ins, streams);
}

static void evict_run(struct um_executor *ex, struct um_clearing *c, enum um_action_kind kind, uint64_t addr,
		      uint64_t bytes)
{
	cleared_by *by = &c->lane[kind == UM_ACTION_EVICT ? UM_LANE_OUT : UM_LANE_DROP];
	uint64_t blocks = bytes / UM_BLOCK_BYTES;
	struct um_executor_range r;
	unsigned streams;

	if (!bytes)
		return;
	r = um_executor_clip(ex, (struct um_executor_range){addr, bytes});
	streams = um_executor_users(ex, r);
	if (um_executor_mark_missing(ex, kind == UM_ACTION_EVICT ? um_executor_used_since(ex, streams) : streams,
				     &c->marked) ||
	    (ex->lanes.results.listener.report && um_lanes_expect(&ex->lanes, kind, UM_HINT_RESULTS_NO_OP)))
		return;
	ex->unpoked = 1;
	if (put_run(ex, c, kind, r, streams))
		return;
	blocks += blocks_of(by, (uint32_t)by->n);
	c->failed |= um_vec_push(by, ((struct um_cleared){addr, addr + bytes, blocks})) != 0;
}

/* Without better knowledge: have hints made it resident? */
static int is_probable(struct um_executor *ex, uint64_t addr, enum um_residency resides)
{
	return resides == UM_RESIDENT ||
	       (resides == UM_RESIDENCY_UNKNOWN && um_block_limit_has(&ex->lanes.limit, addr));
}

/* What is probably resident comes first, since it takes room in any case; then what was used latest. */
static int compare_leaving(const void *a, const void *b)
{
	const struct um_leaving *x = a, *y = b;

	if (x->probable != y->probable)
		return x->probable ? -1 : 1;
	if (x->last != y->last)
		return x->last > y->last ? -1 : 1;
	return um_kept_compare(&x->addr, &y->addr);
}

/* Number of dead blocks that may stay. The others are discarded: one makes room at once for each block that has to be
 * copied to the host. */
static uint64_t count_spare(struct um_executor *ex, const struct um_executor_range *used, size_t n_used,
			    const struct um_kept *kept)
{
	uint64_t live = 0, dead = 0, last;

	for (size_t i = 0; i < n_used; i++)
		for (uint64_t a = used[i].addr; a < used[i].addr + used[i].bytes; a += UM_BLOCK_BYTES) {
			if (!um_executor_residency(ex, a, &last) || um_kept_has(kept->at, kept->n, a))
				continue;
			if (um_executor_may_discard(ex, a, UM_BLOCK_BYTES, UM_LATER_OPS_WAIT))
				dead++;
			else
				live++;
		}
	return dead > live ? dead - live : 0;
}

/* Which blocks that the plan need not have at once stay in `room`. 0 or -ENOMEM. */
static int find_others(struct um_executor *ex, const struct um_executor_range *used, size_t n_used, uint64_t room,
		       struct um_clearing *c)
{
	UM_VEC(struct um_leaving) all = {0};
	struct um_leaving b;
	int err = 0;

	for (size_t i = 0; i < n_used; i++)
		for (b.addr = used[i].addr; b.addr < used[i].addr + used[i].bytes && !err; b.addr += UM_BLOCK_BYTES) {
			enum um_residency resides = um_executor_residency(ex, b.addr, &b.last);

			if (!resides || um_kept_has(c->keep, c->n_keep, b.addr) ||
			    um_executor_may_discard(ex, b.addr, UM_BLOCK_BYTES, UM_LATER_OPS_WAIT))
				continue;
			b.probable = is_probable(ex, b.addr, resides);
			err = um_vec_push(&all, b);
		}
	if (all.n > room) {
		qsort(all.at, all.n, sizeof *all.at, compare_leaving);
		all.n = room;
	}
	for (size_t i = 0; i < all.n && !err; i++)
		err = um_vec_push(&c->others, all.at[i].addr);
	um_kept_sort(&c->others);
	um_vec_fini(&all);
	return err;
}

/* Evicts the resident blocks in use that are not to stay, in runs of one kind. */
static void evict_unplanned(struct um_executor *ex, const struct um_executor_range *used, struct um_clearing *c)
{
	uint64_t run = 0, bytes = 0;
	enum um_action_kind run_kind = UM_ACTION_EVICT;

	for (uint64_t a = used->addr; a < used->addr + used->bytes; a += UM_BLOCK_BYTES) {
		int dead = um_executor_may_discard(ex, a, UM_BLOCK_BYTES, UM_LATER_OPS_WAIT);
		int clean = !dead && um_advice_state_has(&ex->read_mostly, a, UM_BLOCK_BYTES);
		uint64_t last;
		enum um_residency resides = um_executor_residency(ex, a, &last);
		int stays = !resides || um_kept_has(c->keep, c->n_keep, a);
		enum um_action_kind kind = dead ? UM_ACTION_DISCARD : clean ? UM_ACTION_DROP_CLEAN : UM_ACTION_EVICT;

		c->resident += resides != UM_NOT_RESIDENT;
		if (!stays && !dead) {
			stays = c->all || um_kept_has(c->others.at, c->others.n, a);
		} else if (!stays && c->dead_room) {
			stays = 1;
			c->dead_room--;
		}
		c->unsure += stays && resides == UM_RESIDENCY_UNKNOWN && !um_kept_has(c->used, c->n_used, a);
		if (stays && resides == UM_RESIDENT) {
			c->failed |= um_vec_push(&c->stayed, ((struct um_stayed){a, last, 0})) != 0;
			if (ex->fits) /* the next plan knows it */
				um_executor_note_prefetch(ex, a, UM_BLOCK_BYTES);
		}
		if (stays || kind != run_kind ||
		    bytes == (run_kind == UM_ACTION_DISCARD ? UM_RUN_DEAD : UM_RUN_OUT) * UM_BLOCK_BYTES) {
			evict_run(ex, c, run_kind, run, bytes);
			bytes = 0;
		}
		if (stays)
			continue;
		if (!bytes)
			run = a;
		run_kind = kind;
		bytes += UM_BLOCK_BYTES;
	}
	evict_run(ex, c, run_kind, run, bytes);
}

/* The number of this lane's evictions after which a block is not on the device; 0: none of them evicts it. */
static uint32_t find_cleared(const cleared_by *by, uint64_t addr)
{
	uint32_t lo = 0;

	UM_BISECT(lo, by->n, i, by->at[i].end <= addr)
	return lo < by->n && by->at[lo].addr <= addr ? lo + 1 : 0;
}

static struct um_stayed *find_stayed(const struct um_clearing *c, uint64_t addr)
{
	return c->stayed.n ? bsearch(&addr, c->stayed.at, c->stayed.n, sizeof *c->stayed.at, um_kept_compare) : NULL;
}

/* Are all blocks of the range still resident? */
static int have_stayed(const struct um_clearing *c, struct um_executor_range r)
{
	for (uint64_t off = 0; off < r.bytes; off += UM_BLOCK_BYTES) {
		const struct um_stayed *b = find_stayed(c, r.addr + off);

		if (!b || b->evicted)
			return 0;
	}
	return r.bytes != 0;
}

static void note_evicted(const struct um_clearing *c, struct um_executor_range r)
{
	for (uint64_t off = 0; off < r.bytes; off += UM_BLOCK_BYTES) {
		struct um_stayed *b = find_stayed(c, r.addr + off);

		if (b)
			b->evicted = 1;
	}
}

/* Notes the blocks that the CPU accesses before op number `op`, from op number `*next` on: they leave the device. */
static void note_cpu(const struct um_clearing *c, const struct um_cursor *cursor, uint32_t op, uint32_t *next)
{
	const struct um_schedule *s = cursor->sched;

	for (; *next < op && *next < s->ops.n; ++*next) {
		const struct um_sched_op *o = &s->ops.at[*next];
		const struct um_sched_use *u = s->uses.at + o->first_use, *end = u + o->n_uses;

		for (; o->stream == UM_STREAM_CPU && u < end; u++) {
			uint64_t addr = cursor->slots[u->slot].addr + u->off, lo = um_block_of(addr);

			if (cursor->slots[u->slot].addr != UINT64_MAX)
				note_evicted(c, (struct um_executor_range){lo, addr + u->bytes - lo});
		}
	}
}

/* Which ins of the first iteration prefetch what is resident; and what those wait for that wait for no eviction of the
 * plan's own: the fewest evictions before the plan that leave room for the blocks which are not on the device, so that
 * both directions of the link are used at once. Drops come first: they copy nothing. `base`: by lane, the number of
 * evictions before those. */
static void find_early(struct um_executor *ex, const struct um_clearing *c, uint64_t capacity, const uint32_t *base,
		       const struct um_cursor *cursor)
{
	const struct um_action *a = ex->iteration->actions.at, *end = a + ex->iteration->actions.n;
	const cleared_by *out = &c->lane[UM_LANE_OUT], *drop = &c->lane[UM_LANE_DROP];
	/* of those that may be there, no more are than fit, if the driver keeps the budget; a drop need not free any */
	int unsure = ex->lanes.limit.watches && c->resident > capacity;
	uint64_t blocks = unsure ? capacity : c->resident, last;
	uint32_t outs = 0, drops = unsure ? (uint32_t)drop->n : 0, own, op = 0;
	int stayed;

	for (; a < end && !c->failed; a++) {
		struct um_executor_range r = um_executor_locate_born(a, cursor);

		note_cpu(c, cursor, a->at, &op);
		for (uint64_t off = 0; a->kind == UM_ACTION_PREFETCH && off < r.bytes; off += UM_BLOCK_BYTES) {
			blocks += !(um_kept_has(c->keep, c->n_keep, r.addr + off) &&
				    um_executor_residency(ex, r.addr + off, &last));
			own = find_cleared(out, r.addr + off);
			outs = own > outs ? own : outs;
			own = find_cleared(drop, r.addr + off);
			drops = own > drops ? own : drops;
		}
		while (drops < drop->n && blocks > capacity + blocks_of(drop, drops) + blocks_of(out, outs))
			drops++;
		while (outs < out->n && blocks > capacity + blocks_of(drop, drops) + blocks_of(out, outs))
			outs++;
		if (a->kind != UM_ACTION_PREFETCH && a->kind != UM_ACTION_REFRESH)
			note_evicted(c, r);
		stayed = a->kind == UM_ACTION_PREFETCH && have_stayed(c, r);
		if (um_vec_push(&ex->early, ((struct um_early_in){stayed ? r.addr : 0, base[UM_LANE_OUT] + outs,
								  base[UM_LANE_DROP] + drops})))
			break;
	}
}

/* Least recent use first. */
static int compare_use(const void *a, const void *b)
{
	const struct um_stayed *x = a, *y = b;

	return x->last != y->last ? (x->last > y->last ? 1 : -1) : um_kept_compare(&x->addr, &y->addr);
}

static uint64_t beside(uint64_t capacity, uint64_t taken)
{
	return capacity > taken ? capacity - taken : 0;
}

/* The room beside the plan is for supplied tensors. Some of it may be taken, by other blocks or by theirs. */
static void open_room(struct um_executor *ex, const struct um_clearing *c, uint64_t capacity,
		      const struct um_schedule *s, uint64_t away)
{
	const struct um_compiled_plan *p = ex->program;
	uint64_t taken = p->peak + p->for_cpu + c->unsure, others = p->peak_others + p->for_cpu + c->unsure;

	if (c->all) { /* whatever is on the device: nothing has to leave */
		others = c->n_used > p->peak_others ? c->n_used : p->peak_others;
		away = 0;
	}
	um_executor_open_room(ex, s, beside(capacity, taken), away ? 0 : beside(capacity, others));
	if (!ex->supplied.blocks.most)
		return;
	if (c->stayed.n)
		qsort(c->stayed.at, c->stayed.n, sizeof *c->stayed.at, compare_use);
	for (size_t i = 0; i < c->stayed.n; i++)
		if (!um_kept_has(c->used, c->n_used, c->stayed.at[i].addr))
			um_executor_stays_unused(ex, c->stayed.at[i].addr);
}

/* Is all memory of the plan in allocations that exist as a whole, and stay? */
static int is_inside(struct um_executor *ex, const struct um_compiled_plan *p)
{
	for (int i = 0; i <= UM_COMPILED_PLAN_STEADY && ex->host.clip; i++)
		for (size_t k = 0; k < p->iterations[i].actions.n; k++) {
			const struct um_action *a = &p->iterations[i].actions.at[k];
			struct um_executor_range r = {a->addr, a->bytes};

			if (um_executor_clip(ex, r).bytes != r.bytes || !um_executor_is_whole(ex, r))
				return 0;
		}
	return 1;
}

static void find_targets(struct um_executor *ex, const struct um_schedule *s)
{
	um_executor_forget_targets(ex);
	for (int i = 0; i <= UM_COMPILED_PLAN_STEADY && ex->lanes.results.listener.report; i++)
		ex->targets[i] = um_hint_results_targets(ex->program, &ex->program->iterations[i], s);
}

typedef UM_VEC(struct um_compiled_plan_run) advised_runs;

/* The parts of a run in allocations of the program, each with a call of its own: behind the end of one there may be
 * other data. 0 or -ENOMEM. */
static int add_adopted(struct um_executor *ex, const struct um_compiled_plan_run *r, advised_runs *runs)
{
	uint64_t end = r->addr + r->bytes, a = r->addr;
	struct um_executor_range of;

	while (a < end && ex->host.allocation) {
		uint64_t to = um_block_of(a) + UM_BLOCK_BYTES;

		if (ex->host.allocation(ex->host.user, a, &of)) {
			to = of.addr + of.bytes < end ? of.addr + of.bytes : end;
			if (um_vec_push(runs, ((struct um_compiled_plan_run){a, to - a})))
				return -ENOMEM;
		}
		a = to;
	}
	return 0;
}

/* Advises read-mostly runs. */
static int set_mostly(struct um_executor *ex, const struct um_compiled_plan *p, const struct um_executor_range *used,
		      size_t n_used)
{
	advised_runs runs = {0};
	int err = 0;

	for (size_t i = 0; i < p->read_mostly.n && !err; i++) {
		const struct um_compiled_plan_run *r = &p->read_mostly.at[i];

		err = add_adopted(ex, r, &runs);
		for (size_t k = 0; k < n_used && !err; k++) {
			uint64_t lo = r->addr > used[k].addr ? r->addr : used[k].addr;
			uint64_t hi = r->addr + r->bytes, end = used[k].addr + used[k].bytes;

			hi = hi < end ? hi : end;
			if (lo < hi)
				err = um_vec_push(&runs, ((struct um_compiled_plan_run){lo, hi - lo}));
		}
	}
	if (runs.n)
		qsort(runs.at, runs.n, sizeof *runs.at, um_kept_compare);
	if (!err && um_advice_state_differs(&ex->read_mostly, runs.at, runs.n))
		um_executor_await_ops(ex, um_executor_streams(ex)); /* they may read what ends, and write what begins */
	if (!err)
		err = um_advice_state_set(&ex->read_mostly, ex->gpu, runs.at, runs.n);
	um_vec_fini(&runs);
	return err;
}

/* Without the advice, read-mostly blocks are evicted with a copy; host-resident ranges would never be prefetched. */
static int set_advice(struct um_executor *ex, const struct um_compiled_plan *p, const struct um_executor_range *used,
		      size_t n_used)
{
	int err;

	um_vec_clear(&ex->read_mostly.ended);
	if (!p->read_mostly.n && !p->host_resident.n && !ex->read_mostly.runs.n && !ex->host_resident.runs.n)
		return 0;
	if (um_lanes_drain(&ex->lanes)) /* an eviction of what is read mostly would leave a copy on the device */
		return -EAGAIN;
	err = set_mostly(ex, p, used, n_used);
	for (size_t i = 0; i < ex->read_mostly.ended.n; i++)
		um_executor_forget(ex, ex->read_mostly.ended.at[i].addr, ex->read_mostly.ended.at[i].bytes);
	if (!err)
		err = um_advice_state_set(&ex->host_resident, ex->gpu, p->host_resident.at, p->host_resident.n);
	return err ? err : ex->host_resident.runs.n < p->host_resident.n ? -ENOTSUP : 0;
}

/* Begins an iteration. In the first one no count refers to the previous iteration; after one that differs from the
 * steady one, ops wait for all of its actions. */
static void begin_counts(struct um_executor *ex, uint64_t turn)
{
	const struct um_compiled_plan *p = ex->program;
	uint64_t was = turn > UM_COMPILED_PLAN_STEADY ? UM_COMPILED_PLAN_STEADY : turn ? turn - 1 : 0;
	const struct um_compiled_iteration *before = &p->iterations[was];
	int first = turn == UM_COMPILED_PLAN_STEADY, none = turn == 0 || (first && !p->settled);

	ex->turn = turn;
	if (turn <= UM_COMPILED_PLAN_STEADY) {
		ex->can_refresh = p->driver_evicts && ex->inside;
		ex->driver_evicts = 0;
	} else if (turn == UM_COMPILED_PLAN_STEADY + 1) {
		ex->driver_evicts = ex->can_refresh;
	}
	/* in the first steady iteration the previous one was numbered without refreshes */
	ex->gate_least = first && p->driver_evicts ? 0 : INT32_MIN;
	ex->iteration = &p->iterations[turn < UM_COMPILED_PLAN_STEADY ? turn : UM_COMPILED_PLAN_STEADY];
	ex->in_least = none || (first && p->driver_evicts) ? 0 : -(int32_t)before->n_in;
	ex->out_least = none ? 0 : -(int32_t)before->n_out;
	ex->out_base = um_lanes_evict_queued(&ex->lanes, UM_LANE_OUT);
	ex->drop_base = um_lanes_evict_queued(&ex->lanes, UM_LANE_DROP);
	ex->checks_all = turn < UM_COMPILED_PLAN_STEADY || !ex->inside || ex->lanes.results.listener.report;
	ex->checks_some = ex->checks_all || ex->supplied.blocks.most;
	um_lanes_update_drops(&ex->lanes);
}

/* Number of blocks in use, touched or not, and of those in which the plan will place births. */
static uint64_t count_all(const struct um_executor_range *used, size_t n_used, const struct um_kept *prefetched)
{
	uint64_t n = prefetched->n;

	for (size_t i = 0; i < n_used; i++) {
		size_t from = 0, to = 0;

		UM_BISECT(from, prefetched->n, k, prefetched->at[k] < used[i].addr)
		UM_BISECT(to, prefetched->n, k, prefetched->at[k] < used[i].addr + used[i].bytes)
		n += used[i].bytes / UM_BLOCK_BYTES - (to - from);
	}
	return n;
}

/* Dead memory that the plan does not need may stay beside it and what else stays: a discard costs time, too. But no
 * more memory is taken than the program's tensors needed at once. With supplied tensors, and where the driver evicts,
 * dead memory would be copied to the host. */
static uint64_t room_for_dead(const struct um_executor *ex, const struct um_clearing *c, const struct um_schedule *s,
			      uint64_t capacity)
{
	const struct um_compiled_plan *p = ex->program;
	uint64_t taken = p->for_cpu + c->others.n + (c->n_used > p->peak ? c->n_used : p->peak);
	uint64_t live = ex->host.live_peak ? ex->host.live_peak(ex->host.user) / UM_BLOCK_BYTES : capacity;

	if (p->driver_evicts || um_executor_count_supplied(s))
		return 0;
	capacity = live < capacity ? live : capacity;
	return beside(capacity, taken);
}

static int has_fitted(const struct um_executor *ex, uint64_t capacity)
{
	return ex->host.live_peak && ex->host.live_peak(ex->host.user) <= capacity * UM_BLOCK_BYTES;
}

/* Blocks of supplied tensors that the first iteration may have to prefetch. Resident ones stay only where all tensors
 * that take turns have room beside the plan's other blocks. */
static uint64_t count_away(const struct um_executor *ex, const struct um_schedule *s, uint64_t capacity)
{
	uint64_t supplied = um_executor_count_supplied(s), resident = 0, away = supplied;

	if (supplied && ex->host.supplied_away)
		away = ex->host.supplied_away(ex->host.user, &resident);
	return resident > beside(capacity, ex->program->peak_others) ? supplied : away;
}

static void end_clearing(struct um_clearing *c)
{
	for (int i = 0; i < UM_EVICT_LANES; i++)
		um_vec_fini(&c->lane[i]);
	um_vec_fini(&c->others);
	um_vec_fini(&c->stayed);
}

int um_executor_adopt(struct um_executor *ex, const struct um_compiled_plan *p, uint64_t capacity_blocks,
		      const struct um_executor_range *used, size_t n_used, const struct um_cursor *cursor)
{
	struct um_clearing c = {.keep = p->blocks.at, .n_keep = p->blocks.n};
	struct um_kept kept = {0}, prefetched = {0};
	uint64_t peak, away;
	uint32_t base[UM_EVICT_LANES];
	int err;

	if (um_executor_too_many_streams(ex))
		return -EAGAIN;
	err = um_kept_find(p, cursor, &kept) || um_kept_find_prefetched(p, cursor, &prefetched) ? -ENOMEM : 0;
	if (!err && ex->program)
		um_executor_leave(ex);
	if (!err)
		err = set_advice(ex, p, used, n_used);
	if (err) {
		um_vec_fini(&kept);
		um_vec_fini(&prefetched);
		return err;
	}
	ex->turn = 0;
	um_vec_clear(&ex->early);
	ex->program = p;
	ex->iteration = &p->iterations[0];
	um_lanes_begin_source(&ex->lanes, UM_HINT_SCHEDULED);
	ex->inside = is_inside(ex, p);
	find_targets(ex, cursor->sched);
	c.used = prefetched.at;
	c.n_used = prefetched.n;
	away = count_away(ex, cursor->sched, capacity_blocks);
	ex->fits = ex->lanes.limit.on && ex->lanes.limit.watches && has_fitted(ex, capacity_blocks);
	c.all = count_all(used, n_used, &prefetched) <= capacity_blocks ||
		(ex->fits && um_block_limit_count(&ex->lanes.limit, prefetched.at, prefetched.n) < capacity_blocks);
	ex->fits &= c.all;
	if (!c.all) {
		uint64_t least = away ? p->peak : p->peak_others;
		uint64_t most = prefetched.n + away;
		int all = most <= capacity_blocks;

		if (!all && !p->driver_evicts)
			c.failed = um_kept_add_in_turn(ex, p, capacity_blocks, count_spare(ex, used, n_used, &kept),
						       cursor, &kept) != 0;
		peak = all && most > least ? most : least;
		c.keep = all ? prefetched.at : kept.at;
		c.n_keep = all ? prefetched.n : kept.n;
		c.failed |= find_others(ex, used, n_used, beside(capacity_blocks, peak), &c) != 0;
	}
	ex->dead_room = c.dead_room = room_for_dead(ex, &c, cursor->sched, capacity_blocks);
	for (int i = 0; i < UM_EVICT_LANES; i++)
		base[i] = um_lanes_evict_queued(&ex->lanes, (enum um_evict_lane)i);
	for (size_t i = 0; i < n_used; i++)
		evict_unplanned(ex, &used[i], &c);
	find_early(ex, &c, capacity_blocks, base, cursor);
	open_room(ex, &c, capacity_blocks, cursor->sched, away);
	if (ex->unpoked)
		um_executor_poke(ex);
	end_clearing(&c);
	um_vec_fini(&kept);
	um_vec_fini(&prefetched);
	ex->in_base = um_lanes_in_queued(&ex->lanes);
	begin_counts(ex, 0);
	return 0;
}

void um_executor_begin(struct um_executor *ex, const struct um_executor_range *used, size_t n_used)
{
	const struct um_compiled_plan *p = ex->program;
	size_t n = ex->turn < CLEARED_ITERATIONS ? n_used : 0;
	struct um_clearing dead = {.keep = p->blocks.at, .n_keep = p->blocks.n, .all = 1, .dead_room = ex->dead_room};
	uint64_t addr;

	ex->in_base = um_lanes_in_queued(&ex->lanes);
	um_executor_begin_room(ex);
	for (size_t i = 0; i < n; i++)
		evict_unplanned(ex, &used[i], &dead);
	while (um_executor_room_exceeded(ex, &addr))
		evict_run(ex, &dead, UM_ACTION_EVICT, addr, UM_BLOCK_BYTES);
	end_clearing(&dead);
	begin_counts(ex, ex->turn + 1);
	if (um_advice_state_any_ended(&ex->host_resident))
		um_executor_withdraw_ended(ex);
}
