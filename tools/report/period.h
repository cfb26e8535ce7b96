/* SPDX-License-Identifier: Apache-2.0
 *
 * period.h - finds the repetition in a sequence of kernels without marked iterations
 *
 * in    kernels as numbers, equal only for the same kernel, in launch order; their times
 * out   iterations: spans of that sequence, none inside another
 * owns  the spans
 *
 * An anchor marks an iteration: a run of kernels that recurs at regular distance. The unit between two anchors is
 * compared with the usual one by the kernels of each name that they share; small differences do not matter. Repetitions
 * nest (layers, steps, rounds of steps with an evaluation); the shortest that covers most of the time is taken, unless
 * the rest between its repetitions repeats with it as a longer one. The sequence is then cut at the begin of the
 * repetition.
 *
 * Cost: n log n; memory is 64 bytes a kernel for the million that is looked into, and nothing for the others, which
 * the mark is looked up in.
 */
#ifndef UM_REPORT_PERIOD_H
#define UM_REPORT_PERIOD_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct um_period_span {
	size_t from, to; /* kernels, `to` excluded */
	int whole; /* 0: the sequence ends inside it */
};

enum um_period_trust {
	UM_TRUST_LOW, /* long gaps, or dissimilar units */
	UM_TRUST_MEDIUM, /* it may begin elsewhere, or a shorter or longer unit repeats as well */
	UM_TRUST_HIGH
};

struct um_period {
	UM_VEC(struct um_period_span) spans; /* in order; none: no repetition */
	size_t kernels; /* usual kernels per iteration */
	double covered; /* share of all kernels' time in iterations: 0 to 1 */
	enum um_period_trust trust;
	size_t other; /* kernels of another repetition, shorter or longer; 0: none */
};

#define UM_PERIOD_LEAST 3 /* iterations */

/* `names` are below `n_names`; `alone[name]`: a single launch of it may be an iteration (a graph of kernels). Borrowed.
 * 0 or -ENOMEM; initialises *p, for um_period_fini in every case. */
int um_period_find(struct um_period *p, const uint32_t *names, const float *ns, size_t n, const unsigned char *alone,
		   size_t n_names);
void um_period_fini(struct um_period *p);

const char *um_period_trust_name(enum um_period_trust trust);

#endif
