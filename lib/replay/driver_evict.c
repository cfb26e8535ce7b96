/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_evict.c - builds an iteration that leaves evictions to the driver
 *
 * A refresh precedes the in that it is for, in the same lane: all numbers of ins change.
 */
#include "replay/driver_evict.h"

#include "replay/driver_lru.h"

#include <errno.h>
#include <limits.h>

struct build {
	const struct um_compiled_plan *p;
	const struct um_compiled_iteration *from;
	const struct um_driver_lru *order;
	struct um_compiled_iteration *to;
	uint32_t *counts; /* by ins so far: ins and refreshes */
	int32_t *last, *were; /* by block: number of its last refresh, plus 1; and by the blocks' previous numbers */
	uint32_t n; /* ins and refreshes so far */
	int err;
};

/* The number of ins in the new iteration that corresponds to a count. */
static int32_t counted(const struct build *w, int32_t count)
{
	int32_t n_in = (int32_t)w->from->n_in;

	if (count == INT32_MIN || count > 0)
		return count > 0 ? (int32_t)w->counts[count] : count;
	return count + n_in < 0 ? INT32_MIN : (int32_t)w->counts[count + n_in] - (int32_t)w->counts[n_in];
}

static void add(struct build *w, const struct um_action *a)
{
	if (um_vec_push(&w->to->actions, *a))
		w->err = -ENOMEM;
}

/* Adds the refreshes before an in; neighbours in one. */
static void add_refreshes(struct build *w, const struct um_driver_lru_in *in, uint32_t at)
{
	struct um_action run = {.kind = UM_ACTION_REFRESH, .at = at, .room = INT32_MIN};

	for (uint32_t i = in->first; i != UM_DRIVER_LRU_NONE; i = w->order->refreshes.at[i].next) {
		uint64_t addr = w->p->blocks.at[w->order->refreshes.at[i].block];
		uint32_t slot;

		if (w->order->refreshes.at[i].idle)
			continue;
		slot = w->p->rotating[w->order->refreshes.at[i].block];
		if (run.bytes && (addr != run.addr + run.bytes || run.bytes == UM_RUN_REFRESH * UM_BLOCK_BYTES ||
				  slot != run.slot)) {
			add(w, &run);
			w->n++;
			run.bytes = 0;
		}
		if (!run.bytes)
			run.addr = addr;
		run.slot = slot;
		run.bytes += UM_BLOCK_BYTES;
	}
	if (run.bytes) {
		add(w, &run);
		w->n++;
	}
}

static void add_actions(struct build *w)
{
	const struct um_compiled_iteration *iteration = w->from;
	uint32_t in = 0;

	for (size_t i = 0; i < iteration->actions.n && !w->err; i++) {
		struct um_action a = iteration->actions.at[i];

		if (a.kind == UM_ACTION_PREFETCH) {
			const struct um_driver_lru_in *x = &w->order->ins[in++];

			add_refreshes(w, x, a.at);
			w->counts[in] = ++w->n;
			a.room = x->room;
			a.drops = x->drops;
			a.evicts = x->evicts;
			a.resident = x->resident;
		} else if (a.kind == UM_ACTION_EVICT) {
			a.kind = UM_ACTION_LEAVE_TO_DRIVER;
		}
		add(w, &a);
	}
	w->to->n_in = w->n;
	w->to->n_out = iteration->n_out;
	w->to->n_drop = iteration->n_drop;
}

/* An eviction waits for the block's last refresh as it does for its in: renumbers. */
static void set_waits(struct build *w, int before)
{
	struct um_compiled_iteration *to = w->to;
	int32_t n = before ? -(int32_t)to->n_in : 0;

	for (size_t i = 0; i < to->actions.n; i++) {
		struct um_action *a = &to->actions.at[i];
		uint32_t first = (uint32_t)um_compiled_plan_find(w->p, a->addr);

		if (a->kind == UM_ACTION_PREFETCH || a->kind == UM_ACTION_REFRESH) {
			n++;
			for (uint32_t k = 0; a->kind == UM_ACTION_REFRESH && k < um_driver_lru_blocks(a); k++)
				w->last[first + k] = n;
			continue;
		}
		if (!before)
			a->room = counted(w, a->room);
		for (uint32_t k = first; k < first + um_driver_lru_blocks(a); k++) {
			if (!before && w->last[k] > a->room)
				a->room = w->last[k];
			w->last[k] = INT32_MIN;
		}
	}
	for (uint32_t k = 0; before && k < w->p->blocks.n; k++)
		w->were[w->order->successor[k]] = w->last[k];
	if (before)
		memcpy(w->last, w->were, w->p->blocks.n * sizeof *w->last);
}

static int build(struct build *w)
{
	const struct um_compiled_iteration *from = w->from;
	struct um_compiled_iteration *to = w->to;
	uint32_t n_ops = w->p->n_ops;
	size_t n = w->p->blocks.n, a = 0;

	w->counts = calloc(from->n_in + 1ull, sizeof *w->counts);
	w->last = malloc((n + 1) * sizeof *w->last);
	w->were = malloc((n + 1) * sizeof *w->were);
	to->first = calloc(n_ops + 2ull, sizeof *to->first);
	to->gate = calloc(n_ops + 1ull, sizeof *to->gate);
	if (!w->counts || !w->last || !w->were || !to->first || !to->gate)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++)
		w->last[k] = INT32_MIN;
	add_actions(w);
	if (w->err)
		return w->err;
	set_waits(w, 1);
	set_waits(w, 0);
	for (uint32_t op = 0; op <= n_ops; op++) {
		while (a < to->actions.n && to->actions.at[a].at < op)
			a++;
		to->first[op] = (uint32_t)a;
	}
	for (uint32_t op = 0; op < n_ops; op++)
		to->gate[op] = counted(w, from->gate[op]);
	return 0;
}

int um_driver_evict_build(const struct um_compiled_plan *p, uint64_t capacity_blocks, struct um_compiled_iteration *out)
{
	struct um_driver_lru order;
	struct build w = {.p = p, .from = &p->iterations[UM_COMPILED_PLAN_STEADY], .order = &order, .to = out};
	int err = um_driver_lru_find(p, capacity_blocks, &order);

	memset(out, 0, sizeof *out);
	if (!err)
		err = build(&w);
	if (err)
		um_compiled_iteration_fini(out);
	free(w.counts);
	free(w.last);
	free(w.were);
	um_driver_lru_fini(&order);
	return err;
}
