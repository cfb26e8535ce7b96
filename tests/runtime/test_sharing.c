/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that share a device: budgets follow as contexts come and go, within two iterations, and what hints make
 * resident stays within them. Contexts of one process take turns here, as those of several processes would.
 */
#include "umadvise.h"

#include "arbiter/runtime_directory.h"
#include "runtime/context.h"
#include "sim/sim.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define DEVICE (64 * MIB)
#define MOST 16 /* tensors of a program */

struct app {
	struct umadv *adv;
	void *x[MOST];
	unsigned n;
	int err;
	char log[4000];
};

static const char *strategy = "lookahead";
static int memory_fails;
static enum umadv_plan_thread plan_thread = UMADV_PLAN_THREAD_AUTO;

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	struct app *a = user;
	size_t n = strlen(a->log);

	(void)level;
	snprintf(a->log + n, sizeof a->log - n, "%s\n", line);
}

/* A program with `n` tensors of 8 MiB. */
static void start_with(struct app *a, unsigned n, int share)
{
	struct umadv_options o;

	memset(a, 0, sizeof *a);
	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = DEVICE;
	o.strategy = strategy;
	o.share = share;
	o.plan_thread = plan_thread;
	o.log = on_log;
	o.log_user = a;
	o.log_level = UMADV_LOG_INFO;
	a->n = n;
	a->err = umadv_open(&a->adv, &o);
	for (unsigned i = 0; i < n && !a->err; i++)
		a->err = umadv_alloc(a->adv, &a->x[i], 8 * MIB, "x", UMADV_PARAM);
	if (a->err && memory_fails)
		exit(3);
	if (a->err)
		tap_bail("no context");
}

static void start(struct app *a, unsigned n)
{
	start_with(a, n, 0);
}

static uint64_t budget_of(const struct app *a)
{
	struct umadv_stats st = {.struct_size = sizeof st};

	umadv_stats_get(a->adv, &st);
	return st.budget_bytes;
}

/* What prefetches have made resident since the last call, at most. */
static uint64_t prefetched(struct app *a)
{
	struct um_gpu *gpu = a->adv->device.gpu;
	struct um_tally t;

	um_sim_tally(gpu, &t);
	a->err |= um_sim_mark(gpu, (const um_stream[]){NULL}, 1);
	a->err |= um_sim_sync(gpu);
	return t.peak_prefetched_bytes;
}

/* `n` iterations, each of which uses every tensor. */
static void iterate(struct app *a, unsigned n)
{
	for (unsigned it = 0; it < n; it++) {
		a->err |= umadv_iter(a->adv, NULL);
		for (unsigned i = 0; i < a->n; i++) {
			a->err |= umadv_op(a->adv, NULL, "op", UMADV_USES(UMADV_UPDATE(a->x[i])));
			a->err |= um_sim_run(a->adv->device.gpu, NULL,
					     &(struct um_sim_kernel){.announced = 1, .ns = 100000});
		}
		a->err |= um_sim_sync(a->adv->device.gpu);
	}
}

static void end(struct app *a)
{
	umadv_close(a->adv);
	a->adv = NULL;
}

static int is_gone(void)
{
	char path[300];

	snprintf(path, sizeof path, "%s/umadvise-simulated-gpu0", getenv("XDG_RUNTIME_DIR"));
	return access(path, F_OK) != 0;
}

static uint64_t hints_of(const struct app *a)
{
	struct umadv_stats st = {.struct_size = sizeof st};

	umadv_stats_get(a->adv, &st);
	return st.hints_issued;
}

/* Bytes resident by the plan; without plans (prefetch-on-use) the budget, for the same checks. */
static uint64_t planned(const struct app *a)
{
	struct umadv_stats st = {.struct_size = sizeof st};

	umadv_stats_get(a->adv, &st);
	return strcmp(strategy, "lookahead") ? st.budget_bytes : st.plan_peak_bytes;
}

/* --- the tests ---------------------------------------------------------------------------------------------------- */

