/* SPDX-License-Identifier: Apache-2.0
 *
 * When a plan is held back.
 */
#include "runtime/plan_hold.h"

#include "tap.h"

static struct um_time_samples of(uint64_t ns, unsigned n)
{
	struct um_time_samples s = {.n = 0};

	for (unsigned i = 0; i < n; i++)
		um_time_samples_add(&s, ns + i);
	return s;
}

static struct um_plan_hold begun(void)
{
	struct um_plan_hold h = {.signature = 0};

	um_plan_hold_begin(&h, 7);
	return h;
}

static void test_expected(void)
{
	const struct um_plan_hold_estimate e = {1000, 300}, none = {0, 0}, even = {1000, 0};
	struct um_time_samples two = of(2000, 2), three = of(2000, 3), less = of(900, 1);
	struct um_plan_hold h = begun();

	is_u64(um_plan_hold_expect(&h, &none, NULL), 0, "without estimate and measurement nothing is expected");
	is_u64(um_plan_hold_expect(&h, &e, NULL), 1000,
	       "an iteration that was not measured takes as long as estimated");
	um_plan_hold_calibrate(&h, &e, 1300);
	is_u64(um_plan_hold_expect(&h, &e, NULL), 1300, "estimated stalls are scaled as a measured one was");
	is_u64(um_plan_hold_expect(&h, &even, NULL), 1000, "an iteration without stalls is not scaled");
	um_plan_hold_calibrate(&h, &e, 30700);
	is_u64(um_plan_hold_expect(&h, &e, NULL), 3100, "by no more than eight: a longer delay has another cause");
	um_plan_hold_calibrate(&h, &e, 100);
	is_u64(um_plan_hold_expect(&h, &e, NULL), 1000, "estimates are never scaled down");
	um_plan_hold_calibrate(&h, &even, 5000);
	is_u64(um_plan_hold_expect(&h, &e, NULL), 1000, "an iteration without stalls says nothing of them");
	is_u64(um_plan_hold_expect(&h, &e, &two), 1000, "an estimate counts for more than two measured iterations");
	is_u64(um_plan_hold_expect(&h, &e, &three), 2001, "three measured iterations count for more than an estimate");
	is_u64(um_plan_hold_expect(&h, &e, &less), 900, "a measured iteration counts that is shorter than estimated");
}

static void test_gains(void)
{
	ok(um_plan_hold_is_fast(1010, 1000), "a plan gains nothing where iterations take as long as in core");
	ok(!um_plan_hold_is_fast(1011, 1000), "it may gain something where they take more than a hundredth longer");
	ok(!um_plan_hold_is_fast(0, 1000), "or where their time is not known");
}

static void test_guesses(void)
{
	struct um_plan_hold h = begun();

	um_plan_hold_miss(&h, 32000, 1);
	ok(um_plan_hold_doubts(&h, 1000), "a plan that guesses is doubted until 32 times its time was missed");
	um_plan_hold_miss(&h, 900, 1000);
	ok(um_plan_hold_doubts(&h, 1000), "an iteration misses nothing that takes less time than predicted");
	um_plan_hold_begin(&h, 7);
	um_plan_hold_miss(&h, 2, 1);
	ok(!um_plan_hold_doubts(&h, 1000), "what was missed counts for a plan made anew for the same iterations");
	um_plan_hold_begin(&h, 8);
	ok(um_plan_hold_doubts(&h, 1000), "it does not for one for others");
	um_plan_hold_start(&h);
	ok(!um_plan_hold_doubts(&h, 1000), "a plan that has begun is not doubted");
	um_plan_hold_begin(&h, 8);
	ok(!um_plan_hold_doubts(&h, 1000), "nor is one made anew for the same iterations");
	um_plan_hold_begin(&h, 9);
	ok(um_plan_hold_doubts(&h, 1000), "one for others is");
}

static void test_other_plans(void)
{
	const struct um_plan_hold_estimate e = {1000, 300};
	struct um_plan_hold h = begun();

	um_plan_hold_calibrate(&h, &e, 1300);
	um_plan_hold_begin(&h, 8);
	is_u64(um_plan_hold_expect(&h, &e, NULL), 1300,
	       "how wrong estimates are is known of the program, not of a plan");
}

int main(void)
{
	test_expected();
	test_gains();
	test_guesses();
	test_other_plans();
	return tap_done();
}
