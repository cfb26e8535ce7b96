/* SPDX-License-Identifier: Apache-2.0
 *
 * op_period_state.h - the ops that op_period.h has seen, for its own files: op_period.c, op_period_search.c
 *
 * Not for others. No memory of its own, not thread-safe. O(1) but for um_op_seen_alike, O(log n).
 */
#ifndef UM_LEARN_OP_PERIOD_STATE_H
#define UM_LEARN_OP_PERIOD_STATE_H

#include "learn/op_period.h"

#define UM_OP_BASE 0x9e3779b97f4a7c15ull /* of the rolling hash, modulo 2^64; keys are well mixed */

struct um_op_seen {
	uint64_t key;
	uint64_t sum; /* of the keys before it */
	uint64_t live, born;
	uint32_t reach;
};

struct um_op_phase {
	uint64_t key;
	uint32_t phase;
};

static inline struct um_op_seen *um_op_seen_at(const struct um_op_period *p, uint64_t i)
{
	return &p->ring[i & (p->room - 1)];
}

/* The number of the oldest op in the ring. */
static inline uint64_t um_op_seen_oldest(const struct um_op_period *p)
{
	return p->n > p->room ? p->n - p->room : 0;
}

/* Do the ops from `from` on equal those `length` before them? Both are in the ring. */
int um_op_seen_alike(const struct um_op_period *p, uint64_t from, uint32_t length);

/* The op that was seen last is compared with earlier ones. */
void um_op_period_look(struct um_op_period *p);

/* Candidates whose time has come: one of them may become due. */
void um_op_period_check(struct um_op_period *p);

#endif
