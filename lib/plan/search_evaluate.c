/* SPDX-License-Identifier: Apache-2.0
 *
 * search_evaluate.c - evaluates a configuration: choice, hints and estimate, then proof, then rehearsal
 *
 * The strategies (search.c, search_seeds.c, search_perturb.c) decide what to try next.
 */
#include "plan/search_state.h"

#include "base/hash.h"
#include "plan/advice.h"
#include "plan/lower.h"
#include "plan/return_deadlines.h"

#include <math.h>

/* A plan with a better rehearsal is chosen although its prediction is higher: by at most a tenth, and at most this
 * factor above the bound; or by a sixty-fourth. */
#define NEAR_BOUND 1.14

/* Plans rehearsed with advice and without it. */
#define MOST_COMPARED 8

#define LEAST_FREE 8 /* blocks that may leave freely; then none */

const struct um_search_config um_search_configs[UM_SEARCH_CONFIGS] = {
	{0, 0, 0, 1, 1, 0},  {0, 0, 0, 1, 1, 1},  {0, 0, 0, 16, 0, 0}, {0, 0, 4, 1, 1, 1},
	{10, 0, 0, 1, 1, 1}, {0, 16, 0, 1, 1, 1}, {0, 16, 0, 1, 1, 0},
};

uint64_t um_search_round(const struct um_search *s)
{
	return s->b->n_touches + s->out->sched.uses.n + 20ull * s->out->sched.ops.n;
}

/* The blocks that leave under the last choice, or have left before. */
static void count_host(struct um_search *s)
{
	memcpy(s->host, s->on_host, s->b->n_blocks);
	for (uint32_t v = 0; v < s->b->n_visits; v++)
		s->host[s->b->visit[v].block] |= s->evicted[v];
	s->host_blocks = 0;
	for (uint32_t i = 0; i < s->b->n_blocks; i++)
		s->host_blocks += s->host[i];
}

/* Hints of one configuration, into out->hints. `*too_short`: gaps that should not have been chosen, keep_resident
 * now. */
static int apply_once(struct um_search *s, const struct um_search_config *w, int32_t limit, uint32_t *too_short)
{
	struct um_choose_rule rule = {s->clock, s->penalty, w->begin, w->clean, s->copies, s->host, s->free_host};
	struct um_lowering carry = {
		{s->out->budget, s->out->h2d, s->out->d2h, w->eager, s->copies}, s->capacity, w->merge, NULL};
	struct um_timeline line = {0};
	struct um_choice c;
	int err = um_choice_init(&c, s->b, s->keep_resident);

	if (err)
		return err;
	memcpy(s->host, s->on_host, s->b->n_blocks);
	err = um_choice_build(&c, s->b, limit, &rule);
	if (!err && w->late && s->started) {
		err = um_return_deadlines_build(s->b, &c, s->start, s->out->h2d, s->not_before);
		carry.not_before = s->not_before;
	}
	if (!err)
		err = um_lower_plan(s->b, &s->out->sched, &c, &carry, &line, s->no_hints ? NULL : s->out);
	if (!err) {
		*too_short = line.too_short;
		s->estimate = line.ns;
		memcpy(s->evicted, c.evicted, s->b->n_visits);
		count_host(s);
		memcpy(s->start, line.start, (s->out->sched.ops.n + 1) * sizeof *s->start);
		s->started = 1;
		memset(s->stall, 0, (s->out->sched.uses.n + 1) * sizeof *s->stall);
		for (uint32_t v = 0; v < s->b->n_visits; v++)
			s->stall[s->group[v]] += (int64_t)line.stall[v];
	}
	s->work += um_search_round(s);
	um_timeline_fini(&line);
	um_choice_fini(&c);
	return err;
}

int um_search_apply(struct um_search *s, const struct um_search_config *w)
{
	int32_t limit = s->capacity - (int32_t)(((int64_t)s->capacity * w->reserve + 999) / 1000);
	uint32_t too_short = 0;
	int err = 0;

	if (limit < s->most)
		limit = s->most;
	memset(s->keep_resident, 0, s->b->n_visits);
	for (int i = 0; !err && (!i || too_short) && i < UM_SEARCH_ROUNDS; i++) {
		err = apply_once(s, w, limit, &too_short);
		/* too many gaps excluded: use the previous choice */
		if (err == -E2BIG && i)
			return 0;
	}
	return err;
}

