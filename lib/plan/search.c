/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c - the search of the strategy lookahead: configurations, learning from waits, refinement
 *
 * Learning: the timeline gives the time waited for each block to be evicted or to return. Gaps after the same use of a
 * slot are interchangeable, so they share the stall, as a penalty in the rule of choice, in proportion to the longest
 * wait: equal in odd rounds, rising along the group in even ones, which gives up a part of it. A penalty that does not
 * help is kept, since the next wait is another one; the best plan so far counts.
 *
 * Rehearsing: a plan predicts the link's time only. Plans of different kinds are rehearsed with the driver's work
 * added, if their predictions are near the best. Learning only lowers the prediction, and its plans differ too little
 * to be rehearsed one by one; the best rehearsed plans are varied at random, and the variations rehearsed.
 */
#include "plan/search.h"

#include "base/bisect.h"
#include "base/diag.h"
#include "plan/search_state.h"

#define N_FIRST_CONFIGS 2 /* run before the other configurations */
#define MOST_REHEARSED_OPS 30000
#define FAR 16 /* an estimate is not lowered by this part of it */
#define RESERVE_GAIN 64 /* a reserve must save this part of the time */
#define COPIES_COUNT 4 /* a rehearsal longer by this part of the prediction may be due to copies that it lacks */
#define COPIES_GAIN 32 /* counting them must save this part of the rehearsed time */

/* Rounds of learning, and total work (about touches): some 50 ms for 2,000 ops, half a second for 20,000. */
#define MOST_LEARNING_ROUNDS 24
#define FIRST_LEARNING_ROUNDS 12 /* where learning precedes other ways */
#define WORK_PER_OP 300ull
#define WORK_OF_FEW 1200000ull /* up to 2,000 ops, then less: some 50 ms */
#define WORK_OF_FEW_PER_OP 450ull
#define WORK_OF_LONG 6000000ull /* for long iterations a third of one iteration: some 300 ms at most */
#define WORK_OF_LONG_PER_OP 2500ull
#define NS_OF_LONG 160

/* Penalises the gaps of the last waits. 0 if there were none. */
static int learn(struct um_search *s, int round)
{
	size_t uses = s->out->sched.uses.n;
	int64_t most = 0, iteration_ns = (int64_t)s->clock[s->b->n_ops];

	for (size_t u = 0; u < uses; u++)
		most = s->stall[u] > most ? s->stall[u] : most;
	if (!most)
		return 0;
	for (size_t u = 0; u < uses; u++)
		s->total_stall[u] += (int64_t)((double)iteration_ns / 16 * (double)s->stall[u] / (double)most);
	for (uint32_t v = 0; v < s->b->n_visits; v++) {
		uint32_t u = s->group[v];

		s->penalty[v] = s->total_stall[u];
		if (round % 2)
			s->penalty[v] = s->total_stall[u] * (int64_t)(2 * s->rank[v] + 1) / (int64_t)s->size[u];
	}
	return 1;
}

/* The best rehearsed plan, with `fresh` one that was not varied yet; NULL: none. */
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

/* Learns until there were `most` rounds. */
static int lower_by_learning(struct um_search *s, int most)
{
	const struct um_search_config config = s->roomy.reserve ? s->roomy : um_search_configs[1];
	int err = 0;

	if (!s->learning_rounds && !um_search_enough(s))
		err = um_search_apply(s, &config);
	for (; !err && s->learning_rounds < most && !um_search_enough(s) && learn(s, s->learning_rounds);
	     s->learning_rounds++)
		err = um_search_try(s, &config);
	return err;
}

/* Lowers the prediction: by learning first, then by random variation. */
static int lower_prediction(struct um_search *s)
{
	int err;

	s->no_rehearsal = 1;
	err = lower_by_learning(s, MOST_LEARNING_ROUNDS);
	if (!err && s->own_ns && !um_search_enough(s))
		err = um_search_perturb(s, &s->own, 0);
	s->no_rehearsal = 0;
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

/* A third of the remaining work lowers the prediction. Then rehearsed plans with a prediction near the best are varied;
 * without such plans the rest of the work lowers the prediction. */
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
	} while (!err && s->work > before && um_search_has_time(s));
	return err;
}

