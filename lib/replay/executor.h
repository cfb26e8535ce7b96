/* SPDX-License-Identifier: Apache-2.0
 *
 * executor.h - carries out a compiled plan: actions due become hint calls, and ops wait for their blocks
 *
 * in    the compiled plan, the op that is about to be launched, current addresses of slots
 * out   prefetches, evictions, discards; and ops that wait on the device for their blocks
 * owns  the lanes (workers, queues, streams and events: lanes.h)
 *
 * The program's thread queues due actions and records an event; it makes no hint call itself. The out workers evict
 * blocks after that event (a prefetch to the host blocks its caller, therefore they have threads of their own). Workers
 * of lane `in` wait until there is room and prefetch blocks. An op with blocks in flight waits for them instead of
 * faulting: the program's thread until the prefetches have been submitted, then the op's stream for the events after
 * them.
 *
 * Failures are counted. Content is only discarded after may_discard() has confirmed, on the program's thread at the
 * time of issue, that no live tensor needs it, and no op that writes there starts before the discard is over. Op path:
 * O(actions due), no allocation, no system call unless the op has to wait or a worker sleeps. Not thread-safe: the
 * caller holds the context's lock (the workers do not need it), except in um_executor_wait.
 */
#ifndef UM_REPLAY_EXECUTOR_H
#define UM_REPLAY_EXECUTOR_H

#include "gpu/app_stream.h"
#include "replay/cursor.h"
#include "replay/hint_results.h"
#include "replay/compiled_plan.h"
#include "replay/lanes_need.h"

struct um_executor;

/* A range of managed memory that is or was in use. */
struct um_executor_range {
	uint64_t addr, bytes;
};

enum um_residency {
	UM_NOT_RESIDENT,
	UM_RESIDENT, /* or requested */
	UM_RESIDENCY_UNKNOWN
};

/* Which ops wait for a discard on the device; this decides what may be discarded without blocking the program's
 * thread. */
enum um_executor_waits {
	UM_NO_OP_WAITS, /* only memory without a tensor */
	UM_LATER_OPS_WAIT, /* also dead content */
	UM_OP_WAITS /* also the current op: ranges that it overwrites as a whole */
};

struct um_executor_host {
	/* May the content of [addr, addr + bytes) be discarded now? 0: no; 1: no tensor is there; 2: a live tensor
	 * is. */
	int (*may_discard)(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits);
	/* The streams whose ops may still use the range, a bit each, as far as the host knows: a discard comes after
	 * them. NULL: nothing is known. */
	unsigned (*users)(void *user, uint64_t addr, uint64_t bytes);
	/* What is known of a block as a plan is adopted. `*last`, if known: number of the latest op that used it. NULL:
	 * nothing. */
	enum um_residency (*residency)(void *user, uint64_t addr, uint64_t *last);
	/* Blocks of supplied tensors that may not be resident as a plan is adopted. `*resident`: blocks of all tensors
	 * that take turns in a supplied slot, where all of them are resident. NULL: not known. */
	uint64_t (*supplied_away)(void *user, uint64_t *resident);
	/* Most bytes of the program's tensors alive at once so far. NULL: not known. */
	uint64_t (*live_peak)(void *user);
	/* Shrinks a range to the part known to be the program's managed memory: a block at the end of an allocation
	 * exists in part, and CUDA refuses a hint beyond it. If the range is inside an allocation that exists as a
	 * whole and stays, that is stored in `*whole`. NULL: no clipping. */
	void (*clip)(void *user, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole);
	/* The allocation of the program's own that the address is in. 0: none. NULL: there is none. */
	int (*allocation)(void *user, uint64_t addr, struct um_executor_range *out);
	void *user;
	const struct um_app_streams *streams; /* the program's, borrowed until close */
	uint64_t budget_blocks; /* 0: not known */
	int larger; /* the device has more memory, and does not keep the budget by itself */
	unsigned out_workers; /* that evict with copies (um_lanes_out_workers); 0: one */
};

/* Requested evictions that leave room. */
struct um_executor_room {
	uint32_t outs, drops;
};

/* Waits of ops for hints, as in struct umadv_stats. */
struct um_executor_wait_counts {
	uint64_t gates_waited, gates_late, stuck, host_wait_ns;
};

struct um_executor_counts {
	uint64_t issued, refused, dropped;
	uint64_t prefetch_bytes, evict_bytes, discard_bytes;
	uint64_t kept_bytes; /* planned discards that were copied instead: a live tensor may need the content */
	struct um_hints_by_source issued_by;
	struct um_executor_wait_counts waits;
};

/* What an announced op has to wait for before it is launched. */
struct um_executor_wait {
	struct um_executor *executor;
	um_stream handle; /* of the op */
	unsigned stream; /* the same by number */
	struct um_lanes_need need;
};

/* 0, -ENOMEM, -ENOTSUP (the device does not support hints). */
int um_executor_open(struct um_executor **out, struct um_gpu *gpu, const struct um_executor_host *host);
/* 0, or -ETIMEDOUT: the device does not answer; a worker is left behind, which uses the device. */
int um_executor_close(struct um_executor *ex);

