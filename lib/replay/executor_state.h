/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_state.h - the executor, for the files that it consists of: executor_adopt.c begins plans, executor_kept.c
 * finds what stays then, executor_issue.c carries them out, executor_replace.c moves tensors that take others' slots,
 * executor_direct.c has the requests of the horizon, executor_wait.c the waits of ops, executor_advice.c the advice on
 * memory, executor_supplied.c the room for supplied tensors, executor_counts.c its counters
 */
#ifndef UM_REPLAY_EXECUTOR_STATE_H
#define UM_REPLAY_EXECUTOR_STATE_H

#include "replay/advice_state.h"
#include "replay/block_lru.h"
#include "replay/executor.h"
#include "replay/lanes.h"

struct um_early_in {
	uint64_t resident; /* where the blocks of a prefetch are resident as the plan begins, and stay; 0: nowhere */
	uint32_t outs, drops; /* that it waits for */
};

/* The room beside a plan, for its supplied tensors (executor_supplied.c). */
struct um_executor_supplied {
	struct um_block_lru blocks; /* that stay there: of supplied tensors, or that were there as the plan began */
	uint64_t room; /* number of blocks that may stay there beside all that the plan needs at once */
	uint64_t all; /* that may be on the device, of supplied tensors in use and of those that stay, as long as none
			 has to leave; 0: one had to */
	uint64_t in_use; /* number of blocks of supplied tensors that the plan has prefetched, and not evicted since */
	uint64_t reserve; /* blocks to be kept free for evictions in progress, from when some leave on */
	int leave; /* some do, for lack of room */
	uint32_t latest, before; /* outs queued with the latest one, and before this iteration */
	uint32_t outs; /* that all ins wait for */
};

struct um_executor {
	struct um_gpu *gpu;
	struct um_executor_host host;
	struct um_lanes lanes;
	struct um_advice_state read_mostly, host_resident;
	struct um_lanes_marks due_after; /* the advice in `host_resident.due` is withdrawn after these */

	const struct um_compiled_plan *program; /* NULL: none */
	uint32_t in_base, out_base, drop_base; /* numbers at the beginning of this iteration */
	int32_t in_least, out_least; /* the oldest numbers that counts may refer to */
	UM_VEC(struct um_early_in) early; /* by action of the first iteration, its first ones */
	struct um_executor_supplied supplied;
	struct um_executor_range whole; /* no range inside this memory is clipped */
	int inside; /* all ranges of the plan are in such memory */
	const struct um_compiled_iteration *iteration; /* of the plan: this iteration's */
	int checks_all; /* no action of this iteration is taken as planned: see put_checked() */
	int checks_some; /* some are not */
	int fits; /* all memory in use fits on the device, and always has: the driver has evicted nothing */
	uint64_t dead_room; /* number of dead blocks outside the plan that may stay */
	uint64_t turn; /* number of iterations since the plan was adopted */
	int can_refresh; /* all blocks to refresh are at their planned places */
	int driver_evicts; /* and have been refreshed once: evictions are left to the driver */
	int32_t gate_least; /* ops that wait, wait for at least this many ins */

	uint64_t kept_bytes; /* struct um_executor_counts */
	struct um_lanes_need need; /* of the op at hand */
	unsigned stream; /* its stream, by number */
	uint32_t op; /* its number in the plan's iteration */
	int unpoked; /* requests were queued of which the workers do not know */
	uint64_t marked_at[UM_LANES_STREAMS]; /* the program's latest op at the stream's latest mark */
	uint64_t number; /* of the current op, if there is a listener */
	uint32_t *targets[UM_COMPILED_PLAN_STEADY + 1]; /* by iteration and action; NULL: out of memory */
};

/* The program's streams, a bit each. */
static inline unsigned um_executor_streams(const struct um_executor *ex)
{
	return ex->host.streams->live & ((1u << UM_LANES_STREAMS) - 1);
}

/* A mark after the ops that the program's stream number `i` has been given so far. 0 or -EAGAIN. */
static inline int um_executor_mark_stream(struct um_executor *ex, unsigned i)
{
	const struct um_app_streams *streams = ex->host.streams;

	if (um_lanes_mark(&ex->lanes, i, &streams->at[i]))
		return -EAGAIN;
	ex->marked_at[i] = streams->latest;
	return 0;
}

/* The same for these streams, a bit each. */
static inline int um_executor_mark_streams(struct um_executor *ex, unsigned which)
{
	for (; which; which &= which - 1)
		if (um_executor_mark_stream(ex, (unsigned)__builtin_ctz(which)))
			return -EAGAIN;
	return 0;
}

