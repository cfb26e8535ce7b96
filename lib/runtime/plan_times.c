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

static int has_cost(const struct um_cost *c)
{
	return c->ns || c->flops > 0 || c->bytes > 0;
}

/* The others may join a collective earlier in the next iterations: it is not planned to take longer than declared. */
void um_plan_times_fill(const struct um_plan_times *t, struct um_schedule *s)
{
	int measured = has_times(t, s);

	for (size_t i = 0; i < s->ops.n; i++) {
		struct um_sched_op *op = &s->ops.at[i];
		uint64_t ns;

		if (measured)
			op->ns = t->timer.ns.at[i];
		if (op->stream == UM_STREAM_CPU || (op->ns && !(op->collective && has_cost(&op->cost))))
			continue;
		ns = um_profile_op_ns(&t->device->profile, &op->cost, um_sched_touched(s, op));
		if (!op->ns || ns < op->ns)
			op->ns = ns;
	}
}

/* The plan of this schedule is measured: keeps what its collectives take longer than planned. */
static void note_measured(struct um_plan_times *t, const struct um_schedule *s, uint32_t n_iterations)
{
	t->measured = s->ops.n / n_iterations;
	t->wait_ns = 0;
	for (size_t i = 0; i < s->ops.n; i++)
		if (s->ops.at[i].collective && t->timer.ns.at[i] > s->ops.at[i].ns)
			t->wait_ns += t->timer.ns.at[i] - s->ops.at[i].ns;
}

void um_plan_times_begin(struct um_plan_times *t, const struct um_schedule *s, uint32_t n_iterations)
{
	t->measured = t->wait_ns = 0;
	if (has_times(t, s))
		note_measured(t, s, n_iterations);
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
		off += ns && !s->ops.at[i].collective ? fabs(ns - planned) : 0;
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
	note_measured(t, s, n_iterations);
	return differ(t, s) || has_relaunches(s);
}