/* Keeps room free for copies in progress, at first as much as an op uses. Belady's rule leaves none. Where ops use much
 * of the budget, each of them then waits until the tensors of the op before have left and its own have arrived. */
static int climb_reserves(struct um_search *s)
{
	static const int steps[] = {0, -2, 2, -1, 1}; /* quarters of that, from the best so far on */
	int64_t best = 4, tried = 0, most = s->capacity - s->most;
	uint64_t least = s->best_ns - s->best_ns / RESERVE_GAIN;
	int err = 0;

	for (size_t i = 0; !err && i < sizeof steps / sizeof *steps && !um_search_enough(s); i++) {
		int64_t at = best + steps[i], blocks = s->mean * at / 4;
		struct um_search_config w = {(int)(blocks * 1000 / s->capacity), 0, 0, 1, 1, 1};

		if (!w.reserve || blocks > most || blocks == tried)
			continue;
		tried = blocks;
		memset(s->penalty, 0, s->b->n_visits * sizeof *s->penalty);
		err = um_search_try(s, &w);
		if (err == -E2BIG) {
			err = 0;
		} else if (!err && s->estimate < least) {
			least = s->estimate;
			s->roomy = w;
			best = at;
		} else if (!i) {
			break;
		}
	}
	return err;
}

/* Where no reserve helps, the refinement has the work and the start that it would have had. */
static int try_reserves(struct um_search *s)
{
	size_t n = (s->out->sched.ops.n + 1) * sizeof *s->start;
	uint64_t *start = malloc(n), before = s->work;
	int err = start ? 0 : -ENOMEM;

	if (!err) {
		memcpy(start, s->start, n);
		err = climb_reserves(s);
	}
	if (!err && !s->roomy.reserve)
		memcpy(s->start, start, n);
	s->work_most += s->work - before;
	free(start);
	return err;
}

