/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/make_plan.h"

#include "learn/unroll.h"
#include "plan/planner.h"
#include "replay/evict_policy.h"
#include "replay/rehearsal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* An address above all that a device may return: the planner places there what needs new arenas. */
#define GROW_AT (1ull << 56)

/* Limit of planning on a real device, in addition to UMADVISE_PLAN_TIME. In simulated time equal runs must give equal
 * plans: only the recorder's limits bound the planning. */
#define UM_PLAN_MOST_MS 60000u

/* 1: a tensor that dies in the next iteration while its successor is alive. Where it lies now, between other tensors,
 * its successors will not. */
static int is_passed_on(const struct um_schedule *s, uint32_t i)
{
	const struct um_slot *t = &s->slots.at[i];

	return t->birth < 0 && t->death >= 0 && t->carry < s->slots.n && t->carry != i && t->place % UM_BLOCK_BYTES;
}

/* Sets bound_addr to the current addresses of the tensors. Slots that are freed and born again in every iteration are
 * placed anew; the new address counts from the next birth on. */
static void set_places(struct um_schedule *s)
{
	for (uint32_t i = 0; i < s->slots.n; i++) {
		struct um_slot *t = &s->slots.at[i];

		t->bound_addr = t->place;
		if (!t->bound.v || !((t->birth >= 0 && t->death <= t->birth) || is_passed_on(s, i)))
			continue;
		t->flags &= ~(unsigned)UM_SLOT_FIXED;
		t->place = UINT64_MAX;
	}
}

static int cmp_id(const void *a, const void *b)
{
	const struct um_tensor_id *x = a, *y = b;

	return x->v < y->v ? -1 : x->v > y->v;
}

/* Adds live tensors that the iteration does not use, as slots with a fixed address. */
static int add_unused_tensors(const struct um_plan_host *h, struct um_schedule *s)
{
	UM_VEC(struct um_tensor_id) known = {0};
	int err = um_vec_reserve(&known, s->slots.n + 1);

	for (size_t i = 0; i < s->slots.n && !err; i++)
		if (s->slots.at[i].bound.v)
			err = um_vec_push(&known, s->slots.at[i].bound);
	if (known.n)
		qsort(known.at, known.n, sizeof *known.at, cmp_id);
	for (struct um_tree_node *n = um_tree_first(&h->tensors->registry.live); n && !err; n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		if (t->flags & (UM_TENSOR_ADOPTED | UM_TENSOR_UNMANAGED) ||
		    (known.n && bsearch(&t->id, known.at, known.n, sizeof t->id, cmp_id)))
			continue;
		struct um_slot slot = {.bytes = t->bytes,
				       .birth = -1,
				       .death = -1,
				       .carry = (uint32_t)s->slots.n,
				       .flags = UM_SLOT_FIXED,
				       .role = t->role,
				       .place = t->addr,
				       .bound = t->id,
				       .bound_addr = t->addr};

		err = um_vec_push(&s->slots, slot);
	}
	um_vec_fini(&known);
	return err;
}

static uint64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Wall-clock limits of the planning. */
struct deadline {
	uint64_t (*wall_ms)(void);
	uint64_t early_ms; /* the search for a better plan ends then */
	uint64_t late_ms; /* planning fails from then on; UINT64_MAX: no limit */
};

static int is_early(void *user)
{
	const struct deadline *d = user;

	return d->wall_ms() < d->early_ms;
}

static int is_late(void *user)
{
	const struct deadline *d = user;

	return d->late_ms != UINT64_MAX && d->wall_ms() >= d->late_ms;
}

/* A device or memory without discards: what the plan discards is copied. Memory from GROW_AT on will be our own. */
static void keep_undiscardable(const struct um_plan_host *h, struct um_compiled_plan *program)
{
	int can = h->device->gpu->caps.discard;

	for (int i = 0; i <= UM_COMPILED_PLAN_STEADY; i++)
		for (size_t k = 0; k < program->iterations[i].actions.n; k++) {
			struct um_action *a = &program->iterations[i].actions.at[k];
			int ours = a->addr >= GROW_AT || um_arena_pool_region_at(&h->tensors->pool, a->addr, a->bytes);

			if (a->kind == UM_ACTION_DISCARD && !(can && ours))
				a->kind = UM_ACTION_DROP_WITH_COPY;
		}
}

/* Simulates the plan's program together with the driver's work. */
static int rehearse(void *user, const struct um_plan *plan, uint64_t *ns)
{
	const struct um_plan_host *h = user;
	struct um_compiled_plan program;
	int err;

	um_compiled_plan_init(&program);
	err = um_compiled_plan_build_steady(plan, plan->budget / UM_BLOCK_BYTES, &program);
	keep_undiscardable(h, &program);
	if (!err)
		err = um_rehearse(&program, plan, &h->device->profile, ns);
	um_compiled_plan_fini(&program);
	return err;
}

/* Makes a plan; grows the arenas if the planner needs more room. */
static int build_plan(const struct um_plan_host *h, const struct um_schedule *s, uint64_t budget,
		      struct deadline *deadline, struct um_plan *plan, char *why, size_t size)
{
	struct um_plan_room *rooms = NULL;
	uint64_t grow = 0;
	struct um_plan_effort effort = {h->options->pub.plan_ms ? is_early : NULL, is_late, deadline};
	struct um_plan_rehearsal rehearsal = {rehearse, (void *)(uintptr_t)h};
	int err = 0;