/* Has the program's stream number `i` had an op since its latest mark? */
static inline int um_executor_is_used(const struct um_executor *ex, unsigned i)
{
	return ex->host.streams->named[i] >= ex->marked_at[i];
}

static inline void um_executor_poke(struct um_executor *ex)
{
	um_lanes_poke_new(&ex->lanes);
	ex->unpoked = 0;
}

/* The op at hand waits for pending discards where it writes. */
static inline void um_executor_guard_writes(struct um_executor *ex, const struct um_use *uses, uint32_t n)
{
	if (ex->lanes.any_live && n)
		um_lanes_guard(&ex->lanes, &ex->need, ex->stream, uses, n);
}

static inline int um_executor_is_whole(const struct um_executor *ex, struct um_executor_range r)
{
	uint64_t off = r.addr - ex->whole.addr;

	return off < ex->whole.bytes && r.bytes <= ex->whole.bytes - off;
}

static inline struct um_executor_range um_executor_clip(struct um_executor *ex, struct um_executor_range r)
{
	if (r.bytes && ex->host.clip && !um_executor_is_whole(ex, r))
		ex->host.clip(ex->host.user, &r.addr, &r.bytes, &ex->whole);
	return r;
}

static inline int um_executor_may_discard(struct um_executor *ex, uint64_t addr, uint64_t bytes,
					  enum um_executor_waits waits)
{
	return ex->host.may_discard(ex->host.user, addr, bytes, um_lanes_gates(&ex->lanes) ? waits : UM_NO_OP_WAITS);
}

/* A range that may not be discarded is evicted with a copy. After marks on `streams`; a discard after all ops that may
 * use the range: `*marked`, the streams with a mark after the ops launched so far. 0 or -EAGAIN. */
int um_executor_drop(struct um_executor *ex, enum um_action_kind kind, struct um_executor_range r, uint32_t wait,
		     unsigned streams, unsigned *marked, enum um_executor_waits waits);
/* Those of the streams that have had an op since their latest mark. An eviction that copies may rely on an older mark:
 * what the program has not announced may still use the memory, and fetches it again. */
unsigned um_executor_used_since(const struct um_executor *ex, unsigned which);
/* The streams whose ops use the range, or have used it. */
static inline unsigned um_executor_users(const struct um_executor *ex, struct um_executor_range r)
{
	unsigned streams = um_executor_streams(ex);

	if (um_app_streams_one(ex->host.streams) || !ex->host.users)
		return streams;
	return streams & ex->host.users(ex->host.user, r.addr, r.bytes);
}

/* The ops that these streams, a bit each, have been given so far are complete, unless that takes too long. */
void um_executor_await_ops(struct um_executor *ex, unsigned streams);
/* Withdraws advice that has ended, as far as ops may not need it any more. Only while an op is announced. */
void um_executor_withdraw_ended(struct um_executor *ex);
/* Where the blocks of an action are now. */
struct um_executor_range um_executor_locate(const struct um_action *a, const struct um_cursor *c);
void um_executor_forget_targets(struct um_executor *ex);
/* Blocks of all supplied tensors of an iteration, at most. */
uint64_t um_executor_count_supplied(const struct um_schedule *s);
/* `room` blocks may stay beside the plan, of supplied tensors if it has any; and as long as none has to leave, `all`,
 * with those in use. */
void um_executor_open_room(struct um_executor *ex, const struct um_schedule *s, uint64_t room, uint64_t all);
/* The next iteration begins. */
void um_executor_begin_room(struct um_executor *ex);
/* The next block that has to be evicted, as there is less room now that others are being evicted. 0: none. */
int um_executor_room_exceeded(struct um_executor *ex, uint64_t *addr);
/* A resident block that is none of the plan's takes some of that room until it is used. */
void um_executor_stays_unused(struct um_executor *ex, uint64_t addr);
/* What an action on the blocks of a supplied tensor is about, with that room. No bytes: nothing is to be done. */
struct um_executor_range um_executor_supply(struct um_executor *ex, enum um_action_kind kind,
					    struct um_executor_range r);
/* Marks the streams of `which` that are not in `*marked`. 0 or -EAGAIN. */
static inline int um_executor_mark_missing(struct um_executor *ex, unsigned which, unsigned *marked)
{
	unsigned missing = which & ~*marked & um_executor_streams(ex);

	if (missing && um_executor_mark_streams(ex, missing))
		return -EAGAIN;
	*marked |= missing;
	return 0;
}

#endif
