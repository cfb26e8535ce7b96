/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_lp.h - a linear program: minimise cost over columns within limits, rows within limits
 *
 * The one file that knows the solver is bound_lp.c. Rows first, then columns with what they add to rows. Memory that
 * runs out on the way is said by bound_lp_solve.
 */
#ifndef UM_BOUND_BOUND_LP_H
#define UM_BOUND_BOUND_LP_H

#define BOUND_LP_FREE 1e300 /* no limit above */

struct bound_lp;

/* Before all else: loads the solver. 0, or -ENOENT where it is not installed. */
int bound_lp_load(void);

struct bound_lp *bound_lp_new(void); /* NULL: no memory */
void bound_lp_free(struct bound_lp *lp);

/* A row in [low, high]; its number, from 0. */
int bound_lp_row(struct bound_lp *lp, double low, double high);

/* A column in [low, high]; its number, from 0. What it adds to rows follows, a row once or more. */
int bound_lp_column(struct bound_lp *lp, double cost, double low, double high);
void bound_lp_put(struct bound_lp *lp, int row, double value);

/* 0 or -ENOMEM. After `seconds` (0: never) it stops where it is (*done: 0). */
int bound_lp_solve(struct bound_lp *lp, double seconds, int *done);

/* What a row's limit costs, as far as it was solved: >= 0 for a lower one, <= 0 for an upper one, but for rounding. */
double bound_lp_price(const struct bound_lp *lp, int row);

#endif
