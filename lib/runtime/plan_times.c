/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_times.h"

#include <math.h>

/* A new plan is made if the measured times differ from the planned ones by this share of the iteration. */
#define TIMES_DIFFER 0.03

void um_plan_times_init(struct um_plan_times *t, const struct um_chosen_device *device)
{
	memset(t, 0, sizeof *t);
	t->device = device;
	um_op_timer_init(&t->timer, device->gpu);
}

void um_plan_times_fini(struct um_plan_times *t)
{
	um_op_timer_fini(&t->timer);
}

/* 1: the op timer has measured the ops of this schedule. */
static int has_times(const struct um_plan_times *t, const struct um_schedule *s)
{
	return t->timer.state == UM_OP_TIMER_DONE && t->signature == s->signature && t->timer.ns.n == s->ops.n;
}

void um_plan_times_fill(const struct um_plan_times *t, struct um_schedule *s)
{
	for (size_t i = 0; i < s->ops.n && has_times(t, s); i++)
		s->ops.at[i].ns = t->timer.ns.at[i];
	for (size_t i = 0; i < s->ops.n; i++) {
		struct um_sched_op *op = &s->ops.at[i];

		if (!op->ns && op->stream != UM_STREAM_CPU)
			op->ns = um_profile_op_ns(&t->device->profile, &op->cost, um_sched_touched(s, op));
	}
}

void um_plan_times_begin(struct um_plan_times *t, const struct um_schedule *s, uint32_t n_iterations)
{
	t->measured = has_times(t, s) ? s->ops.n / n_iterations : 0;
	if (!t->device->real || t->measured)
		return;
	t->signature = s->signature;
	if (um_op_timer_begin(&t->timer, (uint32_t)s->ops.n))
		um_op_timer_off(&t->timer);
}

static int differ(const struct um_plan_times *t, const struct um_schedule *s)
{
	double sum = 0, off = 0;

	for (size_t i = 0; i < s->ops.n; i++) {
		double planned = (double)s->ops.at[i].ns, ns = (double)t->timer.ns.at[i];

		sum += planned;
		off += ns ? fabs(ns - planned) : 0;
	}
	return off > sum * TIMES_DIFFER;
}

/* Plans launch ops again once the times of ops are known. */
static int has_relaunches(const struct um_schedule *s)
{
	size_t i = 0;

	while (i < s->ops.n && !s->ops.at[i].n_relaunch)
		i++;
	return i < s->ops.n;
}

int um_plan_times_end(struct um_plan_times *t, int followed, const struct um_schedule *s, uint32_t n_iterations)
{
	if (!t->device->real || !um_op_timer_end(&t->timer, followed) || !s->ops.n || t->measured || !has_times(t, s))
		return 0;
	t->measured = s->ops.n / n_iterations;
	return differ(t, s) || has_relaunches(s);
}
