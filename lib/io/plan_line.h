/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_line.h - parts of the umplan reader: op and hint lines, and what only shows when all slots are there
 *
 * All return 0, -EINVAL (refused, said in the diag) or -ENOMEM. The names of hint kinds and advice are here for the
 * writer.
 */
#ifndef UM_IO_PLAN_LINE_H
#define UM_IO_PLAN_LINE_H

#include "io/op_read.h"
#include "model/plan.h"

/* Appends an op line, taken apart already, to the schedule. */
int um_plan_op_keep(struct um_schedule *sched, struct um_op_line *op, const struct um_json *j,
		    const struct um_op_names *names);

/* `n_ops` is the header's count; hints before it in `plan` tell what `at` may be. */
int um_plan_hint_read(const struct um_json *j, const struct um_plan *plan, uint64_t n_ops,
		      const struct um_op_names *names, struct um_hint *out);

/* What is remembered of a slot's line until the file ends. */
struct um_slot_line {
	uint64_t line;
	int has_ord; /* `ord` was given */
};

/* Fills sched->births by `ord`, or where a birth has none by place in the iteration and slot number. */
int um_plan_births_build(struct um_schedule *sched, const struct um_slot_line *from, struct um_diag *diag);

/* Nobody is carried twice, or into another size. */
int um_plan_carry_check(const struct um_schedule *sched, const struct um_slot_line *from, struct um_diag *diag);

const char *um_hint_kind_name(enum um_hint_kind kind);
const char *um_advice_name(int advice); /* NULL for a number that is none */

#endif
