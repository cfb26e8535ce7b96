/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_history.h - which ops touch which bytes, and which content each of them finds
 *
 * in    a schedule
 * out   by atom (plan_atoms.h) its touches: every byte of an atom has one history
 * owns  the arrays
 *
 * Written from the format's definition and without lib/plan: each checks the other. Bytes of sparse look-ups (each use
 * touches less than its range) have no touches: a sound plan may leave them on the host, where ops read them over the
 * link (model/host_resident.h) without device memory and copies; the time of these reads is left out, so that the bound
 * also holds for plans that prefetch them.
 */
#ifndef UM_BOUND_BOUND_HISTORY_H
#define UM_BOUND_BOUND_HISTORY_H

#include "bound/bound.h"
#include "model/plan_atoms.h"

#define BOUND_NO_TOUCH UINT32_MAX

struct bound_touch {
	int32_t op;
	uint32_t atom;
	uint32_t next; /* next touch of the same bytes, or BOUND_NO_TOUCH */
	int64_t apart; /* ops from here to there */
	uint8_t reads, writes;
	uint8_t kept; /* the next touch finds this one's content */
	uint8_t fed; /* finds an earlier touch's content */
	uint8_t seen; /* for the caller */
};

struct bound_history {
	const struct um_schedule *s; /* borrowed */
	int32_t n_ops;
	struct um_plan_atoms atoms;
	uint32_t *successor, *slot_of; /* slot_of: by atom */
	uint32_t *first; /* by atom: its first touch; atoms + 1 */
	struct bound_touch *touch; /* by atom, then op */
	uint32_t n;
	int64_t *uses; /* by op: bytes that it touches */
	uint8_t *dense; /* by atom: an op uses it as a whole */
	uint32_t *first_dead; /* by slot, into dead_op; slots + 1 */
	int32_t *dead_op; /* ops after which the slot was declared dead, ascending */
};

int bound_history_init(struct bound_history *h, const struct um_schedule *s); /* 0 or -ENOMEM */
void bound_history_fini(struct bound_history *h);

/* Declared dead after an op of [from, to)? */
int bound_dead_between(const struct bound_history *h, uint32_t slot, int32_t from, int32_t to);

/* The op that frees the tensor of `slot` after op `from`; INT32_MAX if it lives on in the next iteration. */
int32_t bound_dies_at(const struct bound_history *h, uint32_t slot, int32_t from);

#endif