int um_search_is_near(const struct um_search *s, uint64_t plan_ns)
{
	uint64_t near = (uint64_t)(NEAR_BOUND * (double)s->out->bound_ns);

	return plan_ns <= s->best_ns + s->best_ns / 64 || (plan_ns <= near && plan_ns <= s->best_ns + s->best_ns / 10);
}

/* Was an equal plan rehearsed before? Different rounds often produce the same one. */
static int is_known(struct um_search *s)
{
	const struct um_plan *p = s->out;
	uint64_t hash = um_hash_u64(p->hints.n, p->predicted_ns);

	for (size_t i = 0; i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];

		hash = um_hash_u64(hash, (uint64_t)h->kind << 32 | (uint32_t)h->at);
		hash = um_hash_u64(hash, (uint64_t)h->slot << 32 | (uint32_t)h->after);
		hash = um_hash_u64(hash, h->off);
	}
	for (unsigned i = 0; i < s->n_known; i++)
		if (s->known[i] == hash)
			return 1;
	if (s->n_known < UM_SEARCH_KNOWN)
		s->known[s->n_known++] = hash;
	return 0;
}

static int keep(struct um_search_kept *to, const struct um_plan *p, uint64_t plan_ns, uint64_t ns)
{
	um_vec_clear(&to->hints);
	if (um_vec_reserve(&to->hints, p->hints.n))
		return -ENOMEM;
	if (p->hints.n)
		memcpy(to->hints.at, p->hints.at, p->hints.n * sizeof *p->hints.at);
	to->hints.n = p->hints.n;
	to->plan_ns = plan_ns;
	to->proved_ns = p->predicted_ns;
	to->ns = ns;
	to->spent = 0;
	return 0;
}

/* Less is better. One percent of the rehearsed time counts as much as four percent of the predicted time. */
double um_search_score(const struct um_search_kept *k)
{
	return (double)k->plan_ns * pow((double)k->ns, 4);
}

/* The entry for a rehearsed plan. Several are kept, because a better prediction may be found later that excludes the
 * best of them. NULL: all kept plans are better. */
static struct um_search_kept *place_for(struct um_search *s, const struct um_search_kept *fresh)
{
	struct um_search_kept *worst = NULL;

	for (int i = UM_SEARCH_REHEARSED; i < UM_SEARCH_KEPT; i++) {
		struct um_search_kept *k = &s->kept[i];

		if (!k->plan_ns || !um_search_is_near(s, k->plan_ns))
			return k;
		if (!worst || um_search_score(k) > um_search_score(worst))
			worst = k;
	}
	return um_search_score(fresh) < um_search_score(worst) ? worst : NULL;
}

/* The seed of the plan that was made last, by configuration w or by a scheme (NULL). */
static int save_seed(struct um_search *s, const struct um_search_config *w, struct um_search_seed *seed)
{
	int64_t iteration_ns = (int64_t)s->clock[s->b->n_ops];

	if (!seed->penalty)
		seed->penalty = malloc((s->b->n_visits + 1ull) * sizeof *seed->penalty);
	if (!seed->penalty)
		return -ENOMEM;
	for (uint32_t v = 0; v < s->b->n_visits; v++)
		seed->penalty[v] = w ? s->penalty[v] : s->evicted[v] ? -2 * iteration_ns : 0;
	seed->config = w ? *w : um_search_configs[0];
	return 0;
}

static int is_clearly_less(uint64_t a, uint64_t b)
{
	return a < b - b / 64;
}

/* Rehearses the plan. The first plans with advice are rehearsed without it, too; if that is clearly better, all other
 * plans drop the advice. Read-mostly blocks need no copy to the host, but calls that give advice block all other calls
 * of the driver. */
static int rehearse_variants(struct um_search *s, uint64_t *ns)
{
	uint64_t bare = UINT64_MAX;
	int err;

	if (s->compared >= MOST_COMPARED && is_clearly_less(s->bare_ns, s->advised_ns))
		um_advice_drop(s->out);
	err = s->rehearsal->ns(s->rehearsal->user, s->out, ns);
	if (err || s->compared >= MOST_COMPARED || !um_advice_drop(s->out))
		return err;
	s->compared++;
	s->work += 2 * um_search_round(s);
	err = s->rehearsal->ns(s->rehearsal->user, s->out, &bare);
	s->advised_ns = *ns < s->advised_ns ? *ns : s->advised_ns;
	s->bare_ns = bare < s->bare_ns ? bare : s->bare_ns;
	if (!err && !is_clearly_less(bare, *ns))
		return um_advice_add(s->out);
	*ns = bare;
	return err;
}

