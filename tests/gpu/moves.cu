/* SPDX-License-Identifier: Apache-2.0
 *
 * moves.cu - what it costs to move blocks of managed memory, by the ways there are
 *
 *     moves [--blocks 32] [--rounds 4]
 *
 * Prints the time of a 2 MiB block for each way to evict, and for each way to fetch; what launches of another thread
 * take meanwhile; and, where /proc tells (as root), which functions of the kernel the thread is in. Everything fits:
 * nothing is evicted by the driver.
 */
#include "ask.h"
#include "hazard_child.h"
#include "launching.h"

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <functional>
#include <map>
#include <string>
#include <sys/mman.h>
#include <vector>

static const size_t BLOCK = 2u << 20;
static int blocks = 32, rounds = 4;
static struct um_gpu *gpu;
static const struct um_gpu_api *api;
static char *managed, *pinned, *device;
static cudaStream_t stream, other;

static void good(int code, const char *what)
{
	if (!code)
		return;
	printf("# %s: error %d\n", what, code);
	exit(1);
}

/* --- where a thread is ------------------------------------------------------------------------------------------- */

static std::map<std::string, int> functions; /* seen at the top, and below */
static std::atomic<int> watched(0), watching(1);
static int samples;

static void *watch(void *arg)
{
	char text[8192], path[64];

	for (; watching; nap_ms(0)) {
		long tid = watched;
		int fd, n;

		if (!tid)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%ld/stack", tid);
		fd = open(path, O_RDONLY);
		n = fd < 0 ? 0 : (int)read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		if (n <= 0)
			continue;
		text[n] = 0;
		samples++;
		for (char *line = text, *end = strchr(line, '\n'); end; line = end + 1, end = strchr(line, '\n')) {
			char name[128];

			if (sscanf(line, "[<%*[^>]>] %127[^+\n]", name) == 1)
				functions[name]++;
		}
	}
	return arg;
}

/* --- launches meanwhile ------------------------------------------------------------------------------------------- */

__global__ void touch_kernel(char *at, size_t n)
{
	for (size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 16; i < n; i += (size_t)gridDim.x * blockDim.x * 16)
		at[i]++;
}

/* --- ways --------------------------------------------------------------------------------------------------------- */

static void to_device(void)
{
	good(api->cudaMemPrefetchAsync(gpu, managed, (size_t)blocks * BLOCK, um_on_device(0), 0, stream), "fetch");
	good(cudaStreamSynchronize(stream), "fetch");
}

static void to_host(void)
{
	good(api->cudaMemPrefetchAsync(gpu, managed, (size_t)blocks * BLOCK, um_on_host(), 0, stream), "evict");
	good(cudaStreamSynchronize(stream), "evict");
}

static void write_all(void)
{
	touch_kernel<<<256, 256, 0, stream>>>(managed, (size_t)blocks * BLOCK);
	good(cudaStreamSynchronize(stream), "write");
}

/* Best and median of the rounds, a block. */
static void measure(const char *name, const std::function<void()> &before, const std::function<void()> &run)
{
	std::vector<double> call, all;

	launch_us.clear();
	for (int r = 0; r < rounds; r++) {
		double begin;

		before();
		if (r == rounds - 1)
			launching_begin(other);
		begin = now_ms();
		run();
		call.push_back((now_ms() - begin) / blocks * 1e3);
		good(cudaStreamSynchronize(stream), name);
		all.push_back((now_ms() - begin) / blocks * 1e3);
		if (launching)
			launching_end();
	}
	std::sort(launch_us.begin(), launch_us.end());
	printf("%-44s first %7.1f us a block, then %7.1f to %7.1f, calls %7.1f: %5.1f GB/s; with launches beside it %7.1f, "
	       "%4zu launches, median %5.1f us, most %6.1f\n", name, all[0],
	       *std::min_element(all.begin() + 1, all.end() - 1), *std::max_element(all.begin() + 1, all.end() - 1),
	       call[1], BLOCK / 1e3 / *std::min_element(all.begin() + 1, all.end() - 1), all.back(), launch_us.size(),
	       launch_us.empty() ? 0 : launch_us[launch_us.size() / 2], launch_us.empty() ? 0 : launch_us.back());
	fflush(stdout);
}

