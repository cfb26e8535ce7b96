/* SPDX-License-Identifier: Apache-2.0
 *
 * umadv_alloc_async and umadv_free_async: which memory is reused, when, and what it is ordered after. With an argument
 * it runs a program alone: tests/runtime/alloc_async_memory.sh fails its allocations in turn, and refuses status 3.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "fixture/streams.h"
#include "tap.h"

#include <errno.h>

#define MIB (1ull << 20)
#define SLOW 50000000
#define FAST 1000

static struct um_gpu *gpu;
static const struct um_gpu_api *sim;
static struct um_gpu_api api;
static um_stream captured; /* NULL: none */
static int no_memory; /* the device has no more */
static struct umadv *adv;

static int capturing(struct um_gpu *g, um_stream stream, int *status)
{
	int err = sim->cudaStreamIsCapturing(g, stream, status);

	if (captured && stream == captured)
		*status = 1;
	return err;
}

static int get(struct um_gpu *g, void **ptr, size_t bytes, unsigned flags)
{
	return no_memory ? UM_CUDA_NO_MEMORY : sim->cudaMallocManaged(g, ptr, bytes, flags);
}

static int open_context(void)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = 64 * MIB, .backed = 1};
	struct umadv_options o;

	if (um_sim_open(&gpu, &so))
		return -ENOMEM;
	sim = gpu->api;
	api = *sim;
	api.cudaStreamIsCapturing = capturing;
	api.cudaMallocManaged = get;
	gpu->api = &api;
	captured = NULL;
	no_memory = 0;
	umadv_options_init(&o);
	o.strategy = "on-demand";
	o.log_level = UMADV_LOG_ERROR;
	return um_context_open(&adv, &o, gpu, v100);
}

static void scene_open(void)
{
	if (open_context())
		tap_bail("no context");
}

static unsigned char *born(um_stream stream)
{
	void *p;

	if (umadv_alloc_async(adv, &p, MIB, "t", UMADV_ACT, stream))
		tap_bail("no memory");
	return p;
}

/* An op that writes the tensor, `ns` long. */
static int work(um_stream stream, void *tensor, uint64_t ns)
{
	struct umadv_use use = UMADV_WRITE(tensor);
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = &use, .n_uses = 1, .ns = ns};

	return umadv_op_ex(adv, stream, "work", &info) ||
	       um_sim_run(gpu, stream, &(struct um_sim_kernel){.announced = 1});
}

static void launch(um_stream stream, void *tensor, uint64_t ns)
{
	if (work(stream, tensor, ns))
		tap_bail("an op failed");
}

/* Fills the tensor without an announcement. */
static void fill(um_stream stream, unsigned char *tensor, unsigned value)
{
	if (um_sim_set(gpu, stream, &(struct um_sim_set){tensor, MIB, MIB, 1, value, 1}))
		tap_bail("a fill failed");
}

/* A stream that has had an op: tensors born before the first one lie elsewhere. */
static um_stream used_stream(void)
{
	um_stream s = fx_stream(sim, gpu);

	launch(s, born(s), FAST);
	return s;
}