	for (int tries = 0; tries < 3; tries++) {
		size_t n = h->tensors->pool.regions.n;
		struct um_plan_room *more = realloc(rooms, (n + 1) * sizeof *rooms);

		if (!more) {
			err = -ENOMEM;
			break;
		}
		rooms = more;
		size_t n_rooms = 0;

		for (size_t i = 0; i < n; i++)
			if (h->tensors->pool.regions.at[i].heap == UM_ARENA_POOL_MAIN)
				rooms[n_rooms++] = (struct um_plan_room){h->tensors->pool.regions.at[i].addr,
									 h->tensors->pool.regions.at[i].bytes};
		struct um_plan_request req = {.sched = s,
					      .profile = &h->device->profile,
					      .budget = budget,
					      .rooms = rooms,
					      .n_rooms = n_rooms,
					      .grow_at = GROW_AT,
					      .strategy = um_strategy_name(h->options->strategy),
					      .effort = &effort,
					      .rehearsal = &rehearsal};

		um_plan_fini(plan);
		um_plan_init(plan);
		err = um_plan_build(&req, plan, &grow, why, size);
		if (err || !grow)
			break;
		err = um_arena_pool_grow(&h->tensors->pool, grow, UM_ARENA_POOL_MAIN);
		if (err)
			break;
	}
	if (!err && grow) {
		snprintf(why, size, "the tensors of the plan do not fit into %zu arenas", h->tensors->pool.regions.n);
		err = -ENOSPC;
	}
	free(rooms);
	return err;
}

static struct deadline deadline_of(const struct um_plan_host *h)
{
	struct deadline d = {h->wall_ms ? h->wall_ms : wall_ms, 0, UINT64_MAX};

	d.early_ms = d.wall_ms() + h->options->pub.plan_ms;
	if (h->device->real)
		d.late_ms = d.early_ms + UM_PLAN_MOST_MS;
	return d;
}

/* Makes a plan for the whole budget, or for less if no such plan can be proved. After a timeout, schedules of the same
 * or a greater length are not planned: the program waits while the library plans. */
static int find_plan(struct um_plan_host *h, const struct um_schedule *s, struct um_plan *plan, char *why, size_t size)
{
	static const unsigned parts[] = {100, 95, 85, 70};
	uint64_t budget = h->device->budget;
	struct deadline d = deadline_of(h);
	int err = -EINVAL;

	if (h->late_ops && s->ops.n >= h->late_ops)
		return -ETIMEDOUT;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && err == -EINVAL && !is_late(&d); i++)
		err = build_plan(h, s, budget / 100 * parts[i] + (i ? 0 : budget % 100), &d, plan, why, size);
	if (err && is_late(&d)) {
		h->late_ops = s->ops.n;
		snprintf(why, size,
			 "planning took longer than %u s for %zu operations: mark shorter iterations with umadv_iter",
			 UM_PLAN_MOST_MS / 1000, s->ops.n);
	}
	return err;
}

/* Joins several iterations into one if buffers rotate among places that differ. 0 or -ENOMEM. */
static int unroll(struct um_schedule *s, uint32_t *n_iterations)
{
	struct um_schedule all;
	int err;

	*n_iterations = um_unroll_iterations(s);
	if (*n_iterations == 1)
		return 0;
	um_schedule_init(&all);
	err = um_unroll_build(s, *n_iterations, &all);
	if (err)
		return err;
	um_schedule_fini(s);
	*s = all;
	return 0;
}

int um_make_schedule(struct um_schedule *s, uint32_t *n_iterations)
{
	set_places(s);
	return unroll(s, n_iterations);
}

int um_make_plan(struct um_plan_host *h, struct um_schedule *s, struct um_plan *plan, struct um_plan_figures *figures,
		 char *why, size_t size)
{
	int err = add_unused_tensors(h, s);

	if (!err)
		err = find_plan(h, s, plan, why, size);
	return err ? err : um_plan_prove(plan, figures, why, size);
}

/* Compiles the plan. Evictions are left to the driver if that is faster. */
int um_make_program(const struct um_plan_host *h, struct um_plan *plan, struct um_compiled_plan *program)
{
	uint64_t blocks = h->device->budget / UM_BLOCK_BYTES;
	enum um_evict_policy policy = (enum um_evict_policy)h->options->pub.evict;
	int err;

	program->run_out = um_evict_policy_runs(plan, &h->device->profile, blocks);
	err = um_compiled_plan_build(plan, blocks, program);
	if (h->device->larger)
		policy = UM_EVICT_LIBRARY; /* the driver evicts when the device is full, not before */
	for (size_t i = 0; i < plan->sched.ops.n; i++)
		if (plan->sched.ops.at[i].paged || plan->sched.ops.at[i].stream == UM_STREAM_CPU)
			policy = UM_EVICT_LIBRARY; /* the driver's evictions cannot be foreseen, or come too late */
	keep_undiscardable(h, program);
	if (!err)
		err = um_evict_policy_choose(program, plan, &h->device->profile, blocks, policy);
	if (!err)
		err = um_rehearse(program, plan, &h->device->profile, &plan->rehearsed_ns);
	if (err)
		um_compiled_plan_fini(program);
	return err;
}
