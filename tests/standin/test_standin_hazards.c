/* SPDX-License-Identifier: Apache-2.0
 *
 * Hazards of the stand-in driver, by its bare functions: UMADVISE_DRYRUN_HAZARDS, destroyed handles, module loads,
 * hardware queues from CUDA_DEVICE_MAX_CONNECTIONS. Reports are read from standard error.
 */
#include "standin_calls.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1u << 20)

static uint32_t *word;

static void *stream_new(void)
{
	void *s = NULL;

	if (CALL(cuStreamCreate, 2000, void **, unsigned)(&s, 1))
		tap_bail("no stream");
	return s;
}

static int destroy(void *s)
{
	return CALL(cuStreamDestroy, 4000, void *)(s);
}

static int synchronize(void *s)
{
	return CALL(cuStreamSynchronize, 2000, void *)(s);
}

static int wait_value(void *s, uint32_t v)
{
	return CALL(cuStreamWaitValue32, 8000, void *, uint64_t, uint32_t, unsigned)(s, (uint64_t)(uintptr_t)word, v,
										     0);
}

static int write_value(void *s, uint32_t v)
{
	return CALL(cuStreamWriteValue32, 8000, void *, uint64_t, uint32_t, unsigned)(s, (uint64_t)(uintptr_t)word, v,
										      0);
}

static unsigned long long id_of(void *s)
{
	unsigned long long id = 0;

	CALL(cuStreamGetId, 12000, void *, unsigned long long *)(s, &id);
	return id;
}

/* What was written to standard error since the last look. */
static const char *reports(FILE *err)
{
	static char text[8000];
	size_t n;

	fflush(stderr);
	n = fread(text, 1, sizeof text - 1, err);
	text[n] = 0;
	clearerr(err);
	return text;
}

static void handles(void)
{
	void *first = stream_new(), *second;
	unsigned long long id = id_of(first);

	is_int(destroy(first), 0, "a stream is destroyed");
	is_int(synchronize(first), 400, "a destroyed stream is an invalid handle");
	is_int(destroy(first), 400, "for its destruction too");
	second = stream_new();
	ok(second == first, "the next stream has its handle");
	ok(id_of(second) != id, "and another id");
	is_int(synchronize(second), 0, "the handle is valid again");
	destroy(second);
}

static int stream_capturing(void *s)
{
	int status;

	return CALL(cuStreamIsCapturing, 10000, void *, int *)(s, &status);
}

static int flags_of(void *s)
{
	unsigned flags;

	return CALL(cuStreamGetFlags, 7000, void *, unsigned *)(s, &flags);
}

static int query(void *s)
{
	return CALL(cuStreamQuery, 2000, void *)(s);
}

static int record(void *s)
{
	void *event;

	return CALL(cuEventCreate, 2000, void **, unsigned)(&event, 0) ||
	       CALL(cuEventRecord, 2000, void *, void *)(event, s);
}

/* Whether the stand-in driver was built, without loading it here. */
static int is_built(void)
{
	int status = 1;
	pid_t child = fork();

	if (!child)
		_exit(dlopen("./standin/libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == NULL);
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

/* The hazard ends the process, as CUDA does, in a child of its own for each call. */
static void destroyed(FILE *err, int fd)
{
	static const struct {
		const char *name;
		int (*call)(void *s);
	} calls[] = {{"cuStreamIsCapturing", stream_capturing},
		     {"cuStreamGetFlags", flags_of},
		     {"cuStreamQuery", query},
		     {"cuStreamSynchronize", synchronize},
		     {"cuEventRecord", record}};
	int status = 0;

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		pid_t child = fork();

		if (!child) {
			void *s;

			setenv("UMADVISE_DRYRUN_HAZARDS", "on", 1);
			calls_open("13.0");
			dup2(fd, STDERR_FILENO);
			s = stream_new();
			calls[i].call(s);
			destroy(s);
			if (calls[i].call(NULL))
				_exit(1);
			calls[i].call(s);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			tap_bail("no child");
		ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s of a destroyed stream ends the process",
		   calls[i].name);
		ok(strstr(reports(err), calls[i].name) != NULL, "a report names the call");
	}
}

static void *free_memory(void *at)
{
	CALL(cuMemFree, 3020, uint64_t)(*(uint64_t *)at);
	return NULL;
}

/* The write comes from this thread while the other one frees. */
static void lock(FILE *err)
{
	const struct timespec nap = {0, 100000000};
	void *a = stream_new(), *b = stream_new(), *spare = stream_new();
	uint64_t memory;
	pthread_t t;

	CALL(cuMemAlloc, 3020, uint64_t *, size_t)(&memory, MIB);
	*word = 0;
	wait_value(a, 1);
	if (pthread_create(&t, NULL, free_memory, &memory))
		tap_bail("no thread");
	nanosleep(&nap, NULL);
	is_int(CALL(cuStreamQuery, 2000, void *)(a), 600, "a stream behind a gate is not ready");
	is_int(write_value(b, 1), 0, "the write of a gate's value is accepted after cuMemFree has given up");
	pthread_join(t, NULL);
	ok(strstr(reports(err), "cudaFree of thread") != NULL, "the report names the call that holds the lock");
	is_int(synchronize(a), 0, "the gate opens");
	destroy(a);
	destroy(b);
	destroy(spare);
}

/* Two connections: every second stream shares a queue. */
static void queues(FILE *err)
{
	void *a = stream_new(), *b = stream_new(), *c = stream_new();
	const char *said;

	*word = 0;
	wait_value(a, 1);
	write_value(b, 1);
	is_int(synchronize(a), 0, "streams of two connections are independent");
	*word = 0;
	wait_value(a, 1);
	write_value(c, 1);
	is_int(synchronize(a), 702, "a stream of the same connection waits behind the gate that it is to open");
	said = reports(err);
	ok(strstr(said, "umadvise: hazard: deadlock: cudaStreamSynchronize of main thread") != NULL,
	   "the report says which call does not return");
	if (!ok(strstr(said, "stands in the hardware queue behind stream") != NULL, "and why"))
		diag("%s", said);
	*word = 1;
	is_int(synchronize(c), 0, "the host ends it");
}

int main(void)
{
	char path[] = "/tmp/standin-hazards-XXXXXX";
	int fd = mkstemp(path);
	FILE *err = fd < 0 ? NULL : fopen(path, "r"); /* with a position of its own */

	if (!err)
		tap_bail("no file for standard error");
	unlink(path);
	if (!is_built())
		tap_skip_all("the stand-in driver was not built");
	destroyed(err, fd);
	setenv("UMADVISE_DRYRUN_HAZARDS", "depth=1000,locks,lazy,reuse,timeout=300", 1);
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "2", 1);
	calls_open("13.0");
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	if (CALL(cuMemHostAlloc, 2020, void **, size_t, unsigned)((void **)&word, sizeof *word, 0))
		tap_bail("no pinned memory");
	handles();
	queues(err);
	lock(err);
	fclose(err);
	close(fd);
	return tap_done();
}
