/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest budget that is enough is found where more memory may be too little: near the bound no budget is left
 * out, and one that is far from it takes few tries.
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

struct far {
	uint64_t from; /* blocks that are enough */
	uint64_t fails_at; /* likewise */
};

static int is_in_bound(void *user, uint64_t budget)
{
	(void)user;
	return budget >= 100 * B;
}

static int is_far_enough(void *user, uint64_t budget)
{
	const struct far *f = user;

	return budget / B == f->fails_at ? -ENOMEM : budget / B >= f->from;
}

static int find_far(struct far *f, struct least_budget *l)
{
	least_budget_init(l, 4000 * B);
	l->may_be_enough = is_in_bound;
	l->is_enough = is_far_enough;
	l->user = f;
	return least_budget_find(l);
}

static void far_from_bound(void)
{
	struct least_budget l;
	struct far f = {.from = 164};
	int wrong = 0;
	unsigned tried = 0;

	find_far(&f, &l);
	is_u64(l.tried, 65, "each of the first 64 budgets above the bound is tried");
	for (f.from = 165; f.from < 4000; f.from += 7) {
		wrong += find_far(&f, &l) != 0 || l.budget != f.from * B;
		tried = l.tried > tried ? l.tried : tried;
	}
	is_int(wrong, 0, "a budget far from the bound is found where more memory never costs time");
	ok(tried < 220, "in few tries (%u)", tried);
	f.from = UINT64_MAX;
	is_int(find_far(&f, &l), 0, "a search over large distances may find nothing");
	is_u64(l.budget, 0, "then there is no budget either");
	f = (struct far){.from = l.most / B};
	find_far(&f, &l);
	is_u64(l.budget, l.most, "the last budget is tried");
	f = (struct far){.from = 200, .fails_at = 200};
	is_int(find_far(&f, &l), -ENOMEM, "a failure ends the halving");
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

	far_from_bound();

	least_budget_init(&l, 100 * B - 1);
	is_u64(l.step, B, "budgets are whole blocks");
	ok(l.most >= 100 * B, "up to all bytes alive, and more");
	least_budget_init(&l, 3 * LEAST_BUDGET_GRID * B / 2);
	is_u64(l.step, 2 * B, "or multiples of some, for much memory");
	return tap_done();
}
