/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_map.h - the parts of slots in each block, while a plan is compiled (private to compiled_*.c)
 *
 * in    a schedule with places
 * out   numbered blocks, each slot's parts in them, the ops that touch each block, deaths by position
 */
#ifndef UM_REPLAY_COMPILED_MAP_H
#define UM_REPLAY_COMPILED_MAP_H

#include "replay/compiled_plan.h"

/* A slot's share in a block. */
struct um_compiled_plan_part {
	uint32_t block;
	uint8_t wanted, away;
	uint8_t used; /* by an op, not only by the CPU */
	uint8_t waste; /* evicted, with content that is unused but not declared dead by the program */
};

struct um_compiled_plan_block {
	uint64_t addr;
	uint32_t wanted; /* parts that are alive and wanted */
	uint32_t away; /* parts that are alive, have content and are not wanted */
	int resident, began_resident; /* now; when the walk began */
	int leaves_dead; /* its dead memory does not stay until the next iteration */
	int read_mostly, host_resident; /* all parts in it are read mostly; are host-resident */
	uint8_t faults; /* a paged op faults on it: 1 in the previous walk, 2 in this one */
	uint8_t left; /* 1: an eviction hint says that it will leave the device; 2: it left in the latest walk */
	int unsure; /* counted as resident, but not prefetched by an action */
	int32_t last_in, last_out; /* numbers of its latest actions in their lanes; below zero: in the previous walk */
	uint32_t since; /* dead: from this op of the walk on */
	uint8_t streams; /* whose ops use it: a bit each */
	int dead_on_host, fetch; /* evicted: the host has content that died there; content that will be prefetched */
	uint32_t dead_at; /* resident without live parts: its position in the walk's heap + 1; else 0 */
	uint32_t dead_slot; /* the slot by which to find the block: see um_action.slot */
	uint32_t first_touch, n_touch; /* into touches: ops that touch the block, ascending */
};

/* A block that an op touches before any hint prefetches it, or that is evicted or dies before any op touches it. */
struct um_compiled_plan_ahead {
	uint32_t block, slot, op;
	int stays; /* not touched: it may stay until then, but need not be prefetched */
};

#define UM_NONE UINT32_MAX

/* Declarations of the program about a tensor, by an op of the walk. */
enum um_slot_mark {
	UM_MARKED_USED = 1, /* used in this iteration */
	UM_MARKED_DEAD = 2 /* dead since its latest use */
};

/* A discard of one block. */
struct um_compiled_plan_drop {
	struct um_action action;
	uint32_t number; /* in the order in which room was needed */
	int frees; /* the block is on the device */
};

/* A dead block. */
struct um_compiled_plan_dead {
	/* Next touch, in ops over all walks; UINT64_MAX / 2 - 1: never. With a host budget more for blocks that have
	 * left before: they have host memory. */
	uint64_t need;
	struct um_compiled_plan_block *block;
};

/* A plan being compiled: the map, and the state of a walk over the iteration. */
struct um_compiled_plan_walk {
	const struct um_plan *plan; /* &seen */
	struct um_plan seen; /* the plan; after its slots their twins: current places of tensors whose slots have other
				places */
	uint32_t n_slots; /* without twins */
	uint32_t *twin; /* by slot, UM_NONE: no twin */
	struct um_compiled_plan *out;
	struct um_compiled_iteration *to; /* this walk's iteration in the output */
	struct um_compiled_plan_part *parts;
	uint32_t *slot_part; /* [slots + 1] */
	struct um_compiled_plan_block *blocks;
	uint32_t n_blocks;
	uint32_t *touches;
	uint8_t *moves; /* by slot: number of places that its tensors rotate through, at most 3 (more); 0: they stay */
	uint32_t *successor; /* by slot: the slot of its tensor in the next iteration, UM_NO_SLOT if unchanged */
	uint8_t *marks; /* by slot: enum um_slot_mark */
	uint32_t *pos_head, *pos_next; /* deaths by position */
	struct um_compiled_plan_dead *dead; /* a heap, the block needed last on top; room for all blocks */
	uint32_t n_dead;
	uint64_t resident, capacity, start_resident;
	int32_t n_in, n_out; /* actions of this walk */
	UM_VEC(uint32_t) again; /* by in of this walk: its blocks that are assumed resident, and have room already */
	UM_VEC(struct um_compiled_plan_drop) drops; /* of this walk, by number */
	UM_VEC(double) leaving; /* ns of the walk at which each evicted block has been copied, ascending */
	size_t gone; /* number of them that have been copied by now */
	double leaving_rest; /* ns that evictions went on after the end of an earlier walk */
	double *clock; /* by op: its start in ns of the walk, as the plan predicts; one more entry */
	size_t latest[2]; /* by lane: the last action, SIZE_MAX none */
	int32_t outs_need; /* maximum of ins that the outs since the latest in wait for */
	uint64_t ops_before; /* ops of the previous walks */
	int finds_missing; /* this walk only finds missing blocks */
	uint64_t *level; /* by op: number of resident blocks */
	UM_VEC(struct um_compiled_plan_ahead) ahead; /* by op */
	int err;
};