static int busy(um_stream stream)
{
	return um_sim_stream_query(gpu, stream) == UM_CUDA_NOT_READY;
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static void arguments(void)
{
	void *p = NULL, *q = NULL;

	scene_open();
	is_int(umadv_alloc_async(NULL, &p, MIB, "t", UMADV_ACT, NULL), -EINVAL, "an allocation needs a context");
	is_int(umadv_alloc_async(adv, NULL, MIB, "t", UMADV_ACT, NULL), -EINVAL, "an allocation needs an output");
	is_int(umadv_alloc_async(adv, &p, 0, "t", UMADV_ACT, NULL), -EINVAL, "no bytes cannot be allocated");
	is_int(umadv_alloc_async(adv, &p, SIZE_MAX, "t", UMADV_ACT, NULL), -EINVAL, "a size is at most half of all");
	is_int(umadv_alloc_async(adv, &p, MIB, "t", (enum umadv_role)99, NULL), -EINVAL, "a role must be known");
	is_int(umadv_alloc_async(adv, &p, MIB, "t", (enum umadv_role) - 1, NULL), -EINVAL, "no role is negative");
	is_int(umadv_free_async(NULL, &p, NULL), -EINVAL, "a free needs a context");
	is_int(umadv_free_async(adv, NULL, NULL), 0, "a free of NULL does nothing");
	is_int(umadv_free_async(adv, &p, NULL), -EINVAL, "memory of the program's own cannot be freed");
	ok(p == NULL, "a refused allocation sets no output");
	is_int(umadv_alloc_async(adv, &p, MIB, NULL, UMADV_COMM, NULL), 0, "memory for communication is allocated");
	is_int(umadv_free_async(adv, p, NULL), 0, "memory for communication is freed");
	p = born(NULL);
	is_int(umadv_free_async(adv, (char *)p + 1, NULL), -EINVAL, "a tensor is freed by its start only");
	is_int(umadv_adopt(adv, p, MIB / 2, "part", UMADV_ACT), 0, "a part of the tensor is adopted");
	is_int(umadv_free_async(adv, p, NULL), -EINVAL, "a tensor with parts is not freed");
	umadv_disown(adv, p, MIB / 2);
	is_int(umadv_free_async(adv, p, NULL), 0, "it is freed once the part is withdrawn");
	is_int(umadv_free_async(adv, p, NULL), -EINVAL, "a tensor is freed once");
	umadv_alloc(adv, &q, MIB, "q", UMADV_ACT);
	is_int(umadv_free_async(adv, q, NULL), 0, "memory of umadv_alloc is freed in stream order");
	is_int(umadv_free(adv, born(NULL)), 0, "memory of umadv_alloc_async is freed by umadv_free");
	umadv_close(adv);
}

static void out_of_memory(void)
{
	void *p = &p;

	scene_open();
	no_memory = 1;
	is_int(umadv_alloc_async(adv, &p, MIB, "t", UMADV_ACT, fx_stream(sim, gpu)), -ENOMEM,
	       "a device without memory is reported");
	ok(p == &p, "an allocation that failed sets no output");
	no_memory = 0;
	is_int(umadv_alloc_async(adv, &p, MIB, "t", UMADV_ACT, NULL), 0, "it succeeds when there is memory");
	umadv_close(adv);
}

/* --- reuse -------------------------------------------------------------------------------------------------------- */

static void one_stream(void)
{
	unsigned char *t;
	um_stream a;

	scene_open();
	a = used_stream();
	t = born(a);
	launch(a, t, SLOW);
	umadv_free_async(adv, t, a);
	ok(busy(a) && born(a) == t, "with one stream memory is reused at once");
	umadv_close(adv);
}

/* Two tensors of stream A, and work on B that goes on. `early` is freed by umadv_free, `late` by umadv_free_async. */
struct pair {
	um_stream a, b;
	unsigned char *early, *late;
};

static void open_pair(struct pair *p)
{
	unsigned char *other;

	scene_open();
	p->a = used_stream();
	p->b = fx_stream(sim, gpu);
	p->early = born(p->a);
	p->late = born(p->a);
	other = born(p->b);
	launch(p->a, p->early, FAST);
	launch(p->a, p->late, SLOW);
	launch(p->b, other, FAST);
	launch(p->b, other, 100ull * SLOW);
}

/* The program names both streams, and their work ends. */
static void name_both(const struct pair *p)
{
	launch(p->a, born(p->a), FAST);
	launch(p->b, born(p->b), FAST);
	um_sim_sync(gpu);
}

static void two_streams(void)
{
	struct pair p;

	open_pair(&p);
	umadv_free_async(adv, p.late, p.a);
	ok(born(p.a) != p.late, "with two streams memory is not reused before the stream of its free is complete");
	sim->cudaStreamSynchronize(gpu, p.a);
	ok(busy(p.b) && born(p.a) == p.late, "it is reused then, although the other stream is busy");
	umadv_close(adv);

	open_pair(&p);
	umadv_free(adv, p.early);
	umadv_free_async(adv, p.late, p.a);
	sim->cudaStreamSynchronize(gpu, p.a);
	ok(busy(p.b) && born(p.a) == p.late, "memory that waits for a busy stream does not delay memory that does not");
	ok(busy(p.b) && born(p.a) != p.early, "memory of umadv_free waits for all streams");
	name_both(&p);
	ok(born(p.a) == p.early, "and is reused after work of each that comes later");
	umadv_close(adv);
}

/* The stream of the free is not the one that used the memory: the program has ordered it after that. */
static void other_stream(void)
{
	struct pair p;

	open_pair(&p);
	umadv_free_async(adv, p.late, p.b);
	sim->cudaStreamSynchronize(gpu, p.a);
	ok(busy(p.b) && born(p.a) != p.late, "memory waits for the stream of its free, not for that of its use");
	um_sim_sync(gpu);
	ok(born(p.a) == p.late, "it is reused after that");
	umadv_close(adv);
}

/* --- order -------------------------------------------------------------------------------------------------------- */

static void new_stream_waits(void)
{
	unsigned char *t;
	um_stream a, b;

	scene_open();
	a = used_stream();
	b = fx_stream(sim, gpu);
	t = born(a);
	launch(a, t, SLOW);
	fill(a, t, 1); /* it begins after the op */
	umadv_free_async(adv, t, a);
	ok(born(b) == t, "a stream that is named by umadv_alloc_async first gets memory that another one still uses");
	fill(b, t, 2);
	um_sim_sync(gpu);
	is_int(t[MIB - 1], 2, "its work waits for the earlier use");
	umadv_close(adv);
}

static void free_names_stream(void)
{
	unsigned char *t, *u;
	um_stream a, b;

	scene_open();
	a = used_stream();
	b = fx_stream(sim, gpu);
	t = born(a);
	u = born(a);
	launch(a, t, FAST);
	launch(a, u, SLOW);
	umadv_free_async(adv, t, b);
	is_int(adv->tensors.pool.streams.live, 3, "umadv_free_async names its stream");
	sim->cudaStreamSynchronize(gpu, b);
	ok(busy(a) && born(b) == t, "memory that a new stream frees is reused after that stream");
	umadv_close(adv);
}

static void too_many_streams(void)
{
	um_stream s = NULL;
	unsigned char *t;

	scene_open();
	for (int i = 0; i <= UM_APP_STREAMS; i++) {
		s = fx_stream(sim, gpu);
		launch(s, born(s), SLOW);
	}
	t = born(s);
	launch(s, t, FAST);
	is_int(umadv_free_async(adv, t, s), 0, "memory is freed on a stream that has no number");
	um_sim_sync(gpu);
	ok(born(s) != t, "with more streams than the context numbers it reuses no memory");
	umadv_close(adv);
}

/* --- capture ------------------------------------------------------------------------------------------------------ */

static void in_capture(void)
{
	struct pair p;
	um_stream c;

	scene_open();
	c = captured = fx_stream(sim, gpu);
	ok(born(c) != NULL, "memory is allocated on a stream that captures");
	is_int(adv->tensors.pool.streams.live, 0, "a capture names no stream");
	umadv_close(adv);

	open_pair(&p);
	captured = p.a;
	is_int(umadv_free_async(adv, p.early, p.a), 0, "memory is freed on a stream that captures");
	captured = NULL;
	sim->cudaStreamSynchronize(gpu, p.a);
	ok(busy(p.b) && born(p.a) != p.early, "then it waits for all streams, as with umadv_free");
	name_both(&p);
	ok(born(p.a) == p.early, "and is reused after work of each that comes later");
	umadv_close(adv);
}

/* --- a program alone ---------------------------------------------------------------------------------------------- */

/* It goes on whatever fails, and no two live tensors share memory. */
static int run_alone(void)
{
	unsigned char *t[8] = {0};
	int refused = 0, err = open_context();
	um_stream s[3] = {NULL};

	if (err)
		return err == -ENOMEM ? 1 : 3;
	for (int i = 0; i < 3; i++)
		if (sim->cudaStreamCreateWithFlags(gpu, &s[i], UM_STREAM_NON_BLOCKING))
			return 1;
	for (int i = 0; i < 64; i++) {
		unsigned char **p = &t[i % 8];
		void *q = NULL;

		if (*p && (**p != i % 8 || umadv_free_async(adv, *p, s[i / 8 % 3])))
			return 3;
		*p = NULL;
		err = umadv_alloc_async(adv, &q, MIB, "t", UMADV_ACT, s[i % 3]);
		if (err && err != -ENOMEM)
			return 3;
		refused += err != 0;
		*p = q;
		if (q)
			**p = (unsigned char)(i % 8);
		if (q && i % 2 && work(s[i % 3], q, FAST))
			return 1;
	}
	umadv_close(adv);
	return refused != 0;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return run_alone();
	arguments();
	out_of_memory();
	one_stream();
	two_streams();
	other_stream();
	new_stream_waits();
	free_names_stream();
	too_many_streams();
	in_capture();
	return tap_done();
}
