/* SPDX-License-Identifier: Apache-2.0
 *
 * jitter.h - varies the times of kernels
 *
 * in    the times of an iteration's ops, a share, a seed, which iteration
 * out   the times, each changed by up to the share
 *
 * Factors are spread evenly over [1 - share, 1 + share], one for each op of each iteration, and the same for the same
 * seed. Then all are scaled so that the sum of the iteration stays: a longer iteration shows additional stalls only.
 * (So a single op can change by slightly more than the share.)
 */
#ifndef UM_PLAY_JITTER_H
#define UM_PLAY_JITTER_H

#include <stddef.h>
#include <stdint.h>

struct um_jitter {
	double share; /* 0.25: changes of up to 25 %; below 1; 0: none */
	uint64_t seed;
};

void um_jitter_apply(const struct um_jitter *j, uint64_t iteration, uint64_t *ns, size_t n);

/* `n` ops are those of `turns` iterations, from the given one on. */
void um_jitter_apply_turns(const struct um_jitter *j, uint64_t iteration, uint64_t turns, uint64_t *ns, size_t n);

#endif
