/* SPDX-License-Identifier: Apache-2.0
 *
 * replan.c - at the end of an iteration: schedule -> plan -> program, and which of them is followed from now on
 */
#include "runtime/context.h"

#include "learn/unroll.h"
#include "plan/planner.h"
#include "replay/rehearsal.h"
#include "replay/evict_policy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Behind every address that a device may return: where the planner may pretend that there is more memory. */
#define GROW_AT (1ull << 56)

/* Planning on a real device ends then, on top of what UMADVISE_PLAN_TIME gives it. In simulated time, where equal runs
 * are to give equal plans, only the caps of the recorder bound it. */
#define UM_PLAN_MOST_MS 60000u

/* Measured times that differ from those planned with by this share of the iteration make a new plan. */
#define TIMES_DIFFER 0.03

/* The plan ends: left in the middle, or followed to the end of the iteration. */
static void drop_plan(struct umadv *adv, int followed)
{
	if (followed)
		um_executor_end(adv->executor);
	else
		um_executor_leave(adv->executor);
	um_cursor_drop(&adv->cursor);
	um_context_forget_uses(adv);
	um_compiled_plan_fini(&adv->program);
	um_plan_fini(&adv->plan);
	adv->laps = 1;
	adv->lap = 0;
	adv->confirmed = 0;
	adv->adopt = 0;
	adv->replans = 0;
}

void um_context_leave(struct umadv *adv)
{
	if (!adv->executor || !adv->cursor.sched)
		return;
	adv->cursor.on = 0;
	if (!um_executor_active(adv->executor))
		return;
	um_executor_leave(adv->executor);
	adv->stats.divergences++;
	um_context_log(adv, UMADV_LOG_INFO,
		       "iteration %llu left the schedule at op %u of %zu: no hints for the rest of it",
		       (unsigned long long)(adv->iteration - 1), adv->cursor.op, adv->cursor.sched->ops.n);
}

/* The stopwatch has measured the ops of this schedule. */
static int has_times(const struct umadv *adv, const struct um_schedule *s)
{
	return adv->stopwatch.state == UM_OP_TIMER_DONE && adv->stopwatch_signature == s->signature &&
	       adv->stopwatch.ns.n == s->ops.n;
}

/* Are measured times so different from those planned with that a new plan may be worth it? */
static int times_differ(const struct umadv *adv)
{
	const struct um_schedule *s = &adv->plan.sched;
	double sum = 0, off = 0;

	for (size_t i = 0; i < s->ops.n; i++) {
		double planned = (double)s->ops.at[i].ns, ns = (double)adv->stopwatch.ns.at[i];

		sum += planned;
		off += ns ? fabs(ns - planned) : 0;
	}
	return off > sum * TIMES_DIFFER;
}

/* Measures the next iterations, if the device is real and the plan's times are not measured yet. */
static void measure(struct umadv *adv)
{
	const struct um_schedule *s = &adv->plan.sched;

	adv->timed = has_times(adv, s);
	if (!adv->real || adv->timed)
		return;
	adv->stopwatch_signature = s->signature;
	if (um_op_timer_begin(&adv->stopwatch, (uint32_t)s->ops.n))
		um_op_timer_off(&adv->stopwatch);
}

/* Durations for the planner: measured, said, or estimated from what is touched. */
static void fill_times(const struct umadv *adv, struct um_schedule *s)
{
	for (size_t i = 0; i < s->ops.n && has_times(adv, s); i++)
		s->ops.at[i].ns = adv->stopwatch.ns.at[i];
	for (size_t i = 0; i < s->ops.n; i++) {
		struct um_sched_op *op = &s->ops.at[i];

		if (!op->ns)
			op->ns = um_profile_op_ns(&adv->profile, &op->cost, um_sched_touched(s, op));
	}
}

/* Where the tensors lie now that the slots are bound to. What is freed and born again in every iteration need not stay
 * there: it is placed anew, and lies so from its next birth on. */
