/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes start, stop and are killed at random, in the middle of whatever they do: at no moment do the blocks that
 * all of them use exceed the device.
 *
 * Each process counts what it uses in memory that all of them share: more after it was granted, less before it is given
 * up.
 * UM_TEST_ALL=1 runs 1,000 sequences, UM_TEST_SEQUENCES=N runs N, from UM_TEST_SEED on.
 */
#include "arbiter/arbiter.h"

#include "base/clock.h"
#include "base/hash.h"
#include "runtime_directory.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 8
#define STEPS 12 /* starts, stops and kills of a sequence */
#define BLOCKS 1000
#define RECOVERY_S 30
#define DEVICE "soak"

struct shared {
	_Atomic int64_t total, most; /* blocks in use; the most ever */
	struct process {
		_Atomic int64_t uses;
		_Atomic int busy; /* `uses` and `total` do not agree for a moment */
		_Atomic int stop; /* asked to leave */
		_Atomic uint64_t turns; /* iterations without news, in a row */
		_Atomic int left; /* it has left in order */
	} process[PROCESSES];
};

static struct shared *shared;
static pid_t pids[PROCESSES];
static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = um_hash_u64(seed, 1);
	return (seed >> 16) % n;
}

static void use(struct process *p, uint64_t blocks)
{
	int64_t more = (int64_t)blocks - p->uses, total, most = shared->most;

	p->busy = 1;
	p->uses += more;
	total = atomic_fetch_add(&shared->total, more) + more;
	while (total > most && !atomic_compare_exchange_weak(&shared->most, &most, total))
		;
	p->busy = 0;
}

static void run_child(int i)
{
	struct process *p = &shared->process[i];
	struct um_arbiter_claim claim = {UINT64_MAX, UINT64_MAX, 1 + random_below(3)};
	struct um_arbiter a;

	if (um_arbiter_open(&a, DEVICE, BLOCKS, &claim))
		_exit(1);
	use(p, a.held);
	while (!p->stop) {
		uint64_t need = claim.need;

		if (!random_below(30))
			claim.need = random_below(2) ? UINT64_MAX : random_below(BLOCKS);
		if (!um_arbiter_has_news(&a) && claim.need == need) {
			p->turns++;
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
			continue;
		}
		p->turns = 0;
		if (um_arbiter_look(&a, &claim))
			continue;
		if (a.held > a.target) {
			use(p, a.target); /* an eviction may take a while */
			nanosleep(&(struct timespec){.tv_nsec = (long)random_below(50000)}, NULL);
			while (um_arbiter_confirm(&a, a.target) && !p->stop)
				;
		} else {
			use(p, a.held);
		}
	}
	use(p, 0);
	um_arbiter_close(&a);
	p->left = 1;
	_exit(0);
}

static void start(int i)
{
	struct process *p = &shared->process[i];
	uint64_t own = um_hash_u64(seed, (uint64_t)i);

	p->stop = p->busy = p->left = 0;
	p->turns = 0;
	fflush(stdout);
	pids[i] = fork();
	if (!pids[i]) {
		seed = own;
		run_child(i);
	}
	if (pids[i] < 0)
		tap_bail("no process");
}

/* 1: it left in order. */
static int stop(int i)
{
	int status = -1;

	shared->process[i].stop = 1;
	if (waitpid(pids[i], &status, 0) != pids[i])
		tap_bail("no child");
	pids[i] = 0;
	return status == 0 && shared->process[i].left;
}

/* What it used is subtracted while it stands still, before the kernel releases its locks. */
static void kill_process(int i)
{
	struct process *p = &shared->process[i];
	int status;

	for (;;) {
		kill(pids[i], SIGSTOP);
		if (waitpid(pids[i], &status, WUNTRACED) != pids[i])
			tap_bail("no child");
		if (!WIFSTOPPED(status))
			tap_bail("a process ended by itself");
		if (!p->busy)
			break;
		kill(pids[i], SIGCONT);
		nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
	}
	atomic_fetch_sub(&shared->total, p->uses);
	p->uses = 0;
	kill(pids[i], SIGKILL);
	waitpid(pids[i], NULL, 0);
	pids[i] = 0;
}

/* 1: the processes that are left come to use the whole device. On a busy machine each of them may have no CPU for long.
 */
static int recovers(void)
{
	const struct timespec pause = {.tv_nsec = 100000};
	const uint64_t until = um_clock_ns(CLOCK_MONOTONIC) + RECOVERY_S * 1000000000ull;
	int n = 0;

	for (int i = 0; i < PROCESSES; i++)
		n += pids[i] != 0;
	while (n && shared->total != BLOCKS && um_clock_ns(CLOCK_MONOTONIC) < until)
		nanosleep(&pause, NULL);
	return !n || shared->total == BLOCKS;
}

struct counts {
	int starts, stops, kills, not_left, not_recovered;
};

static void sequence(struct counts *c)
{
	for (int k = 0; k < STEPS; k++) {
		int i = (int)random_below(PROCESSES);

		if (!pids[i]) {
			start(i);
			c->starts++;
		} else if (random_below(2)) {
			c->not_left += !stop(i);
			c->stops++;
		} else {
			kill_process(i);
			c->kills++;
		}
		if (random_below(2))
			nanosleep(&(struct timespec){.tv_nsec = (long)random_below(1000000)}, NULL);
	}
	c->not_recovered += !recovers();
	for (int i = 0; i < PROCESSES; i++)
		if (pids[i] && random_below(2)) {
			kill_process(i);
			c->kills++;
		} else if (pids[i]) {
			c->not_left += !stop(i);
			c->stops++;
		}
}

int main(void)
{
	const char *asked = getenv("UM_TEST_SEQUENCES"), *from = getenv("UM_TEST_SEED");
	int sequences = asked ? atoi(asked) : getenv("UM_TEST_ALL") ? 1000 : tap_few() ? 10 : 60;
	const struct um_arbiter_claim all = {UINT64_MAX, UINT64_MAX, 1};
	struct counts c = {0};
	struct um_arbiter last;

	runtime_directory();
	seed = from ? strtoull(from, NULL, 10) : 1;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		tap_bail("no memory");
	for (int i = 0; i < sequences; i++)
		sequence(&c);
	printf("# %d sequences: %d starts, %d stops, %d kills; at most %d of %d blocks in use\n", sequences, c.starts,
	       c.stops, c.kills, (int)shared->most, BLOCKS);
	ok(shared->most <= BLOCKS, "no more than the device is used at any moment");
	ok(shared->most > BLOCKS / 2, "most of it is used at some moment");
	is_int(c.not_left, 0, "each process that is asked to leaves in order");
	is_int(c.not_recovered, 0, "after each sequence those that are left share the whole device");
	is_int((int)shared->total, 0, "nothing is in use at the end");
	is_int(um_arbiter_open(&last, DEVICE, 7, &all), 0, "another process uses what the killed ones left");
	is_u64(last.held, 7, "it finds no one");
	um_arbiter_close(&last);
	ok(access(last.path, F_OK), "it removes the file");
	return tap_done();
}