/* Adopts a compiled plan (borrowed until the next adopt, leave or close) at the beginning of an iteration, just before
 * its first op is announced: evicts blocks that it does not need at once. Its first prefetches wait for as many of
 * these evictions as leave room for them. 0, or -errno and nothing is issued. */
int um_executor_adopt(struct um_executor *ex, const struct um_compiled_plan *p, uint64_t capacity_blocks,
		      const struct um_executor_range *used, size_t n_used, const struct um_cursor *cursor);

/* The next iteration begins under the same plan. After the first and the second one, memory outside the plan that has
 * died since is evicted. */
void um_executor_begin(struct um_executor *ex, const struct um_executor_range *used, size_t n_used);

/* Ends the plan with the iteration that was just announced: its remaining actions are still carried out. */
void um_executor_end(struct um_executor *ex);

/* Op number `op`, with `n` uses, is about to be launched on the program's stream of this number: no block is evicted
 * before the ops announced so far have completed, and it waits for pending discards where it writes. 0, or -EAGAIN: the
 * queues are full, the plan was left. 1: no plan is followed. */
int um_executor_op(struct um_executor *ex, uint32_t op, unsigned stream, const struct um_cursor *cursor,
		   const struct um_use *uses, uint32_t n);

#define UM_EXECUTOR_STREAMS 4 /* that can be distinguished */

/* The stream of this number has no work any more; a later one may get the number. */
void um_executor_forget_stream(struct um_executor *ex, unsigned i);

/* The program has more streams than can be distinguished: leave the plan before the op. */
int um_executor_too_many_streams(const struct um_executor *ex);

/* The announced op, on that stream, writes this: it waits for pending discards there. For an op without a plan. */
void um_executor_guard(struct um_executor *ex, unsigned stream, const struct um_use *uses, uint32_t n);
/* The announced access, of the CPU, uses [addr, end): it waits for pending discards and evictions there. */
void um_executor_guard_cpu(struct um_executor *ex, uint64_t addr, uint64_t end);
/* It is not known what the announced op uses: it waits for all discards. */
void um_executor_guard_all(struct um_executor *ex, unsigned stream);

/* The end of an op's announcement. 1: um_executor_wait must be called before the launch. */
int um_executor_take_wait(struct um_executor *ex, um_stream handle, struct um_executor_wait *out);
/* Waits until the hints that the op needs have been submitted, and makes its stream wait for them. 0, or -EBUSY: a
 * discard that must come before it is pending, and nothing has moved for a while. Drop the requests and call it again.
 * Called without the context's lock; another thread that closes the executor meanwhile waits until it returns 0. */
int um_executor_wait(const struct um_executor_wait *w);

/* Another budget: leaves the plan, drops what was requested and has not begun, and waits for the rest. Resident blocks
 * stay. 0; -ENOMEM or -EAGAIN: the budget is unchanged. */
int um_executor_set_budget(struct um_executor *ex, uint64_t budget_blocks, int larger);

/* Leaves the plan, if there is one: queued actions that have not begun are dropped. */
void um_executor_leave(struct um_executor *ex);

/* The op at hand, which the plan has, uses the tensor at `now` in place of the one at `was` (no bytes: that stays):
 * evicts that one, prefetches this one, and waits for it. After um_executor_op. 0, or -EAGAIN: the plan was left. */
int um_executor_replace(struct um_executor *ex, struct um_executor_range was, struct um_executor_range now);

/* Requests without a plan, for the op that is about to be launched. */
/* Evictions requested from now on that come after ops on these streams, a bit each, come after those launched so far. 0
 * or -EAGAIN. */
int um_executor_mark(struct um_executor *ex, unsigned streams);
uint32_t um_executor_in_queued(const struct um_executor *ex); /* prefetches so far */
/* All evictions that are complete, or that were requested. */
struct um_executor_room um_executor_room_done(const struct um_executor *ex);
struct um_executor_room um_executor_room_now(const struct um_executor *ex);
enum um_executor_away {
	UM_AWAY_AHEAD = 1, /* for an op that may come, not for the one at hand */
	UM_AWAY_ONLY_READ = 2 /* read mostly from now on, until an op writes it: it will leave without a copy */
};
/* Evicts blocks after `in` prefetches have arrived, and after the marks on `streams`, a bit each; what holds no live
 * tensor is discarded. `what`: enum um_executor_away. `*room`: what a prefetch into their memory waits for. 0 or
 * -EAGAIN. */
int um_executor_away(struct um_executor *ex, uint64_t addr, uint64_t bytes, uint32_t in, unsigned streams,
		     unsigned what, struct um_executor_room *room);
/* Evicts these ranges of whole blocks, at once, after all that was launched so far. `*room`: that of the last one. 0 or
 * -EAGAIN. */
