/* SPDX-License-Identifier: Apache-2.0
 *
 * flaky_gpu.h - a simulated device of which some calls fail, for tests of results
 *
 * in    how often calls fail; built with REAL_THREADS the library's workers are threads, as on a real device
 * out   a device, and the simulator's own table, whose calls do not fail, for the test itself
 *
 * Calls are counted over all threads. Only one such device is open at a time.
 */
#ifndef UM_TESTS_FLAKY_GPU_H
#define UM_TESTS_FLAKY_GPU_H

#include "sim/sim.h"

#include <stdatomic.h>
#include <stdio.h>

static struct {
	unsigned nth; /* each n-th call fails; 0: none */
	int by_chance; /* about one in nth instead */
	int armed; /* without its events and streams no context opens: calls fail afterwards only */
	int tells; /* of calls that fail, on standard error */
	atomic_uint calls, failed;
	const struct um_gpu_api *sim; /* whose calls do not fail */
	struct um_gpu_api api;
} flaky;

static inline int flaky_fails(const char *call)
{
	unsigned n, fails;

	if (!flaky.nth || !flaky.armed)
		return 0;
	n = atomic_fetch_add(&flaky.calls, 1) + 1;
	fails = flaky.by_chance ? (n * 2654435761u >> 8) % flaky.nth == 0 : n % flaky.nth == 0;
	atomic_fetch_add(&flaky.failed, fails);
	if (fails && flaky.tells)
		fprintf(stderr, "\t%s fails\n", call);
	return (int)fails;
}

static inline int flaky_malloc(struct um_gpu *g, void **ptr, size_t bytes, unsigned flags)
{
	return flaky_fails("cudaMallocManaged") ? UM_CUDA_NO_MEMORY
						: flaky.sim->cudaMallocManaged(g, ptr, bytes, flags);
}

static inline int flaky_prefetch(struct um_gpu *g, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
				 um_stream stream)
{
	return flaky_fails("cudaMemPrefetchAsync") ? UM_CUDA_INVALID_VALUE
						   : flaky.sim->cudaMemPrefetchAsync(g, ptr, bytes, to, flags, stream);
}

static inline int flaky_advise(struct um_gpu *g, const void *ptr, size_t bytes, int advice, struct um_location where)
{
	return flaky_fails("cudaMemAdvise") ? UM_CUDA_INVALID_VALUE
					    : flaky.sim->cudaMemAdvise(g, ptr, bytes, advice, where);
}

static inline int flaky_discard(struct um_gpu *g, void **ptrs, size_t *sizes, size_t n, unsigned long long flags,
				um_stream stream)
{
	return flaky_fails("cudaMemDiscardBatchAsync")
		       ? UM_CUDA_INVALID_VALUE
		       : flaky.sim->cudaMemDiscardBatchAsync(g, ptrs, sizes, n, flags, stream);
}

static inline int flaky_record(struct um_gpu *g, um_event_handle event, um_stream stream)
{
	return flaky_fails("cudaEventRecord") ? UM_CUDA_INVALID_VALUE : flaky.sim->cudaEventRecord(g, event, stream);
}

static inline int flaky_create(struct um_gpu *g, um_event_handle *event, unsigned flags)
{
	return flaky_fails("cudaEventCreate") ? UM_CUDA_NO_MEMORY
					      : flaky.sim->cudaEventCreateWithFlags(g, event, flags);
}

/* 0 or -errno. No call fails until flaky.armed is set. */
static inline int flaky_open(struct um_gpu **gpu, const struct um_sim_options *o)
{
	struct um_gpu_api *api = &flaky.api;
	struct um_sim_options with = *o;
	int err;

#ifdef REAL_THREADS
	with.query_ns = 100000; /* a thread that polls lets time pass */
#endif
	err = um_sim_open(gpu, &with);

	if (err)
		return err;
	flaky.sim = (*gpu)->api;
	flaky.armed = 0;
	atomic_store(&flaky.calls, 0);
	atomic_store(&flaky.failed, 0);
	*api = *flaky.sim;
	api->cudaMallocManaged = flaky_malloc;
	api->cudaMemPrefetchAsync = flaky_prefetch;
	api->cudaMemAdvise = flaky_advise;
	api->cudaMemDiscardBatchAsync = flaky_discard;
	api->cudaEventRecord = flaky_record;
	api->cudaEventCreateWithFlags = flaky_create;
#ifdef REAL_THREADS
	api->worker_start = NULL;
	api->worker_stop = NULL;
	api->worker_poke = NULL;
	api->worker_wait = NULL;
	(*gpu)->caps.virtual_time = 0;
#endif
	(*gpu)->api = api;
	return 0;
}

#endif
