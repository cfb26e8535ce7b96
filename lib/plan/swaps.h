/* SPDX-License-Identifier: Apache-2.0
 *
 * swaps.h - gaps of whole tensors (swaps), and a choice among them by rank
 *
 * in    blocks, a ranking
 * out   swaps chosen at the peak of the load, the best ranked first, until no op is above a limit
 * owns  the arrays
 *
 * A swap is the unit of published schemes: a tensor is evicted after one of its uses, until the next one. If the
 * tensor's last block is shared, its gap can be shorter and is a swap of its own.
 */
#ifndef UM_PLAN_SWAPS_H
#define UM_PLAN_SWAPS_H

#include "plan/scheme.h"

struct um_swap {
	int32_t from, to; /* positions: off the device for ops [from, to) */
	uint32_t first, n; /* into um_swaps.visit */
	uint32_t slot;
	uint64_t live; /* bytes to be copied back; 0: all content is dead */
	uint64_t bytes; /* freed bytes: whole blocks */
	uint64_t out_ns, in_ns; /* by the linear model: fixed + bytes / rate; 0 for dead content */
};

struct um_swaps {
	struct um_swap *at; /* by `from`, then slot */
	uint32_t *visit;
	uint32_t n;
};

/* All possible swaps (not those with `keep_resident`, by visit). 0 or -ENOMEM. */
int um_swaps_build(struct um_swaps *w, const struct um_scheme_input *s, const uint8_t *keep_resident);
void um_swaps_fini(struct um_swaps *w);

/* Time from the end of the op before the gap to the begin of the op that ends it. */
int64_t um_swap_absence(const struct um_scheme_input *s, const struct um_swap *w);

/* Evicts swap `i` in result `a`. */
void um_swaps_take(const struct um_swaps *w, uint32_t i, struct um_scheme_result *a);

/* Takes swaps, each the first in `order` (of `n`) around the op with the highest load, until no load is above `limit`.
 * 0, -ENOMEM, -E2BIG (none left there; `*stuck` is the op). O((swaps + ops) log). */
int um_swaps_choose(const struct um_swaps *w, const uint32_t *order, uint32_t n, int32_t limit,
		    struct um_scheme_result *a, int32_t *stuck);

/* Swaps by descending score; equal ones in their order. To be freed; NULL: out of memory. */
uint32_t *um_swaps_rank(const struct um_swaps *w, const double *score);

/* Returns in the order of need, one after the other, each begun in time for the next one (sets not_before). 0 or
 * -ENOMEM. */
int um_swaps_chain(const struct um_swaps *w, const struct um_scheme_input *s, struct um_scheme_result *a);

#endif
