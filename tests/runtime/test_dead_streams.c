/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that destroy their streams without umadv_forget_stream. A CUDA driver may crash when it is passed the handle
 * of a destroyed stream, so the device here counts the calls with such a handle.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#define MIB (1ull << 20)
#define TENSOR (4 * MIB)
#define SLOW 50000000
#define FAST 100000
#define STREAMS 64

static struct um_gpu *gpu;
static const struct um_gpu_api *sim;
static struct um_gpu_api api;
static um_stream dead[STREAMS];
static unsigned n_dead, n_wrong, n_syncs;
static struct umadv *adv;

/* --- a device that counts calls on destroyed streams -------------------------------------------------------------- */

static void use(um_stream s)
{
	for (unsigned i = 0; i < n_dead; i++)
		n_wrong += dead[i] == s;
}

/* CUDA gives the handle of a destroyed stream to a later one. */
static int create(struct um_gpu *g, um_stream *s, unsigned flags)
{
	int err = sim->cudaStreamCreateWithFlags(g, s, flags);

	for (unsigned i = 0; i < n_dead; i++)
		if (dead[i] == *s)
			dead[i] = UM_STREAM_NONE;
	return err;
}

static int destroy(struct um_gpu *g, um_stream s)
{
	use(s);
	if (n_dead == STREAMS)
		tap_bail("too many streams");
	dead[n_dead++] = s;
	return sim->cudaStreamDestroy(g, s);
}

static int prefetch(struct um_gpu *g, const void *p, size_t n, struct um_location to, unsigned flags, um_stream s)
{
	use(s);
	return sim->cudaMemPrefetchAsync(g, p, n, to, flags, s);
}

static int prefetch_batch(struct um_gpu *g, void **p, size_t *n, size_t count, struct um_location *to, size_t *at,
			  size_t places, unsigned long long flags, um_stream s)
{
	use(s);
	return sim->cudaMemPrefetchBatchAsync(g, p, n, count, to, at, places, flags, s);
}

static int discard_batch(struct um_gpu *g, void **p, size_t *n, size_t count, unsigned long long flags, um_stream s)
{
	use(s);
	return sim->cudaMemDiscardBatchAsync(g, p, n, count, flags, s);
}

static int renew_batch(struct um_gpu *g, void **p, size_t *n, size_t count, struct um_location *to, size_t *at,
		       size_t places, unsigned long long flags, um_stream s)
{
	use(s);
	return sim->cudaMemDiscardAndPrefetchBatchAsync(g, p, n, count, to, at, places, flags, s);
}

static int stream_sync(struct um_gpu *g, um_stream s)
{
	use(s);
	return sim->cudaStreamSynchronize(g, s);
}

static int stream_wait(struct um_gpu *g, um_stream s, um_event_handle event, unsigned flags)
{
	use(s);
	return sim->cudaStreamWaitEvent(g, s, event, flags);
}

static int capturing(struct um_gpu *g, um_stream s, int *status)
{
	use(s);
	return sim->cudaStreamIsCapturing(g, s, status);
}

static int get_id(struct um_gpu *g, um_stream s, unsigned long long *id)
{
	use(s);
	return sim->cuStreamGetId(g, s, id);
}

static int record(struct um_gpu *g, um_event_handle event, um_stream s)
{
	use(s);
	return sim->cudaEventRecord(g, event, s);
}

static int announce(struct um_gpu *g, um_stream s, const struct um_announcement *next)
{
	use(s);
	return sim->announce(g, s, next);
}

static int device_sync(struct um_gpu *g)
{
	n_syncs++;
	return sim->cudaDeviceSynchronize(g);
}

static void scene_open(const char *strategy)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = 32 * MIB, .backed = 1};
	struct umadv_options o;

	if (um_sim_open(&gpu, &so))
		tap_bail("no simulated device");
	sim = gpu->api;
	api = *sim;
	api.cudaStreamCreateWithFlags = create;
	api.cudaStreamDestroy = destroy;
	api.cudaMemPrefetchAsync = prefetch;
	api.cudaMemPrefetchBatchAsync = prefetch_batch;
	api.cudaMemDiscardBatchAsync = discard_batch;
	api.cudaMemDiscardAndPrefetchBatchAsync = renew_batch;
	api.cudaStreamSynchronize = stream_sync;
	api.cudaStreamWaitEvent = stream_wait;
	api.cudaStreamIsCapturing = capturing;
	api.cuStreamGetId = get_id;
	api.cudaEventRecord = record;
	api.announce = announce;
	api.cudaDeviceSynchronize = device_sync;
	gpu->api = &api;
	n_dead = n_wrong = n_syncs = 0;
	umadv_options_init(&o);
	o.strategy = strategy;
	o.log_level = UMADV_LOG_ERROR;
	if (um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
}

/* --- a program ---------------------------------------------------------------------------------------------------- */

static um_stream stream_new(void)
{
	um_stream s;

	if (api.cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING))
		tap_bail("no stream");
	return s;
}

