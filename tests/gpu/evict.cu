/* SPDX-License-Identifier: Apache-2.0
 *
 * evict.cu - which ways to evict managed memory run side by side, and what waits for them
 *
 *     evict [--blocks 256] [--rounds 4]
 *
 * A block of 2 MiB at a time, by 1 to 8 threads: prefetches to the host in the program's context, the same in another
 * context for each thread, and requests to the driver's kernel module (lib/gpu/kernel_evict.h). Another thread launches
 * kernels meanwhile; the second time, four streams fetch other blocks, too. The bytes are compared each time.
 * Everything fits: nothing is evicted by the driver.
 */
#include "ask.h"
#include "hazard_child.h"
#include "launching.h"

extern "C" {
#include "gpu/kernel_evict.h"
}

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <vector>

enum way { PRIMARY, OTHER_CONTEXT, REQUEST, WAYS };

static const char *const names[] = {"prefetch, the program's context", "prefetch, a context each", "kernel module"};
static const size_t BLOCK = 2u << 20;
enum { MOST = 8, CONTEXTS = 4, FETCHERS = 4 };
static int blocks = 256, rounds = 4;
static char *managed, *second;
static cudaStream_t stream, other, fetch_stream[FETCHERS];
static int module_fd, wrong;

static void good(int code, const char *what)
{
	if (!code)
		return;
	printf("# %s: error %d\n", what, code);
	exit(1);
}

static int move(char *at, size_t bytes, bool to_device, cudaStream_t s)
{
#if CUDART_VERSION >= 13000
	cudaMemLocation to = {to_device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost, 0};

	return (int)cudaMemPrefetchAsync(at, bytes, to, 0, s);
#else
	return (int)cudaMemPrefetchAsync(at, bytes, to_device ? 0 : cudaCpuDeviceId, s);
#endif
}

/* --- threads that evict ------------------------------------------------------------------------------------------- */

struct evicter {
	int i;
	pthread_t thread;
	void *context; /* of its own, or NULL */
	cudaStream_t primary, own;
};

static struct evicter evicters[MOST];
static pthread_barrier_t begin_all, end_all;
static std::atomic<int> active(0), with(PRIMARY), stop(0);
static int (*create_context)(void **context, unsigned flags, int device);
static int (*set_context)(void *context);

static void *evicter_run(void *arg)
{
	struct evicter *e = (struct evicter *)arg;

	for (;;) {
		pthread_barrier_wait(&begin_all);
		if (stop)
			return NULL;
		good(with == OTHER_CONTEXT && e->context ? set_context(e->context) : (int)cudaSetDevice(0), "context");
		for (int b = e->i; e->i < active && b < blocks; b += active) {
			char *at = managed + (size_t)b * BLOCK;

			good(with == REQUEST ? um_kernel_evict(module_fd, at, BLOCK, UM_ANY_NODE)
					     : move(at, BLOCK, false, with == PRIMARY ? e->primary : e->own),
			     names[with]);
		}
		pthread_barrier_wait(&end_all);
	}
}

/* Number of contexts. */
static int make_contexts(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int n = 0;

	if (driver) {
		*(void **)&create_context = dlsym(driver, "cuCtxCreate_v2");
		*(void **)&set_context = dlsym(driver, "cuCtxSetCurrent");
	}
	for (; create_context && set_context && n < CONTEXTS; n++) {
		if (create_context(&evicters[n].context, 0, 0)) {
			evicters[n].context = NULL;
			break;
		}
		good(cudaStreamCreateWithFlags(&evicters[n].own, cudaStreamNonBlocking), "stream");
	}
	good(cudaSetDevice(0), "device");
	return n;
}

/* --- launches and fetches meanwhile ------------------------------------------------------------------------------- */

__global__ void fill_kernel(unsigned *at, size_t n, unsigned seed)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
		at[i] = (unsigned)i * 2654435761u + seed;
}

static double fetch_ms;

static void *fetches(void *arg)
{
	double from = now_ms();

	(void)cudaSetDevice(0);
	for (int b = 0; b < blocks; b++)
		good(move(second + (size_t)b * BLOCK, BLOCK, true, fetch_stream[b % FETCHERS]), "fetch");
	for (cudaStream_t s : fetch_stream)
		good(cudaStreamSynchronize(s), "fetch");
	fetch_ms = now_ms() - from;
	return arg;
}

