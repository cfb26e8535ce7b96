/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs (random_program.h) over the stand-in driver with its hazards on: none hangs, none reads wrong values.
 * A process for each setting, since the driver reads it once; half of them with the library's workers as threads.
 *
 * UM_TEST_PROGRAMS=N runs N programs in all, at least 72, UM_TEST_ALL=1 300.
 */
#include "runtime/random_program.h"
#include "gpu/device.h"
#include "standin_calls.h"

#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define PROGRAMS 72
#define PROGRAMS_ALL 300
#define PATIENCE_S 120
#define SETTINGS 12

static const struct um_standin_table *table;

/* --- the device --------------------------------------------------------------------------------------------------- */

static int open_standin(struct prog *p, const struct prog_options *o)
{
	struct um_device_options options = {.via = UM_VIA_DRIVER};
	char why[200];

	(void)o;
	if (um_device_open(&p->gpu, &options, why, sizeof why))
		return -ENODEV;
	p->api = p->gpu->api;
	return 0;
}

static int launch_standin(struct prog *p, um_stream stream, const char *name, void (*fn)(void *job),
			  struct prog_job *job)
{
	struct um_touch touch[PROG_USES * PROG_CELLS];
	struct um_announcement what = {touch, job->n, 20000, UM_PATTERN_LIBRARY};

	(void)p;
	for (unsigned i = 0; i < job->n; i++)
		touch[i] = (struct um_touch){job->part[i].at, job->part[i].bytes, 0,
					     (job->part[i].want ? UM_READ : 0) | (job->part[i].put ? UM_WRITE : 0)};
	return table->launch_host(stream, name, &what, fn, job, NULL);
}

/* The driver is told not to look (UMADVISE_DRYRUN_CPU). */
static int touch_standin(struct prog *p, void *at, size_t bytes, unsigned access)
{
	(void)p;
	(void)at;
	(void)bytes;
	(void)access;
	return 0;
}

static int load_standin(struct prog *p)
{
	static const char ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry nop() { ret; }\n";
	void *module;
	int err = um_device_module_load(p->gpu, ptx, &module);

	return err ? err : um_device_module_unload(p->gpu, module);
}

static int sync_standin(struct prog *p)
{
	(void)p;
	return CALL(cuCtxSynchronize, 2000, void)();
}

static int free_at(void *at)
{
	return at ? CALL(cuMemFree, 3020, uint64_t)((uint64_t)(uintptr_t)at) : 0;
}

static void end_standin(struct prog *p)
{
	for (unsigned i = 0; i < p->n_threads; i++) {
		struct prog_thread *w = &p->thread[i];

		if (w->memory && i & 1)
			CALL(cuMemFreeHost, 2000, void *)(w->memory);
		else
			free_at(w->memory);
		for (unsigned k = 0; k < w->n; k++)
			if (w->t[k].kind == PROG_OWN)
				free_at(w->t[k].at);
		for (unsigned k = 0; k < w->n_streams; k++)
			if ((uintptr_t)w->stream[k] > 2)
				CALL(cuStreamDestroy, 4000, void *)(w->stream[k]);
	}
	for (unsigned k = 0; k < p->n_shared; k++)
		if (p->shared[k].kind == PROG_OWN)
			free_at(p->shared[k].at);
}

static const struct prog_device standin = {
	.open = open_standin,
	.launch = launch_standin,
	.touch = touch_standin,
	.load = load_standin,
	.sync = sync_standin,
	.end = end_standin,
};

/* --- a process ---------------------------------------------------------------------------------------------------- */

static struct prog prog;

static void hangs(int signal)
{
	(void)signal;
	fprintf(stderr, "program %llu hangs:\n", (unsigned long long)prog.seed);
	prog_say(&prog);
	_exit(99);
}

struct setting {
	char hazards[80];
	int threads; /* workers are threads */
};

static struct setting setting_of(int i)
{
	static const int queues[] = {1, 8, 32}, depth[] = {8, 1000};
	struct setting s = {.threads = i / 6};

	snprintf(s.hazards, sizeof s.hazards, "on,timeout=5000,queues=%d,depth=%d", queues[i % 3], depth[i / 3 % 2]);
	return s;
}

/* Programs `i`, `i` + SETTINGS, ... below `n`. */
static int run_setting(int i, uint64_t n)
{
	static const char *const strategies[] = {"lookahead", "lookahead", "autoswap", "prefetch-on-use"};
	struct setting s = setting_of(i);
	struct umadv_stats stats;
	uint64_t hinted = 0;
	int wrong = 0;

	setenv("UMADVISE_DRYRUN_HAZARDS", s.hazards, 1);
	setenv("UMADVISE_DRYRUN_THREADS", s.threads ? "real" : "virtual", 1);
	setenv("UMADVISE_DRYRUN_CPU", "off", 1);
	setenv("UMADVISE_DRYRUN_MEMORY", "33554432", 1);
	calls_open("13.0");
	table = calls_table();
	signal(SIGALRM, hangs);
	for (uint64_t seed = (uint64_t)i; seed < n && !wrong; seed += SETTINGS) {
		struct prog_options o = {.device = &standin,
					 .strategy = strategies[seed / SETTINGS % 4],
					 .profile = "v100",
					 .budget = 32 * MIB,
					 .evict = (enum umadv_evict)(seed / SETTINGS / 4 % 3),
					 .hazards = s.hazards};

		alarm(PATIENCE_S);
		wrong = prog_run(&prog, seed, &o, &stats);
		alarm(0);
		hinted += stats.hinted_iterations;
		if (stats.stuck) {
			fprintf(stderr, "program %llu, %s: %llu waits were ended by their time limit\n",
				(unsigned long long)seed, o.strategy, (unsigned long long)stats.stuck);
			wrong = 1;
		}
		if (wrong)
			fprintf(stderr, "program %llu, %s: %s\n", (unsigned long long)seed, o.strategy, prog.why);
	}
	return wrong ? 1 : hinted ? 0 : 2;
}

/* In a child; what it writes to standard error is in `said`. Its exit status, or -1. */
static int run_child(int i, uint64_t n, char *said, size_t size)
{
	FILE *err = tmpfile();
	int status = -1;
	pid_t pid;
	size_t got;

	if (!err)
		tap_bail("no file for standard error");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fileno(err), STDERR_FILENO);
		_exit(run_setting(i, n));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		tap_bail("no child");
	rewind(err);
	got = fread(said, 1, size - 1, err);
	said[got] = 0;
	fclose(err);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	const char *many = getenv("UM_TEST_PROGRAMS");
	uint64_t n = many ? strtoull(many, NULL, 10) : getenv("UM_TEST_ALL") ? PROGRAMS_ALL : PROGRAMS;
	char said[1500];

	if (n < PROGRAMS) /* fewer may have no hints in a setting */
		n = PROGRAMS;
	if (access("./standin/libcuda.so.1", R_OK))
		tap_skip_all("the stand-in driver was not built");
	for (int i = 0; i < SETTINGS; i += tap_step(5)) {
		struct setting s = setting_of(i);
		int status = run_child(i, n, said, sizeof said);

		if (!ok(status == 0 && !strstr(said, "hazard:"),
			"%llu programs end with the right values: %s, workers %s", (unsigned long long)(n / SETTINGS),
			s.hazards, s.threads ? "are threads" : "in simulated time"))
			diag("status %d: %s", status, said);
	}
	return tap_done();
}
