/* SPDX-License-Identifier: Apache-2.0
 *
 * baseline.h - an iteration in which nothing leaves
 *
 * in    blocks whose visits and gaps are known
 * out   by op, what is resident, what is born and what goes by itself
 * owns  the arrays
 *
 * Each choice of gaps changes it for some touches only: what holds for all the others is found here, once a schedule.
 */
#ifndef UM_PLAN_BASELINE_H
#define UM_PLAN_BASELINE_H

#include <stdint.h>

struct um_blocks;

struct um_baseline {
	int32_t *load; /* by op: blocks that hold something around it; one more */
	uint32_t *first_born, *born; /* by op: touches that are the first of a life; n_ops + 2, the last one unused */
	uint64_t *born_bytes; /* by op; one more */
	uint64_t *goes; /* by op: bytes that were freed by then, but not by the op before; one more */
	uint64_t resident; /* bytes, when an iteration begins */
};

int um_baseline_build(struct um_baseline *s, const struct um_blocks *b); /* 0 or -ENOMEM */
void um_baseline_fini(struct um_baseline *s);

#endif
