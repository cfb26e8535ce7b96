/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_leaving.c - evictions that are in progress, while a plan is compiled
 *
 * A block takes room until it has been copied. Evictions are copied one after the other, on the plan's clock.
 */
#include "replay/compiled_map.h"

#include <errno.h>

#define LATE 0.05 /* of an iteration */

/* In the first walk the link is busy at first, with evictions of what was on the device before the plan. */
void um_compiled_plan_start_out(struct um_compiled_plan_walk *b, uint32_t at)
{
	double begin = at ? b->clock[at - 1] + (double)b->plan->sched.ops.at[at - 1].ns : 0;
	double ns = b->plan->d2h ? (double)UM_BLOCK_BYTES * 1e9 / (double)b->plan->d2h : 0;
	double busy = b->ops_before ? 0 : b->clock[b->plan->sched.ops.n] * LATE;

	if (b->leaving.n)
		busy = b->leaving.at[b->leaving.n - 1];
	if (busy > begin)
		begin = busy;
	if (um_vec_push(&b->leaving, begin + ns))
		b->err = -ENOMEM;
}

uint64_t um_compiled_plan_leaving_at(struct um_compiled_plan_walk *b, uint32_t at)
{
	while (b->gone < b->leaving.n && b->leaving.at[b->gone] <= b->clock[at])
		b->gone++;
	return b->leaving.n - b->gone;
}

/* Where evictions take longer than the plan's iteration, so does the iteration: from the second one on, they go on no
 * longer after its end than they did before. */
void um_compiled_plan_next_leaving(struct um_compiled_plan_walk *b)
{
	double shift = b->clock[b->plan->sched.ops.n];
	double rest = b->leaving.n ? b->leaving.at[b->leaving.n - 1] - shift : 0;
	size_t n = 0;

	if (b->ops_before && rest > b->leaving_rest)
		shift += rest - b->leaving_rest;
	else
		b->leaving_rest = rest;
	for (size_t i = b->gone; i < b->leaving.n; i++)
		b->leaving.at[n++] = b->leaving.at[i] - shift;
	b->leaving.n = n;
	b->gone = 0;
}
