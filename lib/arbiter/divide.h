/* SPDX-License-Identifier: Apache-2.0
 *
 * divide.h - divides the memory of a device among contexts
 *
 * in    blocks; what each context needs, may have, and its weight
 * out   blocks of each context
 * owns  nothing
 *
 * Max-min fairness with weights, in whole blocks. First each context gets a share in proportion to its weight, at
 * most its need; the others divide the rest in the same way. Then the blocks that exceed all needs are divided
 * likewise, up to what each may have. A context that is alone gets all that it may have. Equal inputs give equal
 * results, in every process. Start path and iteration path: O(contexts^2), no allocation.
 */
#ifndef UM_ARBITER_DIVIDE_H
#define UM_ARBITER_DIVIDE_H

#include <stdint.h>

#define UM_ARBITER_MOST 64 /* contexts */
#define UM_ARBITER_WEIGHT_MOST 1000u

struct um_arbiter_claim {
	uint64_t need; /* blocks; UINT64_MAX: not known, all that it may have */
	uint64_t most; /* blocks that it may have, whatever is free */
	uint64_t weight; /* 1 to UM_ARBITER_WEIGHT_MOST */
};

/* `n` <= UM_ARBITER_MOST. The sum of `out` is at most `blocks`. */
void um_arbiter_divide(const struct um_arbiter_claim *claims, unsigned n, uint64_t blocks, uint64_t *out);

#endif
