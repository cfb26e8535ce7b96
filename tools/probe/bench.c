/* SPDX-License-Identifier: Apache-2.0
 *
 * With simulated time the clock is the device's, and few rounds suffice; otherwise it is the machine's.
 */
#include "probe/bench.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

#include "probe/guard.h"

uint64_t um_bench_now(struct um_bench *b)
{
	return b->gpu->api->now ? b->gpu->api->now(b->gpu) : um_clock_ns(CLOCK_MONOTONIC);
}

int um_bench_check(struct um_bench *b, int cuda_error, const char *call)
{
	if (cuda_error && !b->err) {
		b->err = -EIO;
		snprintf(b->why, b->size, "%s returned CUDA error %d", call, cuda_error);
	}
	return !b->err;
}

/* Adds a block, because small allocations may begin anywhere. */
struct um_piece um_bench_alloc(struct um_bench *b, unsigned blocks)
{
	uint64_t bytes = (blocks + 1) * UM_BLOCK_BYTES;
	struct um_piece p = {NULL, NULL};
	char why[160];

	if (b->err)
		return p;
	if (bytes > b->budget) {
		snprintf(why, sizeof why, "%u blocks of 2 MiB are more than the budget", blocks + 1);
		b->err = -EPERM;
	} else {
		b->err = um_probe_guard(b->gpu, bytes, 0, why, sizeof why);
	}
	if (b->err) {
		snprintf(b->why, b->size, "%s", why);
		return p;
	}
	if (um_bench_check(b, b->gpu->api->cudaMallocManaged(b->gpu, &p.base, bytes, 1), "cudaMallocManaged"))
		p.at = (char *)p.base + (-(uintptr_t)p.base & (UM_BLOCK_BYTES - 1));
	return p;
}

/* Also frees after a failure: the next probe may run in this process. */
void um_bench_free(struct um_bench *b, struct um_piece *p)
{
	if (p->base)
		um_bench_check(b, b->gpu->api->cudaFree(b->gpu, p->base), "cudaFree");
	p->base = p->at = NULL;
}

double um_bench_prefetch(struct um_bench *b, void *at, uint64_t bytes, int to_host, um_stream stream)
{
	struct um_location to = to_host ? um_on_host() : um_on_device(b->gpu->caps.device);
	uint64_t t;

	if (b->err)
		return 0;
	t = um_bench_now(b);
	um_bench_check(b, b->gpu->api->cudaMemPrefetchAsync(b->gpu, at, bytes, to, 0, stream), "cudaMemPrefetchAsync");
	return (double)(um_bench_now(b) - t);
}

double um_bench_discard(struct um_bench *b, void *at, uint64_t bytes, um_stream stream)
{
	size_t size = bytes;
	uint64_t t;

	if (b->err)
		return 0;
	t = um_bench_now(b);
	um_bench_check(b, b->gpu->api->cudaMemDiscardBatchAsync(b->gpu, &at, &size, 1, 0, stream),
		       "cudaMemDiscardBatchAsync");
	return (double)(um_bench_now(b) - t);
}

double um_bench_renew(struct um_bench *b, void *at, uint64_t bytes, um_stream stream)
{
	struct um_location to = um_on_device(b->gpu->caps.device);
	size_t size = bytes, index = 0;
	uint64_t t;

	if (b->err)
		return 0;
	t = um_bench_now(b);
	um_bench_check(
		b, b->gpu->api->cudaMemDiscardAndPrefetchBatchAsync(b->gpu, &at, &size, 1, &to, &index, 1, 0, stream),
		"cudaMemDiscardAndPrefetchBatchAsync");
	return (double)(um_bench_now(b) - t);
}

double um_bench_advise(struct um_bench *b, void *at, uint64_t bytes, int advice, int host)
{
	struct um_location where = host ? um_on_host() : um_on_device(b->gpu->caps.device);
	uint64_t t;

	if (b->err)
		return 0;
	t = um_bench_now(b);
	um_bench_check(b, b->gpu->api->cudaMemAdvise(b->gpu, at, bytes, advice, where), "cudaMemAdvise");
	return (double)(um_bench_now(b) - t);
}

void um_bench_sync(struct um_bench *b, um_stream stream)
{
	if (!b->err)
		um_bench_check(b, b->gpu->api->cudaStreamSynchronize(b->gpu, stream), "cudaStreamSynchronize");
}

void um_bench_launch(struct um_bench *b, um_stream stream, const struct um_kernel *k)
{
	if (!b->err)
		um_bench_check(b, b->launcher->launch(b->launcher, stream, k), "a launch");
}

double um_bench_kernel(struct um_bench *b, const struct um_kernel *k)
{
	uint64_t t = um_bench_now(b);

	um_bench_launch(b, b->a, k);
	um_bench_sync(b, b->a);
	return (double)(um_bench_now(b) - t);
}

double um_bench_move(struct um_bench *b, void *at, uint64_t bytes, int to_host)
{
	uint64_t t = um_bench_now(b);

	um_bench_prefetch(b, at, bytes, to_host, b->a);
	um_bench_sync(b, b->a);
	return (double)(um_bench_now(b) - t);
}

void um_bench_touch(struct um_bench *b, void *at, uint64_t bytes)
{
	if (!b->err)
		um_bench_check(b, b->launcher->host_touch(b->launcher, at, bytes), "a touch by the CPU");
}

void um_bench_sizes(struct um_series *s, unsigned most)
{
	*s = (struct um_series){.sizes = 5, .x = {1}};
	for (unsigned i = 1; i < s->sizes; i++)
		s->x[i] = 1 + (most - 1) * i / (s->sizes - 1);
}

void um_bench_put(struct um_series *s, unsigned round, unsigned size, double y)
{
	if (!round)
		return;
	s->y[round - 1][size] = y;
	s->rounds = round;
}

void um_bench_set(struct um_bench *b, enum um_observation o, struct um_figure f)
{
	if (!b->err)
		b->out->at[o] = f;
}

void um_bench_line(struct um_bench *b, const struct um_series *s, enum um_observation slope, int fixed)
{
	struct um_line l;

	if (b->err)
		return;
	l = um_series_line(s);
	um_bench_set(b, slope, l.slope);
	if (fixed >= 0)
		um_bench_set(b, (enum um_observation)fixed, l.fixed);
}

void um_bench_rate(struct um_bench *b, enum um_observation o, double units, struct um_figure ns)
{
	if (ns.n && ns.value > 0)
		um_bench_set(b, o,
			     (struct um_figure){units / ns.value * 1e9, units / ns.value * 1e9 * ns.spread / ns.value,
						ns.n});
}
