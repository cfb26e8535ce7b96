/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_lp.h - a linear program: minimise cost over columns within limits, rows within limits
 *
 * Only bound_lp.c depends on the solver. Rows come first, then columns with their coefficients. bound_lp_solve reports
 * a lack of memory of earlier calls.
 */
#ifndef UM_BOUND_BOUND_LP_H
#define UM_BOUND_BOUND_LP_H

#define BOUND_LP_FREE 1e300 /* no limit above */

struct bound_lp;

/* Loads the solver; to be called first. 0, or -ENOENT if it is not installed. */
int bound_lp_load(void);

struct bound_lp *bound_lp_new(void); /* NULL: no memory */
void bound_lp_free(struct bound_lp *lp);

/* A row in [low, high]; its number, from 0. */
int bound_lp_row(struct bound_lp *lp, double low, double high);

/* A column in [low, high]; its number, from 0. Its coefficients follow, one or more per row. */
int bound_lp_column(struct bound_lp *lp, double cost, double low, double high);
void bound_lp_put(struct bound_lp *lp, int row, double value);

/* 0 or -ENOMEM. After `seconds` (0: never) it stops early (*done: 0). */
int bound_lp_solve(struct bound_lp *lp, double seconds, int *done);

/* Dual value of a row's limit so far: >= 0 for a lower one, <= 0 for an upper one, up to rounding. */
double bound_lp_price(const struct bound_lp *lp, int row);

#endif
