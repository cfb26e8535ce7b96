/* SPDX-License-Identifier: Apache-2.0
 *
 * The processor and its memory, and the packing of small managed allocations.
 */
#include "probe/bench.h"

#define BUFFER (256ull << 20) /* beyond any cache; less if memory is short */

static void launches(struct um_bench *b)
{
	struct um_series s = {.sizes = 4, .x = {16, 64, 128, 256}};

	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < s.sizes; i++) {
			uint64_t t = um_bench_now(b);

			for (unsigned k = 0; k < (unsigned)s.x[i]; k++)
				um_bench_launch(b, b->a, &(struct um_kernel){.kind = UM_KERNEL_SPIN});
			um_bench_sync(b, b->a);
			um_bench_put(&s, r, i, (double)(um_bench_now(b) - t));
		}
	um_bench_line(b, &s, UM_OBS_LAUNCH, -1);
}

static void memory(struct um_bench *b)
{
	size_t left = 0, total = 0, bytes = BUFFER;
	void *from = NULL, *to = NULL;
	struct um_series s = {.sizes = 4, .x = {1, 2, 3, 4}}; /* quarters of the buffer */

	if (!um_bench_check(b, b->gpu->api->cudaMemGetInfo(b->gpu, &left, &total), "cudaMemGetInfo"))
		return;
	while (bytes > left / 16)
		bytes /= 2;
	if (um_bench_check(b, b->gpu->api->cudaMalloc(b->gpu, &from, bytes), "cudaMalloc"))
		um_bench_check(b, b->gpu->api->cudaMalloc(b->gpu, &to, bytes), "cudaMalloc");
	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < s.sizes; i++)
			um_bench_put(&s, r, i,
				     um_bench_kernel(b, &(struct um_kernel){.kind = UM_KERNEL_COPY,
									    .from = from,
									    .at = to,
									    .bytes = bytes / 4 * (unsigned)s.x[i]}));
	if (from)
		b->gpu->api->cudaFree(b->gpu, from);
	if (to)
		b->gpu->api->cudaFree(b->gpu, to);
	if (!b->err)
		um_bench_rate(b, UM_OBS_MEMORY, (double)(bytes / 4 * 2), um_series_line(&s).slope);
}

static void arithmetic(struct um_bench *b)
{
	struct um_series s = {.sizes = 4, .x = {500, 1000, 1500, 2000}};
	struct um_kernel k = {.kind = UM_KERNEL_FMA, .rounds = 1, .n = 2 * b->launcher->units};
	double each = um_kernel_flops(&k);

	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < s.sizes; i++) {
			k.rounds = (uint64_t)s.x[i];
			um_bench_put(&s, r, i, um_bench_kernel(b, &k));
		}
	if (!b->err)
		um_bench_rate(b, UM_OBS_FLOPS, each, um_series_line(&s).slope);
}

void um_probe_compute(struct um_bench *b)
{
	launches(b);
	memory(b);
	arithmetic(b);
}

/* The smallest distance between several small allocations. */
static void distance(struct um_bench *b, size_t bytes, enum um_observation o)
{
	void *at[8] = {NULL};
	double least = 0;

	for (unsigned i = 0; i < 8 && !b->err; i++)
		um_bench_check(b, b->gpu->api->cudaMallocManaged(b->gpu, &at[i], bytes, 1), "cudaMallocManaged");
	for (unsigned i = 0; i < 8; i++)
		for (unsigned k = 0; k < 8; k++) {
			double d = (double)(uintptr_t)at[i] - (double)(uintptr_t)at[k];

			if (d > 0 && (least == 0 || d < least))
				least = d;
		}
	for (unsigned i = 0; i < 8; i++)
		if (at[i])
			um_bench_check(b, b->gpu->api->cudaFree(b->gpu, at[i]), "cudaFree");
	um_bench_set(b, o, (struct um_figure){least, 0, 1});
}

void um_probe_packing(struct um_bench *b)
{
	distance(b, 4 << 10, UM_OBS_PACK_4K);
	distance(b, 64 << 10, UM_OBS_PACK_64K);
	distance(b, 1 << 20, UM_OBS_PACK_1M);
}
