/* SPDX-License-Identifier: Apache-2.0
 *
 * When a plan is held back.
 */
#include "runtime/plan_hold.h"

#include "tap.h"

#define PAUSE 32u

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

/* Iterations that fit, in which the plan was held back. */
static unsigned count_held(struct um_plan_hold *h)
{
	unsigned n = 0;

	for (int i = 0; i < 1000; i++, n++) {
		um_plan_hold_wait(h, 0, 1);
		if (!h->holds)
			break;
	}
	return n;
}

/* Three measured iterations in a row that were slower with the plan. 1: it stops. */
static int is_stopped(struct um_plan_hold *h)
{
	struct um_time_samples without = of(1000, 2);

	for (int i = 0; i < 3; i++)
		um_plan_hold_compare(h, 2000, &without);
	return um_plan_hold_stop(h);
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

static void test_waits(void)
{
	struct um_plan_hold h = begun();

	ok(um_plan_hold_is_fast(1010, 1000), "a plan gains nothing where iterations take as long as in core");
	ok(!um_plan_hold_is_fast(1011, 1000), "it may gain something where they take more than a hundredth longer");
	ok(!um_plan_hold_is_fast(0, 1000), "or where their time is not known");
	um_plan_hold_wait(&h, 1, 1);
	ok(h.holds, "a plan that gains nothing is held back");
	um_plan_hold_wait(&h, 0, 1);
	ok(!h.holds, "it is held back no longer once iterations are slower");
	um_plan_hold_wait(&h, 1, 0);
	ok(h.holds, "a plan that was just made may be held back, too");
	um_plan_hold_end(&h);
	ok(!h.holds, "a plan that does not wait is not held back");
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

static void test_stops(void)
{
	struct um_time_samples without = of(1000, 2);
	struct um_plan_hold h = begun();

	for (int i = 0; i < 3; i++)
		um_plan_hold_compare(&h, 1100, &without);
	ok(!um_plan_hold_stop(&h), "a plan goes on that takes a tenth longer than iterations without it");
	for (int i = 0; i < 3; i++)
		um_plan_hold_compare(&h, 2000, NULL);
	ok(!um_plan_hold_stop(&h), "a plan goes on if no iteration without it was measured");
	um_plan_hold_compare(&h, 2000, &without);
	um_plan_hold_compare(&h, 2000, &without);
	um_plan_hold_compare(&h, 1000, &without);
	um_plan_hold_compare(&h, 2000, &without);
	um_plan_hold_compare(&h, 2000, &without);
	ok(!um_plan_hold_stop(&h), "a plan goes on that was fast in one of three iterations");
	ok(is_stopped(&h) && h.holds, "a plan stops after three slow iterations in a row");
	ok(!is_stopped(&h), "iterations from before it stopped do not count");
	um_plan_hold_wait(&h, 0, 0);
	ok(h.holds, "a stopped plan stays held back after an iteration that does not fit");
	is_u64(count_held(&h), PAUSE - 1, "after a pause of iterations that fit it begins again");
	ok(is_stopped(&h), "it may stop again");
	is_u64(count_held(&h), 2 * PAUSE - 1, "for a pause twice as long");
	for (int i = 0; i < 10; i++) {
		is_stopped(&h);
		count_held(&h);
	}
	is_u64(h.pause, 8 * PAUSE, "pauses grow up to a bound");
}

static void test_other_plans(void)
{
	const struct um_plan_hold_estimate e = {1000, 300};
	struct um_plan_hold h = begun();

	um_plan_hold_calibrate(&h, &e, 1300);
	is_stopped(&h);
	um_plan_hold_begin(&h, 7);
	um_plan_hold_wait(&h, 0, 1);
	ok(!h.holds, "a plan made anew for the same iterations is in no pause");
	is_stopped(&h);
	is_u64(count_held(&h), 2 * PAUSE - 1, "its own pause is longer than that of the one before");
	um_plan_hold_begin(&h, 8);
	is_stopped(&h);
	is_u64(count_held(&h), PAUSE - 1, "that of a plan for others is not");
	is_u64(um_plan_hold_expect(&h, &e, NULL), 1300,
	       "how wrong estimates are is known of the program, not of a plan");
}

int main(void)
{
	test_expected();
	test_waits();
	test_guesses();
	test_stops();
	test_other_plans();
	return tap_done();
}
