/* SPDX-License-Identifier: Apache-2.0
 *
 * While replaying, an op, a birth or a free on the program's thread allocates nothing, and enters the kernel only to
 * wait for a worker or to wake one: counted, the first by a malloc of our own, the second by a parent that traces the
 * thread's system calls.
 */
#include "oppath_app.h"
#include "tap.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS 0
#else
#define COUNTS 1
#endif
#else
#define COUNTS 1
#endif

static _Thread_local unsigned long allocations;

#if COUNTS
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);

void *malloc(size_t n)
{
	allocations++;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	allocations++;
	return __libc_realloc(p, n);
}
#endif

static int learn(struct app *a, int (*iteration)(struct app *))
{
	int err = app_open_with(a, iteration == app_births ? 1 : APP_LAYERS + 1);

	for (int i = 0; i < 5 && !err; i++) {
		err = umadv_iter(a->adv, NULL);
		if (!err)
			err = iteration(a);
	}
	if (!err)
		err = umadv_iter(a->adv, NULL);
	return err;
}

/* The traced child: stops itself before and after an iteration. */
static void child(int (*iteration)(struct app *))
{
	struct app a;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	if (iteration && learn(&a, iteration))
		_exit(1);
	raise(SIGSTOP);
	int err = iteration && iteration(&a);

	raise(SIGSTOP);
	_exit(err != 0);
}

/* 0: the call that begins is a futex, or one ends. */
static int is_other(pid_t pid)
{
	struct __ptrace_syscall_info info;

	memset(&info, 0, sizeof info); /* valgrind does not see ptrace write it */
	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0)
		return 1;
	return info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr != SYS_futex;
}

/* System calls of the child's main thread between its two stops, but for futexes; -1 where it cannot be traced. `raise`
 * makes a few of its own, told apart by doing the same with nothing in between. */
static long count_calls(pid_t pid)
{
	long calls = 0;
	int status, stops = 0;

	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int sig = WSTOPSIG(status);

		if (sig == SIGSTOP) {
			if (++stops == 2) {
				kill(pid, SIGKILL);
				waitpid(pid, &status, 0);
				return calls;
			}
		} else if (sig == SIGTRAP && stops == 1) {
			calls += is_other(pid);
		}
		if (ptrace(stops == 1 ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL,
			   sig == SIGTRAP || sig == SIGSTOP ? 0 : sig))
			return -1;
	}
	return -1;
}

/* Of an iteration, or of nothing: NULL. */
static long run_child(int (*iteration)(struct app *))
{
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0)
		child(iteration);
	return pid < 0 ? -1 : count_calls(pid);
}

static void replays(int (*iteration)(struct app *), const char *what)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	struct app a;
	uint64_t n_births = iteration == app_births ? 2 * APP_LAYERS : 0;

	ok(learn(&a, iteration) == 0, "a loop of %s is learned", what);
	umadv_stats_get(a.adv, &s);
	uint64_t planned = s.allocs_planned;
	unsigned long before = allocations;

	ok(iteration(&a) == 0, "the iterations are replayed");
	before = allocations - before;
	if (COUNTS)
		is_u64(before, 0, "%s allocate no memory", what);
	else
		skip(1, "the sanitizer owns malloc");
	umadv_stats_get(a.adv, &s);
	is_u64(s.divergences, 0, "no iteration departs from the schedule");
	is_u64(s.plans, 1, "one plan serves all iterations");
	is_u64(s.allocs_planned - planned, n_births, "each birth of the iteration is at its planned address");
	is_u64(s.allocs_elsewhere, 0, "no tensor of any iteration is elsewhere");
	ok(um_context_hints(a.adv) > 2 * APP_LAYERS, "ops cause hints (%llu asked for)",
	   (unsigned long long)um_context_hints(a.adv));
	is_u64(s.hints_refused, 0, "no hint is refused");
	umadv_close(a.adv);

	long idle = COUNTS ? run_child(NULL) : -1, calls = idle < 0 ? -1 : run_child(iteration);

	if (idle < 0 || calls < 0)
		skip(1, "system calls cannot be traced here");
	else
		is_int(calls - idle, 0, "%s make no system call but to wait for a worker, or to wake one", what);
}

int main(void)
{
	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	replays(app_ops, "ops");
	replays(app_births, "ops, births and frees");
	return tap_done();
}
