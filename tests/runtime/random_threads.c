/* SPDX-License-Identifier: Apache-2.0
 *
 * random_threads.c - the threads of a random program, its beginning and its end
 */
#include "random_steps.h"

#include "flaky_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ITERATIONS 9

/* --- threads ------------------------------------------------------------------------------------------------------ */

static void begin_turn(struct prog_thread *w)
{
	struct prog *p = w->p;

	if (!p->in_step)
		return;
	w->doing = "its turn";
	pthread_mutex_lock(&p->lock);
	while (p->turn != w->id)
		pthread_cond_wait(&p->turned, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static void end_turn(struct prog_thread *w, int last)
{
	struct prog *p = w->p;
	int n = (int)p->n_threads, next = w->id;

	if (!p->in_step)
		return;
	pthread_mutex_lock(&p->lock);
	p->active[w->id] = !last;
	for (int i = 1; i <= n && (i == 1 || !p->active[next]); i++)
		next = (w->id + i) % n;
	p->turn = next;
	pthread_cond_broadcast(&p->turned);
	pthread_mutex_unlock(&p->lock);
}

static void meet(struct prog_thread *w)
{
	w->doing = "the other threads";
	pthread_barrier_wait(&w->p->barrier);
}

/* In two of three iterations: a program is too short for a plan that is made beside it to come by chance. */
static void await_plan(const struct prog_thread *w)
{
	const struct um_plan_thread *t = w->p->adv->replan.planning.thread;

	while (t && (w->p->seed + (uint64_t)w->iteration) % 3 && !um_plan_thread_is_idle(t))
		sched_yield();
}

/* As if the referee changed its mind at the end of each iteration. */
static void limit_hints(const struct prog_thread *w)
{
	static const enum um_referee_hints kinds[] = {UM_REFEREE_PLANNED, UM_REFEREE_PLANNED, UM_REFEREE_PREDICTED,
						      UM_REFEREE_NONE};
	struct um_replan *r = &w->p->adv->replan;

	um_context_lock(w->p->adv);
	r->referee.on = 0;
	if (r->predicts)
		r->referee.allowed = kinds[(w->p->seed * 7 + (uint64_t)w->iteration * 11) / 3 % 4];
	um_context_unlock(w->p->adv);
}

/* The others have launched everything, and launch nothing before this is over. */
static void begin_iteration(struct prog_thread *w)
{
	struct prog *p = w->p;

	await_plan(w);
	if (p->limits)
		limit_hints(w);
	w->doing = "umadv_iter";
	prog_check(p, umadv_iter(p->adv, NULL), w, "umadv_iter");
	for (unsigned i = 0; i < p->n_threads; i++)
		p->active[i] = 1;
	p->turn = 0;
	for (unsigned i = 0; i < p->n_shared && p->updates_shared; i++) {
		struct prog_use u = {&p->shared[i], 0, p->shared[i].n_cells, UMADV_ACCESS_UPDATE, 0};

		prog_launch(w, 0, &u, 1, 0);
	}
	if (p->updates_shared)
		prog_wait(w, NULL);
}

static void late_stream(struct prog_thread *w)
{
	um_stream s = NULL;

	prog_check(w->p, w->p->api->cudaStreamCreateWithFlags(w->p->gpu, &s, w->script & 1), w, "cudaStreamCreate");
	w->stream[w->n_streams++] = s;
}

static void iterate(struct prog_thread *w)
{
	struct prog *p = w->p;
	unsigned steps = w->steps + (w->iteration == p->stray);

	w->dice = w->script;
	if (w->iteration == p->stray)
		prog_roll(&w->dice, 2);
	for (unsigned i = 0; i < w->n; i++)
		if (w->t[i].kind == PROG_SCRATCH)
			prog_undefine(&w->t[i]);
	if (w->iteration == w->late)
		late_stream(w);
	for (w->step = 0; w->step < (int)steps; w->step++) {
		begin_turn(w);
		if (!atomic_load(&p->wrong) &&
		    !(p->stops >= 0 && w->iteration == (int)p->iterations - 1 && w->step >= p->stops))
			prog_step(w);
		end_turn(w, w->step == (int)steps - 1);
	}
}

static void *run_thread(void *arg)
{
	struct prog_thread *w = arg;
	struct prog *p = w->p;

	for (w->iteration = 0; w->iteration < (int)p->iterations; w->iteration++) {
		if (p->updates_shared)
			prog_wait(w, NULL);
		meet(w);
		if (w->id == 0)
			begin_iteration(w);
		meet(w);
		iterate(w);
	}
	w->doing = "its end";
	return NULL;
}

/* --- set-up ------------------------------------------------------------------------------------------------------ */

static void make_thread(struct prog *p, unsigned id)
{
	struct prog_thread *w = &p->thread[id];
	unsigned kind = prog_roll(&p->dice, 6);
	int err = p->api->cudaEventCreateWithFlags(p->gpu, &w->event, UM_EVENT_DISABLE_TIMING);

	*w = (struct prog_thread){.p = p, .id = (int)id, .event = w->event, .doing = "set-up"};
	w->script = 1 + prog_roll(&p->dice, 1u << 30);
	w->n = 3 + prog_roll(&p->dice, PROG_TENSORS - 2);
	w->steps = 6 + prog_roll(&p->dice, 14);
	w->late = prog_roll(&p->dice, 2) ? (int)prog_roll(&p->dice, p->iterations) : -1;
	if (p->n_threads == PROG_THREADS && id)
		w->late = -1; /* more streams than are told apart have no hints */
	w->n_streams = 1;
	if (kind == 0)
		w->stream[0] = (um_stream)2; /* each thread has its own */
	else if (id || kind < 4)
		err |= p->api->cudaStreamCreateWithFlags(p->gpu, &w->stream[0], kind & 1);
	prog_check(p, err, w, "cudaStreamCreate");
	for (unsigned i = 0; i < w->n; i++)
		prog_make_tensor(w, &w->t[i], (int)(id * PROG_TENSORS + i));
}

static void make_program(struct prog *p)
{
	p->n_threads = prog_roll(&p->dice, 3) ? 1 + prog_roll(&p->dice, PROG_THREADS) : 1;
	p->iterations = 5 + prog_roll(&p->dice, MOST_ITERATIONS - 4);
	p->in_step = prog_roll(&p->dice, 4) != 0;
	p->stray = prog_roll(&p->dice, 4) ? -1 : (int)prog_roll(&p->dice, p->iterations);
	p->stops = prog_roll(&p->dice, 4) ? -1 : (int)prog_roll(&p->dice, 8);
	p->cpu = prog_roll(&p->dice, 3) != 0;
	p->parts = prog_roll(&p->dice, 3) == 0;
	p->deads = prog_roll(&p->dice, 4) != 0;
	p->updates_shared = prog_roll(&p->dice, 2) != 0;
	p->announces_only = prog_roll(&p->dice, 4) == 0;
	p->n_shared = p->n_threads > 1 ? prog_roll(&p->dice, PROG_SHARED + 1) : 0;
	for (unsigned i = 0; i < p->n_threads; i++)
		make_thread(p, i);
	for (unsigned i = 0; i < p->n_shared; i++) {
		do
			prog_make_tensor(&p->thread[0], &p->shared[i], PROG_FIRST_SHARED + (int)i);
		while (!p->shared[i].version[0] && !atomic_load(&p->wrong));
	}
	pthread_barrier_init(&p->barrier, NULL, p->n_threads);
}

static void run_threads(struct prog *p)
{
	for (unsigned i = 1; i < p->n_threads; i++)
		if (pthread_create(&p->thread[i].thread, NULL, run_thread, &p->thread[i]))
			abort();
	run_thread(&p->thread[0]);
	for (unsigned i = 1; i < p->n_threads; i++)
		pthread_join(p->thread[i].thread, NULL);
}

static void on_device(void *user, const char *line)
{
	(void)user;
	fprintf(stderr, "\t%s\n", line);
}

static void on_hang(void *user, const char *text)
{
	prog_wrong(user, "%s", text);
}

static int on_activity(struct um_activity_sink *sink, const struct um_activity *activity)
{
	(void)sink;
	(void)activity;
	return 0;
}

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)level;
	if (((const struct prog *)user)->tells)
		fprintf(stderr, "library: %s\n", line);
}

