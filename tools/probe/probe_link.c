/* SPDX-License-Identifier: Apache-2.0
 *
 * The link. On a fast link the driver's work takes longer than its copies, so rates follow from single blocks: the same
 * work with more bytes to copy.
 */
#include "probe/bench.h"

#define PAGES 32u /* of 64 KiB in a block */
#define STEPS 4u

static const double steps[STEPS] = {4, 12, 22, 32}; /* pages */

/* Of one block: the call that moves its pages to the device, and the one that moves them to the host. */
static void by_pages(struct um_bench *b, struct um_piece *p)
{
	struct um_series to = {.sizes = STEPS}, home = {.sizes = STEPS};

	for (unsigned i = 0; i < STEPS; i++)
		to.x[i] = home.x[i] = steps[i];
	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < STEPS; i++) {
			uint64_t bytes = (uint64_t)steps[i] * UM_PLACE_BYTES;

			um_bench_put(&to, r, i, um_bench_move(b, p->at, bytes, 0));
			um_bench_move(b, p->at, UM_BLOCK_BYTES, 0);
			um_bench_put(&home, r, i, um_bench_move(b, p->at, bytes, 1));
			um_bench_move(b, p->at, UM_BLOCK_BYTES, 1);
		}
	um_bench_line(b, &to, UM_OBS_H2D_PAGE, -1);
	um_bench_line(b, &home, UM_OBS_D2H_PAGE, -1);
	if (!b->err)
		um_bench_set(b, UM_OBS_D2H_BLOCK, um_series_at(&home, STEPS - 1));
}

/* Half a block in one piece, and in 16. */
static void by_pieces(struct um_bench *b, struct um_piece *p)
{
	double more[UM_ROUNDS_MAX];

	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		double many, one;

		for (unsigned i = 0; i < PAGES; i += 2)
			um_bench_prefetch(b, p->at + (uint64_t)i * UM_PLACE_BYTES, UM_PLACE_BYTES, 0, b->a);
		um_bench_sync(b, b->a);
		many = um_bench_move(b, p->at, UM_BLOCK_BYTES, 0);
		um_bench_move(b, p->at, UM_BLOCK_BYTES, 1);
		um_bench_move(b, p->at, UM_BLOCK_BYTES / 2, 0);
		one = um_bench_move(b, p->at, UM_BLOCK_BYTES, 0);
		um_bench_move(b, p->at, UM_BLOCK_BYTES, 1);
		more[r ? r - 1 : 0] = (many - one) / (PAGES / 2 - 1);
	}
	if (!b->err)
		um_bench_set(b, UM_OBS_H2D_RUN, um_figure_of(more, b->rounds));
}

void um_probe_pages(struct um_bench *b)
{
	struct um_piece p = um_bench_alloc(b, 1);

	um_bench_touch(b, p.at, UM_BLOCK_BYTES);
	um_bench_move(b, p.at, UM_BLOCK_BYTES, 0);
	um_bench_move(b, p.at, UM_BLOCK_BYTES, 1);
	by_pages(b, &p);
	by_pieces(b, &p);
	um_bench_free(b, &p);
}

/* Costs of a prefetch to the host besides the copy: host memory, which a block gets once, and the CPU's mappings. Only
 * mappings remain for memory that the device has populated on the host, by a first read with a preferred location there
 * (for an atomic access the driver would migrate it). */
void um_probe_home(struct um_bench *b)
{
	struct um_series map = {.sizes = STEPS};
	double first[UM_ROUNDS_MAX], nothing[UM_ROUNDS_MAX];

	for (unsigned i = 0; i < STEPS; i++)
		map.x[i] = steps[i];
	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		struct um_piece p = um_bench_alloc(b, 1);

		um_bench_move(b, p.at, UM_BLOCK_BYTES, 0);
		first[r ? r - 1 : 0] = um_bench_move(b, p.at, UM_BLOCK_BYTES, 1);
		um_bench_free(b, &p);
		for (unsigned i = 0; i < STEPS; i++) {
			p = um_bench_alloc(b, 1);
			um_bench_advise(b, p.at, UM_BLOCK_BYTES, UM_ADV_SET_PREFERRED, 1);
			um_bench_kernel(b, &(struct um_kernel){.kind = UM_KERNEL_TOUCH,
							       .at = p.at,
							       .n = 1,
							       .rows = 1,
							       .stride = UM_BLOCK_BYTES,
							       .serial = 1});
			um_bench_put(&map, r, i, um_bench_move(b, p.at, (uint64_t)steps[i] * UM_PLACE_BYTES, 1));
			nothing[r ? r - 1 : 0] = um_bench_move(b, p.at, (uint64_t)steps[i] * UM_PLACE_BYTES, 1);
			um_bench_free(b, &p);
		}
	}
	um_bench_line(b, &map, UM_OBS_MAP_PAGE, -1);
	if (b->err)
		return;
	um_bench_set(b, UM_OBS_MAP_BLOCK, um_series_at(&map, STEPS - 1));
	um_bench_set(b, UM_OBS_MAP_NOTHING, um_figure_of(nothing, b->rounds));
	um_bench_set(b, UM_OBS_D2H_BLOCK_FIRST, um_figure_of(first, b->rounds));
}

