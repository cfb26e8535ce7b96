/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans made by a helper thread: they arrive while the program runs on, fit what it does by then, and end with the
 * context, the process or a fork. The clock of the search holds the thread where a test needs it.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define TENSORS 12
#define BYTES (8 * MIB)

static atomic_int held; /* searches wait */
static atomic_int searches; /* that waited */
static atomic_int threads; /* that run */
static sigset_t blocked; /* by the latest one */
static int no_threads; /* none can be created */

static uint64_t gate(void)
{
	if (atomic_load(&held))
		atomic_fetch_add(&searches, 1);
	while (atomic_load(&held))
		usleep(100);
	return 0;
}

/* Calls of pthread_create come here (the linker's --wrap). */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

struct start {
	void *(*fn)(void *);
	void *arg;
};

static void *counted(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	s.fn(s.arg);
	atomic_fetch_sub(&threads, 1);
	return NULL;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	struct start *s = no_threads ? NULL : malloc(sizeof *s);
	int err;

	if (!s)
		return EAGAIN;
	*s = (struct start){fn, arg};
	atomic_fetch_add(&threads, 1);
	err = __real_pthread_create(thread, attr, counted, s);
	if (err) {
		atomic_fetch_sub(&threads, 1);
		free(s);
	}
	return err;
}

struct app {
	struct umadv *adv;
	struct um_gpu *gpu;
	void *w[TENSORS];
	void *grad; /* born in one iteration, freed in the next */
	int plain; /* no gradient */
	int err;
};

static void open_app(struct app *a, enum umadv_plan_thread mode)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = TENSORS * BYTES / 2};
	struct umadv_options o;

	memset(a, 0, sizeof *a);
	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = so.capacity;
	o.plan_thread = mode;
	a->err = um_sim_open(&a->gpu, &so);
	if (!a->err)
		a->err = um_context_open(&a->adv, &o, a->gpu, v100);
	for (int i = 0; i < TENSORS && !a->err; i++)
		a->err = umadv_alloc(a->adv, &a->w[i], BYTES, "w", UMADV_PARAM);
	if (!a->err)
		a->err = umadv_alloc(a->adv, &a->grad, BYTES, "grad", UMADV_GRAD);
	if (a->err)
		tap_bail("no context");
	a->adv->replan.planning.host.wall_ms = gate;
}

static void op(struct app *a, void *t)
{
	a->err |= umadv_op(a->adv, NULL, "op", UMADV_USES(UMADV_UPDATE(t)));
	a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
}

/* An iteration that uses the first `n` tensors, and a gradient: two iterations tell how long that lives. */
static void iteration(struct app *a, int n)
{
	void *grad;

	a->err |= umadv_iter(a->adv, NULL);
	for (int i = 0; i < n; i++)
		op(a, a->w[i]);
	if (a->plain)
		return;
	op(a, a->grad);
	a->err |= umadv_alloc(a->adv, &grad, BYTES, "grad", UMADV_GRAD);
	a->err |= umadv_free(a->adv, a->grad);
	a->grad = grad;
	op(a, a->grad);
}

static struct umadv_stats stats_of(struct app *a)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	a->err |= umadv_stats_get(a->adv, &s);
	return s;
}

static struct umadv_stats close_app(struct app *a)
{
	struct umadv_stats s;

	a->err |= um_sim_sync(a->gpu);
	s = stats_of(a);
	umadv_close(a->adv);
	return s;
}

/* Waits until the thread has nothing to do. Its plan is taken at the end of an iteration. */
static void await_thread(struct app *a)
{
	while (a->adv->replan.planning.thread && !um_plan_thread_is_idle(a->adv->replan.planning.thread))
		usleep(100);
}

/* Runs iterations until a plan is followed: at most `most`. The number of them. */
static int until_followed(struct app *a, int n, int most)
{
	int i = 0;

	for (; i < most && !a->adv->replan.state; i++) {
		await_thread(a);
		iteration(a, n);
	}
	return i;
}

static int same_plans(const struct um_plan *a, const struct um_plan *b)
{
	if (a->hints.n != b->hints.n || a->rehearsed_ns != b->rehearsed_ns || a->sched.ops.n != b->sched.ops.n)
		return 0;
	for (size_t i = 0; i < a->hints.n; i++) {
		const struct um_hint *x = &a->hints.at[i], *y = &b->hints.at[i];

		if (x->kind != y->kind || x->at != y->at || x->slot != y->slot || x->off != y->off ||
		    x->bytes != y->bytes)
			return 0;
	}
	return a->hints.n > 0;
}

