/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_job.h"

#include "model/plan_host.h"

#include "model/plan_launches.h"
#include "replay/rehearsal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* An address above all that a device may return: the planner places there what needs new arenas. */
#define GROW_AT (1ull << 56)

void um_plan_device_fini(struct um_plan_device *d)
{
	um_vec_fini(&d->rooms);
	um_vec_fini(&d->own);
	um_vec_fini(&d->on_host);
}

void um_plan_job_init(struct um_plan_job *j)
{
	memset(j, 0, sizeof *j);
	um_schedule_init(&j->sched);
	um_plan_init(&j->plan);
	um_plan_init(&j->recomputes);
	um_compiled_plan_init(&j->program);
}

void um_plan_job_fini(struct um_plan_job *j)
{
	um_plan_device_fini(&j->device);
	um_schedule_fini(&j->sched);
	um_plan_fini(&j->plan);
	um_plan_fini(&j->recomputes);
	um_relaunches_fini(&j->again);
	um_compiled_plan_fini(&j->program);
	um_plan_job_init(j);
}

/* --- search ------------------------------------------------------------------------------------------------------- */

/* The end of a search, by the clock or by its owner. */
struct deadline {
	const struct um_plan_job *job;
	uint64_t early_ms; /* the search for a better plan ends then */
	uint64_t late_ms; /* planning fails from then on; UINT64_MAX: no limit */
};

static int is_early(void *user)
{
	const struct deadline *d = user;

	return d->job->wall_ms() < d->early_ms;
}

static int is_late(void *user)
{
	const struct deadline *d = user;

	return atomic_load_explicit(&d->job->cancelled, memory_order_relaxed) ||
	       (d->late_ms != UINT64_MAX && d->job->wall_ms() >= d->late_ms);
}

static int is_own(const struct um_plan_device *d, const struct um_action *a)
{
	for (size_t i = 0; i < d->own.n; i++)
		if (a->addr >= d->own.at[i].addr && a->addr + a->bytes <= d->own.at[i].addr + d->own.at[i].bytes)
			return 1;
	return a->addr >= GROW_AT;
}

/* A device or memory without discards: what the plan discards is copied. */
static void keep_undiscardable(const struct um_plan_device *d, struct um_compiled_plan *program)
{
	for (int i = 0; i <= UM_COMPILED_PLAN_STEADY; i++)
		for (size_t k = 0; k < program->iterations[i].actions.n; k++) {
			struct um_action *a = &program->iterations[i].actions.at[k];

			if (a->kind == UM_ACTION_DISCARD && !(d->can_discard && is_own(d, a)))
				a->kind = UM_ACTION_DROP_WITH_COPY;
		}
}

/* Simulates the plan's program together with the driver's work. */
static int rehearse(void *user, const struct um_plan *plan, uint64_t *ns)
{
	const struct um_plan_device *d = user;
	struct um_compiled_plan program;
	int err;

	um_compiled_plan_init(&program);
	err = um_compiled_plan_build_steady(plan, plan->budget / UM_BLOCK_BYTES, &program);
	keep_undiscardable(d, &program);
	if (!err)
		err = um_rehearse(&program, plan, &d->profile, ns);
	um_compiled_plan_fini(&program);
	return err;
}

static int find_host(void *user, const struct um_plan *plan, uint64_t *bytes)
{
	const struct um_plan_device *d = user;

	return um_compiled_plan_host(plan, d->on_host.at, d->on_host.n, bytes);
}

static int try_build(struct um_plan_job *j, uint64_t budget, struct deadline *deadline, int relaunches)
{
	const struct um_plan_effort effort = {j->plan_ms ? is_early : NULL, is_late, deadline};
	const struct um_plan_rehearsal rehearsal = {.ns = rehearse, .host = find_host, .user = &j->device};
	const struct um_plan_request request = {.sched = &j->sched,
						.profile = &j->device.profile,
						.budget = budget,
						.host_budget = j->device.host_budget,
						.on_host = j->device.on_host.at,
						.n_on_host = j->device.on_host.n,
						.rooms = j->device.rooms.at,
						.n_rooms = j->device.rooms.n,
						.stay = j->device.fits,
						.grow_at = GROW_AT,
						.strategy = j->strategy,
						.recompute = relaunches,
						.in_place = 1,
						.effort = &effort,
						.rehearsal = &rehearsal};

	um_plan_fini(&j->plan);
	um_plan_init(&j->plan);
	return um_plan_build(&request, &j->plan, &j->grow, j->why, sizeof j->why);
}

/* Lists and proves the launches of a plan with relaunches. 0; -EINVAL: they must not come earlier than planned;
 * -ENOMEM. */
static int unfold(const struct um_plan *plan, struct um_plan_launches *launches, struct um_relaunches *again)
{
	uint64_t *ns = malloc((plan->sched.ops.n + 1) * sizeof *ns);
	int err;

	if (!ns)
		return -ENOMEM;
	for (size_t i = 0; i < plan->sched.ops.n; i++)
		ns[i] = plan->sched.ops.at[i].ns;
	err = um_plan_launches_build(launches, plan, ns);
	free(ns);
	if (err)
		return err;
	err = um_plan_prove(&launches->unfolded.plan, NULL, NULL, 0);
	if (!err)
		err = um_relaunches_build(again, &launches->unfolded.plan.sched, launches->again);
	if (err)
		um_plan_launches_fini(launches);
	return err;
}

