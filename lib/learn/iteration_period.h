/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_period.h - finds iterations of several kinds that repeat together: alternating kinds, or every tenth is
 * different
 *
 * in    the signature of each iteration that ended
 * out   the number of marks after which the program repeats; these iterations are learned and planned as one
 * owns  the latest signatures
 *
 * GAN training alternates a discriminator and a generator step: each differs from the one before, both together repeat.
 * A period of q > 1 is adopted when the latest iterations equal those q before them, over `required` periods, and no
 * shorter period explains the latest ones. It ends when three joined iterations in a row differ from the one before.
 * The next period needs twice the evidence. Iterations with more than UM_PERIOD_OPS operations together are not
 * joined, since planning them takes too long. Nor is a period with a run of UM_PERIOD_RUN equal iterations: their own
 * plan pays, and two periods would pass without it. A value. Iteration path: O(UM_PERIOD_MOST x UM_PERIOD_KEYS), no
 * allocation.
 */
#ifndef UM_LEARN_ITERATION_PERIOD_H
#define UM_LEARN_ITERATION_PERIOD_H

#include <stdint.h>

#define UM_PERIOD_MOST 16
#define UM_PERIOD_REQUIRED 4
#define UM_PERIOD_KEYS (UM_PERIOD_MOST * (UM_PERIOD_REQUIRED + 1))
#define UM_PERIOD_OPS 20000u
#define UM_PERIOD_RUN 6

struct um_iteration_period {
	uint64_t keys[UM_PERIOD_KEYS]; /* of iterations by themselves, the latest one last */
	uint32_t ops[UM_PERIOD_KEYS];
	uint32_t n; /* keys */
	uint32_t length; /* marks in a joined iteration, at least 1 */
	uint32_t marks; /* seen in the current one */
	uint64_t last; /* key of the joined iteration before; 0: none */
	uint32_t misses; /* joined iterations in a row that differ from the one before */
	uint32_t required; /* number of periods that must have repeated */
};

void um_iteration_period_init(struct um_iteration_period *p);

/* A mark: does the joined iteration end here? */
int um_iteration_period_mark(struct um_iteration_period *p);

/* The joined iteration has ended. `key`: its signature, 0 if unknown. 1: the length has changed, and the plan no longer
 * fits; 0: unchanged. */
int um_iteration_period_end(struct um_iteration_period *p, uint64_t key, uint32_t ops);

/* Sets the length without evidence, for a plan that is followed. */
void um_iteration_period_set(struct um_iteration_period *p, uint32_t length);

#endif
