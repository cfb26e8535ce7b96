/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/time_samples.h"

static uint32_t count(const struct um_time_samples *s)
{
	return s->n < UM_TIME_SAMPLES ? s->n : UM_TIME_SAMPLES;
}

uint64_t um_time_samples_median(const struct um_time_samples *s)
{
	uint64_t sorted[UM_TIME_SAMPLES];
	uint32_t n = count(s);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i;

		for (; k && sorted[k - 1] > s->ns[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = s->ns[i];
	}
	return n ? sorted[n / 2] : 0;
}

uint64_t um_time_samples_least(const struct um_time_samples *s)
{
	uint64_t least = count(s) ? s->ns[0] : 0;

	for (uint32_t i = 1; i < count(s); i++)
		least = s->ns[i] < least ? s->ns[i] : least;
	return least;
}

int64_t um_time_samples_excess(const struct um_time_samples *b, const struct um_time_samples *a, uint64_t margin)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < count(b); i++)
		for (uint32_t k = 0; k < count(a); k++) {
			uint64_t ns = b->ns[i] + b->ns[i] / margin;

			sum += ns < a->ns[k] ? 1 : ns > a->ns[k] ? -1 : 0;
		}
	return sum;
}

int um_time_samples_less(const struct um_time_samples *b, const struct um_time_samples *a, uint64_t margin)
{
	int64_t n = count(b), m = count(a), sum = um_time_samples_excess(b, a, margin);

	return sum > 0 && 3 * sum * sum >= 4 * n * m * (n + m + 1); /* variance n m (n + m + 1) / 3 */
}
