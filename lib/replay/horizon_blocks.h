/* SPDX-License-Identifier: Apache-2.0
 *
 * horizon_blocks.h - which blocks are resident, which is the next victim, and which blocks ops to come miss
 *
 * in    addresses of blocks (multiples of UM_BLOCK_BYTES), numbers of the ops that use them next
 * out   the victim; the time at which prefetches must start
 * owns  a record of each block that is resident or missed
 *
 * A block is live (in a heap, the furthest next use on top), dead (without a live tensor; in a list, the one that died
 * first in front), or missed: not resident, and in the list of the op that misses it. Each operation takes O(log
 * budget) and allocates nothing. Not thread-safe.
 */
#ifndef UM_REPLAY_HORIZON_BLOCKS_H
#define UM_REPLAY_HORIZON_BLOCKS_H

#include "model/event.h"

#define UM_HORIZON_OPS 8192u /* that are scanned at most; a power of two */
#define UM_HORIZON_MISSED 8192u /* blocks at most */
#define UM_HORIZON_NONE UINT32_MAX

/* Values of `next` behind the numbers of all ops, less the number of an op, so that among equal ones those that were
 * used first are the first victims: nothing is known of the next use; tensors in this part were not used again. */
#define UM_HORIZON_UNKNOWN (2ull << 60)
#define UM_HORIZON_NEVER (3ull << 60)
#define UM_HORIZON_NO_OP (1ull << 60) /* less than all of them */

enum um_horizon_state { UM_BLOCK_LIVE, UM_BLOCK_DEAD, UM_BLOCK_MISSED };

struct um_horizon_block {
	uint64_t addr;
	uint64_t next; /* number of the op that uses it next, or one of the values above */
	uint64_t later; /* of another op after that; if it is not after that, none is known */
	uint64_t last; /* of the latest op that used it */
	uint64_t came; /* of the op at hand when its prefetch was requested */
	uint64_t near; /* == window of the table: an op that was scanned uses it, and it is resident */
	int64_t arrives; /* ns, estimated: end of its prefetch */
	uint32_t in; /* number after its prefetch */
	unsigned streams; /* whose ops have used it: a bit each */
	uint32_t heap; /* its place there */
	uint32_t before, behind; /* in a list: indices */
	enum um_horizon_state state;
};

struct um_horizon_item {
	uint64_t next;
	struct um_horizon_block *block;
};

/* Of a range of ops. */
struct um_urgency {
	int64_t takes; /* ns to prefetch all that they miss */
	int64_t start; /* ns: then that must start, so that no op waits; INT64_MAX: they miss nothing */
};

/* What an op misses. */
struct um_misses {
	int64_t begins; /* ns, estimated: when it begins */
	uint32_t first, n; /* list of blocks */
	uint32_t births; /* blocks of tensors that are born until then */
};

struct um_horizon_blocks {
	struct um_horizon_block *at;
	uint32_t unused; /* list by `behind`, of records that were used */
	uint32_t n_used; /* records so far: memory for others is not touched */
	uint32_t *slot; /* hash table by address: index + 1, 0: none */
	uint32_t mask;
	struct um_horizon_item *heap;
	uint32_t n_live, n_dead, n_missed, n_near;
	uint32_t oldest, newest; /* of the dead ones: indices */
	uint64_t window; /* number of times that the scan began anew */
	struct um_misses *misses; /* by number of the op % UM_HORIZON_OPS */
	struct um_urgency *urgency; /* a segment tree over these: the leaves are the second half */
	uint64_t front; /* no op before this one misses a block */
	int64_t in_ns; /* time to prefetch a block */
};

/* `capacity`: blocks that are resident at most. 0 or -ENOMEM; um_horizon_blocks_fini in any case. */
int um_horizon_blocks_init(struct um_horizon_blocks *t, uint64_t capacity, int64_t in_ns);
void um_horizon_blocks_fini(struct um_horizon_blocks *t);

struct um_horizon_block *um_horizon_blocks_find(const struct um_horizon_blocks *t, uint64_t addr);
static inline int um_horizon_block_resident(const struct um_horizon_block *b)
{
	return b && b->state != UM_BLOCK_MISSED;
}

/* A block that is missed, or not known, becomes resident. */
struct um_horizon_block *um_horizon_blocks_come(struct um_horizon_blocks *t, uint64_t addr, uint64_t next);
/* Nothing is known of the block any more. */
void um_horizon_blocks_drop(struct um_horizon_blocks *t, struct um_horizon_block *b);
void um_horizon_blocks_die(struct um_horizon_blocks *t, struct um_horizon_block *b); /* a live one */
void um_horizon_blocks_revive(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next);
void um_horizon_blocks_set_next(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next);
void um_horizon_blocks_set_near(struct um_horizon_blocks *t, struct um_horizon_block *b, int near);

/* A block that is not known is missed by this op, which begins when misses[] says. Nothing where too many are. */
void um_horizon_blocks_miss(struct um_horizon_blocks *t, uint64_t addr, uint64_t op);
/* Ops before this number miss nothing any more. */
void um_horizon_blocks_pass(struct um_horizon_blocks *t, uint64_t op);
/* A new window begins: no op misses anything, no block is near. */
void um_horizon_blocks_begin(struct um_horizon_blocks *t, uint64_t op);
/* A block that the first op misses that misses any; of n_missed > 0. */
struct um_horizon_block *um_horizon_blocks_first_missed(struct um_horizon_blocks *t);
/* When must prefetches for the ops from this number on start? */
int64_t um_horizon_blocks_must_start(const struct um_horizon_blocks *t, uint64_t op);

#endif
