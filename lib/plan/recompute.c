/* SPDX-License-Identifier: Apache-2.0
 *
 * recompute.c - searches for the gaps to drop
 *
 * A set of gaps is judged by an estimate of the rewritten iteration's time. Prefixes of several orders are estimated
 * first, then those around the best one. Then single gaps are added to it or removed, those near its end first, and
 * gaps are replaced by others. A set whose ops and relaunches alone take as long as the best one is not estimated. The
 * best sets are planned with the usual work.
 */
#include "plan/recompute.h"

#include "plan/blocks.h"
#include "plan/bound.h"
#include "plan/drop_pool.h"
#include "plan/paged.h"
#include "plan/rewrite.h"
#include "plan/scheme.h"
#include "plan/search.h"

#include <math.h>

#define NEAR 32 /* gaps that end within a 32nd of the iteration share relaunches */
#define SCRATCH_FROM (256ull << 10) /* an output that is there is written to scratch memory from this size on */
#define STEPS 3 /* halvings */
#define KEPT 8 /* sets */
#define OPS_PER_PART 400 /* the longer the iteration is, the fewer sets are planned, with less work */
#define FINALISTS 2 /* at least */
#define ROUNDS 6 /* of an estimate */
#define WORK 5000000ull /* of all estimates, about touches */
#define WORK_OF_FEW 24000000ull /* up to 1,900 ops, then less: some 100 ms */
#define WORK_OF_FEW_PER_OP 10000ull
#define FEWEST 24 /* estimates that the work suffices for at least */

/* As in um_drops_rule. The second one prefers cheap content to content that is away for long, and lets more return at
 * once; the third one prefers content that is away for long. */
static const struct {
	double power, burst;
} orders[] = {{0.5, 0.3}, {0.1, 0.5}, {1, 0.3}, {0.2, 0.3}};

#define ORDERS (sizeof orders / sizeof *orders)

struct trial {
	uint8_t *in; /* by gap of the pool: it is dropped */
	uint64_t ns; /* estimated, then predicted; UINT64_MAX: none */
	size_t order; /* of a prefix; and its gaps */
	uint32_t n;
};

struct recompute {
	const struct um_plan_request *r;
	const struct um_scheme *scheme; /* NULL: lookahead */
	struct um_plan *out;
	struct um_versions versions;
	struct um_drop_pool pool;
	struct um_drops chosen; /* of the set at hand; borrows `shared` */
	struct um_rewrite_rule rule;
	struct trial best[KEPT]; /* the fastest first */
	uint8_t *in; /* by gap: the set at hand */
	uint64_t work, most; /* of estimates: done; at most, 0: not known yet */
	uint64_t rehearsed_ns; /* of the plan that was found */
};

static unsigned parts_of(const struct recompute *c)
{
	return 1 + (unsigned)(c->out->sched.ops.n / OPS_PER_PART);
}

/* --- one set of gaps ---------------------------------------------------------------------------------------------- */

/* The blocks of a rewritten iteration. Frees it if it pages more ops. */
static int build_blocks(struct recompute *c, struct um_rewritten *w, struct um_blocks *blocks, int *paged)
{
	int err;

	memset(blocks, 0, sizeof *blocks);
	err = um_blocks_build(blocks, &w->plan.sched, NULL);
	if (!err) {
		*paged = um_paged_mark(blocks, &w->plan.sched, c->out->budget / UM_BLOCK_BYTES);
		err = *paged < 0 ? *paged : 0;
	}
	for (size_t i = 0; !err && i < w->plan.sched.ops.n; i++)
		if (w->plan.sched.ops.at[i].paged &&
		    (w->launch[i].again || !c->out->sched.ops.at[w->launch[i].op].paged))
			err = -EINVAL; /* it would page more than it does without relaunches */
	if (err) {
		um_blocks_fini(blocks);
		um_rewritten_fini(w);
	}
	return err;
}

/* Plans the iteration without the content of the first `n` gaps. */
static int plan_gaps(struct recompute *c, const struct um_drops *drops, uint32_t n,
		     const struct um_search_request *search, struct um_rewritten *w)
{
	struct um_bound_link link = {c->out->budget, c->out->h2d, c->out->d2h};
	struct um_blocks blocks;
	int paged, err = um_rewrite_build(w, c->out, &c->versions, drops, n, &c->rule);

	if (!err)
		err = build_blocks(c, w, &blocks, &paged);
	if (err)
		return err;
	w->plan.bound_ns = w->plan.in_core_ns;
	if (!paged)
		err = um_bound_build(&blocks, &w->plan.sched, &link, &w->plan.bound_ns);
	if (!err)
		err = c->scheme ? um_scheme_run(c->scheme, &blocks, c->r->profile, &w->plan, NULL, 0)
				: um_search_run(&blocks, search, &w->plan, NULL, 0);
	um_blocks_fini(&blocks);
	if (err)
		um_rewritten_fini(w);
	return err;
}

