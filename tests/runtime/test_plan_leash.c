/* SPDX-License-Identifier: Apache-2.0
 *
 * How much planning a program gets.
 */
#include "runtime/plan_leash.h"

#include "tap.h"

#define MS 1000000ull

/* Plans whenever it may, for `ms` of a program's time; each plan takes `cost` ms. The processor time, in ms. */
static uint64_t spent_in(uint64_t ms, uint64_t cost)
{
	struct um_plan_leash l = {0};
	uint64_t sum = 0;

	for (uint64_t t = 0; t < ms; t++) {
		if (!um_plan_leash_allows(&l, t * MS))
			continue;
		um_plan_leash_spend(&l, t * MS, cost * MS);
		sum += cost;
	}
	return sum;
}

static void processor_time(void)
{
	uint64_t sum;

	sum = spent_in(1000, 25);
	ok(sum >= 500 && sum <= 550, "the first plans are made without a pause: %" PRIu64 " ms in 1 s", sum);
	sum = spent_in(1000000, 25);
	ok(sum >= 20000 && sum <= 20600, "in the long run planning takes 2 %%: %" PRIu64 " ms in 1,000 s", sum);
	sum = spent_in(1000000, 4000);
	ok(sum >= 40000 && sum <= 50000, "long plans may be made a few times at first: %" PRIu64 " ms in 1,000 s", sum);
}

static void repetitions(void)
{
	struct um_plan_leash l = {0};

	um_plan_leash_end(&l, 0);
	is_u64(l.repetitions, 0, "an end without a plan costs nothing");
	um_plan_leash_end(&l, 1);
	um_plan_leash_end(&l, 1);
	is_u64(l.repetitions, 3, "after each plan that did not pay the next one needs twice as many repetitions");
	for (int i = 0; i < 10; i++)
		um_plan_leash_end(&l, 1);
	ok(l.repetitions >= UM_PLAN_LEASH_REPETITIONS && l.repetitions <= 2 * UM_PLAN_LEASH_REPETITIONS + 1,
	   "up to a limit: %u", l.repetitions);
	for (int i = 1; i <= UM_PLAN_LEASH_PAYS; i++)
		if (um_plan_leash_follow(&l) != (i == UM_PLAN_LEASH_PAYS))
			tap_bail("it pays too early or too late");
	um_plan_leash_end(&l, 1);
	is_u64(l.repetitions, 0, "a plan that paid ends this");
	is_u64(l.followed, 0, "the next plan has to pay for itself");
}

int main(void)
{
	processor_time();
	repetitions();
	return tap_done();
}
