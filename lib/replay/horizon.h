/* SPDX-License-Identifier: Apache-2.0
 *
 * horizon.h - hints for a program that follows no plan: a rolling horizon over the ops that probably come next
 *
 * in    ops, with what they use; the predictor
 * out   requests to the executor: prefetches, evictions, discards; ops that wait for their blocks
 * owns  the table of blocks
 *
 * The horizon requests an op's missing blocks as the op is announced. Then it scans the predicted ops as far as all
 * that they use fits into the budget, with what is born and freed until then, and
 *   - prefetches the blocks that they miss while the link is idle, as soon as there is room that no birth before their
 *     use needs; if their op would have to displace a block in any case, that block is displaced now. Where most of
 *     these blocks were evicted before an op used them, it prefetches few;
 *   - evicts while the link is idle what cannot be resident at the coming peak of live bytes: the blocks with the
 *     furthest next use of those that will be live then, and others that are used after it if the link needs all the
 *     time until the peak.
 *
 * For an op at hand, the victim is a block without a live tensor, which is discarded; otherwise one whose next use is
 * not known, the least recently used first; otherwise the one whose next use, or death, is furthest, and of several one
 * for which the driver need not allocate host memory. In an odd iteration among those of a plan, what the plan begins
 * with stays rather than what it begins without. Without predictions this is prefetch on use within the budget.
 *
 * Predictions are followed as long as they are better than none. Each eviction is compared with the one that would have
 * been made by the other order, that of the latest uses: whichever victim is used first was the wrong one. Where
 * predictions lose, victims are the least recently used blocks, and nothing is done ahead but evictions for the next
 * op. Then the comparison goes on with the two orders exchanged. Evictions before a plan was followed do not count: its
 * ops have used blocks meanwhile.
 *
 * While page faults serve an op above the budget, the driver evicts whatever it has: prefetches for later ops wait
 * until that op has ended.
 *
 * A prefetch takes the room of one eviction. One for an op at hand takes that of a block without a live tensor rather
 * than wait for copies that are pending.
 *
 * A block that was not used when that was predicted is not expected any more. If its next use was a guess, it is
 * expected after as long as it has been unused: tensors that are used at random, but often, stay. Ops after a fork,
 * where other ops than expected came lately, are trusted on their own: their blocks are prefetched only where that was
 * right.
 *
 * Where evictions take longer than prefetches, blocks that ops only read are read mostly: they leave without a copy.
 *
 * Time is estimated from the durations of the ops and the backlog of the link. Op path, only while no plan is followed:
 * O(blocks x log budget), amortised; no allocation, but for the list of what becomes read mostly. Not thread-safe: the
 * caller holds the context's lock.
 */
#ifndef UM_REPLAY_HORIZON_H
#define UM_REPLAY_HORIZON_H

#include "replay/block_lru.h"
#include "replay/executor.h"
#include "replay/horizon_blocks.h"
#include "replay/predictor.h"

#define UM_HORIZON_MOST (1u << 20) /* blocks: bounds memory */
#define UM_HORIZON_GONE_LEAST 4096u /* powers of two */
#define UM_HORIZON_GONE_MOST (1u << 17)

/* Pointers are borrowed. */
struct um_horizon_host {
	struct um_executor *executor;
	struct um_predictor *predictor;
	uint64_t capacity; /* blocks */
	int64_t in_ns, out_ns; /* time of the link to prefetch a block, and to evict one */
	int64_t new_ns; /* to prefetch one without content */
	int64_t evict_ns; /* between the ends of two evictions, with the driver's work */
	int64_t advice_ns; /* for which the link stops where a run of blocks is advised */
	struct um_block_lru *on_host; /* blocks that have host memory, as many as may have it; NULL: no limit */
	int remote; /* ops can access the host's memory over the link */
	int (*dead)(void *user, uint64_t addr); /* does no live tensor lie in this block? */
	/* What probably happens to the live tensors of this block next, as um_predictor_next. */
	struct um_predicted_next (*next)(void *user, uint64_t addr);
	/* Where the block is when the plan begins that will probably be followed after this iteration, if there is
	 * one. */
	enum um_residency (*plan_begins)(void *user, uint64_t addr);
	void *user;
};

#define UM_HORIZON_TABLES 64

/* A range that ops touch here and there. */
struct um_horizon_table {
	uint64_t addr, bytes;
	uint64_t blocks; /* that page faults may have made resident, */
	uint64_t more; /* and that those of one more op may make resident */
	uint64_t missing; /* not known to be resident, at its latest look-up: no more than these are left to faults */
	uint32_t look_ups; /* so far */
	int settled; /* it is advised to stay on the host, or that would not help */
};

#define UM_HORIZON_PAGED 16

/* Memory that an op above the budget used. */
struct um_horizon_paged {
	uint64_t addr, bytes;
};

/* An eviction. */
struct um_horizon_freed {
	struct um_executor_room room;
	int64_t ns; /* estimated: its end */
};

/* Evictions that leave room for one prefetch each, in the order in which they end. */
struct um_horizon_rooms {
	struct um_horizon_freed *at; /* ring of `capacity`, by number */
	uint64_t n, taken; /* evictions so far, and those of them for which a prefetch waits */
};

/* The latest eviction of a block with this hash. */
struct um_horizon_gone {
	struct um_executor_room room; /* number of the eviction */
	uint64_t addr;
	int copied; /* its content is on the host */
	int has_host; /* the driver has host memory for it */
	uint64_t last; /* number of the latest op that used it */
	uint64_t op; /* number of the op at hand when it was evicted */
	uint64_t rival; /* the block that leaves in its place by the other order, to be judged; 0: none */
	int foretold; /* it was chosen by its predicted next use */
};

