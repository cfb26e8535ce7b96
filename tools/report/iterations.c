/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterations are consecutive ranges of one thread of a process. Correlations grow with time in a process, so the first
 * and the last call of an iteration determine its work.
 */
#include "report/report_state.h"

#include "base/hash.h"

#define FAR 3.5 /* robust standard deviations of an odd iteration from the median */
#define SIGMA 1.4826 /* of a normal distribution, per MAD */
#define FAR_SHARE 0.01 /* of the median: smallest deviation of an odd iteration */

/* Is it a range that the survey chose? */
static int is_chosen(const struct um_iteration_spans *f, const struct um_activity *a)
{
	char name[UM_RANGE_NAME_MAX];

	um_range_stem(a->name, name);
	return strcmp(name, f->name) == 0 && strcmp(a->domain ? a->domain : "", f->domain ? f->domain : "") == 0;
}

static int is_iteration(const struct um_report *r, const struct um_activity *a)
{
	if (r->o.seek == UM_SEEK_NONE)
		return 0;
	if (r->o.found)
		return r->o.found->name && is_chosen(r->o.found, a);
	if (r->o.seek == UM_SEEK_PATTERN)
		return um_range_matches(r->o.iteration, a);
	return a->domain && strcmp(a->domain, UM_REPORT_DOMAIN) == 0;
}

/* --- names of ranges ---------------------------------------------------------------------------------------------- */

struct key {
	const struct um_report *r;
	const char *name, *domain;
};

static uint64_t hash_name(const char *name, const char *domain)
{
	return um_hash_u64(um_hash_str(name), um_hash_str(domain));
}

static int same_range(const void *user, uint32_t row)
{
	const struct key *k = user;
	const struct um_report_range *range = &k->r->ranges.at[row];

	return strcmp(range->name, k->name) == 0 &&
	       strcmp(range->domain ? range->domain : "", k->domain ? k->domain : "") == 0;
}

static int range_add(struct um_report *r, const char *name, const struct um_activity *a, uint32_t *row)
{
	struct um_report_range range = {.name = strdup(name), .domain = a->domain ? strdup(a->domain) : NULL};

	if (!range.name || (a->domain && !range.domain) || um_vec_reserve(&r->ranges, 1) ||
	    um_index_add(&r->range_index, hash_name(name, a->domain), (uint32_t)r->ranges.n)) {
		free(range.name);
		free(range.domain);
		return -ENOMEM;
	}
	*row = (uint32_t)r->ranges.n;
	r->ranges.at[r->ranges.n++] = range;
	return 0;
}

/* Counts a range by its name without the final number. */
static int count_range(struct um_report *r, const struct um_activity *a)
{
	char name[UM_RANGE_NAME_MAX];
	uint32_t row;
	int err = 0;

	um_range_stem(a->name, name);
	row = um_index_find(&r->range_index, hash_name(name, a->domain), same_range, &(struct key){r, name, a->domain});
	if (row == UM_INDEX_NONE) {
		if (r->ranges.n >= UM_REPORT_RANGES_MAX)
			return 0;
		err = range_add(r, name, a, &row);
	}
	if (!err) {
		r->ranges.at[row].n++;
		r->ranges.at[row].ns += (uint64_t)a->end - (uint64_t)a->begin;
		r->ranges.at[row].unfinished += (uint64_t)a->unfinished;
	}
	return err;
}

/* --- iterations --------------------------------------------------------------------------------------------------- */

int um_report_on_range(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	struct um_report_process *p = &r->processes.at[process];
	const struct um_report_iteration *last = um_report_last_of(r, p);
	struct um_report_iteration it = {.process = process,
					 .n = (uint32_t)p->iterations.n,
					 .begin = a->begin,
					 .end = a->end,
					 .mark = a->unfinished ? UM_MARK_UNFINISHED : UM_MARK_NONE};
	int err = count_range(r, a);

	if (err || !is_iteration(r, a))
		return err;
	if ((last && (a->begin < last->end || a->thread != p->thread)) || r->iterations.n >= UM_REPORT_ITERATIONS_MAX) {
		r->ranges_skipped++;
		return 0;
	}
	it.name = strdup(a->name);
	if (!it.name || um_vec_reserve(&p->iterations, 1) || um_vec_push(&r->iterations, it)) {
		free(it.name);
		return -ENOMEM;
	}
	p->thread = a->thread;
	p->iterations_by = r->o.found ? "ranges" : r->o.seek == UM_SEEK_PATTERN ? "asked" : "marked";
	p->iterations.at[p->iterations.n++] = (uint32_t)(r->iterations.n - 1);
	return 0;
}

void um_report_on_call(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	struct um_report_iteration *it = um_report_last_of(r, &r->processes.at[process]);

	r->has_calls = 1;
	if (!it || r->processes.at[process].found || a->begin >= it->end || !a->correlation)
		return;
	if (!it->has_calls || a->correlation < it->first_call)
		it->first_call = a->correlation;
	if (!it->has_calls || a->correlation > it->last_call)
		it->last_call = a->correlation;
	it->has_calls = 1;
}

