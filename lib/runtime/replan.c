/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/replan.h"

#include "base/debug.h"
#include "replay/lanes.h"
#include "runtime/warm_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_PAYS 2 /* iterations in a row that make up for the first one of a plan that evicts */
#define VAIN_MOST 2 /* plans left early: the next one waits for up to 2 to this power, less 1, fitting iterations */
#define LEFT_MOST 3 /* iterations in a row that left a confirmed plan, until it is dropped */
#define FITS_WEIGHT 0.33 /* of the latest iteration in the share of those that fit */
#define FITS_UNKNOWN 0.5 /* that share at first: one fitting iteration is enough for a plan to begin */

/* The plan's places have no meaning any more. */
static void release_places(struct um_replan *r)
{
	um_arena_pool_unclaim(&r->host.tensors->pool);
	um_vec_clear(&r->vacant);
}

/* Drops the plan. `followed`: to the end of an iteration. */
static void drop_plan(struct um_replan *r, int followed)
{
	if (followed)
		um_executor_end(r->executor);
	else
		um_executor_leave(r->executor);
	release_places(r);
	um_cursor_drop(&r->cursor);
	um_compiled_plan_fini(&r->program);
	um_plan_fini(&r->plan);
	memset(&r->steady, 0, sizeof r->steady);
	um_plan_fini(&r->recomputes);
	um_relaunches_fini(&r->relaunches);
	memset(&r->gap, 0, sizeof r->gap);
	r->n_followed++;
	r->n_iterations = 1;
	r->iteration = 0;
	r->replans = 0;
	r->may_move = 0;
}

/* 1: the program was running. */
static int leave(struct um_replan *r)
{
	if (!r->executor || !r->cursor.sched)
		return 0;
	r->cursor.on = 0;
	release_places(r);
	if (!um_executor_active(r->executor))
		return 0;
	um_executor_end(r->executor); /* ops that are announced and have not run keep their hints */
	um_executor_leave(r->executor);
	return 1;
}

void um_replan_leave(struct um_replan *r, uint64_t number)
{
	if (!leave(r))
		return;
	r->n_left++;
	um_notices_log(r->notices, UMADV_LOG_INFO,
		       "iteration %llu differs from the schedule at op %u of %zu: the plan pauses",
		       (unsigned long long)number, r->cursor.op, r->cursor.sched->ops.n);
}

void um_replan_stall(struct um_replan *r, uint64_t number)
{
	r->stalled = 1;
	if (leave(r))
		um_notices_log(
			r->notices, UMADV_LOG_INFO,
			"iteration %llu: op %u of %zu waited for earlier work that did not end in time: the plan "
			"pauses",
			(unsigned long long)number, r->cursor.op, r->cursor.sched->ops.n);
}

/* Counts the iteration that ends. 1: it was stalled, and the plan is not to blame, as that has not gone on for long. */
static int count_stall(struct um_replan *r)
{
	r->stalls = r->stalled ? r->stalls + 1 : 0;
	r->stalled = 0;
	return r->state && r->stalls && r->stalls <= LEFT_MOST;
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
	um_planning_drop(&r->planning);
	um_iteration_clock_skip(&r->clock);
	r->begins = 0;
	r->wrong_guesses = 0;
	r->last_signature = 0;
	r->fits = r->predicts ? FITS_UNKNOWN : 1;
}

void um_replan_restart(struct um_replan *r)
{
	uint64_t last = r->last_signature;

	um_replan_forget(r);
	r->last_signature = last;
	r->planning.failed_key = 0;
	r->predicts = 0;
	r->hold = (struct um_plan_hold){0};
	um_referee_init(&r->referee, 0);
	r->fits = 1;
}

