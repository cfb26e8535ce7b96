/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits that are ended by their time limit, on a clock of this test: a thread that gets no CPU, or a process that is
 * stopped, loses no wait by that. And the calls that evict, and the evictions that the CPU waits for.
 */
#include "replay/lanes.h"

#include "gpu/null.h"

#include "tap.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MS 1000000u

static struct {
	_Atomic uint64_t ns; /* CLOCK_MONOTONIC */
	uint64_t late; /* each look of the waiting thread is late by this, in ns */
	unsigned looks;
	unsigned moves_at; /* the look before which a worker completes something; 0: none does */
	struct um_lanes *lanes;
} now;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, t);
	t->tv_sec = (time_t)(now.ns / 1000000000u);
	t->tv_nsec = (long)(now.ns % 1000000000u);
	return 0;
}

/* A wait with a time limit, which is the waiting thread's, takes it at once. All else is the system's. */
long syscall(long number, ...)
{
	static _Atomic uintptr_t found;
	uintptr_t real = atomic_load(&found);
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_futex && a[1] == FUTEX_WAIT_PRIVATE && a[3]) {
		const struct timespec *t = (const struct timespec *)a[3];

		now.ns += (uint64_t)t->tv_sec * 1000 * MS + (uint64_t)t->tv_nsec + now.late;
		if (++now.looks == now.moves_at)
			um_lanes_notify(now.lanes);
		return -1;
	}
	if (!real) {
		real = (uintptr_t)dlsym(RTLD_NEXT, "syscall");
		atomic_store(&found, real);
	}
	return ((long (*)(long, ...))real)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* An op waits for a prefetch that is never queued. The time that this takes, in ms. */
static uint64_t wait_ms(struct um_lanes *l, uint64_t late_ms, unsigned moves_at)
{
	struct um_lanes_need need = {.ins = 1, .in = um_lanes_in_queued(l) + 1};
	uint64_t begin = now.ns;

	now.late = late_ms * MS;
	now.looks = 0;
	now.moves_at = moves_at;
	atomic_store(&l->stuck, 0);
	atomic_store(&l->level, 0);
	um_lanes_hold(l);
	is_int(um_lanes_await(l, &need, NULL, 0), 0, "the op goes on");
	is_u64(atomic_load(&l->stuck), 1, "its wait was ended by the time limit");
	return (now.ns - begin) / MS;
}

static _Atomic unsigned evictions, prefetches;
static _Atomic int evict_error;

static int evict(struct um_gpu *gpu, const void *ptr, size_t bytes)
{
	(void)gpu, (void)ptr;
	evictions += bytes == UM_BLOCK_BYTES;
	return evict_error;
}

static int prefetch(struct um_gpu *gpu, const void *ptr, size_t bytes, struct um_location to, unsigned flags,
		    um_stream stream)
{
	(void)gpu, (void)ptr, (void)bytes, (void)to, (void)flags, (void)stream;
	prefetches++;
	return 0;
}

/* Two blocks leave, the second as a duplicate or not. Returns the number of refused calls. */
static uint64_t evict_two(int otherwise)
{
	static struct um_lanes l;
	struct um_gpu_api api;
	struct um_gpu *gpu;
	uint64_t refused;

	if (um_null_open(&gpu, 1ull << 30, 0))
		tap_bail("no device");
	api = *gpu->api;
	api.cudaMemPrefetchAsync = prefetch;
	api.evict = otherwise ? evict : NULL;
	gpu->api = &api;
	if (um_lanes_open(&l, gpu, 2))
		tap_bail("no lanes");
	um_lanes_evict(&l, UM_LANE_OUT, UM_ACTION_EVICT, 16 * UM_BLOCK_BYTES, UM_BLOCK_BYTES, 0, 0);
	um_lanes_evict(&l, UM_LANE_DROP, UM_ACTION_EVICT_OR_DROP, 17 * UM_BLOCK_BYTES, UM_BLOCK_BYTES, 0, 0);
	um_lanes_poke(&l);
	while (!um_lanes_is_drained(&l, NULL))
		sched_yield();
	refused = atomic_load(&l.refused);
	is_int(um_lanes_close(&l), 0, "the lanes close");
	gpu->api->close(gpu);
	return refused;
}

