/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of hints for the calling thread: linear fits over numbers of blocks. The stream is idle each time, so that the
 * caller does the work.
 */
#include "probe/bench.h"

/* Unused memory; then the same call again, without effect. */
static void fresh_and_resident(struct um_bench *b)
{
	struct um_series fresh, resident;

	um_bench_sizes(&fresh, b->blocks);
	resident = fresh;
	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < fresh.sizes; i++) {
			uint64_t bytes = (uint64_t)fresh.x[i] * UM_BLOCK_BYTES;
			struct um_piece p = um_bench_alloc(b, (unsigned)fresh.x[i]);

			um_bench_put(&fresh, r, i, um_bench_prefetch(b, p.at, bytes, 0, b->a));
			um_bench_sync(b, b->a);
			um_bench_put(&resident, r, i, um_bench_prefetch(b, p.at, bytes, 0, b->a));
			um_bench_sync(b, b->a);
			um_bench_free(b, &p);
		}
	um_bench_line(b, &fresh, UM_OBS_PF_NEW_BLOCK, -1);
	um_bench_line(b, &resident, UM_OBS_PF_RES_BLOCK, UM_OBS_PF_RES_CALL);
}

/* Memory written by the CPU goes to the device, to the host, and to the device again: the second time the device has
 * its mappings already. */
static void first_and_again(struct um_bench *b)
{
	struct um_series first, again;

	um_bench_sizes(&first, b->blocks);
	again = first;
	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < first.sizes; i++) {
			uint64_t bytes = (uint64_t)first.x[i] * UM_BLOCK_BYTES;
			struct um_piece p = um_bench_alloc(b, (unsigned)first.x[i]);

			um_bench_touch(b, p.at, bytes);
			um_bench_put(&first, r, i, um_bench_prefetch(b, p.at, bytes, 0, b->a));
			um_bench_sync(b, b->a);
			um_bench_move(b, p.at, bytes, 1);
			um_bench_put(&again, r, i, um_bench_prefetch(b, p.at, bytes, 0, b->a));
			um_bench_sync(b, b->a);
			um_bench_free(b, &p);
		}
	um_bench_line(b, &first, UM_OBS_PF_FIRST_BLOCK, -1);
	um_bench_line(b, &again, UM_OBS_PF_AGAIN_BLOCK, -1);
}

void um_probe_prefetch(struct um_bench *b)
{
	fresh_and_resident(b);
	first_and_again(b);
}

/* Advice for all but the first 64 KiB of each block splits it permanently; then the advice is removed. */
void um_probe_split(struct um_bench *b)
{
	struct um_series s;

	um_bench_sizes(&s, b->blocks);
	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < s.sizes; i++) {
			uint64_t bytes = (uint64_t)s.x[i] * UM_BLOCK_BYTES;
			struct um_piece p = um_bench_alloc(b, (unsigned)s.x[i]);

			for (uint64_t off = 0; off < bytes && p.at; off += UM_BLOCK_BYTES)
				um_bench_advise(b, p.at + off + UM_PLACE_BYTES, UM_BLOCK_BYTES - UM_PLACE_BYTES,
						UM_ADV_SET_PREFERRED, 0);
			um_bench_advise(b, p.at, bytes, UM_ADV_UNSET_PREFERRED, 0);
			um_bench_touch(b, p.at, bytes);
			um_bench_put(&s, r, i, um_bench_prefetch(b, p.at, bytes, 0, b->a));
			um_bench_sync(b, b->a);
			um_bench_free(b, &p);
		}
	um_bench_line(b, &s, UM_OBS_PF_SPLIT_BLOCK, -1);
}

/* Discard and advice for resident memory. Repeating advice would cost nothing. */
void um_probe_hints(struct um_bench *b)
{
	int discards = b->gpu->caps.discard && b->gpu->api->cudaMemDiscardBatchAsync != NULL;
	struct um_series discard, renew, near, far;

	um_bench_sizes(&discard, b->blocks);
	renew = near = far = discard;
	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < near.sizes; i++) {
			uint64_t bytes = (uint64_t)near.x[i] * UM_BLOCK_BYTES;
			struct um_piece p = um_bench_alloc(b, (unsigned)near.x[i]);

			um_bench_move(b, p.at, bytes, 0);
			if (discards) {
				um_bench_put(&renew, r, i, um_bench_renew(b, p.at, bytes, b->a));
				um_bench_sync(b, b->a);
				um_bench_put(&discard, r, i, um_bench_discard(b, p.at, bytes, b->a));
				um_bench_sync(b, b->a);
				um_bench_move(b, p.at, bytes, 0);
			}
			um_bench_put(&near, r, i, um_bench_advise(b, p.at, bytes, UM_ADV_SET_PREFERRED, 0));
			um_bench_advise(b, p.at, bytes, UM_ADV_UNSET_PREFERRED, 0);
			um_bench_put(&far, r, i, um_bench_advise(b, p.at, bytes, UM_ADV_SET_ACCESSED_BY, 0));
			um_bench_free(b, &p);
		}
	if (discards) {
		um_bench_line(b, &renew, UM_OBS_RENEW_BLOCK, -1);
		um_bench_line(b, &discard, UM_OBS_DISCARD_BLOCK, -1);
	}
	um_bench_line(b, &near, UM_OBS_ADVISE_BLOCK, -1);
	um_bench_line(b, &far, UM_OBS_ADVISE_AB_BLOCK, -1);
}

