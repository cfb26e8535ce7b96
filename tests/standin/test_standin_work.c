/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, copies, streams, events, captures and graphs of the stand-in driver, by its bare functions.
 */
#include "standin_calls.h"

#include <pthread.h>
#include <stdatomic.h>

#define MIB (1u << 20)
#define LEGACY ((void *)1)
#define THREAD ((void *)2)

static int *host, *pinned;
static uint64_t device, managed;
static void *stream, *other;

static int to_device(uint64_t to, const void *from, size_t n)
{
	return CALL(cuMemcpyHtoD, 3020, uint64_t, const void *, size_t)(to, from, n);
}

static int to_host(void *to, uint64_t from, size_t n)
{
	return CALL(cuMemcpyDtoH, 3020, void *, uint64_t, size_t)(to, from, n);
}

static int synchronize(void *s)
{
	return CALL(cuStreamSynchronize, 2000, void *)(s);
}

static int query(void *s)
{
	return CALL(cuStreamQuery, 2000, void *)(s);
}

static int set_async(uint64_t at, unsigned v, size_t n, void *s)
{
	return CALL(cuMemsetD32Async, 3020, uint64_t, unsigned, size_t, void *)(at, v, n, s);
}

static int record(void *event, void *s)
{
	return CALL(cuEventRecord, 2000, void *, void *)(event, s);
}

static int wait_for(void *s, void *event)
{
	return CALL(cuStreamWaitEvent, 3020, void *, void *, unsigned)(s, event, 0);
}

static int prefetch(uint64_t at, size_t n, void *s)
{
	const struct um_location here = {UM_LOC_DEVICE, 0};

	return CALL(cuMemPrefetchAsync, 12020, uint64_t, size_t, struct um_location, unsigned, void *)(at, n, here, 0,
												       s);
}

static void *event_new(unsigned flags)
{
	void *e = NULL;

	if (CALL(cuEventCreate, 2000, void **, unsigned)(&e, flags))
		tap_bail("no event");
	return e;
}

static void *stream_new(unsigned flags)
{
	void *s = NULL;

	if (CALL(cuStreamCreate, 2000, void **, unsigned)(&s, flags))
		tap_bail("no stream");
	return s;
}

static void allocations(void)
{
	size_t free_bytes, total, after, pitch = 0, bytes;
	uint64_t p, base;
	void *h;

	CALL(cuMemGetInfo, 3020, size_t *, size_t *)(&free_bytes, &total);
	is_int(CALL(cuMemAlloc, 3020, uint64_t *, size_t)(&device, 8 * MIB), 0, "device memory is allocated");
	CALL(cuMemGetInfo, 3020, size_t *, size_t *)(&after, &total);
	is_u64(free_bytes - after, 8 * MIB, "is taken from what is free");
	is_int(CALL(cuMemAlloc, 3020, uint64_t *, size_t)(&p, 0), 1, "an allocation of no bytes is refused");
	is_int(CALL(cuMemAlloc, 3020, uint64_t *, size_t)(&p, total + 1), 2,
	       "an allocation above the device's memory is refused");
	is_int(CALL(cuMemAllocManaged, 6000, uint64_t *, size_t, unsigned)(&managed, 8 * MIB, 1), 0,
	       "managed memory is allocated");
	is_int(CALL(cuMemAllocManaged, 6000, uint64_t *, size_t, unsigned)(&p, MIB, 3), 1, "knows its flags");
	is_int(CALL(cuMemAllocHost, 3020, void **, size_t)((void **)&pinned, 8 * MIB), 0, "pinned memory is allocated");
	is_int(CALL(cuMemHostAlloc, 2020, void **, size_t, unsigned)(&h, MIB, 7), 0,
	       "pinned memory is allocated with flags");
	is_int(CALL(cuMemHostGetDevicePointer, 3020, uint64_t *, void *, unsigned)(&p, h, 0), 0,
	       "has an address there");
	is_u64(p, (uintptr_t)h, "the device address of pinned memory equals its host address");
	is_int(CALL(cuMemFreeHost, 2000, void *)(h), 0, "pinned memory is freed");
	host = malloc(8 * MIB);
	is_int(CALL(cuMemHostGetDevicePointer, 3020, uint64_t *, void *, unsigned)(&p, host, 0), 1,
	       "other memory has none");
	is_int(CALL(cuMemHostRegister, 4000, void *, size_t, unsigned)(host, MIB, 0), 0, "until it is registered");
	is_int(CALL(cuMemHostRegister, 4000, void *, size_t, unsigned)(host + 8, 16, 0), 712,
	       "registering part of registered memory is refused");
	is_int(CALL(cuMemFreeHost, 2000, void *)(host), 1, "registered memory is not freed as an allocation");
	is_int(CALL(cuMemHostUnregister, 4000, void *)(host), 0, "registered memory is unregistered");
	is_int(CALL(cuMemHostUnregister, 4000, void *)(host), 713, "unregistering twice is refused");
	is_int(CALL(cuMemAllocPitch, 3020, uint64_t *, size_t *, size_t, size_t, unsigned)(&p, &pitch, 100, 10, 4), 0,
	       "rows are allocated");
	is_u64(pitch, 512, "rows are 512 bytes apart");
	is_int(CALL(cuMemGetAddressRange, 3020, uint64_t *, size_t *, uint64_t)(&base, &bytes, p + 700), 0,
	       "an address inside the rows finds them");
	ok(base == p && bytes == 5120, "belongs to them");
	is_int(CALL(cuMemFree, 3020, uint64_t)(p + 512), 1, "only whole allocations are freed");
	is_int(CALL(cuMemFree, 3020, uint64_t)(p), 0, "rows are freed");
	is_int(CALL(cuMemGetAddressRange, 3020, uint64_t *, size_t *, uint64_t)(&base, &bytes, p), 500,
	       "it is not found");
	is_int(CALL(cuMemFree, 3020, uint64_t)(0), 0, "nothing is freed, too");
}

