/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults on unused memory, without copies: one at a time, several at once in different blocks, several at once in one
 * block. The costs of a batch, of a visit to a block and of an entry follow from the three.
 */
#include "probe/bench.h"

/* A kernel that touches `n` places of fresh memory. */
static double touched(struct um_bench *b, unsigned blocks, unsigned n, uint64_t stride, int serial)
{
	struct um_piece p = um_bench_alloc(b, blocks);
	double ns = um_bench_kernel(
		b, &(struct um_kernel){
			   .kind = UM_KERNEL_TOUCH, .at = p.at, .n = n, .rows = 1, .stride = stride, .serial = serial});

	um_bench_free(b, &p);
	return ns;
}

void um_probe_faults(struct um_bench *b)
{
	unsigned at_once = b->blocks < 8 ? b->blocks : 8;
	struct um_series serial, place, entry;

	um_bench_sizes(&serial, b->blocks);
	um_bench_sizes(&place, at_once);
	um_bench_sizes(&entry, 16);
	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		for (unsigned i = 0; i < serial.sizes; i++)
			um_bench_put(&serial, r, i, touched(b, b->blocks, (unsigned)serial.x[i], UM_BLOCK_BYTES, 1));
		for (unsigned i = 0; i < place.sizes; i++)
			um_bench_put(&place, r, i, touched(b, at_once, (unsigned)place.x[i], UM_BLOCK_BYTES, 0));
		for (unsigned i = 0; i < entry.sizes; i++)
			um_bench_put(&entry, r, i, touched(b, 1, (unsigned)entry.x[i], UM_PLACE_BYTES, 0));
	}
	um_bench_line(b, &serial, UM_OBS_FAULT_SERIAL, -1);
	um_bench_line(b, &place, UM_OBS_FAULT_PLACE, -1);
	um_bench_line(b, &entry, UM_OBS_FAULT_ENTRY, -1);
}

/* Writes to resident read-mostly memory, block by block: only permissions change, and each of the 16 pages of a place
 * faults separately. */
void um_probe_permissions(struct um_bench *b)
{
	struct um_series s;

	um_bench_sizes(&s, b->blocks);
	for (unsigned r = 0; r <= b->rounds && !b->err; r++)
		for (unsigned i = 0; i < s.sizes; i++) {
			struct um_piece p = um_bench_alloc(b, b->blocks);
			uint64_t bytes = b->blocks * UM_BLOCK_BYTES;

			um_bench_move(b, p.at, bytes, 0);
			um_bench_advise(b, p.at, bytes, UM_ADV_SET_READ_MOSTLY, 0);
			um_bench_put(&s, r, i,
				     um_bench_kernel(b, &(struct um_kernel){.kind = UM_KERNEL_TOUCH,
									    .at = p.at,
									    .n = (unsigned)s.x[i],
									    .rows = 16,
									    .stride = UM_BLOCK_BYTES,
									    .serial = 1,
									    .write = 1}));
			um_bench_free(b, &p);
		}
	um_bench_line(b, &s, UM_OBS_FAULT_PERM, -1);
}

/* Bytes per second that faults migrate, of memory written by the CPU. */
static void pattern(struct um_bench *b, enum um_pattern how, enum um_observation o)
{
	uint64_t bytes = b->blocks * UM_BLOCK_BYTES;
	double ns[UM_ROUNDS_MAX];

	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		struct um_piece p = um_bench_alloc(b, b->blocks);

		um_bench_touch(b, p.at, bytes);
		ns[r ? r - 1 : 0] = um_bench_kernel(
			b, &(struct um_kernel){.kind = UM_KERNEL_READ, .from = p.at, .bytes = bytes, .pattern = how});
		um_bench_free(b, &p);
	}
	if (!b->err)
		um_bench_rate(b, o, (double)bytes, um_figure_of(ns, b->rounds));
}

void um_probe_patterns(struct um_bench *b)
{
	pattern(b, UM_PATTERN_NARROW, UM_OBS_FAULT_NARROW);
	pattern(b, UM_PATTERN_WIDE, UM_OBS_FAULT_WIDE);
	pattern(b, UM_PATTERN_LIBRARY, UM_OBS_FAULT_LIBRARY);
}

/* The CPU's first access to a block allocates host memory for all of it; the next 64 KiB need only a fault. */
void um_probe_cpu(struct um_bench *b)
{
	double first[UM_ROUNDS_MAX], next[UM_ROUNDS_MAX];
	double one[32], two[32];

	for (unsigned r = 0; r <= b->rounds && !b->err; r++) {
		struct um_piece p = um_bench_alloc(b, b->blocks);

		for (unsigned i = 0; i < b->blocks; i++) {
			char *at = p.at + i * UM_BLOCK_BYTES;
			uint64_t t = um_bench_now(b);

			um_bench_touch(b, at, 4096);
			one[i] = (double)(um_bench_now(b) - t);
			t = um_bench_now(b);
			um_bench_touch(b, at + UM_PLACE_BYTES, 4096);
			two[i] = (double)(um_bench_now(b) - t);
		}
		first[r ? r - 1 : 0] = um_median(one, b->blocks);
		next[r ? r - 1 : 0] = um_median(two, b->blocks);
		um_bench_free(b, &p);
	}
	/* Too quick for a fault: CPU accesses are not tracked, or the memory is already mapped. */
	if (b->err || um_median(first, b->rounds) < 100 || um_median(next, b->rounds) < 100)
		return;
	um_bench_set(b, UM_OBS_CPU_FIRST, um_figure_of(first, b->rounds));
	um_bench_set(b, UM_OBS_CPU_FAULT, um_figure_of(next, b->rounds));
}