static void arrives(void)
{
	struct app on, off;
	struct umadv_stats s;
	int i;

	open_app(&off, UMADV_PLAN_THREAD_AUTO);
	iteration(&off, TENSORS);
	iteration(&off, TENSORS);
	ok(off.adv->replan.state && !off.adv->replan.planning.thread,
	   "in simulated time the second iteration has a plan, and there is no planning thread");
	ok(!off.adv->replan.hold.holds, "a plan made of one iteration is not held back for what it guesses");
	for (i = 0; i < 12; i++)
		iteration(&off, TENSORS);

	open_app(&on, UMADV_PLAN_THREAD_ON);
	atomic_store(&held, 1);
	for (i = 0; i < 20; i++)
		iteration(&on, TENSORS);
	s = stats_of(&on);
	is_u64(s.plans, 0, "the program runs on while its plan is made");
	atomic_store(&held, 0);
	i = until_followed(&on, TENSORS, 20);
	ok(i < 20, "the plan is followed after the thread has made it (%d)", i);
	ok(on.adv->replan.cursor.on && !on.adv->replan.cursor.n_rebound,
	   "the iteration after that uses the tensors that it expects");
	for (i = 0; i < 12; i++) {
		await_thread(&on);
		iteration(&on, TENSORS);
	}
	ok(same_plans(&on.adv->replan.plan, &off.adv->replan.plan), "it is the plan that is made without a thread");
	is_int(on.adv->replan.planning.state, UM_PLANNING_IDLE, "no plan is made or left over in the end");
	s = close_app(&on);
	close_app(&off);
	ok(!on.err && !s.errors && s.hints_scheduled, "nothing fails while plans are made");
	is_u64(s.plans_unused, 0, "no plan is lost");
}

/* The gradient and half of the tensors are elsewhere when the plan arrives. */
static void moved(void)
{
	struct umadv_stats s;
	struct app a;
	int i;

	open_app(&a, UMADV_PLAN_THREAD_ON);
	atomic_store(&held, 1);
	for (i = 0; i < 3; i++)
		iteration(&a, TENSORS);
	for (i = 0; i < TENSORS; i += 2) {
		void *other;

		a.err |= umadv_alloc(a.adv, &other, BYTES, "w", UMADV_PARAM);
		a.err |= umadv_free(a.adv, a.w[i]);
		a.w[i] = other;
	}
	iteration(&a, TENSORS);
	atomic_store(&held, 0);
	i = until_followed(&a, TENSORS, 20);
	ok(i < 20, "a plan is followed though its tensors were freed while it was made, and allocated again (%d)", i);
	for (i = 0; i < 12; i++) {
		await_thread(&a);
		iteration(&a, TENSORS);
	}
	ok(a.adv->replan.cursor.n_others == 0 && um_replan_hints(&a.adv->replan), "it knows the new ones");
	s = close_app(&a);
	ok(!a.err && !s.errors, "nothing fails, though tensors moved");
}

static void changed(void)
{
	struct umadv_stats s;
	struct app a;
	int i;

	open_app(&a, UMADV_PLAN_THREAD_ON);
	a.plain = 1;
	atomic_store(&held, 1);
	for (i = 0; i < 4; i++)
		iteration(&a, TENSORS);
	for (i = 0; i < 4; i++)
		iteration(&a, TENSORS - 1);
	ok(!a.adv->replan.planning.cancelled, "a plan is made on when the program changes");
	for (i = 0; i < 20; i++)
		iteration(&a, TENSORS - 1);
	ok(a.adv->replan.planning.cancelled, "it is cancelled when the program has changed for long");
	atomic_store(&held, 0);
	i = until_followed(&a, TENSORS - 1, 20);
	ok(i < 20, "the program gets another one (%d)", i);
	is_u64(a.adv->replan.plan.sched.ops.n, TENSORS - 1, "it is of what the program does now");
	iteration(&a, TENSORS - 1); /* a plan begins once an iteration has fitted it */
	s = close_app(&a);
	is_u64(s.plans, 1, "the first plan is not followed");
	is_int(a.err, 0, "no call fails when the program changes");
}

