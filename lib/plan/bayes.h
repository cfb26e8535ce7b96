/* SPDX-License-Identifier: Apache-2.0
 *
 * bayes.h - Bayesian optimisation: the minimum of a function of four numbers in [-1, 1], with few evaluations
 *
 * in    points and the function's values there
 * out   the next point to evaluate
 *
 * A Gaussian process (squared exponential kernel of length 1, values standardised) is fitted to the known values; of
 * some hundred evenly spread points the one with the highest expected improvement is next. Deterministic.
 */
#ifndef UM_PLAN_BAYES_H
#define UM_PLAN_BAYES_H

#define UM_BAYES_DIMS 4
#define UM_BAYES_MOST 40

struct um_bayes {
	double at[UM_BAYES_MOST][UM_BAYES_DIMS];
	double value[UM_BAYES_MOST];
	int n; /* all 0 at first */
};

/* `n` < UM_BAYES_MOST. O(n^3 + n^2 for each candidate). */
void um_bayes_next(const struct um_bayes *y, double at[UM_BAYES_DIMS]);
void um_bayes_add(struct um_bayes *y, const double at[UM_BAYES_DIMS], double value);
int um_bayes_best(const struct um_bayes *y); /* the first with the least value; n > 0 */

#endif
