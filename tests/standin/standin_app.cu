/* SPDX-License-Identifier: Apache-2.0
 *
 * standin_app.cu - a program of the runtime API, for standin_runtime.sh: one line for each thing that it sees
 */
#include <cstdio>
#include <cstring>
#include <umadvise_dryrun.h>

struct Pair {
	float *at;
	int n;
	double add;
};

__device__ float table[10] = {1, 2, 3};
__constant__ float fixed_values[4] = {5, 6, 7, 8};
__managed__ int counter = 7;

__global__ void mixed(Pair p, char c, const float *q, short s)
{
	p.at[0] = q[c] + table[1] + (float)p.add + s;
}

template <class T> __global__ void fill(T *at, int n, T value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		at[i] = value;
}

static void mixed_host(void **args, const unsigned *grid, const unsigned *block)
{
	Pair *p = (Pair *)args[0];

	p->at[0] = (*(const float **)args[2])[*(char *)args[1]] + (float)p->add + *(short *)args[3] +
		   100.0f * grid[0] + block[0];
}

static void fill_host(void **args, const unsigned *, const unsigned *)
{
	for (int i = 0; i < *(int *)args[1]; i++)
		(*(double **)args[0])[i] = *(double *)args[2];
}

static void say(const char *what, cudaError_t err)
{
	std::printf("%s: %s\n", what, cudaGetErrorName(err));
}

static void hints(float *p, cudaStream_t stream)
{
#if CUDART_VERSION >= 13000
	cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	void *ptrs[1] = {p};
	size_t sizes[1] = {8 << 20}, zero = 0;

	say("prefetch", cudaMemPrefetchAsync(p, 8 << 20, here, 0, stream));
	say("advise", cudaMemAdvise(p, 8 << 20, cudaMemAdviseSetReadMostly, here));
	say("batch", cudaMemPrefetchBatchAsync(ptrs, sizes, 1, &here, &zero, 1, 0, stream));
	say("discard", cudaMemDiscardBatchAsync(ptrs, sizes, 1, 0, stream));
#else
	say("prefetch", cudaMemPrefetchAsync(p, 8 << 20, 0, stream));
	say("advise", cudaMemAdvise(p, 8 << 20, cudaMemAdviseSetReadMostly, 0));
#endif
}

static void symbols(void)
{
	float got[3] = {0, 0, 0}, put = 42;
	void *at = NULL;
	size_t bytes = 0;

	cudaMemcpyFromSymbol(got, table, sizeof got);
	cudaMemcpyToSymbol(table, &put, sizeof put);
	std::printf("table %g %g %g", got[0], got[1], got[2]);
	cudaMemcpyFromSymbol(got, table, sizeof got);
	std::printf(" then %g\n", got[0]);
	cudaGetSymbolSize(&bytes, fixed_values);
	cudaGetSymbolAddress(&at, counter);
	std::printf("constant %zu bytes, managed %d at its address %d\n", bytes, counter, at == (void *)&counter);
	say("symbol of nobody", cudaGetSymbolAddress(&at, got));
}

static void pools(cudaStream_t stream)
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool = NULL, before = NULL;
	unsigned long long keep = 1 << 20, kept = 0;
	void *p = NULL;

	props.allocType = cudaMemAllocationTypePinned;
	props.location = {cudaMemLocationTypeDevice, 0};
	say("pool", cudaMemPoolCreate(&pool, &props));
	cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
	cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
	cudaDeviceGetMemPool(&before, 0);
	std::printf("keeps %d, is not the device's %d\n", kept == keep, before && before != pool);
	say("from it", cudaMallocFromPoolAsync(&p, 4096, pool, stream));
	say("set", cudaMemsetAsync(p, 1, 4096, stream));
	say("back", cudaFreeAsync(p, stream));
	say("trim", cudaMemPoolTrimTo(pool, 0));
	say("no pool", cudaMemPoolDestroy(pool));
}

static cudaGraph_t fills_of(char *p, int value, int n, cudaStream_t stream)
{
	cudaGraph_t graph = NULL;

	cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
	for (int i = 0; i < n; i++)
		cudaMemsetAsync(p + i, value, 1, stream);
	cudaStreamEndCapture(stream, &graph);
	return graph;
}

