/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan_launches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct birth {
	uint32_t slot, ord;
	int32_t at;
};

static int by_time(const void *a, const void *b)
{
	const struct birth *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->ord < y->ord ? -1 : x->ord > y->ord;
}

/* Births of the program in their order, with scratch slots in between. */
static int order_births(struct um_schedule *s)
{
	struct birth *b = malloc((s->slots.n + 1) * sizeof *b);
	uint32_t n = 0;

	if (!b || um_vec_reserve(&s->births, s->slots.n)) {
		free(b);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->births.n; i++, n++)
		b[n] = (struct birth){s->births.at[i], i, s->slots.at[s->births.at[i]].birth};
	for (uint32_t i = 0; i < s->slots.n; i++)
		if (s->slots.at[i].flags & UM_SLOT_SCRATCH) {
			b[n] = (struct birth){i, n, s->slots.at[i].birth};
			n++;
		}
	qsort(b, n, sizeof *b, by_time);
	for (uint32_t i = 0; i < n; i++) {
		s->births.at[i] = b[i].slot;
		s->slots.at[b[i].slot].born_ord = i;
	}
	s->births.n = n;
	free(b);
	return 0;
}

/* What a relaunch overwrites as a whole is dead since its last use. `last`: by slot: 1 + that use, 0 at first. */
static void declare_dead(struct um_schedule *s, uint32_t *last)
{
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];

		for (uint32_t u = op->first_use; op->again && u < op->first_use + op->n_uses; u++) {
			const struct um_sched_use *use = &s->uses.at[u];

			if (use->access == UM_WRITE && use->bytes == s->slots.at[use->slot].bytes && last[use->slot])
				s->uses.at[last[use->slot] - 1].dead_after = 1;
		}
		for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
			last[s->uses.at[u].slot] = u + 1;
	}
}

/* Nothing tells relaunches and scratch slots from others. */
static int unhide(struct um_schedule *s)
{
	uint32_t *last = calloc(s->slots.n + 1, sizeof *last);
	int err = last ? order_births(s) : -ENOMEM;

	if (!err)
		declare_dead(s, last);
	for (size_t i = 0; !err && i < s->ops.n; i++)
		s->ops.at[i].again = 0;
	for (size_t i = 0; !err && i < s->slots.n; i++)
		s->slots.at[i].flags &= ~(unsigned)UM_SLOT_SCRATCH;
	free(last);
	return err;
}

/* Times by launch, from those by op. */
static int take_times(struct um_plan_launches *l, const uint64_t *ns)
{
	const struct um_schedule *s = &l->unfolded.plan.sched;

	l->ns = malloc((s->ops.n + 1) * sizeof *l->ns);
	l->again = calloc(s->ops.n + 1, sizeof *l->again);
	if (!l->ns || !l->again)
		return -ENOMEM;
	for (size_t i = 0; i < s->ops.n; i++) {
		uint32_t again = s->ops.at[i].again;

		l->ns[i] = ns[l->unfolded.op[again ? again - 1 : i]];
		l->again[i] = again ? 1 + (uint32_t)l->unfolded.op[again - 1] : 0;
		l->core_ns += again ? 0 : l->ns[i];
	}
	return 0;
}

int um_plan_launches_build(struct um_plan_launches *l, const struct um_plan *p, const uint64_t *ns)
{
	int err;

	memset(l, 0, sizeof *l);
	err = um_plan_unfold(p, &l->unfolded, NULL, 0);
	if (err)
		return err;
	err = take_times(l, ns);
	if (!err)
		err = unhide(&l->unfolded.plan.sched);
	if (err)
		um_plan_launches_fini(l);
	return err;
}

void um_plan_launches_fini(struct um_plan_launches *l)
{
	um_unfolded_plan_fini(&l->unfolded);
	free(l->ns);
	free(l->again);
	memset(l, 0, sizeof *l);
}
