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

int least_budget_find(struct least_budget *l)
{
	int err = find_bound(l);

	l->budget = 0;
	for (uint64_t b = l->bound; !err && !l->budget && b <= l->most; b += l->step) {
		int is = l->is_enough(l->user, b);

		l->tried++;
		err = is < 0 ? is : 0;
		l->budget = is > 0 ? b : 0;
	}
	return err;
}
