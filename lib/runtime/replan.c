/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/replan.h"

#include "base/debug.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A new plan is made if the measured times differ from the planned ones by this share of the iteration. */
#define TIMES_DIFFER 0.03

#define LEFT_MOST 3 /* iterations in a row that left a confirmed plan, until it is dropped */
#define PAYS 8 /* iterations that must follow a plan for its planning and its first hints to pay */
#define FITS_WEIGHT 0.33 /* of the latest iteration in the share of those that fit */
#define FITS_UNKNOWN 0.5 /* that share at first: one fitting iteration is enough for a plan to begin */
#define MOST_REPETITIONS 15 /* at most twice as many, and one more, are waited for before a plan */

/* Drops the plan. `followed`: to the end of an iteration. */
static void drop_plan(struct um_replan *r, int followed)
{
	if (followed)
		um_executor_end(r->executor);
	else
		um_executor_leave(r->executor);
	um_arena_pool_unclaim(&r->host.tensors->pool);
	um_cursor_drop(&r->cursor);
	um_compiled_plan_fini(&r->program);
	um_plan_fini(&r->plan);
	um_plan_clock_reset(&r->clock);
	memset(&r->gap, 0, sizeof r->gap);
	r->n_iterations = 1;
	r->iteration = 0;
	r->replans = 0;
}

void um_replan_leave(struct um_replan *r, uint64_t number)
{
	if (!r->executor || !r->cursor.sched)
		return;
	r->cursor.on = 0;
	um_arena_pool_unclaim(&r->host.tensors->pool);
	if (!um_executor_active(r->executor))
		return;
	um_executor_end(r->executor); /* ops that are announced and have not run keep their hints */
	um_executor_leave(r->executor);
	r->n_left++;
	um_notices_log(r->notices, UMADV_LOG_INFO,
		       "iteration %llu differs from the schedule at op %u of %zu: the other ops are prefetched on use",
		       (unsigned long long)number, r->cursor.op, r->cursor.sched->ops.n);
}

/* 1: the op timer has measured the ops of this schedule. */
static int has_times(const struct um_replan *r, const struct um_schedule *s)
{
	return r->timer.state == UM_OP_TIMER_DONE && r->timer_signature == s->signature && r->timer.ns.n == s->ops.n;
}

/* 1: measured and planned times differ enough for a new plan. */
static int times_differ(const struct um_replan *r)
{
	const struct um_schedule *s = &r->plan.sched;
	double sum = 0, off = 0;

	for (size_t i = 0; i < s->ops.n; i++) {
		double planned = (double)s->ops.at[i].ns, ns = (double)r->timer.ns.at[i];

		sum += planned;
		off += ns ? fabs(ns - planned) : 0;
	}
	return off > sum * TIMES_DIFFER;
}

/* Measures the next iterations if the device is real and the plan's ops have no measured times. */
static void measure(struct um_replan *r)
{
	const struct um_schedule *s = &r->plan.sched;

	r->measured = has_times(r, s) ? s->ops.n / r->n_iterations : 0;
	if (!r->host.device->real || r->measured)
		return;
	r->timer_signature = s->signature;
	if (um_op_timer_begin(&r->timer, (uint32_t)s->ops.n))
		um_op_timer_off(&r->timer);
}

/* Durations for the planner: measured, given by the program, or estimated from the touched bytes. */
static void fill_times(const struct um_replan *r, struct um_schedule *s)
{
	for (size_t i = 0; i < s->ops.n && has_times(r, s); i++)
		s->ops.at[i].ns = r->timer.ns.at[i];
	for (size_t i = 0; i < s->ops.n; i++) {
		struct um_sched_op *op = &s->ops.at[i];

		if (!op->ns && op->stream != UM_STREAM_CPU)
			op->ns = um_profile_op_ns(&r->host.device->profile, &op->cost, um_sched_touched(s, op));
	}
}

/* Makes a plan of the schedule and begins to follow it. 0 or -errno; `why`, if not empty, is the reason. */
static int try_plan(struct um_replan *r, struct um_schedule *s, int followed, char *why, size_t size)
{
	struct um_plan_figures figures;
	struct um_plan plan;
	uint32_t n_iterations = 1;
	int err;

	um_plan_init(&plan);
	err = um_make_schedule(s, &n_iterations);
	if (!err) {
		fill_times(r, s);
		err = um_make_plan(&r->host, s, &plan, &figures, why, size);
	}
	drop_plan(r, followed);
	if (err) {
		um_plan_fini(&plan);
		return err;
	}
	r->plan = plan;
	r->n_iterations = n_iterations;
	err = um_make_program(&r->host, &r->plan, &r->program);
	if (!err)
		err = um_cursor_follow(&r->cursor, &r->plan.sched);
	if (!err)
		r->plan_peak_bytes = figures.peak_bytes;
	return err;
}