/* Lists the gaps of a set in c->chosen. */
static uint32_t choose(struct recompute *c, const uint8_t *in)
{
	c->chosen.n = 0;
	for (uint32_t i = 0; i < c->pool.all.n; i++)
		if (in[i])
			c->chosen.at[c->chosen.n++] = c->pool.all.at[i];
	return c->chosen.n;
}

static int is_late(const struct recompute *c)
{
	const struct um_plan_effort *e = c->r->effort;

	return e && e->late && e->late(e->user);
}

static int is_over(const struct recompute *c)
{
	return (c->most && c->work >= c->most) || is_late(c);
}

/* Sets that are slower than this are not planned. */
static uint64_t slowest(const struct recompute *c)
{
	size_t n = KEPT / parts_of(c);

	return c->best[(n < FINALISTS ? FINALISTS : n) - 1].ns;
}

static uint64_t work_for(const struct recompute *c, uint64_t least)
{
	uint64_t less = WORK_OF_FEW_PER_OP * c->out->sched.ops.n;

	if (least < WORK)
		least = WORK;
	return least + less < WORK_OF_FEW ? WORK_OF_FEW - less : least;
}

/* Estimates c->in. `*ns`: UINT64_MAX if there is no plan, or if ops and relaunches alone take `limit`. 0 or
 * -ENOMEM. */
static int estimate(struct recompute *c, uint64_t limit, uint64_t *ns)
{
	struct um_rewritten w;
	struct um_blocks blocks;
	int paged, err = um_rewrite_build(&w, c->out, &c->versions, &c->chosen, choose(c, c->in), &c->rule);

	*ns = UINT64_MAX;
	c->work += 4 * c->out->sched.ops.n;
	if (!err && w.plan.in_core_ns >= limit) {
		um_rewritten_fini(&w);
		return 0;
	}
	err = err ? err : build_blocks(c, &w, &blocks, &paged);
	if (!err) {
		uint64_t round = blocks.n_touches + 20ull * w.plan.sched.ops.n;

		if (!c->most)
			c->most = work_for(c, FEWEST * ROUNDS * round);
		c->work += round;
		err = um_search_estimate(&blocks, &w.plan, ROUNDS, limit, ns, &c->work);
		um_blocks_fini(&blocks);
		um_rewritten_fini(&w);
	}
	return err == -ENOMEM ? err : 0;
}

/* --- search ------------------------------------------------------------------------------------------------------- */

/* The number of gaps with about this share of the order's bytes. */
static uint32_t prefix_of(const struct um_drop_order *o, double share)
{
	uint32_t n = 0;

	while (n < o->n && (double)o->bytes[n] < share * (double)o->bytes[o->n])
		n++;
	return n;
}

/* Keeps c->in if it is among the best. */
static void keep(struct recompute *c, struct trial t)
{
	size_t i;

	/* orders may begin alike */
	for (i = 0; i < KEPT && c->best[i].ns < UINT64_MAX; i++)
		if (c->best[i].ns == t.ns && memcmp(c->best[i].in, c->in, c->pool.all.n) == 0)
			return;
	i = KEPT - 1;
	if (t.ns >= c->best[i].ns)
		return;
	t.in = c->best[i].in;
	memcpy(t.in, c->in, c->pool.all.n);
	for (; i && c->best[i - 1].ns > t.ns; i--)
		c->best[i] = c->best[i - 1];
	c->best[i] = t;
}

/* 0 or -ENOMEM. */
static int try_prefix(struct recompute *c, size_t order, double share)
{
	const struct um_drop_order *o = &c->pool.order[order];
	uint32_t n = prefix_of(o, share);
	uint64_t ns;
	int err;

	if (!n || is_over(c))
		return 0;
	for (size_t i = 0; i < KEPT && c->best[i].ns < UINT64_MAX; i++)
		if (c->best[i].order == order && c->best[i].n == n)
			return 0;
	memset(c->in, 0, c->pool.all.n);
	for (uint32_t i = 0; i < n; i++)
		c->in[o->at[i]] = 1;
	err = estimate(c, slowest(c), &ns);
	if (!err)
		keep(c, (struct trial){.ns = ns, .order = order, .n = n});
	return err;
}

