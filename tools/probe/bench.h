/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h - what probes share: memory, clocks, calls whose failure is remembered
 *
 * The first failing call is kept; all later ones do nothing and tell 0. So a probe reads like its experiment, and asks
 * once, at its end.
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
	unsigned blocks; /* most that one experiment uses: from 4 to 32 */
	unsigned rounds; /* repetitions that count; one more comes before them */
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
int um_bench_check(struct um_bench *b, int cuda_error, const char *call); /* remembers; is all well? */

struct um_piece um_bench_alloc(struct um_bench *b, unsigned blocks);
void um_bench_free(struct um_bench *b, struct um_piece *p);

/* How long the call takes its caller, ns. */
double um_bench_prefetch(struct um_bench *b, void *at, uint64_t bytes, int to_host, um_stream stream);
double um_bench_discard(struct um_bench *b, void *at, uint64_t bytes, um_stream stream);
double um_bench_renew(struct um_bench *b, void *at, uint64_t bytes, um_stream stream);
double um_bench_advise(struct um_bench *b, void *at, uint64_t bytes, int advice, int host);

void um_bench_sync(struct um_bench *b, um_stream stream);
void um_bench_launch(struct um_bench *b, um_stream stream, const struct um_kernel *k);
/* Launch to end, ns. */
double um_bench_kernel(struct um_bench *b, const struct um_kernel *k);
/* How long it takes until the prefetch has ended, ns. */
double um_bench_move(struct um_bench *b, void *at, uint64_t bytes, int to_host);
void um_bench_touch(struct um_bench *b, void *at, uint64_t bytes); /* by the CPU */

/* Five sizes from 1 to `most`, which is at least 5. */
void um_bench_sizes(struct um_series *s, unsigned most);
/* A round's value at a size; round 0 is for warming up and counts not. */
void um_bench_put(struct um_series *s, unsigned round, unsigned size, double y);
void um_bench_line(struct um_bench *b, const struct um_series *s, enum um_observation slope, int fixed);
void um_bench_set(struct um_bench *b, enum um_observation o, struct um_figure f);
/* A figure per unit becomes a rate per second: `units` for each of it. */
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
