/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan begins while the device still has earlier work for longer than an op waits: the plan pauses and is taken up
 * again, as the program did not leave its schedule.
 */
#include "runtime/context.h"

#include "sim/sim.h"
#include "tap.h"

#define MIB (1ull << 20)
#define TENSORS 16
#define TENSOR (4 * MIB)
#define BUDGET (TENSORS * TENSOR / 2)
#define PATIENCE_MS 20 /* of a wait that nothing can end */

static struct {
	unsigned plans, differs, pauses;
} logged;

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	logged.plans += strstr(line, "plan: ") != NULL;
	logged.differs += strstr(line, "differs from the schedule") != NULL;
	logged.pauses += strstr(line, "the plan pauses") != NULL;
}

static struct um_gpu *gpu;
static struct umadv *adv;
static void *tensor[TENSORS];
static um_stream stream;
static uint32_t *word;

static void open_all(void)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = BUDGET, .backed = 1, .timeout_ms = PATIENCE_MS};
	struct umadv_options o;

	if (um_sim_open(&gpu, &so))
		tap_bail("no simulated device");
	umadv_options_init(&o);
	o.budget = BUDGET;
	o.log = on_log;
	o.log_level = UMADV_LOG_INFO;
	if (um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
	for (int i = 0; i < TENSORS; i++)
		if (umadv_alloc(adv, &tensor[i], TENSOR, "t", UMADV_OTHER) || umadv_transient(adv, tensor[i]))
			tap_bail("no tensor");
	if (gpu->api->cudaStreamCreateWithFlags(gpu, &stream, UM_STREAM_NON_BLOCKING) ||
	    gpu->api->cudaHostAlloc(gpu, (void **)&word, sizeof *word, 0))
		tap_bail("no stream");
	*word = 0;
	memset(&logged, 0, sizeof logged);
}

static void op(int i, unsigned access)
{
	struct um_sim_kernel k = {.name = "k", .announced = 1};
	struct umadv_use use = umadv_use_(tensor[i], 0, 0, access);

	umadv_op(adv, stream, access == UMADV_ACCESS_READ ? "read" : "write", &use, 1);
	um_sim_run(gpu, stream, &k);
}

/* Every tensor is written as a whole, then read. */
static void iteration(void)
{
	umadv_iter(adv, NULL);
	for (int i = 0; i < TENSORS; i++)
		op(i, UMADV_ACCESS_WRITE);
	for (int i = 0; i < TENSORS; i++)
		op(i, UMADV_ACCESS_READ);
}

static struct umadv_stats stats(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	umadv_stats_get(adv, &s);
	return s;
}

/* The device waits for the host in `n` iterations from the one in which the plan begins. */
static struct umadv_stats run(unsigned n)
{
	struct umadv_stats s;

	open_all();
	iteration();
	iteration();
	for (unsigned k = 0; k < n; k++) {
		um_sim_wait_value(gpu, stream, word, k + 1);
		iteration();
	}
	__atomic_store_n(word, n, __ATOMIC_RELEASE);
	for (unsigned k = 0; k < 4; k++)
		iteration();
	is_int(gpu->api->cudaStreamSynchronize(gpu, stream), UM_CUDA_OK, "the stream's work ends");
	s = stats();
	umadv_close(adv);
	return s;
}

int main(void)
{
	struct umadv_stats s = run(1);

	ok(s.stuck > 0, "waits of ops end by their time limit (%llu)", (unsigned long long)s.stuck);
	is_u64(logged.pauses, 1, "the plan pauses");
	is_u64(logged.differs, 0, "the program did not leave the schedule");
	is_u64(logged.plans, 1, "the plan is taken up again, no other one is made");
	ok(s.hinted_iterations >= 4, "the iterations after it have hints (%llu)",
	   (unsigned long long)s.hinted_iterations);
	s = run(6);
	ok(logged.pauses >= 1 && logged.pauses <= 3, "where the device goes on waiting it pauses few times (%u)",
	   logged.pauses);
	ok(s.hinted_iterations >= 3, "in the end iterations have hints again (%llu of %llu)",
	   (unsigned long long)s.hinted_iterations, (unsigned long long)s.iterations);
	return tap_done();
}