static void copies(void)
{
	const size_t n = MIB;
	struct {
		size_t fx, fy;
		int ft;
		const void *fh;
		uint64_t fd;
		void *fa;
		size_t fp, tx, ty;
		int tt;
		void *th;
		uint64_t td;
		void *ta;
		size_t tp, w, h;
	} c = {.ft = 2, .fd = 0, .fp = 4096, .tt = 1, .tp = 40, .w = 40, .h = 10, .fx = 8, .fy = 1};

	for (size_t i = 0; i < n; i++)
		host[i] = (int)i;
	is_int(to_device(device, host, n * 4), 0, "a copy to the device is accepted");
	memset(host, 0, n * 4);
	is_int(CALL(cuMemcpyDtoD, 3020, uint64_t, uint64_t, size_t)(managed, device, n * 4), 0,
	       "a copy to managed memory is accepted");
	is_int(to_host(host, managed, n * 4), 0, "a copy from managed memory to the host is accepted");
	ok(host[0] == 0 && host[77] == 77 && host[n - 1] == (int)n - 1, "the copies return the content");
	c.fd = device;
	c.th = host + n;
	is_int(CALL(cuMemcpy2D, 3020, const void *)(&c), 0, "rows are copied out of the middle");
	ok(host[n] == 1026 && host[n + 10] == 2050 && host[n + 99] == 1035 + 9 * 1024, "come as rows");
	c.ft = 3;
	is_int(CALL(cuMemcpy2D, 3020, const void *)(&c), 801, "arrays are not known");
	is_int(to_device(device, host, 8 * MIB + 1), 1, "a copy past the end is refused");
	is_int(to_device((uintptr_t)host, host, 4), 1, "a copy to unregistered host memory is refused");
	is_int(CALL(cuMemcpy, 4000, uint64_t, uint64_t, size_t)((uintptr_t)host, (uintptr_t)(host + n), 400), 0,
	       "a copy from host to host is accepted");
	is_int(host[0], 1026, "filled memory can be copied");
	is_int(CALL(cuMemsetD32, 3020, uint64_t, unsigned, size_t)(device, 7, n), 0, "words are set");
	is_int(CALL(cuMemsetD8, 3020, uint64_t, unsigned char, size_t)(device, 1, 4), 0, "a fill of bytes is accepted");
	is_int(CALL(cuMemsetD2D16, 3020, uint64_t, size_t, unsigned short, size_t, size_t)(device + 4096, 4096, 3, 2,
											   2),
	       0, "a fill of rows is accepted");
	to_host(host, device, n * 4);
	ok(host[0] == 0x01010101 && host[1] == 7 && host[1024] == 0x30003 && host[1025] == 7 && host[2048] == 0x30003 &&
		   host[3072] == 7,
	   "filled memory has the values that were asked for");
	is_int(CALL(cuMemsetD32, 3020, uint64_t, unsigned, size_t)(device + 2, 7, 1), 1, "words lie where words can");
}

