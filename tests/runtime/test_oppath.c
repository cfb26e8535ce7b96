/* SPDX-License-Identifier: Apache-2.0
 *
 * While replaying, an op on the program's thread allocates nothing, and enters the kernel only to wait for a worker or
 * to wake one: counted, the first by a malloc of our own, the second by a parent that traces the thread's system calls.
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

static int learn(struct app *a)
{
	int err = app_open(a);

	for (int i = 0; i < 5 && !err; i++) {
		err = umadv_iter(a->adv, NULL);
		if (!err)
			err = app_ops(a);
	}
	if (!err)
		err = umadv_iter(a->adv, NULL);
	return err;
}

/* The traced child: stops itself before and after the ops. */
static void child(void)
{
	struct app a;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	if (learn(&a))
		_exit(1);
	raise(SIGSTOP);
	int err = app_ops(&a);

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

static void idle_child(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	raise(SIGSTOP);
	raise(SIGSTOP);
	_exit(0);
}

static long run_child(void (*fn)(void))
{
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0)
		fn();
	return pid < 0 ? -1 : count_calls(pid);
}

int main(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	struct app a;

	ok(learn(&a) == 0, "a loop is learned");
	unsigned long before = allocations;

	ok(app_ops(&a) == 0, "the iterations are replayed");
	before = allocations - before;
	if (COUNTS)
		is_u64(before, 0, "%d ops allocate no memory", 2 * APP_LAYERS);
	else
		skip(1, "the sanitizer owns malloc");
	umadv_stats_get(a.adv, &s);
	is_u64(s.divergences, 0, "no iteration departs from the schedule");
	is_u64(s.plans, 1, "one plan serves all iterations");
	ok(um_context_hints(a.adv) > 2 * APP_LAYERS, "ops cause hints (%llu asked for)",
	   (unsigned long long)um_context_hints(a.adv));
	is_u64(s.hints_refused, 0, "no hint is refused");
	umadv_close(a.adv);

	long idle = COUNTS ? run_child(idle_child) : -1, calls = idle < 0 ? -1 : run_child(child);

	if (idle < 0 || calls < 0)
		skip(1, "system calls cannot be traced here");
	else
		is_int(calls - idle, 0, "%d ops make no system call but to wait for a worker, or to wake one",
		       2 * APP_LAYERS);
	return tap_done();
}
