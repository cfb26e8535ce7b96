/* SPDX-License-Identifier: Apache-2.0
 *
 * bins.h - a histogram over time with a limited number of bins
 *
 * in    amounts with a beginning and an end, in any order; levels, in order of time
 * out   sums for each bin, and the highest level in it
 * owns  its bins
 *
 * A bin is 2^shift ns wide and begins at a multiple of that. If an amount does not fit, bins are joined in pairs, so
 * that any series can be added to any other. The sum over the bins is exact to the byte.
 */
#ifndef UM_REPORT_BINS_H
#define UM_REPORT_BINS_H

#include <stddef.h>
#include <stdint.h>

#include "model/activity.h"

/* Kinds of sums: migrations by direction and cause, and more. */
enum um_bins_row {
	UM_BINS_FAULTS = (UM_DIR_D2D + 1) * UM_CAUSES,
	UM_BINS_CPU_FAULTS,
	UM_BINS_BUSY, /* ns with a running kernel */
	UM_BINS_ROWS
};

#define UM_BINS_MOVED(dir, cause) ((unsigned)(dir)*UM_CAUSES + (unsigned)(cause)) /* bytes */

struct um_bin {
	uint64_t sum[UM_BINS_ROWS];
	uint64_t most, last; /* levels */
	int has_level;
};

struct um_bins {
	struct um_bin *at;
	unsigned room; /* largest number of bins */
	unsigned n; /* bins in use, from the first to the last non-empty one */
	unsigned shift;
	int64_t first; /* the first bin begins at first * 2^shift */
};

int um_bins_init(struct um_bins *s, unsigned room); /* `most`: at least 2 bins. 0 or -ENOMEM */
void um_bins_fini(struct um_bins *s); /* also a zeroed one */
void um_bins_clear(struct um_bins *s);

/* Spread evenly over begin..end. */
void um_bins_add(struct um_bins *s, unsigned row, int64_t begin, int64_t end, uint64_t amount);
void um_bins_level(struct um_bins *s, int64_t t, uint64_t level);

/* Adds all of `from`, whose levels are the later ones. */
void um_bins_join(struct um_bins *to, const struct um_bins *from);

uint64_t um_bins_total(const struct um_bins *s, unsigned row);

/* Begin of bin i; i = n: end of the last one. */
int64_t um_bins_at(const struct um_bins *s, unsigned i);

#endif
