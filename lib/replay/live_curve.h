/* SPDX-License-Identifier: Apache-2.0
 *
 * live_curve.h - the bytes of live tensors at each of the latest ops, and where they peak
 *
 * in    numbers of ops, ascending, with the bytes that were live as they were announced
 * out   the op with the most bytes in a range of ops
 * owns  room for UM_LIVE_CURVE_OPS ops: later ones replace the oldest
 *
 * A segment tree. Both operations take O(log UM_LIVE_CURVE_OPS) and allocate nothing. Not thread-safe.
 */
#ifndef UM_REPLAY_LIVE_CURVE_H
#define UM_REPLAY_LIVE_CURVE_H

#include <stdint.h>

#define UM_LIVE_CURVE_OPS (1u << 15) /* a power of two */

struct um_live_curve {
	uint64_t *bytes; /* by number of the op % UM_LIVE_CURVE_OPS */
	uint32_t *most; /* the tree: index into `bytes` of the most below a node. Its leaves are the second half */
};

int um_live_curve_init(struct um_live_curve *c); /* 0 or -ENOMEM; um_live_curve_fini in any case */
void um_live_curve_fini(struct um_live_curve *c);

void um_live_curve_add(struct um_live_curve *c, uint64_t op, uint64_t bytes);

static inline uint64_t um_live_curve_at(const struct um_live_curve *c, uint64_t op)
{
	return c->bytes[op % UM_LIVE_CURVE_OPS];
}

/* The first op with the most bytes of those from `from` to `to`, both included and kept. */
uint64_t um_live_curve_peak(const struct um_live_curve *c, uint64_t from, uint64_t to);

#endif
