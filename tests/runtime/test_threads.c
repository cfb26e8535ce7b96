/* SPDX-License-Identifier: Apache-2.0
 *
 * Two threads of an app on one context: on the null device, where helper threads are real, in step (a regular workload,
 * with hints) and free-running (an irregular one); and on the simulated GPU, computing results. Meant for TSan; the
 * checks hold anywhere.
 */
#include "oppath_app.h"
#include "tap.h"

#include <pthread.h>

#define ITERATIONS 12
#define OPS 40

struct shared {
	struct umadv *adv;
	pthread_barrier_t barrier;
	int in_step;
	int failed;
};

struct worker {
	struct shared *s;
	int id;
	void *stream;
	uint32_t *data[4];
};

static void add_one(void *arg)
{
	uint32_t *p = arg;

	++*p;
}

/* Each thread works on its own tensors. In step, thread 0 announces its ops of an iteration, then thread 1. */
static int one_op(struct worker *w, int i, int simulate)
{
	uint32_t *a = w->data[i % 4], *b = w->data[(i + 1) % 4];
	void *scratch;
	int err = umadv_alloc(w->s->adv, &scratch, 3 << 20, "scratch", UMADV_WORKSPACE);

	if (!err)
		err = umadv_op(w->s->adv, w->stream, "op",
			       UMADV_USES(UMADV_READ(b), UMADV_UPDATE(a), UMADV_WRITE(scratch)));
	if (!err && simulate)
		err = umadv_sim_run(w->s->adv, w->stream, add_one, a);
	if (!err && i == 0)
		err = umadv_host(w->s->adv, "look", UMADV_USES(UMADV_READ_RANGE(b, 4)));
	if (!err)
		err = umadv_free(w->s->adv, scratch);
	return err;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	int err = 0, simulate = w->s->adv->device.simulated;

	for (int it = 0; it < ITERATIONS && !err; it++) {
		if (w->id == 0)
			err = umadv_iter(w->s->adv, NULL);
		pthread_barrier_wait(&w->s->barrier);
		if (w->s->in_step && w->id == 1)
			pthread_barrier_wait(&w->s->barrier);
		for (int i = 0; i < OPS && !err; i++)
			err = one_op(w, i, simulate);
		if (w->s->in_step && w->id == 0)
			pthread_barrier_wait(&w->s->barrier);
		pthread_barrier_wait(&w->s->barrier);
	}
	if (err)
		w->s->failed = err;
	return NULL;
}

static void play(const char *what, struct um_gpu *gpu, int in_step, int streams)
{
	struct shared s = {.in_step = in_step};
	struct worker w[2];
	pthread_t thread[2];
	struct umadv_options o;
	struct umadv_stats st = {.struct_size = sizeof st};
	int err;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 24 << 20;
	o.log_level = UMADV_LOG_ERROR;
	err = gpu ? um_context_open(&s.adv, &o, gpu, NULL) : umadv_open(&s.adv, &o);
	if (err)
		tap_bail("open");
	pthread_barrier_init(&s.barrier, NULL, 2);
	for (int i = 0; i < 2; i++) {
		w[i] = (struct worker){.s = &s, .id = i};
		if (i && streams > 1 &&
		    s.adv->device.gpu->api->cudaStreamCreateWithFlags(s.adv->device.gpu, &w[i].stream, 1))
			tap_bail("stream");
		for (int k = 0; k < 4; k++) {
			if (umadv_alloc(s.adv, (void **)&w[i].data[k], 4 << 20, "data", UMADV_PARAM))
				tap_bail("alloc");
			w[i].data[k][0] = 0;
		}
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, run, &w[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	ok(!s.failed, "%s: runs", what);
	umadv_stats_get(s.adv, &st);
	is_u64(st.ops, 2 * ITERATIONS * OPS, "%s: every op was seen", what);
	if (in_step)
		ok(st.hinted_iterations >= ITERATIONS - 2, "%s: in step it is regular: %llu iterations with hints",
		   what, (unsigned long long)st.hinted_iterations);
	if (s.adv->device.simulated && umadv_sim_sync(s.adv) == 0) {
		uint64_t sum = 0;

		for (int i = 0; i < 8; i++)
			sum += w[i / 4].data[i % 4][0];
		is_u64(sum, 2 * ITERATIONS * OPS, "%s: every kernel ran once, on its own data", what);
	}
	pthread_barrier_destroy(&s.barrier);
	umadv_close(s.adv);
}

/* With more streams than are told apart memory is not used again, so that no stream writes what another still reads. */
static void crowd(void)
{
	struct umadv_options o;
	struct umadv *adv;
	void *stream[UM_APP_STREAMS + 1], *a, *b;
	int apart = 1;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.log_level = UMADV_LOG_ERROR;
	if (umadv_open(&adv, &o))
		tap_bail("open");
	for (int i = 0; i <= UM_APP_STREAMS; i++) {
		if (adv->device.gpu->api->cudaStreamCreateWithFlags(adv->device.gpu, &stream[i], 1) ||
		    umadv_alloc(adv, &a, 1 << 20, "a", UMADV_OTHER) ||
		    umadv_op(adv, stream[i], "op", UMADV_USES(UMADV_WRITE(a))) || umadv_free(adv, a))
			tap_bail("crowd");
	}
	for (int i = 0; i < 8; i++) {
		if (umadv_alloc(adv, &b, 1 << 20, "b", UMADV_OTHER))
			tap_bail("alloc");
		apart &= b != a;
	}
	ok(apart, "a crowd of streams: memory is not used again");
	umadv_close(adv);
}

static struct um_gpu *null_gpu(unsigned fail_nth)
{
	struct um_gpu *gpu;

	if (um_null_open(&gpu, 1ull << 30, fail_nth))
		tap_bail("null device");
	return gpu;
}

int main(void)
{
	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	play("null, in step, one stream", null_gpu(0), 1, 1);
	play("null, in step, two streams", null_gpu(0), 1, 2);
	play("null, free-running", null_gpu(0), 0, 2);
	play("null, every third hint refused", null_gpu(3), 1, 1);
	play("simulated, in step", NULL, 1, 2);
	play("simulated, free-running", NULL, 0, 2);
	crowd();
	return tap_done();
}
