/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/executor_kept.h"

#include <stdlib.h>

int um_kept_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void um_kept_sort(struct um_kept *k)
{
	size_t n = 0;

	if (k->n)
		qsort(k->at, k->n, sizeof *k->at, um_kept_compare);
	for (size_t i = 0; i < k->n; i++)
		if (!n || k->at[n - 1] != k->at[i])
			k->at[n++] = k->at[i];
	k->n = n;
}

enum um_residency um_executor_residency(struct um_executor *ex, uint64_t addr, uint64_t *last)
{
	enum um_residency r = UM_RESIDENCY_UNKNOWN;

	*last = 0;
	if (ex->host.residency)
		r = ex->host.residency(ex->host.user, addr, last);
	if (r == UM_RESIDENCY_UNKNOWN &&
	    (um_block_lru_find(&ex->supplied.blocks, addr) || (ex->fits && um_block_limit_has(&ex->lanes.limit, addr))))
		return UM_RESIDENT;
	return r == UM_RESIDENT && um_advice_state_ended(&ex->read_mostly, addr) ? UM_NOT_RESIDENT : r;
}

/* Does the action come after a birth that is still to come? Its slot may have an older tensor until then. */
static int is_unborn(const struct um_action *a, const struct um_cursor *c)
{
	int32_t birth = a->slot < c->sched->slots.n ? c->sched->slots.at[a->slot].birth : -1;

	return birth > 0 && a->at >= (uint32_t)birth;
}

/* Another tensor comes than the slot has. */
static int is_to_come(const struct um_action *a, const struct um_cursor *c)
{
	return a->slot < c->sched->slots.n && c->sched->slots.at[a->slot].flags & UM_SLOT_SUPPLIED;
}

struct um_executor_range um_executor_locate_born(const struct um_action *a, const struct um_cursor *c)
{
	struct um_executor_range r = {0};

	if (!is_unborn(a, c))
		r = um_executor_locate(a, c);
	return r.bytes ? r : (struct um_executor_range){a->addr, a->bytes};
}

static int add_kept(struct um_kept *kept, struct um_executor_range r)
{
	for (; r.bytes; r.addr += UM_BLOCK_BYTES, r.bytes -= UM_BLOCK_BYTES)
		if (um_vec_push(kept, r.addr))
			return -ENOMEM;
	return 0;
}

int um_kept_find(const struct um_compiled_plan *p, const struct um_cursor *c, struct um_kept *kept)
{
	const struct um_action *a = p->iterations[0].actions.at, *end = a + p->iterations[0].actions.n;
	int err = 0;

	for (; a < end && a->at == 0 && !err; a++)
		if (a->kind == UM_ACTION_PREFETCH && a->room <= 0 && !is_to_come(a, c))
			err = add_kept(kept, um_executor_locate(a, c));
	for (size_t i = 0; i < p->stays.n && !err; i++)
		err = add_kept(kept, um_executor_locate(&p->stays.at[i], c));
	um_kept_sort(kept);
	return err;
}

int um_kept_find_prefetched(const struct um_compiled_plan *p, const struct um_cursor *c, struct um_kept *all)
{
	const struct um_action *a = p->iterations[0].actions.at, *end = a + p->iterations[0].actions.n;
	int err = 0;

	for (; a < end && !err; a++)
		if (a->kind == UM_ACTION_PREFETCH && !is_to_come(a, c))
			err = add_kept(all, um_executor_locate_born(a, c));
	um_kept_sort(all);
	return err;
}

/* Is the block resident, and not of more dead memory than may stay? */
static int may_stay(struct um_executor *ex, uint64_t addr, uint64_t *dead)
{
	uint64_t last;

	if (um_executor_residency(ex, addr, &last) != UM_RESIDENT)
		return 0;
	if (!um_executor_may_discard(ex, addr, UM_BLOCK_BYTES, UM_LATER_OPS_WAIT))
		return 1;
	return *dead && (*dead)--;
}

/* The plan occupies occupied.at[i] blocks after prefetch i, and blocks that are prefetched later take room beside them:
 * each prefetch bounds the number of those from the first one on. The previous tensor of a
 * supplied slot does not stay. */
int um_kept_add_in_turn(struct um_executor *ex, const struct um_compiled_plan *p, uint64_t capacity, uint64_t dead,
			const struct um_cursor *c, struct um_kept *kept)
{
	const struct um_action *a = p->iterations[0].actions.at, *end = a + p->iterations[0].actions.n;
	struct um_kept turn = {0};
	uint64_t most = capacity, room;
	size_t n_kept = kept->n, prefetch = 0;
	int err = 0;

	for (; a < end && turn.n < most && prefetch < p->occupied.n && !err; a++) {
		struct um_executor_range r = um_executor_locate_born(a, c);

		if (a->kind != UM_ACTION_PREFETCH)
			continue;
		room = capacity > p->occupied.at[prefetch] ? capacity - p->occupied.at[prefetch] : 0;
		prefetch++;
		if (is_to_come(a, c))
			r.bytes = 0;
		for (; r.bytes && !err; r.addr += UM_BLOCK_BYTES, r.bytes -= UM_BLOCK_BYTES)
			if (!um_kept_has(kept->at, n_kept, r.addr) && may_stay(ex, r.addr, &dead))
				err = um_vec_push(&turn, r.addr);
		most = turn.n + room < most ? turn.n + room : most;
	}
	for (size_t i = 0; i < turn.n && i < most && !err; i++)
		err = um_vec_push(kept, turn.at[i]);
	um_kept_sort(kept);
	um_vec_fini(&turn);
	return err;
}