static void two(void)
{
	struct app a, b;
	uint64_t hints;

	start(&a, 12);
	ok(!is_gone(), "%s: the device has a file", strategy);
	iterate(&a, 4);
	is_u64(budget_of(&a), DEVICE, "%s: a context that is alone has the device", strategy);
	start(&b, 12);
	is_u64(budget_of(&b), 0, "%s: one that joins begins with what is free", strategy);
	iterate(&b, 2);
	is_u64(hints_of(&b), 0, "%s: without room it makes no hint", strategy);
	iterate(&a, 1);
	is_u64(budget_of(&a), DEVICE / 2, "%s: the first one keeps to half at its next iteration", strategy);
	iterate(&a, 1);
	iterate(&b, 1);
	is_u64(budget_of(&b), DEVICE / 2, "%s: the second one has its half after two iterations", strategy);
	iterate(&a, 2);
	iterate(&b, 3);
	prefetched(&a);
	prefetched(&b);
	hints = hints_of(&a);
	iterate(&a, 3);
	iterate(&b, 3);
	ok(hints_of(&a) > hints, "%s: the first one makes hints within its half", strategy);
	ok(hints_of(&b) > 0, "%s: so does the second one", strategy);
	ok(prefetched(&a) <= DEVICE / 2 && prefetched(&b) <= DEVICE / 2, "%s: neither makes more resident", strategy);
	ok(planned(&a) <= DEVICE / 2, "%s: the plan is one for the half", strategy);
	end(&b);
	iterate(&a, 2);
	is_u64(budget_of(&a), DEVICE, "%s: within two iterations the first one has all of it again", strategy);
	prefetched(&a);
	iterate(&a, 2);
	ok(prefetched(&a) > DEVICE / 2, "%s: it uses that", strategy);
	ok(planned(&a) > DEVICE / 2, "%s: with another plan", strategy);
	is_int(a.err | b.err, 0, "%s: both programs run", strategy);
	end(&a);
	ok(is_gone(), "%s: the file is removed", strategy);
}

/* The room of a context that shrinks is given up only when it is empty. */
static void waits(void)
{
	struct app a, b;
	uint64_t held;

	start(&a, 12);
	iterate(&a, 4);
	start(&b, 12);
	umadv_iter(a.adv, NULL);
	held = a.adv->sharing.arbiter.held * UM_BLOCK_BYTES;
	is_u64(budget_of(&a), DEVICE / 2, "hints keep to half at once");
	is_u64(held, DEVICE, "the room is given up later");
	umadv_iter(b.adv, NULL);
	is_u64(budget_of(&b), 0, "nobody takes it before");
	um_sim_sync(a.adv->device.gpu);
	prefetched(&a);
	umadv_iter(a.adv, NULL);
	is_u64(a.adv->sharing.arbiter.held * UM_BLOCK_BYTES, DEVICE / 2,
	       "it is given up when the evictions are complete");
	ok(prefetched(&a) <= DEVICE / 2, "then what is resident is within the half");
	umadv_iter(b.adv, NULL);
	is_u64(budget_of(&b), DEVICE / 2, "and the other one takes it");
	end(&a);
	end(&b);
}

static void needs(void)
{
	struct app a, b;

	start(&a, 12);
	start(&b, 2); /* 16 MiB */
	for (int i = 0; i < 6; i++) {
		iterate(&a, 1);
		iterate(&b, 1);
		ok(budget_of(&a) + budget_of(&b) <= DEVICE, "iteration %d: both together have no more than the device",
		   i);
	}
	is_u64(budget_of(&b), 20 * MIB, "a small program has what it needs, and an eighth more, in steps");
	is_u64(budget_of(&a), DEVICE - 20 * MIB, "a large one has the rest");
	end(&a);
	iterate(&b, 2);
	is_u64(budget_of(&b), DEVICE, "alone, the small one has all");
	end(&b);
	ok(is_gone(), "the file is removed by it");
}

static void weights(void)
{
	struct app a, b, c;

	start_with(&a, 12, 3);
	start_with(&b, 12, 1);
	start_with(&c, 12, UMADV_SHARE_OFF);
	is_u64(budget_of(&c), DEVICE, "a context that takes no part has a device of its own");
	for (int i = 0; i < 4; i++) {
		iterate(&a, 1);
		iterate(&b, 1);
	}
	is_u64(budget_of(&a), 48 * MIB, "a weight of 3 gives three quarters");
	is_u64(budget_of(&b), 16 * MIB, "one of 1 a quarter");
	ok(strstr(b.log, "budget 16 MiB: 1 other contexts"), "the log says so");
	end(&a);
	end(&b);
	end(&c);
}