static void outdated(void)
{
	struct app a;

	open_app(&a, UMADV_PLAN_THREAD_ON);
	iteration(&a, TENSORS);
	iteration(&a, TENSORS);
	until_followed(&a, TENSORS - 1, 20);
	is_u64(a.adv->replan.plan.sched.ops.n, TENSORS + 1,
	       "a plan that is ready gives way to what the program does now");
	ok(close_app(&a).plans_unused > 0, "it counts as unused");
	is_int(a.err, 0, "no call fails when a plan gives way");
}

/* The library takes the device for a faster one, until it has measured the ops. */
static void measured(void)
{
	const struct um_replan *r;
	struct app a;

	open_app(&a, UMADV_PLAN_THREAD_ON);
	r = &a.adv->replan;
	a.plain = 1;
	a.adv->device.real = 1;
	a.adv->device.profile = *um_profile_find("h100");
	for (int i = 0; i < 20; i++) {
		await_thread(&a);
		iteration(&a, TENSORS);
	}
	ok(r->times.measured && r->plan.sched.ops.at[0].ns == r->times.timer.ns.at[0],
	   "a plan with the measured times of ops is followed when it is ready");
	close_app(&a);
	is_int(a.err, 0, "no call fails when ops are measured");
}

/* Each kind of iteration a few times: a plan is kept until its kind comes again. */
static void comes_back(void)
{
	struct umadv_stats s;
	struct app a;
	int i;

	open_app(&a, UMADV_PLAN_THREAD_ON);
	a.plain = 1;
	atomic_store(&held, 1);
	for (i = 0; i < 3; i++)
		iteration(&a, TENSORS);
	a.adv->replan.wrong_guesses = UM_MAX_GUESSES; /* no other plan is made meanwhile */
	iteration(&a, 5);
	atomic_store(&held, 0);
	await_thread(&a);
	iteration(&a, 6);
	iteration(&a, 7);
	is_int(a.adv->replan.state, UM_FOLLOW_NONE, "a plan is not followed by other iterations");
	for (i = 0; i < 3; i++)
		iteration(&a, TENSORS);
	ok(um_replan_hints(&a.adv->replan), "it is when its own come again");
	s = close_app(&a);
	ok(!a.err && s.plans == 1, "and was made once");
}

static void signals(void)
{
	struct app a;

	open_app(&a, UMADV_PLAN_THREAD_ON);
	iteration(&a, TENSORS);
	iteration(&a, TENSORS);
	close_app(&a);
	is_int(atomic_load(&threads), 0, "the planning thread ends with the context");
	ok(sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGALRM) && sigismember(&blocked, SIGCHLD),
	   "it blocked signals");
}

static void without_threads(void)
{
	struct umadv_stats s;
	struct app a;

	no_threads = 1;
	open_app(&a, UMADV_PLAN_THREAD_ON);
	iteration(&a, TENSORS);
	iteration(&a, TENSORS);
	ok(a.adv->replan.state != UM_FOLLOW_NONE, "where no thread can be created, plans are made in umadv_iter");
	no_threads = 0;
	s = close_app(&a);
	ok(!a.err && !s.errors, "nothing fails without threads");
}

/* In simulated time: each iteration pays for a fiftieth of its time. */
static void in_debt(void)
{
	uint64_t begin, passed;
	struct app a;
	int i = 0;

	open_app(&a, UMADV_PLAN_THREAD_OFF);
	begin = a.gpu->api->now(a.gpu);
	a.adv->replan.planning.leash.debt_ns = UM_PLAN_LEASH_FREE_NS + 1000000;
	for (; i < 100 && !a.adv->replan.state; i++)
		iteration(&a, TENSORS);
	passed = a.gpu->api->now(a.gpu) - begin;
	ok(i < 100 && passed >= 50000000 && passed < 80000000,
	   "no plan is made while planning is a millisecond above its share, until 50 have passed: %.1f",
	   (double)passed / 1e6);
	close_app(&a);
	is_int(a.err, 0, "no call fails meanwhile");
}

