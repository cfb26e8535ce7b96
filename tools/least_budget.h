/* SPDX-License-Identifier: Apache-2.0
 *
 * least_budget.h - the smallest budget that is enough
 *
 * in    a lower bound on the time with a budget, and whether a budget is enough
 * out   the smallest budget of a grid that is enough
 *
 * More memory may make a plan slower, so budgets that are enough may lie below some that are not. The bound does fall
 * with memory: halving finds the least budget that it allows. From there on the budgets of the grid are tried upwards
 * until one is enough: each of the first 64, then at distances of a 32nd of the way so far; within the last such
 * distance the result is found by halving. So a plan close to the bound is found exactly, and one far from it in some
 * hundred tries.
 */
#ifndef UM_TOOLS_LEAST_BUDGET_H
#define UM_TOOLS_LEAST_BUDGET_H

#include <stdint.h>

#define LEAST_BUDGET_GRID 4096 /* budgets at most, up to the memory in which all data is resident */
#define LEAST_BUDGET_SHARE 32 /* of the way from the bound, between two budgets that are tried */

struct least_budget {
	uint64_t step; /* bytes; budgets are multiples of it */
	uint64_t most; /* the largest budget that is tried */
	int (*may_be_enough)(void *user, uint64_t budget); /* the bound: 1, 0 or -errno */
	int (*is_enough)(void *user, uint64_t budget); /* likewise */
	void *user;
	uint64_t bound; /* set here: the smallest budget that the bound allows */
	uint64_t budget; /* set here: the smallest one tried that is enough; 0: none */
	unsigned tried;
};

/* `alive`: the most bytes alive at once. The search steps by `alive` / LEAST_BUDGET_GRID, in whole blocks. */
void least_budget_init(struct least_budget *l, uint64_t alive);

/* 0 or -errno, of the functions. */
int least_budget_find(struct least_budget *l);

#endif