static void order(void)
{
	void *begin = event_new(0), *end = event_new(0), *untimed = event_new(2);
	float ms = 0;
	unsigned flags = 9;
	int priority = 9;

	stream = stream_new(0);
	other = stream_new(1);
	CALL(cuStreamGetFlags, 5050, void *, unsigned *)(other, &flags);
	is_u64(flags, 1, "a stream has its flags");
	CALL(cuStreamGetPriority, 5050, void *, int *)(other, &priority);
	is_int(priority, 0, "the priority of the stream is 0");
	is_int(query(stream), 0, "an idle stream is complete");
	record(begin, stream);
	for (int i = 1; i <= 64; i++)
		set_async(device, (unsigned)i, MIB / 2, stream);
	record(end, stream);
	is_int(query(stream), 600, "a busy stream is not complete");
	is_int(CALL(cuEventQuery, 2000, void *)(end), 600, "its event is to come");
	is_int(CALL(cuEventElapsedTime, 2000, float *, void *, void *)(&ms, begin, end), 600,
	       "an event that was not recorded has no time");
	wait_for(other, end);
	CALL(cuMemcpyDtoHAsync, 3020, void *, uint64_t, size_t, void *)(pinned, device, 64, other);
	is_int(query(other), 600, "another stream waits for it");
	is_int(synchronize(other), 0, "both are done");
	is_int(pinned[3], 64, "the work ran in order");
	is_int(CALL(cuEventElapsedTime, 2000, float *, void *, void *)(&ms, begin, end), 0,
	       "a reached event has a time");
	ok(ms > 0.1f && ms < 100, "the elapsed time is that of the kernel");
	record(untimed, stream);
	synchronize(stream);
	is_int(CALL(cuEventElapsedTime, 2000, float *, void *, void *)(&ms, begin, untimed), 400, "if it keeps times");
	for (int i = 0; i < 64; i++)
		set_async(device, 100 + (unsigned)i, MIB / 2, stream);
	CALL(cuMemcpyDtoHAsync, 3020, void *, uint64_t, size_t, void *)(pinned, device, 64, NULL);
	is_int(query(other), 0, "a non-blocking stream does not wait for the default one");
	synchronize(NULL);
	is_int(pinned[3], 163, "the default stream waits for blocking streams");
	while (query(stream) == 600)
		;
	is_int(CALL(cuEventDestroy, 4000, void *)(untimed), 0, "an event goes");
	is_int(record(untimed, stream), 400, "a destroyed event cannot be recorded");
	CALL(cuEventDestroy, 4000, void *)(begin);
	CALL(cuEventDestroy, 4000, void *)(end);
	is_int(query((void *)&ms), 400, "a stream that is none");
}

static void add_one(void *arg)
{
	++*(int *)arg;
}

static void callback(void *s, int status, void *arg)
{
	*(int *)arg += s == stream && status == 0 ? 10 : 1000;
}

static void host_functions(void)
{
	uint32_t *word = (uint32_t *)pinned;
	uint64_t p;
	int n = 0, pools = 0;

	set_async(device, 1, 2 * MIB, stream);
	CALL(cuLaunchHostFunc, 10000, void *, void (*)(void *), void *)(stream, add_one, &n);
	is_int(n, 0, "a host function waits for its turn");
	synchronize(stream);
	is_int(n, 1, "the host function is called");
	CALL(cuStreamAddCallback, 5000, void *, void (*)(void *, int, void *), void *, unsigned)
	(stream, callback, &n, 0);
	synchronize(stream);
	is_int(n, 11, "the callback is called with its stream");

	*word = 0;
	CALL(cuStreamWaitValue32, 8000, void *, uint64_t, uint32_t, unsigned)(stream, (uintptr_t)word, 3, 0);
	CALL(cuLaunchHostFunc, 10000, void *, void (*)(void *), void *)(stream, add_one, &n);
	is_int(query(stream), 600, "a stream waits for a value");
	CALL(cuStreamWriteValue32, 8000, void *, uint64_t, uint32_t, unsigned)(other, (uintptr_t)word, 3, 0);
	synchronize(stream);
	is_int(n, 12, "until another writes it");

	CALL(cuDeviceGetAttribute, 2000, int *, int, int)(&pools, 115, 0);
	is_int(pools, 1, "the device says that it supports memory in stream order");
	is_int(CALL(cuMemAllocAsync, 11020, uint64_t *, size_t, void *)(&p, 4 * MIB, stream), 0,
	       "memory in stream order");
	set_async(p, 9, MIB, stream);
	CALL(cuMemcpyDtoHAsync, 3020, void *, uint64_t, size_t, void *)(pinned, p, 64, stream);
	is_int(CALL(cuMemFreeAsync, 11020, uint64_t, void *)(p, stream), 0, "is freed in that order");
	is_int(CALL(cuMemGetAddressRange, 3020, uint64_t *, size_t *, uint64_t)(NULL, NULL, p), 0,
	       "the memory exists until the stream reaches the free");
	synchronize(stream);
	is_int(pinned[5], 9, "the pinned memory was used");
	is_int(to_host(host, p, 4), 1, "the memory is gone after the free");
}

