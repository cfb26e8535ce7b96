/* SPDX-License-Identifier: Apache-2.0
 *
 * replan_begin.c - a waiting plan begins, unless other tensors are in its way
 */
#include "runtime/replan.h"

#include "base/bisect.h"

#include <stdlib.h>

/* --- in the way --------------------------------------------------------------------------------------------------- */

#define DISPLACED 32 /* at most this part of the budget is born elsewhere: the first op of such a birth prefetches it */

struct ways {
	UM_VEC(uint64_t) ids; /* of the schedule's tensors, ascending */
	UM_VEC(struct um_heap_region) others; /* where other tensors live, ascending */
};

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int is_known(const struct ways *w, uint64_t id)
{
	return um_bisect_find(w->ids.at, w->ids.n, id) < w->ids.n;
}

/* 0 or -ENOMEM. */
static int find_others(struct ways *w, const struct um_replan *r)
{
	const struct um_cursor *c = &r->cursor;
	int err = 0;

	for (size_t i = 0; i < c->sched->slots.n && !err; i++)
		if (c->slots[i].id.v)
			err = um_vec_push(&w->ids, c->slots[i].id.v);
	if (!err && w->ids.n)
		qsort(w->ids.at, w->ids.n, sizeof *w->ids.at, compare_ids);
	for (struct um_tree_node *n = um_tree_first(&r->host.tensors->registry.live); n && !err; n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		if (!t->parent && !(t->flags & UM_TENSOR_UNMANAGED) && !is_known(w, t->id.v))
			err = um_vec_push(&w->others, ((struct um_heap_region){t->addr, t->bytes}));
	}
	return err;
}

/* Does another tensor live at the place of a birth? However small it is, the birth goes elsewhere as a whole. */
static int is_displaced(const struct ways *w, const struct um_slot *s)
{
	size_t at = 0;

	UM_BISECT(at, w->others.n, i, w->others.at[i].addr + w->others.at[i].bytes <= s->place);
	return at < w->others.n && w->others.at[at].addr < s->place + s->bytes;
}

/* The most bytes of displaced births that are alive at once. `guessed`: those whose free was not observed count, too,
 * since their next one may be born before it. 0 without memory. */
static uint64_t find_peak(const struct ways *w, const struct um_schedule *sched, int guessed)
{
	int64_t *change = calloc(sched->ops.n + 1, sizeof *change), now = 0, most = 0;

	for (size_t i = 0; change && i < sched->slots.n; i++) {
		const struct um_slot *s = &sched->slots.at[i];
		int64_t bytes = (int64_t)s->bytes;

		if (s->birth < 0 || s->place == UINT64_MAX ||
		    !((guessed && s->flags & UM_SLOT_GUESSED) || is_displaced(w, s)))
			continue;
		change[s->birth] += bytes;
		if (s->death > 0 && s->death <= s->birth)
			change[0] += bytes;
		if (s->death >= 0)
			change[s->death] -= bytes;
	}
	for (size_t op = 0; change && op <= sched->ops.n; op++) {
		now += change[op];
		most = now > most ? now : most;
	}
	free(change);
	return (uint64_t)most;
}

/* Bytes that the plan's births would need beside it, if it began now. */
static uint64_t count_beside(const struct um_replan *r, int guessed)
{
	struct ways w = {.ids = {0}};
	uint64_t bytes = 0;

	if (um_replan_begins_cold(r) && (r->may_move || guessed) && !find_others(&w, r))
		bytes = find_peak(&w, r->cursor.sched, guessed);
	um_vec_fini(&w.ids);
	um_vec_fini(&w.others);
	return bytes;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t room_beside(uint64_t budget, uint64_t peak)
{
	return budget - lesser(peak, budget);
}

int um_replan_is_blocked(const struct um_replan *r)
{
	uint64_t budget = r->host.device->budget;

	return count_beside(r, 0) > lesser(room_beside(budget, r->plan_peak_bytes), budget / DISPLACED);
}

/* Births that the device still uses the place of go elsewhere again, as in the iteration before. */
static uint64_t expect_beside(const struct um_replan *r)
{
	uint64_t bytes = count_beside(r, 1), again = lesser(r->displaced, r->host.device->budget / DISPLACED);

	return bytes > again ? bytes : again;
}

/* --- begin -------------------------------------------------------------------------------------------------------- */

int um_replan_first_op(struct um_replan *r)
{
	uint64_t capacity = r->host.device->budget / UM_BLOCK_BYTES, in_use = 0;
	uint64_t beside = (expect_beside(r) + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;
	struct um_executor_range *used;
	size_t n = um_tensors_used(r->host.tensors, capacity, &used);

	/* what is born beside the plan finds room: blocks that the plan does not use leave */
	capacity -= lesser(beside, room_beside(capacity, r->program.peak));
	um_follow_step(&r->state, UM_FOLLOW_ON_FIRST_OP);
	r->begins = 1;
	um_plan_hold_start(&r->hold);
	if (!used || um_executor_adopt(r->executor, &r->program, capacity, used, n, &r->cursor))
		r->notices->errors++;
	else
		r->n_plans++;
	for (size_t i = 0; used && i < n; i++)
		in_use += used[i].bytes / UM_BLOCK_BYTES;
	free(used);
	return in_use > capacity || um_replan_evicts(r);
}
