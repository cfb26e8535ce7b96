/* SPDX-License-Identifier: Apache-2.0
 *
 * context_workspace.c - answers which workspace an op gets, and keeps it until the op was launched
 *
 * While a plan is followed, its next op says which one. Otherwise it is the fastest algorithm that fits into the budget
 * beside all that is alive, so that nothing has to leave for it; if none does, the one with the smallest workspace. An
 * eighth of the budget is left for the memory between tensors, which is also on the device.
 */
#include "runtime/context.h"

#include "model/workspace.h"

#include <errno.h>

_Static_assert(UMADV_MOST_WORKSPACES == UM_MOST_WORKSPACES, "the limit is the same outside and inside");

/* --- the choice --------------------------------------------------------------------------------------------------- */

static int is_same(const struct um_schedule *s, const struct um_sched_op *op, const struct um_offer *f)
{
	if (op->n_ws != f->n)
		return 0;
	for (uint32_t i = 0; i < f->n; i++)
		if (s->ws.at[op->first_ws + i].bytes != f->ws[i].bytes)
			return 0;
	return 1;
}

/* The program's next op in the schedule that is followed, if it makes this offer. Behind the last op an iteration
 * begins that the program does not mark. */
static const struct um_sched_op *find_planned(const struct umadv *adv, const struct um_offer *f)
{
	const struct um_cursor *c = &adv->replan.cursor;
	const struct um_relaunches *r = &adv->replan.relaunches;
	uint32_t op = c->op;

	if (!c->on || !c->sched)
		return NULL;
	while (op < r->again.n && r->again.at[op])
		op++;
	op = op == c->sched->ops.n ? 0 : op;
	return op < c->sched->ops.n && is_same(c->sched, &c->sched->ops.at[op], f) ? &c->sched->ops.at[op] : NULL;
}

static uint32_t choose(const struct umadv *adv, const struct um_offer *f, const struct um_sched_op *planned)
{
	uint64_t budget = adv->device.budget - adv->device.budget / 8, live = adv->tensors.bytes_live;

	return planned ? planned->choice : um_workspace_pick(f->ws, f->n, budget > live ? budget - live : 0);
}

/* The largest workspace below this size, and of equally large ones the fastest; f->n: none. */
static uint32_t next_smaller(const struct um_offer *f, uint64_t bytes)
{
	uint32_t best = f->n;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct um_workspace *a = &f->ws[i], *b = &f->ws[best % f->n];

		if (a->bytes < bytes &&
		    (best == f->n || a->bytes > b->bytes || (a->bytes == b->bytes && a->ns < b->ns)))
			best = i;
	}
	return best;
}

/* Allocates the chosen workspace, or a smaller one if there is no memory for it. */
static int allocate(struct umadv *adv, struct um_offer *f, uint32_t *choice)
{
	const struct um_sched_op *planned = find_planned(adv, f);
	uint32_t slot = planned ? um_workspace_slot(adv->replan.cursor.sched, planned) : UM_NO_SLOT;
	uint32_t i = choose(adv, f, planned);
	struct um_tensor *t;

	while (i < f->n && f->ws[i].bytes && um_context_alloc_workspace(adv, f->ws[i].bytes, slot, &t)) {
		i = next_smaller(f, f->ws[i].bytes);
		slot = UM_NO_SLOT; /* the program leaves the plan */
	}
	if (i == f->n)
		return -ENOMEM;
	f->addr = f->ws[i].bytes ? t->addr : 0;
	f->id.v = f->ws[i].bytes ? t->id.v : 0;
	*choice = i;
	return 0;
}

/* --- offers ------------------------------------------------------------------------------------------------------- */

static struct um_offer *find_offer(struct umadv *adv)
{
	uint64_t thread = um_app_stream_thread();

	for (size_t i = 0; i < adv->offers.n; i++)
		if (adv->offers.at[i].thread == thread)
			return &adv->offers.at[i];
	return NULL;
}

/* Ends an offer, with its workspace. */
static void end(struct umadv *adv, struct um_offer *f)
{
	if (f->addr)
		um_context_free_workspace(adv, f->addr, f->id);
	*f = adv->offers.at[--adv->offers.n];
}

void um_context_end_offers(struct umadv *adv)
{
	struct um_offer *f = find_offer(adv);

	if (f && f->announced)
		end(adv, f);
}

int um_context_search_offer(struct umadv *adv)
{
	struct um_offer *f = find_offer(adv);

	if (!f)
		return 0;
	f->announced = 1;
	adv->op.ws = f->ws;
	adv->op.n_ws = f->n;
	adv->op.workspace = f->addr ? um_registry_find(&adv->tensors.registry, f->addr) : NULL;
	return 1;
}

int um_context_workspace(struct umadv *adv, const size_t *sizes, const uint64_t *times, size_t n, size_t *choice,
			 void **memory)
{
	struct um_offer *f = find_offer(adv);
	uint32_t chosen;
	int err;

	um_assert_locked(adv);
	if (f)
		end(adv, f); /* offered again, before an op */
	if (um_vec_reserve(&adv->offers, 1))
		return -ENOMEM;
	f = &adv->offers.at[adv->offers.n];
	f->thread = um_app_stream_thread();
	f->announced = 0;
	f->n = (uint32_t)n;
	for (uint32_t i = 0; i < n; i++)
		f->ws[i] = (struct um_workspace){sizes[i], times[i]};
	err = allocate(adv, f, &chosen);
	if (err)
		return err;
	adv->offers.n++;
	*choice = chosen;
	*memory = (void *)(uintptr_t)f->addr;
	return 0;
}