/* --- the simulated GPU -------------------------------------------------------------------------------------------- */

static int open_simulated(struct prog *p, const struct prog_options *o)
{
	struct um_sim_options so = {.profile = um_profile_find(o->profile),
				    .capacity = o->capacity,
				    .backed = 1,
				    .poison = 1,
				    .timeout_ms = 20000,
				    .hazards = {.report = on_hang, .user = p}};
	int err;

	if (o->tells)
		so.log = on_device;
	if (o->hazards && um_sim_hazards_parse(o->hazards, &so.hazards))
		return -EINVAL;
	flaky.nth = o->nth;
	flaky.by_chance = o->by_chance;
	flaky.tells = o->tells;
	err = flaky_open(&p->gpu, &so);
	if (!err)
		p->api = flaky.sim;
	return err;
}

static int launch_simulated(struct prog *p, um_stream stream, const char *name, void (*fn)(void *job),
			    struct prog_job *job)
{
	return um_sim_run(p->gpu, stream, &(struct um_sim_kernel){.name = name, .announced = 1, .fn = fn, .arg = job});
}

static int touch_simulated(struct prog *p, void *at, size_t bytes, unsigned access)
{
	return um_sim_host_touch(p->gpu, at, bytes, access);
}

static int load_simulated(struct prog *p)
{
	return um_sim_module(p->gpu, "cuModuleLoadData");
}