/* Drops the plan after a failure. */
static void give_up(struct um_replan *r)
{
	um_follow_step(&r->state, UM_FOLLOW_ON_FAILED);
	drop_plan(r, 0);
}

void um_replan_forget(struct um_replan *r)
{
	if (r->state)
		give_up(r);
	r->begins = 0;
	r->wrong_guesses = 0;
	r->last_signature = 0;
	r->fits = FITS_UNKNOWN;
}

static void log_paged(const struct um_replan *r)
{
	for (size_t i = 0; i < r->plan.sched.ops.n; i++)
		if (r->plan.sched.ops.at[i].paged)
			um_notices_log(r->notices, UMADV_LOG_INFO,
				       "op %zu '%s' uses more than the budget: the driver pages it", i,
				       r->plan.sched.ops.at[i].name);
}

/* Follows a schedule from now on; on failure no plan is followed. `loaded`: its content is taken; NULL: the schedule of
 * iteration `last`. */
static void follow(struct um_replan *r, struct um_schedule *loaded, const struct um_iteration *last, int followed)
{
	char why[256] = "";
	struct um_schedule s;
	int err = 0;

	um_schedule_init(&s);
	if (!loaded)
		err = um_learner_build(&r->learner, last, &s);
	if (!err)
		err = try_plan(r, loaded ? loaded : &s, followed, why, sizeof why);
	um_schedule_fini(&s);
	r->key = r->learner.key;
	if (err) {
		give_up(r);
		if (err == -ENOMEM)
			r->notices->errors++;
		um_notices_warn(r->notices, UM_WARN_PLAN, "no plan, no hints: %s", *why ? why : umadv_strerror(err));
		return;
	}
	measure(r);
	um_notices_log(r->notices, UMADV_LOG_INFO,
		       "plan: %zu ops, %zu hints, predicted %.3f ms (in core %.3f ms), peak %llu of %llu MiB",
		       r->plan.sched.ops.n, r->plan.hints.n, (double)r->plan.rehearsed_ns / 1e6,
		       (double)r->plan.in_core_ns / 1e6, (unsigned long long)(r->plan_peak_bytes >> 20),
		       (unsigned long long)(r->host.device->budget >> 20));
	log_paged(r);
}

/* 1: two slots that exchange their addresses in turn are not a multiple of the block size apart, so that hints cannot
 * fit both. The first plan may have one of them where it was allocated; the next plan places both. */
static int is_misaligned(const struct um_schedule *s)
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

/* Compiles the program again for the tensors' current addresses. 1: out of memory, the plan was dropped.
 */
static int restart(struct um_replan *r)
{
	struct um_schedule *s = &r->plan.sched;

	um_executor_leave(r->executor);
	um_compiled_plan_fini(&r->program);
	for (size_t i = 0; i < s->slots.n; i++) {
		s->slots.at[i].bound = r->cursor.slots[i].id;
		s->slots.at[i].bound_addr = r->cursor.slots[i].addr;
	}
	if (!um_make_program(&r->host, &r->plan, &r->program))
		return 0;
	give_up(r);
	r->notices->errors++;
	return 1;
}

/* Continues the program with the next iteration. */
static int continue_program(struct um_replan *r)
{
	struct um_executor_range *used;
	size_t n;

	um_cursor_begin(&r->cursor);
	if (!um_executor_active(r->executor)) {
		um_follow_step(&r->state, UM_FOLLOW_ON_IDLE);
		return restart(r);
	}
	n = um_tensors_used(r->host.tensors, &used);
	um_executor_begin(r->executor, used, used ? n : 0);
	free(used);
	return 0;
}

/* Performs the state machine's action for the event. 1: another plan, or no plan, is followed from now on. */
static int apply(struct um_replan *r, enum um_follow_event event, struct um_schedule *loaded,
		 const struct um_iteration *last)
{
	unsigned replans = r->replans;
	int followed = event == UM_FOLLOW_ON_TIMED || event == UM_FOLLOW_ON_CHANGED || event == UM_FOLLOW_ON_MISPLACED;

	switch (um_follow_step(&r->state, event)) {
	case UM_FOLLOW_PLAN:
		follow(r, loaded, last, followed);
		return 1;
	case UM_FOLLOW_PLAN_AGAIN:
		follow(r, loaded, last, followed);
		r->replans = replans + 1;
		return 1;
	case UM_FOLLOW_CONTINUE:
		return continue_program(r);
	case UM_FOLLOW_DROP:
		drop_plan(r, 0);
		return 1;
	case UM_FOLLOW_RESTART:
		um_cursor_begin(&r->cursor);
		return restart(r);
	default:
		return 0;
	}
}

