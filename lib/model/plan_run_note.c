/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_run_note.c - records the first violation of a run
 */
#include "model/plan_run_state.h"

#include <stdarg.h>
#include <stdio.h>

/* "op 12 'relu'", and of a relaunch "op 12 'relu' again before op 40". Ops are the program's. */
static int name_op(const struct um_plan_run *r, char *line, size_t size)
{
	const struct um_schedule *s = &r->plan->sched;
	const struct um_sched_op *op = &s->ops.at[r->pos];
	int32_t first = op->again ? (int32_t)op->again - 1 : r->pos, number = 0, next = 0;

	for (int32_t i = 0; i < r->pos; i++) {
		number += i < first && !s->ops.at[i].again;
		next += !s->ops.at[i].again;
	}
	if (op->again)
		return snprintf(line, size, "op %d '%s' again before op %d", number, op->name, next);
	return snprintf(line, size, "op %d '%s'", number, op->name);
}

void um_plan_run_note(struct um_plan_run *r, const char *fmt, ...)
{
	size_t n;
	va_list ap;

	if (r->tally.unsound++)
		return;
	n = (size_t)name_op(r, r->tally.why, sizeof r->tally.why);
	if (n >= sizeof r->tally.why)
		return;
	va_start(ap, fmt);
	vsnprintf(r->tally.why + n, sizeof r->tally.why - n, fmt, ap);
	va_end(ap);
}