static void hints(void)
{
	const struct um_location there = {UM_LOC_HOST, 0};
	struct um_location here = {UM_LOC_DEVICE, 0};
	uint64_t at[2] = {managed, managed + 4 * MIB};
	size_t bytes[2] = {2 * MIB, 2 * MIB}, index = 0;
	int v[3], attribute[2] = {1, 4};
	void *out[2] = {&v[0], &v[1]};
	size_t sizes[2] = {4, 4};

	is_int(prefetch(managed, 8 * MIB, stream), 0, "a prefetch of managed memory is accepted");
	is_int(prefetch(device, MIB, stream), 1, "a prefetch of device memory is refused");
	is_int(CALL(cuMemPrefetchAsync, 8000, uint64_t, size_t, int, void *)(managed, MIB, -1, stream), 0,
	       "the old form of prefetch is accepted");
	is_int(CALL(cuMemPrefetchAsync, 8000, uint64_t, size_t, int, void *)(managed, MIB, 1, stream), 101,
	       "knows one device");
	is_int(CALL(cuMemAdvise, 12020, uint64_t, size_t, int, struct um_location)(managed, 2 * MIB, 1, there), 0,
	       "advice is accepted");
	is_int(CALL(cuMemAdvise, 8000, uint64_t, size_t, int, int)(managed, 2 * MIB, 3, -1), 0,
	       "advice in its old form is accepted");
	is_int(CALL(cuMemAdvise, 8000, uint64_t, size_t, int, int)(managed, 2 * MIB, 5, -1), 0,
	       "access by the host is advised in the old form");
	CALL(cuMemRangeGetAttribute, 8000, void *, size_t, int, uint64_t, size_t)(v, 4, 1, managed, 2 * MIB);
	is_int(v[0], 1, "the range remembers read-mostly");
	CALL(cuMemRangeGetAttribute, 8000, void *, size_t, int, uint64_t, size_t)(v, 4, 1, managed, 4 * MIB);
	is_int(v[0], 0, "where it holds for all");
	CALL(cuMemRangeGetAttribute, 8000, void *, size_t, int, uint64_t, size_t)(v, 4, 2, managed, 2 * MIB);
	is_int(v[0], -1, "the range remembers its preferred location");
	CALL(cuMemRangeGetAttribute, 8000, void *, size_t, int, uint64_t, size_t)(v, 12, 3, managed, 2 * MIB);
	ok(v[0] == -1 && v[1] == -2 && v[2] == -2, "the range lists who has access");
	is_int(CALL(cuMemRangeGetAttributes, 8000, void **, size_t *, int *, size_t, uint64_t,
		    size_t)(out, sizes, attribute, 2, managed + MIB, MIB),
	       0, "several attributes are read at once");
	ok(v[0] == 1 && v[1] == 0, "where it was sent last");
	CALL(cuMemAdvise, 8000, uint64_t, size_t, int, int)(managed, 2 * MIB, 2, 0);
	CALL(cuMemAdvise, 8000, uint64_t, size_t, int, int)(managed, 2 * MIB, 4, 0);

#define BATCH uint64_t *, size_t *, size_t, struct um_location *, size_t *, size_t, unsigned long long, void *
	is_int(CALL(cuMemPrefetchBatchAsync, 13000, BATCH)(at, bytes, 2, &here, &index, 1, 0, stream), 0,
	       "a batch of prefetches is accepted");
	is_int(CALL(cuMemPrefetchBatchAsync, 13000, BATCH)(at, bytes, 2, &here, &index, 1, 0, NULL), 1,
	       "a batch on the default stream is refused");
	is_int(CALL(cuMemPrefetchBatchAsync, 13000, BATCH)(at, bytes, 2, &here, &index, 1, 0, LEGACY), 1,
	       "a batch on the legacy default stream is refused");
	is_int(CALL_PTSZ(cuMemPrefetchBatchAsync, 13000, BATCH)(at, bytes, 2, &here, &index, 1, 0, NULL), 0,
	       "a batch on the thread's own default stream is accepted");
	is_int(CALL(cuMemDiscardAndPrefetchBatchAsync, 13000, BATCH)(at, bytes, 2, &here, &index, 1, 0, stream), 0,
	       "a batch of discards with prefetches is accepted");
	is_int(CALL(cuMemDiscardBatchAsync, 13000, uint64_t *, size_t *, size_t, unsigned long long,
		    void *)(at, bytes, 1, 0, stream),
	       0, "a batch of discards is accepted");
	is_int(CALL(cuCtxSynchronize, 2000, void)(), 0, "the context completes all work");
	is_int(*(int *)(uintptr_t)(managed + 64), (int)0xdbdbdbdb, "discarded memory loses its content");
}

