/* SPDX-License-Identifier: Apache-2.0
 *
 * stats.h - medians, their spread, and straight lines through them, for measurements of a device
 *
 * A device that others use, too, sometimes answers late, never early: medians, and medians of absolute deviations, are
 * robust against that. A line separates the cost of a call from the cost of each further block.
 */
#ifndef UM_PROBE_STATS_H
#define UM_PROBE_STATS_H

#define UM_SIZES_MAX 6
#define UM_ROUNDS_MAX 16

/* A figure, in the unit of whoever keeps it. */
struct um_figure {
	double value, spread; /* spread: median absolute deviation of what the value comes from */
	unsigned n; /* measurements; 0: none */
};

/* The same sizes, measured again in each round. */
struct um_series {
	double x[UM_SIZES_MAX];
	double y[UM_ROUNDS_MAX][UM_SIZES_MAX];
	unsigned sizes, rounds;
};

struct um_line {
	struct um_figure slope, fixed; /* y = fixed + slope * x */
};

double um_median(double *x, unsigned n); /* sorts `x`; n > 0 */
struct um_figure um_figure_of(const double *x, unsigned n); /* n <= UM_ROUNDS_MAX * UM_SIZES_MAX */

/* Least squares through the medians of each size; spreads: of the lines of single rounds. Two sizes at least, and one
 * round. */
struct um_line um_series_line(const struct um_series *s);

/* At one size. */
struct um_figure um_series_at(const struct um_series *s, unsigned size);

/* a + k * b; n 0 if either was not measured. */
struct um_figure um_figure_add(struct um_figure a, double k, struct um_figure b);

#endif
