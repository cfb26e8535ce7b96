/* SPDX-License-Identifier: Apache-2.0
 *
 * on_use.h - prefetches each op's ranges just before it, within a budget: the strategy prefetch-on-use, also used by
 * lookahead while it follows no plan
 *
 * in    ops, with the ranges that they use
 * out   prefetches to the device on the op's stream, and before them prefetches of other blocks to the host
 * owns  the list of blocks that it has made resident
 *
 * On a device with no more memory than the budget the driver evicts, and nothing is tracked. On a larger one the
 * prefetched blocks are kept in order of last use, and the least recently used ones are evicted before a prefetch would
 * exceed the budget. An op that alone exceeds it gets a prefetch of the part that fits; the rest faults. Prefetches of
 * several streams are ordered by events, so that memory is never counted as free before it is. Op path: O(blocks x log
 * budget), no allocation. Not thread-safe.
 */
#ifndef UM_REPLAY_ON_USE_H
#define UM_REPLAY_ON_USE_H

#include "gpu/gpu.h"
#include "replay/compiled_plan.h"
#include "replay/block_lru.h"

/* Issues one call: UM_ACTION_PREFETCH to the device, UM_ACTION_EVICT to the host. */
typedef void um_on_use_issue(void *user, enum um_action_kind kind, uint64_t addr, uint64_t bytes, um_stream stream);

struct um_on_use {
	struct um_gpu *gpu;
	um_on_use_issue *give;
	void *user;
	int tracks;
	int skips_resident; /* see um_on_use_skip_resident */
	int full; /* prefetched blocks may have been evicted since: no block is known to be resident */
	struct um_block_lru *on_host; /* blocks that have been evicted, as many as may be; NULL: no limit */
	int exceeds; /* more had to be */
	struct um_block_lru resident; /* the use is recorded with the number of the op */
	uint64_t out, out_bytes; /* blocks to be evicted by the next call */
	um_event_handle given; /* recorded after the latest prefetch, on `stream` */
	um_stream stream;
	int any; /* the event was recorded */
};

/* `budget_blocks`: UINT64_MAX: the device keeps the budget by itself. 0 or -ENOMEM; um_on_use_fini in any case. */
int um_on_use_init(struct um_on_use *p, struct um_gpu *gpu, uint64_t budget_blocks, um_on_use_issue *give, void *user);
void um_on_use_fini(struct um_on_use *p);

/* Host memory: once as many blocks were evicted as `on_host` (borrowed) holds, they are the preferred victims. Before
 * the first op, where the device does not keep the budget by itself. */
void um_on_use_limit_host(struct um_on_use *p, struct um_block_lru *on_host);

/* From now on no call is made for blocks that must be resident: those that were prefetched before, as long as they do
 * not fill the device (of so many blocks). Prefetches are then of whole blocks. Ranges of which an op touches only a
 * little are left to page faults. Only if the device keeps the budget by itself; before the first op. 0 or -ENOMEM. */
int um_on_use_skip_resident(struct um_on_use *p, uint64_t device_blocks);
/* No block is known to be resident any more. */
void um_on_use_forget(struct um_on_use *p);
/* This block is resident. */
void um_on_use_add(struct um_on_use *p, uint64_t addr);

/* Removes the blocks of the ranges from the resident set, before an access of the CPU. */
void um_on_use_evicted(struct um_on_use *p, const struct um_use *uses, uint32_t n);

/* An op is about to be launched on `stream`. */
void um_on_use_op(struct um_on_use *p, um_stream stream, const struct um_use *uses, uint32_t n);

#endif
