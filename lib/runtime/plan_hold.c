/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_hold.h"

#define MARGIN 100 /* a part of the time with everything resident by which an iteration may be longer */
#define FEW_SAMPLES 3
#define SCALE_MOST 8 /* a delay of another cause does not count as a stall */

void um_plan_hold_begin(struct um_plan_hold *h, uint64_t signature)
{
	if (h->signature != signature || !signature)
		*h = (struct um_plan_hold){.signature = signature, .scale = h->scale};
}

uint64_t um_plan_hold_expect(const struct um_plan_hold *h, const struct um_plan_hold_estimate *e,
			     const struct um_time_samples *measured)
{
	double scale = h->scale > 1 ? h->scale : 1;
	uint64_t estimated = e->ns - e->stall_ns + (uint64_t)((double)e->stall_ns * scale);
	uint64_t median = measured ? um_time_samples_median(measured) : 0;

	if (!median || (estimated && measured->n < FEW_SAMPLES && estimated < median))
		return estimated;
	return median;
}

int um_plan_hold_is_fast(uint64_t ns, uint64_t in_core_ns)
{
	return ns && ns <= in_core_ns + in_core_ns / MARGIN;
}

void um_plan_hold_calibrate(struct um_plan_hold *h, const struct um_plan_hold_estimate *e, uint64_t ns)
{
	double stall_ns = (double)ns - (double)(e->ns - e->stall_ns);

	if (!e->stall_ns)
		return;
	h->scale = stall_ns / (double)e->stall_ns;
	h->scale = h->scale < SCALE_MOST ? h->scale : SCALE_MOST;
}
