/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_check.c - proves a plan sound, or names the first violation
 *
 * First the static rules: lifetimes, ranges, order. Then iterations run from a cold start until one ends in the state
 * in which it began; this steady iteration gives the figures and the verdict. Rounding can keep the engines' lag from
 * repeating to the nanosecond: two iterations that agree in everything else are accepted, and the longer one counts.
 */
#include "base/diag.h"
#include "model/plan_host.h"
#include "model/plan_run.h"
#include "model/plan_unfold.h"
#include "model/workspace.h"

#include <inttypes.h>

#define MOST_ITERATIONS 8

/* The carry must be a one-to-one renaming of the tensors that are alive when the next iteration begins. */
static int check_carry(const struct um_schedule *s, char *why, size_t size)
{
	uint8_t *taken = calloc(s->slots.n + 1, 1);
	int err = taken ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < s->slots.n; i++) {
		uint32_t from = s->slots.at[i].carry;

		if (from == UM_NO_SLOT)
			continue;
		if (from >= s->slots.n || taken[from] || s->slots.at[from].bytes != s->slots.at[i].bytes ||
		    !um_slot_alive_first(&s->slots.at[i]) || !um_slot_alive_last(&s->slots.at[from], (int32_t)s->ops.n))
			err = um_refuse(why, size,
					"slot %u cannot carry the tensor of slot %u from the previous iteration", i,
					from);
		else
			taken[from] = 1;
	}
	free(taken);
	return err;
}

static int check_slots(const struct um_schedule *s, char *why, size_t size)
{
	int32_t n = (int32_t)s->ops.n;

	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];

		if (!t->bytes || t->birth < -1 || t->birth > n || t->death < -1 || t->death > n ||
		    (t->birth >= 0 && t->death < 0))
			return um_refuse(why, size, "slot %zu: %" PRIu64 " bytes, birth %d, death %d of %d ops", i,
					 t->bytes, t->birth, t->death, n);
	}
	return 0;
}

static int inside(const struct um_slot *t, uint64_t off, uint64_t bytes)
{
	return bytes > 0 && off <= t->bytes && bytes <= t->bytes - off;
}

static int check_uses(const struct um_schedule *s, char *why, size_t size)
{
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];

		if (op->first_use > s->uses.n || op->n_uses > s->uses.n - op->first_use)
			return um_refuse(why, size, "op %zu '%s': its uses are out of range", i, op->name);
		if (op->n_ws && (op->first_ws > s->ws.n || op->n_ws > s->ws.n - op->first_ws))
			return um_refuse(why, size, "op %zu '%s': its workspaces are out of range", i, op->name);
		for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
			const struct um_sched_use *use = &s->uses.at[u];

			if (use->slot >= s->slots.n || !inside(&s->slots.at[use->slot], use->off, use->bytes))
				return um_refuse(why, size, "op %zu '%s': slot %u has no such range", i, op->name,
						 use->slot);
			if (!um_slot_alive_at(&s->slots.at[use->slot], (int32_t)i))
				return um_refuse(why, size, "op %zu '%s' uses slot %u, which is not alive", i, op->name,
						 use->slot);
		}
	}
	return 0;
}

/* Does a use write a range while it is advised read-mostly? `next`: by hint, plus one: the next hint on the same
 * slot. */
static int breaks(const struct um_plan *p, const size_t *next, size_t first, const struct um_sched_use *u)
{
	for (size_t i = first; i < p->hints.n; i = next[i]) {
		const struct um_hint *h = &p->hints.at[i];

		if (u->off < h->off + h->bytes && h->off < u->off + u->bytes)
			return 1;
	}
	return 0;
}

