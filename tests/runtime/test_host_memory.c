/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory as a budget: plans that evict keep a stated limit, a limit that is too small is said in one line, and
 * what the process may take is found in /proc and in its cgroups.
 */
#include "umadvise.h"

#include "replay/compiled_plan.h"
#include "runtime/context.h"
#include "runtime/host_memory.h"
#include "sim/sim.h"
#include "tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define TENSORS 32
#define BYTES (4 * MIB)
#define BUDGET (80 * MIB)
#define LEAST (TENSORS * BYTES - BUDGET) /* that must be off the device at any time */

/* --- plans -------------------------------------------------------------------------------------------------------- */

struct run {
	uint64_t planned; /* host memory of the plan */
	uint64_t taken; /* that the driver took */
	int lines; /* of the log, about host memory */
	char line[300]; /* the last one */
	int err;
};

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	struct run *r = user;

	(void)level;
	if (strncmp(line, "host memory: ", 13) != 0)
		return;
	r->lines++;
	snprintf(r->line, sizeof r->line, "%s", line);
}

/* Three sweeps over all tensors in different orders. A block that is far from its next use in one of them is near it in
 * another. */
static int tensor_of(int op)
{
	int i = op % TENSORS;

	return op / TENSORS == 0 ? i : op / TENSORS == 1 ? TENSORS - 1 - i : i * 13 % TENSORS;
}

static void play(struct umadv *adv, struct um_gpu *gpu, void **w, struct run *r)
{
	for (unsigned it = 0; it < 8; it++) {
		r->err |= umadv_iter(adv, NULL);
		for (int i = 0; i < 3 * TENSORS; i++) {
			r->err |= umadv_op(adv, NULL, "op", UMADV_USES(UMADV_UPDATE(w[tensor_of(i)])));
			r->err |= um_sim_run(gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
		}
	}
	r->err |= um_sim_sync(gpu);
}

static void run_on(uint64_t capacity, const char *strategy, uint64_t limit, struct run *r)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = capacity};
	struct umadv_options o;
	struct um_gpu *gpu = NULL;
	struct umadv *adv = NULL;
	struct um_tally tally;
	void *w[TENSORS];

	memset(r, 0, sizeof *r);
	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = BUDGET;
	o.host_memory = limit;
	o.strategy = strategy;
	o.log = on_log;
	o.log_user = r;
	r->err = um_sim_open(&gpu, &so);
	if (!r->err)
		r->err = um_context_open(&adv, &o, gpu, v100);
	for (int i = 0; i < TENSORS && !r->err; i++)
		r->err = umadv_alloc(adv, &w[i], BYTES, "w", UMADV_PARAM);
	if (r->err)
		tap_bail("no context");
	play(adv, gpu, w, r);
	r->planned = adv->replan.program.host * UM_BLOCK_BYTES;
	um_sim_tally(gpu, &tally);
	r->taken = tally.host_bytes;
	umadv_close(adv);
}

/* On a device with room for all: nothing leaves it but by hints. */
static void run(const char *strategy, uint64_t limit, struct run *r)
{
	run_on(4 * TENSORS * BYTES, strategy, limit, r);
}

/* On a device without more room than the budget, operations without a plan get hints, too. */
static void before_plans(void)
{
	struct run free_run, r;
	uint64_t limit;

	run_on(BUDGET, "lookahead", 0, &free_run);
	ok(free_run.taken > free_run.planned,
	   "before a plan other blocks leave than those of the plan (%llu, %llu MiB)",
	   (unsigned long long)(free_run.taken / MIB), (unsigned long long)(free_run.planned / MIB));
	for (limit = LEAST + 8 * MIB; limit < free_run.taken; limit += 8 * MIB) {
		run_on(BUDGET, "lookahead", limit, &r);
		is_int(r.err, 0, "with a limit of %llu MiB the program runs", (unsigned long long)(limit / MIB));
		ok(r.taken <= limit, "the driver takes no more for all iterations (%llu MiB)",
		   (unsigned long long)(r.taken / MIB));
		ok(r.planned, "there is a plan (%llu MiB)", (unsigned long long)(r.planned / MIB));
	}
	run_on(BUDGET, "lookahead", LEAST / 2, &r);
	is_int(r.err, 0, "with a limit below what must be off the device the program runs");
	ok(r.lines >= 1, "a line says that it may be killed: %s", r.line);
}

static void limits(void)
{
	struct run free_run, r;
	uint64_t limit;

	run("lookahead", 0, &free_run);
	is_int(free_run.err, 0, "without a limit the program runs");
	is_int(free_run.lines, 0, "without a limit nothing is said about host memory");
	ok(free_run.planned > LEAST + 8 * MIB,
	   "without a limit a plan evicts more than must be off the device (%llu MiB)",
	   (unsigned long long)(free_run.planned / MIB));
	is_u64(free_run.taken, free_run.planned, "the driver takes as much host memory as the plan says");
	limit = (free_run.planned + LEAST) / 2 / MIB * MIB;
	run("lookahead", limit, &r);
	is_int(r.err, 0, "with a limit the program runs");
	ok(r.planned && r.planned <= limit, "a plan keeps the limit (%llu of %llu MiB)",
	   (unsigned long long)(r.planned / MIB), (unsigned long long)(limit / MIB));
	ok(r.taken && r.taken <= limit, "the driver takes no more host memory than that (%llu MiB)",
	   (unsigned long long)(r.taken / MIB));
	ok(r.lines == 1 && strstr(r.line, "the plan is limited to") && strstr(r.line, "(as stated)"),
	   "one line says what is needed and what there is: %s", r.line);
	run("lookahead", TENSORS * BYTES, &r);
	ok(!r.lines && r.planned == free_run.planned, "a limit that the plan keeps anyway changes nothing");
	run("lookahead", 2 * MIB, &r);
	is_int(r.err, 0, "with a limit below what must be off the device the program runs");
	ok(r.planned && r.planned < free_run.planned, "it gets a smaller plan (%llu MiB)",
	   (unsigned long long)(r.planned / MIB));
	ok(r.lines == 1 && strstr(r.line, "at least"), "one line says so: %s", r.line);
}

