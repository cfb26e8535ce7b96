/* SPDX-License-Identifier: Apache-2.0
 *
 * horizon_blocks.h - which blocks are resident, which is the next victim, and which blocks ops to come miss
 *
 * in    addresses of blocks (multiples of UM_BLOCK_BYTES), numbers of the ops that use them next
 * out   victims; the blocks that ops miss, in the order of these ops
 * owns  a record of each block that is resident or missed
 *
 * A block is live (with a live tensor), dead (without one), or missed: not resident, and in the list of the op that
 * misses it. Live blocks whose next use is known are in a heap, the furthest one on top; of equally far ones, one with
 * host memory comes first, as the driver need not allocate it. Other live blocks, and dead ones, are in lists, the one
 * that entered first in front. Each operation takes O(log budget) and allocates nothing. Not thread-safe.
 */
#ifndef UM_REPLAY_HORIZON_BLOCKS_H
#define UM_REPLAY_HORIZON_BLOCKS_H

#include "model/event.h"

#define UM_HORIZON_OPS 8192u /* that are scanned at most; a power of two */
#define UM_HORIZON_MISSED 8192u /* blocks at most */
#define UM_HORIZON_NONE UINT32_MAX

#define UM_HORIZON_UNKNOWN UINT64_MAX /* instead of the number of the op that uses a block next */

/* The first two have a live tensor. */
enum um_horizon_state { UM_BLOCK_UNKNOWN, UM_BLOCK_KNOWN, UM_BLOCK_DEAD, UM_BLOCK_MISSED, UM_HORIZON_STATES };

struct um_horizon_link {
	uint32_t before, behind; /* indices */
};

struct um_horizon_block {
	uint64_t addr;
	uint64_t next; /* number of the op that uses it next, or UM_HORIZON_UNKNOWN */
	int dies; /* no op uses it until its tensors are freed, after op number `next` */
	int early; /* it was prefetched for an op to come, and no op has used it since */
	int after_fork; /* that op is after a fork, as um_predictor_is_after_fork */
	int guess; /* `next` is one */
	int overwritten; /* by op number `next`: its content will be discarded then */
	int only_read; /* it lies in a tensor that ops only read */
	int on_host; /* the driver has host memory for it: it was evicted before */
	int torn; /* the CPU has used a part of it, which left the device */
	uint64_t last; /* of the latest op that used it */
	uint64_t near; /* == window of the table: an op that was scanned uses it, and it is resident */
	int64_t arrives; /* ns, estimated: end of its prefetch */
	uint32_t in; /* number after its prefetch */
	unsigned streams; /* whose ops have used it: a bit each */
	uint32_t heap; /* its place there */
	struct um_horizon_link in_state, in_use; /* its places in the lists of its state, and of the live blocks */
	enum um_horizon_state state;
};

struct um_horizon_item {
	uint64_t next;
	struct um_horizon_block *block;
};

struct um_horizon_list {
	uint32_t oldest, newest; /* indices; UM_HORIZON_NONE: it is empty */
};

struct um_horizon_blocks {
	struct um_horizon_block *at;
	uint32_t unused; /* list by `in_state.behind`, of records that were used */
	uint32_t n_used; /* records so far: memory for others is not touched */
	uint32_t *slot; /* hash table by address: index + 1, 0: none */
	uint32_t mask;
	struct um_horizon_item *heap;
	struct um_horizon_list list[UM_BLOCK_DEAD + 1]; /* by state; of UM_BLOCK_KNOWN: empty */
	struct um_horizon_list used; /* live blocks, the least recently used one in front */
	uint32_t taken; /* index: as far as um_horizon_blocks_take got in that list; UM_HORIZON_NONE: its begin */
	uint32_t n[UM_HORIZON_STATES]; /* blocks by state */
	uint32_t n_near;
	uint64_t window; /* number of times that the scan began anew */
	struct um_horizon_list *missed; /* by number of the op % UM_HORIZON_OPS */
	uint64_t front; /* no op before this one misses a block */
};