static void place(char *at, bool on_device)
{
	good(move(at, (size_t)blocks * BLOCK, on_device, stream), "prefetch");
	good(cudaStreamSynchronize(stream), "prefetch");
}

/* One round, in ms. */
static double run(unsigned seed, bool fetch)
{
	pthread_t fetcher;
	double from;

	place(managed, true);
	fill_kernel<<<256, 256, 0, stream>>>((unsigned *)managed, (size_t)blocks * BLOCK / 4, seed);
	good(cudaStreamSynchronize(stream), "fill");
	if (fetch)
		place(second, false);
	launching_begin(other);
	if (fetch)
		good(pthread_create(&fetcher, NULL, fetches, NULL), "thread");
	from = now_ms();
	pthread_barrier_wait(&begin_all);
	pthread_barrier_wait(&end_all);
	from = now_ms() - from;
	if (fetch)
		pthread_join(fetcher, NULL);
	launching_end();
	for (size_t i = 0; i < (size_t)blocks * BLOCK / 4; i += 1021)
		wrong += ((unsigned *)managed)[i] != (unsigned)i * 2654435761u + seed;
	return from;
}

static void measure(int way, int threads, bool fetch)
{
	double least = 1e9, most = 0, least_fetch = 1e9;

	with = way;
	active = threads;
	launch_us.clear();
	for (int r = 0; r <= rounds; r++) {
		double ms = run((unsigned)r, fetch);

		if (!r) /* the host's memory is new */
			continue;
		least = std::min(least, ms);
		most = std::max(most, ms);
		least_fetch = std::min(least_fetch, fetch_ms);
	}
	std::sort(launch_us.begin(), launch_us.end());
	printf("%-32s %d threads: %6.1f to %6.1f us a block, %5.1f GB/s; ", names[way], threads, least * 1e3 / blocks,
	       most * 1e3 / blocks, (double)BLOCK * blocks / least / 1e6);
	if (fetch)
		printf("fetches %5.1f us a block; ", least_fetch * 1e3 / blocks);
	printf("launches: median %5.1f us, 99 %% %7.1f\n", launch_us[launch_us.size() / 2],
	       launch_us[launch_us.size() * 99 / 100]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	size_t before, after, total;
	int contexts;

	for (int i = 1; i + 1 < argc; i += 2)
		(!strcmp(argv[i], "--blocks") ? blocks : rounds) = std::max(atoi(argv[i + 1]), 2);
	ask(2 * (size_t)blocks * BLOCK, 0);
	good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
	good(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
	for (cudaStream_t &s : fetch_stream)
		good(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
	good(cudaMallocManaged((void **)&managed, (size_t)blocks * BLOCK), "managed");
	good(cudaMallocManaged((void **)&second, (size_t)blocks * BLOCK), "managed");
	memset(second, 1, (size_t)blocks * BLOCK);
	nothing_kernel<<<1, 1, 0, other>>>();
	fill_kernel<<<1, 1, 0, stream>>>((unsigned *)managed, 16, 0);
	good(cudaDeviceSynchronize(), "warm");
	module_fd = um_kernel_evict_open(UM_KERNEL_MODULE, managed, BLOCK);
	for (struct evicter &e : evicters) {
		e.i = (int)(&e - evicters);
		good(cudaStreamCreateWithFlags(&e.primary, cudaStreamNonBlocking), "stream");
	}
	good(cudaMemGetInfo(&before, &total), "memory");
	contexts = make_contexts();
	good(cudaMemGetInfo(&after, &total), "memory");
	printf("%d contexts take %.0f MiB of the device; the kernel module %s\n", contexts,
	       ((double)before - (double)after) / (1 << 20), module_fd < 0 ? "takes no requests" : "takes requests");
	pthread_barrier_init(&begin_all, NULL, MOST + 1);
	pthread_barrier_init(&end_all, NULL, MOST + 1);
	for (struct evicter &e : evicters)
		good(pthread_create(&e.thread, NULL, evicter_run, &e), "thread");
	for (bool fetch : {false, true})
		for (int way = 0; way < WAYS; way++)
			for (int threads = 1; threads <= MOST; threads *= 2)
				if (way == PRIMARY || (way == REQUEST ? module_fd >= 0 : threads <= contexts))
					measure(way, threads, fetch);
	stop = 1;
	pthread_barrier_wait(&begin_all);
	for (struct evicter &e : evicters)
		pthread_join(e.thread, NULL);
	if (wrong)
		printf("%d wrong numbers\n", wrong);
	return wrong != 0;
}
