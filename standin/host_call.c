/* SPDX-License-Identifier: Apache-2.0
 *
 * host_call.c - host functions in stream order, also for a program that only waits for one
 *
 * Simulated time advances in calls. While host functions are due and all threads of the program sleep without a call, a
 * thread of this driver advances time until the next one has run. A program that computes is left alone, so that its
 * figures do not depend on how long that takes. Without /proc nothing is known of the threads, and time stands still.
 */
#include "standin/standin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_NS 20000000 /* between two looks at the threads */

struct call {
	void (*fn)(void *arg);
	void *arg;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows; held during no call */
static pthread_cond_t due = PTHREAD_COND_INITIALIZER;
static uint64_t given, ran; /* host functions */
static int attended;
static struct {
	pthread_t thread;
	int waits, ends; /* for a host function; it is to return */
} attendant;
static _Atomic pid_t owner; /* the process that has the thread; 0: none */

/* --- does the program wait? --------------------------------------------------------------------------------------- */

/* The state of a thread, as in its file `stat`, behind its name. 0: not known. */
static char state_of(int tasks, const char *thread)
{
	char path[300], text[512], *name;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/stat", thread);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	name = strrchr(text, ')');
	return name && name[1] ? name[2] : 0;
}

/* Do all other threads sleep? */
static int all_sleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	long self = syscall(SYS_gettid);
	int sleep = tasks != NULL;
	struct dirent *d;

	while (sleep && (d = readdir(tasks)))
		if (d->d_name[0] != '.' && strtol(d->d_name, NULL, 10) != self)
			sleep = state_of(dirfd(tasks), d->d_name) == 'S';
	if (tasks)
		closedir(tasks);
	return sleep;
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

static uint64_t count(const uint64_t *of)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = *of;
	pthread_mutex_unlock(&lock);
	return n;
}

static int has_run(void *before)
{
	return count(&ran) != *(uint64_t *)before;
}

/* Until a host function is due and some time has passed. 0: the thread is to return. */
static int look(uint64_t *before)
{
	struct timespec until;
	int ends;

	pthread_mutex_lock(&lock);
	attendant.waits = 0;
	while (given == ran && !attendant.ends)
		pthread_cond_wait(&due, &lock);
	*before = ran;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (!attendant.ends && pthread_cond_timedwait(&due, &lock, &until) != ETIMEDOUT)
		;
	ends = attendant.ends;
	pthread_mutex_unlock(&lock);
	return !ends;
}

static void wait_for_next(struct um_gpu *gpu, uint64_t before)
{
	int ends;

	pthread_mutex_lock(&lock);
	ends = attendant.ends;
	attendant.waits = !ends;
	pthread_mutex_unlock(&lock);
	if (!ends)
		gpu->api->worker_wait(gpu, has_run, &before);
}

static void *attend(void *arg)
{
	uint64_t before, calls = 0;
	int slept = 0;

	while (look(&before)) {
		if (slept && calls == um_standin_calls() && all_sleep()) {
			wait_for_next(arg, before);
			slept = 0;
			continue;
		}
		calls = um_standin_calls();
		slept = all_sleep();
	}
	return NULL;
}

/* At exit. A thread that waits for a host function stays. */
static __attribute__((destructor)) void end(void)
{
	int joins;

	if (atomic_load(&owner) != getpid())
		return;
	pthread_mutex_lock(&lock);
	attendant.ends = 1;
	joins = !attendant.waits;
	pthread_cond_signal(&due);
	pthread_mutex_unlock(&lock);
	if (joins)
		pthread_join(attendant.thread, NULL);
}

/* Without the thread host functions run in calls only. This library must stay until exit, as the thread does. */
static void begin(void)
{
	sigset_t all, had;
	Dl_info where;

	if (!dladdr((void *)&lock, &where) || !dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &had);
	if (!pthread_create(&attendant.thread, NULL, attend, um_standin()->gpu))
		atomic_store(&owner, getpid());
	pthread_sigmask(SIG_SETMASK, &had, NULL);
}

static void run(void *arg)
{
	struct call c = *(struct call *)arg;

	free(arg);
	c.fn(c.arg);
	pthread_mutex_lock(&lock);
	ran++;
	pthread_mutex_unlock(&lock);
}

int um_standin_call(um_stream stream, void (*fn)(void *arg), void *arg)
{
	struct call *c = malloc(sizeof *c);
	int first, err;

	if (!c)
		return UM_CUDA_NO_MEMORY;
	*c = (struct call){fn, arg};
	pthread_mutex_lock(&lock);
	first = !attended;
	attended = 1;
	given++;
	pthread_cond_signal(&due);
	pthread_mutex_unlock(&lock);
	if (first)
		begin();
	err = um_sim_call(um_standin()->gpu, stream, run, c);
	if (!err)
		return 0;
	free(c);
	pthread_mutex_lock(&lock);
	given--;
	pthread_mutex_unlock(&lock);
	return err;
}
