/* SPDX-License-Identifier: Apache-2.0
 *
 * period_state.h - private to the period*.c: anchors and the units between them
 */
#ifndef UM_REPORT_PERIOD_STATE_H
#define UM_REPORT_PERIOD_STATE_H

#include "report/period.h"

#define UM_ANCHORS_MAX 24 /* that are tried */
#define UM_PERIOD_SIMILAR 0.5 /* share of the usual kernels in an iteration, perhaps an odd one */
#define UM_PERIOD_WINDOW (1u << 20) /* analysed kernels at most */

struct um_sequence {
	const uint32_t *names;
	const float *ns;
	size_t n;
	const unsigned char *alone;
	uint32_t *count; /* by name, all 0 between uses */
};

/* Kernels in a row that come back. */
struct um_anchor {
	uint64_t hash;
	size_t length;
	size_t count, first, last; /* of the analysed ones */
	double uneven; /* variance of the distances, in squares of their mean */
	double score;
};

/* A candidate cut of the sequence at an anchor. */
struct um_level {
	struct um_anchor anchor;
	size_t unit; /* kernels from one to the next, usually */
	size_t sample; /* begin of a usual one */
	size_t repeats, alike; /* similar to at least a half; to nine tenths */
	double ns; /* of those */
	double reach; /* from first to last: share of all kernels, or of their time */
	/* Shares of the time from first to last: in those; in those similar to nine tenths; in units with only some of
	 * their kernels. */
	double covered, held, partly;
};

/* period_anchors.c: the most likely ones, unordered: their number, or -ENOMEM. */
int um_anchors_find(const struct um_sequence *s, struct um_anchor anchors[UM_ANCHORS_MAX]);
int um_anchor_places(const struct um_sequence *s, const struct um_anchor *anchor, size_t **places, size_t *n);

/* period_cut.c: number of kernels that [from, to) and [sample, sample + unit) have in common, with multiplicity. */
size_t um_span_alike(const struct um_sequence *s, size_t sample, size_t unit, size_t from, size_t to);
int um_period_cut(struct um_period *p, const struct um_sequence *s, const struct um_level *level, int *sure);

#endif
