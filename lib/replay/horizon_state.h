/* SPDX-License-Identifier: Apache-2.0
 *
 * horizon_state.h - the horizon, for the files that it consists of: horizon.c has the op at hand, horizon_ahead.c what
 * is done for ops to come, horizon_request.c the requests of both
 */
#ifndef UM_REPLAY_HORIZON_STATE_H
#define UM_REPLAY_HORIZON_STATE_H

#include "replay/block_lru.h"
#include "replay/horizon.h"
#include "replay/paged_op.h"

_Static_assert(UM_HORIZON_UNKNOWN == UM_PREDICTOR_UNKNOWN, "the same");

#define UM_HORIZON_RUN 2 /* blocks in a request, as compiled_plan.h */

/* Number of the op at hand. */
static inline uint64_t um_horizon_current(const struct um_horizon *h)
{
	return h->host.predictor->n_ops;
}

static inline uint64_t um_horizon_capacity(const struct um_horizon *h)
{
	return h->host.capacity - h->reserve;
}

/* Does op number `op` come in a later iteration, or at a time of which nothing is known, and does a plan prefetch the
 * block for it? */
static inline int um_horizon_plan_brings(const struct um_horizon *h, uint64_t addr, uint64_t op)
{
	const struct um_predictor *p = h->host.predictor;

	return (um_predictor_is_later(p, op) || um_predictor_is_unseen(p, op)) &&
	       h->host.plan_begins(h->host.user, addr) == UM_NOT_RESIDENT;
}

/* Is op number `op`, which is to come, after a fork? */
static inline int um_horizon_is_after_fork(const struct um_horizon *h, uint64_t op)
{
	return um_predictor_is_after_fork(h->host.predictor, op - um_horizon_current(h));
}

/* Does a plan's advice keep the block on the host? */
static inline int um_horizon_stays(const struct um_horizon *h, uint64_t addr)
{
	return um_executor_is_host_resident(h->host.executor, addr);
}

/* Is the range of this use prefetched as a whole? */
static inline int um_horizon_is_ours(const struct um_use *u)
{
	return !(u->tensor->flags & UM_TENSOR_UNMANAGED) && !um_range_is_sparse(u->touched, u->bytes);
}

#define UM_HORIZON_READS 4 /* in a row, after which a tensor may count as only read */

/* Counts a use of its tensor. Is the tensor only read: at least UM_HORIZON_READS times in a row, and twice as often as
 * ever between two writes? */
static inline int um_horizon_count_use(const struct um_use *u)
{
	struct um_tensor *t = u->tensor;

	if (u->access & UM_WRITE) {
		t->most_reads = t->reads > t->most_reads ? t->reads : t->most_reads;
		t->reads = 0;
		return 0;
	}
	t->reads += t->reads < UINT32_MAX;
	return t->reads >= UM_HORIZON_READS && t->reads / 2 >= t->most_reads && !t->parent && !t->n_children;
}

/* An op, not a CPU's access, is about to use the range: it may be a table. */
void um_horizon_note_look_up(struct um_horizon *h, const struct um_use *u);
/* An op that streams uses `bytes` that have to be on the device. If their blocks exceed the budget, a part of tensors
 * that are used seldom is advised to stay on the host. Returns its bytes. */
uint64_t um_horizon_spill(struct um_horizon *h, const struct um_use *uses, uint32_t n, uint64_t bytes);
/* The memory was freed. What is left to page faults stays: the next iteration probably bears such memory again. */
void um_horizon_forget_look_ups(struct um_horizon *h, uint64_t addr, uint64_t bytes);

#define UM_HORIZON_TRUST 256
#define UM_HORIZON_TRUST_FORK 64 /* after a fork: such predictions are wrong more often */
#define UM_HORIZON_TRIES 64 /* prefetches for ops at hand, after which one ahead is tried where they were wrong */

/* One more block may be prefetched in vain for an op to come. */
static inline void um_horizon_trust(struct um_horizon *h, int after_fork)
{
	h->trust[after_fork] += h->trust[after_fork] < (after_fork ? UM_HORIZON_TRUST_FORK : UM_HORIZON_TRUST);
}
/* A prefetch of this block for an op to come was in vain, if it was one. */
static inline void um_horizon_distrust(struct um_horizon *h, const struct um_horizon_block *b)
{
	h->trust[b->after_fork] -= b->early;
}

/* Are victims chosen by their predicted next uses? */
static inline int um_horizon_foretells(const struct um_horizon *h)
{
	return h->lead > 0;
}
/* Is this victim needed by an op up to this one? Without predictions, only by the op at hand. */
static inline int um_horizon_is_needed(const struct um_horizon *h, const struct um_horizon_block *b, uint64_t op)
{
	return um_horizon_foretells(h) ? b->next <= op : b->last == um_horizon_current(h);
}

/* The op at hand needs this block, which is not resident: was its eviction right? */
void um_horizon_judge(struct um_horizon *h, uint64_t addr);

/* Blocks that are prefetched together. */
struct um_horizon_run {
	uint64_t addr, op;
	uint32_t n;
	struct um_horizon_block *block[UM_HORIZON_RUN];
};

/* Evicts the block; `ahead`: for an op to come. 0 or -EAGAIN. */
int um_horizon_evict(struct um_horizon *h, struct um_horizon_block *b, int ahead);

/* The live block to evict, as um_horizon_blocks_victim. If no more blocks may take host memory, one that has it goes
 * first. */
struct um_horizon_block *um_horizon_victim(const struct um_horizon *h);

/* Was the content of this block, which is not resident, evicted to the host, as far as is known? */
int um_horizon_on_host(const struct um_horizon *h, uint64_t addr);

/* Was it evicted before, as far as is known, so that the driver has host memory for it? */
int um_horizon_has_host(const struct um_horizon *h, uint64_t addr);

/* Prefetches a block that is not resident, for op number `op`, or collects it. The victim for an op at hand is used
 * after it, that for an op to come after the scanned ones. 0; -ENOSPC: there is no victim; -EAGAIN. */
int um_horizon_bring(struct um_horizon *h, struct um_horizon_run *r, uint64_t addr, uint64_t op);
/* Requests the blocks that were collected. 0 or -EAGAIN. */
int um_horizon_request(struct um_horizon *h, struct um_horizon_run *r);

/* Blocks that should have been used `late` ops ago, or before: nothing is known of them. `pinned`: the blocks of the op
 * at hand are pinned, so that others which were expected in it are overdue, too. */
void um_horizon_doubt_overdue(struct um_horizon *h, uint64_t late, int pinned);

/* Scans ops to come, prefetches and evicts for them. The op at hand takes `ns`, and `n_in` blocks were prefetched
 * before it. 0 or -EAGAIN. */
int um_horizon_look_ahead(struct um_horizon *h, uint64_t ns, uint64_t n_in);

#endif