/* 0; -EINVAL: the plan has relaunches that must not come earlier than planned; -ENOMEM. */
static int check_relaunches(const struct um_plan *plan)
{
	struct um_plan_launches launches;
	struct um_relaunches again = {.next = 0};
	int err = um_plan_recomputes(plan) ? unfold(plan, &launches, &again) : 1;

	if (!err) {
		um_plan_launches_fini(&launches);
		um_relaunches_fini(&again);
	}
	return err > 0 ? 0 : err;
}

static int build(struct um_plan_job *j, uint64_t budget, struct deadline *deadline)
{
	int err = try_build(j, budget, deadline, j->relaunches), check;

	if (err || !j->relaunches)
		return err;
	check = check_relaunches(&j->plan);
	return check == -EINVAL ? try_build(j, budget, deadline, 0) : check;
}

/* Makes a plan for the whole budget, or for less if no such plan can be proved. */
int um_plan_job_search(struct um_plan_job *j)
{
	static const unsigned parts[] = {100, 95, 85, 70};
	uint64_t budget = j->device.budget;
	struct deadline d = {j, j->wall_ms() + j->plan_ms, UINT64_MAX};

	if (j->most_ms)
		d.late_ms = d.early_ms + j->most_ms;
	j->err = -EINVAL;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && j->err == -EINVAL && !is_late(&d); i++)
		j->err = build(j, budget / 100 * parts[i] + (i ? 0 : budget % 100), &d);
	if (atomic_load_explicit(&j->cancelled, memory_order_relaxed)) {
		j->err = -ECANCELED;
	} else if (j->err && is_late(&d)) {
		j->err = -ETIMEDOUT;
		snprintf(j->why, sizeof j->why,
			 "planning took longer than %u s for %zu operations: mark shorter iterations with umadv_iter",
			 j->most_ms / 1000, j->sched.ops.n);
	}
	return j->err;
}

int um_plan_job_move(struct um_plan_job *j, uint64_t addr)
{
	const struct um_plan_room room = {addr, j->grow};

	for (size_t i = 0; i < j->plan.sched.slots.n; i++) {
		struct um_slot *s = &j->plan.sched.slots.at[i];

		if (s->place >= GROW_AT && s->place != UINT64_MAX)
			s->place += addr - GROW_AT;
	}
	j->grow = 0;
	return um_vec_push(&j->device.own, room);
}

/* --- compile ------------------------------------------------------------------------------------------------------ */

/* Is the policy that leaves evictions to the driver out of the question? Its evictions come when the device is full;
 * among page faults and waits for the CPU they cannot be foreseen. In time it evicts every block, and all of them get
 * host memory. */
static int must_evict(const struct um_plan_device *d, const struct um_plan *plan)
{
	uint64_t all;
	int must = d->larger;

	if (d->host_budget)
		must |= um_plan_managed_bytes(&plan->sched, &all) || all > d->host_budget;

	for (size_t i = 0; i < plan->sched.ops.n; i++)
		must |= plan->sched.ops.at[i].paged || plan->sched.ops.at[i].stream == UM_STREAM_CPU;
	return must;
}

/* `program` has the length of its evictions, and else is empty. */
static int compile(const struct um_plan_device *d, const struct um_plan *plan, enum um_evict_policy policy,
		   struct um_compiled_plan *program)
{
	uint64_t blocks = d->budget / UM_BLOCK_BYTES;
	int err = um_compiled_plan_build(plan, blocks, program);

	keep_undiscardable(d, program);
	return err ? err : um_evict_policy_choose(program, plan, &d->profile, blocks, policy);
}

/* The plan becomes the one of all its launches. */
static int list_launches(struct um_plan_job *j)
{
	struct um_plan_launches launches;
	int err = unfold(&j->plan, &launches, &j->again);

	if (err)
		return err;
	j->recomputes = j->plan;
	j->plan = launches.unfolded.plan;
	j->plan.in_core_ns = j->recomputes.in_core_ns;
	um_plan_init(&launches.unfolded.plan);
	um_plan_launches_fini(&launches);
	return 0;
}

int um_plan_job_compile(struct um_plan_job *j)
{
	const struct um_plan_device *d = &j->device;
	struct um_plan *plan = &j->plan;

	j->err = um_plan_prove(plan, &j->figures, j->why, sizeof j->why);
	if (!j->err && um_plan_recomputes(plan))
		j->err = list_launches(j);
	if (j->err)
		return j->err;
	j->program.run_out = um_evict_policy_runs(plan, &d->profile, d->budget / UM_BLOCK_BYTES);
	j->err = compile(d, plan, must_evict(d, plan) ? UM_EVICT_LIBRARY : d->evict, &j->program);
	if (!j->err)
		j->err = um_rehearse(&j->program, plan, &d->profile, &plan->rehearsed_ns);
	if (j->err)
		um_compiled_plan_fini(&j->program);
	return j->err;
}

int um_plan_compile_again(const struct um_plan_device *d, const struct um_plan *plan, struct um_compiled_plan *program)
{
	struct um_compiled_plan again;
	int err;

	um_compiled_plan_init(&again);
	again.run_out = program->run_out;
	err = compile(d, plan, program->driver_evicts ? UM_EVICT_DRIVER : UM_EVICT_LIBRARY, &again);
	if (err) {
		um_compiled_plan_fini(&again);
		return err;
	}
	um_compiled_plan_fini(program);
	*program = again;
	return 0;
}
