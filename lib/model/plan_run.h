/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_run.h - simulates a plan, iteration after iteration, by umplan's definition
 *
 * in    a plan without recompute hints (plan_unfold.h) whose hints keep the static rules (plan_check.c)
 * out   time and bytes of one iteration, and the first violation that makes the plan unsound
 * owns  the state of every byte, and of three engines that work in parallel: compute, host-to-device, device-to-host
 *
 * Time is integer nanoseconds and advances to the next end of an op or a copy, so a run is exact and deterministic. The
 * first iteration starts with an empty device. An op with missing bytes that are not in flight is recorded as unsound,
 * gets them at once and continues: so content that stays resident in all iterations becomes resident. The verdict comes
 * from an iteration that ends in the state in which it began.
 */
#ifndef UM_MODEL_PLAN_RUN_H
#define UM_MODEL_PLAN_RUN_H

#include "model/host_resident.h"
#include "model/plan_atoms.h"

/* State of a byte, by atom. */
enum um_atom_state {
	UM_ATOM_RESIDENT = 1, /* usable by an op */
	UM_ATOM_COMING = 2, /* room is taken, the copy is in progress */
	UM_ATOM_LEAVING = 4, /* being copied out: not usable, its room is not free yet */
	UM_ATOM_LIVE = 8, /* holds content that must be kept */
	UM_ATOM_FRESH = 16, /* the host's copy is current */
	UM_ATOM_LOST = 32 /* its content was discarded */
};

/* Properties of a use, as a run needs them. */
enum um_use_how { UM_USE_MANAGED = 1, UM_USE_READS = 2, UM_USE_WRITES = 4, UM_USE_DEAD = 8 };

/* One direction of the link: hints in the order of the file, one after the other, across iterations. */
struct um_plan_engine {
	uint32_t *queue; /* indices of hints */
	uint32_t n;
	uint64_t iter; /* the iteration whose hints are at the head */
	uint32_t head; /* next to start, or in progress if busy */
	int32_t after; /* the op that it waits for, INT32_MAX if the queue is empty */
	int busy;
	uint64_t end; /* if busy */
	uint32_t slot, lo, hi; /* if busy: atoms from the slot's first; the slot by its current name */
};

/* Indices by position in the iteration: item[first[i]] .. item[first[i + 1]] - 1. */
struct um_plan_bucket {
	uint32_t *first, *item;
};

struct um_plan_tally {
	uint64_t ns, h2d_bytes, d2h_bytes, peak_bytes;
	int unsound, stuck; /* stuck: no event can ever happen again */
	char why[240]; /* the first violation */
};

struct um_plan_run {
	const struct um_plan *plan;
	struct um_plan_atoms atoms;
	uint8_t *state, *spare, *begun; /* by atom: current; scratch for renaming; at the begin of the iteration */
	uint32_t *successor; /* um_schedule_successors */
	struct um_host_resident *host_resident; /* by slot; NULL: none */
	struct um_atom_range *host_atoms; /* likewise */
	uint8_t *how; /* by use: enum um_use_how */
	struct um_plan_content *content; /* plan_content.h; NULL: nothing is launched again */
	int32_t *after; /* by hint: the op that must have finished */
	int32_t *until; /* by hint: the op before which its tensor is freed in this iteration; INT32_MAX: it is not */
	uint32_t *due; /* by op: number of prefetches issued when it is launched */
	struct um_plan_bucket frees, discards;
	struct um_plan_engine h2d, d2h;
	uint64_t now, used; /* bytes of device memory taken */
	uint64_t iter, begin; /* when it began */
	uint64_t *start; /* by op: its start, ns of its iteration. Borrowed; may be NULL */
	int32_t pos; /* number of finished ops of this iteration */
	int running; /* op `pos` is running */
	uint64_t op_end;
	uint32_t seen_use, seen_atom; /* of op `pos`: its uses and atoms found resident so far */
	struct um_plan_tally tally;
	int repeats; /* the iteration ended in its initial state */
	const struct um_plan_watch *watch; /* borrowed; may be NULL */
};

/* Callbacks of an observer, to show a plan or to play it on a device. */
struct um_plan_watch {
	/* An eviction, prefetch or discard starts now, on atoms of the slot that has the tensor now; states are those
	 * before it. May be NULL. */
	void (*hint)(void *user, const struct um_plan_run *r, uint32_t hint, uint32_t slot, struct um_atom_range atoms);
	/* Called when all work that can start has started, before time advances. It may change the end of work in
	 * progress. */
	void (*pass)(void *user, struct um_plan_run *r);
	void *user;
};

int um_plan_run_init(struct um_plan_run *r, const struct um_plan *p); /* 0 or -ENOMEM */
void um_plan_run_fini(struct um_plan_run *r);

void um_plan_run_rename(struct um_plan_run *r); /* every tensor gets its slot of the next iteration */

/* Runs one more iteration; fills r->tally and r->repeats. After tally.stuck the run is over. */
void um_plan_run_iteration(struct um_plan_run *r);

#endif
