/* SPDX-License-Identifier: Apache-2.0
 *
 * Both directions of the link at once. A copy's time is not observable, so it is inferred from the delay of others.
 */
#include "probe/bench.h"

#define AGAINST 11u /* blocks needed to keep both directions busy */

/* Prefetches some blocks to the device, alone or while many are evicted: the evictions begin first, after a kernel, so
 * that another thread waits for them. Returns ns; 0: the caller was blocked, so the copies did not overlap. */
static double against(struct um_bench *b, struct um_piece *few, unsigned k, struct um_piece *many, unsigned n)
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
	um_bench_prefetch(b, few->at, k * UM_BLOCK_BYTES, 0, b->b);
	um_bench_sync(b, b->b);
	ns = (double)(um_bench_now(b) - t);
	um_bench_sync(b, b->a);
	if (begun)
		b->gpu->api->cudaEventDestroy(b->gpu, begun);
	um_bench_move(b, few->at, k * UM_BLOCK_BYTES, 1);
	if (n)
		um_bench_move(b, many->at, n * UM_BLOCK_BYTES, 0);
	return held > (double)spin.ns / 2 ? 0 : ns;
}

/* Copy time of a block, from the difference to half a block. `*work`: the caller's work for a block. */
static double copy_ns(struct um_bench *b, struct um_piece *p, double *work)
{
	double half, whole;

	half = um_bench_move(b, p->at, UM_BLOCK_BYTES / 2, 0);
	um_bench_move(b, p->at, UM_BLOCK_BYTES, 1);
	whole = um_bench_move(b, p->at, UM_BLOCK_BYTES, 0);
	um_bench_move(b, p->at, UM_BLOCK_BYTES, 1);
	*work = um_bench_prefetch(b, p->at, UM_BLOCK_BYTES, 0, b->a);
	um_bench_sync(b, b->a);
	um_bench_move(b, p->at, UM_BLOCK_BYTES, 1);
	return 2 * (whole - half);
}

/* Measures both directions with one and with several blocks to the device. Several are more precise, but only if copies
 * take longer than the caller's work: otherwise gaps hide the other direction. */
struct crossing {
	unsigned k[2];
	double copy[UM_ROUNDS_MAX], work[UM_ROUNDS_MAX]; /* of a block */
	double alone[2][UM_ROUNDS_MAX], both[2][UM_ROUNDS_MAX];
};

static void cross(struct um_bench *b, struct crossing *x, unsigned round, int cut)
{
	unsigned most = x->k[1], n = b->blocks - 1 - most, r = round ? round - 1 : 0;
	struct um_piece few = um_bench_alloc(b, most), many = um_bench_alloc(b, n);

	for (unsigned i = 0; cut && i < n && many.at; i++)
		um_bench_advise(b, many.at + i * UM_BLOCK_BYTES + UM_PLACE_BYTES, UM_BLOCK_BYTES - UM_PLACE_BYTES,
				UM_ADV_SET_PREFERRED, 0);
	if (cut)
		um_bench_advise(b, many.at, n * UM_BLOCK_BYTES, UM_ADV_UNSET_PREFERRED, 0);
	um_bench_touch(b, few.at, most * UM_BLOCK_BYTES);
	um_bench_touch(b, many.at, n * UM_BLOCK_BYTES);
	for (int home = 0; home <= 1; home++) /* all needed memory exists and is mapped */
		um_bench_move(b, few.at, most * UM_BLOCK_BYTES, home);
	for (int home = 0; home <= 2; home++)
		um_bench_move(b, many.at, n * UM_BLOCK_BYTES, home & 1);
	x->copy[r] = copy_ns(b, &few, &x->work[r]);
	for (unsigned i = 0; i < 2; i++) {
		x->alone[i][r] = against(b, &few, x->k[i], &many, 0);
		x->both[i][r] = against(b, &few, x->k[i], &many, n);
	}
	um_bench_free(b, &few);
	um_bench_free(b, &many);
}

/* The share of its rate that a copy to the device retains; n 0: not measurable. */
static struct um_figure share_kept(const struct crossing *x, unsigned rounds)
{
	struct um_figure copy = um_figure_of(x->copy, rounds), work = um_figure_of(x->work, rounds), alone, both;
	unsigned i = copy.value > work.value;
	double all = x->k[i] * copy.value, more;

	alone = um_figure_of(x->alone[i], rounds);
	both = um_figure_of(x->both[i], rounds);
	if (both.value <= 0 || copy.value <= 0)
		return (struct um_figure){0};
	more = both.value > alone.value ? both.value - alone.value : 0;
	return (struct um_figure){all / (all + more), (alone.spread + both.spread) / (all + more), rounds};
}

/* With whole blocks, and with blocks split by advice, which are copied in small pieces and keep the link busy if the
 * driver is slower than whole copies. Gaps hide the other direction: the lower figure counts. */
void um_probe_duplex(struct um_bench *b)
{
	struct crossing x[2];
	struct um_figure whole, cut;

	if (b->blocks < AGAINST) /* ended before the other began */
		return;
	for (int i = 0; i < 2; i++) {
		x[i].k[0] = 1;
		x[i].k[1] = b->blocks / 8;
		for (unsigned r = 0; r <= b->rounds && !b->err; r++)
			cross(b, &x[i], r, i);
	}
	if (b->err)
		return;
	whole = share_kept(&x[0], b->rounds);
	cut = share_kept(&x[1], b->rounds);
	if (whole.n && cut.n)
		um_bench_set(b, UM_OBS_DUPLEX, whole.value < cut.value ? whole : cut);
}
