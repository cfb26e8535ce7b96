/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme_case.h - what tests of published schemes share
 */
#ifndef UM_TESTS_SCHEME_CASE_H
#define UM_TESTS_SCHEME_CASE_H

#include "plan/scheme.h"
#include "plan_fixture.h"
#include "tap.h"

#define B UM_BLOCK_BYTES

/* What a scheme is asked, from a schedule that has times. */
struct scheme_case {
	struct um_schedule sched;
	struct um_blocks blocks;
	struct um_scheme_case s;
	struct um_scheme_answer a;
	uint8_t *pinned;
	uint64_t *clock;
};

void scheme_case_init(struct scheme_case *x, const struct um_schedule *s, int32_t capacity);
void scheme_case_fini(struct scheme_case *x);

/* A plan of the scheme's, proved. */
struct scheme_plan {
	struct um_plan plan;
	struct um_plan_figures f;
	char why[300];
};

int scheme_plan(struct scheme_plan *p, const struct um_schedule *s, const char *scheme, uint64_t budget);
void scheme_plan_fini(struct scheme_plan *p);

int scheme_leaves(const struct scheme_plan *p, uint32_t slot); /* with a copy? */
int32_t scheme_returns_after(const struct scheme_plan *p, uint32_t slot); /* `after` of its last return */

/* Recorded workloads at 1.5 times what there is: sound and not faster than can be. */
void scheme_recorded(const char *scheme);

#endif
