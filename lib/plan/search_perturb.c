/* SPDX-License-Identifier: Apache-2.0
 *
 * search_perturb.c - random variation of a plan
 *
 * Starting from a plan, parts of a group are made more or less eligible at random, and a plan that is no worse is kept.
 */
#include "plan/search_state.h"

#include "base/hash.h"
#include "plan/choose.h"

#include <math.h>

#define MOST_STEPS 160
#define MOST_FAILED_STEPS 60 /* steps in a row without improvement */

struct variation {
	uint32_t *first, *gap; /* by use: gaps in which eviction is possible, gap[first[use]] .. gap[first[use + 1]] */
	uint8_t *evicted; /* by visit: the current plan */
	int64_t *penalty; /* likewise */
};

static uint32_t draw(struct um_search *s, uint32_t below)
{
	s->random = um_hash_u64(s->random, below);
	return (uint32_t)((s->random >> 32) * below >> 32);
}

static int variation_init(struct variation *w, const struct um_search *s)
{
	size_t uses = s->out->sched.uses.n;

	w->first = calloc(uses + 2, sizeof *w->first);
	w->gap = malloc((s->b->n_visits + 1ull) * sizeof *w->gap);
	w->evicted = malloc(s->b->n_visits + 1ull);
	w->penalty = malloc((s->b->n_visits + 1ull) * sizeof *w->penalty);
	if (!w->first || !w->gap || !w->evicted || !w->penalty)
		return -ENOMEM;
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t v = 0; v < s->b->n_visits; v++) {
			const struct um_visit *x = &s->b->visit[v];

			if (!x->can_leave || !(x->live || (s->copies && x->overwritten)))
				continue;
			if (fill)
				w->gap[w->first[s->group[v] + 1]++] = v;
			else
				w->first[s->group[v] + 2]++;
		}
		for (size_t u = 0; !fill && u < uses; u++)
			w->first[u + 2] += w->first[u + 1];
	}
	return 0;
}

static void variation_fini(struct variation *w)
{
	free(w->first);
	free(w->gap);
	free(w->evicted);
	free(w->penalty);
}

/* Changes a random gap and neighbours of its group: evicted ones become resident, or the other way round. */
static void step(struct variation *w, struct um_search *s)
{
	uint32_t n = w->first[s->out->sched.uses.n], keep = draw(s, 5) < 3, v = 0;
	int64_t iteration_ns = (int64_t)s->clock[s->b->n_ops], penalty;

	for (int i = 0; i < 200; i++) {
		v = w->gap[draw(s, n)];
		if (w->evicted[v] == keep)
			break;
	}
	uint32_t lo = w->first[s->group[v]], hi = w->first[s->group[v] + 1];

	if (draw(s, 3)) {
		lo += draw(s, hi - lo);
		hi = lo + 1 + draw(s, hi - lo);
	}
	penalty = iteration_ns / 512 * draw(s, 1024);
	if (!draw(s, 7))
		penalty = 0;
	for (; lo < hi; lo++)
		s->penalty[w->gap[lo]] = keep ? penalty : -penalty;
}

/* Judges the last plan if its estimate is near. `*value`: its value; less than `at` is better. */
static int weigh(struct um_search *s, const struct um_search_config *config, int rehearsed, double at, double *value)
{
	int worth = rehearsed ? um_search_is_near(s, s->estimate - s->estimate / 256) : (double)s->estimate < at;
	int err = 0;

	s->score = HUGE_VAL;
	if (worth)
		err = um_search_judge(s, config);
	*value = rehearsed ? s->score : (double)s->estimate;
	return err;
}

int um_search_perturb(struct um_search *s, const struct um_search_seed *from, double score)
{
	struct variation w = {.first = NULL};
	size_t bytes = s->b->n_visits * sizeof *s->penalty;
	double at = score, value;
	int steps = 0, vain = 0;
	int err = variation_init(&w, s);

	if (err || !w.first[s->out->sched.uses.n])
		goto out;
	memcpy(s->penalty, from->penalty, bytes);
	err = um_search_apply(s, &from->config);
	if (!score)
		at = (double)s->estimate;
	while (!err && !um_search_enough(s) && steps++ < MOST_STEPS && vain++ < MOST_FAILED_STEPS) {
		memcpy(w.evicted, s->evicted, s->b->n_visits);
		memcpy(w.penalty, s->penalty, bytes);
		for (uint32_t i = 1 + draw(s, 3); i > 0; i--)
			step(&w, s);
		err = um_search_apply(s, &from->config);
		if (!err)
			err = weigh(s, &from->config, score > 0, at, &value);
		if (!err && value <= at) {
			vain = value < at ? 0 : vain;
			at = value;
			continue;
		}
		memcpy(s->penalty, w.penalty, bytes);
		memcpy(s->evicted, w.evicted, s->b->n_visits);
		err = err == -E2BIG ? 0 : err;
	}
out:
	variation_fini(&w);
	return err;
}
