/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs without a plan, at the limits: more streams than evictions can wait for, an op larger than the budget,
 * adopted memory that is given back, requests whose numbers wrapped around, an executor that is gone.
 */
#include "umadvise.h"

#include "replay/executor_state.h"
#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#define MIB (1ull << 20)
#define TENSORS 12
#define TENSOR (8 * MIB)
#define BUDGET (6 * TENSOR)

static struct um_gpu *gpu;
static const struct um_gpu_api *sim;
static struct um_gpu_api api;
static struct umadv *adv;
static char *x[TENSORS];
static uint64_t prefetched[TENSORS]; /* bytes */
static uint64_t prefetches;

static int prefetch(struct um_gpu *g, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
		    um_stream stream)
{
	for (int i = 0; i < TENSORS && to.type == um_on_device(0).type; i++)
		if ((const char *)ptr >= x[i] && (const char *)ptr < x[i] + TENSOR)
			prefetched[i] += bytes;
	prefetches++;
	return sim->cudaMemPrefetchAsync(g, ptr, bytes, to, flags, stream);
}

static void open_program(const char *strategy)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = BUDGET};
	struct umadv_options o;

	umadv_options_init(&o);
	o.strategy = strategy;
	o.log_level = UMADV_LOG_ERROR;
	if (um_sim_open(&gpu, &so))
		tap_bail("no simulated device");
	sim = gpu->api;
	api = *sim;
	api.cudaMemPrefetchAsync = prefetch;
	gpu->api = &api;
	o.budget = BUDGET;
	if (um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
	for (int i = 0; i < TENSORS; i++)
		if (umadv_alloc(adv, (void **)&x[i], TENSOR, "x", UMADV_PARAM))
			tap_bail("no memory");
	memset(prefetched, 0, sizeof prefetched);
	prefetches = 0;
}

static void op(um_stream stream, int first, int n, uint64_t ns)
{
	struct umadv_use uses[TENSORS];
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = uses, .n_uses = (size_t)n, .ns = ns};

	for (int i = 0; i < n; i++)
		uses[i] = UMADV_UPDATE(x[(first + i) % TENSORS]);
	if (umadv_op_ex(adv, stream, "op", &info) ||
	    um_sim_run(gpu, stream, &(struct um_sim_kernel){.announced = api.announce != NULL, .ns = ns}))
		tap_bail("an op failed");
}

static void iteration(um_stream stream)
{
	umadv_iter(adv, NULL);
	for (int i = 0; i < TENSORS; i++)
		op(stream, i, 1, 300000);
}

static void test_ends_within_a_plan(void)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};

	open_program("lookahead");
	api.announce = NULL; /* as on a device */
	for (int i = 0; i < 8; i++)
		iteration(NULL);
	umadv_stats_get(adv, &stats);
	umadv_iter(adv, NULL);
	op(NULL, 0, 1, 300000);
	um_context_lock(adv);
	um_context_quiesce(adv); /* as exit() does */
	um_context_unlock(adv);
	op(NULL, 1, 1, 300000);
	op(NULL, 2, 1, 300000);
	ok(stats.plans && adv->op.n == 8 * TENSORS + 3,
	   "ops go on without hints where the process exits within a plan");
	umadv_close(adv);
}

/* Bytes that are prefetched in an iteration. */
static uint64_t brought(void)
{
	uint64_t sum = 0;

	memset(prefetched, 0, sizeof prefetched);
	iteration(NULL);
	um_sim_sync(gpu);
	for (int i = 0; i < TENSORS; i++)
		sum += prefetched[i];
	return sum;
}

/* An odd iteration uses the tensors twice. */
static void test_odd_iteration(void)
{
	uint64_t steady = 0, next = 0;

	open_program("lookahead");
	for (int n = 0; n < 3; n++) {
		for (int i = 0; i < 8; i++)
			steady = brought();
		umadv_iter(adv, NULL);
		for (int i = 0; i < 2 * TENSORS; i++)
			op(NULL, i, 1, 300000);
		next = brought();
	}
	ok(next <= steady + 2 * TENSOR,
	   "after an odd iteration a plan prefetches little more than always (%llu, %llu MiB)",
	   (unsigned long long)(steady / MIB), (unsigned long long)(next / MIB));
	umadv_close(adv);
}

/* Simulated ns of a program on so many streams. `cancels`: how often all requests were dropped. */
static double streams_take(const char *strategy, int n, uint32_t *cancels)
{
	um_stream s[8];
	uint64_t begin;
	double ns;

	open_program(strategy);
	for (int i = 0; i < n; i++)
		if (sim->cudaStreamCreateWithFlags(gpu, &s[i], UM_STREAM_NON_BLOCKING))
			tap_bail("no stream");
	begin = um_sim_now(gpu);
	for (int i = 0; i < 40 * TENSORS; i++) {
		op(s[i % n], i * 5 + i / TENSORS, 1, 300000);
		um_sim_sync(gpu);
	}
	ns = (double)(um_sim_now(gpu) - begin);
	*cancels = adv->replan.executor ? um_executor_epoch(adv->replan.executor) : 0;
	umadv_close(adv);
	return ns;
}

