/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_hold.h"

#define MARGIN 100 /* a part of the time with everything resident by which an iteration may be longer */
#define SLOWER 10 /* a part of the time without the plan by which an iteration with it has to be longer */
#define SLOWER_MOST 3 /* in a row: the first iteration of a plan takes longer in any case */
#define PAUSE_LEAST 32
#define PAUSE_MOST 256
#define FEW_SAMPLES 3
#define SCALE_MOST 8 /* a delay of another cause does not count as a stall */

void um_plan_hold_begin(struct um_plan_hold *h, uint64_t signature)
{
	if (h->signature != signature || !signature)
		*h = (struct um_plan_hold){.signature = signature, .scale = h->scale};
	h->slower = h->left = 0;
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

void um_plan_hold_wait(struct um_plan_hold *h, int vain, int fitted)
{
	h->left -= fitted && h->left;
	h->holds = vain || h->left;
}

void um_plan_hold_end(struct um_plan_hold *h)
{
	h->holds = 0;
}

void um_plan_hold_calibrate(struct um_plan_hold *h, const struct um_plan_hold_estimate *e, uint64_t ns)
{
	double stall_ns = (double)ns - (double)(e->ns - e->stall_ns);

	if (!e->stall_ns)
		return;
	h->scale = stall_ns / (double)e->stall_ns;
	h->scale = h->scale < SCALE_MOST ? h->scale : SCALE_MOST;
}

void um_plan_hold_compare(struct um_plan_hold *h, uint64_t ns, const struct um_time_samples *without)
{
	uint64_t least = without ? um_time_samples_least(without) : 0;

	if (least && !h->left)
		h->slower = ns > least + least / SLOWER ? h->slower + 1 : 0;
}

int um_plan_hold_stop(struct um_plan_hold *h)
{
	if (h->slower < SLOWER_MOST)
		return 0;
	h->slower = 0;
	h->pause = h->pause ? 2 * h->pause : PAUSE_LEAST;
	h->pause = h->pause < PAUSE_MOST ? h->pause : PAUSE_MOST;
	h->left = h->pause;
	h->holds = 1;
	return 1;
}