uint32_t um_report_iteration_at(const struct um_report *r, uint32_t process, int64_t t)
{
	const struct um_report_process *p = &r->processes.at[process];
	const struct um_report_iteration *it = um_report_last_of(r, p);

	return it && t >= it->begin && t < it->end ? p->iterations.at[p->iterations.n - 1] : UM_REPORT_NONE;
}

uint32_t um_report_iteration_of(struct um_report *r, uint32_t process, const struct um_activity *work)
{
	const struct um_report_process *p = &r->processes.at[process];

	if (!p->iterations.n)
		return UM_REPORT_NONE;
	if ((!r->has_calls && !p->found) || !work->correlation) {
		r->by_time++;
		return um_report_iteration_at(r, process, work->begin);
	}
	for (size_t i = p->iterations.n; i > 0; i--) {
		const struct um_report_iteration *it = &r->iterations.at[p->iterations.at[i - 1]];

		if (it->has_calls && it->first_call <= work->correlation)
			return work->correlation <= it->last_call ? p->iterations.at[i - 1] : UM_REPORT_NONE;
	}
	return UM_REPORT_NONE;
}

/* --- compared ----------------------------------------------------------------------------------------------------- */

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *v, size_t n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof *v, order);
	return n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2 + (v[n / 2 - 1] % 2 + v[n / 2] % 2) / 2;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Median of the finished iterations of a process (UM_REPORT_NONE: of all), and of their distances from it. */
static void spread(const struct um_report *r, uint32_t process, uint64_t *room, uint64_t *med, uint64_t *mad)
{
	size_t n = 0;

	for (size_t i = 0; i < r->iterations.n; i++) {
		const struct um_report_iteration *it = &r->iterations.at[i];

		if (it->mark != UM_MARK_UNFINISHED && (process == UM_REPORT_NONE || it->process == process))
			room[n++] = it->ns;
	}
	*med = median(room, n);
	for (size_t i = 0; i < n; i++)
		room[i] = distance(room[i], *med);
	*mad = median(room, n);
}

static void mark(struct um_report *r, const struct um_report_process *p)
{
	double far = FAR * SIGMA * (double)p->mad_ns, least = FAR_SHARE * (double)p->median_ns;
	int cold = 1;

	far = far > least ? far : least;
	for (size_t i = 0; i < p->iterations.n; i++) {
		struct um_report_iteration *it = &r->iterations.at[p->iterations.at[i]];
		int odd = (double)distance(it->ns, p->median_ns) > far;

		cold &= odd && it->ns > p->median_ns;
		if (it->mark == UM_MARK_NONE && odd)
			it->mark = cold ? UM_MARK_COLD : UM_MARK_ODD;
	}
}

/* Sums of iterations in the steady state. */
static void sum_steady(const struct um_report *r, struct um_report_process *p)
{
	p->steady = p->steady_ns = 0;
	memset(&p->work, 0, sizeof p->work);
	memset(&p->collectives, 0, sizeof p->collectives);
	for (size_t i = 0; i < p->iterations.n; i++) {
		const struct um_report_iteration *it = &r->iterations.at[p->iterations.at[i]];

		if (it->mark == UM_MARK_UNFINISHED || it->mark == UM_MARK_COLD)
			continue;
		p->steady++;
		p->steady_ns += it->ns;
		um_report_work_add(&p->work, &it->sums.work);
		um_report_collectives_add(&p->collectives, &it->collectives);
	}
}

static double pace(const struct um_report *r, uint32_t process)
{
	const struct um_report_process *p = &r->processes.at[process];

	return (double)(p->steady_ns - (r->by_own ? p->collectives.alone_ns : 0)) / (double)p->steady;
}

static int by_pace(const void *a, const void *b, void *user)
{
	const struct um_report *r = user;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	double p = pace(r, x), q = pace(r, y);

	return p != q ? (p < q) - (p > q) : x < y ? -1 : x > y;
}

static int order_by_pace(struct um_report *r)
{
	um_vec_clear(&r->by_pace);
	r->by_own = 1;
	for (uint32_t i = 0; i < r->processes.n; i++) {
		struct um_report_process *p = &r->processes.at[i];

		sum_steady(r, p);
		if (!p->steady)
			continue;
		if (um_vec_push(&r->by_pace, i))
			return -ENOMEM;
		r->by_own &= p->collectives.ns > 0;
	}
	if (r->by_pace.n)
		qsort_r(r->by_pace.at, r->by_pace.n, sizeof *r->by_pace.at, by_pace, r);
	return 0;
}

int um_report_compare(struct um_report *r)
{
	uint64_t *room = malloc((r->iterations.n + 1) * sizeof *room);

	if (!room)
		return -ENOMEM;
	for (size_t i = 0; i < r->iterations.n; i++) {
		struct um_report_iteration *it = &r->iterations.at[i];

		it->ns = it->has_gpu ? (uint64_t)it->gpu_end - (uint64_t)it->gpu_begin
				     : (uint64_t)it->end - (uint64_t)it->begin;
	}
	for (uint32_t i = 0; i < r->processes.n; i++) {
		struct um_report_process *p = &r->processes.at[i];

		spread(r, i, room, &p->median_ns, &p->mad_ns);
		mark(r, p);
	}
	spread(r, UM_REPORT_NONE, room, &r->median_ns, &r->mad_ns);
	free(room);
	return order_by_pace(r);
}