/* Outcome of an iteration. */
struct outcome {
	int followed; /* it followed the plan's schedule to its end */
	int waited; /* and the plan did not run */
	int err; /* of the learner */
	int changed; /* the learned schedule is not the plan's */
	int repeated; /* it equals the previous one */
	int retimed; /* its ops are now measured, and their times differ from the plan's */
};

static enum um_follow_event event_of(const struct um_replan *r, const struct outcome *l)
{
	if (!l->followed && l->err)
		return UM_FOLLOW_ON_UNKNOWN;
	if (!l->followed && (l->repeated || (r->state && r->n_iterations > 1)))
		return UM_FOLLOW_ON_NEW; /* the rotation of buffers is learned again */
	if (l->waited)
		return l->changed && !l->err && r->replans < UM_MAX_REPLANS ? UM_FOLLOW_ON_CHANGED : UM_FOLLOW_ON_IDLE;
	if (!l->followed)
		return (um_follow_is_confirmed(r->state) ? r->left <= LEFT_MOST : r->wrong_guesses < UM_MAX_GUESSES)
			       ? UM_FOLLOW_ON_LEFT
			       : UM_FOLLOW_ON_MISGUESSED;
	if (l->retimed && !l->err)
		return UM_FOLLOW_ON_TIMED;
	if (l->err || r->replans >= UM_MAX_REPLANS)
		return UM_FOLLOW_ON_FOLLOWED;
	if (l->changed || is_misaligned(&r->plan.sched))
		return UM_FOLLOW_ON_CHANGED;
	return r->misplaced ? UM_FOLLOW_ON_MISPLACED : UM_FOLLOW_ON_FOLLOWED;
}

/* An iteration ended. 1: it completed the first measurement of the plan's ops. */
static int take_times(struct um_replan *r, int followed)
{
	return r->host.device->real && um_op_timer_end(&r->timer, followed) && r->state && !r->measured &&
	       has_times(r, &r->plan.sched);
}

/* Counts how often iterations fit the plan. */
static void count_fits(struct um_replan *r, const struct outcome *l)
{
	r->fitted = l->followed ? r->fitted + 1 : 0;
	if (r->state)
		r->fits += ((double)l->followed - r->fits) * FITS_WEIGHT;
}

/* Counts how often the plan was followed and left. */
static void count_followed(struct um_replan *r, int followed)
{
	if (followed) {
		r->left = 0;
		if (++r->followed >= PAYS)
			r->wrong_guesses = 0;
		return;
	}
	r->left += r->state != UM_FOLLOW_NONE;
	r->wrong_guesses += r->state == UM_FOLLOW_GUESS_WAITS || r->state == UM_FOLLOW_GUESS_RUNS;
}

/* Ends the plan for another pattern. The more plans did not pay in a row, the more repetitions the next one needs:
 * planning takes time, and so do a plan's first hints. */
static void count_ended(struct um_replan *r)
{
	if (r->followed >= PAYS)
		r->wrong_plans = 0;
	else if (r->state && r->wrong_plans < MOST_REPETITIONS)
		r->wrong_plans = 2 * r->wrong_plans + 1;
	r->wrong_guesses = UM_MAX_GUESSES;
	r->followed = r->left = 0;
}

static struct um_executor_counts counts_of(const struct um_replan *r)
{
	struct um_executor_counts sum = r->counts, c;

	if (r->executor) {
		um_executor_counts(r->executor, &c);
		um_executor_counts_add(&sum, &c);
	}
	return sum;
}

/* Takes a new measurement of the plan's iterations. It is judged only if the plan's times of ops are known: otherwise
 * another plan will be made. `last`: there will be no other. */
static void check_clock(struct um_replan *r, int last)
{
	int is_new = um_plan_clock_read(&r->clock);

	if ((is_new || (last && r->gap.measurements == 1)) && (!r->host.device->real || r->measured))
		um_plan_gap_check(&r->gap, &r->clock, r->plan.rehearsed_ns, r->misplaced, last, r->notices);
}

/* The plan's current iteration ended; the next one may be measured. */
static void time_iteration(struct um_replan *r, int followed)
{
	if (r->executor)
		um_plan_clock_iteration(&r->clock, followed, um_executor_is_warm(r->executor));
}

void um_replan_time(struct um_replan *r, um_stream stream)
{
	struct um_executor_counts counts = counts_of(r);

	um_plan_clock_record(&r->clock, stream, &counts);
}

