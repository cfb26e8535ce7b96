/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons of measured times.
 */
#include "runtime/time_samples.h"

#include "tap.h"

#define MARGIN 20

static struct um_time_samples of(const uint64_t *ns, unsigned n)
{
	struct um_time_samples s = {.n = 0};

	for (unsigned i = 0; i < n; i++)
		um_time_samples_add(&s, ns[i]);
	return s;
}

int main(void)
{
	static const uint64_t slow[] = {104, 100, 107, 101, 106, 102, 105, 103}, quick[] = {90, 95, 80, 85};
	static const uint64_t outlier[] = {90, 95, 80, 900, 85, 88, 82, 91};
	struct um_time_samples a = of(slow, 8), b = of(quick, 2), none = {.n = 0};

	is_u64(um_time_samples_median(&none), 0, "there is no median without samples");
	is_u64(um_time_samples_median(&a), 104, "the median of eight times is the fifth one");
	um_time_samples_add(&a, 100);
	is_u64(um_time_samples_median(&a), 103, "a ninth time takes the place of the first one");
	ok(um_time_samples_less(&b, &a, MARGIN), "two times that are less than eight others are certainly less");
	b = of(quick, 1);
	ok(!um_time_samples_less(&b, &a, MARGIN), "one such time may be chance");
	b = of(quick, 2);
	ok(!um_time_samples_less(&b, &a, 5), "times are compared after they are made longer by the margin");
	ok(!um_time_samples_less(&a, &a, MARGIN) && !um_time_samples_less(&none, &a, MARGIN) &&
		   !um_time_samples_less(&a, &none, MARGIN),
	   "equal times are not less, nor are missing ones");
	b = of(outlier, 8);
	ok(um_time_samples_less(&b, &a, MARGIN), "one very long time among eight changes nothing");
	is_int((int)um_time_samples_excess(&b, &a, MARGIN), 7 * 8 - 8, "pairs are counted for and against");
	return tap_done();
}
