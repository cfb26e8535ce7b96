/* SPDX-License-Identifier: Apache-2.0
 *
 * baseline.h - an iteration without evictions, as the base of all choices
 *
 * in    blocks with their visits and gaps
 * out   by op, the resident bytes, births and frees
 * owns  the arrays
 *
 * Each choice of gaps changes it for some touches only: the values for all others are computed here, once per schedule.
 */
#ifndef UM_PLAN_BASELINE_H
#define UM_PLAN_BASELINE_H

#include <stdint.h>

struct um_blocks;

struct um_baseline {
	int32_t *load; /* by op: blocks with live content around it; one more entry */
	uint32_t *first_born, *born; /* by op: touches that are the first of a life; n_ops + 2, the last one unused */
	uint64_t *born_bytes; /* by op; one more */
	uint64_t *freed; /* by op: bytes freed by then, but not by the previous op; one more entry */
	uint64_t resident; /* bytes, at the beginning of an iteration */
};

int um_baseline_build(struct um_baseline *s, const struct um_blocks *b); /* 0 or -ENOMEM */
void um_baseline_fini(struct um_baseline *s);

#endif
