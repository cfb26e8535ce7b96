/* SPDX-License-Identifier: Apache-2.0
 *
 * time_samples.h - the latest measured times of a kind of iteration, and whether those of another kind are less
 *
 * in    times in ns
 * out   their median; comparisons
 * owns  nothing
 *
 * Two kinds are compared by the rank sum test of Mann and Whitney, which outliers do not change. A value.
 */
#ifndef UM_RUNTIME_TIME_SAMPLES_H
#define UM_RUNTIME_TIME_SAMPLES_H

#include <stdint.h>

#define UM_TIME_SAMPLES 8

struct um_time_samples {
	uint64_t ns[UM_TIME_SAMPLES]; /* a ring */
	uint32_t n; /* so far */
};

static inline void um_time_samples_add(struct um_time_samples *s, uint64_t ns)
{
	s->ns[s->n++ % UM_TIME_SAMPLES] = ns;
}

uint64_t um_time_samples_median(const struct um_time_samples *s); /* 0: no samples */
uint64_t um_time_samples_least(const struct um_time_samples *s); /* likewise */

/* The number of pairs in which the time of `b`, longer by a part 1 / `margin`, is less than that of `a`, less those in
 * which it is more. */
int64_t um_time_samples_excess(const struct um_time_samples *b, const struct um_time_samples *a, uint64_t margin);

/* Is `b`, longer by that part, certainly less than `a`? One-sided at 2.3 %: the rank sum is two standard deviations
 * from its mean. Two samples suffice if they are less than eight others. */
int um_time_samples_less(const struct um_time_samples *b, const struct um_time_samples *a, uint64_t margin);

#endif