/* Fills the map. 0 or -ENOMEM; um_compiled_plan_unmap in any case, which also fills b->out->host. */
int um_compiled_plan_map(struct um_compiled_plan_walk *b, const struct um_plan *plan);
void um_compiled_plan_unmap(struct um_compiled_plan_walk *b);

/* After that: finds the blocks that are entirely read mostly, or host-resident, by the plan's advice, and marks those
 * that leave. 0 or -ENOMEM. */
int um_compiled_plan_advice(struct um_compiled_plan_walk *b);

/* The slot, or its twin, before op `at`. */
uint32_t um_compiled_plan_slot_at(const struct um_compiled_plan_walk *b, uint32_t slot, uint32_t at);

/* The parts under a range of a slot: [*from, *to). */
void um_compiled_plan_parts(const struct um_compiled_plan_walk *b, uint32_t slot, uint64_t off, uint64_t bytes,
			    uint32_t *from, uint32_t *to);

/* Distance in ops from `at` to the next op that touches the block, around the iteration's end; UINT32_MAX: none. */
uint32_t um_compiled_plan_next_touch(const struct um_compiled_plan_walk *b, const struct um_compiled_plan_block *bl,
				     uint32_t at);

/* Does no op of this iteration touch the block from `at` on? */
static inline int um_compiled_plan_is_last(const struct um_compiled_plan_walk *b,
					   const struct um_compiled_plan_block *bl, uint32_t at)
{
	return at + (uint64_t)um_compiled_plan_next_touch(b, bl, at) >= b->plan->sched.ops.n;
}

/* Called as a walk begins. */
void um_compiled_plan_note_begin(struct um_compiled_plan_walk *b);
/* Called after a walk, at most once: does it end without blocks that were resident when it began? Repeated, its ops
 * would fault there. From now on their dead memory leaves in each walk. Blocks that tensors rotate through do not
 * count. */
int um_compiled_plan_loses(struct um_compiled_plan_walk *b);

/* Called between two walks. 0 or -ENOMEM. */
int um_compiled_plan_turn(struct um_compiled_plan_walk *b);

/* Called after the last walk: the initial state of the next one. 0 or -ENOMEM. */
int um_compiled_plan_end(struct um_compiled_plan_walk *b);

/* Marks a block dead from op `at` on, to be found through `slot`. No change if it was dead. */
void um_compiled_plan_dead_add(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl, uint32_t slot,
			       uint32_t at);

/* No change if it was not dead. */
void um_compiled_plan_dead_remove(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl);

/* The dead block that is needed last; NULL if none. */
struct um_compiled_plan_block *um_compiled_plan_dead_last(const struct um_compiled_plan_walk *b);

/* Evictions in progress: one of a block begins before op `at`, after the others; their number when op `at` is launched,
 * with `at` not below that of the call before; renumbered for the next walk. */
void um_compiled_plan_start_out(struct um_compiled_plan_walk *b, uint32_t at);
uint64_t um_compiled_plan_leaving_at(struct um_compiled_plan_walk *b, uint32_t at);
void um_compiled_plan_next_leaving(struct um_compiled_plan_walk *b);

/* One more block is resident. */
static inline void um_compiled_plan_come(struct um_compiled_plan_walk *b)
{
	if (++b->resident > b->out->peak)
		b->out->peak = b->resident;
}

/* Host memory. Before the first walk: marks the blocks of evictions, so that others need not leave. Between two walks:
 * blocks that have left are among them. */
void um_compiled_plan_mark_leaving(struct um_compiled_plan_walk *b);
void um_compiled_plan_keep_left(struct um_compiled_plan_walk *b);

/* Does the CPU use the block, which leaves before op `at`, next, with no op before that? Then it does not queue after
 * other evictions. Blocks of supplied tensors do. */
int um_compiled_plan_for_cpu(const struct um_compiled_plan_walk *b, const struct um_compiled_plan_block *bl,
			     uint32_t at, uint32_t slot);

/* After a walk from an empty device: keeps missing blocks in b->ahead, as far as there is room, from the iteration's
 * beginning until they are touched or evicted. */
void um_compiled_plan_choose_ahead(struct um_compiled_plan_walk *b);

/* For a complete walk: orders its actions and their waits into b->out. 0 or -ENOMEM. */
int um_compiled_plan_order(struct um_compiled_plan_walk *b);

#endif
