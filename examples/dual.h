/* SPDX-License-Identifier: Apache-2.0
 *
 * dual.h - what the CUDA examples share: one body for a GPU and for a dry run, memory, the command line, the summary
 *
 * A kernel is written as a struct with its arguments and an operator()(i) that does the i-th element. each() launches
 * it, launch() also announces it. Under `umadvise dryrun` there is no GPU: a loop over the same body stands for the
 * kernel, and the numbers that come out are real. Nothing here is needed to use the library.
 */
#ifndef DUAL_H
#define DUAL_H

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umadvise.h>
#include <umadvise_cuda.h>
#include <umadvise_dryrun.h>

static inline void check_cuda(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err));
	exit(1);
}

static inline void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, umadv_strerror(err));
	exit(1);
}

/* --- kernels ----------------------------------------------------------------------------------------------------- */

template <typename Body> __global__ void dual_kernel(long n, Body body)
{
	for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long)blockDim.x)
		body(i);
}

template <typename Body> void dual_host(void **args, const unsigned *, const unsigned *)
{
	const Body &body = *(const Body *)args[1];
	long n = *(const long *)args[0];

	for (long i = 0; i < n; i++)
		body(i);
}

/* The kernel for a body. */
template <typename Body> const void *dual_symbol()
{
	static int told = umadv_dryrun_kernel((const void *)dual_kernel<Body>, dual_host<Body>);

	(void)told;
	return (const void *)dual_kernel<Body>;
}

/* With 256 threads each. */
static inline unsigned dual_blocks(long n)
{
	return (unsigned)(n < 65536 * 256l ? (n + 255) / 256 : 65536);
}

/* Does body(0) to body(n - 1) on the stream, in any order. */
template <typename Body> void each(cudaStream_t stream, long n, const Body &body)
{
	dual_symbol<Body>();
	dual_kernel<<<dual_blocks(n), 256, 0, stream>>>(n, body);
	check_cuda(cudaGetLastError(), "launch");
}

/* --- the program's surroundings ---------------------------------------------------------------------------------- */

/* NAME [--size N] [--iterations N] [--budget MIB] [--plain] */
struct dual {
	struct umadv *adv; /* NULL: --plain, managed memory and the driver alone */
	const char *name;
	long size;
	int iterations;
	uint64_t budget;
};

static inline struct dual dual_open(const char *name, long size, int iterations, int argc, char **argv)
{
	struct dual of = {NULL, name, size, iterations, 0}, *d = &of;
	struct umadv_options options;
	int plain = 0;

	for (int i = 1; i < argc; i++) {
		long value = i + 1 < argc ? atol(argv[i + 1]) : 0;

		if (!strcmp(argv[i], "--plain")) {
			plain = 1;
		} else if (value > 0 && !strcmp(argv[i], "--size")) {
			d->size = value, i++;
		} else if (value > 0 && !strcmp(argv[i], "--iterations")) {
			d->iterations = (int)value, i++;
		} else if (value > 0 && !strcmp(argv[i], "--budget")) {
			d->budget = (uint64_t)value << 20, i++;
		} else {
			fprintf(stderr, "usage: %s [--size N] [--iterations N] [--budget MIB] [--plain]\n", d->name);
			exit(2);
		}
	}
	if (plain)
		return of;
	umadv_options_init(&options);
	if (d->budget)
		options.budget = d->budget;
	check(umadv_open(&d->adv, &options), "umadv_open");
	return of;
}

template <typename T> T *dual_alloc(struct dual *d, long count, const char *name, enum umadv_role role)
{
	void *ptr;

	if (d->adv)
		check(umadv_alloc(d->adv, &ptr, count * sizeof(T), name, role), name);
	else
		check_cuda(cudaMallocManaged(&ptr, count * sizeof(T)), name);
	return (T *)ptr;
}

static inline void dual_transient(struct dual *d, void *ptr)
{
	if (d->adv)
		check(umadv_transient(d->adv, ptr), "umadv_transient");
}

static inline void dual_iter(struct dual *d)
{
	if (d->adv)
		check(umadv_iter(d->adv, NULL), "umadv_iter");
}

/* Announces body(0) to body(n - 1) as an op and launches it; the library may launch it again. */
template <typename Body>
void launch(struct dual *d, cudaStream_t stream, const char *name, const struct umadv_use *uses, size_t n_uses, long n,
	    const Body &body)
{
	void *args[] = {&n, const_cast<Body *>(&body)};

	if (!d->adv)
		each(stream, n, body);
	else
		check(umadv_cuda_launch(d->adv, name, uses, n_uses, dual_symbol<Body>(), dim3(dual_blocks(n)),
					dim3(256), args, 0, stream),
		      name);
}

static inline uint64_t dual_checksum(const void *data, size_t bytes)
{
	const uint32_t *word = (const uint32_t *)data;
	uint64_t sum = 14695981039346656037ull;

	for (size_t i = 0; i < bytes / sizeof(*word); i++)
		sum = (sum ^ word[i]) * 1099511628211ull;
	return sum;
}

/* Two lines: the result, the same with the library and without; and what the library did. What main returns. */
static inline int dual_close(struct dual *d, uint64_t checksum, double value)
{
	struct umadv_stats s = {};

	s.struct_size = sizeof(s);
	printf("%s: checksum %016llx, result %.9g\n", d->name, (unsigned long long)checksum, value);
	if (!d->adv)
		return value >= 0 ? 0 : 1;
	check(umadv_stats_get(d->adv, &s), "umadv_stats_get");
	printf("%s: %llu of %llu iterations hinted, %llu hints, MiB prefetched %llu, evicted %llu, discarded %llu; "
	       "%llu operations launched again\n",
	       d->name, (unsigned long long)s.hinted_iterations, (unsigned long long)s.iterations,
	       (unsigned long long)s.hints_issued, (unsigned long long)(s.prefetch_bytes >> 20),
	       (unsigned long long)(s.evict_bytes >> 20), (unsigned long long)(s.discard_bytes >> 20),
	       (unsigned long long)s.relaunches);
	umadv_close(d->adv);
	return value >= 0 ? 0 : 1;
}

/* Says what the next launches on `stream` use. */
#define USES(d, stream, name, ...)                                                                                     \
	do {                                                                                                           \
		if ((d)->adv)                                                                                          \
			check(umadv_op((d)->adv, stream, name, UMADV_USES(__VA_ARGS__)), name);                        \
	} while (0)

#endif
