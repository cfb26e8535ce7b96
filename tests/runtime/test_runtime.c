/* SPDX-License-Identifier: Apache-2.0
 *
 * The front desk on a device in real time (the simulated one, its workers threads): ops are measured and planned again,
 * and what is announced during a capture is let pass.
 */
#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#include <stdatomic.h>

#define MIB (1ull << 20)
#define OPS 6
#define TENSORS 4
#define LONG_NS 2000000

static struct um_gpu *gpu;
static const struct um_gpu_api *sim;
static struct um_gpu_api api;
static _Atomic(um_stream) captured; /* is being captured; workers look, too */
static int code; /* what asking about it returns */
static atomic_int on_captured; /* calls on it */

static int capturing(struct um_gpu *g, um_stream stream, int *status)
{
	if (!captured || stream != captured)
		return sim->cudaStreamIsCapturing(g, stream, status);
	*status = 1;
	return code;
}

static int record(struct um_gpu *g, um_event_handle event, um_stream stream)
{
	on_captured += captured && stream == captured;
	return captured && stream == captured ? UM_CUDA_CAPTURING : sim->cudaEventRecord(g, event, stream);
}

static struct umadv *open_real(uint64_t budget)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = budget, .timeout_ms = 20000};
	struct umadv_options o;
	struct umadv *adv;

	if (um_sim_open(&gpu, &so))
		tap_bail("no simulated device");
	sim = gpu->api;
	api = *sim;
	api.worker_start = NULL;
	api.worker_stop = NULL;
	api.worker_poke = NULL;
	api.worker_wait = NULL;
	api.cudaStreamIsCapturing = capturing;
	api.cudaEventRecord = record;
	gpu->api = &api;
	gpu->caps.virtual_time = 0;
	umadv_options_init(&o);
	o.plan_thread = UMADV_PLAN_THREAD_OFF; /* plans begin in known iterations */
	o.budget = budget;
	o.log_level = UMADV_LOG_ERROR;
	if (um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
	return adv;
}

static int iteration(struct umadv *adv, um_stream s, void **x, int in_capture)
{
	int err = umadv_iter(adv, NULL);

	for (int i = 0; i < OPS && !err; i++) {
		void *in = x[i % TENSORS], *out = x[(i + 1) % TENSORS];

		if (i == 3 && in_capture) {
			captured = s;
			err = umadv_op(adv, s, "captured", UMADV_USES(UMADV_READ(in), UMADV_WRITE(out)));
			captured = NULL;
		}
		if (!err)
			err = umadv_op(adv, s, "op", UMADV_USES(UMADV_READ(in), UMADV_UPDATE(out)));
		struct um_touch t[2] = {{in, 4 * MIB, 0, UM_READ}, {out, 4 * MIB, 0, UM_UPDATE}};
		struct um_sim_kernel k = {.ns = LONG_NS, .access = t, .n_access = 2};

		err = err ? err : um_sim_run(gpu, s, &k);
	}
	return err;
}

static struct umadv_stats stats_of(struct umadv *adv)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	umadv_stats_get(adv, &s);
	return s;
}

int main(void)
{
	struct umadv *adv = open_real(12 * MIB);
	struct umadv_stats s;
	um_stream stream;
	void *x[TENSORS];
	int err = gpu->api->cudaStreamCreateWithFlags(gpu, &stream, UM_STREAM_NON_BLOCKING);

	for (int i = 0; i < TENSORS; i++)
		err |= umadv_alloc(adv, &x[i], 4 * MIB, "x", UMADV_OTHER);
	for (int i = 0; i < 3; i++)
		err |= iteration(adv, stream, x, 0);
	s = stats_of(adv);
	is_int(err, 0, "a program runs");
	ok(s.in_core_ns && s.in_core_ns < OPS * LONG_NS / 2, "the first plan assumes what ops take");
	for (int i = 0; i < 12 && !err; i++)
		err = um_sim_sync(gpu) || iteration(adv, stream, x, 0);
	s = stats_of(adv);
	is_u64(s.measured, OPS, "each op is measured");
	ok(s.in_core_ns >= OPS * LONG_NS && s.in_core_ns < OPS * LONG_NS * 11 / 10,
	   "the plan uses the measured time (%llu ns)", (unsigned long long)s.in_core_ns);
	is_u64(s.divergences, 0, "no iteration strayed");

	code = UM_CUDA_OK;
	err |= iteration(adv, stream, x, 1);
	code = UM_CUDA_CAPTURE_IMPLICIT;
	err |= iteration(adv, stream, x, 1);
	s = stats_of(adv);
	is_int(err, 0, "ops on a stream that is captured");
	is_u64(s.captured, 2, "captured ops are counted");
	is_u64(s.divergences, 0, "captured ops are no part of the iteration");
	is_int(on_captured, 0, "nothing was called on that stream");
	code = 400; /* cudaErrorInvalidResourceHandle */
	err = iteration(adv, stream, x, 1);
	is_int(err, 0, "an op on a stream that the device refuses does not fail the program");
	is_u64(stats_of(adv).errors, s.errors + 1, "an op on a stream that the device refuses is counted as an error");
	is_u64(stats_of(adv).captured, s.captured, "an op on a stream that the device refuses is not a captured one");
	code = UM_CUDA_OK;
	is_int(um_sim_sync(gpu), 0, "all work ends");
	umadv_close(adv);
	return tap_done();
}
