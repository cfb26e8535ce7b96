/* SPDX-License-Identifier: Apache-2.0
 *
 * bayes.h - the least of a function of four numbers in [-1, 1], asked for a few times
 *
 * in    points and what the function is there
 * out   the next point to ask for
 *
 * Bayesian optimisation: a Gaussian process (squared exponential kernel of length 1, values standardised) is put
 * through what is known; of some hundred points spread evenly the one with the highest expected improvement comes next.
 * The same questions and answers lead to the same next question.
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

/* `n` < UM_BAYES_MOST. O(n^3 + n^2 for each of the points tried). */
void um_bayes_next(const struct um_bayes *y, double at[UM_BAYES_DIMS]);
void um_bayes_tell(struct um_bayes *y, const double at[UM_BAYES_DIMS], double value);
int um_bayes_best(const struct um_bayes *y); /* the first with the least value; n > 0 */

#endif