static void test_evictions(void)
{
	is_u64(evict_two(0), 0, "evictions are accepted");
	is_u64(prefetches, 2, "prefetches to the host make them");
	is_u64(evict_two(1), 0, "they are accepted by a device that evicts otherwise");
	is_u64(evictions, 2, "it is asked to");
	is_u64(prefetches, 2, "and no prefetch is made");
	evict_error = UM_CUDA_NO_MEMORY;
	is_u64(evict_two(1), 2, "evictions that fail are counted");
}

static uint32_t needs(struct um_lanes *l, uint64_t block, struct um_lanes_need *need)
{
	*need = (struct um_lanes_need){.cpu = 1};
	um_lanes_need_evicted(l, need, block * UM_BLOCK_BYTES + 8, block * UM_BLOCK_BYTES + 16);
	return need->evicts;
}

/* Evictions after an in that is never queued. */
static void test_cpu(struct um_lanes *l)
{
	uint32_t never = um_lanes_in_queued(l) + 1;
	uint64_t begin;
	struct um_lanes_need need;

	um_lanes_evict(l, UM_LANE_OUT, UM_ACTION_EVICT, 16 * UM_BLOCK_BYTES, UM_BLOCK_BYTES, never, 0);
	um_lanes_evict(l, UM_LANE_OUT, UM_ACTION_EVICT, 17 * UM_BLOCK_BYTES, UM_BLOCK_BYTES, never, 0);
	um_lanes_evict(l, UM_LANE_OUT, UM_ACTION_LEAVE_TO_DRIVER, 18 * UM_BLOCK_BYTES, UM_BLOCK_BYTES, never, 0);
	um_lanes_evict(l, UM_LANE_DROP, UM_ACTION_EVICT, 19 * UM_BLOCK_BYTES, UM_BLOCK_BYTES, never, 0);
	is_u64(needs(l, 20, &need), 0, "the CPU does not wait for evictions of other memory");
	is_u64(needs(l, 18, &need), 0, "the CPU does not wait for what is left to the driver");
	is_u64(needs(l, 16, &need), 1u << UM_LANE_OUT, "the CPU waits for the eviction of what it uses");
	is_u64(need.evicted[UM_LANE_OUT], um_lanes_evict_queued(l, UM_LANE_OUT) - 2,
	       "the CPU does not wait for evictions queued after that");
	is_u64(needs(l, 19, &need), 1u << UM_LANE_DROP, "the CPU waits for an eviction in the lane of drops");
	now.late = now.moves_at = 0;
	atomic_store(&l->level, 0);
	begin = now.ns;
	um_lanes_hold(l);
	is_int(um_lanes_await(l, &need, NULL, 0), 0, "the CPU goes on if nothing moves");
	is_u64((now.ns - begin) / MS, 200, "its wait was ended by the time limit");
	um_lanes_drop(l);
	is_u64(needs(l, 16, &need), 0, "the CPU does not wait for evictions that were dropped");
}

static uint64_t some_time(struct um_gpu *gpu)
{
	(void)gpu;
	return 0;
}

int main(void)
{
	static struct um_lanes l;
	struct um_gpu_api api;
	const struct um_gpu_api *was;
	struct um_gpu *gpu;

	if (um_null_open(&gpu, 1ull << 30, 0) || um_lanes_open(&l, gpu, 2))
		tap_bail("no lanes");
	now.lanes = &l;
	is_u64(wait_ms(&l, 0, 0), 200, "a wait ends after 200 ms without progress");
	is_u64(wait_ms(&l, 0, 4), 300, "progress after 100 ms begins the time again");
	is_u64(wait_ms(&l, 1000, 0), 8200, "time in which the waiting thread had no CPU does not count");
	atomic_store(&l.marked[1], 1);
	is_u64(wait_ms(&l, 0, 0), 2000, "a wait takes 2 s while evictions wait for the program's ops");
	atomic_store(&l.marked[1], 0);
	was = gpu->api;
	api = *was;
	api.now = some_time;
	gpu->api = &api;
	is_u64(wait_ms(&l, 0, 0), 5000, "and 5 s if the device is simulated and the workers are threads");
	gpu->api = was;
	test_cpu(&l);
	is_int(um_lanes_close(&l), 0, "the lanes close");
	gpu->api->close(gpu);
	test_evictions();
	return tap_done();
}