static void two_contexts(void)
{
	struct app a[2];

	atomic_store(&held, 1);
	for (int k = 0; k < 2; k++)
		open_app(&a[k], UMADV_PLAN_THREAD_ON);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 2; k++)
			iteration(&a[k], TENSORS - k);
	atomic_store(&held, 0);
	for (int k = 0; k < 2; k++)
		until_followed(&a[k], TENSORS - k, 20);
	ok(a[0].adv->replan.plan.sched.ops.n == TENSORS + 2 && a[1].adv->replan.plan.sched.ops.n == TENSORS + 1,
	   "two contexts plan at the same time, each its own iterations");
	for (int k = 0; k < 2; k++)
		close_app(&a[k]);
	is_int(a[0].err | a[1].err, 0, "no call fails in two contexts");
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

static void open_held(struct app *a)
{
	open_app(a, UMADV_PLAN_THREAD_ON);
	atomic_store(&searches, 0);
	atomic_store(&held, 1);
	iteration(a, TENSORS);
	iteration(a, TENSORS);
	while (!atomic_load(&searches))
		usleep(100);
}

static void closes(void)
{
	struct app a;

	open_app(&a, UMADV_PLAN_THREAD_ON);
	a.adv->options.pub.plan_ms = 1; /* by a clock that stands still */
	iteration(&a, TENSORS);
	iteration(&a, TENSORS);
	umadv_close(a.adv);
	is_int(atomic_load(&threads), 0, "a context that is closed while it plans ends its planning thread");

	open_held(&a);
	umadv_close(a.adv);
	is_int(atomic_load(&threads), 1, "a search that does not end is left behind");
	atomic_store(&held, 0);
	while (atomic_load(&threads))
		usleep(100);
	ok(1, "its thread ends by itself");
}

static int outcome(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void forks(void)
{
	struct app a;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	skip(3, "the thread sanitizer ends a child that starts a thread");
	return;
#endif

	open_held(&a);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct app own;

		umadv_close(a.adv);
		atomic_store(&held, 0);
		open_app(&own, UMADV_PLAN_THREAD_ON);
		until_followed(&own, TENSORS, 20);
		own.err |= !own.adv->replan.state;
		close_app(&own);
		_exit(own.err != 0);
	}
	is_int(outcome(pid), 0, "a child that is forked while the parent plans has plans of its own");
	atomic_store(&held, 0);
	ok(until_followed(&a, TENSORS, 20) < 20, "the parent gets its plan after the fork");
	close_app(&a);
	is_int(a.err, 0, "no call fails in the parent");
}

/* The first test: the thread sanitizer ends the child of a process that has threads. */
static void exits(void)
{
	struct app a;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		open_held(&a);
		atomic_store(&held, 0);
		exit(7);
	}
	is_int(outcome(pid), 7, "a process that exits while it plans keeps its status");
}

static void saves(void)
{
	char path[] = "/tmp/um_planning.XXXXXX";
	int fd = mkstemp(path);
	struct app a;

	close(fd);
	open_app(&a, UMADV_PLAN_THREAD_ON);
	iteration(&a, TENSORS);
	iteration(&a, TENSORS);
	is_int(umadv_save_plan(a.adv, path), 0, "umadv_save_plan waits for the first plan");
	close_app(&a);
	open_app(&a, UMADV_PLAN_THREAD_ON);
	a.err |= umadv_load_plan(a.adv, path);
	iteration(&a, TENSORS);
	ok(a.adv->replan.state != UM_FOLLOW_NONE && !a.err, "a loaded plan is followed from the first iteration on");
	close_app(&a);
	unlink(path);
}

/* With an argument: one program, as tests/runtime/plan_job_memory.sh runs it while allocations fail: those for the
 * program's tensors are reported to it. Status 3: planning ended for ever. */
static int goes_on(void)
{
	struct app a;

	open_app(&a, UMADV_PLAN_THREAD_ON);
	for (int i = 0; i < 12; i++) {
		await_thread(&a);
		iteration(&a, TENSORS);
	}
	if (a.err)
		return 1;
	return close_app(&a).plans ? 0 : 3;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return argv[1] ? goes_on() : 0;
	setenv("UMADVISE_PLAN_THREAD", "auto", 1);
	exits();
	arrives();
	moved();
	changed();
	outdated();
	measured();
	comes_back();
	signals();
	without_threads();
	in_debt();
	two_contexts();
	closes();
	forks();
	saves();
	return tap_done();
}
