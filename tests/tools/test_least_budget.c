/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest budget that is enough is found where more memory may be too little, and no budget above the bound is
 * left out.
 */
#include "least_budget.h"

#include "model/event.h"
#include "tap.h"

#include <errno.h>

#define B UM_BLOCK_BYTES

struct case_ {
	uint64_t bound; /* the least that the bound allows, in blocks */
	const char *enough; /* by block: '1' */
	unsigned asked[64];
	int fails_at; /* block; 0: nowhere */
};

static int may_be_enough(void *user, uint64_t budget)
{
	return budget / B >= ((struct case_ *)user)->bound;
}

static int is_enough(void *user, uint64_t budget)
{
	struct case_ *c = user;

	c->asked[budget / B]++;
	if (c->fails_at && budget / B == (uint64_t)c->fails_at)
		return -ENOMEM;
	return c->enough[budget / B] == '1';
}

static int find(struct case_ *c, struct least_budget *l)
{
	least_budget_init(l, 28 * B);
	l->most = 31 * B;
	l->may_be_enough = may_be_enough;
	l->is_enough = is_enough;
	l->user = c;
	return least_budget_find(l);
}

int main(void)
{
	struct case_ c = {.bound = 5, .enough = "00000000001000011110111111111111"};
	struct least_budget l;
	int again = 0;

	is_int(find(&c, &l), 0, "budgets that are enough in between are searched");
	is_u64(l.budget, 10 * B, "the smallest is found, although the next ones are too little");
	is_u64(l.bound, 5 * B, "the least that the bound allows is found by halving");
	is_u64(l.tried, 6, "each budget from there to the result is tried");
	for (int i = 0; i < 32; i++)
		again += c.asked[i] != (unsigned)(i >= 5 && i <= 10);
	is_int(again, 0, "and no other one");

	c = (struct case_){.bound = 8, .enough = "00000000000000000000000000000000"};
	is_int(find(&c, &l), 0, "a search may find nothing");
	is_u64(l.budget, 0, "then there is no budget");
	is_u64(l.tried, 24, "and all above the bound were tried");
	c = (struct case_){.bound = 1, .enough = "01111111111111111111111111111111"};
	find(&c, &l);
	is_u64(l.budget, B, "one step may be enough");
	c = (struct case_){.bound = 5, .enough = "00000000001000011110111111111111", .fails_at = 7};
	is_int(find(&c, &l), -ENOMEM, "a failure ends the search");

	least_budget_init(&l, 100 * B - 1);
	is_u64(l.step, B, "budgets are whole blocks");
	ok(l.most >= 100 * B, "up to all bytes alive, and more");
	least_budget_init(&l, 3 * LEAST_BUDGET_GRID * B / 2);
	is_u64(l.step, 2 * B, "or multiples of some, for much memory");
	return tap_done();
}
