/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_adopt.c - begins a compiled plan and its iterations: evicts what the plan does not use, advises
 */
#include "replay/executor_state.h"

#include <errno.h>
#include <stdlib.h>

#define CLEARED_ITERATIONS 2 /* misplaced tensors may be carried over from the first iteration, and die in the second */

struct um_kept {
	uint64_t *at;
	size_t n, cap;
};

/* Of addresses, or of structs that begin with one. */
static int cmp_addr(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Evictions of what a plan does not use. */
struct um_clearing {
	uint64_t room; /* blocks that may stay */
	unsigned marked; /* streams with a mark after all ops so far */
};

static void evict_run(struct um_executor *ex, struct um_clearing *c, enum um_action_kind kind, uint64_t addr,
		      uint64_t bytes)
{
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
	if (kind == UM_ACTION_EVICT) /* where there is room */
		um_lanes_evict(&ex->lanes, UM_LANE_OUT, kind, r.addr, r.bytes, um_lanes_in_queued(&ex->lanes), streams);
	else
		um_executor_drop(ex, kind, r, um_lanes_in_queued(&ex->lanes), streams, &c->marked, UM_LATER_OPS_WAIT);
}

static int may_reside(const struct um_executor *ex, uint64_t addr)
{
	return !ex->host.may_reside || ex->host.may_reside(ex->host.user, addr);
}

/* Evicts the resident blocks in use that are not to stay, in runs of one kind. */
static void evict_unplanned(struct um_executor *ex, const uint64_t *keep, size_t n_keep,
			    const struct um_executor_range *used, struct um_clearing *c)
{
	uint64_t run = 0, bytes = 0;
	enum um_action_kind run_kind = UM_ACTION_EVICT;

	for (uint64_t a = used->addr; a < used->addr + used->bytes; a += UM_BLOCK_BYTES) {
		int dead = um_executor_may_discard(ex, a, UM_BLOCK_BYTES, UM_LATER_OPS_WAIT);
		int clean = !dead && um_advice_state_has(&ex->read_mostly, a, UM_BLOCK_BYTES);
		int stays = (n_keep && bsearch(&a, keep, n_keep, sizeof *keep, cmp_addr)) || !may_reside(ex, a);
		enum um_action_kind kind = dead ? UM_ACTION_DISCARD : clean ? UM_ACTION_DROP_CLEAN : UM_ACTION_EVICT;

		if (!stays && !dead && c->room) {
			stays = 1;
			c->room--;
		}
		if (stays || kind != run_kind || bytes == UM_RUN_OUT * UM_BLOCK_BYTES) {
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

static int add_kept(struct um_kept *kept, const struct um_action *a, const struct um_cursor *c)
{
	struct um_executor_range r = um_executor_locate(a, c);

	for (; r.bytes; r.addr += UM_BLOCK_BYTES, r.bytes -= UM_BLOCK_BYTES)
		if (um_vec_push(kept, r.addr))
			return -ENOMEM;
	return 0;
}

/* Blocks that may stay for the first iteration, ascending: those that it needs at once, and others that may stay. */
static int find_kept(const struct um_compiled_plan *p, const struct um_cursor *c, struct um_kept *kept)
{
	const struct um_action *a = p->iterations[0].actions.at, *end = a + p->iterations[0].actions.n;
	int err = 0;

	for (; a < end && a->at == 0 && !err; a++)
		if (a->kind == UM_ACTION_PREFETCH && a->room <= 0)
			err = add_kept(kept, a, c);
	for (size_t i = 0; i < p->stays.n && !err; i++)
		err = add_kept(kept, &p->stays.at[i], c);
	if (kept->n)
		qsort(kept->at, kept->n, sizeof *kept->at, cmp_addr);
	return err;
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

/* Advises read-mostly runs inside our own memory: elsewhere the last block may contain other data. */
static int set_mostly(struct um_executor *ex, const struct um_compiled_plan *p, const struct um_executor_range *used,
		      size_t n_used)
{
	UM_VEC(struct um_compiled_plan_run) runs = {0};
	int err = 0;

	for (size_t i = 0; i < p->read_mostly.n; i++) {
		const struct um_compiled_plan_run *r = &p->read_mostly.at[i];

		for (size_t k = 0; k < n_used && !err; k++) {
			uint64_t lo = r->addr > used[k].addr ? r->addr : used[k].addr;
			uint64_t hi = r->addr + r->bytes, end = used[k].addr + used[k].bytes;

			hi = hi < end ? hi : end;
			if (lo < hi)
				err = um_vec_push(&runs, ((struct um_compiled_plan_run){lo, hi - lo}));
		}
	}
	if (runs.n)
		qsort(runs.at, runs.n, sizeof *runs.at, cmp_addr);
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

	if (!p->read_mostly.n && !p->host_resident.n && !ex->read_mostly.runs.n && !ex->host_resident.runs.n)
		return 0;
	if (um_lanes_drain(&ex->lanes)) /* an eviction of what is read mostly would leave a copy on the device */
		return -EAGAIN;
	err = set_mostly(ex, p, used, n_used);
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
	um_lanes_update_drops(&ex->lanes);
}

int um_executor_adopt(struct um_executor *ex, const struct um_compiled_plan *p, uint64_t capacity_blocks,
		      const struct um_executor_range *used, size_t n_used, const struct um_cursor *cursor)
{
	struct um_clearing dead = {UINT64_MAX, 0}, any = {0};
	uint64_t in_use = 0;
	struct um_kept kept = {0};
	int err;

	if (um_executor_too_many_streams(ex))
		return -EAGAIN;
	if (find_kept(p, cursor, &kept)) {
		um_vec_fini(&kept);
		return -ENOMEM;
	}
	if (ex->program)
		um_executor_leave(ex);
	err = set_advice(ex, p, used, n_used);
	if (err) {
		um_vec_fini(&kept);
		return err;
	}
	ex->turn = 0;
	ex->program = p;
	ex->iteration = &p->iterations[0];
	ex->lanes.source = UM_HINT_SCHEDULED;
	ex->inside = is_inside(ex, p);
	find_targets(ex, cursor->sched);
	for (size_t i = 0; i < n_used; i++)
		in_use += used[i].bytes / UM_BLOCK_BYTES;
	any.room = capacity_blocks > p->peak ? capacity_blocks - p->peak : 0;
	for (size_t i = 0; i < n_used; i++) {
		if (in_use > capacity_blocks)
			evict_unplanned(ex, kept.at, kept.n, &used[i], &any);
		else
			evict_unplanned(ex, p->blocks.at, p->blocks.n, &used[i], &dead);
	}
	if (ex->unpoked)
		um_executor_poke(ex);
	um_vec_fini(&kept);
	ex->in_base = um_lanes_in_queued(&ex->lanes);
	begin_counts(ex, 0);
	return 0;
}

void um_executor_begin(struct um_executor *ex, const struct um_executor_range *used, size_t n_used)
{
	const struct um_compiled_plan *p = ex->program;
	size_t n = ex->turn < CLEARED_ITERATIONS ? n_used : 0;
	struct um_clearing dead = {UINT64_MAX, 0};

	ex->in_base = um_lanes_in_queued(&ex->lanes);
	for (size_t i = 0; i < n; i++)
		evict_unplanned(ex, p->blocks.at, p->blocks.n, &used[i], &dead);
	begin_counts(ex, ex->turn + 1);
}