/* The ops and sizes are those of the previous iteration, and so are the tensors: a program may choose others each time,
 * which no plan knows in advance. */
static int is_repeated(const struct um_replan *r, const struct um_iteration *last)
{
	return last->signature == r->last_signature && r->learner.other <= 1.0 / UM_CURSOR_OTHER;
}

/* Tensors of the next iteration get their places without a search, if there is memory for that. */
static void claim_places(struct um_replan *r)
{
	if (r->cursor.on && r->cursor.sched && !um_planned_places_claimed(&r->host.tensors->pool.planned) &&
	    um_tensors_claim(r->host.tensors, r->cursor.sched))
		r->notices->errors++;
}

static int end_iteration(struct um_replan *r, const struct um_iteration *last, uint64_t number)
{
	const struct um_cursor *c = &r->cursor;
	struct outcome l = {.followed = r->state && c->on &&
					c->op == c->sched->ops.n / r->n_iterations * (r->iteration + 1)};
	int within = l.followed && r->iteration + 1 < r->n_iterations; /* the schedule has further iterations */
	int ran = l.followed && !um_follow_waits(r->state), measured = !within && take_times(r, ran), other;
	enum um_follow_event event;

	um_assert((r->state != UM_FOLLOW_NONE) == (r->plan.sched.ops.n != 0));
	check_clock(r, 0);
	l.err = um_learner_feed(&r->learner, last);
	if (!l.err && l.followed && !within)
		l.err = um_learner_know_key(&r->learner, last);
	l.changed = r->learner.key != r->key;
	r->repetitions = is_repeated(r, last) ? r->repetitions + 1 : 0;
	l.repeated = r->repetitions > r->wrong_plans;
	r->last_signature = last->signature;
	if (l.err == -ENOMEM)
		r->notices->errors++;
	if (r->state && !l.followed && c->on)
		um_replan_leave(r, number); /* the iteration ended too early */
	if (within) {
		r->iteration++;
		return 0;
	}
	r->iteration = 0;
	r->begins = 0;
	l.waited = l.followed && !ran;
	count_fits(r, &l);
	if (!l.waited)
		count_followed(r, l.followed);
	if (measured) {
		r->measured = r->plan.sched.ops.n / r->n_iterations;
		l.retimed = times_differ(r);
	}
	event = event_of(r, &l);
	if (event == UM_FOLLOW_ON_NEW || event == UM_FOLLOW_ON_MISGUESSED)
		count_ended(r);
	other = apply(r, event, NULL, last);
	time_iteration(r, ran);
	return other;
}

int um_replan_end_iteration(struct um_replan *r, const struct um_iteration *last, uint64_t number)
{
	int other = end_iteration(r, last, number);

	claim_places(r);
	return other;
}

void um_replan_teach(struct um_replan *r, const struct um_iteration *it)
{
	if (um_learner_feed(&r->learner, it) == -ENOMEM)
		r->notices->errors++;
	r->last_signature = it->signature;
}

int um_replan_first_op(struct um_replan *r)
{
	uint64_t capacity = r->host.device->budget / UM_BLOCK_BYTES, in_use = 0;
	struct um_executor_range *used;
	size_t n = um_tensors_used(r->host.tensors, &used);

	um_follow_step(&r->state, UM_FOLLOW_ON_FIRST_OP);
	r->begins = 1;
	if (!used || um_executor_adopt(r->executor, &r->program, capacity, used, n, &r->cursor))
		r->notices->errors++;
	else
		r->n_plans++;
	for (size_t i = 0; used && i < n; i++)
		in_use += used[i].bytes / UM_BLOCK_BYTES;
	free(used);
	return in_use > capacity || um_replan_evicts(r);
}

/* Binds the slots of a saved plan to tensors by name and size. */
int um_replan_start_warm(struct um_replan *r)
{
	struct um_schedule *s = &r->warm.sched;

	for (size_t i = 0; i < s->slots.n; i++) {
		struct um_slot *slot = &s->slots.at[i];

		slot->flags &= ~(unsigned)UM_SLOT_FIXED;
		slot->bound.v = 0;
		slot->place = UINT64_MAX;
		if (slot->birth >= 0 || !slot->name)
			continue;
		for (struct um_tree_node *n = um_tree_first(&r->host.tensors->registry.live); n; n = um_tree_next(n)) {
			struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

			if (t->bytes != slot->bytes || !t->name || strcmp(t->name, slot->name) != 0 ||
			    t->used_op == UINT64_MAX)
				continue;
			slot->bound = t->id;
			slot->place = t->addr;
			slot->flags |= UM_SLOT_FIXED;
			t->used_op = UINT64_MAX; /* marks it bound: equal names bind one after the other */
			break;
		}
	}
	for (struct um_tree_node *n = um_tree_first(&r->host.tensors->registry.live); n; n = um_tree_next(n)) {
		struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		if (t->used_op == UINT64_MAX)
			t->used_op = 0;
	}
	r->fits = 1; /* it was followed before */
	apply(r, UM_FOLLOW_ON_LOADED, s, NULL);
	claim_places(r);
	r->key = 0;
	um_plan_fini(&r->warm);
	return 1;
}