static void each_block(int step, const std::function<int(char *, size_t)> &call)
{
	for (int i = 0; i < blocks; i += step)
		good(call(managed + (size_t)i * BLOCK, (size_t)std::min(step, blocks - i) * BLOCK), "a call");
}

static int host_prefetch(char *at, size_t bytes)
{
	return api->cudaMemPrefetchAsync(gpu, at, bytes, um_on_host(), 0, stream);
}

static int device_prefetch(char *at, size_t bytes)
{
	return api->cudaMemPrefetchAsync(gpu, at, bytes, um_on_device(0), 0, stream);
}

static int numa_prefetch(char *at, size_t bytes)
{
	cudaMemLocation to = {};

	to.type = cudaMemLocationTypeHostNuma;
	return (int)cudaMemPrefetchAsync(at, bytes, to, 0, stream);
}

/* All blocks in one call. */
static int batch(struct um_location to)
{
	std::vector<void *> at;
	std::vector<size_t> bytes((size_t)blocks, BLOCK);
	size_t first = 0;

	for (int i = 0; i < blocks; i++)
		at.push_back(managed + (size_t)i * BLOCK);
	return api->cudaMemPrefetchBatchAsync ? api->cudaMemPrefetchBatchAsync(gpu, at.data(), bytes.data(), at.size(), &to,
									       &first, 1, 0, stream)
					      : 0;
}

static cudaStream_t turn[4];

/* A block each, on several streams in turn, as the library's workers do, though on one thread. */
static void in_turn(int streams)
{
	for (int i = 0; i < blocks; i++)
		good(api->cudaMemPrefetchAsync(gpu, managed + (size_t)i * BLOCK, BLOCK, um_on_device(0), 0, turn[i % streams]),
		     "fetch");
	for (int i = 0; i < streams; i++)
		good(cudaStreamSynchronize(turn[i]), "fetch");
}

static char *second; /* as much again, which another thread evicts meanwhile */
static double second_ms;

static void *evict_second(void *arg)
{
	double begin = now_ms();

	(void)cudaSetDevice(0);
	for (int i = 0; i < blocks / 4; i++)
		good(api->cudaMemPrefetchAsync(gpu, second + (size_t)i * BLOCK, BLOCK, um_on_host(), 0, other), "evict");
	second_ms = now_ms() - begin;
	return arg;
}

static void fetch_beside_evictions(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, evict_second, NULL))
		exit(1);
	in_turn(4);
	pthread_join(t, NULL);
}

static int discard(char *at, size_t bytes)
{
	void *p = at;

	return api->cudaMemDiscardBatchAsync ? api->cudaMemDiscardBatchAsync(gpu, &p, &bytes, 1, 0, stream) : 0;
}

static int copy_out(char *at, size_t bytes)
{
	return (int)cudaMemcpyAsync(pinned + (at - managed), at, bytes, cudaMemcpyDeviceToHost, stream);
}

static int copy_in(char *at, size_t bytes)
{
	return (int)cudaMemcpyAsync(at, pinned + (at - managed), bytes, cudaMemcpyHostToDevice, stream);
}

static void busy(void)
{
	for (int i = 0; i < 200; i++)
		touch_kernel<<<256, 256, 0, stream>>>(device, (size_t)blocks * BLOCK);
}

