/* SPDX-License-Identifier: Apache-2.0
 *
 * The link. On a fast one the driver's work takes longer than its copies, so rates are read off single blocks: the same
 * work, and more of the block to copy.
 */
#include "probe/bench.h"

#define PAGES 32u /* of 64 KiB in a block */
#define STEPS 4u
#define AGAINST 8u /* blocks that go home at the same time, at least */

static const double steps[STEPS] = {4, 12, 22, 32}; /* pages */

/* Of one block: the call that moves so many pages to the device, and one that moves them home. */
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

/* What coming home costs besides the copy: host memory, which a block gets once, and the CPU's mappings. Those alone
 * are left to do for what the device has put on the host: with a preferred location there, its first touch does. */
void um_probe_home(struct um_bench *b)
{
	struct um_series map = {.sizes = STEPS};
	double first[UM_ROUNDS_MAX];

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
			                                       .serial = 1,
			                                       .write = 1});
			um_bench_put(&map, r, i, um_bench_move(b, p.at, (uint64_t)steps[i] * UM_PLACE_BYTES, 1));
			um_bench_free(b, &p);
		}
	}
	um_bench_line(b, &map, UM_OBS_MAP_PAGE, -1);
	if (b->err)
		return;
	um_bench_set(b, UM_OBS_MAP_BLOCK, um_series_at(&map, STEPS - 1));
	um_bench_set(b, UM_OBS_D2H_BLOCK_FIRST, um_figure_of(first, b->rounds));
}

/* One block to the device, alone or while many go home: those were begun first, behind a kernel, so that somebody else
 * waits for them. Returns ns; 0: the caller was held, so nothing went on at the same time. */
static double against(struct um_bench *b, struct um_piece *one, struct um_piece *many, unsigned n)
{
	const struct um_kernel spin = {.kind = UM_KERNEL_SPIN, .ns = 2000000};
	um_event_handle begun = NULL;
	double held = 0, ns;
	uint64_t t;

	if (b->err)
		return 0;
	if (n && um_bench_check(b, b->gpu->api->cudaEventCreateWithFlags(b->gpu, &begun, UM_EVENT_DISABLE_TIMING),
	                        "cudaEventCreateWithFlags")) {
		um_bench_launch(b, b->a, &spin);
		um_bench_check(b, b->gpu->api->cudaEventRecord(b->gpu, begun, b->a), "cudaEventRecord");
		held = um_bench_prefetch(b, many->at, n * UM_BLOCK_BYTES, 1, b->a);
		um_bench_check(b, b->gpu->api->cudaEventSynchronize(b->gpu, begun), "cudaEventSynchronize");
	}
	t = um_bench_now(b);
	um_bench_prefetch(b, one->at, UM_BLOCK_BYTES, 0, b->b);
	um_bench_sync(b, b->b);
	ns = (double)(um_bench_now(b) - t);
	um_bench_sync(b, b->a);
	if (begun)
		b->gpu->api->cudaEventDestroy(b->gpu, begun);
	um_bench_move(b, one->at, UM_BLOCK_BYTES, 1);
	if (n)
		um_bench_move(b, many->at, n * UM_BLOCK_BYTES, 0);
	return held > (double)spin.ns / 2 ? 0 : ns;
}

/* How long the copy of one block takes: two halves of it, each with all that is not the copy, are that much longer. */
static double copy_ns(struct um_bench *b, struct um_piece *p)
{
	double half, whole;

	half = um_bench_move(b, p->at, UM_BLOCK_BYTES / 2, 0);
	um_bench_move(b, p->at, UM_BLOCK_BYTES, 1);
	whole = um_bench_move(b, p->at, UM_BLOCK_BYTES, 0);
	um_bench_move(b, p->at, UM_BLOCK_BYTES, 1);
	return 2 * (whole - half);
}

/* With whole blocks, and with blocks cut by advice: they are copied in small pieces, which keeps the link busy where
 * the driver is slower than whole copies are. Gaps hide the other direction: the lower figure counts. */
void um_probe_duplex(struct um_bench *b)
{
	unsigned n = b->blocks - 3;
	double share[UM_ROUNDS_MAX];
	int held = 0;

	if (n < AGAINST) /* over before the other has begun */
		return;
	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		double least = 1, copy;

		for (int cut = 0; cut <= 1 && !b->err; cut++) {
			struct um_piece one = um_bench_alloc(b, 1), many = um_bench_alloc(b, n);
			double alone, both;

			for (unsigned i = 0; cut && i < n && many.at; i++)
				um_bench_advise(b, many.at + i * UM_BLOCK_BYTES + UM_PLACE_BYTES,
				                UM_BLOCK_BYTES - UM_PLACE_BYTES, UM_ADV_SET_PREFERRED, 0);
			if (cut)
				um_bench_advise(b, many.at, n * UM_BLOCK_BYTES, UM_ADV_UNSET_PREFERRED, 0);
			um_bench_touch(b, one.at, UM_BLOCK_BYTES);
			um_bench_touch(b, many.at, n * UM_BLOCK_BYTES);
			um_bench_move(b, one.at, UM_BLOCK_BYTES, 0);
			um_bench_move(b, one.at, UM_BLOCK_BYTES, 1);
			for (int home = 0; home <= 2; home++) /* all memory that they will need exists */
				um_bench_move(b, many.at, n * UM_BLOCK_BYTES, home & 1);
			copy = copy_ns(b, &one);
			alone = against(b, &one, &many, 0);
			both = against(b, &one, &many, n);
			held |= !both;
			if (both > alone && copy > 0 && copy / (copy + both - alone) < least)
				least = copy / (copy + both - alone);
			um_bench_free(b, &one);
			um_bench_free(b, &many);
		}
		share[r ? r - 1 : 0] = least;
	}
	if (!b->err && !held)
		um_bench_set(b, UM_OBS_DUPLEX, um_figure_of(share, b->rounds));
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

/* Many blocks in one call, as hints do it: what comes of all the costs together. */
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

/* Pages that the CPU has written and the device may read where they are. */
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
			um_bench_put(&s, r, i,
			             um_bench_kernel(b, &(struct um_kernel){.kind = UM_KERNEL_READ,
			                                                    .from = p.at,
			                                                    .bytes = (uint64_t)s.x[i] *
			                                                             UM_BLOCK_BYTES}));
	um_bench_free(b, &p);
	if (!b->err)
		um_bench_rate(b, UM_OBS_REMOTE, UM_BLOCK_BYTES, um_series_line(&s).slope);
}