int um_search_rehearse(struct um_search *s, const struct um_search_config *w, uint64_t plan_ns)
{
	struct um_search_kept fresh = {.plan_ns = plan_ns}, *to;
	int err;

	if (!s->rehearsal || !um_search_is_near(s, plan_ns) || is_known(s))
		return 0;
	s->work += 2 * um_search_round(s);
	if (rehearse_variants(s, &fresh.ns))
		return -ENOMEM;
	s->score = um_search_score(&fresh);
	to = place_for(s, &fresh);
	if (!to)
		return 0;
	err = save_seed(s, w, &to->seed);
	return err ? err : keep(to, s->out, plan_ns, fresh.ns);
}

/* A plan is sound but for the host budget. */
static int exceed_host(struct um_search *s, const struct um_plan_figures *f)
{
	s->exceeds = 1;
	s->out->predicted_ns = f->ns;
	if (f->host_bytes >= s->least_host)
		return 0;
	s->least_host = f->host_bytes;
	return keep(&s->least, s->out, f->ns, 0);
}

/* Adds blocks that leave without content. */
static int find_host(struct um_search *s, struct um_plan_figures *f)
{
	uint64_t bytes;

	s->work += um_search_round(s);
	if (s->rehearsal->host(s->rehearsal->user, s->out, &bytes))
		return -ENOMEM;
	f->host_bytes = bytes > f->host_bytes ? bytes : f->host_bytes;
	return 0;
}

int um_search_judge(struct um_search *s, const struct um_search_config *w)
{
	struct um_plan_figures f = {0};
	struct um_plan *out = s->out;
	int err = um_advice_add(out);

	s->exceeds = 0;
	if (!err)
		err = um_plan_prove(out, &f, s->why, sizeof s->why);
	if (out->host_budget && f.ns && s->rehearsal && s->rehearsal->host && find_host(s, &f))
		return -ENOMEM;
	if (out->host_budget && !out->host_wanted)
		out->host_wanted = f.host_bytes;
	if (out->host_budget && f.host_bytes > out->host_budget)
		return exceed_host(s, &f);
	if (err)
		return err == -EINVAL ? 0 : err;
	out->predicted_ns = f.ns;
	/* a discard of the plan copies nothing */
	if (s->copies && s->estimate > f.ns)
		f.ns = s->estimate;
	if (w && (!s->own_ns || f.ns < s->own_ns)) {
		s->own_ns = f.ns;
		err = save_seed(s, w, &s->own);
	}
	if (err)
		return err;
	if (!s->best_ns || f.ns < s->best_ns) {
		s->best_ns = f.ns;
		err = keep(&s->kept[UM_SEARCH_PREDICTED], out, f.ns, 0);
	}
	return err || s->no_rehearsal ? err : um_search_rehearse(s, w, f.ns);
}

int um_search_has_time(const struct um_search *s)
{
	return s->effort && s->effort->more && s->effort->more(s->effort->user);
}

/* A prediction at the bound can only be improved by rehearsals. */
int um_search_enough(const struct um_search *s)
{
	int late = s->effort && s->effort->late && s->effort->late(s->effort->user);
	int close = s->best_ns && s->best_ns <= s->out->bound_ns + s->out->bound_ns / 400;

	if (close && (s->no_rehearsal || !s->rehearsal || !s->kept[UM_SEARCH_PREDICTED].hints.n))
		return 1;
	if (late || (s->until && s->work > s->until))
		return 1;
	return s->best_ns && s->work > s->work_most && !um_search_has_time(s);
}

/* Estimates differ from predictions by about a per cent. */
static int judge_near(struct um_search *s, const struct um_search_config *w)
{
	s->exceeds = 0;
	if (s->best_ns && !um_search_is_near(s, s->estimate - s->estimate / 256))
		return 0;
	return um_search_judge(s, w);
}

/* The fewer blocks may leave freely, the fewer leave. The next configuration begins with what this one ends with. If
 * even none is too much, all begin anew: then the plan with the least host memory counts. */
int um_search_try(struct um_search *s, const struct um_search_config *w)
{
	int err = um_search_apply(s, w);

	if (!err)
		err = judge_near(s, w);
	while (!err && s->exceeds && s->free_host) {
		uint32_t most = s->host_blocks < s->free_host ? s->host_blocks : s->free_host;

		s->free_host = most < LEAST_FREE ? 0 : most / 4 * 3;
		err = um_search_apply(s, w);
		if (!err)
			err = judge_near(s, w);
	}
	if (s->exceeds)
		s->free_host = UINT32_MAX;
	return err;
}