static void updates(char *p, cudaStream_t stream)
{
	cudaGraph_t one = fills_of(p, 1, 1, stream), two = fills_of(p, 2, 1, stream), both = fills_of(p, 3, 2, stream);
	cudaGraphExecUpdateResultInfo how;
	cudaGraphExec_t exec;

	cudaGraphInstantiate(&exec, one, 0);
	say("update", cudaGraphExecUpdate(exec, two, &how));
	cudaGraphLaunch(exec, stream);
	cudaStreamSynchronize(stream);
	std::printf("result %d, fills with %d\n", how.result, *p);
	say("update by more nodes", cudaGraphExecUpdate(exec, both, &how));
	std::printf("result %d\n", how.result);
	cudaGetLastError();
	cudaGraphExecDestroy(exec);
	cudaGraphDestroy(one);
	cudaGraphDestroy(two);
	cudaGraphDestroy(both);
}

int main(void)
{
	cudaPointerAttributes about;
	cudaDeviceProp prop;
	cudaStream_t stream;
	cudaEvent_t begin, end;
	double *wide = NULL;
	float *p = NULL, *q = NULL, ms = 0, in[4] = {0, 10, 20, 30};
	float *none = in;
	int count = 0, runtime = 0, driver = 0, blocks = 0;

	cudaRuntimeGetVersion(&runtime);
	cudaDriverGetVersion(&driver);
	say("count", cudaGetDeviceCount(&count));
	if (!count)
		return 1;
	counter += 1;
	std::memset(&prop, 0x5a, sizeof prop);
	cudaGetDeviceProperties(&prop, 0);
	std::printf("runtime %d driver %d devices %d\n", runtime, driver, count);
	std::printf("%s %d.%d, %d, %d threads, %d, memory %zu, reserved %d\n", prop.name, prop.major, prop.minor,
		    prop.multiProcessorCount, prop.maxThreadsPerBlock, prop.concurrentManagedAccess,
		    prop.totalGlobalMem, prop.reserved[0]);
	say("managed", cudaMallocManaged(&p, 8 << 20));
	say("device", cudaMalloc(&q, 1 << 20));
	say("device, 0 bytes", cudaMalloc(&none, 0));
	std::printf("none %d\n", none == nullptr);
	say("managed, 0 bytes", cudaMallocManaged(&none, 0));
	cudaGetLastError();
	cudaMallocManaged(&wide, 8192);
	say("copy", cudaMemcpy(q, in, sizeof in, cudaMemcpyHostToDevice));
	cudaStreamCreate(&stream);
	cudaEventCreate(&begin);
	cudaEventCreate(&end);
	std::printf("stand for kernels %d %d\n", umadv_dryrun_kernel((const void *)mixed, mixed_host),
		    umadv_dryrun_kernel((const void *)fill<double>, fill_host));
	cudaEventRecord(begin, stream);
	Pair pair = {p, 3, 0.5};
	mixed<<<3, 64, 0, stream>>>(pair, 2, q, (short)4);
	fill<<<4, 256, 0, stream>>>(wide, 1024, 2.5);
	say("launch", cudaGetLastError());
	cudaEventRecord(end, stream);
	say("wait", cudaStreamSynchronize(stream));
	unsigned long long id = 0, other = 0;
	say("id", cudaStreamGetId(stream, &id));
	cudaStreamGetId(NULL, &other);
	std::printf("another stream has another one: %d\n", id != other);
	cudaEventElapsedTime(&ms, begin, end);
	std::printf("mixed %g fill %g %g, time passed %d\n", p[0], wide[0], wide[1023], ms > 0);
	symbols();
	hints(p, stream);
	pools(stream);
	updates((char *)wide, stream);
	cudaPointerGetAttributes(&about, p + 5);
	std::printf("kinds %d", (int)about.type);
	cudaPointerGetAttributes(&about, q);
	std::printf(" %d", (int)about.type);
	cudaPointerGetAttributes(&about, in);
	std::printf(" %d\n", (int)about.type);
	cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, mixed, 256, 0);
	std::printf("blocks %d\n", blocks);
	mixed<<<1, 2048>>>(pair, 0, q, (short)0);
	say("too many threads", cudaPeekAtLastError());
	say("last", cudaGetLastError());
	say("last again", cudaGetLastError());
	say("absent", cudaMallocMipmappedArray(NULL, NULL, make_cudaExtent(1, 1, 1), 1));
	say("free", cudaFree(p));
	say("free twice", cudaFree(p));
	return 0;
}
