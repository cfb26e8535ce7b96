/* SPDX-License-Identifier: Apache-2.0
 *
 * search_seeds.c - initial plans from published schemes
 *
 * Published schemes make a plan, and our own choice then begins with their gaps: each is better than the others for
 * some workload. AutoSwap's scores (Zhang et al. 2019) are tried one by one and then weighted, as in the paper, with a
 * part of the search's work.
 */
#include "plan/return_deadlines.h"
#include "plan/scheme.h"
#include "plan/search_state.h"
#include "plan/choose_tensors.h"

/* Cheap schemes, and the longest gaps. */
static const struct um_scheme others[] = {
	{"wdoa", UM_AUTOSWAP_WDOA, 0, um_scheme_autoswap, NULL},
	{"spare", 0, 0, um_choose_tensors, NULL},
	{"swdoa", UM_AUTOSWAP_SWDOA, 0, um_scheme_autoswap, NULL},
	{"aoa", UM_AUTOSWAP_AOA, 0, um_scheme_autoswap, NULL},
	{"doa", UM_AUTOSWAP_DOA, 0, um_scheme_autoswap, NULL},
};

static const struct um_scheme combined = {"combined", UM_AUTOSWAP_COMBINED, 0, um_scheme_autoswap, NULL};

#define N_OTHERS (sizeof others / sizeof *others)
#define MOST_SCHEME_OPS 8000 /* their time is quadratic */
#define MOST_WEIGHTS 30 /* as in the paper */
#define MERGE 4 /* maximum number of blocks in a hint */

/* Runs one scheme; hints into `out`, if any. `*too_short`: as in um_search_apply. -E2BIG: the scheme has no result. */
static int run_once(struct um_search *s, const struct um_scheme *scheme, const double *weight, struct um_plan *out,
		    uint32_t merge, uint32_t *too_short)
{
	struct um_scheme_input c = {
		.b = s->b,
		.sched = &s->out->sched,
		.clock = s->clock,
		.carry = {{s->out->budget, s->out->h2d, s->out->d2h, 1, s->copies}, s->capacity, merge, NULL},
		.value = -1};
	struct um_scheme_result a;
	struct um_timeline line = {0};
	int err = um_scheme_result_init(&a, s->b, s->keep_resident);

	if (err)
		return err;
	if (weight)
		memcpy(c.weight, weight, sizeof c.weight);
	err = scheme->choose(&c, scheme->mode, &a);
	um_choice_settle(&a.choice, s->b);
	c.carry.not_before = a.not_before;
	if (!err && scheme->choose == um_choose_tensors)
		err = um_return_deadlines_build(s->b, &a.choice, s->start, s->out->h2d, a.not_before);
	if (!err)
		err = um_lower_plan(s->b, c.sched, &a.choice, &c.carry, &line, out);
	*too_short = line.too_short;
	s->estimate = line.ns;
	memcpy(s->evicted, a.choice.evicted, s->b->n_visits);
	s->work += (out ? 2 : 1) * um_search_round(s);
	um_timeline_fini(&line);
	um_scheme_result_fini(&a);
	return err;
}

static int ask(struct um_search *s, const struct um_scheme *scheme, const double *weight, struct um_plan *out,
	       uint32_t merge)
{
	uint32_t too_short = 1;
	int err = 0;

	memset(s->keep_resident, 0, s->b->n_visits);
	for (int i = 0; !err && too_short && i < UM_SEARCH_ROUNDS; i++)
		err = run_once(s, scheme, weight, out, merge, &too_short);
	return err;
}

/* The resulting plan, and one of our own that begins with the same choice. */
static int adopt(struct um_search *s)
{
	int64_t iteration_ns = (int64_t)s->clock[s->b->n_ops];
	int err = 0;

	for (uint32_t v = 0; v < s->b->n_visits; v++)
		s->penalty[v] = s->evicted[v] ? -2 * iteration_ns : 0;
	if (um_search_is_near(s, s->estimate - s->estimate / 256))
		err = um_search_judge(s, NULL);
	if (!err && s->estimate < s->best_ns + s->best_ns / 8)
		err = um_search_try(s, &um_search_configs[0]);
	memset(s->penalty, 0, s->b->n_visits * sizeof *s->penalty);
	return err;
}

/* Starts with the results of single scores; uses a quarter of the remaining work. */
static int weigh(struct um_search *s, struct um_bayes *y)
{
	uint64_t until = s->work + (s->work_most > s->work ? (s->work_most - s->work) / 4 : 0);
	int singles = y->n, best;

	while (y->n < MOST_WEIGHTS && s->work < until && !um_search_enough(s)) {
		double weight[UM_BAYES_DIMS];
		int err;

		um_bayes_next(y, weight);
		err = ask(s, &combined, weight, NULL, MERGE);
		if (err && err != -E2BIG)
			return err;
		um_bayes_add(y, weight, (double)(err ? 2 * s->best_ns : s->estimate));
	}
	best = y->n > singles ? um_bayes_best(y) : 0;
	if (best < singles)
		return 0;
	/* also with hints of one block: such a plan moves less at once, and may be sound if the other is not */
	for (uint32_t merge = MERGE; merge; merge = merge > 1 ? 1 : 0) {
		int err = ask(s, &combined, y->at[best], s->out, merge);

		if (!err)
			err = adopt(s);
		if (err)
			return err;
	}
	return 0;
}

int um_search_seeds(struct um_search *s)
{
	struct um_bayes y = {.n = 0};
	int err = 0;

	if (s->b->n_ops > MOST_SCHEME_OPS)
		return 0;
	for (size_t i = 0; (!err || err == -E2BIG) && i < N_OTHERS && !um_search_enough(s); i++) {
		double weight[UM_BAYES_DIMS] = {0};

		err = ask(s, &others[i], NULL, s->out, MERGE);
		if (err)
			continue;
		if (others[i].choose == um_scheme_autoswap) {
			weight[others[i].mode] = 1;
			um_bayes_add(&y, weight, (double)s->estimate);
		}
		err = adopt(s);
	}
	if (!err && y.n)
		err = weigh(s, &y);
	return err == -E2BIG ? 0 : err;
}