/* Read-mostly asserts that no op writes the range: a writing op would fault on every page. */
static int check_read_mostly(const struct um_plan *p, char *why, size_t size)
{
	size_t n = p->hints.n, any = 0, *first, *next;
	int err = 0;

	for (size_t i = 0; i < n; i++)
		any += p->hints.at[i].kind == UM_HINT_ADVISE && p->hints.at[i].advice == UM_ADVICE_READ_MOSTLY;
	if (!any)
		return 0;
	first = malloc((p->sched.slots.n + 1) * sizeof *first);
	next = malloc((n + 1) * sizeof *next);
	if (!first || !next)
		err = -ENOMEM;
	for (size_t s = 0; !err && s < p->sched.slots.n; s++)
		first[s] = n;
	for (size_t i = 0; !err && i < n; i++) {
		const struct um_hint *h = &p->hints.at[i];

		if (h->kind != UM_HINT_ADVISE || h->advice != UM_ADVICE_READ_MOSTLY)
			continue;
		next[i] = first[h->slot];
		first[h->slot] = i;
	}
	for (size_t i = 0; !err && i < p->sched.uses.n; i++) {
		const struct um_sched_use *u = &p->sched.uses.at[i];

		if (u->access & UM_WRITE && breaks(p, next, first[u->slot], u))
			err = um_refuse(why, size, "slot %u is advised read-mostly, but an op writes it", u->slot);
	}
	free(first);
	free(next);
	return err;
}

/* `*again`: there are recompute hints, which plan_unfold.c checks. */
static int check_hints(const struct um_plan *p, int *again, char *why, size_t size)
{
	int32_t last = 0;

	for (size_t i = 0; i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];
		const struct um_slot *t;

		if (h->at < last || h->at >= (int32_t)p->sched.ops.n)
			return um_refuse(why, size, "hint %zu: at %d, after a hint at %d of %zu ops", i, h->at, last,
					 p->sched.ops.n);
		last = h->at;
		if (h->after < -1 || h->after >= h->at)
			return um_refuse(why, size, "hint %zu at op %d waits for op %d", i, h->at, h->after);
		if (h->kind == UM_HINT_RECOMPUTE) {
			*again = 1;
			continue;
		}
		if (h->slot >= p->sched.slots.n || !inside(&p->sched.slots.at[h->slot], h->off, h->bytes))
			return um_refuse(why, size, "hint %zu at op %d: slot %u has no such range", i, h->at, h->slot);
		if (h->kind == UM_HINT_ADVISE)
			continue;
		t = &p->sched.slots.at[h->slot];
		if (t->flags & UM_SLOT_UNMANAGED)
			return um_refuse(why, size, "hint %zu at op %d: slot %u is not managed memory", i, h->at,
					 h->slot);
		/* An eviction while a predecessor of the same slot is alive would evict the predecessor. */
		if (!um_slot_alive_at(t, h->at) ||
		    (h->kind != UM_HINT_PREFETCH && t->birth >= 0 && t->death <= t->birth && h->at >= t->birth &&
		     h->after < t->death - 1))
			return um_refuse(why, size, "hint %zu at op %d: slot %u is not alive", i, h->at, h->slot);
	}
	return 0;
}

int um_schedule_check(const struct um_schedule *s, char *why, size_t size)
{
	int err;

	if (!s->ops.n || s->ops.n >= INT32_MAX / 4 || s->slots.n >= UM_NO_SLOT)
		return um_refuse(why, size, "%zu ops, %zu slots", s->ops.n, s->slots.n);
	err = check_slots(s, why, size);
	if (!err)
		err = check_uses(s, why, size);
	return err ? err : check_carry(s, why, size);
}

/* Equal within a few nanoseconds? */
static int settled(const struct um_plan_run *r, const struct um_plan_tally *last)
{
	uint64_t a = r->tally.ns, b = last->ns, d = a > b ? a - b : b - a;

	return d <= a / 10000 && r->tally.h2d_bytes == last->h2d_bytes && r->tally.d2h_bytes == last->d2h_bytes &&
	       !r->tally.unsound && !last->unsound && !memcmp(r->begun, r->state, r->atoms.n);
}

/* Runs to the steady state: 0 with its tally in r->tally, or -EINVAL. */
static int steady(struct um_plan_run *r, char *why, size_t size)
{
	struct um_plan_tally last = {0};

	for (int i = 0; i < MOST_ITERATIONS; i++) {
		um_plan_run_iteration(r);
		if (r->tally.stuck || (r->repeats && r->tally.unsound))
			return um_refuse(why, size, "%s", r->tally.why);
		if (r->repeats)
			return 0;
		if (i && settled(r, &last)) {
			if (last.ns > r->tally.ns)
				r->tally.ns = last.ns;
			return 0;
		}
		last = r->tally;
	}
	if (r->tally.unsound)
		return um_refuse(why, size, "%s", r->tally.why);
	return um_refuse(why, size, "not steady after %d iterations", MOST_ITERATIONS);
}

