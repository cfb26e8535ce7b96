/* SPDX-License-Identifier: Apache-2.0 */
#include "report/views.h"

#include "base/bisect.h"
#include "report/report_state.h"

void um_views_fini(struct um_views *v)
{
	um_bins_fini(&v->all);
	for (size_t i = 0; i < v->files.n; i++)
		um_bins_fini(&v->files.at[i]);
	um_vec_fini(&v->files);
	for (size_t i = 0; i < v->of.n; i++)
		um_bins_fini(&v->of.at[i].series);
	for (size_t i = 0; i < v->spare.n; i++)
		um_bins_fini(&v->spare.at[i].series);
	for (size_t i = 0; i < v->lanes.n; i++)
		um_bins_fini(&v->lanes.at[i].pending);
	um_vec_fini(&v->of);
	um_vec_fini(&v->spare);
	um_vec_fini(&v->last);
	um_vec_fini(&v->lanes);
	um_resident_fini(&v->resident);
}

static struct um_views_lane *lane_of(struct um_report *r, uint32_t lane)
{
	struct um_views *v = &r->views;

	while (v->lanes.n <= lane) {
		struct um_views_lane fresh = {.process = r->lanes.at[v->lanes.n].process, .busy_until = INT64_MIN};

		if (um_vec_reserve(&v->lanes, 1) || um_bins_init(&fresh.pending, UM_VIEW_BINS))
			return NULL;
		v->lanes.at[v->lanes.n++] = fresh;
	}
	return &v->lanes.at[lane];
}

/* Bytes in use by a process, or by all: UM_REPORT_NONE. */
static uint64_t level(const struct um_views *v, uint32_t process)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < v->lanes.n; i++)
		if (process == UM_REPORT_NONE || v->lanes.at[i].process == process)
			bytes += um_resident_bytes(&v->resident, i);
	return bytes;
}

/* --- iterations that are kept ------------------------------------------------------------------------------------- */

static size_t place_of(const struct um_views *v, uint32_t iteration)
{
	size_t low = 0;

	UM_BISECT(low, v->of.n, i, v->of.at[i].iteration < iteration)
	return low;
}

static void drop(struct um_views *v, uint32_t iteration)
{
	size_t i = place_of(v, iteration);

	if (i == v->of.n || v->of.at[i].iteration != iteration)
		return;
	v->spare.at[v->spare.n++] = v->of.at[i]; /* memory was reserved by take_spare */
	memmove(v->of.at + i, v->of.at + i + 1, (--v->of.n - i) * sizeof *v->of.at);
}

static int on_stride(const struct um_views *v, uint32_t iteration)
{
	return iteration % (v->stride ? v->stride : 1) == 0;
}

/* Decides whether to keep a finished iteration. */
static void over(struct um_report *r, uint32_t iteration)
{
	struct um_views *v = &r->views;
	const struct um_report_iteration *it = &r->iterations.at[iteration];
	uint64_t ns = it->has_gpu ? (uint64_t)it->gpu_end - (uint64_t)it->gpu_begin : 0;
	uint32_t loser = iteration;

	if (it->n && it->mark != UM_MARK_UNFINISHED && (v->slowest == UM_REPORT_NONE || ns > v->slowest_ns)) {
		loser = v->slowest;
		v->slowest = iteration;
		v->slowest_ns = ns;
	}
	if (loser != UM_REPORT_NONE && !on_stride(v, loser))
		drop(v, loser);
}

/* Drops every other one of the regularly kept iterations. Unfinished ones stay. */
static void thin(struct um_views *v)
{
	uint32_t kept = 0;

	for (size_t i = 0; i < v->of.n; i++)
		kept += on_stride(v, v->of.at[i].iteration);
	if (kept <= UM_VIEWS_KEPT)
		return;
	v->stride *= 2;
	for (size_t i = v->of.n; i > 0; i--) {
		uint32_t k = v->of.at[i - 1].iteration;
		int going = k == v->slowest;

		for (size_t p = 0; p < v->last.n; p++)
			going |= k == v->last.at[p];
		if (!going && !on_stride(v, k))
			drop(v, k);
	}
}

