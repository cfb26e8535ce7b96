/* SPDX-License-Identifier: Apache-2.0
 *
 * jitter.h - kernels that take shorter or longer than was planned with
 *
 * in    the times of an iteration's ops, a share, a seed, which iteration
 * out   the same times, each off by up to the share
 *
 * Factors are spread evenly over [1 - share, 1 + share], one for each op of each iteration, and the same for the same
 * seed. Then all of them are scaled so that the iteration computes as long as before: what it takes longer is lost to
 * waiting alone. (So a single op can be off by a little more than the share.)
 */
#ifndef UM_PLAY_JITTER_H
#define UM_PLAY_JITTER_H

#include <stddef.h>
#include <stdint.h>

struct um_jitter {
	double share; /* 0.25: off by 25 % at most; below 1; 0: nothing is off */
	uint64_t seed;
};

void um_jitter_apply(const struct um_jitter *j, uint64_t iteration, uint64_t *ns, size_t n);

#endif
