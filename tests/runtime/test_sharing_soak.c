/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs on one simulated device start, stop and are killed at random: at no moment do their budgets exceed the
 * device.
 *
 * This process reads the table of the device, as a context would; each program compares its budget with what it holds
 * there. UM_TEST_ALL=1 runs 125 sequences of 8 programs, UM_TEST_SEQUENCES=N runs N, from UM_TEST_SEED on.
 */
#include "umadvise.h"

#include "arbiter/runtime_directory.h"
#include "base/hash.h"
#include "runtime/context.h"
#include "sim/sim.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define MIB (1ull << 20)
#define DEVICE (64 * MIB)
#define PROGRAMS 8
#define STEPS 16 /* starts, stops and kills of a sequence */
#define LOOKS 20 /* at the table, after each of them */

static uint64_t seed;
static _Atomic int *stops; /* of each program, shared with it */
static pid_t pids[PROGRAMS];

static uint64_t random_below(uint64_t n)
{
	seed = um_hash_u64(seed, 1);
	return (seed >> 16) % n;
}

/* --- a program ---------------------------------------------------------------------------------------------------- */

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	(void)line;
}

static int is_within(const struct umadv *adv)
{
	uint64_t used = adv->device.starved ? 0 : adv->device.budget;

	return used <= adv->sharing.arbiter.table->slots[adv->sharing.arbiter.slot].held * UM_BLOCK_BYTES;
}

/* The exit status: 0, or what went wrong. */
static int run_program(const _Atomic int *stop)
{
	unsigned n = 2 + (unsigned)random_below(10);
	struct umadv_options o;
	struct umadv *adv;
	void *x[12];
	int wrong = 0;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = DEVICE;
	o.log = on_log;
	o.share = 1 + (int)random_below(3);
	if (umadv_open(&adv, &o) || !adv->sharing.arbiter.table)
		return 1;
	for (unsigned i = 0; i < n; i++)
		if (umadv_alloc(adv, &x[i], 8 * MIB, "x", UMADV_PARAM))
			return 2;
	while (!*stop && !wrong) {
		wrong = umadv_iter(adv, NULL) ? 3 : !is_within(adv) ? 4 : 0;
		for (unsigned i = 0; i < n && !wrong; i++) {
			wrong = umadv_op(adv, NULL, "op", UMADV_USES(UMADV_UPDATE(x[i]))) ? 5 : 0;
			if (um_sim_run(adv->device.gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 100000}))
				wrong = 6;
		}
	}
	umadv_close(adv);
	return wrong;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Blocks that all slots hold, while no context changes them; UINT64_MAX: the table is in use, or there is none. */
static uint64_t sum_held(void)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	struct um_arbiter_table t;
	uint64_t sum = 0;
	char path[300];
	int fd;

	snprintf(path, sizeof path, "%s/umadvise-simulated-soak", getenv("XDG_RUNTIME_DIR"));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return UINT64_MAX;
	if (fcntl(fd, F_OFD_SETLK, &l) || pread(fd, &t, sizeof t, 0) != (ssize_t)sizeof t)
		sum = UINT64_MAX;
	for (int i = 0; i < UM_ARBITER_MOST && sum != UINT64_MAX; i++)
		if (t.used >> i & 1)
			sum += t.slots[i].held;
	close(fd);
	return sum;
}

struct counts {
	uint64_t looks, most;
	int starts, stops, kills, wrong;
};

static void look(struct counts *c)
{
	uint64_t held = sum_held();

	if (held != UINT64_MAX) {
		c->looks++;
		c->most = held > c->most ? held : c->most;
	}
	nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static void start(int i)
{
	uint64_t own = um_hash_u64(seed, (uint64_t)i);

	stops[i] = 0;
	fflush(stdout);
	pids[i] = fork();
	if (!pids[i]) {
		seed = own;
		_exit(run_program(&stops[i]));
	}
	if (pids[i] < 0)
		tap_bail("no process");
}

/* `kills`: at once, wherever it is. */
static void end(int i, int kills, struct counts *c)
{
	int status = -1;

	stops[i] = !kills;
	if (kills)
		kill(pids[i], SIGKILL);
	waitpid(pids[i], &status, 0);
	pids[i] = 0;
	*(kills ? &c->kills : &c->stops) += 1;
	if (kills ? !WIFSIGNALED(status) : status != 0) {
		c->wrong++;
		printf("# a program ended with status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	}
}

static void sequence(struct counts *c)
{
	for (int k = 0; k < STEPS; k++) {
		int i = (int)random_below(PROGRAMS);

		if (pids[i]) {
			end(i, (int)random_below(2), c);
		} else {
			start(i);
			c->starts++;
		}
		for (int n = 0; n < LOOKS; n++)
			look(c);
	}
	for (int i = 0; i < PROGRAMS; i++)
		if (pids[i])
			end(i, (int)random_below(2), c);
}

int main(void)
{
	const char *asked = getenv("UM_TEST_SEQUENCES"), *from = getenv("UM_TEST_SEED");
	int sequences = asked ? atoi(asked) : getenv("UM_TEST_ALL") ? 125 : tap_few() ? 1 : 3;
	struct counts c = {0};

	runtime_directory();
	setenv("UMADVISE_SHARE_DEVICE", "soak", 1);
	seed = from ? strtoull(from, NULL, 10) : 1;
	stops = mmap(NULL, PROGRAMS * sizeof *stops, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stops == MAP_FAILED)
		tap_bail("no memory");
	for (int i = 0; i < sequences; i++)
		sequence(&c);
	printf("# %d sequences: %d starts, %d stops, %d kills; %llu looks, at most %llu of %llu blocks\n", sequences,
	       c.starts, c.stops, c.kills, (unsigned long long)c.looks, (unsigned long long)c.most,
	       DEVICE / UM_BLOCK_BYTES);
	ok(c.looks > (uint64_t)sequences, "the table is read again and again");
	ok(c.most <= DEVICE / UM_BLOCK_BYTES, "all budgets together never exceed the device");
	ok(c.most > DEVICE / UM_BLOCK_BYTES / 2, "most of the device is used at some moment");
	is_int(c.wrong, 0, "each program runs within what it holds until it is ended");
	start(0);
	for (int n = 0; n < 200 && sum_held() != DEVICE / UM_BLOCK_BYTES; n++)
		look(&c);
	is_u64(sum_held(), DEVICE / UM_BLOCK_BYTES, "one that starts after them has the whole device");
	end(0, 0, &c);
	is_u64(sum_held(), UINT64_MAX, "and removes the file");
	return tap_done();
}
