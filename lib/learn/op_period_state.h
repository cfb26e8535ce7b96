/* SPDX-License-Identifier: Apache-2.0
 *
 * op_period_state.h - state shared by op_period.c and op_period_search.c
 *
 * No memory of its own, not thread-safe. O(1); um_op_seen_alike: O(log n).
 */
#ifndef UM_LEARN_OP_PERIOD_STATE_H
#define UM_LEARN_OP_PERIOD_STATE_H

#include "learn/op_period.h"

#define UM_OP_BASE 0x9e3779b97f4a7c15ull /* of the rolling hash, modulo 2^64; keys are well mixed */

struct um_op_seen {
	uint64_t key;
	uint64_t sum; /* of the keys before it */
	uint64_t live, born;
	uint32_t reuse_distance;
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

/* 1: the ops from `from` on equal those `length` before them. Both must be in the ring. */
int um_op_seen_alike(const struct um_op_period *p, uint64_t from, uint32_t length);

/* Searches the ring for an earlier occurrence of the latest ops; its distance becomes a candidate. */
void um_op_period_search(struct um_op_period *p);

/* Checks the candidates with check_at <= n; one of them may become due. */
void um_op_period_check(struct um_op_period *p);

#endif