static void all_ways(const char *memory)
{
	auto resident = [] { to_device(); write_all(); };
	auto away = [] { to_device(); write_all(); to_host(); };

	printf("--- %s\n", memory);
	measure("evict: a prefetch a block", resident, [] { each_block(1, host_prefetch); });
	measure("evict: a prefetch for 4 blocks", resident, [] { each_block(4, host_prefetch); });
	measure("evict: a prefetch for all", resident, [] { each_block(blocks, host_prefetch); });
	measure("evict: all in one batch call", resident, [] { good(batch(um_on_host()), "batch"); });
	measure("evict: to the host's NUMA node, a block", resident, [] { each_block(1, numa_prefetch); });
	measure("evict: on a busy stream, a block", [&] { resident(); busy(); }, [] { each_block(1, host_prefetch); });
	measure("fetch: a prefetch a block", away, [] { each_block(1, device_prefetch); });
	measure("fetch: a prefetch for 4 blocks", away, [] { each_block(4, device_prefetch); });
	measure("fetch: a prefetch for all", away, [] { each_block(blocks, device_prefetch); });
	measure("fetch: all in one batch call", away, [] { good(batch(um_on_device(0)), "batch"); });
	measure("fetch: a prefetch a block, 2 streams in turn", away, [] { in_turn(2); });
	measure("fetch: a prefetch a block, 4 streams in turn", away, [] { in_turn(4); });
	measure("fetch: the same, a quarter evicted beside it", [&] {
		away();
		good(api->cudaMemPrefetchAsync(gpu, second, (size_t)blocks * BLOCK, um_on_device(0), 0, stream), "fetch");
		good(cudaStreamSynchronize(stream), "fetch");
	}, fetch_beside_evictions);
	printf("    the evictions took %.1f us a block\n", second_ms * 1e3 / (blocks / 4));
	measure("fetch: by a kernel's faults", away, [] { touch_kernel<<<256, 256, 0, stream>>>(managed, blocks * BLOCK); });
	measure("copy to pinned memory and discard, a block", resident, [] {
		each_block(1, copy_out);
		each_block(1, discard);
	});
	measure("copy from pinned memory, a block", resident, [] { each_block(1, copy_in); });
	measure("the same, discarded before and prefetched", resident, [] {
		each_block(1, discard);
		each_block(1, device_prefetch);
		each_block(1, copy_in);
	});
	measure("resident already: a prefetch a block", resident, [] { each_block(1, device_prefetch); });
	measure("resident already: a prefetch for all", resident, [] { each_block(blocks, device_prefetch); });
}

int main(int argc, char **argv)
{
	struct um_device_options options = {UM_VIA_ANY, -1, 1, 0};
	char why[200] = "";
	pthread_t t;
	size_t bytes;

	for (int i = 1; i + 1 < argc; i += 2)
		(!strcmp(argv[i], "--blocks") ? blocks : rounds) = std::max(atoi(argv[i + 1]), 3);
	bytes = (size_t)blocks * BLOCK;
	ask(4 * bytes, 0);
	good(um_device_open(&gpu, &options, why, sizeof(why)), "um_device_open");
	api = gpu->api;
	good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
	good(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
	good(cudaMallocHost((void **)&pinned, bytes), "pinned");
	good(cudaMalloc((void **)&device, bytes), "device");
	for (cudaStream_t &t : turn)
		good(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking), "stream");
	good(cudaMallocManaged((void **)&second, bytes), "second");
	nothing_kernel<<<1, 1, 0, other>>>();
	touch_kernel<<<1, 1, 0, stream>>>(device, 16);
	good(cudaDeviceSynchronize(), "warm");

	good(cudaMallocManaged((void **)&managed, bytes), "managed");
	all_ways("first written by the device");
	if (!pthread_create(&t, NULL, watch, NULL)) {
		for (int r = 0; r < 8; r++) {
			to_device();
			write_all();
			watched = (int)syscall(SYS_gettid);
			each_block(1, host_prefetch);
			watched = 0;
		}
		watching = 0;
		pthread_join(t, NULL);
		std::vector<std::pair<int, std::string>> top;

		for (const auto &f : functions)
			top.push_back({f.second, f.first});
		std::sort(top.rbegin(), top.rend());
		printf("--- evicting, of %d samples\n", samples);
		for (size_t i = 0; i < top.size() && i < 40; i++)
			printf("%6d %s\n", top[i].first, top[i].second.c_str());
	}
	good(cudaFree(managed), "free");
	good(cudaMallocManaged((void **)&managed, bytes), "managed");
	memset(managed, 1, bytes);
	all_ways("first written by the host");
	good(cudaMemAdvise(managed, bytes, cudaMemAdviseSetPreferredLocation, {cudaMemLocationTypeHost, 0}), "advise");
	all_ways("preferred location: the host");
	return 0;
}