struct um_horizon {
	struct um_horizon_host host;
	struct um_horizon_blocks blocks;
	struct um_horizon_rooms copied, dropped; /* by evictions with a copy, and by those without one */
	struct um_horizon_gone *gone; /* by hash of the address */
	uint64_t n_gone; /* a power of two */
	uint32_t epoch; /* of the executor: requests of earlier ones were dropped */
	struct um_executor_room before; /* evictions requested before the table was begun */
	struct um_executor_room overwritten; /* discards of content that ops overwrite */
	struct um_horizon_table tables[UM_HORIZON_TABLES];
	uint32_t n_tables, n_advised;
	uint64_t reserve; /* blocks that are left to them */
	int partial; /* page faults of announced ops made blocks resident that are not in the table */
	struct um_horizon_paged paged[UM_HORIZON_PAGED]; /* of op number `paged_op`, 0: none so far */
	uint32_t n_paged;
	uint64_t paged_op;
	unsigned paging; /* streams on which ops above the budget may still run, a bit each */
	uint32_t n_large; /* ops above the budget so far that stream */
	uint64_t n_in; /* blocks prefetched */
	uint64_t used; /* blocks that ops have used since those were last looked for that were not used as expected */
	uint64_t begun; /* number of the op at hand when what is resident was recalled */
	uint64_t scanned; /* number of the last op whose blocks are resident or missed */
	uint64_t unbrought; /* blocks that scanned ops overwrite, and that were not resident */
	uint64_t scan_again; /* number of the op from which the scan begins anew */
	int recalled; /* what is resident was recalled: it is not known when it is used next */
	int exceeds; /* more blocks than may have host memory */
	int fits; /* live tensors have left some of the budget free so far */
	/* blocks that may be prefetched in vain for ops to come: before a fork, and after it; each correct prediction
	 * adds one */
	int64_t trust[2];
	int64_t lead; /* > 0: predicted next uses choose better victims than latest uses */
	int64_t credit; /* blocks and ops that may be scanned */
	uint64_t peak; /* number of the op at the coming peak of live bytes; 0: not known */
	uint64_t peak_again; /* number of the op from which it is looked for anew */
	uint64_t furthest; /* from the op of this number on, what is live at the peak cannot be resident then */
	uint64_t foreseen; /* number of the op at a peak that was predicted; 0: none */
	uint64_t foreseen_bytes; /* that are live then, as was predicted */
	double peak_error; /* of these bytes, a running mean, as a share of the budget */
	int64_t stalled; /* ns, estimated: for which ops so far waited for their blocks */
	int64_t lap_clock, lap_stalled; /* at the latest um_horizon_lap */
	int lap_faults; /* page faults have served ops since then */
	int64_t clock; /* ns, estimated: when the op at hand begins */
	int64_t in_free, out_free; /* when the link has carried what was requested */
	unsigned stream; /* of the op at hand */
	uint64_t n_held; /* ops that were held back so far; */
	int held; /* the latest one was */
	int shared; /* several threads announce ops: one that was announced before the mark may be launched after it */
	/* by stream: number of the op at hand when evictions were last made to wait for the ops before it */
	uint64_t marked[UM_EXECUTOR_STREAMS];
};

/* 0 or -ENOMEM; um_horizon_fini in any case. */
int um_horizon_init(struct um_horizon *h, const struct um_horizon_host *host);
void um_horizon_fini(struct um_horizon *h);

/* An op, which the predictor was just fed with, is about to be launched on the program's stream of this number. It
 * takes `ns` with everything resident. `streams`: um_cost_streams. */
void um_horizon_op(struct um_horizon *h, unsigned stream, const struct um_use *uses, uint32_t n, uint64_t ns,
		   int streams);

/* A tensor was born here. Its blocks without a live tensor stay until its first op, which is probably the next one. */
void um_horizon_born(struct um_horizon *h, uint64_t addr, uint64_t bytes);

/* Memory was freed. */
void um_horizon_free(struct um_horizon *h, uint64_t addr, uint64_t bytes);

/* The CPU uses the ranges: blocks within them leave the device, and parts of those at their ends. */
void um_horizon_evicted(struct um_horizon *h, const struct um_use *uses, uint32_t n);

/* An op is about to write these uses, so that um_executor_use ends their advice: what is read mostly has its copy on
 * the device dropped, and has to be prefetched. Before that call. */
void um_horizon_written(struct um_horizon *h, const struct um_use *uses, uint32_t n);

/* A block is not the program's any more. */
void um_horizon_gone(struct um_horizon *h, uint64_t addr);

/* Calls `visit` for each block that is known to be resident; `live`: with a live tensor. */
void um_horizon_visit(const struct um_horizon *h, void (*visit)(void *user, uint64_t addr, int live), void *user);
static inline int um_horizon_knows(const struct um_horizon *h)
{
	return um_horizon_blocks_resident(&h->blocks) != 0;
}
/* As far as ops were announced. `*last`, if it is resident: number of the latest op that used it. */
enum um_residency um_horizon_residency(const struct um_horizon *h, uint64_t addr, uint64_t *last);

/* Blocks of the range that are not resident, as far as is known. */
static inline uint64_t um_horizon_missing(const struct um_horizon *h, uint64_t addr, uint64_t bytes)
{
	return um_horizon_blocks_missing(&h->blocks, addr, bytes);
}

/* Estimated time since the previous call, and how much of it ops waited for their blocks, in ns. 0; or 1: neither is
 * known, since page faults served ops. */
int um_horizon_lap(struct um_horizon *h, uint64_t *ns, uint64_t *stall_ns);

/* It is not known any more what is resident. */
void um_horizon_forget(struct um_horizon *h);
/* After that: what the executor knows of it. */
void um_horizon_recall(struct um_horizon *h);

#endif
