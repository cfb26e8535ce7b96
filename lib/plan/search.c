/* SPDX-License-Identifier: Apache-2.0
 *
 * Learning: the timeline says how long something waited for each block to leave or to return. Gaps behind the same
 * use of a slot can stand for each other, so they share the stall, as a penalty in the rule of choice, in the measure
 * of the longest wait: all alike in odd rounds, rising along the group in even ones, which gives up a part of it. A
 * penalty that does not help is kept all the same, since the next wait is another one; the best plan so far is what
 * counts.
 *
 * Rehearsing: what a plan predicts is the link's time alone. Plans that differ in kind are rehearsed with the driver's
 * work on top, as far as they do not predict much more than the best. Lessons only lower the prediction, and differ too
 * little to be rehearsed one by one; from the rehearsed plans that did best others are made by chance, and rehearsed.
 */
#include "plan/search.h"

#include "base/diag.h"
#include "base/hash.h"
#include "plan/advice.h"
#include "plan/lower.h"
#include "plan/return_deadlines.h"
#include "plan/search_state.h"

#include <math.h>

static const struct um_search_config ways[] = {
	{0, 0, 0, 1, 1, 0},  {0, 0, 0, 1, 1, 1},  {0, 0, 0, 16, 0, 0}, {0, 0, 4, 1, 1, 1},
	{10, 0, 0, 1, 1, 1}, {0, 16, 0, 1, 1, 1}, {0, 16, 0, 1, 1, 0},
};

#define N_WAYS (sizeof ways / sizeof *ways)
#define N_FIRST_WAYS 2 /* gone before others are asked */

/* Whose rehearsal goes better is chosen although it predicts more: by a tenth at most, and no more than so much above
 * the bound; or by a sixty-fourth. */
#define NEAR_BOUND 1.14
#define MOST_REHEARSED_OPS 30000

/* Plans rehearsed with advice and without it. */
#define MOST_COMPARED 8

/* Rounds of learning, and work in all (touches, more or less): some 50 ms for 2,000 ops, half a second for 20,000. */
#define MOST_LESSONS 24
#define WORK_PER_OP 300ull
#define WORK_OF_FEW 1200000ull /* less of it the more ops there are: some 50 ms up to 2,000 of them */
#define WORK_OF_FEW_PER_OP 450ull
#define WORK_OF_LONG 6000000ull /* where iterations are long, a third of one, likewise: some 300 ms at most */
#define WORK_OF_LONG_PER_OP 2500ull
#define NS_OF_LONG 160

uint64_t um_search_round(const struct um_search *s)
{
	return s->b->n_touches + s->out->sched.uses.n + 20ull * s->out->sched.ops.n;
}