/* Unmanaged memory is part of what a context has of the device. */
static void communication(void)
{
	struct app a, b;
	void *halo;

	start(&a, 12);
	start(&b, 12);
	is_int(umadv_alloc(b.adv, &halo, 5 * MIB, "halo", UMADV_COMM), 0, "a buffer for communication");
	for (int i = 0; i < 4; i++) {
		iterate(&a, 1);
		iterate(&b, 1);
	}
	is_u64(budget_of(&a), DEVICE / 2, "one has half");
	is_u64(budget_of(&b), DEVICE / 2 - 6 * MIB, "the other one half, less the blocks of its buffer");
	umadv_free(b.adv, halo);
	iterate(&b, 4);
	is_u64(budget_of(&b), DEVICE / 2, "the blocks of the buffer return as it is freed");
	ok(planned(&b) > DEVICE / 2 - 6 * MIB, "the next plan uses them");
	umadv_alloc(b.adv, &halo, 5 * MIB, "halo", UMADV_COMM);
	iterate(&b, 2);
	prefetched(&b);
	iterate(&b, 2);
	is_u64(budget_of(&b), DEVICE / 2 - 6 * MIB, "another buffer takes them again");
	ok(prefetched(&b) <= DEVICE / 2 - 6 * MIB, "hints leave room for it");
	umadv_free(b.adv, halo);
	end(&a);
	end(&b);
}

/* Another process, which is killed. It is forked before this one has threads, and begins when it is told to. */
struct victim {
	_Atomic int begins;
	_Atomic uint64_t budget;
};

static struct victim *victim;