/* A plan without recompute hints. `start`: by op. */
static int run(const struct um_plan *p, struct um_plan_figures *figures, uint64_t *start, char *why, size_t size)
{
	struct um_plan_run r;
	uint64_t compute = 0, again = 0, slower = 0;
	int err = check_read_mostly(p, why, size);

	if (err)
		return err;
	err = um_plan_run_init(&r, p);
	if (err)
		return err;
	r.start = start;
	if (r.host_resident)
		err = um_host_resident_check(p, r.host_resident, why, size);
	if (!err)
		err = steady(&r, why, size);
	for (size_t i = 0; i < p->sched.ops.n; i++) {
		*(p->sched.ops.at[i].again ? &again : &compute) += p->sched.ops.at[i].ns;
		slower += um_workspace_slower_ns(&p->sched, &p->sched.ops.at[i]);
	}
	if (!err)
		*figures = (struct um_plan_figures){
			.ns = r.tally.ns,
			.again_ns = again,
			.slower_ns = slower,
			.stall_ns = r.tally.ns - again - compute,
			.h2d_bytes = r.tally.h2d_bytes,
			.d2h_bytes = r.tally.d2h_bytes,
			.peak_bytes = r.tally.peak_bytes,
		};
	um_plan_run_fini(&r);
	return err;
}

static int run_unfolded(const struct um_plan *p, struct um_plan_figures *figures, uint64_t *start, char *why,
			size_t size)
{
	struct um_unfolded_plan u;
	uint64_t *all; /* by launch */
	int err = um_plan_unfold(p, &u, why, size);

	if (err)
		return err;
	all = malloc((u.plan.sched.ops.n + 1) * sizeof *all);
	err = all ? run(&u.plan, figures, all, why, size) : -ENOMEM;
	for (size_t i = 0; !err && start && i < p->sched.ops.n; i++)
		start[i] = all[u.launch[i]];
	free(all);
	um_unfolded_plan_fini(&u);
	return err;
}

static int check(const struct um_plan *p, struct um_plan_figures *figures, uint64_t *start, char *why, size_t size)
{
	struct um_plan_figures f;
	int err = um_schedule_check(&p->sched, why, size), again = 0;

	if (!err)
		err = um_workspace_check(&p->sched, why, size);
	if (!err && (p->hints.n >= UINT32_MAX || !p->h2d || !p->d2h))
		err = um_refuse(why, size, "%zu hints, %" PRIu64 " and %" PRIu64 " bytes/s", p->hints.n, p->h2d,
				p->d2h);
	if (!err)
		err = check_hints(p, &again, why, size);
	if (!err)
		err = again ? run_unfolded(p, &f, start, why, size) : run(p, &f, start, why, size);
	if (!err)
		err = um_plan_host_bytes(p, &f.host_bytes);
	if (!err && figures)
		*figures = f;
	if (!err && p->host_budget && f.host_bytes > p->host_budget)
		err = um_refuse(why, size, "%" PRIu64 " bytes of host memory for evicted blocks, %" PRIu64 " allowed",
				f.host_bytes, p->host_budget);
	return err;
}

int um_plan_check(const struct um_plan *p, struct um_plan_figures *figures, char *why, size_t size)
{
	return check(p, figures, NULL, why, size);
}

int um_plan_prove(struct um_plan *p, struct um_plan_figures *figures, char *why, size_t size)
{
	struct um_plan_figures f = {0};
	size_t n = p->sched.ops.n;
	int err;

	if (!p->start)
		p->start = malloc((n + 1) * sizeof *p->start);
	if (!p->start)
		return -ENOMEM;
	err = check(p, &f, p->start, why, size);
	if (figures)
		*figures = f;
	if (err) {
		free(p->start);
		p->start = NULL;
		return err;
	}
	p->start[n] = p->start[0] + f.ns;
	return 0;
}
