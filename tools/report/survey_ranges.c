/* SPDX-License-Identifier: Apache-2.0
 *
 * Candidate ranges for iterations: by name, in a process, with the kernel time that begins in them.
 */
#include "report/survey_state.h"

#include "base/hash.h"
#include "report/window.h"

#define GROUPS_MAX 4096u
#define TIMES_MAX 65536u /* compared lengths */
#define LEAST 3 /* ranges */
#define COVERED 0.8 /* smallest share of kernel time that begins in them */
#define STABLE 0.5 /* of the median: largest median deviation */

struct key {
	const struct um_survey *s;
	const char *name, *domain;
	uint64_t process;
};

static int same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static int same_group(const void *user, uint32_t row)
{
	const struct key *k = user;
	const struct um_survey_group *g = &k->s->groups.at[row];

	return g->process == k->process && same_text(g->name, k->name) && same_text(g->domain, k->domain);
}

static int group_add(struct um_survey *s, const struct key *k, uint64_t hash, const struct um_activity *a)
{
	struct um_survey_group g = {.name = strdup(k->name),
				    .domain = a->domain ? strdup(a->domain) : NULL,
				    .process = a->process,
				    .thread = a->thread,
				    .last_end = INT64_MIN};

	if (!g.name || (a->domain && !g.domain) || um_vec_reserve(&s->groups, 1) ||
	    um_index_add(&s->group_index, hash, (uint32_t)s->groups.n)) {
		free(g.name);
		free(g.domain);
		return -ENOMEM;
	}
	s->groups.at[s->groups.n++] = g;
	return 0;
}

int um_survey_on_range(struct um_survey *s, const struct um_activity *a)
{
	char name[UM_RANGE_NAME_MAX];
	struct key k = {s, name, a->domain, a->process};
	uint64_t hash;
	struct um_survey_group *g;
	uint32_t row;

	um_range_stem(a->name, name);
	hash = um_hash_u64(um_hash_u64(um_hash_str(name), um_hash_str(a->domain)), a->process);
	row = um_index_find(&s->group_index, hash, same_group, &k);
	if (row == UM_INDEX_NONE) {
		if (s->groups.n >= GROUPS_MAX)
			return 0;
		row = (uint32_t)s->groups.n;
		if (group_add(s, &k, hash, a))
			return -ENOMEM;
	}
	g = &s->groups.at[row];
	g->mixed |= a->thread != g->thread || a->begin < g->last_end;
	g->last_end = a->end > g->last_end ? a->end : g->last_end;
	g->n++;
	g->ns += (double)(a->end - a->begin);
	if (!a->unfinished && g->times.n < TIMES_MAX && um_vec_push(&g->times, (float)(a->end - a->begin)))
		return -ENOMEM;
	return g->mixed ? 0 : um_vec_push(&s->open, ((struct um_survey_open){a->process, a->end, row}));
}

void um_survey_in_ranges(struct um_survey *s, const struct um_activity *kernel)
{
	size_t left = 0;

	for (size_t i = 0; i < s->open.n; i++) {
		const struct um_survey_open open = s->open.at[i];

		if (open.end <= kernel->begin)
			continue;
		s->open.at[left++] = open;
		if (open.process == kernel->process)
			s->groups.at[open.group].kernel_ns += (double)(kernel->end - kernel->begin);
	}
	s->open.n = left;
}

/* --- chosen ------------------------------------------------------------------------------------------------------- */

static int order(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

static float median(float *v, size_t n)
{
	qsort(v, n, sizeof *v, order);
	return v[n / 2];
}

/* Are most of them about equally long? Overwrites `times`. */
static int stable(struct um_survey_group *g)
{
	float middle = median(g->times.at, g->times.n);

	for (size_t i = 0; i < g->times.n; i++)
		g->times.at[i] = g->times.at[i] > middle ? g->times.at[i] - middle : middle - g->times.at[i];
	return (double)median(g->times.at, g->times.n) <= STABLE * (double)middle;
}

/* Device time of a group's process. */
static double ns_of(const struct um_survey *s, const struct um_survey_group *g)
{
	double ns = 0;

	for (size_t i = 0; i < s->lanes.n; i++)
		ns += s->lanes.at[i].process == g->process ? s->lanes.at[i].ns : 0;
	return ns;
}

/* Enclosing ranges are less frequent. */
static int better(const struct um_survey_group *a, const struct um_survey_group *b)
{
	if (!b || a->process != b->process)
		return !b || a->kernel_ns > b->kernel_ns;
	return a->n != b->n ? a->n < b->n : a->ns > b->ns;
}

int um_survey_choose_range(struct um_survey *s, struct um_iteration_spans *f)
{
	const struct um_survey_group *best = NULL, *second = NULL;

	for (size_t i = 0; i < s->groups.n; i++) {
		struct um_survey_group *g = &s->groups.at[i];
		double ns = ns_of(s, g);

		if (g->mixed || g->times.n < LEAST || ns <= 0 || g->kernel_ns < COVERED * ns || !stable(g))
			continue;
		if (better(g, best)) {
			second = best;
			best = g;
		} else if (better(g, second)) {
			second = g;
		}
	}
	if (!best)
		return 0;
	f->name = strdup(best->name);
	f->domain = best->domain ? strdup(best->domain) : NULL;
	f->covered = best->kernel_ns / ns_of(s, best);
	if (second && second->process == best->process)
		f->rival = strdup(second->name);
	return f->name && (f->domain || !best->domain) ? 0 : -ENOMEM;
}

void um_survey_ranges_fini(struct um_survey *s)
{
	for (size_t i = 0; i < s->groups.n; i++) {
		free(s->groups.at[i].name);
		free(s->groups.at[i].domain);
		um_vec_fini(&s->groups.at[i].times);
	}
	um_vec_fini(&s->groups);
	um_vec_fini(&s->open);
	um_index_fini(&s->group_index);
}
