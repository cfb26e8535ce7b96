/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that create and destroy streams, and host threads that share the default stream. NULL is compiled as the
 * calling thread's stream here, as nvcc --default-stream per-thread does it.
 */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "fixture/streams.h"
#include "tap.h"

#include <pthread.h>

#define MIB (1ull << 20)
#define SLOW 50000000
#define TENSORS 20 /* of a program that exceeds the device */
#define DEVICE (32 * MIB)
#define LEGACY UM_STREAM_LEGACY

static struct um_gpu *gpu;
static const struct um_gpu_api *sim;
static struct um_gpu_api api;
static unsigned long long moved; /* added to ids: handles name other streams from now on */
static int sync_code; /* of cudaStreamSynchronize, if not 0 */
static char logged[400];
static struct umadv *adv;

static int get_id(struct um_gpu *g, um_stream stream, unsigned long long *id)
{
	int err = sim->cuStreamGetId(g, stream, id);

	*id += err ? 0 : moved;
	return err;
}

static int synchronise(struct um_gpu *g, um_stream stream)
{
	return sync_code ? sync_code : sim->cudaStreamSynchronize(g, stream);
}

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	snprintf(logged, sizeof logged, "%s", line);
}

static void scene_open(void)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = DEVICE, .backed = 1};
	struct umadv_options o;

	if (um_sim_open(&gpu, &so))
		tap_bail("no simulated device");
	sim = gpu->api;
	api = *sim;
	api.cuStreamGetId = get_id;
	api.cudaStreamSynchronize = synchronise;
	gpu->api = &api;
	moved = 0;
	sync_code = 0;
	logged[0] = '\0';
	umadv_options_init(&o);
	o.log = on_log;
	if (um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
}

static unsigned char *born(uint64_t bytes)
{
	void *p;

	if (umadv_alloc(adv, &p, bytes, "t", UMADV_PARAM))
		tap_bail("no memory");
	return p;
}

static void increment(void *arg)
{
	++*(unsigned char *)arg;
}

/* An op that adds one to the first byte of the tensor. */
static void launch(um_stream stream, unsigned char *tensor, uint64_t ns)
{
	struct umadv_use use = UMADV_UPDATE(tensor);
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = &use, .n_uses = 1, .ns = ns};

	if (umadv_op_ex(adv, stream, "increment", &info) ||
	    um_sim_run(gpu, stream ? stream : UM_STREAM_PER_THREAD,
		       &(struct um_sim_kernel){.announced = 1, .fn = increment, .arg = tensor}))
		tap_bail("an op failed");
}

static struct um_app_streams *streams(void)
{
	return &adv->tensors.pool.streams;
}

/* Each iteration has two streams of its own. Returns the hinted iterations; counts wrong tensors. */
static uint64_t stream_per_iteration(int iterations, int *wrong)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	unsigned char *t[TENSORS];

	scene_open();
	for (int i = 0; i < TENSORS; i++)
		t[i] = born(2 * MIB);
	for (int k = 0; k < iterations; k++) {
		um_stream mine[2] = {fx_stream(sim, gpu), fx_stream(sim, gpu)};

		umadv_iter(adv, NULL);
		for (int i = 0; i < TENSORS; i++)
			launch(mine[i % 2], t[i], 100000);
		for (int i = 0; i < 2; i++) {
			if (umadv_forget_stream(adv, mine[i]))
				tap_bail("a stream was not forgotten");
			sim->cudaStreamDestroy(gpu, mine[i]);
		}
	}
	umadv_stats_get(adv, &s);
	umadv_sim_sync(adv);
	*wrong = 0;
	for (int i = 0; i < TENSORS; i++)
		*wrong += *t[i] != iterations;
	umadv_close(adv);
	return s.hinted_iterations;
}

static void created_and_destroyed(void)
{
	int wrong;

	ok(stream_per_iteration(30, &wrong) >= 28, "a program with new streams in each iteration keeps its hints");
	is_int(wrong, 0, "its results are right");
}

