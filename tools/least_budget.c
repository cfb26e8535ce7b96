/* SPDX-License-Identifier: Apache-2.0 */
#include "least_budget.h"

#include "model/event.h"

void least_budget_init(struct least_budget *l, uint64_t alive)
{
	uint64_t blocks = (alive + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;

	*l = (struct least_budget){.step = (blocks / LEAST_BUDGET_GRID + 1) * UM_BLOCK_BYTES};
	/* neighbours in a block may keep more than the bytes alive resident */
	l->most = (alive + alive / 16) / l->step * l->step + 4 * l->step;
}

/* The smallest budget that the bound allows. */
static int find_bound(struct least_budget *l)
{
	uint64_t low = 0, high = l->most / l->step;

	while (low + 1 < high) {
		uint64_t middle = low + (high - low) / 2;
		int may = l->may_be_enough(l->user, middle * l->step);

		if (may < 0)
			return may;
		if (may)
			high = middle;
		else
			low = middle;
	}
	l->bound = high * l->step;
	return 0;
}

/* Asks about a budget; one that is enough is the best so far, since they only fall. 1, 0 or -errno. */
static int try_budget(struct least_budget *l, uint64_t budget)
{
	int is = l->is_enough(l->user, budget);

	l->tried++;
	if (is > 0)
		l->budget = budget;
	return is;
}

/* How far the next budget is from one that is not enough. */
static uint64_t stride(const struct least_budget *l, uint64_t budget)
{
	uint64_t steps = (budget - l->bound) / l->step / LEAST_BUDGET_SHARE;

	return (steps ? steps : 1) * l->step;
}

/* Between one that is not enough and the result. */
static int halve(struct least_budget *l, uint64_t low)
{
	int err = 0;

	while (err >= 0 && l->budget - low > l->step) {
		uint64_t middle = low + (l->budget - low) / l->step / 2 * l->step;

		err = try_budget(l, middle);
		if (!err)
			low = middle;
	}
	return err < 0 ? err : 0;
}

int least_budget_find(struct least_budget *l)
{
	int err = find_bound(l), is;
	uint64_t low, b;

	l->budget = 0;
	if (err)
		return err;
	low = b = l->bound;
	is = try_budget(l, b);
	while (!is && b < l->most) {
		low = b;
		b += stride(l, b);
		b = b < l->most ? b : l->most;
		is = try_budget(l, b);
	}
	return is > 0 ? halve(l, low) : is;
}
