/* SPDX-License-Identifier: Apache-2.0
 *
 * hint_results.c - result records of hint calls, and the op that each prefetch precedes
 */
#include "replay/hint_results.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

int um_hint_results_open(struct um_hint_results *o, struct um_gpu *gpu, uint32_t places, const uint32_t *put,
			 const struct um_hint_listener *listener)
{
	int err = 0;

	memset(o, 0, sizeof *o);
	for (int i = 0; i < UM_HINT_RESULTS_LANES; i++) {
		o->at[i] = calloc(places, sizeof *o->at[i]);
		o->reported[i] = put[i];
		err = o->at[i] ? err : -ENOMEM;
	}
	if (err) {
		um_hint_results_close(o);
		return err;
	}
	o->gpu = gpu;
	o->listener = *listener;
	return 0;
}

void um_hint_results_close(struct um_hint_results *o)
{
	o->listener.report = NULL;
	for (int i = 0; i < UM_HINT_RESULTS_LANES; i++) {
		free(o->at[i]);
		o->at[i] = NULL;
	}
}

uint64_t um_hint_results_now(const struct um_hint_results *o)
{
	return o->gpu->api->now ? o->gpu->api->now(o->gpu) : um_clock_ns(CLOCK_MONOTONIC);
}

void um_hint_results_made(struct um_hint_results *o, struct um_hint_result *is, const struct um_issued_hint *hint)
{
	struct um_issued_hint whole = *hint;

	whole.op = is->op;
	whole.end = um_hint_results_now(o);
	*is = (struct um_hint_result){whole.op, whole.begin, whole.end, 1, whole.code};
	if (o->listener.issued)
		o->listener.issued(o->listener.user, &whole);
}

/* --- the op of a hint --------------------------------------------------------------------------------------------- */

/* Walks the iteration backwards, twice: by block, the next op that touches it. */
struct walk {
	const struct um_compiled_plan *p;
	const struct um_schedule *s;
	uint32_t *next; /* by block of the plan */
	int first; /* of all iterations */
};

static void touch(struct walk *w, uint64_t addr, uint64_t bytes, uint32_t op)
{
	for (size_t i = um_compiled_plan_find(w->p, addr & ~(UM_BLOCK_BYTES - 1));
	     i < w->p->blocks.n && w->p->blocks.at[i] < addr + bytes; i++)
		w->next[i] = op;
}

static void pass(struct walk *w, uint32_t op, uint32_t as)
{
	const struct um_sched_op *o = &w->s->ops.at[op];

	for (uint32_t i = o->first_use; i < o->first_use + o->n_uses; i++) {
		const struct um_sched_use *u = &w->s->uses.at[i];
		const struct um_slot *slot = &w->s->slots.at[u->slot];
		int elsewhere = w->first && as == op && um_compiled_plan_is_before(slot, op) &&
				um_compiled_plan_has_twin(w->s, u->slot);

		if (slot->place != UINT64_MAX)
			touch(w, (elsewhere ? slot->bound_addr : slot->place) + u->off, u->bytes, as);
	}
}

static uint32_t target(const struct walk *w, const struct um_action *a)
{
	uint32_t first = UINT32_MAX;

	for (size_t i = um_compiled_plan_find(w->p, a->addr);
	     i < w->p->blocks.n && w->p->blocks.at[i] < a->addr + a->bytes; i++)
		if (w->next[i] < first)
			first = w->next[i];
	return first;
}

uint32_t *um_hint_results_targets(const struct um_compiled_plan *p, const struct um_compiled_iteration *iteration,
				  const struct um_schedule *s)
{
	uint32_t *out = malloc((iteration->actions.n + 1) * sizeof *out);
	struct walk w = {p, s, malloc((p->blocks.n + 1) * sizeof *w.next), iteration == p->iterations};
	uint32_t n = p->n_ops;

	if (!out || !w.next) {
		free(out);
		free(w.next);
		return NULL;
	}
	for (size_t i = 0; i < p->blocks.n; i++)
		w.next[i] = UINT32_MAX;
	for (size_t i = 0; i < iteration->actions.n; i++)
		out[i] = UINT32_MAX;
	for (uint32_t op = n; op--;)
		pass(&w, op, n + op);
	for (uint32_t op = n; op--;) {
		pass(&w, op, op);
		for (uint32_t i = iteration->first[op]; i < iteration->actions.n && iteration->actions.at[i].at == op;
		     i++)
			if (iteration->actions.at[i].kind == UM_ACTION_PREFETCH)
				out[i] = target(&w, &iteration->actions.at[i]);
	}
	free(w.next);
	return out;
}
