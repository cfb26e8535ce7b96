/* SPDX-License-Identifier: Apache-2.0
 *
 * op_period.h - where iterations begin in the sequence of ops of a program that does not mark them
 *
 * in    one op after the other: an address-free key, the bytes alive before it, how long its tensors were not used
 * out   "an iteration begins after this op"
 * owns  the latest ops, the ops of the period that was found
 *
 * A period is found when the latest ops repeat those before them, key by key, and
 * - their tensors were last used at most a period ago. The tensors of a loop over layers were last used in another
 *   iteration;
 * - about as many bytes are alive as a period ago. A loop that collects activations leaves more alive;
 * - the caller, after a comparison of the tensors, accepts it. It may ask for a longer period instead.
 * The caller also says where in the period an iteration begins: after an op, so that what is born before the next one
 * belongs to it.
 *
 * States: searching; following a period; period lost, from an op that differs on. A lost period is followed again where
 * the ops match it again, and given up after some periods without a match. The search continues while a period is lost:
 * a longer period that contains the shorter one replaces it.
 *
 * Memory: 44 bytes for each op looked at, for at most 2 * UM_OP_PERIOD_MOST ops, and 24 bytes for each op of the
 * period. Op path: O(1) while a period is followed, else O(log n) amortised; allocates while it grows. A failed
 * allocation shortens the longest period that can be found.
 */
#ifndef UM_LEARN_OP_PERIOD_H
#define UM_LEARN_OP_PERIOD_H

#include "base/vec.h"

#include <stdint.h>

#define UM_OP_PERIOD_MOST (1u << 16) /* ops of a period */
#define UM_OP_PERIOD_EVIDENCE 48u /* ops that are alike, at least, however short the period */
#define UM_OP_PERIOD_CANDIDATES 16

/* What is compared of an op. */
struct um_op_trait {
	uint64_t key; /* of its name, stream, uses and sizes: equal ops have equal keys */
	uint64_t live; /* bytes alive at its launch */
	uint64_t born; /* bytes allocated or adopted before it, freed ones too */
	uint32_t reuse_distance; /* greatest number of ops since one of its tensors was last used or born */
};

enum um_op_period_step {
	UM_OP_PERIOD_GOES_ON,
	UM_OP_PERIOD_FOUND, /* a new period: accept it, refuse it, or wait for the op after which it should begin */
	UM_OP_PERIOD_LAST, /* the last op of an iteration: the next one begins after it */
	UM_OP_PERIOD_BEGINS, /* an iteration begins with this op; the ops before it were not of the period */
	UM_OP_PERIOD_GIVEN_UP
};

/* A distance at which the sequence repeats itself. */
struct um_op_period_candidate {
	uint32_t length; /* 0: none */
	uint32_t least; /* ops of a period, as the caller found: 0 or a multiple of `length` */
	uint32_t tries; /* number of refusals */
	uint64_t from; /* first op from which each op equals the one `length` before it */
	uint64_t check_at; /* number of ops seen at which it is checked again */
};

struct um_op_seen;
struct um_op_phase;

struct um_op_period {
	/* The latest ops */
	struct um_op_seen *ring;
	uint32_t *last; /* by hash of SEED_OPS ops in a row: number of ops seen at their last occurrence, low 32 bits */
	uint64_t room; /* ops in the ring, a power of two; 0: no memory yet */
	uint64_t n; /* ops seen */
	uint64_t sum; /* rolling hash of their keys */
	struct um_op_period_candidate candidates[UM_OP_PERIOD_CANDIDATES];
	uint32_t recent; /* the candidate that the previous op matched */
	uint64_t recent_n; /* number of ops seen then */
	uint64_t next_check; /* the least check_at */
	/* A period that passed the checks and waits for its first op */
	uint32_t due, due_length; /* candidate, ops; length 0: none waits */
	uint64_t due_at; /* number of ops seen when its first iteration begins */
	int start_known; /* the caller has chosen where it begins */
	/* Ops until its next repetition begins, at an op that occurs once in the period if there is one */
	uint32_t due_first;
	/* The period */
	UM_VEC(uint64_t) keys; /* in the order of an iteration; n == 0: none */
	UM_VEC(struct um_op_phase) index; /* by key, then phase */
	uint32_t phase; /* the next op's */
	int first_is_unique; /* no other op of the period equals the first one */
	int lost;
	uint64_t lost_at, mismatch_at; /* the op at which it was lost; the last op that did not match */
	uint32_t guess,
		matched; /* while lost: the latest `matched` ops match the period; the next phase would be `guess` */
	uint32_t iterations_begun; /* iterations begun */
	enum um_op_period_step step; /* of the last op, from the period that is followed */
	uint32_t required; /* repetitions before a period is proposed */
};

void um_op_period_init(struct um_op_period *p);
void um_op_period_fini(struct um_op_period *p); /* it may be initialised again */

/* The next op. UM_OP_PERIOD_FOUND must be answered before the next call. */
enum um_op_period_step um_op_period_feed(struct um_op_period *p, const struct um_op_trait *op);

/* Ops of the period that waits for an answer. */
static inline uint32_t um_op_period_due(const struct um_op_period *p)
{
	return p->due_length;
}
/* The next op is the first one of an iteration. 0 or -ENOMEM: then nothing is followed. */
int um_op_period_accept(struct um_op_period *p);
/* UM_OP_PERIOD_FOUND is returned again after `ops` further ops. */
void um_op_period_wait(struct um_op_period *p, uint32_t ops);
/* The ops whose distance makes up the period that waits: its length is a multiple of it. */
static inline uint32_t um_op_period_unit(const struct um_op_period *p)
{
	return p->candidates[p->due].length;
}
/* The period that waits is too short: one of `length` ops, a multiple of its unit, is proposed after `ops` further ops
 * at the earliest. Returns the answer for the period that is followed. */
enum um_op_period_step um_op_period_lengthen(struct um_op_period *p, uint32_t length, uint32_t ops);
/* Returns the answer for the period that is followed. */
enum um_op_period_step um_op_period_refuse(struct um_op_period *p);

/* Ops of the period that is followed or lost; 0: none. */
static inline uint32_t um_op_period_length(const struct um_op_period *p)
{
	return (uint32_t)p->keys.n;
}

#endif