/* Hints of one way, into out->hints. `*too_short`: gaps that should not have been chosen, keep_resident now. */
static int go_once(struct um_search *s, const struct um_search_config *w, int32_t limit, uint32_t *too_short)
{
	struct um_choose_rule rule = {s->clock, s->penalty, w->begin, w->clean};
	struct um_lowering carry = {{s->out->budget, s->out->h2d, s->out->d2h, w->eager}, s->capacity, w->merge, NULL};
	struct um_timeline line = {0};
	struct um_choice c;
	int err = um_choice_init(&c, s->b, s->keep_resident);

	if (err)
		return err;
	err = um_choice_build(&c, s->b, limit, &rule);
	if (!err && w->late && s->started) {
		err = um_return_deadlines_build(s->b, &c, s->start, s->out->h2d, s->not_before);
		carry.not_before = s->not_before;
	}
	if (!err)
		err = um_lower_plan(s->b, &s->out->sched, &c, &carry, &line, s->out);
	if (!err) {
		*too_short = line.too_short;
		s->estimate = line.ns;
		memcpy(s->away, c.away, s->b->n_visits);
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

int um_search_go(struct um_search *s, const struct um_search_config *w)
{
	int32_t limit = s->capacity - (int32_t)(((int64_t)s->capacity * w->reserve + 999) / 1000);
	uint32_t too_short = 0;
	int err = 0;

	if (limit < s->most)
		limit = s->most;
	memset(s->keep_resident, 0, s->b->n_visits);
	for (int i = 0; !err && (!i || too_short) && i < UM_SEARCH_ROUNDS; i++) {
		err = go_once(s, w, limit, &too_short);
		/* Too much keep_resident: what was made before has to do. */
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

/* Was such a plan rehearsed before? Different rounds often make the same. */
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
	to->ns = ns;
	to->spent = 0;
	return 0;
}

/* What is lost by prediction must be gained by a quarter in the rehearsal. */
double um_search_score(const struct um_search_kept *k)
{
	return (double)k->plan_ns * pow((double)k->ns, 4);
}

/* Where a plan that was rehearsed is kept: some are, since a better prediction may be found later, and one that is too
 * far above it be out. NULL: it is behind all that are kept. */
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

/* What was made last, by way w or a scheme (NULL), as a seed. */
static int save_seed(struct um_search *s, const struct um_search_config *w, struct um_search_seed *seed)
{
	int64_t lap = (int64_t)s->clock[s->b->n_ops];

	if (!seed->penalty)
		seed->penalty = malloc((s->b->n_visits + 1ull) * sizeof *seed->penalty);
	if (!seed->penalty)
		return -ENOMEM;
	for (uint32_t v = 0; v < s->b->n_visits; v++)
		seed->penalty[v] = w ? s->penalty[v] : s->away[v] ? -2 * lap : 0;
	seed->way = w ? w : &ways[0];
	return 0;
}

static int is_clearly_less(uint64_t a, uint64_t b)
{
	return a < b - b / 64;
}

/* How long the plan takes as rehearsed. The first ones with advice are rehearsed without it too, and if that does
 * clearly better it goes for all others: what is read mostly need not be copied home, but calls for it keep all others
 * of the driver from working. */
static int hear(struct um_search *s, uint64_t *ns)
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

/* Rehearses the plan that was judged last, unless that was done, and keeps it if it goes well. */
static int rehearse(struct um_search *s, const struct um_search_config *w, uint64_t plan_ns)
{
	struct um_search_kept fresh = {.plan_ns = plan_ns}, *to;
	int err;

	if (!s->rehearsal || !um_search_is_near(s, plan_ns) || is_known(s))
		return 0;
	s->work += 2 * um_search_round(s);
	if (hear(s, &fresh.ns))
		return -ENOMEM;
	s->score = um_search_score(&fresh);
	to = place_for(s, &fresh);
	if (!to)
		return 0;
	err = save_seed(s, w, &to->seed);
	return err ? err : keep(to, s->out, plan_ns, fresh.ns);
}

int um_search_judge(struct um_search *s, const struct um_search_config *w)
{
	struct um_plan_figures f;
	struct um_plan *out = s->out;
	int err = um_advice_add(out);

	if (!err)
		err = um_plan_prove(out, &f, s->why, sizeof s->why);
	if (err)
		return err == -EINVAL ? 0 : err;
	out->predicted_ns = f.ns;
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
	return err || s->unheard ? err : rehearse(s, w, f.ns);
}

static int has_time(const struct um_search *s)
{
	return s->effort && s->effort->more && s->effort->more(s->effort->user);
}

/* Who is at the bound can only do better in rehearsals, if there is anything to be rehearsed. */
int um_search_enough(const struct um_search *s)
{
	int late = s->effort && s->effort->late && s->effort->late(s->effort->user);
	int close = s->best_ns && s->best_ns <= s->out->bound_ns + s->out->bound_ns / 400;

	if (close && (s->unheard || !s->rehearsal || !s->kept[UM_SEARCH_PREDICTED].hints.n))
		return 1;
	if (late || (s->until && s->work > s->until))
		return 1;
	return s->best_ns && s->work > s->work_most && !has_time(s);
}

/* What was waited for last counts against it from now on. 0 if nothing was. */
static int learn(struct um_search *s, int round)
{
	size_t uses = s->out->sched.uses.n;
	int64_t most = 0, lap = (int64_t)s->clock[s->b->n_ops];

	for (size_t u = 0; u < uses; u++)
		most = s->stall[u] > most ? s->stall[u] : most;
	if (!most)
		return 0;
	for (size_t u = 0; u < uses; u++)
		s->total_stall[u] += (int64_t)((double)lap / 16 * (double)s->stall[u] / (double)most);
	for (uint32_t v = 0; v < s->b->n_visits; v++) {
		uint32_t u = s->group[v];

		s->penalty[v] = s->total_stall[u];
		if (round % 2)
			s->penalty[v] = s->total_stall[u] * (int64_t)(2 * s->rank[v] + 1) / (int64_t)s->size[u];
	}
	return 1;
}

/* Estimates are good to a per cent or so. */
int um_search_try(struct um_search *s, const struct um_search_config *w)
{
	int err = um_search_go(s, w);

	if (!err && (!s->best_ns || um_search_is_near(s, s->estimate - s->estimate / 256)))
		err = um_search_judge(s, w);
	return err;
}

/* The best of those that were rehearsed, `fresh`: and not gone on from; NULL: none. */
static struct um_search_kept *find_best(struct um_search *s, int fresh)
{
	struct um_search_kept *best = NULL;

	for (int i = UM_SEARCH_REHEARSED; i < UM_SEARCH_KEPT; i++) {
		struct um_search_kept *k = &s->kept[i];

		if (k->plan_ns && um_search_is_near(s, k->plan_ns) && !(fresh && k->spent) &&
		    (!best || um_search_score(k) < um_search_score(best)))
			best = k;
	}
	return best;
}

/* What is predicted comes down: by lessons first, then by chance. */
static int lower_prediction(struct um_search *s)
{
	int err = 0;

	s->unheard = 1;
	if (!s->taught && !um_search_enough(s))
		err = um_search_go(s, &ways[1]);
	for (; !err && s->taught < MOST_LESSONS && !um_search_enough(s) && learn(s, s->taught); s->taught++)
		err = um_search_try(s, &ways[1]);
	if (!err && s->own_ns && !um_search_enough(s))
		err = um_search_perturb(s, &s->own, 0);
	s->unheard = 0;
	return err;
}

static int lower_rehearsed(struct um_search *s)
{
	struct um_search_kept *best;
	int err = 0;

	for (int i = 0; i < UM_SEARCH_KEPT; i++)
		s->kept[i].spent = 0;
	while (!err && !um_search_enough(s) && (best = find_best(s, 1))) {
		best->spent = 1;
		err = um_search_perturb(s, &best->seed, um_search_score(best));
	}
	return err;
}

/* A third of what work is left goes into the prediction. The rehearsed plans that are still near it then are worth
 * more, and if there is none of them, the prediction has the rest. */
static int refine(struct um_search *s)
{
	uint64_t before;
	int err;

	do {
		before = s->work;
		if (s->rehearsal)
			s->until = s->work + (s->work_most > s->work ? (s->work_most - s->work) / 3 : 0);
		err = lower_prediction(s);
		s->until = 0;
		if (!err)
			err = lower_rehearsed(s);
		if (!err)
			err = lower_prediction(s);
	} while (!err && s->work > before && has_time(s));
	return err;
}

static int run(struct um_search *s)
{
	int err = 0;

	for (size_t i = 0; !err && i < N_FIRST_WAYS && !um_search_enough(s); i++)
		err = um_search_try(s, &ways[i]);
	if (!err && s->own_ns)
		err = um_search_seeds(s, &ways[0]);
	for (size_t i = N_FIRST_WAYS; !err && i < N_WAYS && !um_search_enough(s); i++)
		err = um_search_try(s, &ways[i]);
	if (!err)
		err = refine(s);
	/* A way that finds no place is no harm while there is another. */
	return err == -E2BIG && s->best_ns ? 0 : err;
}

/* Groups: the use of a visit's first part. */
static void set_groups(struct um_search *s)
{
	const struct um_blocks *b = s->b;
	const struct um_schedule *sched = &s->out->sched;

	for (uint32_t v = 0; v < b->n_visits; v++) {
		uint32_t slot = b->part[b->touch[b->visit[v].first_touch].part].slot;
		uint32_t u = sched->ops.at[b->visit[v].op].first_use;

		while (sched->uses.at[u].slot != slot)
			u++;
		s->group[v] = u;
		s->rank[v] = s->size[u]++;
	}
}

static uint64_t work_for(uint64_t ops, uint64_t ns)
{
	uint64_t most = WORK_PER_OP * ops, less = WORK_OF_LONG_PER_OP * ops, more = ns / NS_OF_LONG;

	if (most + WORK_OF_FEW_PER_OP * ops < WORK_OF_FEW)
		most = WORK_OF_FEW - WORK_OF_FEW_PER_OP * ops;
	more = more < WORK_OF_LONG ? more : WORK_OF_LONG;
	return more > most + less ? more - less : most;
}

static int prepare(struct um_search *s)
{
	const struct um_blocks *b = s->b;
	const struct um_schedule *sched = &s->out->sched;
	size_t uses = sched->uses.n + 1, visits = b->n_visits + 1ull;

	s->clock = malloc((sched->ops.n + 1) * sizeof *s->clock);
	s->group = malloc(visits * sizeof *s->group);
	s->rank = malloc(visits * sizeof *s->rank);
	s->size = calloc(uses, sizeof *s->size);
	s->penalty = calloc(visits, sizeof *s->penalty);
	s->stall = calloc(uses, sizeof *s->stall);
	s->total_stall = calloc(uses, sizeof *s->total_stall);
	s->keep_resident = calloc(visits, 1);
	s->away = calloc(visits, 1);
	s->start = calloc(sched->ops.n + 1, sizeof *s->start);
	s->not_before = calloc(visits, sizeof *s->not_before);
	if (!s->clock || !s->group || !s->rank || !s->size || !s->penalty || !s->stall || !s->total_stall ||
	    !s->keep_resident || !s->away || !s->start || !s->not_before)
		return -ENOMEM;
	s->clock[0] = 0;
	for (size_t i = 0; i < sched->ops.n; i++) {
		int32_t n = (int32_t)(b->first_of_op[i + 1] - b->first_of_op[i]);

		s->clock[i + 1] = s->clock[i] + sched->ops.at[i].ns;
		s->most = n > s->most ? n : s->most;
	}
	s->capacity = INT32_MAX;
	if (s->out->budget / UM_BLOCK_BYTES < INT32_MAX)
		s->capacity = (int32_t)(s->out->budget / UM_BLOCK_BYTES);
	s->work_most = work_for(sched->ops.n, s->out->bound_ns);
	set_groups(s);
	return 0;
}

/* Its hints become the plan's: nobody asks for them again. */
static void take(struct um_plan *out, struct um_search_kept *k)
{
	um_vec_fini(&out->hints);
	memcpy(&out->hints, &k->hints, sizeof out->hints);
	memset(&k->hints, 0, sizeof k->hints);
	out->predicted_ns = k->plan_ns;
}

/* The best hints become the plan's. */
static int hand_over(struct um_search *s, char *why, size_t size)
{
	struct um_search_kept *best;
	int err;

	if (!s->best_ns)
		return um_refuse(why, size, "no sound plan found: %s", s->why);
	take(s->out, &s->kept[UM_SEARCH_PREDICTED]);
	err = s->rehearsal ? um_plan_prove(s->out, NULL, why, size) : 0;
	if (!err)
		err = rehearse(s, NULL, s->best_ns);
	best = find_best(s, 0);
	if (!err && best)
		take(s->out, best);
	/* Of whichever plan was proved last. */
	free(s->out->start);
	s->out->start = NULL;
	return err;
}

int um_search_run(const struct um_blocks *b, const struct um_plan_effort *effort,
		  const struct um_plan_rehearsal *rehearsal, struct um_plan *out, char *why, size_t size)
{
	struct um_search s = {.b = b,
			      .effort = effort,
			      .out = out,
			      .random = b->n_visits,
			      .advised_ns = UINT64_MAX,
			      .bare_ns = UINT64_MAX};
	int err = prepare(&s);

	if (out->sched.ops.n <= MOST_REHEARSED_OPS)
		s.rehearsal = rehearsal;

	if (!err)
		err = run(&s);
	if (!err)
		err = hand_over(&s, why, size);
	if (err == -E2BIG)
		um_refuse(why, size, "%d MiB cannot hold what is in use around one op", 2 * s.capacity);
	free(s.clock);
	free(s.group);
	free(s.rank);
	free(s.size);
	free(s.penalty);
	free(s.stall);
	free(s.total_stall);
	free(s.keep_resident);
	free(s.away);
	free(s.own.penalty);
	free(s.start);
	free(s.not_before);
	for (unsigned i = 0; i < UM_SEARCH_KEPT; i++) {
		um_vec_fini(&s.kept[i].hints);
		free(s.kept[i].seed.penalty);
	}
	return err;
}
