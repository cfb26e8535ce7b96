/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_line.h - parts of the umplan reader: op and hint lines, and checks that need all slots
 *
 * All return 0, -EINVAL (refused, with a diag) or -ENOMEM. The names of hint kinds and advice are here for the writer.
 */
#ifndef UM_IO_PLAN_LINE_H
#define UM_IO_PLAN_LINE_H

#include "io/op_read.h"
#include "model/plan.h"

/* Appends a parsed op line to the schedule. */
int um_plan_op_keep(struct um_schedule *sched, struct um_op_line *op, const struct um_json *j,
		    const struct um_op_names *names);

/* `n_ops` is the header's count; the previous hint in `plan` bounds `at`. Adds to plan->scratch. */
int um_plan_hint_read(const struct um_json *j, struct um_plan *plan, uint64_t n_ops, const struct um_op_names *names,
		      struct um_hint *out);

/* Facts of a slot's line that are needed at the end of the file. */
struct um_slot_line {
	uint64_t line;
	int has_ord; /* `ord` is present */
};

/* Fills sched->births by `ord`, or for births without it by place in the iteration and slot number. */
int um_plan_births_build(struct um_schedule *sched, const struct um_slot_line *from, struct um_diag *diag);

/* No slot is carried twice, or into another size. */
int um_plan_carry_check(const struct um_schedule *sched, const struct um_slot_line *from, struct um_diag *diag);

const char *um_hint_kind_name(enum um_hint_kind kind);
const char *um_advice_name(int advice); /* NULL for an invalid number */

#endif
