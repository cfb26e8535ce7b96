/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_period.h - how many marked iterations repeat together: kinds that alternate, an odd one in every tenth
 *
 * in    the signature of each iteration that ended
 * out   the number of marks after which the program repeats; they are learned and planned as one iteration
 * owns  the latest signatures
 *
 * GAN training alternates a discriminator and a generator step: each differs from the one before, both together repeat.
 * A period of q > 1 is taken up when the latest iterations equal those q before them, over `caution` periods, and no
 * shorter period explains the latest ones. It ends when three joined iterations in a row differ from the one before.
 * The next one needs twice the evidence. Iterations with more than UM_PERIOD_OPS operations together stay apart:
 * planning them takes too long.
 * A value. Iteration path: O(UM_PERIOD_MOST x UM_PERIOD_KEYS), no allocation.
 */
#ifndef UM_LEARN_ITERATION_PERIOD_H
#define UM_LEARN_ITERATION_PERIOD_H

#include <stdint.h>

#define UM_PERIOD_MOST 16
#define UM_PERIOD_CAUTION 4
#define UM_PERIOD_KEYS (UM_PERIOD_MOST * (UM_PERIOD_CAUTION + 1))
#define UM_PERIOD_OPS 20000u

struct um_iteration_period {
	uint64_t keys[UM_PERIOD_KEYS]; /* of iterations by themselves, the latest one last */
	uint32_t ops[UM_PERIOD_KEYS];
	uint32_t n; /* keys */
	uint32_t length; /* marks in an iteration that is planned, at least 1 */
	uint32_t marks; /* seen in the current one */
	uint64_t last; /* key of the joined iteration before; 0: none */
	uint32_t misses; /* joined iterations in a row that differ from the one before */
	uint32_t caution; /* periods that must have repeated */
};

void um_iteration_period_init(struct um_iteration_period *p);

/* A mark: does the iteration that is planned end here? */
int um_iteration_period_mark(struct um_iteration_period *p);

/* The iteration that is planned has ended. `key`: its signature, 0 if it is not known. 1: the length has changed, and
 * what was planned is of no use; 0: it has not. */
int um_iteration_period_end(struct um_iteration_period *p, uint64_t key, uint32_t ops);

/* A plan of so many marks is followed, without evidence. */
void um_iteration_period_set(struct um_iteration_period *p, uint32_t length);

#endif