static int run(struct um_search *s, int learn_first)
{
	int err = 0;

	for (size_t i = 0; !err && i < N_FIRST_CONFIGS && !um_search_enough(s); i++)
		err = um_search_try(s, &um_search_configs[i]);
	if (!err && learn_first) {
		s->no_rehearsal = 1;
		err = lower_by_learning(s, FIRST_LEARNING_ROUNDS);
		s->no_rehearsal = 0;
		s->learning_rounds = 0;
		memset(s->total_stall, 0, (s->out->sched.uses.n + 1) * sizeof *s->total_stall);
		memset(s->penalty, 0, s->b->n_visits * sizeof *s->penalty);
	}
	if (!err && s->own_ns)
		err = um_search_seeds(s);
	for (size_t i = N_FIRST_CONFIGS; !err && i < UM_SEARCH_CONFIGS && !um_search_enough(s); i++)
		err = um_search_try(s, &um_search_configs[i]);
	if (!err && s->best_ns && s->capacity)
		err = try_reserves(s);
	if (!err)
		err = refine(s);
	/* A configuration without a result is no failure while another one has a result. */
	return err == -E2BIG && (s->best_ns || s->least.plan_ns) ? 0 : err;
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

/* Blocks without a place have no memory yet. */
static void mark_on_host(struct um_search *s, const struct um_search_request *r)
{
	for (uint32_t i = 0; i < s->b->n_parts && r->n_on_host; i++) {
		const struct um_part *part = &s->b->part[i];
		uint64_t place = s->out->sched.slots.at[part->slot].place;
		uint64_t addr = (place + part->off) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;

		if (place != UINT64_MAX && um_bisect_find(r->on_host, r->n_on_host, addr) < r->n_on_host)
			s->on_host[part->block] = 1;
	}
}

static int prepare(struct um_search *s)
{
	const struct um_blocks *b = s->b;
	const struct um_schedule *sched = &s->out->sched;
	size_t uses = sched->uses.n + 1, visits = b->n_visits + 1ull;
	double used = 0;

	s->clock = malloc((sched->ops.n + 1) * sizeof *s->clock);
	s->group = malloc(visits * sizeof *s->group);
	s->rank = malloc(visits * sizeof *s->rank);
	s->size = calloc(uses, sizeof *s->size);
	s->penalty = calloc(visits, sizeof *s->penalty);
	s->stall = calloc(uses, sizeof *s->stall);
	s->total_stall = calloc(uses, sizeof *s->total_stall);
	s->keep_resident = calloc(visits, 1);
	s->evicted = calloc(visits, 1);
	s->start = calloc(sched->ops.n + 1, sizeof *s->start);
	s->not_before = calloc(visits, sizeof *s->not_before);
	s->host = calloc(b->n_blocks + 1ull, 1);
	s->on_host = calloc(b->n_blocks + 1ull, 1);
	if (!s->clock || !s->group || !s->rank || !s->size || !s->penalty || !s->stall || !s->total_stall ||
	    !s->keep_resident || !s->evicted || !s->start || !s->not_before || !s->host || !s->on_host)
		return -ENOMEM;
	s->clock[0] = 0;
	for (size_t i = 0; i < sched->ops.n; i++) {
		int32_t n = 0;

		for (uint32_t k = b->first_of_op[i]; k < b->first_of_op[i + 1]; k++)
			n += !b->visit[b->of_op[k]].absent;
		s->clock[i + 1] = s->clock[i] + sched->ops.at[i].ns;
		s->most = n > s->most ? n : s->most;
		used += (double)n * (double)sched->ops.at[i].ns;
	}
	s->mean = s->clock[sched->ops.n] ? (int32_t)(used / (double)s->clock[sched->ops.n] + 0.5) : 0;
	s->capacity = INT32_MAX;
	if (s->out->budget / UM_BLOCK_BYTES < INT32_MAX)
		s->capacity = (int32_t)(s->out->budget / UM_BLOCK_BYTES);
	s->work_most = work_for(sched->ops.n, s->out->bound_ns);
	set_groups(s);
	s->free_host = UINT32_MAX;
	s->least_host = UINT64_MAX;
	return 0;
}

/* Moves the hints of a kept plan to the result. */
static void take(struct um_plan *out, struct um_search_kept *k)
{
	um_vec_fini(&out->hints);
	memcpy(&out->hints, &k->hints, sizeof out->hints);
	memset(&k->hints, 0, sizeof k->hints);
	out->predicted_ns = k->proved_ns;
}

/* Moves the best hints to the plan. `*ns`: rehearsed; 0: not. */
static int hand_over(struct um_search *s, uint64_t *ns, char *why, size_t size)
{
	struct um_search_kept *best;
	int err;

	if (!s->best_ns && s->least.plan_ns) {
		s->out->host_budget = s->least_host;
		s->best_ns = s->least.plan_ns;
		s->kept[UM_SEARCH_PREDICTED] = s->least;
		memset(&s->least, 0, sizeof s->least);
	}
	if (!s->best_ns)
		return um_refuse(why, size, "no sound plan found: %s", s->why);
	take(s->out, &s->kept[UM_SEARCH_PREDICTED]);
	err = s->rehearsal ? um_plan_prove(s->out, NULL, why, size) : 0;
	if (!err)
		err = um_search_rehearse(s, NULL, s->best_ns);
	best = find_best(s, 0);
	*ns = best ? best->ns : 0;
	if (!err && best)
		take(s->out, best);
	/* start times of the plan that was proved last */
	free(s->out->start);
	s->out->start = NULL;
	return err;
}

static void init(struct um_search *s, const struct um_blocks *b, struct um_plan *out)
{
	*s = (struct um_search){
		.b = b, .out = out, .random = b->n_visits, .advised_ns = UINT64_MAX, .bare_ns = UINT64_MAX};
}

static void fini(struct um_search *s)
{
	free(s->clock);
	free(s->group);
	free(s->rank);
	free(s->size);
	free(s->penalty);
	free(s->stall);
	free(s->total_stall);
	free(s->keep_resident);
	free(s->evicted);
	free(s->own.penalty);
	free(s->start);
	free(s->not_before);
	free(s->host);
	free(s->on_host);
	um_vec_fini(&s->least.hints);
	for (unsigned i = 0; i < UM_SEARCH_KEPT; i++) {
		um_vec_fini(&s->kept[i].hints);
		free(s->kept[i].seed.penalty);
	}
}

static int run_once(const struct um_blocks *b, const struct um_search_request *request, int copies, struct um_plan *out,
		    uint64_t *ns, char *why, size_t size)
{
	struct um_search s;
	int err;

	init(&s, b, out);
	s.copies = copies;
	*ns = 0;
	s.effort = request->effort;
	if (out->sched.ops.n <= MOST_REHEARSED_OPS)
		s.rehearsal = request->rehearsal;
	err = prepare(&s);
	if (!err)
		mark_on_host(&s, request);
	if (request->part)
		s.work_most /= request->part;
	if (!err)
		err = run(&s, request->learn);
	if (!err)
		err = hand_over(&s, ns, why, size);
	if (err == -E2BIG)
		um_refuse(why, size, "the blocks in use around one op exceed the budget of %d MiB", 2 * s.capacity);
	fini(&s);
	return err;
}

/* Does the library copy content that the plan discards, because an op overwrites it later? */
static int copies_discards(const struct um_blocks *b, const struct um_plan *p)
{
	int overwritten = 0, discards = 0;

	for (uint32_t v = 0; v < b->n_visits && !overwritten; v++)
		overwritten = b->visit[v].overwritten > 0;
	for (size_t i = 0; overwritten && i < p->hints.n && !discards; i++)
		discards = p->hints.at[i].kind == UM_HINT_DISCARD;
	return discards;
}

/* Searches once more, with these copies in the prediction. The plan with the better rehearsal counts. */
static int count_copies(const struct um_blocks *b, const struct um_search_request *request, struct um_plan *out,
			uint64_t ns, char *why, size_t size)
{
	struct um_plan without = *out;
	uint64_t with;
	int err;

	memset(&out->hints, 0, sizeof out->hints);
	err = run_once(b, request, 1, out, &with, why, size);
	if (err == -ENOMEM) {
		um_vec_fini(&without.hints);
		return err;
	}
	if (err || !with || with > ns - ns / COPIES_GAIN) {
		um_vec_fini(&out->hints);
		memcpy(&out->hints, &without.hints, sizeof out->hints);
		out->predicted_ns = without.predicted_ns;
		out->host_budget = without.host_budget;
	} else {
		um_vec_fini(&without.hints);
		out->rehearsed_ns = with;
	}
	return 0;
}

int um_search_run(const struct um_blocks *b, const struct um_search_request *request, struct um_plan *out, char *why,
		  size_t size)
{
	uint64_t ns;
	int err = run_once(b, request, 0, out, &ns, why, size);

	out->rehearsed_ns = 0;
	if (!err && ns > out->predicted_ns + out->predicted_ns / COPIES_COUNT && copies_discards(b, out))
		err = count_copies(b, request, out, ns, why, size);
	return err;
}

/* As lower_by_learning, from the second configuration on. */
int um_search_estimate(const struct um_blocks *b, struct um_plan *plan, int rounds, uint64_t limit, uint64_t *ns,
		       uint64_t *work)
{
	struct um_search s;
	int err;

	init(&s, b, plan);
	s.no_hints = 1;
	err = prepare(&s);
	*ns = UINT64_MAX;
	for (int i = 0; !err && i < rounds && plan->in_core_ns < *ns; i++) {
		if (i > N_FIRST_CONFIGS && (*ns - *ns / FAR > limit || !learn(&s, i - N_FIRST_CONFIGS - 1)))
			break;
		err = um_search_apply(&s, &um_search_configs[i ? 1 : 0]);
		if (!err && s.estimate < *ns)
			*ns = s.estimate;
	}
	*work += s.work;
	fini(&s);
	return err;
}