static int take_spare(struct um_views *v, struct um_bins *out)
{
	/* Reserves memory for dropping all of them. */
	if (um_vec_reserve(&v->spare, v->of.n + 1))
		return -ENOMEM;
	if (!v->spare.n)
		return um_bins_init(out, UM_VIEW_BINS);
	*out = v->spare.at[--v->spare.n].series;
	um_bins_clear(out);
	return 0;
}

/* The series of an iteration; NULL in *out: none. */
static int series_of(struct um_report *r, uint32_t process, uint32_t iteration, struct um_bins **out)
{
	struct um_views *v = &r->views;
	size_t i = place_of(v, iteration);
	struct um_view fresh = {.iteration = iteration};

	*out = NULL;
	if (i < v->of.n && v->of.at[i].iteration == iteration) {
		*out = &v->of.at[i].series;
		return 0;
	}
	if (iteration == UM_REPORT_NONE)
		return 0;
	if (!v->stride) {
		v->stride = 1;
		v->slowest = UM_REPORT_NONE;
	}
	while (v->last.n <= process)
		if (um_vec_push(&v->last, UM_REPORT_NONE))
			return -ENOMEM;
	/* Reuses a dropped one. */
	if (v->last.at[process] != UM_REPORT_NONE && iteration < v->last.at[process])
		return 0;
	if (um_vec_reserve(&v->of, 1) || take_spare(v, &fresh.series))
		return -ENOMEM;
	fresh.level = level(v, process);
	memmove(v->of.at + i + 1, v->of.at + i, (v->of.n++ - i) * sizeof *v->of.at);
	v->of.at[i] = fresh;
	if (v->last.at[process] != UM_REPORT_NONE)
		over(r, v->last.at[process]);
	v->last.at[process] = iteration;
	thin(v);
	*out = &v->of.at[place_of(v, iteration)].series;
	return 0;
}

/* --- what happens ------------------------------------------------------------------------------------------------- */

static int all_of(struct um_views *v)
{
	return v->all.at ? 0 : um_bins_init(&v->all, UM_VIEWS_BINS);
}

/* The declared uses of a kernel are resident while it runs. */
static int on_uses(struct um_report *r, uint32_t lane, struct um_bins *s, const struct um_activity *a)
{
	struct um_views *v = &r->views;
	uint32_t process = v->lanes.at[lane].process;
	uint64_t op = um_report_op_of(r, a->process, a->correlation), first = 0;
	uint32_t n = op == UM_ACT_NO_OP ? 0 : um_declared_uses_of(&r->causes.declared_uses, process, op, &first);

	for (uint32_t i = 0; i < n; i++) {
		const struct um_declared_use *use = um_declared_uses_at(&r->causes.declared_uses, first + i);

		if (um_resident_use(&v->resident, lane, use->address, use->bytes))
			return -ENOMEM;
	}
	if (n)
		um_bins_level(&v->all, a->begin, level(v, UM_REPORT_NONE));
	if (n && s)
		um_bins_level(s, a->begin, level(v, process));
	return 0;
}

int um_views_work(struct um_report *r, uint32_t lane, uint32_t iteration, const struct um_activity *a)
{
	struct um_views_lane *l;
	struct um_bins *s;
	int64_t from;

	if (!r->views.on)
		return 0;
	l = lane_of(r, lane);
	if (!l || all_of(&r->views) || series_of(r, l->process, iteration, &s))
		return -ENOMEM;
	if (s)
		um_bins_join(s, &l->pending);
	um_bins_clear(&l->pending);
	if (a->kind != UM_ACT_KERNEL)
		return 0;
	if (on_uses(r, lane, s, a))
		return -ENOMEM;
	from = a->begin > l->busy_until ? a->begin : l->busy_until;
	if (from >= a->end)
		return 0;
	l->busy_until = a->end;
	um_bins_add(&r->views.all, UM_BINS_BUSY, from, a->end, (uint64_t)a->end - (uint64_t)from);
	if (s)
		um_bins_add(s, UM_BINS_BUSY, from, a->end, (uint64_t)a->end - (uint64_t)from);
	return 0;
}