static void test_many_streams(void)
{
	uint32_t cancels;
	double on_use = streams_take("prefetch-on-use", 5, &cancels), ns = streams_take("lookahead", 5, &cancels);

	ok(cancels <= 2, "a program on five streams has its requests dropped once, not again and again (%u)", cancels);
	ok(ns <= 1.02 * on_use, "a program on five streams is prefetched on use (%.3f)", ns / on_use);
}

static void test_larger_op(void)
{
	uint64_t least = UINT64_MAX, most = 0;

	open_program("lookahead");
	op(NULL, 0, TENSORS, 300000);
	um_sim_sync(gpu);
	for (int i = 0; i < TENSORS; i++) {
		least = prefetched[i] < least ? prefetched[i] : least;
		most = prefetched[i] > most ? prefetched[i] : most;
	}
	ok(least && most - least <= UM_BLOCK_BYTES,
	   "of each range of an op that exceeds the budget an equal share is prefetched (%llu to %llu MiB)",
	   (unsigned long long)(least / MIB), (unsigned long long)(most / MIB));
	umadv_close(adv);
}

static void test_larger_op_again(void)
{
	uint64_t first;

	open_program("lookahead");
	op(NULL, 0, TENSORS, 300000);
	um_sim_sync(gpu);
	first = prefetches;
	op(NULL, 0, TENSORS, 300000);
	um_sim_sync(gpu);
	is_u64(prefetches, first, "an op above the budget after another one on the same memory is left to page faults");
	op(NULL, 0, 1, 300000);
	um_sim_sync(gpu);
	ok(prefetches > first, "after an op that exceeds the budget nothing counts as resident");
	umadv_close(adv);
}

/* An op that accesses each byte once uses one tensor more than fit, and another op the first of them. */
static void test_streaming_op(void)
{
	struct umadv_use uses[BUDGET / TENSOR + 1];
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = uses, .ns = 300000};
	uint64_t on_host[TENSORS] = {0}, all = 0;

	open_program("lookahead");
	for (uint64_t i = 0; i < BUDGET / TENSOR + 1; i++)
		uses[i] = UMADV_UPDATE(x[i]);
	for (int n = 0; n < 10; n++) {
		info.n_uses = n % 2 ? 4 : BUDGET / TENSOR + 1;
		info.bytes = (double)(info.n_uses * TENSOR);
		if (umadv_op_ex(adv, NULL, n % 2 ? "some" : "all", &info) ||
		    um_sim_run(gpu, NULL, &(struct um_sim_kernel){.announced = api.announce != NULL, .ns = 300000}))
			tap_bail("an op failed");
	}
	for (int i = 0; i < TENSORS; i++)
		for (uint64_t off = 0; off < TENSOR; off += UM_BLOCK_BYTES) {
			on_host[i] += (uint64_t)um_executor_is_host_resident(adv->replan.executor,
									     (uint64_t)(uintptr_t)x[i] + off);
			all += off + UM_BLOCK_BYTES == TENSOR ? on_host[i] : 0;
		}
	is_u64(all, TENSOR / UM_BLOCK_BYTES, "of an op that streams, the blocks that do not fit stay on the host");
	is_u64(on_host[4], all, "they are of a tensor that ops touch least");
	umadv_close(adv);
}

static char *born(uint64_t bytes)
{
	void *t;

	if (umadv_alloc(adv, &t, bytes, "activation", UMADV_ACT))
		tap_bail("no memory");
	return t;
}

static void op_on(char *t, const char *name)
{
	struct umadv_use use = UMADV_WRITE(t);

	umadv_op(adv, NULL, name, &use, 1);
	um_sim_run(gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
	um_sim_sync(gpu);
}

/* Two free places: what lay at the one that fits best has left the device, at the other one it died there. */
static void test_birth_where_resident(void)
{
	char *evicted, *between, *dead, *t;
	uint64_t before;

	open_program("lookahead");
	op(NULL, 0, 1, 300000);
	evicted = born(TENSOR);
	between = born(2 * MIB);
	op_on(evicted, "first");
	op_on(between, "second");
	umadv_host(adv, "log", UMADV_USES(UMADV_READ(evicted)));
	dead = born(2 * TENSOR);
	op_on(dead, "third");
	ok(um_horizon_missing(&adv->horizon, (uintptr_t)evicted, TENSOR) &&
		   !um_horizon_missing(&adv->horizon, (uintptr_t)dead, 2 * TENSOR),
	   "one tensor has left the device, the other one is resident");
	umadv_free(adv, evicted);
	umadv_free(adv, dead);
	t = born(TENSOR);
	ok(t >= dead && t + TENSOR <= dead + 2 * TENSOR, "a tensor is born where blocks of a dead one are resident");
	before = prefetches;
	op_on(t, "fourth");
	is_u64(prefetches, before, "it needs no prefetch");
	umadv_close(adv);
}

/* Bytes prefetched for an op on memory that was adopted, used, disowned, and adopted once more. */
static void test_disowned(void)
{
	struct umadv_op_info info = {.struct_size = sizeof info, .n_uses = 1, .ns = 300000};
	struct umadv_use use;
	void *p;

	open_program("lookahead");
	if (sim->cudaMallocManaged(gpu, &p, TENSOR, 1))
		tap_bail("no managed memory");
	use = (struct umadv_use)UMADV_UPDATE(p);
	info.uses = &use;
	for (int i = 0; i < 2; i++) {
		prefetches = 0;
		if (umadv_adopt(adv, p, TENSOR, "own", UMADV_OTHER) || umadv_op_ex(adv, NULL, "op", &info) ||
		    um_sim_run(gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000}))
			tap_bail("an op failed");
		um_sim_sync(gpu);
		if (umadv_disown(adv, p, TENSOR))
			tap_bail("not disowned");
		if (!i)
			is_u64(um_horizon_blocks_resident(&adv->horizon.blocks), 0,
			       "disowned memory does not count as resident");
	}
	ok(prefetches > 0, "it is prefetched when it is adopted and used again");
	sim->cudaFree(gpu, p);
	umadv_close(adv);
}

