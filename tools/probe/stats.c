/* SPDX-License-Identifier: Apache-2.0
 *
 * Medians by sorting: at most a few dozen values.
 */
#include "probe/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double um_median(double *x, unsigned n)
{
	assert(n);
	qsort(x, n, sizeof *x, ascending);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

struct um_figure um_figure_of(const double *x, unsigned n)
{
	double copy[UM_ROUNDS_MAX * UM_SIZES_MAX], middle;

	assert(n && n <= UM_ROUNDS_MAX * UM_SIZES_MAX);
	memcpy(copy, x, n * sizeof *x);
	middle = um_median(copy, n);
	for (unsigned i = 0; i < n; i++)
		copy[i] = fabs(copy[i] - middle);
	return (struct um_figure){middle, um_median(copy, n), n};
}

static void line_through(const double *x, const double *y, unsigned n, double *slope, double *fixed)
{
	double mx = 0, my = 0, xx = 0, xy = 0;

	for (unsigned i = 0; i < n; i++) {
		mx += x[i] / n;
		my += y[i] / n;
	}
	for (unsigned i = 0; i < n; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		xy += (x[i] - mx) * (y[i] - my);
	}
	*slope = xx > 0 ? xy / xx : 0;
	*fixed = my - *slope * mx;
}

struct um_figure um_series_at(const struct um_series *s, unsigned size)
{
	double y[UM_ROUNDS_MAX];

	for (unsigned r = 0; r < s->rounds; r++)
		y[r] = s->y[r][size];
	return um_figure_of(y, s->rounds);
}

struct um_line um_series_line(const struct um_series *s)
{
	double slope[UM_ROUNDS_MAX], fixed[UM_ROUNDS_MAX], y[UM_SIZES_MAX];
	struct um_line l;

	assert(s->sizes >= 2 && s->rounds);
	for (unsigned r = 0; r < s->rounds; r++)
		line_through(s->x, s->y[r], s->sizes, &slope[r], &fixed[r]);
	l.slope = um_figure_of(slope, s->rounds);
	l.fixed = um_figure_of(fixed, s->rounds);
	for (unsigned i = 0; i < s->sizes; i++)
		y[i] = um_series_at(s, i).value;
	line_through(s->x, y, s->sizes, &l.slope.value, &l.fixed.value);
	return l;
}

struct um_figure um_figure_add(struct um_figure a, double k, struct um_figure b)
{
	if (!a.n || !b.n)
		return (struct um_figure){0};
	return (struct um_figure){a.value + k * b.value, hypot(a.spread, k * b.spread), a.n < b.n ? a.n : b.n};
}