int um_views_memory(struct um_report *r, uint32_t lane, uint32_t iteration, int belongs, const struct um_activity *a)
{
	int moved = a->kind == UM_ACT_MIGRATION;
	unsigned row = moved ? UM_BINS_MOVED(a->dir, a->cause) : UM_BINS_FAULTS;
	/* Faults count when their service begins, without its duration. */
	int64_t end = moved ? a->end : a->begin;
	uint64_t amount = moved ? a->bytes : a->faults;
	struct um_views *v = &r->views;
	struct um_views_lane *l;
	struct um_bins *s;

	if (!v->on)
		return 0;
	l = lane_of(r, lane);
	if (!l || all_of(v) || um_resident_feed(&v->resident, lane, a))
		return -ENOMEM;
	s = &l->pending;
	if (belongs && series_of(r, l->process, iteration, &s))
		return -ENOMEM;
	um_bins_add(&v->all, row, a->begin, end, amount);
	um_bins_level(&v->all, a->begin, level(v, UM_REPORT_NONE));
	if (!s)
		return 0;
	um_bins_add(s, row, a->begin, end, amount);
	um_bins_level(s, a->begin, level(v, l->process));
	return 0;
}

int um_views_cpu_fault(struct um_report *r, uint32_t process, uint32_t iteration, const struct um_activity *a)
{
	struct um_bins *s;

	if (!r->views.on)
		return 0;
	if (all_of(&r->views) || series_of(r, process, iteration, &s))
		return -ENOMEM;
	um_bins_add(&r->views.all, UM_BINS_CPU_FAULTS, a->begin, a->begin, a->faults);
	if (s)
		um_bins_add(s, UM_BINS_CPU_FAULTS, a->begin, a->begin, a->faults);
	return 0;
}

int um_views_remove(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	struct um_views *v = &r->views;
	int dropped = a->kind == UM_ACT_HINT && !a->error && a->hint == UM_HINT_DISCARD;

	if (!v->on || (a->kind != UM_ACT_FREE && !dropped))
		return 0;
	if (all_of(v))
		return -ENOMEM;
	for (uint32_t i = 0; i < v->lanes.n; i++)
		if (v->lanes.at[i].process == process)
			um_resident_remove(&v->resident, i, a);
	um_bins_level(&v->all, a->begin, level(v, UM_REPORT_NONE));
	return 0;
}

/* Times of different files are unrelated. */
int um_views_next_file(struct um_views *v)
{
	int lost = v->resident.lost;

	if (!v->on)
		return 0;
	if (um_vec_push(&v->files, v->all))
		return -ENOMEM;
	v->all = (struct um_bins){0};
	um_resident_fini(&v->resident);
	v->resident = (struct um_resident){.lost = lost};
	return 0;
}

/* --- which to look at --------------------------------------------------------------------------------------------- */

static uint64_t from_median(const struct um_report *r, const struct um_view *v)
{
	const struct um_report_iteration *it = &r->iterations.at[v->iteration];
	uint64_t median = r->processes.at[it->process].median_ns;

	return it->ns > median ? it->ns - median : median - it->ns;
}

/* Is `a` better in this role than `b`, which may be NULL? The first of equal ones is. */
static int better(const struct um_report *r, enum um_view_role role, const struct um_view *a, const struct um_view *b)
{
	const struct um_report_iteration *it = &r->iterations.at[a->iteration];

	if (it->mark == UM_MARK_UNFINISHED)
		return 0;
	switch (role) {
	case UM_VIEW_FIRST:
		return it->n == 0 && !b;
	case UM_VIEW_TYPICAL:
		return it->n > 0 && (!b || from_median(r, a) < from_median(r, b));
	default:
		return it->n > 0 && (!b || it->ns > r->iterations.at[b->iteration].ns);
	}
}

unsigned um_views_choose(const struct um_report *r, const struct um_view *chosen[UM_VIEW_ROLES],
			 enum um_view_role roles[UM_VIEW_ROLES])
{
	unsigned n = 0;

	for (int role = 0; role < UM_VIEW_ROLES; role++) {
		const struct um_view *best = NULL;
		int there = 0;

		for (size_t i = 0; i < r->views.of.n; i++)
			if (better(r, (enum um_view_role)role, &r->views.of.at[i], best))
				best = &r->views.of.at[i];
		for (unsigned i = 0; i < n; i++)
			there |= best == chosen[i];
		if (best && !there) {
			chosen[n] = best;
			roles[n++] = (enum um_view_role)role;
		}
	}
	return n;
}