static pid_t fork_victim(void)
{
	struct app b;
	pid_t pid;

	victim = mmap(NULL, sizeof *victim, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (victim == MAP_FAILED)
		tap_bail("no memory");
	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	while (!victim->begins)
		usleep(1000);
	start(&b, 12);
	for (;;) {
		iterate(&b, 1);
		victim->budget = budget_of(&b);
	}
}

static void killed(pid_t pid)
{
	struct app a;

	start(&a, 12);
	iterate(&a, 4);
	victim->begins = 1;
	for (int i = 0; i < 10000 && victim->budget != DEVICE / 2; i++) {
		iterate(&a, 1);
		usleep(1000);
	}
	is_u64(victim->budget, DEVICE / 2, "a context of another process gets its half");
	is_u64(budget_of(&a), DEVICE / 2, "the first one keeps to its own");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	usleep(1000);
	iterate(&a, 2);
	is_u64(budget_of(&a), DEVICE, "within two iterations after the other one was killed, all of it returns");
	prefetched(&a);
	iterate(&a, 1);
	ok(prefetched(&a) > DEVICE / 2, "hints use it");
	is_int(a.err, 0, "the program runs");
	end(&a);
	ok(is_gone(), "the file is removed");
}

/* A budget that was asked for is a ceiling. */
static void ceiling(void)
{
	struct um_options o = {.strategy = UM_STRATEGY_LOOKAHEAD};
	struct um_sim_options so = {.profile = um_profile_find("v100"), .capacity = 4 * DEVICE};
	struct um_chosen_device d = {0};
	struct um_notices notices = {0};
	struct um_gpu *gpu;

	o.pub.budget = DEVICE;
	if (um_sim_open(&gpu, &so) || um_chosen_device_open(&d, &o, gpu, so.profile, &notices))
		tap_bail("no device");
	is_u64(um_chosen_device_whole(&d), 4 * DEVICE, "a context with a budget says how large the device is");
	is_u64(um_chosen_device_most(&d), DEVICE, "it asks for its budget");
	um_chosen_device_grant(&d, 3 * DEVICE);
	is_u64(d.budget, DEVICE, "it uses no more, whatever it may use");
	um_chosen_device_take(&d, 2 * MIB);
	is_u64(um_chosen_device_most(&d), DEVICE + 2 * MIB, "unmanaged memory is beside such a budget");
	um_chosen_device_grant(&d, DEVICE / 2);
	is_u64(d.budget, DEVICE / 2 - 2 * MIB, "but not beside a part that is smaller");
	um_chosen_device_grant(&d, 3 * MIB);
	ok(d.starved, "less than a block is nothing");
	um_chosen_device_grant(&d, UINT64_MAX);
	ok(!d.starved && d.budget == DEVICE && d.larger, "with the device for itself it has its budget");
	um_chosen_device_close(&d);
}

/* A saved plan is followed as soon as there is room. */
static void warm(void)
{
	char path[] = "/tmp/um-plan-XXXXXX";
	int fd = mkstemp(path);
	struct app a, b;

	close(fd);
	start(&a, 12);
	iterate(&a, 4);
	is_int(umadv_save_plan(a.adv, path), 0, "a plan is saved");
	start(&b, 12);
	is_int(umadv_load_plan(b.adv, path), 0, "a context without room loads it");
	iterate(&b, 1);
	is_u64(hints_of(&b), 0, "the plan waits for room");
	iterate(&a, 2);
	iterate(&b, 1);
	ok(hints_of(&b) > 0, "with room it is followed at once");
	is_int(a.err | b.err, 0, "both programs run");
	end(&a);
	end(&b);
	unlink(path);
}

static void forked(void)
{
	struct app a, b;
	pid_t pid;

	start(&a, 4);
	start(&b, 4);
	iterate(&a, 2);
	iterate(&b, 2);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		sleep(10);
		_exit(0);
	}
	end(&b);
	iterate(&a, 2);
	is_u64(budget_of(&a), DEVICE, "a forked child holds nothing of its parent's");
	end(&a);
	ok(is_gone(), "nor its file");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* No runtime directory: as without the arbiter. */
static void nowhere(void)
{
	char dir[300];
	struct app a;

	snprintf(dir, sizeof dir, "%s", getenv("XDG_RUNTIME_DIR"));
	snprintf(a.log, sizeof a.log, "%s/umadvise-simulated-gpu0", dir);
	if (mkdir(a.log, 0700))
		tap_bail("no directory");
	start(&a, 12);
	is_u64(budget_of(&a), DEVICE, "a context whose file cannot be opened has the device");
	ok(strstr(a.log, "is not shared out: "), "one line says so");
	iterate(&a, 3);
	is_int(a.err, 0, "the program runs");
	end(&a);
	snprintf(a.log, sizeof a.log, "%s/umadvise-simulated-gpu0", dir);
	rmdir(a.log);
	unsetenv("UMADVISE_SHARE_DEVICE");
	start(&a, 1);
	ok(is_gone(), "a simulated device without a name has no file");
	end(&a);
	setenv("UMADVISE_SHARE_DEVICE", "gpu0", 1);
}

/* For sharing_memory.sh: a program in which allocations fail. */
static int alone_and_shared(void)
{
	struct app a, b;

	memory_fails = 1;
	start(&a, 12);
	iterate(&a, 3);
	start(&b, 12);
	for (int i = 0; i < 4; i++) {
		iterate(&a, 1);
		iterate(&b, 1);
	}
	ok(budget_of(&a) + budget_of(&b) <= DEVICE, "both have no more than the device");
	end(&b);
	iterate(&a, 3);
	end(&a);
	return tap_done();
}

/* For inject.sh: a program that uses the device until its input ends. */
static int hold(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	struct app a;

	start(&a, 12);
	while (!poll(&input, 1, 1))
		iterate(&a, 1);
	end(&a);
	return a.err != 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "hold"))
		return hold();
	runtime_directory();
	setenv("UMADVISE_SHARE_DEVICE", "gpu0", 1);
	if (argc > 1)
		return alone_and_shared();
	killed(fork_victim());
	two();
	waits();
	needs();
	weights();
	communication();
	ceiling();
	warm();
	forked();
	nowhere();
	strategy = "prefetch-on-use";
	two();
	strategy = "lookahead";
	plan_thread = UMADV_PLAN_THREAD_ON;
	for (int i = 0; i < 3; i++)
		needs();
	return tap_done();
}
