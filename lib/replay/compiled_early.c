/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_early.c - moves ins to the op from which on all that they wait for is queued
 *
 * An op holds up the program until its ins are submitted. If each in were queued with the op that needs it, those of
 * several ops would be submitted one after the other.
 */
#include "replay/compiled_plan.h"

#include <errno.h>
#include <stdlib.h>

/* The lanes of an iteration, apart. */
struct lanes {
	UM_VEC(struct um_action) ins, outs, drops;
};

static int is_drop(const struct um_action *a)
{
	return a->kind != UM_ACTION_PREFETCH && a->kind != UM_ACTION_EVICT;
}

static int split(const struct um_compiled_iteration *p, struct lanes *to)
{
	if (um_vec_reserve(&to->ins, p->n_in) || um_vec_reserve(&to->outs, p->n_out) ||
	    um_vec_reserve(&to->drops, p->n_drop))
		return -ENOMEM;
	for (const struct um_action *a = p->actions.at, *end = a + p->actions.n; a < end; a++)
		if (is_drop(a))
			to->drops.at[to->drops.n++] = *a;
		else if (a->kind == UM_ACTION_EVICT)
			to->outs.at[to->outs.n++] = *a;
		else
			to->ins.at[to->ins.n++] = *a;
	return 0;
}

/* By slot: the first op at which the place of its tensor is known. Tensors that live on in the next iteration, in this
 * slot or in another one, take turns at several places: one that is not born yet may be born at any of them. A supplied
 * tensor is known when it is used. To be freed; NULL: out of memory. */
static uint32_t *find_placed(const struct um_schedule *s)
{
	uint32_t *placed = calloc(s->slots.n + 1, sizeof *placed), *successor = um_schedule_successors(s);

	for (size_t i = 0; placed && successor && i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];

		if (t->birth > 0 && (t->death <= t->birth || successor[i] != UM_NO_SLOT))
			placed[i] = (uint32_t)t->birth;
	}
	for (size_t op = s->ops.n; placed && successor && op--;) {
		const struct um_sched_use *u = &s->uses.at[s->ops.at[op].first_use];

		for (const struct um_sched_use *end = u + s->ops.at[op].n_uses; u < end; u++)
			if (s->slots.at[u->slot].flags & UM_SLOT_SUPPLIED)
				placed[u->slot] = (uint32_t)op;
	}
	if (!successor) {
		free(placed);
		return NULL;
	}
	free(successor);
	return placed;
}

/* The first op that an in may be issued before; `placed`: from which on its place is known. */
static uint32_t earliest(const struct um_action *a, const struct lanes *l, uint32_t placed)
{
	uint32_t at = placed;

	if (a->drops && l->drops.at[a->drops - 1].at > at)
		at = l->drops.at[a->drops - 1].at;
	if (a->room > 0 && l->outs.at[a->room - 1].at > at)
		at = l->outs.at[a->room - 1].at;
	return at;
}

/* Not past an op that may evict blocks by itself. */
static void advance(const struct um_schedule *s, const uint32_t *placed, struct lanes *l)
{
	uint32_t op = 0, least = 0;

	for (struct um_action *a = l->ins.at; a < l->ins.at + l->ins.n; a++) {
		uint32_t at = earliest(a, l, a->slot == UM_NO_SLOT ? 0 : placed[a->slot]);

		for (; op < a->at; op++)
			if (s->ops.at[op].paged || s->ops.at[op].stream == UM_STREAM_CPU)
				least = op + 1;
		least = at > least ? at : least;
		if (least >= a->at)
			continue;
		a->at = least;
		if (a->slot != UM_NO_SLOT && s->slots.at[a->slot].birth > (int32_t)least)
			a->slot = UM_NO_SLOT; /* at its planned place */
	}
}

/* At one op drops come first, and ins last: those may wait for what is queued with them. */
static void merge(struct um_compiled_iteration *p, uint32_t n_ops, const struct lanes *l)
{
	size_t in = 0, out = 0, drop = 0, n = 0;

	for (uint32_t op = 0; op <= n_ops; op++) {
		p->first[op] = (uint32_t)n;
		while (drop < l->drops.n && l->drops.at[drop].at == op)
			p->actions.at[n++] = l->drops.at[drop++];
		while (out < l->outs.n && l->outs.at[out].at == op)
			p->actions.at[n++] = l->outs.at[out++];
		while (in < l->ins.n && l->ins.at[in].at == op)
			p->actions.at[n++] = l->ins.at[in++];
	}
}

static int issue_early(struct um_compiled_iteration *p, const struct um_schedule *s, const uint32_t *placed)
{
	struct lanes l = {.ins = {0}};
	int err = split(p, &l);

	if (!err) {
		advance(s, placed, &l);
		merge(p, (uint32_t)s->ops.n, &l);
	}
	um_vec_fini(&l.ins);
	um_vec_fini(&l.outs);
	um_vec_fini(&l.drops);
	return err;
}

int um_compiled_plan_issue_early(struct um_compiled_plan *p, const struct um_plan *plan)
{
	uint32_t *placed = find_placed(&plan->sched);
	int err = placed ? 0 : -ENOMEM;

	for (int i = 1; i <= UM_COMPILED_PLAN_STEADY && !err; i++)
		if (p->iterations[i].first)
			err = issue_early(&p->iterations[i], &plan->sched, placed);
	free(placed);
	return err;
}
