/* SPDX-License-Identifier: Apache-2.0 */
#include "play/plan_match.h"

#include "model/workspace.h"
#include "play/trace_period.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int refuse(char *why, size_t size, const char *what, size_t have, size_t planned)
{
	snprintf(why, size, "the plan is not of this trace: %s (%zu, planned are %zu)", what, have, planned);
	return -ENODATA;
}

int um_plan_match(const struct um_plan *plan, const struct um_trace *t, const struct um_profile *profile, uint64_t *ns,
		  uint64_t *turns, char *why, size_t size)
{
	const struct um_schedule *s = &plan->sched;
	UM_VEC(const struct um_op *) round = {0};
	struct um_trace_period tail;
	size_t n = s->ops.n, each;
	int err = um_trace_period_find(t, &tail);

	if (err) {
		snprintf(why, size, "the trace has no iterations");
		return err;
	}
	for (size_t i = tail.begin; i < um_trace_length(t) && !err; i++)
		if (um_trace_event(t, i)->kind == UM_EV_OP)
			err = um_vec_push(&round, &um_trace_event(t, i)->op);
	each = round.n / tail.period;
	if (!err && (!each || n % each || (n % round.n && round.n % n)))
		err = refuse(why, size, "ops in an iteration", each, n);
	for (size_t i = 0; i < n && !err; i++) {
		const struct um_op *op = round.at[i % round.n];

		if (strcmp(op->name, s->ops.at[i].name) != 0)
			err = refuse(why, size, op->name, i, i);
		else if (s->ops.at[i].n_ws && s->ops.at[i].n_ws != op->n_ws)
			err = refuse(why, size, "algorithms of an op", op->n_ws, s->ops.at[i].n_ws);
		ns[i] = op->n_ws ? op->ws[s->ops.at[i].n_ws ? s->ops.at[i].choice % op->n_ws
							    : um_workspace_pick(op->ws, op->n_ws, 0)]
					   .ns
				 : um_profile_op_ns(profile, &op->cost, um_uses_touched(op->uses, op->n_uses));
	}
	*turns = err ? 1 : n / each;
	um_vec_fini(&round);
	um_trace_period_fini(&tail);
	return err;
}