static int sync_simulated(struct prog *p)
{
	return um_sim_sync(p->gpu);
}

/* The device was closed with the context. */
static void end_simulated(struct prog *p)
{
	p->failed = atomic_load(&flaky.failed);
}

const struct prog_device prog_simulated = {
	.open = open_simulated,
	.launch = launch_simulated,
	.touch = touch_simulated,
	.load = load_simulated,
	.sync = sync_simulated,
	.end = end_simulated,
};

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static int open_context(struct prog *p, const struct prog_options *o)
{
	struct umadv_options uo;
	int err;

	p->tells = o->tells;
	p->limits = o->limits;
	p->hazards = o->hazards != NULL;
	p->device = o->device ? o->device : &prog_simulated;
	err = p->device->open(p, o);
	if (err)
		return err;
	umadv_options_init(&uo);
	uo.budget = o->budget;
	uo.strategy = o->strategy;
	uo.log = on_log;
	uo.log_user = p;
	uo.log_level = UMADV_LOG_INFO;
	uo.evict = o->evict;
	uo.plan_thread = o->plan_thread;
	err = um_context_open(&p->adv, &uo, p->gpu, um_profile_find(o->profile));
	p->listener.feed = on_activity;
	if (!err && o->listens)
		err = um_context_listen(p->adv, &p->listener);
	flaky.armed = 1;
	return err;
}

int prog_run(struct prog *p, uint64_t seed, const struct prog_options *o, struct umadv_stats *stats)
{
	memset(p, 0, sizeof *p);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->turned, NULL);
	p->seed = seed;
	p->dice = seed;
	if (open_context(p, o)) {
		snprintf(p->why, sizeof p->why, "no context");
		return 1;
	}
	make_program(p);
	if (o->plan_thread == UMADV_PLAN_THREAD_ON)
		p->iterations *= 2; /* plans come later */
	run_threads(p);
	if (p->stops < 0) {
		prog_check(p, p->device->sync(p), &p->thread[0], "sync");
		prog_check_content(p);
	}
	stats->struct_size = sizeof *stats;
	umadv_stats_get(p->adv, stats);
	for (unsigned i = 0; i < p->n_threads; i++) {
		p->api->cudaEventDestroy(p->gpu, p->thread[i].event);
		p->thread[i].doing = "umadv_close";
	}
	umadv_close(p->adv); /* what was launched and not waited for is over then, and checked */
	p->device->end(p);
	for (struct prog_job *j = p->jobs, *next; j; j = next) {
		next = j->next;
		free(j);
	}
	pthread_barrier_destroy(&p->barrier);
	pthread_cond_destroy(&p->turned);
	pthread_mutex_destroy(&p->lock);
	return atomic_load(&p->wrong);
}

void prog_say(const struct prog *p)
{
	for (unsigned i = 0; i < p->n_threads; i++)
		fprintf(stderr, "thread %u, iteration %d, step %d: in or waiting for %s\n", i, p->thread[i].iteration,
			p->thread[i].step, p->thread[i].doing);
}
