/* SPDX-License-Identifier: Apache-2.0
 *
 * recompute.c - searches for the number of gaps to drop
 *
 * A few prefixes of two orders are planned with little work, then others between them, around the best. The best ones
 * are planned with the usual work.
 */
#include "plan/recompute.h"

#include "plan/blocks.h"
#include "plan/bound.h"
#include "plan/paged.h"
#include "plan/rewrite.h"
#include "plan/scheme.h"
#include "plan/search.h"

#define ORDERS 2
#define NEAR 32 /* gaps that end within a 32nd of the iteration share relaunches */
#define SCRATCH_FROM (256ull << 10) /* an output that is there is written to scratch memory from this size on */
#define STEPS 3 /* halvings */
#define FINALISTS 2
#define OPS_PER_PART 128 /* the less a trial works, the longer the iteration is */
#define MOST_PARTS 8

/* The second one prefers cheap content to content that is away for long, and lets more return at once. */
static const struct {
	double power, burst; /* as in um_drops_rule */
} orders[ORDERS] = {{0.5, 0.3}, {0.1, 0.5}};

struct trial {
	int order;
	uint32_t n; /* gaps */
	uint64_t ns; /* predicted; UINT64_MAX: no sound plan */
};

struct recompute {
	const struct um_plan_request *r;
	const struct um_scheme *scheme; /* NULL: lookahead */
	struct um_plan *out;
	struct um_versions versions;
	struct um_drops drops[ORDERS];
	uint64_t *bytes[ORDERS]; /* by number of gaps: sum */
	struct um_rewrite_rule rule;
	UM_VEC(struct trial) trials; /* the fastest first */
	uint64_t rehearsed_ns; /* of the plan that was found */
};

/* Plans the iteration without the content of the first `n` gaps of an order. */
static int plan_prefix(struct recompute *c, int order, uint32_t n, const struct um_search_request *search,
		       struct um_rewritten *w)
{
	struct um_bound_link link = {c->out->budget, c->out->h2d, c->out->d2h};
	struct um_blocks blocks = {0};
	int err = um_rewrite_build(w, c->out, &c->versions, &c->drops[order], n, &c->rule), paged;

	if (err)
		return err;
	err = um_blocks_build(&blocks, &w->plan.sched, NULL);
	if (!err) {
		paged = um_paged_mark(&blocks, &w->plan.sched, c->out->budget / UM_BLOCK_BYTES);
		err = paged < 0 ? paged : paged ? 0 : um_bound_build(&blocks, &w->plan.sched, &link, &w->plan.bound_ns);
		w->plan.bound_ns = paged ? w->plan.in_core_ns : w->plan.bound_ns;
	}
	for (size_t i = 0; !err && i < w->plan.sched.ops.n; i++)
		if (w->plan.sched.ops.at[i].paged &&
		    (w->launch[i].again || !c->out->sched.ops.at[w->launch[i].op].paged))
			err = -EINVAL; /* it would page more than it does without relaunches */
	if (!err)
		err = c->scheme ? um_scheme_run(c->scheme, &blocks, c->r->profile, &w->plan, NULL, 0)
				: um_search_run(&blocks, search, &w->plan, NULL, 0);
	um_blocks_fini(&blocks);
	if (err)
		um_rewritten_fini(w);
	return err;
}

static int is_late(const struct recompute *c)
{
	const struct um_plan_effort *e = c->r->effort;

	return e && e->late && e->late(e->user);
}

static uint64_t all_bytes(const struct recompute *c, int order)
{
	return c->bytes[order][c->drops[order].n];
}

/* The number of gaps with about this share of the order's bytes. */
static uint32_t prefix_of(const struct recompute *c, int order, double share)
{
	uint32_t n = 0;

	while (n < c->drops[order].n && (double)c->bytes[order][n] < share * (double)all_bytes(c, order))
		n++;
	return n;
}

/* 0 or -ENOMEM. */
static int try_prefix(struct recompute *c, int order, double share)
{
	unsigned parts = (unsigned)(c->out->sched.ops.n / OPS_PER_PART);
	struct um_search_request search = {.part = parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS};
	struct trial t = {order, prefix_of(c, order, share), UINT64_MAX};
	struct um_rewritten w;
	size_t i;
	int err;

	for (i = 0; i < c->trials.n; i++)
		if (c->trials.at[i].order == order && c->trials.at[i].n == t.n)
			return 0;
	if (!t.n || is_late(c))
		return 0;
	err = plan_prefix(c, order, t.n, &search, &w);
	if (err == -ENOMEM)
		return err;
	if (!err) {
		t.ns = w.plan.predicted_ns;
		um_rewritten_fini(&w);
	}
	if (um_vec_push(&c->trials, t))
		return -ENOMEM;
	for (i = c->trials.n - 1; i && c->trials.at[i - 1].ns > t.ns; i--)
		c->trials.at[i] = c->trials.at[i - 1];
	c->trials.at[i] = t;
	return 0;
}

static int search_prefixes(struct recompute *c)
{
	static const double first[] = {0.15, 0.3, 0.5, 0.75, 1};
	double step = 0.1;
	int err = 0;

	for (int order = 0; order < ORDERS; order++)
		for (size_t i = 0; !err && i < sizeof first / sizeof *first; i++)
			err = try_prefix(c, order, first[i]);
	for (int i = 0; !err && c->trials.n && i < STEPS; i++, step /= 2) {
		int order = c->trials.at[0].order;
		double at = (double)c->bytes[order][c->trials.at[0].n] / (double)all_bytes(c, order);

		err = try_prefix(c, order, at - step);
		if (!err)
			err = try_prefix(c, order, at + step < 1 ? at + step : 1);
	}
	return err;
}

