/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs without iterations on a device whose evictions take longer than its prefetches: what ops only read leaves
 * without a copy, until an op writes it.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#define MIB (1ull << 20)
#define TENSORS 12
#define TENSOR (8 * MIB)
#define BUDGET (6 * TENSOR)

static struct um_gpu *gpu;
static struct umadv *adv;
static char *x[TENSORS];
static uint32_t seed;

static void open_context(uint64_t slow_ns)
{
	struct um_profile profile = *um_profile_find("v100");
	struct um_sim_options so = {.profile = &profile, .capacity = BUDGET};
	struct umadv_options o;

	profile.c_pf_cpu = slow_ns;
	profile.serial_host = slow_ns != 0;
	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = BUDGET;
	if (um_sim_open(&gpu, &so) || um_context_open(&adv, &o, gpu, &profile))
		tap_bail("no context");
	seed = 1;
}

static void open_program(uint64_t slow_ns)
{
	open_context(slow_ns);
	for (int i = 0; i < TENSORS; i++)
		if (umadv_alloc(adv, (void **)&x[i], TENSOR, "x", UMADV_PARAM))
			tap_bail("no memory");
}

/* With memory that the program allocated itself. */
static void open_adopted(uint64_t slow_ns, uint64_t bytes)
{
	open_context(slow_ns);
	for (int i = 0; i < TENSORS; i++)
		if (gpu->api->cudaMallocManaged(gpu, (void **)&x[i], bytes, 1) ||
		    umadv_adopt(adv, x[i], bytes, "x", UMADV_PARAM))
			tap_bail("no memory");
}

static void launch(struct umadv_use use)
{
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = &use, .n_uses = 1, .ns = 300000};

	if (umadv_op_ex(adv, NULL, "op", &info) ||
	    um_sim_run(gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000}))
		tap_bail("an op failed");
}

/* Ops on tensors drawn at random, of which the last one in `writes` writes; 0: none does. */
static void random_ops(int n, int writes)
{
	for (int i = 1; i <= n; i++) {
		seed = seed * 1664525u + 1013904223u;
		char *at = x[(seed >> 8) % TENSORS];

		launch(writes && i % writes == 0 ? UMADV_UPDATE(at) : UMADV_READ(at));
	}
}

static struct um_tally tally(void)
{
	struct um_tally t;

	um_sim_sync(gpu);
	um_sim_tally(gpu, &t);
	return t;
}

/* Bytes copied to the host in the last 100 of 400 ops. */
static uint64_t copied(uint64_t slow_ns, int writes)
{
	uint64_t before, after;

	open_program(slow_ns);
	for (int i = 0; i < TENSORS; i++)
		launch(UMADV_WRITE(x[i]));
	random_ops(300, writes);
	before = tally().d2h_bytes;
	random_ops(100, writes);
	after = tally().d2h_bytes;
	umadv_close(adv);
	return after - before;
}

static void test_copies(void)
{
	is_u64(copied(240000, 0), 0, "what ops only read leaves without a copy");
	ok(copied(240000, 2) > 100 * MIB, "what ops write is copied");
	ok(copied(0, 0) > 100 * MIB, "it is copied where evictions are as fast as prefetches");
}

/* A tensor that leaves takes three calls: advice is withdrawn, what is no duplicate evicted, and advice given again. */
static void test_runs(void)
{
	struct um_tally before, after;
	uint64_t tensors;

	open_program(240000);
	random_ops(300, 0);
	before = tally();
	random_ops(100, 0);
	after = tally();
	tensors = (after.h2d_bytes - before.h2d_bytes) / TENSOR;
	ok(tensors > 10 && after.hints - before.hints < 10 * tensors,
	   "the blocks of a tensor leave together (%llu hints, %llu tensors)",
	   (unsigned long long)(after.hints - before.hints), (unsigned long long)tensors);
	umadv_close(adv);
}

static void test_writes(void)
{
	struct um_tally before, after;

	open_program(240000);
	random_ops(300, 0);
	before = tally();
	for (int i = 0; i < TENSORS; i++)
		launch(UMADV_UPDATE(x[i]));
	after = tally();
	is_u64(after.faults - before.faults, 0, "an op that writes at last does not fault");
	for (int i = 0; i < TENSORS; i++)
		launch(UMADV_READ(x[i]));
	ok(tally().d2h_bytes - before.d2h_bytes >= (TENSORS - 6) * TENSOR, "what it wrote is copied to the host");
	umadv_close(adv);
}

/* Tensors are read eight times, on average, between two writes: then to advise them does not pay. */
static void test_turns(void)
{
	struct um_tally before, first = {0}, last = {0};

	open_program(240000);
	random_ops(40, 0);
	for (int turn = 0; turn < 6; turn++) {
		before = tally();
		for (int i = 0; i < TENSORS; i++)
			launch(UMADV_UPDATE(x[i]));
		random_ops(8 * TENSORS, 0);
		last = tally();
		last.d2h_bytes -= before.d2h_bytes;
		first = turn ? first : last;
	}
	ok(last.d2h_bytes > first.d2h_bytes,
	   "tensors that are written now and then are copied, and not advised (%llu MiB, %llu at last)",
	   (unsigned long long)(first.d2h_bytes / MIB), (unsigned long long)(last.d2h_bytes / MIB));
	umadv_close(adv);
}

/* Iterations that read all tensors, and update those from `first` on. */
static void iterations(int n, int first)
{
	for (int i = 0; i < n; i++) {
		umadv_iter(adv, NULL);
		for (int k = 0; k < TENSORS; k++)
			launch(k < first ? UMADV_READ(x[k]) : UMADV_UPDATE(x[k]));
	}
}

/* A plan begins after ops that only read. It advises other blocks: those that it writes or that stay on the device are
 * not advised any more. */
static void test_plan(void)
{
	for (int first = 0; first <= TENSORS; first += TENSORS / 2) {
		struct umadv_stats s = {.struct_size = sizeof s};
		uint64_t before;

		open_program(240000);
		random_ops(300, 0);
		before = tally().faults;
		iterations(8, first);
		is_u64(tally().faults - before, 0, "ops of a plan that reads %d of %d tensors do not fault", first,
		       TENSORS);
		umadv_stats_get(adv, &s);
		ok(s.plans > 0, "a plan is followed");
		umadv_close(adv);
	}
}

/* Ops only read adopted tensors of `bytes` bytes. Returns what three iterations under a plan copy to the host. */
static uint64_t copied_adopted(uint64_t bytes)
{
	uint64_t before, after;

	open_adopted(240000, bytes);
	for (int i = 0; i < TENSORS; i++)
		launch(UMADV_WRITE(x[i]));
	iterations(9, TENSORS);
	before = tally().d2h_bytes;
	iterations(3, TENSORS);
	after = tally().d2h_bytes;
	umadv_close(adv);
	return after - before;
}

static void test_adopted(void)
{
	is_u64(copied_adopted(TENSOR), 0, "adopted memory that ops of a plan only read leaves without a copy");
	is_u64(copied_adopted(TENSOR - MIB), 0, "so does a block that an allocation fills in part");
}

int main(void)
{
	test_copies();
	test_runs();
	test_writes();
	test_turns();
	test_plan();
	test_adopted();
	return tap_done();
}