static void pointers(void)
{
	int attributes[3] = {2, 8, 9}, type = 9, is_managed = 9, ordinal = 9;
	void *out[3] = {&type, &is_managed, &ordinal};
	uint64_t base = 0;

	CALL(cuPointerGetAttributes, 7000, unsigned, int *, void **, uint64_t)(3, attributes, out, managed + 99);
	ok(type == 2 && is_managed == 1 && ordinal == 0, "a managed pointer has its attributes");
	CALL(cuPointerGetAttributes, 7000, unsigned, int *, void **, uint64_t)(3, attributes, out, (uintptr_t)pinned);
	ok(type == 1 && is_managed == 0 && ordinal == 0, "a pinned pointer has its attributes");
	is_int(CALL(cuPointerGetAttributes, 7000, unsigned, int *, void **, uint64_t)(3, attributes, out,
										      (uintptr_t)host),
	       0, "an unknown one is no error");
	ok(type == 0 && is_managed == 0 && ordinal == -2, "unknown memory has no attributes");
	is_int(CALL(cuPointerGetAttribute, 4000, void *, int, uint64_t)(&type, 2, (uintptr_t)host), 1,
	       "a single attribute of unknown memory is refused");
	CALL(cuPointerGetAttribute, 4000, void *, int, uint64_t)(&base, 11, managed + 99);
	is_u64(base, managed, "where it begins");
}

static void *signal_late(void *arg)
{
	struct timespec nap = {0, 50000000};

	nanosleep(&nap, NULL);
	CALL(cuStreamWriteValue32, 8000, void *, uint64_t, uint32_t, unsigned)(other, (uintptr_t)arg, 4, 0);
	return NULL;
}

static void threads(void)
{
	pthread_t t;

	pinned[0] = 0;
	CALL(cuStreamWaitValue32, 8000, void *, uint64_t, uint32_t, unsigned)(stream, (uintptr_t)pinned, 4, 0);
	pthread_create(&t, NULL, signal_late, pinned);
	is_int(synchronize(stream), 0, "what another thread is still to enqueue is waited for");
	pthread_join(t, NULL);
}

static void versions(void)
{
	ok(call_find("cuMemAdvise", 12010, 0) != call_find("cuMemAdvise", 12020, 0),
	   "a name stands for what it was then");
	ok(call_find("cuMemcpyAsync", 13000, 0) != call_find("cuMemcpyAsync", 13000, 2),
	   "a function for the thread's own stream differs from the plain one");
	setenv("UMADVISE_DRYRUN_CUDA", "12.4", 1);
	ok(!call_find("cuMemDiscardBatchAsync", 13000, 0) && !call_find("cuMemPrefetchBatchAsync", 13000, 0) &&
		   !call_find("cuMemGetMemPool", 13000, 0),
	   "a driver of 12.4 has no batches");
	ok(call_find("cuMemPrefetchAsync", 12020, 0) && call_find("cuGraphLaunch", 12000, 0),
	   "all other functions are found");
}

int main(void)
{
	calls_open("13.0");
	allocations();
	copies();
	order();
	host_functions();
	hints();
	pointers();
	threads();
	versions();
	return tap_done();
}