/* The time of a plan without recompute hints: rehearsed, or predicted. */
static int expected(const struct recompute *c, struct um_plan *p, uint64_t *ns)
{
	const struct um_plan_rehearsal *r = c->r->rehearsal;
	int err = 0;

	*ns = p->predicted_ns;
	if (!r)
		return 0;
	if (!p->start)
		err = um_plan_prove(p, NULL, NULL, 0);
	return err ? err : r->ns(r->user, p, ns);
}

/* Plans the best prefixes with the usual work; the fastest plan stays in `best`, if it is faster than the one without
 * relaunches. `*found`: there is one. */
static int plan_finalists(struct recompute *c, struct um_rewritten *best, int *found)
{
	struct um_search_request search = {.effort = c->r->effort, .rehearsal = c->r->rehearsal};
	uint64_t least = 0, ns = 0;
	int err = c->trials.n ? expected(c, c->out, &least) : 0;

	for (size_t i = 0; !err && i < c->trials.n && i < FINALISTS && c->trials.at[i].ns < UINT64_MAX; i++) {
		struct um_rewritten w;

		if (is_late(c) && i)
			break;
		err = plan_prefix(c, c->trials.at[i].order, c->trials.at[i].n, &search, &w);
		if (err == -EINVAL || err == -E2BIG) {
			err = 0;
			continue;
		}
		if (!err)
			err = expected(c, &w.plan, &ns);
		if (!err && ns < least) {
			if (*found)
				um_rewritten_fini(best);
			*best = w;
			*found = 1;
			least = ns;
			c->rehearsed_ns = c->r->rehearsal ? ns : 0;
		} else {
			um_rewritten_fini(&w);
		}
	}
	return err;
}

/* Replaces the plan, unless the proof fails. */
static int adopt(struct recompute *c, const struct um_rewritten *w, uint64_t *grow)
{
	struct um_plan *out = c->out;
	struct um_plan_figures f;
	struct um_plan swaps = *out;
	size_t slots = out->sched.slots.n;
	int err;

	memset(&out->hints, 0, sizeof out->hints);
	err = um_rewritten_fold(w, out);
	if (!err)
		err = um_plan_check(out, &f, NULL, 0);
	if (!err && f.ns < swaps.predicted_ns) {
		um_vec_fini(&swaps.hints);
		out->predicted_ns = f.ns;
		out->rehearsed_ns = c->rehearsed_ns;
		free(out->start); /* of the other one */
		out->start = NULL;
		out->remote = 0;
		*grow += w->scratch_bytes;
		return 0;
	}
	um_vec_fini(&out->hints);
	um_vec_fini(&out->scratch);
	memcpy(&out->hints, &swaps.hints, sizeof out->hints);
	out->sched.slots.n = slots;
	return err == -ENOMEM ? err : 0;
}

static int add_order(struct recompute *c, int order)
{
	const struct um_plan *p = c->out;
	struct um_drops_rule rule = {p->budget, orders[order].power, orders[order].burst, c->rule.near_ns,
				     c->r->in_place};
	struct um_drops *d = &c->drops[order];
	int err = um_drops_build(d, &c->versions, &rule);

	if (err)
		return err;
	c->bytes[order] = calloc(d->n + 1ull, sizeof **c->bytes);
	for (uint32_t i = 0; c->bytes[order] && i < d->n; i++)
		c->bytes[order][i + 1] = c->bytes[order][i] + d->at[i].bytes;
	return c->bytes[order] ? 0 : -ENOMEM;
}

static int init(struct recompute *c, uint64_t scratch_at, uint64_t near_ns)
{
	c->rule = (struct um_rewrite_rule){near_ns, c->r->in_place ? UINT64_MAX : SCRATCH_FROM, scratch_at};
	return um_versions_build(&c->versions, &c->out->sched);
}

static void fini(struct recompute *c)
{
	um_versions_fini(&c->versions);
	for (int i = 0; i < ORDERS; i++) {
		um_drops_fini(&c->drops[i]);
		free(c->bytes[i]);
	}
	um_vec_fini(&c->trials);
}

int um_recompute_scheme(const struct um_plan_request *r, const struct um_scheme *scheme, int had, struct um_plan *out,
			uint64_t *grow)
{
	struct recompute c = {.r = r, .out = out, .scheme = scheme};
	struct um_rewritten w;
	int err = init(&c, r->grow_at + *grow, 0);

	if (!err)
		err = scheme->drops(&c.versions, &c.drops[0]);
	if (!err && c.drops[0].n) {
		out->predicted_ns = had ? UINT64_MAX : out->predicted_ns;
		err = plan_prefix(&c, 0, c.drops[0].n, NULL, &w);
		if (!err) {
			err = adopt(&c, &w, grow);
			had = out->predicted_ns < UINT64_MAX ? 0 : had;
			um_rewritten_fini(&w);
		}
	}
	fini(&c);
	return err == -ENOMEM ? err : had;
}

int um_recompute_plan(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow)
{
	struct recompute c = {.r = r, .out = out};
	struct um_rewritten best;
	int found = 0, err;

	if (out->predicted_ns <= out->in_core_ns)
		return 0;
	err = init(&c, r->grow_at + *grow, out->in_core_ns / NEAR);
	for (int i = 0; !err && i < ORDERS; i++)
		err = add_order(&c, i);
	if (!err && c.drops[0].n + c.drops[1].n) {
		out->bound_ns = out->in_core_ns; /* the planner's covers copies only */
		err = search_prefixes(&c);
	}
	if (!err)
		err = plan_finalists(&c, &best, &found);
	if (!err && found)
		err = adopt(&c, &best, grow);
	if (found)
		um_rewritten_fini(&best);
	fini(&c);
	return err;
}