/* `capacity`: blocks that are resident at most. 0 or -ENOMEM; um_horizon_blocks_fini in any case. */
int um_horizon_blocks_init(struct um_horizon_blocks *t, uint64_t capacity);
void um_horizon_blocks_fini(struct um_horizon_blocks *t);

struct um_horizon_block *um_horizon_blocks_find(const struct um_horizon_blocks *t, uint64_t addr);
/* Blocks of a range that are not resident, as far as is known. O(blocks). */
uint64_t um_horizon_blocks_missing(const struct um_horizon_blocks *t, uint64_t addr, uint64_t bytes);
static inline int um_horizon_block_resident(const struct um_horizon_block *b)
{
	return b && b->state != UM_BLOCK_MISSED;
}
static inline int um_horizon_block_live(const struct um_horizon_block *b)
{
	return b->state <= UM_BLOCK_KNOWN;
}
static inline uint32_t um_horizon_blocks_live(const struct um_horizon_blocks *t)
{
	return t->n[UM_BLOCK_UNKNOWN] + t->n[UM_BLOCK_KNOWN];
}
static inline uint32_t um_horizon_blocks_resident(const struct um_horizon_blocks *t)
{
	return um_horizon_blocks_live(t) + t->n[UM_BLOCK_DEAD];
}

/* The live block whose next use is known and furthest. NULL: there is none. */
struct um_horizon_block *um_horizon_blocks_furthest(const struct um_horizon_blocks *t);
/* The live block to evict for an op at hand: one of unknown use before the furthest. NULL: there is none. */
struct um_horizon_block *um_horizon_blocks_victim(const struct um_horizon_blocks *t);
/* The least recently used live block. NULL: there is none. */
struct um_horizon_block *um_horizon_blocks_oldest(const struct um_horizon_blocks *t);
/* The least recently used live block since whose latest use this was not called for it. NULL: there is none. */
struct um_horizon_block *um_horizon_blocks_take(struct um_horizon_blocks *t);
/* The same of those that `fn` accepts, and that are used after op number `op`; of some that it would choose late, which
 * came last. */
struct um_horizon_block *um_horizon_blocks_victim_of(const struct um_horizon_blocks *t, uint64_t op,
						     int (*fn)(void *user, uint64_t addr), void *user);
/* A live block is used. */
void um_horizon_blocks_use(struct um_horizon_blocks *t, struct um_horizon_block *b);
/* The block that died first; NULL: there is none. */
struct um_horizon_block *um_horizon_blocks_dead(struct um_horizon_blocks *t);

/* A block that is missed, or not known, becomes resident. `on_host`: the driver has host memory for it. */
struct um_horizon_block *um_horizon_blocks_come(struct um_horizon_blocks *t, uint64_t addr, uint64_t next, int on_host);
/* Nothing is known of the block any more. */
void um_horizon_blocks_drop(struct um_horizon_blocks *t, struct um_horizon_block *b);
void um_horizon_blocks_die(struct um_horizon_blocks *t, struct um_horizon_block *b); /* a live one */
void um_horizon_blocks_revive(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next);
void um_horizon_blocks_set_next(struct um_horizon_blocks *t, struct um_horizon_block *b, uint64_t next);
void um_horizon_blocks_set_near(struct um_horizon_blocks *t, struct um_horizon_block *b, int near);

/* A block that is not known is missed by this op. Nothing where too many are. */
void um_horizon_blocks_miss(struct um_horizon_blocks *t, uint64_t addr, uint64_t op);
/* Ops before this number miss nothing any more. */
void um_horizon_blocks_pass(struct um_horizon_blocks *t, uint64_t op);
/* A new window begins: no op misses anything, no block is near. */
void um_horizon_blocks_begin(struct um_horizon_blocks *t, uint64_t op);
/* A block that the first op misses that misses any; of n[UM_BLOCK_MISSED] > 0. */
struct um_horizon_block *um_horizon_blocks_first_missed(struct um_horizon_blocks *t);

#endif
