/* SPDX-License-Identifier: Apache-2.0
 *
 * op_period.h - where iterations begin in the sequence of ops of a program that does not mark them
 *
 * in    one op after the other: an address-free key, the bytes alive before it, how long its tensors were not used
 * out   "an iteration begins after this op"
 * owns  the latest ops, the ops of the period that was found
 *
 * A period is found when the latest ops repeat those before them, key by key, and
 * - they use what was used a period ago: no loop over layers, whose tensors were last used in another iteration;
 * - as much is alive as a period ago, beside what is born in a period: no loop that collects activations;
 * - the caller, who can compare tensors, accepts it.
 * The caller also says where in the period an iteration begins: after an op, so that what is born before the next one
 * belongs to it.
 *
 * States: the search; a period that is followed; one that is lost, when an op differs. A lost period is taken up where
 * the ops fit it again, and given up after some periods without. The search goes on while a period is lost: a longer
 * one that repeats, with the shorter one inside of it, replaces it.
 *
 * A value. Memory: 44 bytes for each op looked at, for at most 2 * UM_OP_PERIOD_MOST ops, and 24 bytes for each op of
 * the period. Op path: O(1) while a period is followed, else O(log n) amortised; allocates as long as it grows. A
 * failed allocation shortens the longest period that can be found.
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
	uint64_t born; /* bytes that were ever born before it */
	uint32_t reach; /* of its tensors, the most ops since one was last used or born */
};

enum um_op_period_step {
	UM_OP_PERIOD_GOES_ON,
	UM_OP_PERIOD_FOUND, /* a new period: accept it, refuse it, or wait for the op after which it should begin */
	UM_OP_PERIOD_LAST, /* the last op of an iteration: the next one begins after it */
	UM_OP_PERIOD_BEGINS, /* after others that are not of the period, an iteration begins with this op */
	UM_OP_PERIOD_GIVEN_UP
};

/* A distance at which the sequence repeats itself. */
struct um_op_period_candidate {
	uint32_t length; /* 0: none */
	uint32_t tries; /* how often it was refused */
	uint64_t from; /* the first op that equals the one `length` before it, and all after it do */
	uint64_t check_at; /* number of ops at which it may be a period */
};

struct um_op_seen;
struct um_op_phase;

struct um_op_period {
	/* The latest ops */
	struct um_op_seen *ring;
	uint32_t *last; /* by hash of a few ops: number of ops when they were seen last, its low 32 bits */
	uint64_t room; /* ops in the ring, a power of two; 0: no memory yet */
	uint64_t n; /* ops seen */
	uint64_t sum; /* rolling hash of their keys */
	struct um_op_period_candidate candidates[UM_OP_PERIOD_CANDIDATES];
	uint32_t hot; /* the candidate that the op before this one fitted */
	uint64_t hot_n; /* and the number of ops then */
	uint64_t next_check; /* the least check_at */
	/* A period that passed, waiting for the op that begins it */
	uint32_t due, due_length; /* candidate; 0: none waits */
	uint64_t due_at; /* ops seen when its first iteration begins */
	int placed; /* the caller knows where it begins */
	/* Ops until it begins to repeat again, with an op that is like no other of the period */
	uint32_t due_first;
	/* The period */
	UM_VEC(uint64_t) keys; /* in the order of an iteration; n == 0: none */
	UM_VEC(struct um_op_phase) index; /* by key, then phase */
	uint32_t phase; /* the next op's */
	int first_is_unique; /* no other op of the period is like the first one */
	int lost;
	uint64_t lost_at, odd_at; /* the op that lost it; the last one that was not expected */
	uint32_t guess, streak; /* while lost: the next phase if the latest `streak` ops fit it again */
	uint32_t rounds; /* iterations begun */
	enum um_op_period_step step; /* of the op that was fed last, by the period that is followed */
	uint32_t caution; /* periods that must have repeated */
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
/* It is found again after so many more ops. */
void um_op_period_wait(struct um_op_period *p, uint32_t ops);
/* Returns the answer for the period that is followed. */
enum um_op_period_step um_op_period_refuse(struct um_op_period *p);

/* Ops of the period that is followed or lost; 0: none. */
static inline uint32_t um_op_period_length(const struct um_op_period *p)
{
	return (uint32_t)p->keys.n;
}

#endif
