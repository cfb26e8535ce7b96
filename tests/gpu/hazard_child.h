/* SPDX-License-Identifier: Apache-2.0
 *
 * hazard_child.h - runs a case in a child process with a time limit, and says where it hangs
 *
 * The parent never touches CUDA, which does not survive a fork. In the child a thread watches the time: when the limit
 * is over it prints the calls that did not return, the stack of each thread, and the library's counters, and ends the
 * process with status 124. What a case waits for it wraps in CALL(), so that it has a name.
 */
#ifndef HAZARD_CHILD_H
#define HAZARD_CHILD_H

#include <umadvise.h>

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_PASSED = 0, CHILD_FAILED = 1, CHILD_GUARD = 3, CHILD_SKIPPED = 77, CHILD_HANGS = 124 };
enum { CHILD_THREADS = 64 };

static struct {
	unsigned limit_s;
	int failed;
	struct umadv *adv; /* whose counters are printed */
	struct {
		long tid;
		const char *volatile call; /* that has not returned; NULL: none */
	} thread[CHILD_THREADS];
	int threads;
	volatile sig_atomic_t dumped;
} child;

static inline void nap_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static inline double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* The calling thread's place for the name of its call. */
static inline const char *volatile *child_slot(void)
{
	static thread_local int slot = -1;

	if (slot < 0) {
		slot = __atomic_fetch_add(&child.threads, 1, __ATOMIC_SEQ_CST) % CHILD_THREADS;
		child.thread[slot].tid = syscall(SYS_gettid);
	}
	return &child.thread[slot].call;
}

struct child_call {
	explicit child_call(const char *name)
	{
		*child_slot() = name;
	}
	~child_call()
	{
		*child_slot() = NULL;
	}
};

/* The value of an expression, which has this name until it returns. */
#define CALL_AS(name, expr) (child_call(name), (expr))
#define CALL(expr) CALL_AS(#expr, expr)

static inline void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
	char text[1000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("# %s\n", text);
	fflush(stdout);
}

static inline void __attribute__((format(printf, 2, 3))) expect(int good, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	if (good)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note("  not so: %s", text);
	child.failed = 1;
}

/* --- in the child when the limit is over ------------------------------------------------------------------------- */

static void child_stack(int signal)
{
	char head[60];
	void *at[48];
	int n = backtrace(at, 48);
	int len = snprintf(head, sizeof(head), "#   stack of thread %ld:\n", (long)syscall(SYS_gettid));

	(void)signal;
	(void)!write(STDOUT_FILENO, head, (size_t)len);
	backtrace_symbols_fd(at, n, STDOUT_FILENO);
	child.dumped = 1;
}

static void child_stacks(void)
{
	DIR *dir = opendir("/proc/self/task");
	long self = syscall(SYS_gettid);

	for (struct dirent *d; dir && (d = readdir(dir));) {
		long tid = atol(d->d_name);

		if (tid <= 0 || tid == self)
			continue;
		child.dumped = 0;
		if (syscall(SYS_tgkill, getpid(), tid, SIGUSR2))
			continue;
		for (int i = 0; i < 30 && !child.dumped; i++)
			nap_ms(5);
		if (!child.dumped)
			note("  thread %ld does not answer: it is in the kernel", tid);
	}
	if (dir)
		closedir(dir);
}

static void *child_counters(void *arg)
{
	struct umadv_stats s = {};

	s.struct_size = sizeof(s);
	if (!umadv_stats_get(child.adv, &s))
		note("  library: %llu iterations, %llu of them hinted; hints issued %llu, refused %llu, dropped %llu; "
		     "bytes prefetched %llu, evicted %llu, discarded %llu; errors %llu; ops that waited %llu, "
		     "late %llu, stuck %llu, host waits %llu us",
		     (unsigned long long)s.iterations, (unsigned long long)s.hinted_iterations,
		     (unsigned long long)s.hints_issued, (unsigned long long)s.hints_refused,
		     (unsigned long long)s.hints_dropped, (unsigned long long)s.prefetch_bytes,
		     (unsigned long long)s.evict_bytes, (unsigned long long)s.discard_bytes,
		     (unsigned long long)s.errors, (unsigned long long)s.gates_waited, (unsigned long long)s.gates_late,
		     (unsigned long long)s.stuck, (unsigned long long)s.host_wait_ns / 1000);
	return arg;
}

/* The counters are behind the context's lock, which a hung call may hold. */
static void child_library(void)
{
	struct timespec until;
	pthread_t t;

	if (!child.adv || pthread_create(&t, NULL, child_counters, NULL))
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (pthread_timedjoin_np(t, NULL, &until))
		note("  library: its counters cannot be read, the context is locked");
}

static void *child_watch(void *arg)
{
	nap_ms(child.limit_s * 1000L);
	note("  no end after %u s", child.limit_s);
	for (int i = 0; i < CHILD_THREADS && i < child.threads; i++)
		if (child.thread[i].call)
			note("  thread %ld did not return from %s", child.thread[i].tid, child.thread[i].call);
	child_stacks();
	child_library();
	_exit(CHILD_HANGS);
	return arg;
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

static void child_main(unsigned limit_s, int (*run)(long arg), long arg)
{
	struct sigaction act = {};
	pthread_t t;
	void *warm[4];
	int status;

	(void)!backtrace(warm, 4); /* loads what the handler needs */
	act.sa_handler = child_stack;
	act.sa_flags = SA_RESTART;
	sigaction(SIGUSR2, &act, NULL);
	child.limit_s = limit_s;
	if (pthread_create(&t, NULL, child_watch, NULL))
		exit(CHILD_FAILED);
	child_slot();
	status = run(arg);
	CALL_AS("exit()", exit(status ? status : child.failed));
}

/* How the case ended: one of the values above. Two seconds are for the dump; then the child is killed. */
static inline int child_run(unsigned limit_s, int (*run)(long arg), long arg)
{
	double end = now_ms() + limit_s * 1e3 + 5000;
	int status = 0, got = 0;
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	pid = fork();
	if (!pid)
		child_main(limit_s, run, arg);
	while (pid > 0 && !got && now_ms() < end) {
		got = waitpid(pid, &status, WNOHANG) == pid;
		if (!got)
			nap_ms(5);
	}
	if (pid > 0 && !got) {
		kill(pid, SIGKILL);
		nap_ms(200);
		note("  the child was killed%s", waitpid(pid, &status, WNOHANG) == pid ? "" : " and does not end");
		return CHILD_HANGS;
	}
	if (pid > 0 && WIFSIGNALED(status))
		note("  signal %d", WTERMSIG(status));
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : CHILD_FAILED;
}

#endif