void um_replan_predicts(struct um_replan *r)
{
	r->predicts = 1;
	um_referee_init(&r->referee, r->host.options->pub.referee == UMADV_REFEREE_ON);
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

#define MIB(b) ((unsigned long long)(b) >> 20)

/* Says that host memory limits the plan, once unless a later plan needs more. A plan that keeps the limit anyway is not
 * mentioned. */
static void warn_host(struct um_replan *r, uint64_t needed)
{
	const struct um_chosen_device *d = r->host.device;
	uint64_t wanted = r->plan.host_wanted > needed ? r->plan.host_wanted : needed;

	if (!d->host_budget || wanted <= d->host_budget || needed <= r->host_said)
		return;
	r->host_said = needed;
	if (needed <= d->host_budget)
		um_notices_log(r->notices, UMADV_LOG_WARN,
			       "host memory: evicted data would take %llu MiB, %llu MiB are available (%s): the plan "
			       "is limited to %llu MiB",
			       MIB(wanted), MIB(d->host_budget), d->host_limit, MIB(needed));
	else
		um_notices_log(r->notices, UMADV_LOG_WARN,
			       "host memory: evicted data take at least %llu MiB, %llu MiB are available (%s): the "
			       "program may be killed",
			       MIB(needed), MIB(d->host_budget), d->host_limit);
}

/* Under this plan the block leaves the device. */
static void note_on_host(void *user, uint64_t addr)
{
	struct um_block_lru *on_host = user;

	if (!um_block_lru_find(on_host, addr))
		(void)um_block_lru_add(on_host, addr); /* more than may: the plan has said so */
}

/* Follows the plan that is ready. `followed`: the one before, to the end of an iteration. */
static void follow(struct um_replan *r, int followed)
{
	struct um_planning *p = &r->planning;
	int err;

	drop_plan(r, followed);
	r->plan = p->job->plan;
	r->program = p->job->program;
	r->recomputes = p->job->recomputes;
	r->relaunches = p->job->again;
	um_plan_init(&p->job->plan);
	um_plan_init(&p->job->recomputes);
	memset(&p->job->again, 0, sizeof p->job->again);
	um_compiled_plan_init(&p->job->program);
	r->plan_peak_bytes = p->job->figures.peak_bytes;
	warn_host(r, r->program.host * UM_BLOCK_BYTES);
	if (r->host.device->on_host)
		um_compiled_plan_visit_leaving(&r->program, note_on_host, r->host.device->on_host);
	r->n_iterations = p->order.n_iterations;
	r->key = p->order.key;
	um_plan_hold_begin(&r->hold, p->order.signature);
	um_planning_done(p);
	err = um_cursor_follow(&r->cursor, &r->plan.sched);
	if (err) {
		give_up(r);
		um_replan_report(r, err, "");
		return;
	}
	if (!r->relaunches.again.n)
		um_plan_times_begin(&r->times, &r->plan.sched, r->n_iterations);
	um_referee_forget_plan(&r->referee);
	um_notices_log(r->notices, UMADV_LOG_INFO,
		       "plan: %zu ops, %zu hints, predicted %.3f ms (in core %.3f ms), peak %llu of %llu MiB",
		       r->plan.sched.ops.n, r->plan.hints.n, (double)r->plan.rehearsed_ns / 1e6,
		       (double)r->plan.in_core_ns / 1e6, MIB(r->plan_peak_bytes), MIB(r->host.device->budget));
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

/* Prepares the program for another begin, with the tensors' current addresses. 1: out of memory, the plan was
 * dropped. */
static int restart(struct um_replan *r)
{
	const struct um_cursor_slot *slots = r->cursor.slots;
	int other = 0;

	um_executor_leave(r->executor);
	um_vec_clear(&r->vacant);
	for (uint32_t i = 0; i < r->plan.sched.slots.n; i++)
		other |= um_planning_bind_slot(&r->plan.sched, i, slots[i].id, slots[i].addr);
	if (!other || !um_planning_compile_again(&r->planning, &r->plan, &r->program))
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
	n = um_tensors_used(r->host.tensors, r->host.device->budget / UM_BLOCK_BYTES, &used);
	um_executor_begin(r->executor, used, used ? n : 0);
	free(used);
	return 0;
}

/* Performs the state machine's action for the event. 1: another plan, or no plan, is followed from now on. */
static int apply(struct um_replan *r, enum um_follow_event event)
{
	unsigned replans = r->replans;
	int followed = event == UM_FOLLOW_ON_TIMED || event == UM_FOLLOW_ON_CHANGED || event == UM_FOLLOW_ON_MISPLACED;

	switch (um_follow_step(&r->state, event)) {
	case UM_FOLLOW_PLAN:
		follow(r, followed);
		return 1;
	case UM_FOLLOW_PLAN_AGAIN:
		follow(r, followed);
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

static enum um_follow_event event_of(const struct um_replan *r, const struct um_outcome *l)
{
	if (!l->followed && (l->err || l->excused))
		return UM_FOLLOW_ON_UNKNOWN;
	if (!l->followed && (l->repeated || (r->state && r->n_iterations > 1)))
		return UM_FOLLOW_ON_NEW; /* the rotation of buffers is learned again */
	if (l->waited && !l->err && um_replan_is_blocked(r))
		return UM_FOLLOW_ON_CHANGED;
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

/* Counts how often iterations fit the plan. A wrong guess counts where a plan may wait for a better one. */
static void count_fits(struct um_replan *r, const struct um_outcome *l)
{
	r->fitted = l->followed ? r->fitted + 1 : 0;
	if (r->state && (r->predicts || l->followed || um_follow_is_confirmed(r->state)))
		r->fits += ((double)l->followed - r->fits) * FITS_WEIGHT;
}

/* Counts in how many iterations the program ran before it was left. */
static void count_run(struct um_replan *r, int ran)
{
	if (ran) {
		r->run++;
	} else if ((r->run || r->begins) && um_replan_begins_cold(r)) {
		r->vain = r->run >= RUN_PAYS ? 0 : r->vain + (r->vain < VAIN_MOST);
		r->run = 0;
	}
}

/* Counts how often the plan was followed and left. */
static void count_followed(struct um_replan *r, int followed)
{
	if (followed) {
		r->left = 0;
		if (um_plan_leash_follow(&r->planning.leash))
			r->wrong_guesses = 0;
		return;
	}
	r->left += r->state != UM_FOLLOW_NONE;
	r->may_move = 1; /* tensors of this iteration may be at its places */
	r->wrong_guesses += r->state == UM_FOLLOW_GUESS_WAITS || r->state == UM_FOLLOW_GUESS_RUNS;
}

/* Ends the plan for another pattern. */
static void count_ended(struct um_replan *r)
{
	um_plan_leash_end(&r->planning.leash, r->state != UM_FOLLOW_NONE);
	r->wrong_guesses = UM_MAX_GUESSES;
	r->left = 0;
}

/* The ops and sizes are those of the previous iteration, and so are the tensors: a program may choose others each time,
 * which no plan knows in advance. */
static int is_repeated(const struct um_replan *r, const struct um_iteration *last)
{
	return last->signature == r->last_signature && r->learner.other <= 1.0 / UM_CURSOR_OTHER;
}

/* Tensors of the next iteration get their places without a search, if there is memory for that. Where all tensors fit,
 * but no further memory does, those of other iterations had better be born there, too. */
static void claim_places(struct um_replan *r)
{
	if (!um_tensors_fit_tightly(r->host.tensors, r->host.device->budget) && r->cursor.on && r->cursor.sched &&
	    !um_planned_places_claimed(&r->host.tensors->pool.planned) &&
	    um_tensors_claim(r->host.tensors, r->cursor.sched))
		r->notices->errors++;
}

/* The plan waits while the referee allows no hints of it. */
static enum um_follow_event suspend(struct um_replan *r, enum um_follow_event event)
{
	if (event != UM_FOLLOW_ON_FOLLOWED || r->state != UM_FOLLOW_CONFIRMED_RUNS ||
	    r->referee.allowed == UM_REFEREE_PLANNED)
		return event;
	um_executor_end(r->executor);
	return UM_FOLLOW_ON_IDLE;
}

/* A plan that waits now may be held back. */
static void hold(struct um_replan *r, const struct um_iteration *last)
{
	int held = r->hold.holds, may = um_follow_waits(r->state) && r->referee.on;
	int alike = r->fitted || last->signature == r->hold.signature;
	int nothing = may && alike && um_replan_gains_nothing(r, last, &r->plan, r->n_iterations);

	r->hold.holds = nothing || (may && alike && um_replan_is_doubted(r));
	if (!r->hold.holds || held)
		return;
	release_places(r);
	um_notices_log(r->notices, UMADV_LOG_INFO, "the plan waits: %s",
		       nothing ? "it would gain nothing" : "it guesses when tensors are freed");
}

static int end_iteration(struct um_replan *r, const struct um_iteration *last, uint64_t number)
{
	const struct um_cursor *c = &r->cursor;
	struct um_outcome l = {.followed = r->state && c->on &&
					   c->op == c->sched->ops.n / r->n_iterations * (r->iteration + 1)};
	int within = l.followed && r->iteration + 1 < r->n_iterations; /* the schedule has further iterations */
	int ran = l.followed && !um_follow_waits(r->state), other;
	struct um_referee_mark mark;
	uint32_t n;
	enum um_follow_event event;

	um_assert((r->state != UM_FOLLOW_NONE) == (r->plan.sched.ops.n != 0));
	l.excused = count_stall(r) && !l.followed;
	if (!within)
		l.retimed = um_plan_times_end(&r->times, ran, &r->plan.sched, r->n_iterations);
	um_replan_check_clock(r, 0);
	l.err = um_learner_feed(&r->learner, last);
	if (!l.err && l.followed && !within)
		l.err = um_learner_know_key(&r->learner, last);
	l.changed = r->learner.observed && r->learner.key != r->key; /* a plan is not made anew for a guess */
	r->repetitions = is_repeated(r, last) ? r->repetitions + 1 : 0;
	l.repeated = r->repetitions > r->planning.leash.repetitions;
	if (r->taught && r->repetitions) /* a plan of the iteration before would have fitted this one */
		r->fits += (1 - r->fits) * FITS_WEIGHT;
	r->taught = 0;
	r->last_signature = last->signature;
	if (l.err == -ENOMEM)
		r->notices->errors++;
	if (r->state && !l.followed && c->on)
		um_replan_leave(r, number); /* the iteration ended too early */
	if (within) {
		r->iteration++;
		return 0;
	}
	n = r->iteration + 1;
	r->iteration = 0;
	mark = um_replan_ask_referee(r, last, ran);
	if (!l.excused)
		count_run(r, ran);
	r->begins = 0;
	l.waited = l.followed && !ran;
	if (!l.excused)
		count_fits(r, &l);
	if (!l.waited && !l.excused)
		count_followed(r, l.followed);
	event = event_of(r, &l);
	if (event == UM_FOLLOW_ON_NEW || event == UM_FOLLOW_ON_MISGUESSED)
		count_ended(r);
	event = suspend(r, um_replan_settle(r, event, last, &l));
	other = apply(r, event);
	mark.settled &= !r->taken;
	um_replan_time_iteration(r, ran && !r->taken, n, &mark);
	return other;
}

int um_replan_end_iteration(struct um_replan *r, const struct um_iteration *last, uint64_t number)
{
	int other;

	if (r->was_active || r->begins || um_executor_active(r->executor))
		r->estimate = (struct um_plan_hold_estimate){0};
	other = end_iteration(r, last, number);
	hold(r, last);
	r->taken -= r->taken > 0;
	/* tensors of other sizes would find no free memory between the claimed places, and take more */
	if (r->fitted && !r->hold.holds)
		claim_places(r);
	return other;
}

void um_replan_teach(struct um_replan *r, const struct um_iteration *it, int steady)
{
	if (um_learner_feed(&r->learner, it) == -ENOMEM)
		r->notices->errors++;
	r->last_signature = it->signature;
	r->taught = steady;
}

/* A saved plan is made anew for the tensors at hand, at once: it is to be followed from the next op on. */
int um_replan_start_warm(struct um_replan *r)
{
	struct um_planning_order order = {.reason = UM_FOLLOW_ON_LOADED};
	struct um_schedule *s = &r->warm.sched;
	int err;

	um_warm_start_bind(s, &r->host.tensors->registry);
	err = um_planning_prepare(s, &order.n_iterations);
	um_plan_times_fill(&r->times, s);
	if (!err)
		err = um_planning_make_here(&r->planning, s, &order);
	if (!err)
		err = r->planning.job->err;
	if (err)
		um_replan_report(r, err, r->planning.state == UM_PLANNING_READY ? r->planning.job->why : "");
	if (err)
		um_planning_drop(&r->planning);
	r->fits = 1; /* it was followed before */
	apply(r, err ? UM_FOLLOW_ON_FAILED : UM_FOLLOW_ON_LOADED);
	claim_places(r);
	um_plan_fini(&r->warm);
	return 1;
}

const struct um_plan *um_replan_latest(const struct um_replan *r)
{
	const struct um_planning *p = &r->planning;

	if (r->plan.sched.ops.n)
		return r->recomputes.sched.ops.n ? &r->recomputes : &r->plan;
	if (p->state != UM_PLANNING_READY || p->job->err)
		return NULL;
	return p->job->recomputes.sched.ops.n ? &p->job->recomputes : &p->job->plan;
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
	r->fits = 1;
	um_plan_init(&r->plan);
	um_plan_init(&r->recomputes);
	um_plan_init(&r->warm);
	um_compiled_plan_init(&r->program);
	um_cursor_init(&r->cursor);
	um_planning_init(&r->planning, host);
	um_plan_times_init(&r->times, host->device);
	um_iteration_clock_init(&r->clock, host->device->gpu);
	um_referee_init(&r->referee, 0);
	return um_learner_init(&r->learner);
}

unsigned um_replan_out_workers(const struct um_chosen_device *d)
{
	uint64_t link_ns = (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (d->profile.d2h * d->profile.eta));

	return d->evicters ? d->evicters : um_lanes_out_workers_on(&d->profile, link_ns);
}

int um_replan_open(struct um_replan *r, struct um_executor_host *host)
{
	const struct um_chosen_device *d = r->host.device;
	int err;

	if (!um_gpu_takes_hints(d->gpu) || !um_strategy_plans(r->host.options->strategy))
		return 0;
	host->budget_blocks = d->budget / UM_BLOCK_BYTES;
	host->larger = d->larger;
	host->out_workers = um_replan_out_workers(d);
	err = um_executor_open(&r->executor, d->gpu, host);
	return err == -ENOMEM ? err : 0;
}

int um_replan_close_executor(struct um_replan *r)
{
	int err;

	um_replan_check_clock(r, 1);
	r->counts = um_replan_counts(r);
	um_planning_close(&r->planning); /* a thread that is left behind refers to nothing of the context */
	err = um_executor_close(r->executor);
	r->executor = NULL;
	return err;
}

void um_replan_fini(struct um_replan *r)
{
	um_planning_fini(&r->planning);
	um_plan_times_fini(&r->times);
	um_iteration_clock_fini(&r->clock);
	um_learner_fini(&r->learner);
	um_cursor_fini(&r->cursor);
	um_compiled_plan_fini(&r->program);
	um_plan_fini(&r->plan);
	um_plan_fini(&r->recomputes);
	um_plan_fini(&r->warm);
	um_relaunches_fini(&r->relaunches);
	um_vec_fini(&r->vacant);
}
