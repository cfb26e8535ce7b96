/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h - shared by probes: memory, clocks, calls with a sticky failure
 *
 * The first failure is kept; later calls do nothing and return 0. So a probe reads like its experiment and checks once,
 * at its end.
 */
#ifndef UM_PROBE_BENCH_H
#define UM_PROBE_BENCH_H

#include "model/event.h"
#include "probe/probe.h"

struct um_bench {
	struct um_gpu *gpu;
	struct um_launcher *launcher;
	struct um_observed *out;
	um_stream a, b; /* non-blocking */
	uint64_t budget; /* managed bytes */
	unsigned blocks; /* blocks that one experiment uses at most: 4 to 32 */
	unsigned rounds; /* counted repetitions, after one for warm-up */
	int err; /* -errno of the first failure */
	char *why;
	size_t size;
};

/* A piece of managed memory that begins at a block boundary. */
struct um_piece {
	char *at;
	void *base;
};

uint64_t um_bench_now(struct um_bench *b);
int um_bench_check(struct um_bench *b, int cuda_error, const char *call); /* keeps the first failure; 1: none so far */

struct um_piece um_bench_alloc(struct um_bench *b, unsigned blocks);
void um_bench_free(struct um_bench *b, struct um_piece *p);

/* Duration of the call for its caller, ns. */
double um_bench_prefetch(struct um_bench *b, void *at, uint64_t bytes, int to_host, um_stream stream);
double um_bench_discard(struct um_bench *b, void *at, uint64_t bytes, um_stream stream);
double um_bench_renew(struct um_bench *b, void *at, uint64_t bytes, um_stream stream);
double um_bench_advise(struct um_bench *b, void *at, uint64_t bytes, int advice, int host);

void um_bench_sync(struct um_bench *b, um_stream stream);
void um_bench_launch(struct um_bench *b, um_stream stream, const struct um_kernel *k);
/* From launch to end, ns. */
double um_bench_kernel(struct um_bench *b, const struct um_kernel *k);
/* From call to end of the prefetch, ns. */
double um_bench_move(struct um_bench *b, void *at, uint64_t bytes, int to_host);
void um_bench_touch(struct um_bench *b, void *at, uint64_t bytes); /* by the CPU */

/* Five sizes from 1 to `most`, which is at least 5. */
void um_bench_sizes(struct um_series *s, unsigned most);
/* A round's value at a size; round 0 warms up and does not count. */
void um_bench_put(struct um_series *s, unsigned round, unsigned size, double y);
void um_bench_line(struct um_bench *b, const struct um_series *s, enum um_observation slope, int fixed);
void um_bench_set(struct um_bench *b, enum um_observation o, struct um_figure f);
/* Converts a time per `units` to a rate per second. */
void um_bench_rate(struct um_bench *b, enum um_observation o, double units, struct um_figure ns);

/* The probes. */
void um_probe_prefetch(struct um_bench *b);
void um_probe_split(struct um_bench *b);
void um_probe_hints(struct um_bench *b);
void um_probe_discard(struct um_bench *b);
void um_probe_pages(struct um_bench *b);
void um_probe_home(struct um_bench *b);
void um_probe_duplex(struct um_bench *b);
void um_probe_link(struct um_bench *b);
void um_probe_rates(struct um_bench *b);
void um_probe_faults(struct um_bench *b);
void um_probe_patterns(struct um_bench *b);
void um_probe_permissions(struct um_bench *b);
void um_probe_remote(struct um_bench *b);
void um_probe_cpu(struct um_bench *b);
void um_probe_compute(struct um_bench *b);
void um_probe_calls(struct um_bench *b);
void um_probe_packing(struct um_bench *b);

#endif