static unsigned char *born(uint64_t bytes)
{
	void *p;

	if (umadv_alloc(adv, &p, bytes, "t", UMADV_ACT))
		tap_bail("no memory");
	return p;
}

static void increment(void *arg)
{
	++*(unsigned char *)arg;
}

/* An op that adds one to the tensor's first byte when it begins. */
static void launch(um_stream s, unsigned char *t, uint64_t ns)
{
	struct umadv_use uses = UMADV_UPDATE(t);
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = &uses, .n_uses = 1, .ns = ns};

	if (umadv_op_ex(adv, s, "increment", &info) ||
	    um_sim_run(gpu, s, &(struct um_sim_kernel){.announced = 1, .fn = increment, .arg = t}))
		tap_bail("an op failed");
}

static void end_stream(um_stream s)
{
	um_sim_sync(gpu);
	api.cudaStreamDestroy(gpu, s);
}

static uint64_t errors_counted(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	umadv_stats_get(adv, &s);
	return s.errors;
}

/* `streams` of them are used in some iterations and destroyed; then the tensors, more than fit the device, are freed.
 * Half of the operations come between the iterations' marks. */
static void clean_up(const char *strategy, unsigned streams, const char *what)
{
	unsigned char *t[12];
	um_stream s[3];

	scene_open(strategy);
	for (unsigned i = 0; i < streams; i++)
		s[i] = stream_new();
	for (unsigned i = 0; i < 12; i++) {
		t[i] = born(TENSOR);
		*t[i] = 0;
	}
	for (unsigned k = 0; k < 10; k++) {
		umadv_iter(adv, NULL);
		for (unsigned i = 0; i < 12; i++)
			launch(s[i % streams], t[i], FAST);
	}
	for (unsigned i = 0; i < streams; i++)
		end_stream(s[i]);
	is_int(*t[11], 10, "%s, %s: all iterations have run", strategy, what);
	for (unsigned i = 0; i < 12; i++)
		umadv_free(adv, t[i]);
	is_u64(errors_counted(), 0, "%s, %s: no error is counted", strategy, what);
	umadv_close(adv);
	is_int((int)n_wrong, 0, "%s, %s: no call with a destroyed stream's handle until the end", strategy, what);
	is_int((int)n_syncs, 0, "%s, %s: the device is not waited for", strategy, what);
}

/* Each phase has a stream and a large tensor of its own. */
static void phases(unsigned n)
{
	unsigned char *t, *kept;
	unsigned wrong = 0;

	scene_open("on-demand");
	launch(NULL, kept = born(MIB), FAST);
	for (unsigned k = 0; k < n; k++) {
		um_stream s = stream_new();

		t = born(200 * MIB);
		*t = 0;
		launch(s, t, FAST);
		launch(s, kept, FAST);
		end_stream(s);
		wrong += *t != 1;
		umadv_free(adv, t);
	}
	is_int((int)wrong, 0, "a stream for each phase: the results are right");
	is_int((int)n_wrong, 0, "a stream for each phase: no call with a destroyed stream's handle");
	ok(adv->tensors.pool.total[UM_ARENA_POOL_MAIN] <= 512 * MIB, "the phases share memory (%llu MiB for %u phases)",
	   (unsigned long long)adv->tensors.pool.total[UM_ARENA_POOL_MAIN] / MIB, n);
	is_u64(errors_counted(), 0, "no error is counted");
	umadv_close(adv);
	is_int((int)n_wrong, 0, "nor is there one when the context is closed");
}

/* A tensor that a busy stream still uses is freed, and the program does not name that stream again. */
static void untouched(void)
{
	um_stream a, b;
	unsigned char *t, *other, *u;

	scene_open("on-demand");
	a = stream_new();
	b = stream_new();
	launch(a, other = born(MIB), FAST);
	t = born(200 * MIB);
	*t = 0;
	launch(b, other, SLOW); /* a kernel computes when it begins */
	launch(b, t, SLOW);
	umadv_free(adv, t);
	u = born(32 * MIB);
	ok(u != t && um_sim_stream_query(gpu, b) == UM_CUDA_NOT_READY,
	   "memory is not used again while a stream that is not named since may use it");
	is_int((int)n_syncs, 0, "where there is other memory, the device is not waited for");
	u = born(200 * MIB);
	is_int((int)n_syncs, 1, "where there is none, it is");
	ok(u == t, "and the memory is used again");
	is_int(*t, 1, "the op has run before");
	*u = 7;
	um_sim_sync(gpu);
	is_int(*u, 7, "no later work changes its content");
	umadv_close(adv);
}

int main(void)
{
	static const char *const strategies[] = {"on-demand", "prefetch-on-use", "lookahead"};

	for (unsigned i = 0; i < 3; i++) {
		clean_up(strategies[i], 1, "one stream");
		clean_up(strategies[i], 2, "two streams");
		clean_up(strategies[i], 3, "three streams");
	}
	phases(10);
	untouched();
	return tap_done();
}