/* As if so many requests had been made already. */
static void set_numbers(uint32_t n)
{
	struct um_lanes *l = &adv->replan.executor->lanes;

	for (int i = 0; i < UM_EVICT_LANES; i++) {
		struct um_lanes_evict *e = &l->evict[i];

		e->head = n;
		e->done = n;
		e->submitted = n;
		e->limit = n;
		for (unsigned k = 0; k < e->n; k++)
			l->out[e->first + k].next = l->out[e->first + k].submitted = n + k;
	}
}

static void test_numbers_wrap_around(void)
{
	uint64_t evicted[2] = {0};
	double ns[2];

	for (int wrapped = 0; wrapped < 2; wrapped++) {
		struct umadv_stats stats = {.struct_size = sizeof stats};
		uint64_t begin;

		open_program("lookahead");
		if (wrapped)
			set_numbers(0x90000000u / adv->replan.executor->lanes.evict[UM_LANE_OUT].n / 4 *
				    adv->replan.executor->lanes.evict[UM_LANE_OUT].n * 4);
		begin = um_sim_now(gpu);
		for (int i = 0; i < 10 * TENSORS; i++)
			op(NULL, i * 5 + i / TENSORS, 1, 300000);
		um_sim_sync(gpu);
		ns[wrapped] = (double)(um_sim_now(gpu) - begin);
		umadv_stats_get(adv, &stats);
		evicted[wrapped] = stats.evict_bytes;
		umadv_close(adv);
	}
	ok(evicted[0] && evicted[0] == evicted[1] && ns[0] == ns[1],
	   "after 2^31 evictions blocks come and go as before (%.3f)", ns[1] / ns[0]);
}

static void test_long_ops(void)
{
	open_program("lookahead");
	for (int i = 0; i < 4; i++) {
		struct umadv_use use = UMADV_UPDATE(x[i]);
		struct umadv_op_info info = {
			.struct_size = sizeof info, .uses = &use, .n_uses = 1, .ns = UINT64_MAX / 2};

		umadv_op_ex(adv, NULL, "op", &info);
	}
	ok(adv->horizon.clock >= 0, "durations that a program makes up do not overflow the horizon's time");
	umadv_close(adv);
}

/* Ops of many kinds in random order: each prediction is another one. */
static void test_predictions_that_jump(void)
{
	uint64_t dice = 1, scanned = 0, before = 0;

	open_program("lookahead");
	for (int i = 0; i < 20000; i++) {
		struct umadv_use use = UMADV_READ(x[0]);
		struct umadv_op_info info = {.struct_size = sizeof info, .uses = &use, .n_uses = 1, .ns = 1000};
		char name[8];

		dice = dice * 6364136223846793005ull + 1442695040888963407ull;
		snprintf(name, sizeof name, "k%u", (unsigned)(dice >> 40) % 600);
		umadv_op_ex(adv, NULL, name, &info);
		um_sim_run(gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 1000});
		if (adv->predictor.jumped)
			before = adv->predictor.n_ops;
		scanned += adv->horizon.scanned > before ? adv->horizon.scanned - before : 0;
		before = adv->horizon.scanned;
	}
	ok(scanned && scanned < 20000 * 100, "of predictions that jump at each op few ops are scanned (%llu)",
	   (unsigned long long)scanned / 20000);
	umadv_close(adv);
}

int main(void)
{
	test_ends_within_a_plan();
	test_odd_iteration();
	test_many_streams();
	test_larger_op();
	test_larger_op_again();
	test_streaming_op();
	test_birth_where_resident();
	test_disowned();
	test_numbers_wrap_around();
	test_long_ops();
	test_predictions_that_jump();
	return tap_done();
}