static int search_prefixes(struct recompute *c)
{
	static const double first[] = {0.15, 0.3, 0.5, 0.75, 1};
	double step = 0.1;
	int err = 0;

	for (size_t order = 0; order < ORDERS; order++)
		for (size_t i = 0; !err && i < sizeof first / sizeof *first; i++)
			err = try_prefix(c, order, first[i]);
	for (int i = 0; !err && c->best[0].ns < UINT64_MAX && i < STEPS; i++, step /= 2) {
		size_t order = c->best[0].order;
		const struct um_drop_order *o = &c->pool.order[order];
		double at = (double)o->bytes[c->best[0].n] / (double)o->bytes[o->n];

		err = try_prefix(c, order, at - step);
		if (!err)
			err = try_prefix(c, order, at + step < 1 ? at + step : 1);
	}
	return err;
}

/* The gaps in the order in which they are tried: from the end of the best prefix on, in both directions; then those of
 * other orders. */
static void list_gaps(const struct recompute *c, uint32_t *list)
{
	const struct um_drop_order *o = &c->pool.order[c->best[0].order];
	uint32_t below = c->best[0].n, above = below, n = 0;

	memset(c->in, 0, c->pool.all.n);
	while (below || above < o->n) {
		if (above < o->n)
			list[n++] = o->at[above++];
		if (below)
			list[n++] = o->at[--below];
	}
	for (uint32_t i = 0; i < n; i++)
		c->in[list[i]] = 1;
	for (uint32_t i = 0; i < c->pool.all.n; i++)
		if (!c->in[i])
			list[n++] = i;
}

/* Adds or removes one gap, or two of them. Goes back unless the estimate is below `*best`, which becomes that. */
static int flip(struct recompute *c, uint32_t a, uint32_t b, uint64_t *best)
{
	uint64_t ns;
	int err, worse;

	c->in[a] ^= 1;
	c->in[b] ^= a != b;
	err = estimate(c, *best, &ns);
	worse = err || ns >= *best;
	*best = worse ? *best : ns;
	c->in[a] ^= worse;
	c->in[b] ^= worse && a != b;
	return err;
}

static int flip_singles(struct recompute *c, const uint32_t *list, uint64_t *best)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < c->pool.all.n && !is_over(c); i++)
		err = flip(c, list[i], list[i], best);
	return err;
}

/* Replaces gaps by others. Ends after a gap for which that is better: then single gaps are tried again, which are
 * fewer. */
static int flip_pairs(struct recompute *c, const uint32_t *list, uint64_t *best)
{
	uint64_t before = *best;
	int err = 0;

	for (uint32_t i = 0; !err && *best == before && i < c->pool.all.n; i++)
		for (uint32_t k = i + 1; !err && k < c->pool.all.n && !is_over(c); k++)
			if (c->in[list[i]] != c->in[list[k]])
				err = flip(c, list[i], list[k], best);
	return err;
}

/* Changes the best set as long as that is better. */
static int search_gaps(struct recompute *c)
{
	uint32_t *list = malloc((c->pool.all.n + 1ull) * sizeof *list);
	struct trial t = c->best[0];
	uint64_t before = UINT64_MAX;
	int err = list ? 0 : -ENOMEM;

	if (!err) {
		list_gaps(c, list);
		memcpy(c->in, t.in, c->pool.all.n);
	}
	while (!err && t.ns < before) {
		before = t.ns;
		err = flip_singles(c, list, &t.ns);
		if (!err && t.ns == before)
			err = flip_pairs(c, list, &t.ns);
	}
	if (!err)
		keep(c, t);
	free(list);
	return err;
}

/* --- the best plan ------------------------------------------------------------------------------------------------ */

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

/* Plans the best sets with the usual work. The plan with the least product of the predicted and the rehearsed time
 * stays in `best`, if it is faster than the one without relaunches. `*found`: there is one. */
