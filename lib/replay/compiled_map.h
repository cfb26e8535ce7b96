/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_map.h - what lies in which block (private to program)
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
	uint8_t waste; /* away with content that only the program's word is missing for to drop it */
};

struct um_compiled_plan_block {
	uint64_t addr;
	uint32_t wanted; /* parts that are alive and wanted */
	uint32_t away; /* parts that are alive, hold content and are not wanted */
	int resident;
	int mostly, far; /* all that lies in it is read mostly; stays on the host and is reached from there */
	int unsure; /* counted as resident, but none of our ins brought it */
	int32_t last_in, last_out; /* numbers of its latest actions in their lanes; below zero: in the walk before */
	uint32_t since; /* dead: from this op of the walk on */
	int junk, fetch; /* away: the host has content that died there, content that is wanted back */
	uint32_t dead_at; /* resident with nothing in it that counts: its place in the walk's heap + 1; else 0 */
	uint32_t dead_slot; /* where to look for the block: see um_action.slot */
	uint32_t first_touch, n_touch; /* into touches: ops that touch the block, ascending */
};

/* A block that no hint brings before an op touches it, or that leaves or dies before anything touches it. */
struct um_compiled_plan_ahead {
	uint32_t block, slot, op;
	int stays; /* not touched: it may stay until then, but need not come */
};

#define UM_NONE UINT32_MAX

/* What the program has said of a tensor by an op of the walk. */
enum um_compiled_plan_told {
	UM_MARKED_USED = 1, /* used in this iteration */
	UM_MARKED_DEAD = 2 /* dead, since its latest use */
};

/* A discard of one block. */
struct um_compiled_plan_drop {
	struct um_action action;
	uint32_t number; /* in the order in which room was wanted */
	int frees; /* the block is on the device */
};

/* A dead block. */
struct um_compiled_plan_dead {
	uint64_t need; /* when it is touched next, in ops over all walks; UINT64_MAX never */
	struct um_compiled_plan_block *block;
};

/* A program being built: the map, and the state of a walk over the iteration. */
struct um_compiled_plan_walk {
	const struct um_plan *plan; /* &seen */
	struct um_plan seen; /* the plan; behind its slots their twins: where tensors lie that lie elsewhere later */
	uint32_t n_slots; /* without twins */
	uint32_t *twin; /* by slot, UM_NONE: it has none */
	struct um_compiled_plan *out;
	struct um_compiled_iteration *to; /* of it: this walk's */
	struct um_compiled_plan_part *parts;
	uint32_t *slot_part; /* [slots + 1] */
	struct um_compiled_plan_block *blocks;
	uint32_t n_blocks;
	uint32_t *touches;
	uint8_t *moves; /* by slot: its tensors take turns in several places */
	uint32_t *successor; /* by slot: what its tensor is in the next iteration, UM_NO_SLOT if nothing else */
	uint8_t *told; /* by slot: enum um_compiled_plan_told */
	uint32_t *pos_head, *pos_next; /* deaths by position */
	struct um_compiled_plan_dead *dead; /* a heap, the one needed last on top; room for all blocks */
	uint32_t n_dead;
	uint64_t resident, capacity, start_resident;
	int32_t n_in, n_out; /* actions of this walk */
	UM_VEC(struct um_compiled_plan_drop) drops; /* of this walk, by number */
	UM_VEC(double) leaving; /* ns of the walk at which each block that is copied out will be gone, ascending */
	size_t gone; /* so many of them are by now */
	double *clock; /* by op: ns of the walk at which it starts, as far as the plan foresees; one more */
	size_t latest[2]; /* by lane: the action put last, SIZE_MAX none */
	int32_t outs_need; /* most ins that an out put since the latest in waits for */
	uint64_t lap; /* ops of the walks before */
	int scouting; /* this walk is made to see what is missed */
	uint64_t *level; /* by op: blocks resident then */
	UM_VEC(struct um_compiled_plan_ahead) ahead; /* by op */
	int err;
};

/* Fills the map. 0 or -ENOMEM; um_compiled_plan_unmap in any case. */
int um_compiled_plan_map(struct um_compiled_plan_walk *b, const struct um_plan *plan);
void um_compiled_plan_unmap(struct um_compiled_plan_walk *b);

/* After that: finds the blocks in which all is read mostly, or far, by the plan's advice. 0 or -ENOMEM. */
int um_compiled_plan_advice(struct um_compiled_plan_walk *b);

/* What a slot is before op `at`: itself, or its twin. */
uint32_t um_compiled_plan_who(const struct um_compiled_plan_walk *b, uint32_t slot, uint32_t at);

/* The parts under a range of a slot: [*from, *to). */
void um_compiled_plan_parts(const struct um_compiled_plan_walk *b, uint32_t slot, uint64_t off, uint64_t bytes,
			    uint32_t *from, uint32_t *to);

/* Distance in ops from `at` to the next op that touches the block, around the iteration's end; UINT32_MAX: none. */
uint32_t um_compiled_plan_next_touch(const struct um_compiled_plan_walk *b, const struct um_compiled_plan_block *bl,
				     uint32_t at);

/* Between two walks. 0 or -ENOMEM. */
int um_compiled_plan_turn(struct um_compiled_plan_walk *b);

/* After the last walk: what the next one would find. 0 or -ENOMEM. */
int um_compiled_plan_end(struct um_compiled_plan_walk *b);

/* Dead from op `at` on, to be looked for where `slot` lies. No change if it was dead. */
void um_compiled_plan_dead_add(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl, uint32_t slot,
			       uint32_t at);

/* No change if it was not. */
void um_compiled_plan_dead_remove(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl);

/* The one that is needed last; NULL if there is none. */
struct um_compiled_plan_block *um_compiled_plan_dead_last(const struct um_compiled_plan_walk *b);

/* Of a walk that is complete: what its actions wait for, and their order, into b->out. 0 or -ENOMEM. */
int um_compiled_plan_order(struct um_compiled_plan_walk *b);

#endif
