/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_lp.h - a linear program that grows: minimise cost over columns, rows from below
 *
 * The one file that knows the solver is bound_lp.c. Rows are given first, columns may be added between two solves,
 * which then go on from where the last one ended.
 */
#ifndef UM_TOOL_BOUND_LP_H
#define UM_TOOL_BOUND_LP_H

struct bound_lp;

struct bound_lp_entry {
	int row;
	double value;
};

/* Before all else: loads the solver. 0, or -ENOENT where it is not installed. */
int bound_lp_load(void);

/* Rows: the sum is at least low[i]. NULL: no memory. */
struct bound_lp *bound_lp_new(int rows, const double *low);
void bound_lp_free(struct bound_lp *lp);

/* A column in [low, high] (high < low: no limit). Each row at most once. */
int bound_lp_add(struct bound_lp *lp, double cost, double low, double high, int n, const struct bound_lp_entry *e);

/* 0 or -EIO. `price`: by row, what its lower side costs (>= 0 but for rounding). */
int bound_lp_solve(struct bound_lp *lp, double *objective, double *price);

#endif