static int plan_finalists(struct recompute *c, struct um_rewritten *best, int *found)
{
	struct um_search_request search = {.effort = c->r->effort, .rehearsal = c->r->rehearsal, .learn = 1};
	size_t most = KEPT / 2 / parts_of(c) < FINALISTS ? FINALISTS : KEPT / 2 / parts_of(c);
	double least = HUGE_VAL, value;
	uint64_t swaps_ns = 0, ns = 0;
	int err = c->best[0].ns < UINT64_MAX ? expected(c, c->out, &swaps_ns) : 0;

	for (size_t i = 0; !err && i < most && c->best[i].ns < UINT64_MAX; i++) {
		struct um_rewritten w;

		if (i && is_late(c))
			break;
		err = plan_gaps(c, &c->chosen, choose(c, c->best[i].in), &search, &w);
		if (err == -EINVAL || err == -E2BIG) {
			err = 0;
			continue;
		}
		if (!err)
			err = expected(c, &w.plan, &ns);
		value = (double)w.plan.predicted_ns * (double)ns;
		if (!err && ns < swaps_ns && value < least) {
			if (*found)
				um_rewritten_fini(best);
			*best = w;
			*found = 1;
			least = value;
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

static int make_pool(struct recompute *c)
{
	struct um_drops_rule rule[ORDERS];
	int err;

	for (size_t i = 0; i < ORDERS; i++)
		rule[i] = (struct um_drops_rule){c->out->budget, orders[i].power, orders[i].burst, c->rule.near_ns,
						 c->r->in_place};
	err = um_drop_pool_build(&c->pool, &c->versions, rule, ORDERS);
	if (err)
		return err;
	c->chosen.at = malloc((c->pool.all.n + 1ull) * sizeof *c->chosen.at);
	c->chosen.shared = c->pool.all.shared;
	c->in = malloc(c->pool.all.n + 1ull);
	err = c->chosen.at && c->in ? 0 : -ENOMEM;
	for (size_t i = 0; i < KEPT; i++) {
		c->best[i].in = malloc(c->pool.all.n + 1ull);
		err = c->best[i].in ? err : -ENOMEM;
	}
	return err;
}

static int init(struct recompute *c, uint64_t scratch_at, uint64_t near_ns)
{
	c->rule = (struct um_rewrite_rule){near_ns, c->r->in_place ? UINT64_MAX : SCRATCH_FROM, scratch_at};
	return um_versions_build(&c->versions, &c->out->sched);
}

static void fini(struct recompute *c)
{
	um_versions_fini(&c->versions);
	um_drop_pool_fini(&c->pool);
	free(c->chosen.at);
	free(c->in);
	for (size_t i = 0; i < KEPT; i++)
		free(c->best[i].in);
}

int um_recompute_scheme(const struct um_plan_request *r, const struct um_scheme *scheme, int had, struct um_plan *out,
			uint64_t *grow)
{
	struct recompute c = {.r = r, .out = out, .scheme = scheme};
	struct um_drops drops = {0};
	struct um_rewritten w;
	int err = init(&c, r->grow_at + *grow, 0);

	if (!err)
		err = scheme->drops(&c.versions, out, r->profile, &drops);
	if (!err && drops.n) {
		out->predicted_ns = had ? UINT64_MAX : out->predicted_ns;
		err = plan_gaps(&c, &drops, drops.n, NULL, &w);
		if (!err) {
			err = adopt(&c, &w, grow);
			had = out->predicted_ns < UINT64_MAX ? 0 : had;
			um_rewritten_fini(&w);
		}
	}
	um_drops_fini(&drops);
	fini(&c);
	return err == -ENOMEM ? err : had;
}

static int by_ns(const void *a, const void *b)
{
	const struct trial *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Replaces the estimates of short iterations, which cost little to plan, by predictions. */
static int plan_kept(struct recompute *c)
{
	unsigned parts = parts_of(c);
	struct um_search_request search = {.part = 2 * parts, .learn = 1};
	size_t n = KEPT / parts;
	int err = 0;

	if (n <= FINALISTS)
		return 0;
	for (size_t i = n; i < KEPT; i++)
		c->best[i].ns = UINT64_MAX;
	for (size_t i = 0; !err && i < n && c->best[i].ns < UINT64_MAX && !is_late(c); i++) {
		struct um_rewritten w;

		err = plan_gaps(c, &c->chosen, choose(c, c->best[i].in), &search, &w);
		c->best[i].ns = err ? UINT64_MAX : w.plan.predicted_ns;
		if (!err)
			um_rewritten_fini(&w);
		err = err == -ENOMEM ? err : 0;
	}
	qsort(c->best, KEPT, sizeof *c->best, by_ns);
	return err;
}

static int search(struct recompute *c)
{
	int err;

	for (size_t i = 0; i < KEPT; i++)
		c->best[i].ns = UINT64_MAX;
	err = search_prefixes(c);
	if (!err && c->best[0].ns < UINT64_MAX)
		err = search_gaps(c);
	return err ? err : plan_kept(c);
}

int um_recompute_plan(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow)
{
	struct recompute c = {.r = r, .out = out};
	struct um_rewritten best;
	int found = 0, err;

	if (out->predicted_ns <= out->in_core_ns)
		return 0;
	err = init(&c, r->grow_at + *grow, out->in_core_ns / NEAR);
	if (!err)
		err = make_pool(&c);
	if (!err && c.pool.all.n) {
		out->bound_ns = out->in_core_ns; /* the planner's covers copies only */
		err = search(&c);
		if (!err)
			err = plan_finalists(&c, &best, &found);
	}
	if (!err && found)
		err = adopt(&c, &best, grow);
	if (found)
		um_rewritten_fini(&best);
	fini(&c);
	return err;
}