/* The blocks that were used least recently; then those that have host memory. */
static void on_use(void)
{
	struct run r;

	run("prefetch-on-use", 0, &r);
	is_u64(r.taken, TENSORS * BYTES, "prefetch-on-use evicts every block in time");
	run("prefetch-on-use", LEAST + 8 * MIB, &r);
	is_int(r.err, 0, "with a limit it runs");
	is_u64(r.taken, LEAST + 8 * MIB, "with a limit it evicts the same blocks again");
	is_int(r.lines, 0, "it keeps the limit, and says nothing");
	run("prefetch-on-use", LEAST / 2, &r);
	is_int(r.err, 0, "with a limit below what must be off the device it runs");
	ok(r.lines == 1 && strstr(r.line, "evicted data take more than the 24 MiB that are available (as stated)"),
	   "one line says so: %s", r.line);
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

static char root[200];

static void put(const char *path, const char *text)
{
	char full[400];
	FILE *f;

	snprintf(full, sizeof full, "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		if (mkdir(full, 0700) && errno != EEXIST)
			tap_bail("no directory");
	}
	f = fopen(full, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		tap_bail("no file");
}

static void is_limit(uint64_t bytes, const char *limit, const char *what)
{
	struct um_host_memory m;

	um_host_memory_find(root, &m);
	ok(m.bytes == bytes && strcmp(m.limit, limit) == 0, "%s: %llu bytes, %s", what, (unsigned long long)m.bytes,
	   m.limit);
}

static void remove_root(void)
{
	char command[300];

	snprintf(command, sizeof command, "rm -rf '%s'", root);
	if (system(command))
		diag("%s is left", root);
}

static void cgroups(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, sizeof root, "%s/host_memory.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(root))
		tap_bail("no directory");
	is_limit(UINT64_MAX, "", "without /proc nothing is known");
	put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
	is_limit(8192000, "MemAvailable of /proc/meminfo", "without cgroups");
	put("proc/self/cgroup", "0::/job/step\n");
	put("proc/self/mountinfo", "25 1 0:22 / /proc rw,relatime shared:5 - proc proc rw\n"
				   "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
	put("sys/fs/cgroup/job/step/memory.max", "max\n");
	is_limit(8192000, "MemAvailable of /proc/meminfo", "a cgroup without a limit");
	put("sys/fs/cgroup/job/memory.max", "5000000\n");
	put("sys/fs/cgroup/job/memory.current", "2000000\n");
	is_limit(3000000, "memory.max of cgroup /job", "a limit of the cgroup above");
	put("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 500000\n");
	is_limit(3500000, "memory.max of cgroup /job", "pages of files that were not used lately");
	put("sys/fs/cgroup/job/step/memory.max", "1000\n");
	put("sys/fs/cgroup/job/step/memory.current", "1200\n");
	is_limit(0, "memory.max of cgroup /job/step", "a limit that is reached");
	put("proc/self/mountinfo", "30 23 0:26 /job /mnt/groups rw - cgroup2 none rw\n");
	put("mnt/groups/memory.max", "900000\n");
	put("mnt/groups/memory.current", "100000\n");
	is_limit(800000, "memory.max of cgroup /", "a mount elsewhere that shows a part of the cgroups");
	put("mnt/groups/step/memory.max", "700000\n");
	is_limit(700000, "memory.max of cgroup /step", "a cgroup below the top of a mount");
	put("proc/self/cgroup", "0::/jobs/step\n");
	is_limit(800000, "memory.max of cgroup /", "a cgroup that the mount does not show, but for its name's begin");
	put("proc/self/cgroup", "11:cpu,memory:/box\n3:freezer:/other\n0::/\n");
	put("proc/self/mountinfo", "31 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
				   "32 31 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
				   "33 31 0:29 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
				   "34 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n");
	put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4000000\n");
	put("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1000000\n");
	put("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 7\ntotal_inactive_file 1000\n");
	is_limit(3001000, "memory.limit_in_bytes of cgroup /box", "version 1");
	put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
	is_limit(8192000, "MemAvailable of /proc/meminfo", "version 1 without a limit");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000\n");
	is_limit(2000, "memory.limit_in_bytes of cgroup /", "the root of a container");
	put("sys/fs/cgroup/unified/memory.max", "1500\n");
	is_limit(1500, "memory.max of cgroup /", "version 2 beside version 1");
	remove_root();
}

/* The parts of ranks, as a context gets them. */
static uint64_t detected(struct umadv **adv)
{
	struct umadv_options o;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.host_memory = UMADV_HOST_MEMORY_DETECT;
	if (umadv_open(adv, &o))
		tap_bail("no context");
	return (*adv)->device.host_budget;
}

static void ranks(void)
{
	struct umadv *one, *four;
	uint64_t all = detected(&one), part;

	if (!all) {
		skip(2, "nothing is known of the host's memory");
		umadv_close(one);
		return;
	}
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
	part = detected(&four);
	ok(part > all / 8 && part < all / 3, "one of four ranks of a node gets a quarter of what there is");
	ok(strncmp(four->device.host_limit, "1/4 of ", 7) == 0, "the limit says so: %s", four->device.host_limit);
	umadv_close(one);
	umadv_close(four);
}

int main(void)
{
	limits();
	before_plans();
	on_use();
	cgroups();
	ranks();
	return tap_done();
}
