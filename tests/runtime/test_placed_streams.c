/* SPDX-License-Identifier: Apache-2.0
 *
 * Several streams under a plan that evicts: memory of the plan is freed while the device still uses it, and a tensor is
 * born there. The birth waits, so that no tensor lies beside the plan; but not for ever, and not for a capture.
 */
#include "runtime/context.h"

#include "sim/sim.h"
#include "tap.h"

#include <signal.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define LAYERS 12
#define LAYER (4 * MIB)
#define WEIGHTS 6
#define STREAMS 2
#define PATIENCE_S 60

static struct um_gpu *gpu;
static struct umadv *adv;
static um_stream stream[STREAMS];
static void *w[WEIGHTS];

/* `known`: the library knows when each stream ends, and may use its handle in any call. */
static void open_program(uint64_t budget, int known)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = budget};
	struct umadv_options o;

	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = budget;
	if (um_sim_open(&gpu, &so) || um_context_open(&adv, &o, gpu, v100))
		tap_bail("no simulated device");
	if (known)
		um_context_know_stream_ends(adv);
	for (int i = 0; i < STREAMS; i++)
		if (gpu->api->cudaStreamCreateWithFlags(gpu, &stream[i], UM_STREAM_NON_BLOCKING))
			tap_bail("no stream");
	for (int i = 0; i < WEIGHTS; i++)
		if (umadv_alloc(adv, &w[i], LAYER, "w", UMADV_PARAM))
			tap_bail("no memory");
}

static void *bear(const char *name, uint64_t bytes)
{
	void *p = NULL;

	if (umadv_alloc(adv, &p, bytes, name, UMADV_ACT))
		tap_bail("no memory");
	return p;
}

static void run(int i, const char *name, struct umadv_use use)
{
	struct umadv_use uses[] = {UMADV_UPDATE(w[i % WEIGHTS]), use};
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = uses, .n_uses = 2, .ns = 1000000};

	if (umadv_op_ex(adv, stream[i % STREAMS], name, &info) ||
	    um_sim_run(gpu, stream[i % STREAMS], &(struct um_sim_kernel){.announced = 1, .ns = 1000000}))
		tap_bail("an op failed");
}

/* Returns the births beside the planned places. */
static uint64_t iterate(void)
{
	struct umadv_stats a = {.struct_size = sizeof a}, b = a;
	void *y[LAYERS];

	umadv_stats_get(adv, &a);
	umadv_iter(adv, NULL);
	for (int i = 0; i < LAYERS; i++) {
		void *work = bear("work", LAYER);

		y[i] = bear("y", LAYER);
		run(i, "forward", UMADV_WRITE(y[i]));
		run(i, "work", UMADV_WRITE(work));
		umadv_free(adv, work);
	}
	for (int i = LAYERS; i-- > 0;) {
		run(i, "backward", UMADV_READ(y[i]));
		umadv_free(adv, y[i]);
	}
	umadv_stats_get(adv, &b);
	return b.allocs_elsewhere - a.allocs_elsewhere;
}

static uint64_t later_iteration(uint64_t budget, int known)
{
	open_program(budget, known);
	for (int i = 0; i < 6; i++)
		iterate();
	return iterate();
}

static void test_oversubscribed(void)
{
	is_u64(later_iteration(10 * LAYER, 1), 0, "under a plan that evicts births wait for their places");
	umadv_close(adv);
}

/* A tensor that takes most of the budget, used on both streams. Returns whether it was born at its planned place. */
static int use_large(const char *name)
{
	struct umadv_stats a = {.struct_size = sizeof a}, b = a;
	void *p;

	umadv_stats_get(adv, &a);
	p = bear(name, 7 * LAYER);
	umadv_stats_get(adv, &b);
	for (int i = 0; i < STREAMS; i++)
		run(i, name, UMADV_UPDATE(p));
	umadv_free(adv, p);
	return b.allocs_planned > a.allocs_planned;
}

static void test_unknown_ends(void)
{
	int placed = 0;

	open_program(10 * LAYER, 0);
	for (int i = 0; i < 8; i++) {
		umadv_iter(adv, NULL);
		placed = use_large("first");
		placed += use_large("second");
	}
	is_int(placed, 2, "births wait for streams that are not named meanwhile");
	umadv_close(adv);
}

static void test_fits(void)
{
	ok(later_iteration(64 * LAYER, 1) > 0, "where all fits into memory births wait for nothing");
	umadv_close(adv);
}

static void test_captures(void)
{
	open_program(10 * LAYER, 1);
	adv->tensors.pool.captured = 1;
	for (int i = 0; i < 6; i++)
		iterate();
	ok(iterate() > 0, "in a program that captures births wait for nothing");
	umadv_close(adv);
}

static void hangs(int signal)
{
	(void)signal;
	printf("Bail out! no end after %d s\n", PATIENCE_S);
	fflush(stdout);
	_exit(99);
}

/* From the seventh iteration on one stream waits for a value. */
static void test_hangs(void)
{
	uint32_t word = 0;
	uint64_t begin, elsewhere = 0;

	signal(SIGALRM, hangs);
	alarm(PATIENCE_S);
	later_iteration(10 * LAYER, 1);
	um_sim_wait_value(gpu, stream[1], &word, 1);
	begin = gpu->api->now(gpu);
	for (int i = 0; i < 4; i++)
		elsewhere += iterate();
	ok(elsewhere > 0, "births go elsewhere where a stream does not end (%d)", (int)elsewhere);
	ok(adv->births_wait_from > adv->iterations.n, "for some iterations births do not wait again");
	diag("%.3f s", (double)(gpu->api->now(gpu) - begin) * 1e-9);
	word = 1;
	um_sim_sync(gpu);
	umadv_close(adv);
	alarm(0);
}

int main(void)
{
	test_oversubscribed();
	test_unknown_ends();
	test_fits();
	test_captures();
	test_hangs();
	return tap_done();
}