int um_executor_evict_all(struct um_executor *ex, const struct um_executor_range *r, size_t n,
			  struct um_executor_room *room);
/* A prefetch that waits for all evictions requested so far waits from now on for the ops launched so far on these
 * streams, a bit each, too. 0 or -EAGAIN. */
int um_executor_fence(struct um_executor *ex, unsigned streams);
/* The op at hand overwrites these blocks, which are not resident, as a whole: discards their content, so that a
 * prefetch, which waits for `*room`, copies nothing. `*marked`: the streams with a mark after the ops launched so far,
 * a bit each. 1; 0: the content may be needed; -EAGAIN. */
int um_executor_overwrite(struct um_executor *ex, uint64_t addr, uint64_t bytes, unsigned *marked,
			  struct um_executor_room *room);
/* Prefetches blocks, for the op at hand or, `ahead`, for one that may come. `*in`: the number of
 * prefetches with this one. 0 or -EAGAIN. */
int um_executor_bring(struct um_executor *ex, uint64_t addr, uint64_t bytes, int ahead,
		      const struct um_executor_room *room, uint32_t *in);
/* Ops so far that were held back, as their prefetches could not be submitted in time. */
uint64_t um_executor_held(const struct um_executor *ex);
/* The op at hand, on the program's stream of this number, waits until `in` prefetches have arrived. */
void um_executor_await(struct um_executor *ex, uint32_t in, unsigned stream);
/* What was requested and has not begun is dropped. */
void um_executor_cancel(struct um_executor *ex);
/* Calls `visit` for each block that is resident by hints, that which was prefetched least recently first. */
void um_executor_visit_resident(struct um_executor *ex, void (*visit)(void *user, uint64_t addr), void *user);
/* Changes whenever requests were dropped. */
uint32_t um_executor_epoch(const struct um_executor *ex);

/* Memory is about to get a new owner: returns when no discard requested while it was dead is in progress or pending,
 * and it is not read mostly. Other advice ends. If that takes long, requests that have not begun are dropped, and the
 * plan is left. 0, or -EBUSY: a discard in progress does not end. Cost: the pending requests. */
int um_executor_claim(struct um_executor *ex, uint64_t addr, uint64_t bytes);

/* An op is about to use live tensors: ranges that it writes are no longer read mostly, host-resident ranges that it
 * uses as a whole become migratable again after earlier ops, unless it `streams` (um_cost_streams). Op path, except the
 * first time. */
void um_executor_use(struct um_executor *ex, const struct um_use *uses, uint32_t n, int streams);

/* Advises whole blocks to stay on the host, where ops access them, until an op uses them as a whole, or a plan begins
 * that is without that advice. Waits for requests in progress. 0, -ENOTSUP, -EAGAIN, -ENOMEM. Not while a plan is
 * followed. */
int um_executor_keep_on_host(struct um_executor *ex, uint64_t addr, uint64_t bytes);
/* Memory was prefetched without the executor, by a call that has returned. */
void um_executor_note_prefetch(struct um_executor *ex, uint64_t addr, uint64_t bytes);

/* Does such advice, or that of a plan, keep the block on the host? Any block? */
int um_executor_is_host_resident(const struct um_executor *ex, uint64_t addr);
int um_executor_any_host_resident(const struct um_executor *ex);
/* The same for blocks that are read mostly. */
int um_executor_is_read_mostly(const struct um_executor *ex, uint64_t addr);
int um_executor_any_read_mostly(const struct um_executor *ex);
/* Withdraws our advice on memory that leaves our control. */
void um_executor_release(struct um_executor *ex, uint64_t addr, uint64_t bytes);

/* The memory was freed. */
void um_executor_forget(struct um_executor *ex, uint64_t addr, uint64_t bytes);
/* The CPU uses the range: blocks within it leave the device. */
void um_executor_forget_within(struct um_executor *ex, uint64_t addr, uint64_t bytes);

/* From now on `listener` (copied) receives the hints issued to the driver: `report` is called by
 * um_executor_report_hints, at the end of the executor, or when very many are pending. Call it before the first plan.
 * 0 or -ENOMEM. */
int um_executor_listen(struct um_executor *ex, const struct um_hint_listener *listener);
void um_executor_report_hints(struct um_executor *ex);
/* The next announced op has this number. Only with a listener. */
void um_executor_number(struct um_executor *ex, uint64_t op);

int um_executor_stuck(const struct um_executor *ex); /* ops do not wait for the time being: see lanes.h */
int um_executor_active(const struct um_executor *ex);
/* The plan's current iteration is not its first. */
int um_executor_is_warm(const struct um_executor *ex);
uint64_t um_executor_queued(const struct um_executor *ex); /* requests so far, whatever their results */
void um_executor_queued_by(const struct um_executor *ex, struct um_hints_by_source *to); /* adds them by source */
void um_executor_counts(const struct um_executor *ex, struct um_executor_counts *out);
void um_executor_counts_add(struct um_executor_counts *to, const struct um_executor_counts *c);

#endif
