/* SPDX-License-Identifier: Apache-2.0
 *
 * From the best plan on, parts of a group are made more or less eligible at random, and what is no worse is kept.
 * It goes on as long as it is given time; the first rounds are worth most.
 */
#include "plan/search_state.h"

#include "base/hash.h"
#include "plan/choose.h"

#define MOST_STEPS 160
#define MOST_VAIN_STEPS 60 /* in a row */

struct wander {
	uint32_t *first, *gap; /* by use: gaps that may be spent away, gap[first[use]] .. gap[first[use + 1]] */
	uint8_t *away; /* by visit, where it stands */
	int64_t *malus; /* likewise */
	uint64_t random;
};

static uint32_t draw(struct wander *w, uint32_t below)
{
	w->random = um_hash_u64(w->random, below);
	return (uint32_t)((w->random >> 32) * below >> 32);
}

static int wander_init(struct wander *w, const struct um_search *s)
{
	size_t uses = s->out->sched.uses.n;

	w->first = calloc(uses + 2, sizeof *w->first);
	w->gap = malloc((s->b->n_visits + 1ull) * sizeof *w->gap);
	w->away = malloc(s->b->n_visits + 1ull);
	w->malus = malloc((s->b->n_visits + 1ull) * sizeof *w->malus);
	if (!w->first || !w->gap || !w->away || !w->malus)
		return -ENOMEM;
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t v = 0; v < s->b->n_visits; v++) {
			if (!s->b->visit[v].live || !um_choice_can_leave(s->b, v))
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

static void wander_fini(struct wander *w)
{
	free(w->first);
	free(w->gap);
	free(w->away);
	free(w->malus);
}

/* Keeps some of what leaves, or has some leave that stays: a gap drawn by chance, and neighbours of its group. */
static void step(struct wander *w, struct um_search *s)
{
	uint32_t n = w->first[s->out->sched.uses.n], keep = draw(w, 5) < 3, v = 0;
	int64_t lap = (int64_t)s->clock[s->b->n_ops], malus;

	for (int i = 0; i < 200; i++) {
		v = w->gap[draw(w, n)];
		if (w->away[v] == keep)
			break;
	}
	uint32_t lo = w->first[s->group[v]], hi = w->first[s->group[v] + 1];

	if (draw(w, 3)) {
		lo += draw(w, hi - lo);
		hi = lo + 1 + draw(w, hi - lo);
	}
	malus = lap / 512 * draw(w, 1024);
	if (!draw(w, 7))
		malus = 0;
	for (; lo < hi; lo++)
		s->malus[w->gap[lo]] = keep ? malus : -malus;
}

/* From the best plan on, as long as there is time. */
int um_search_wander(struct um_search *s)
{
	struct wander w = {.random = s->b->n_visits};
	size_t bytes = s->b->n_visits * sizeof *s->malus;
	uint64_t at;
	int steps = 0, vain = 0;
	int err = wander_init(&w, s);

	if (!err) {
		memcpy(s->malus, s->best_malus, bytes);
		err = um_search_go(s, s->best_way);
	}
	at = s->estimate;
	while (!err && w.first[s->out->sched.uses.n] && !um_search_enough(s)) {
		if ((++steps > MOST_STEPS || ++vain > MOST_VAIN_STEPS) && !um_search_more(s))
			break;
		memcpy(w.away, s->away, s->b->n_visits);
		memcpy(w.malus, s->malus, bytes);
		for (uint32_t i = 1 + draw(&w, 3); i > 0; i--)
			step(&w, s);
		err = um_search_go(s, s->best_way);
		if (!err && s->estimate < at) {
			err = um_search_judge(s, s->best_way);
			vain = 0;
		}
		if (!err && s->estimate <= at) {
			at = s->estimate;
			continue;
		}
		memcpy(s->malus, w.malus, bytes);
		memcpy(s->away, w.away, s->b->n_visits);
		err = err == -E2BIG ? 0 : err;
	}
	wander_fini(&w);
	return err;
}
