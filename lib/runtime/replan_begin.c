/* SPDX-License-Identifier: Apache-2.0
 *
 * replan_begin.c - a waiting plan begins, unless other tensors are in its way
 */
#include "runtime/replan.h"

#include "base/bisect.h"

#include <stdlib.h>

/* --- in the way --------------------------------------------------------------------------------------------------- */

/* More than this part of the budget blocks a plan even if there is room beside it: tensors that stay fill that room. */
#define IN_THE_WAY 32

struct ways {
	UM_VEC(struct um_heap_region) places; /* of births; ascending, disjoint once joined */
	UM_VEC(uint64_t) ids; /* of the schedule's tensors, ascending */
};

static int compare_regions(const void *a, const void *b)
{
	const struct um_heap_region *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void join_places(struct ways *w)
{
	size_t n = 0;

	qsort(w->places.at, w->places.n, sizeof *w->places.at, compare_regions);
	for (size_t i = 0; i < w->places.n; i++) {
		struct um_heap_region *last = &w->places.at[n ? n - 1 : 0], next = w->places.at[i];
		uint64_t end = next.addr + next.bytes;

		if (!n || next.addr > last->addr + last->bytes)
			w->places.at[n++] = next;
		else if (end > last->addr + last->bytes)
			last->bytes = end - last->addr;
	}
	w->places.n = n;
}

/* 0 or -ENOMEM. */
static int find_places(struct ways *w, const struct um_cursor *c)
{
	int err = 0;

	for (size_t i = 0; i < c->sched->slots.n && !err; i++) {
		const struct um_slot *s = &c->sched->slots.at[i];

		if (s->birth >= 0 && s->place != UINT64_MAX)
			err = um_vec_push(&w->places, ((struct um_heap_region){s->place, s->bytes}));
		if (!err && c->slots[i].id.v)
			err = um_vec_push(&w->ids, c->slots[i].id.v);
	}
	if (err)
		return err;
	if (w->places.n)
		join_places(w);
	if (w->ids.n)
		qsort(w->ids.at, w->ids.n, sizeof *w->ids.at, compare_ids);
	return 0;
}

static int is_in_the_way(const struct ways *w, const struct um_tensor *t)
{
	size_t at = 0;

	if (t->parent || t->flags & UM_TENSOR_UNMANAGED || um_bisect_find(w->ids.at, w->ids.n, t->id.v) < w->ids.n)
		return 0;
	UM_BISECT(at, w->places.n, i, w->places.at[i].addr + w->places.at[i].bytes <= t->addr);
	return at < w->places.n && w->places.at[at].addr < t->addr + t->bytes;
}

int um_replan_is_blocked(const struct um_replan *r)
{
	uint64_t budget = r->host.device->budget, most, bytes = 0;
	struct ways w = {0};

	most = budget > r->plan_peak_bytes ? budget - r->plan_peak_bytes : 0;
	if (most > budget / IN_THE_WAY)
		most = budget / IN_THE_WAY;
	if (!um_replan_begins_cold(r) || !r->may_move || find_places(&w, &r->cursor))
		w.places.n = 0;
	for (struct um_tree_node *n = um_tree_first(&r->host.tensors->registry.live); n && w.places.n && bytes <= most;
	     n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		bytes += is_in_the_way(&w, t) ? t->bytes : 0;
	}
	um_vec_fini(&w.places);
	um_vec_fini(&w.ids);
	return bytes > most;
}

/* --- begin -------------------------------------------------------------------------------------------------------- */

int um_replan_first_op(struct um_replan *r)
{
	uint64_t capacity = r->host.device->budget / UM_BLOCK_BYTES, in_use = 0;
	struct um_executor_range *used;
	size_t n = um_tensors_used(r->host.tensors, capacity, &used);

	um_follow_step(&r->state, UM_FOLLOW_ON_FIRST_OP);
	r->begins = 1;
	if (!used || um_executor_adopt(r->executor, &r->program, capacity, used, n, &r->cursor))
		r->notices->errors++;
	else
		r->n_plans++;
	for (size_t i = 0; used && i < n; i++)
		in_use += used[i].bytes / UM_BLOCK_BYTES;
	free(used);
	return in_use > capacity || um_replan_evicts(r);
}
