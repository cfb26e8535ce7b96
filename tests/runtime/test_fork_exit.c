/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and the process: a forked child finds its parent's contexts dead and can open its own; the parent goes on;
 * a process that ends with contexts open ends as it would have.
 */
#include "umadvise.h"

#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ull << 20)

static struct umadv *open_context(enum umadv_device device)
{
	struct umadv_options o;
	struct umadv *adv = NULL;

	umadv_options_init(&o);
	o.device = device;
	o.budget = 64 * MIB;
	return umadv_open(&adv, &o) ? NULL : adv;
}

static int iterate(struct umadv *adv, void **x, int n)
{
	int err = 0;

	for (int i = 0; i < n && !err; i++) {
		err = umadv_iter(adv, NULL);
		for (int k = 0; k < 4 && !err; k++) {
			err = umadv_op(adv, NULL, "op", UMADV_USES(UMADV_READ(x[k]), UMADV_UPDATE(x[(k + 1) % 4])));
			if (!err)
				err = umadv_sim_run(adv, NULL, NULL, NULL);
		}
	}
	return err;
}

static struct umadv *working(void **x)
{
	struct umadv *adv = open_context(UMADV_DEVICE_SIM);

	for (int i = 0; i < 4; i++)
		if (!adv || umadv_alloc(adv, &x[i], 24 * MIB, "x", UMADV_OTHER))
			return NULL;
	return iterate(adv, x, 4) ? NULL : adv;
}

/* Waits for a child; 128 + n for a signal. */
static int outcome(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What is wrong in the child, as a bit set. */
static int in_child(struct umadv *adv, void *x)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};
	struct umadv_caps caps = {.struct_size = sizeof caps};
	struct umadv *own;
	void *p = NULL, *y[4];
	int bad = 0;

	bad |= (umadv_alloc(adv, &p, 4096, NULL, UMADV_OTHER) != -ENODEV) << 0;
	bad |= (umadv_op(adv, NULL, "op", UMADV_USES(UMADV_READ(x))) != 0) << 1;
	bad |= (umadv_iter(adv, NULL) != 0 || umadv_dead(adv, x) != 0 || umadv_transient(adv, x) != 0) << 2;
	bad |= (umadv_free(adv, x) != 0) << 3;
	bad |= (umadv_stats_get(adv, &stats) != -ENODEV) << 4;
	bad |= (umadv_caps_get(adv, &caps) != 0) << 5;
	bad |= (umadv_save_plan(adv, "/nonexistent") != -ENODEV || umadv_sim_run(adv, NULL, NULL, NULL) != -ENODEV ||
		umadv_sim_sync(adv) != -ENODEV || umadv_sim_now(adv) != 0)
	       << 6;
	umadv_close(adv);
	own = working(y);
	bad |= (!own) << 7;
	umadv_close(own);
	return bad;
}

struct busy {
	struct umadv *adv;
	void **x;
	atomic_int stop;
};

static void *keep_busy(void *arg)
{
	struct busy *b = arg;

	while (!b->stop)
		iterate(b->adv, b->x, 1);
	return NULL;
}

static void test_fork(void)
{
	void *x[4];
	struct umadv *adv = working(x);
	struct busy busy = {.adv = adv, .x = x};
	pthread_t thread;
	int bad = 0;

	ok(adv != NULL, "a context works");
	pid_t pid = fork();

	if (pid == 0)
		_exit(in_child(adv, x[0]));
	is_int(outcome(pid), 0, "a forked child can open a context, and its parent's is dead");

	/* The lock may be held by another thread in the instant of the fork. */
	if (pthread_create(&thread, NULL, keep_busy, &busy))
		tap_bail("no thread");
	for (int i = 0; i < 50; i++) {
		pid = fork();
		if (pid == 0) {
			int rc = umadv_op(adv, NULL, "op", UMADV_USES(UMADV_READ(x[0])));

			umadv_close(adv);
			/* Another program: what the thread that is not here held would count as lost. */
			if (!rc)
				execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
			_exit(1);
		}
		bad += outcome(pid) != 0;
	}
	busy.stop = 1;
	pthread_join(thread, NULL);
	is_int(bad, 0, "a fork is safe while another thread is inside the library");
	is_int(iterate(adv, x, 2), 0, "the parent goes on");
	umadv_close(adv);
}

static struct umadv *left_open;
static void *left_x[4];

/* Runs after the library's own exit handler: destructors of a program may still call. */
static void late(void)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};

	if (iterate(left_open, left_x, 2) || umadv_stats_get(left_open, &stats) || umadv_free(left_open, left_x[0]))
		_exit(9);
}

static void test_exit(void)
{
	char path[] = "/tmp/um_process.XXXXXX";
	int fd = mkstemp(path);
	pid_t pid;

	close(fd);
	unlink(path);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		atexit(late);
		setenv("UMADVISE_TRACE", path, 1);
		left_open = working(left_x);
		exit(left_open ? 5 : 6);
	}
	is_int(outcome(pid), 5, "a process that ends with a context open keeps its exit status");
	is_int(access(path, R_OK), 0, "the trace of a program that exits is whole");
	unlink(path);
}

static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = -2;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Parent and children write a trace of the same name. A child that ends can still reach the parent's context. */
static void test_trace_of_children(void)
{
	char dir[] = "/tmp/um_process.XXXXXX", path[64];
	void *x[4], *y[4];
	static struct umadv *volatile adv;

	if (!mkdtemp(dir))
		tap_bail("no folder");
	snprintf(path, sizeof path, "%s/o.umtrace.gz", dir);
	setenv("UMADVISE_TRACE", path, 1);
	adv = working(x);
	fflush(stdout);
	for (int closes = 0; closes < 2; closes++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct umadv *own = working(y);

			umadv_close(adv);
			if (closes)
				umadv_close(own);
			_exit(own ? 0 : 1);
		}
		is_int(outcome(pid), 0, "a child %s its own context and ends by _exit",
		       closes ? "closes" : "does not close");
		is_int(entries(dir), closes, "the child leaves %s", closes ? "its trace only" : "nothing");
	}
	unsetenv("UMADVISE_TRACE");
	is_int(iterate(adv, x, 2), 0, "the parent goes on");
	umadv_close(adv);
	is_int(entries(dir), 1, "the trace is all that is left");
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	test_fork();
	test_trace_of_children();
	test_exit();
	return tap_done();
}
