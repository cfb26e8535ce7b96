/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_run.h - a plan carried out, iteration after iteration, by umplan's definition
 *
 * in    a plan whose hints keep the rules that can be seen without running (plan_check.c)
 * out   what one iteration took and moved, and the first thing in it that makes the plan unsound
 * owns  the state of every byte, and of three things that work side by side: compute, host-to-device, device-to-host
 *
 * Time is integer nanoseconds and only moves to the next end of something, so a run is exact and repeats itself.
 * A first iteration starts with nothing on the device. An op that misses bytes with none on their way is noted as
 * unsound, gets them at once and goes on: what is kept resident for ever is brought in that way once, and only an
 * iteration that leaves the state it began with is a verdict.
 */
#ifndef UM_MODEL_PLAN_RUN_H
#define UM_MODEL_PLAN_RUN_H

#include "model/host_resident.h"
#include "model/plan_atoms.h"

/* What a byte is, by atom. */
enum um_atom_state {
	UM_ATOM_RESIDENT = 1, /* an op can use it */
	UM_ATOM_COMING = 2, /* room is taken, the copy is under way */
	UM_ATOM_LEAVING = 4, /* being copied out: not usable, its room not free yet */
	UM_ATOM_LIVE = 8, /* holds content that must not be lost */
	UM_ATOM_FRESH = 16, /* the host's copy is that content */
	UM_ATOM_LOST = 32 /* held content, which a hint threw away */
};

/* What an op does by a use, as far as a run asks. */
enum um_use_how { UM_USE_MANAGED = 1, UM_USE_READS = 2, UM_USE_WRITES = 4, UM_USE_DEAD = 8 };

/* One direction of the link: hints in the order of the file, one after the other, on across iterations. */
struct um_plan_engine {
	uint32_t *queue; /* indices of hints */
	uint32_t n;
	uint64_t iter; /* the iteration whose hints are at the head */
	uint32_t head; /* the one to start next, or under way if busy */
	int32_t after; /* the op that it waits for, INT32_MAX if there is none at the head */
	int busy;
	uint64_t end; /* if busy */
	uint32_t slot, lo, hi; /* if busy: atoms from the slot's first; the slot as it is called now */
};

/* Indices by position in the iteration: item[first[i]] .. item[first[i + 1]]. */
struct um_plan_bucket {
	uint32_t *first, *item;
};

struct um_plan_tally {
	uint64_t ns, h2d_bytes, d2h_bytes, peak_bytes;
	int unsound, stuck; /* stuck: nothing can ever happen again */
	char why[240]; /* the first unsoundness */
};

struct um_plan_run {
	const struct um_plan *plan;
	struct um_plan_atoms atoms;
	uint8_t *state, *spare, *begun; /* by atom: now; for renaming; when the iteration began */
	uint32_t *successor; /* um_schedule_successors */
	struct um_host_resident *far; /* by slot; NULL: nothing is */
	struct um_atom_range *far_atoms; /* likewise */
	uint8_t *how; /* by use: enum um_use_how */
	int32_t *after; /* by hint: the op that must have finished */
	uint32_t *due; /* by op: how many prefetches have been issued when it is launched */
	struct um_plan_bucket frees, discards;
	struct um_plan_engine h2d, d2h;
	uint64_t now, used; /* bytes of device memory taken */
	uint64_t iter, begin; /* when it began */
	uint64_t *start; /* by op: when it started, ns of its iteration. Borrowed; NULL: nobody asks */
	int32_t pos; /* ops of this iteration that have finished */
	int running; /* op `pos` is */
	uint64_t op_end;
	uint32_t seen_use, seen_atom; /* of op `pos`, what was found resident already */
	struct um_plan_tally tally;
	int repeats; /* the iteration ended in the state in which it began */
	const struct um_plan_watch *watch; /* borrowed; NULL: nobody watches */
};

/* Who looks on, to show a plan or to carry it out on a device. */
struct um_plan_watch {
	/* An eviction, prefetch or discard starts now, on atoms of a slot as it is called now; states are those before
	 * it. May be NULL. */
	void (*hint)(void *user, const struct um_plan_run *r, uint32_t hint, uint32_t slot, struct um_atom_range atoms);
	/* All that can start has started, and time is about to move on. May say when what is under way ends. */
	void (*pass)(void *user, struct um_plan_run *r);
	void *user;
};

int um_plan_run_init(struct um_plan_run *r, const struct um_plan *p); /* 0 or -ENOMEM */
void um_plan_run_fini(struct um_plan_run *r);

/* Runs one more iteration; fills r->tally and r->repeats. After tally.stuck the run is over. */
void um_plan_run_iteration(struct um_plan_run *r);

#endif
