/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_content.c - labels of content
 */
#include "model/plan_content.h"

#include "model/plan_run_state.h"
#include "model/plan_unfold.h"

#include <inttypes.h>

static struct um_atom_range atoms_of(const struct um_plan_run *r, uint32_t use)
{
	return r->atoms.use[use];
}

/* Links the uses of a relaunch with those of its op, and reserves labels for what that reads. Returns the number of
 * labels. */
static size_t link_uses(struct um_plan_run *r, const struct um_sched_op *relaunch, size_t n)
{
	const struct um_schedule *s = &r->plan->sched;
	const struct um_sched_op *op = &s->ops.at[relaunch->again - 1];
	struct um_plan_content *c = r->content;
	uint32_t mine = relaunch->first_use;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		uint32_t access = um_relaunch_access(s, op, &s->uses.at[u]);

		if (access)
			c->origin[mine++] = u;
		if (!(access & UM_READ) || c->read_at[u] != SIZE_MAX)
			continue;
		c->read_at[u] = n;
		n += atoms_of(r, u).hi - atoms_of(r, u).lo;
	}
	return n;
}

int um_plan_content_init(struct um_plan_run *r)
{
	const struct um_schedule *s = &r->plan->sched;
	struct um_plan_content *c;
	size_t n = 0, any = 0;

	for (size_t i = 0; i < s->ops.n && !any; i++)
		any = s->ops.at[i].again;
	if (!any)
		return 0;
	c = r->content = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->have = calloc(r->atoms.n + 1ull, sizeof *c->have);
	c->want = calloc(r->atoms.n + 1ull, sizeof *c->want);
	c->origin = calloc(s->uses.n + 1, sizeof *c->origin);
	c->read_at = malloc((s->uses.n + 1) * sizeof *c->read_at);
	if (!c->have || !c->want || !c->origin || !c->read_at)
		return -ENOMEM;
	for (size_t i = 0; i < s->uses.n; i++)
		c->read_at[i] = SIZE_MAX;
	for (size_t i = 0; i < s->ops.n; i++)
		if (s->ops.at[i].again)
			n = link_uses(r, &s->ops.at[i], n);
	c->read = calloc(n + 1, sizeof *c->read);
	return c->read ? 0 : -ENOMEM;
}

void um_plan_content_fini(struct um_plan_content *c)
{
	if (!c)
		return;
	free(c->have);
	free(c->want);
	free(c->origin);
	free(c->read_at);
	free(c->read);
	free(c);
}

void um_plan_content_begin(struct um_plan_run *r)
{
	for (uint32_t i = 0; i < r->atoms.n; i++) {
		int live = r->state[i] & UM_ATOM_LIVE, lost = r->state[i] & UM_ATOM_LOST;

		r->content->want[i] = live || lost ? UM_CONTENT_OLDER : UM_CONTENT_NONE;
		r->content->have[i] = lost ? UM_CONTENT_NONE : r->content->want[i];
	}
}

void um_plan_content_drop(struct um_plan_run *r, uint32_t lo, uint32_t hi, int freed)
{
	for (uint32_t i = lo; i < hi; i++) {
		r->content->have[i] = UM_CONTENT_NONE;
		if (freed)
			r->content->want[i] = UM_CONTENT_NONE;
	}
}

/* Saves the labels that an op of the program reads. */
static void save_reads(struct um_plan_run *r, const struct um_sched_op *op)
{
	struct um_plan_content *c = r->content;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		struct um_atom_range a = atoms_of(r, u);

		if (c->read_at[u] != SIZE_MAX)
			memcpy(c->read + c->read_at[u], c->have + a.lo, (a.hi - a.lo) * sizeof *c->read);
	}
}

/* A relaunch must find what its op found. */
static void check_reads(struct um_plan_run *r, const struct um_sched_op *op)
{
	const struct um_plan_content *c = r->content;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		struct um_atom_range a = atoms_of(r, u);
		uint64_t other = 0;

		if (!(r->how[u] & UM_USE_READS))
			continue;
		for (uint32_t i = a.lo; i < a.hi; i++)
			if (!c->have[i] || c->have[i] != c->read[c->read_at[c->origin[u]] + (i - a.lo)])
				other += r->atoms.bytes[i];
		if (other)
			um_plan_run_note(
				r, " reads %" PRIu64 " bytes of slot %u whose content is not that of the first time",
				other, r->plan->sched.uses.at[u].slot);
	}
}

static void write_labels(struct um_plan_run *r, const struct um_sched_op *op)
{
	struct um_plan_content *c = r->content;
	uint32_t label = (op->again ? op->again - 1 : (uint32_t)r->pos) + 2;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		struct um_atom_range a = atoms_of(r, u);
		int scratch = (um_plan_run_slot(r, r->plan->sched.uses.at[u].slot)->flags & UM_SLOT_SCRATCH) != 0;

		for (uint32_t i = a.lo; r->how[u] & UM_USE_WRITES && i < a.hi; i++) {
			c->have[i] = label;
			if (!op->again || scratch)
				c->want[i] = label;
			if (c->have[i] != c->want[i])
				r->state[i] |= UM_ATOM_LOST;
		}
	}
}

void um_plan_content_launch(struct um_plan_run *r)
{
	const struct um_schedule *s = &r->plan->sched;
	const struct um_sched_op *op = &s->ops.at[r->pos];

	if (op->again)
		check_reads(r, op);
	else
		save_reads(r, op);
	write_labels(r, op);
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		if (r->how[u] & UM_USE_DEAD)
			um_plan_content_drop(r, r->atoms.first[s->uses.at[u].slot],
					     r->atoms.first[s->uses.at[u].slot + 1], 1);
}
