/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_content.h - which content memory holds while a plan with relaunches runs
 *
 * in    an unfolded plan (plan_unfold.h), step by step
 * out   a violation if a relaunch reads other content than its op did; the state LOST of what it writes
 * owns  a label for each atom
 *
 * A label is the launch by the program that made the content, so equal labels of the same bytes are equal content. A
 * relaunch that reads equal content makes equal content (doc/umtrace.md).
 */
#ifndef UM_MODEL_PLAN_CONTENT_H
#define UM_MODEL_PLAN_CONTENT_H

#include <stddef.h>
#include <stdint.h>

struct um_plan_run;

/* Labels: number of the launch + 2. */
enum { UM_CONTENT_NONE, UM_CONTENT_OLDER }; /* never written or lost; from before the iteration */

struct um_plan_content {
	uint32_t *have, *want; /* by atom: content of the memory; of the tensor, if nothing were discarded */
	uint32_t *origin; /* by use of a relaunch: the use of its op that it repeats */
	size_t *read_at; /* by use of an op that is launched again: into `read`; SIZE_MAX: not read */
	uint32_t *read; /* labels that it read */
};

/* Fills r->content; leaves it NULL if nothing is launched again. 0 or -ENOMEM. */
int um_plan_content_init(struct um_plan_run *r);
void um_plan_content_fini(struct um_plan_content *c);

/* All of the following have r->content != NULL. An iteration begins. */
void um_plan_content_begin(struct um_plan_run *r);

/* The launch at hand starts: after its uses have changed the atoms' states. */
void um_plan_content_launch(struct um_plan_run *r);

/* Atoms [lo, hi) hold no content any more; `freed`: nor would they without hints. */
void um_plan_content_drop(struct um_plan_run *r, uint32_t lo, uint32_t hi, int freed);

#endif
