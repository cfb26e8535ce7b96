/* SPDX-License-Identifier: Apache-2.0
 *
 * period.h - what repeats in a sequence of kernels, where nobody says what an iteration is
 *
 * in    kernels as numbers, equal for the same kernel only, in the order of their launches; how long each ran
 * out   iterations: spans of that sequence, none inside another
 * owns  the spans
 *
 * An iteration is found by a mark: a run of kernels that comes back at regular distance. What lies between two marks
 * is compared with what usually does, by how many kernels of each name they share: few more or fewer are no matter.
 * Repetitions lie in each other (layers, steps, rounds of steps with an evaluation); the one taken is the shortest that
 * most of the time is spent in, unless what is left between its repetitions repeats with it as a longer one.
 * Then it is cut where the repeating begins.
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
	size_t from, to; /* kernels, `to` is not in it */
	int whole; /* 0: the sequence ends before it does */
};

enum um_period_trust {
	UM_TRUST_LOW, /* much lies between, or is not alike */
	UM_TRUST_MEDIUM, /* it repeats, but might begin elsewhere, or something shorter or longer repeats as well */
	UM_TRUST_HIGH
};

struct um_period {
	UM_VEC(struct um_period_span) spans; /* in order; none: nothing repeats */
	size_t kernels; /* that an iteration usually has */
	double covered; /* of all kernels' time, the share in iterations: 0 to 1 */
	enum um_period_trust trust;
	size_t other; /* kernels of something shorter or longer that repeats, too; 0: nothing does */
};

#define UM_PERIOD_LEAST 3 /* iterations */

/* `names` are below `n_names`; `alone[name]`: a single one of it may be an iteration (a graph of kernels). Borrowed.
 * 0 or -ENOMEM; initialises *p, for um_period_fini in every case. */
int um_period_find(struct um_period *p, const uint32_t *names, const float *ns, size_t n, const unsigned char *alone,
		   size_t n_names);
void um_period_fini(struct um_period *p);

const char *um_period_trust_name(enum um_period_trust trust);

#endif