/* A write that takes much longer after a discard than before has faulted: discard removes mappings. */
void um_probe_discard(struct um_bench *b)
{
	double before[UM_ROUNDS_MAX], after[UM_ROUNDS_MAX], warm, cold;

	if (!b->gpu->caps.discard || !b->gpu->api->cudaMemDiscardBatchAsync)
		return;
	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		struct um_piece p = um_bench_alloc(b, 2);
		struct um_kernel write = {.kind = UM_KERNEL_WRITE, .at = p.at, .bytes = 2 * UM_BLOCK_BYTES};
		unsigned k = r ? r - 1 : 0;

		um_bench_move(b, p.at, write.bytes, 0);
		um_bench_kernel(b, &write);
		before[k] = um_bench_kernel(b, &write);
		um_bench_discard(b, p.at, write.bytes, b->a);
		um_bench_sync(b, b->a);
		after[k] = um_bench_kernel(b, &write);
		um_bench_free(b, &p);
	}
	if (b->err)
		return;
	warm = um_median(before, b->rounds);
	cold = um_median(after, b->rounds);
	um_bench_set(b, UM_OBS_DISCARD_FAULTS, (struct um_figure){cold > 1.5 * warm + 20000, 0, b->rounds});
}

/* Calls on a busy stream: is the work deferred to another thread, and is the caller blocked? Advice has no stream. */
void um_probe_calls(struct um_bench *b)
{
	enum { PREFETCH, HOME, RENEW, DISCARD, ADVISE, CALLS };
	static const enum um_observation seen[CALLS] = {UM_OBS_CALL_PF_BUSY, UM_OBS_CALL_PF_HOST_BUSY,
							UM_OBS_CALL_RENEW_BUSY, UM_OBS_CALL_DISCARD_BUSY,
							UM_OBS_CALL_ADVISE_BUSY};
	const struct um_kernel spin = {.kind = UM_KERNEL_SPIN, .ns = 5000000};
	int discards = b->gpu->caps.discard && b->gpu->api->cudaMemDiscardBatchAsync != NULL;
	uint64_t bytes = b->blocks * UM_BLOCK_BYTES;
	double call[CALLS][UM_ROUNDS_MAX], blocks[UM_ROUNDS_MAX];

	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		struct um_piece p = um_bench_alloc(b, b->blocks);
		unsigned k = r ? r - 1 : 0;
		double held;
		uint64_t t;

		um_bench_move(b, p.at, bytes, 0);
		t = um_bench_now(b);
		held = um_bench_prefetch(b, p.at, bytes, 1, b->a);
		um_bench_sync(b, b->a);
		blocks[k] = held / ((double)(um_bench_now(b) - t) + 1);
		um_bench_launch(b, b->a, &spin);
		call[PREFETCH][k] = um_bench_prefetch(b, p.at, bytes, 0, b->a);
		call[HOME][k] = um_bench_prefetch(b, p.at, bytes, 1, b->a);
		call[RENEW][k] = discards ? um_bench_renew(b, p.at, bytes, b->a) : 0;
		call[DISCARD][k] = discards ? um_bench_discard(b, p.at, bytes, b->a) : 0;
		call[ADVISE][k] = um_bench_advise(b, p.at, bytes, UM_ADV_SET_PREFERRED, 0);
		um_bench_sync(b, b->a);
		um_bench_free(b, &p);
	}
	if (b->err)
		return;
	um_bench_set(b, UM_OBS_HOST_BLOCKS, um_figure_of(blocks, b->rounds));
	for (int i = 0; i < CALLS; i++)
		if (discards || (i != RENEW && i != DISCARD))
			um_bench_set(b, seen[i], um_figure_of(call[i], b->rounds));
}