void um_replan_load(struct um_replan *r, struct um_plan *plan)
{
	um_plan_fini(&r->warm);
	r->warm = *plan;
	um_plan_init(plan);
}

/* --- open, close -------------------------------------------------------------------------------------------------- */

int um_replan_init(struct um_replan *r, const struct um_plan_host *host, struct um_notices *notices)
{
	memset(r, 0, sizeof *r);
	r->host = *host;
	r->notices = notices;
	r->fits = FITS_UNKNOWN;
	um_plan_init(&r->plan);
	um_plan_init(&r->warm);
	um_compiled_plan_init(&r->program);
	um_cursor_init(&r->cursor);
	um_op_timer_init(&r->timer, host->device->gpu);
	um_plan_clock_init(&r->clock, host->device->gpu);
	return um_learner_init(&r->learner);
}

int um_replan_open(struct um_replan *r, struct um_executor_host *host)
{
	const struct um_chosen_device *d = r->host.device;
	int err;

	if (!um_gpu_takes_hints(d->gpu) || !um_strategy_plans(r->host.options->strategy))
		return 0;
	host->budget_blocks = d->budget / UM_BLOCK_BYTES;
	host->larger = d->larger;
	host->evict_ns = d->profile.c_pf + d->profile.c_pf_cpu;
	host->link_ns = (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (d->profile.d2h * d->profile.eta));
	err = um_executor_open(&r->executor, d->gpu, host);
	return err == -ENOMEM ? err : 0;
}

int um_replan_close_executor(struct um_replan *r)
{
	int err;

	check_clock(r, 1);
	r->counts = counts_of(r);
	err = um_executor_close(r->executor);
	r->executor = NULL;
	return err;
}

void um_replan_fini(struct um_replan *r)
{
	um_op_timer_fini(&r->timer);
	um_plan_clock_fini(&r->clock);
	um_learner_fini(&r->learner);
	um_cursor_fini(&r->cursor);
	um_compiled_plan_fini(&r->program);
	um_plan_fini(&r->plan);
	um_plan_fini(&r->warm);
}

void um_replan_stats(struct um_replan *r, struct umadv_stats *out)
{
	struct um_executor_counts c = counts_of(r);

	check_clock(r, 0);

	out->plans = r->n_plans;
	out->divergences = r->n_left;
	out->hints_issued = c.issued;
	out->hints_refused = c.refused;
	out->hints_dropped = c.dropped;
	out->prefetch_bytes = c.prefetch_bytes;
	out->evict_bytes = c.evict_bytes;
	out->discard_bytes = c.discard_bytes;
	out->kept_bytes = c.kept_bytes;
	out->gates_waited = c.waits.gates_waited;
	out->gates_late = c.waits.gates_late;
	out->stuck = c.waits.stuck;
	out->host_wait_ns = c.waits.host_wait_ns;
	out->hints_scheduled = c.issued_by.hints[UM_HINT_SCHEDULED];
	out->hints_predicted = c.issued_by.hints[UM_HINT_PREDICTED];
	out->hints_announced = c.issued_by.hints[UM_HINT_ANNOUNCED];
	out->prefetch_scheduled_bytes = c.issued_by.prefetch_bytes[UM_HINT_SCHEDULED];
	out->prefetch_predicted_bytes = c.issued_by.prefetch_bytes[UM_HINT_PREDICTED];
	out->prefetch_announced_bytes = c.issued_by.prefetch_bytes[UM_HINT_ANNOUNCED];
	out->plan_ns = r->plan.sched.ops.n ? r->plan.rehearsed_ns / r->n_iterations : 0;
	out->played_ns = r->clock.ns / (r->n_iterations ? r->n_iterations : 1);
	out->in_core_ns = r->plan.in_core_ns / (r->n_iterations ? r->n_iterations : 1);
	out->plan_peak_bytes = r->plan_peak_bytes;
	out->measured = r->measured;
	out->budget_bytes = r->host.device->budget;
	out->allocs_planned = r->n_placed;
	out->allocs_elsewhere = r->n_misplaced;
}