static void forgotten(void)
{
	um_stream s;
	unsigned char *t;

	scene_open();
	s = fx_stream(sim, gpu);
	t = born(MIB);
	launch(s, t, SLOW);
	launch(LEGACY, born(MIB), SLOW);
	umadv_free(adv, t);
	is_int(umadv_forget_stream(adv, s), 0, "a stream with work is forgotten");
	is_int(*t, 1, "its work is complete then");
	is_int(streams()->live, 2, "its number is free");
	is_int(umadv_forget_stream(adv, s), 0, "a stream that is not known is forgotten at once");
	launch(s, born(MIB), 1000);
	is_int(streams()->live, 3, "a stream that was forgotten may have ops again");
	is_str(logged, "", "nothing is logged");
	umadv_close(adv);
	is_int(umadv_forget_stream(NULL, NULL), -EINVAL, "no context: refused");
}

static void not_forgotten(void)
{
	um_stream s;

	scene_open();
	s = fx_stream(sim, gpu);
	launch(s, born(MIB), 1000);
	sync_code = UM_CUDA_CAPTURING;
	is_int(umadv_forget_stream(adv, s), -EBUSY, "a stream that captures cannot be forgotten");
	sync_code = UM_CUDA_INVALID_VALUE;
	is_int(umadv_forget_stream(adv, s), -EIO, "nor can one that CUDA does not wait for");
	is_int(streams()->live, 1, "it is still known");
	sync_code = UM_CUDA_INVALID_HANDLE;
	is_int(umadv_forget_stream(adv, s), 0, "a stream that was destroyed is forgotten");
	is_int(streams()->live, 0, "it is not known any more");
	umadv_close(adv);
}

/* CUDA gives a handle to another stream. */
static void handle_again(void)
{
	um_stream s;

	scene_open();
	s = fx_stream(sim, gpu);
	launch(s, born(MIB), 1000);
	launch(s, born(MIB), 1000);
	is_str(logged, "", "a stream that keeps its id is the same stream");
	moved = 100;
	launch(s, born(MIB), 1000);
	ok(strstr(logged, "umadv_forget_stream"), "a handle with another id names another stream: %s", logged);
	is_int(streams()->live, 1, "the earlier one is forgotten");
	umadv_close(adv);
}

static void idle(void)
{
	unsigned char *t, *other;

	scene_open();
	t = born(MIB);
	other = born(MIB);
	for (int k = 0; k < 2 * UM_APP_STREAMS; k++) {
		launch(fx_stream(sim, gpu), t, 1000);
		for (int i = 0; i < 5000; i++)
			launch(LEGACY, other, 1000);
	}
	is_int(streams()->overflow, 0, "streams without ops for long make room for new ones");
	ok(streams()->n <= 5, "they give up their numbers");
	umadv_close(adv);
}

static void *pass_null(void *arg)
{
	launch(NULL, arg, SLOW);
	return NULL;
}

static void *pass_zero(void *arg)
{
	struct umadv_use use = UMADV_UPDATE(arg);

	(umadv_op)(adv, NULL, "legacy", &use, 1);
	return NULL;
}

static void in_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg) || pthread_join(thread, NULL))
		tap_bail("no thread");
}

static void per_thread(void)
{
	scene_open();
	launch(NULL, born(MIB), SLOW);
	in_thread(pass_null, born(MIB));
	is_int(streams()->live, 3, "compiled for per-thread default streams, NULL is another stream in each thread");
	umadv_close(adv);
}

static void shared_null(void)
{
	unsigned char *t;

	scene_open();
	t = born(MIB);
	pass_zero(t);
	ok(um_app_streams_one(streams()), "handle 0 of one thread is one stream");
	in_thread(pass_zero, t);
	launch(LEGACY, t, SLOW);
	ok(!um_app_streams_one(streams()), "handle 0 of two threads may be two streams");
	umadv_free(adv, t);
	ok(born(MIB) != t, "so memory is used again only after events on both");
	umadv_close(adv);
}

int main(void)
{
	created_and_destroyed();
	forgotten();
	not_forgotten();
	handle_again();
	idle();
	per_thread();
	shared_null();
	return tap_done();
}