/* Copies between pinned and device memory, for comparison. */
static void pinned(struct um_bench *b, void *device, void *host, int to_device, enum um_observation o)
{
	struct um_series s = {.sizes = 4, .x = {1, 2, 4, 8}}; /* MiB */

	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < s.sizes; i++) {
			uint64_t t = um_bench_now(b), bytes = (uint64_t)s.x[i] << 20;

			um_bench_check(b,
				       b->launcher->copy(b->launcher, b->a, to_device ? device : host,
							 to_device ? host : device, bytes, to_device),
				       "a copy");
			um_bench_sync(b, b->a);
			um_bench_put(&s, r, i, (double)(um_bench_now(b) - t));
		}
	if (!b->err)
		um_bench_rate(b, o, 1 << 20, um_series_line(&s).slope);
}

void um_probe_link(struct um_bench *b)
{
	const size_t bytes = 8u << 20;
	void *device = NULL, *host = NULL;

	if (um_bench_check(b, b->gpu->api->cudaMalloc(b->gpu, &device, bytes), "cudaMalloc") &&
	    um_bench_check(b, b->gpu->api->cudaHostAlloc(b->gpu, &host, bytes, 0), "cudaHostAlloc")) {
		pinned(b, device, host, 1, UM_OBS_LINK_H2D);
		pinned(b, device, host, 0, UM_OBS_LINK_D2H);
	}
	if (host)
		b->gpu->api->cudaFreeHost(b->gpu, host);
	if (device)
		b->gpu->api->cudaFree(b->gpu, device);
}

/* Many blocks in one call, as in hints: the sum of all costs. */
void um_probe_rates(struct um_bench *b)
{
	double to[UM_ROUNDS_MAX], home[UM_ROUNDS_MAX];
	uint64_t bytes = b->blocks * UM_BLOCK_BYTES;
	struct um_piece p = um_bench_alloc(b, b->blocks);

	um_bench_touch(b, p.at, bytes);
	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		unsigned k = r ? r - 1 : 0;

		to[k] = um_bench_move(b, p.at, bytes, 0);
		home[k] = um_bench_move(b, p.at, bytes, 1);
	}
	um_bench_free(b, &p);
	if (b->err)
		return;
	um_bench_rate(b, UM_OBS_RATE_H2D, (double)bytes, um_figure_of(to, b->rounds));
	um_bench_rate(b, UM_OBS_RATE_D2H, (double)bytes, um_figure_of(home, b->rounds));
}

/* Pages written by the CPU that the device reads over the link. */
void um_probe_remote(struct um_bench *b)
{
	struct um_series s;
	struct um_piece p = um_bench_alloc(b, b->blocks);

	um_bench_sizes(&s, b->blocks);
	um_bench_advise(b, p.at, b->blocks * UM_BLOCK_BYTES, UM_ADV_SET_PREFERRED, 1);
	um_bench_advise(b, p.at, b->blocks * UM_BLOCK_BYTES, UM_ADV_SET_ACCESSED_BY, 0);
	um_bench_touch(b, p.at, b->blocks * UM_BLOCK_BYTES);
	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < s.sizes; i++)
			um_bench_put(
				&s, r, i,
				um_bench_kernel(b, &(struct um_kernel){.kind = UM_KERNEL_READ,
								       .from = p.at,
								       .bytes = (uint64_t)s.x[i] * UM_BLOCK_BYTES}));
	um_bench_free(b, &p);
	if (!b->err)
		um_bench_rate(b, UM_OBS_REMOTE, UM_BLOCK_BYTES, um_series_line(&s).slope);
}