static void settle_places(struct um_schedule *s)
{
	for (size_t i = 0; i < s->slots.n; i++) {
		struct um_slot *t = &s->slots.at[i];

		t->bound_addr = t->place;
		if (!t->bound.v || t->birth < 0 || t->death > t->birth)
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

/* Tensors that are alive but no part of the iteration lie where they lie: slots that no op uses. */
static int add_bystanders(struct umadv *adv, struct um_schedule *s)
{
	UM_VEC(struct um_tensor_id) known = {0};
	int err = um_vec_reserve(&known, s->slots.n + 1);

	for (size_t i = 0; i < s->slots.n && !err; i++)
		if (s->slots.at[i].bound.v)
			err = um_vec_push(&known, s->slots.at[i].bound);
	if (known.n)
		qsort(known.at, known.n, sizeof *known.at, cmp_id);
	for (struct um_tree_node *n = um_tree_first(&adv->registry.live); n && !err; n = um_tree_next(n)) {
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

/* When planning is to end, by the wall clock. */
struct deadline {
	uint64_t (*wall_ms)(void);
	uint64_t early_ms; /* more effort is made until then */
	uint64_t late_ms; /* no plan is looked for from then on; UINT64_MAX: no limit */
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

/* What the plan's program takes with the driver's work on top. */
static int rehearse(void *user, const struct um_plan *plan, uint64_t *ns)
{
	const struct umadv *adv = user;
	struct um_compiled_plan program;
	int err;

	um_compiled_plan_init(&program);
	err = um_compiled_plan_build_steady(plan, plan->budget / UM_BLOCK_BYTES, &program);
	if (!err)
		err = um_rehearse(&program, &plan->sched, &adv->profile, ns);
	um_compiled_plan_fini(&program);
	return err;
}

/* Plans, growing the arenas where the planner needs more room than there is. */
static int build_plan(struct umadv *adv, const struct um_schedule *s, uint64_t budget, struct deadline *deadline,
		      struct um_plan *plan, char *why, size_t size)
{
	struct um_plan_room *rooms = NULL;
	uint64_t grow = 0;
	struct um_plan_effort effort = {adv->options.pub.plan_ms ? is_early : NULL, is_late, deadline};
	struct um_plan_rehearsal rehearsal = {rehearse, adv};
	int err = 0;

	for (int tries = 0; tries < 3; tries++) {
		size_t n = adv->pool.regions.n;
		struct um_plan_room *r = realloc(rooms, (n + 1) * sizeof *rooms);

		if (!r) {
			err = -ENOMEM;
			break;
		}
		rooms = r;
		size_t n_rooms = 0;

		for (size_t i = 0; i < n; i++)
			if (adv->pool.regions.at[i].heap == UM_ARENA_POOL_MAIN)
				rooms[n_rooms++] = (struct um_plan_room){adv->pool.regions.at[i].addr,
									 adv->pool.regions.at[i].bytes};
		struct um_plan_request req = {.sched = s,
					      .profile = &adv->profile,
					      .budget = budget,
					      .rooms = rooms,
					      .n_rooms = n_rooms,
					      .grow_at = GROW_AT,
					      .strategy = um_strategy_name(adv->options.strategy),
					      .effort = &effort,
					      .rehearsal = &rehearsal};

		um_plan_fini(plan);
		um_plan_init(plan);
		err = um_plan_build(&req, plan, &grow, why, size);
		if (err || !grow)
			break;
		err = um_arena_pool_grow(&adv->pool, grow, UM_ARENA_POOL_MAIN);
		if (err)
			break;
	}
	if (!err && grow) {
		snprintf(why, size, "the plan finds no room in %zu arenas", adv->pool.regions.n);
		err = -ENOSPC;
	}
	free(rooms);
	return err;
}

static struct deadline deadline_of(const struct umadv *adv)
{
	struct deadline d = {adv->wall_ms ? adv->wall_ms : wall_ms, 0, UINT64_MAX};

	d.early_ms = d.wall_ms() + adv->options.pub.plan_ms;
	if (adv->real)
		d.late_ms = d.early_ms + UM_PLAN_MOST_MS;
	return d;
}

/* A plan for the whole budget; where the planner finds none that it can prove, one for less. After the time was up for
 * one schedule, none is looked for that is as long: the program waits while the library plans. */
static int find_plan(struct umadv *adv, const struct um_schedule *s, struct um_plan *plan, char *why, size_t size)
{
	static const unsigned parts[] = {100, 95, 85, 70};
	struct deadline d = deadline_of(adv);
	int err = -EINVAL;

	if (adv->late_ops && s->ops.n >= adv->late_ops)
		return -ETIMEDOUT;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && err == -EINVAL && !is_late(&d); i++)
		err = build_plan(adv, s, adv->budget / 100 * parts[i] + (i ? 0 : adv->budget % 100), &d, plan, why,
				 size);
	if (err && is_late(&d)) {
		adv->late_ops = s->ops.n;
		snprintf(why, size,
			 "none was found within %u s for %zu operations: mark shorter iterations with umadv_iter",
			 UM_PLAN_MOST_MS / 1000, s->ops.n);
	}
	return err;
}

/* Where buffers take turns in places that are not alike, several iterations become one. 0 or -ENOMEM. */
static int unroll(struct um_schedule *s, uint32_t *laps)
{
	struct um_schedule all;
	int err;

	*laps = um_unroll_iterations(s);
	if (*laps == 1)
		return 0;
	um_schedule_init(&all);
	err = um_unroll_build(s, *laps, &all);
	if (err)
		return err;
	um_schedule_fini(s);
	*s = all;
	return 0;
}

/* The plan's program, which leaves evictions to the driver where that is the faster way. 0 or -ENOMEM. */
static int build_program(struct umadv *adv)
{
	uint64_t blocks = adv->budget / UM_BLOCK_BYTES;
	int err = um_compiled_plan_build(&adv->plan, blocks, &adv->program);
	enum um_evict_policy way = (enum um_evict_policy)adv->options.pub.evict;

	if (um_context_device_is_larger(adv))
		way = UM_EVICT_LIBRARY; /* the driver evicts when the device is full, not before */
	if (!err)
		err = um_evict_policy_choose(&adv->program, &adv->plan.sched, &adv->profile, blocks, way);
	if (err)
		um_compiled_plan_fini(&adv->program);
	return err;
}

/* Follows the schedule from now on. Takes `s` apart; on failure nothing is followed. */
static void follow(struct umadv *adv, struct um_schedule *s, int followed)
{
	struct um_plan_figures figures;
	struct um_plan plan;
	char why[256] = "";
	uint32_t laps = 1;
	int err;

	um_plan_init(&plan);
	settle_places(s);
	err = unroll(s, &laps);
	if (!err) {
		fill_times(adv, s);
		err = add_bystanders(adv, s);
	}
	if (!err)
		err = find_plan(adv, s, &plan, why, sizeof why);
	if (!err)
		err = um_plan_prove(&plan, &figures, why, sizeof why);
	drop_plan(adv, followed);
	if (err)
		goto fail;
	adv->plan = plan;
	um_plan_init(&plan);
	err = build_program(adv);
	if (!err)
		err = um_cursor_follow(&adv->cursor, &adv->plan.sched);
	if (err)
		goto fail;
	adv->laps = laps;
	adv->adopt = 1;
	adv->fresh = 1;
	measure(adv);
	adv->stats.measured = adv->timed ? adv->plan.sched.ops.n / laps : 0;
	adv->stats.plan_peak_bytes = figures.peak_bytes;
	um_context_log(adv, UMADV_LOG_INFO,
		       "plan: %zu ops, %zu hints, predicted %.3f ms (in core %.3f ms), peak %llu of %llu MiB",
		       adv->plan.sched.ops.n, adv->plan.hints.n, (double)adv->plan.predicted_ns / 1e6,
		       (double)adv->plan.in_core_ns / 1e6, (unsigned long long)(figures.peak_bytes >> 20),
		       (unsigned long long)(adv->budget >> 20));
	return;
fail:
	drop_plan(adv, 0);
	um_plan_fini(&plan);
	if (err == -ENOMEM)
		adv->stats.errors++;
	um_context_warn(adv, UM_WARN_PLAN, "no plan, no hints: %s", *why ? why : umadv_strerror(err));
}

/* Slots that take turns in two places move by whole blocks, so that hints fit both. The first plan finds one of them
 * lying where it was allocated; the next one finds both where they were planned. */
static int out_of_step(const struct um_schedule *s)
{
	for (size_t i = 0; i < s->slots.n; i++) {
		uint32_t c = s->slots.at[i].carry;

		if (c < s->slots.n && c != i && s->slots.at[i].place != UINT64_MAX &&
		    s->slots.at[c].place != UINT64_MAX &&
		    (s->slots.at[i].place - s->slots.at[c].place) % UM_BLOCK_BYTES)
			return 1;
	}
	return 0;
}

size_t um_context_used(const struct umadv *adv, struct um_executor_range **out)
{
	const struct um_arena_pool *a = &adv->pool;
	struct um_executor_range *used = malloc((a->regions.n + 1) * sizeof *used);

	for (size_t i = 0; i < a->regions.n && used; i++) {
		const struct um_arena_pool_region *r = &a->regions.at[i];
		uint64_t blocks = (r->used_hi - r->addr + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;

		used[i] = (struct um_executor_range){r->addr, blocks * UM_BLOCK_BYTES};
	}
	*out = used;
	return a->regions.n;
}

/* The program begins with tensors where they lie now. Without memory for that there are no hints any more. */
static void begin_anew(struct umadv *adv)
{
	struct um_schedule *s = &adv->plan.sched;

	um_executor_leave(adv->executor);
	um_compiled_plan_fini(&adv->program);
	for (size_t i = 0; i < s->slots.n; i++) {
		s->slots.at[i].bound = adv->cursor.slots[i].id;
		s->slots.at[i].bound_addr = adv->cursor.slots[i].addr;
	}
	adv->adopt = 1;
	if (!build_program(adv))
		return;
	drop_plan(adv, 0);
	adv->stats.errors++;
}

/* The plan stays: from the next op 0 on if it was followed to the end, else taken up anew. */
static void keep(struct umadv *adv, int followed)
{
	um_cursor_begin(&adv->cursor);
	if (followed && um_executor_active(adv->executor)) {
		struct um_executor_range *used;
		size_t n = um_context_used(adv, &used);

		um_executor_begin(adv->executor, used, used ? n : 0);
		free(used);
		return;
	}
	begin_anew(adv);
}

void um_context_learn(struct umadv *adv)
{
	const struct um_cursor *c = &adv->cursor;
	int have = adv->plan.sched.ops.n != 0;
	int followed = have && c->on && c->op == c->sched->ops.n / adv->laps * (adv->lap + 1);
	int within = followed && adv->lap + 1 < adv->laps; /* the schedule goes on */
	int measured = adv->real && !within && um_op_timer_end(&adv->stopwatch, followed) && have && !adv->timed &&
		       has_times(adv, &adv->plan.sched);
	int first = adv->fresh; /* what was placed before the plan may have been in the way */
	struct um_schedule s;
	int changed = 0;

	um_schedule_init(&s);
	int err = um_learner_feed(&adv->learner, &adv->last, &s, &changed);
	int repeated = adv->last.signature == adv->last_signature;

	if (err == -ENOMEM)
		adv->stats.errors++;
	if (have && !followed && c->on)
		um_context_leave(adv); /* the iteration stopped short */
	adv->last_signature = adv->last.signature;
	if (within) {
		adv->lap++;
		um_schedule_fini(&s);
		return;
	}
	adv->lap = 0;
	adv->fresh = 0;
	if (measured) {
		adv->timed = 1;
		adv->stats.measured = adv->plan.sched.ops.n / adv->laps;
		measured = times_differ(adv);
	}
	if (followed && measured && !err) {
		follow(adv, &s, 1);
		adv->confirmed = 1;
	} else if (followed) {
		adv->confirmed = 1;
		if (err || adv->replans >= UM_MAX_REPLANS ||
		    (!changed && (!adv->misplaced || first) && !out_of_step(&adv->plan.sched))) {
			keep(adv, 1);
		} else {
			unsigned replans = adv->replans + 1;

			follow(adv, &s, 1);
			adv->replans = replans;
			adv->confirmed = 1;
		}
	} else if (have && (err || (adv->confirmed && !repeated && adv->laps == 1))) {
		keep(adv, 0); /* not where buffers take turns: whose turn it will be is learned anew */
	} else if (!err) {
		follow(adv, &s, 0);
	}
	um_schedule_fini(&s);
}

/* Slots of a saved plan find their tensors by name and size. */
void um_context_start_warm(struct umadv *adv)
{
	struct um_schedule *s = &adv->warm.sched;

	for (size_t i = 0; i < s->slots.n; i++) {
		struct um_slot *slot = &s->slots.at[i];

		slot->flags &= ~(unsigned)UM_SLOT_FIXED;
		slot->bound.v = 0;
		slot->place = UINT64_MAX;
		if (slot->birth >= 0 || !slot->name)
			continue;
		for (struct um_tree_node *n = um_tree_first(&adv->registry.live); n; n = um_tree_next(n)) {
			struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

			if (t->bytes != slot->bytes || !t->name || strcmp(t->name, slot->name) != 0 ||
			    t->used_op == UINT64_MAX)
				continue;
			slot->bound = t->id;
			slot->place = t->addr;
			slot->flags |= UM_SLOT_FIXED;
			t->used_op = UINT64_MAX; /* taken: equal names bind one after the other */
			break;
		}
	}
	for (struct um_tree_node *n = um_tree_first(&adv->registry.live); n; n = um_tree_next(n)) {
		struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		if (t->used_op == UINT64_MAX)
			t->used_op = 0;
	}
	follow(adv, s, 0);
	adv->confirmed = adv->plan.sched.ops.n != 0;
	um_plan_fini(&adv->warm);
}

int um_context_warm(struct umadv *adv, struct um_plan *plan)
{
	if (!adv->executor) {
		um_plan_fini(plan);
		return 0;
	}
	um_plan_fini(&adv->warm);
	adv->warm = *plan;
	um_plan_init(plan);
	if (adv->iteration)
		um_context_start_warm(adv);
	return 0;
}
