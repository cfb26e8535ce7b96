/* SPDX-License-Identifier: Apache-2.0
 *
 * run_app.cu - a program that does not know of the library, for run.sh: `run_app MODE [ITERATIONS]` computes with
 * device memory and prints a sum
 *
 * Layers of 8 MiB: forward y[i + 1] = f(y[i], w[i]), then backward over the same. Each mode launches in another way.
 */
#include "run_must.h"

#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <thread>
#include <unistd.h>
#include <umadvise_dryrun.h>
#include <vector>

#define LAYERS 8
#define N (2 << 20)
#define STEP 1024 /* every so many elements are computed */

struct Pair {
	const float *x, *w;
	int n;
};

__global__ void forward(const float *x, const float *w, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = x[i] * w[i] + 1;
}

__global__ void forward_pair(Pair p, float *y)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < p.n)
		y[i] = p.x[i] * p.w[i] + 1;
}

__global__ void backward(const float *y, float *w, const float *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		w[i] -= y[i] * x[i] / 256;
}

/* Named as the kernels of NCCL; the program is alone, so it changes nothing. */
__global__ void ncclDevKernel_AllReduce_Sum_f32_RING_LL(float *w)
{
	w[0] += 0;
}

static void forward_host(void **args, const unsigned *, const unsigned *)
{
	const float *x = *(const float **)args[0], *w = *(const float **)args[1];
	float *y = *(float **)args[2];

	for (int i = 0; i < *(int *)args[3]; i += STEP)
		y[i] = x[i] * w[i] + 1;
}

static void forward_pair_host(void **args, const unsigned *, const unsigned *)
{
	const Pair *p = (const Pair *)args[0];
	float *y = *(float **)args[1];

	for (int i = 0; i < p->n; i += STEP)
		y[i] = p->x[i] * p->w[i] + 1;
}

static void backward_host(void **args, const unsigned *, const unsigned *)
{
	const float *y = *(const float **)args[0], *x = *(const float **)args[2];
	float *w = *(float **)args[1];

	for (int i = 0; i < *(int *)args[3]; i += STEP)
		w[i] -= y[i] * x[i] / 256;
}

struct Net {
	float *y[LAYERS + 1], *w[LAYERS];
	cudaStream_t stream;
};

static float *make(int k, cudaStream_t stream)
{
	static thread_local std::vector<float> host(N);
	float *p;

	if (is("async"))
		MUST(cudaMallocAsync((void **)&p, N * sizeof(float), stream));
	else
		MUST(cudaMalloc((void **)&p, N * sizeof(float)));
	for (int i = 0; i < N; i += STEP)
		host[i] = (float)(k % 7 + 1) / 8;
	MUST(cudaMemcpy(p, host.data(), N * sizeof(float), cudaMemcpyHostToDevice));
	return p;
}

static void open(Net *net, cudaStream_t stream)
{
	net->stream = stream;
	for (int i = 0; i < LAYERS; i++)
		net->w[i] = make(i, stream);
	for (int i = 0; i <= LAYERS; i++)
		net->y[i] = make(i, stream);
}

static void step_forward(const Net *net, int i)
{
	const float *x = net->y[i], *w = net->w[i];
	float *y = net->y[i + 1];
	int n = N;

	if (is("struct")) {
		forward_pair<<<N / 256, 256, 0, net->stream>>>(Pair{x, w, n}, y);
	} else if (is("cooperative")) {
		void *args[] = {&x, &w, &y, &n};

		MUST(cudaLaunchCooperativeKernel((const void *)forward, dim3(N / 256), dim3(256), args, 0,
						 net->stream));
	} else if (is("ex")) {
		cudaLaunchConfig_t c = {dim3(N / 256), dim3(256), 0, net->stream, NULL, 0};

		MUST(cudaLaunchKernelEx(&c, forward, x, w, y, n));
	} else {
		forward<<<N / 256, 256, 0, net->stream>>>(x, w, y, n);
	}
}

/* In ranges whose texts count, as PyTorch's emit_nvtx names them. */
static void step_in_ranges(const Net *net)
{
	static nvtxDomainHandle_t domain = nvtxDomainCreateA("net");
	static int op;
	nvtxEventAttributes_t a = {};
	char name[64];

	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = name;
	for (int i = 0; i < LAYERS; i++) {
		std::snprintf(name, sizeof name, "layer %d", i);
		nvtxDomainRangePushEx(domain, &a);
		std::snprintf(name, sizeof name, "aten::addmm, seq = %d, op_id = %d", op, op + 7);
		nvtxRangePushA(name);
		step_forward(net, i);
		nvtxRangePop();
		nvtxDomainRangePop(domain);
		op++;
	}
}

static void step(const Net *net)
{
	if (is("ranges"))
		step_in_ranges(net);
	for (int i = 0; i < LAYERS && !is("ranges"); i++)
		step_forward(net, i);
	for (int i = LAYERS; i-- > 0;)
		backward<<<N / 256, 256, 0, net->stream>>>(net->y[i + 1], net->w[i], net->y[i], N);
	if (is("collective"))
		ncclDevKernel_AllReduce_Sum_f32_RING_LL<<<1, 1, 0, net->stream>>>(net->w[0]);
	if (is("temporary")) {
		float *p;

		MUST(cudaMalloc((void **)&p, N * sizeof(float)));
		MUST(cudaMemset(p, 0, N * sizeof(float)));
		forward<<<N / 256, 256, 0, net->stream>>>(net->y[0], net->w[0], p, N);
		MUST(cudaFree(p));
	}
	if (is("async")) {
		float *p;

		MUST(cudaMallocAsync((void **)&p, N * sizeof(float), net->stream));
		forward<<<N / 256, 256, 0, net->stream>>>(net->y[0], net->w[0], p, N);
		MUST(cudaFreeAsync(p, net->stream));
	}
}

static double sum(const Net *net)
{
	static thread_local std::vector<float> host(N);
	double all = 0;

	MUST(cudaStreamSynchronize(net->stream));
	for (int k = 0; k < LAYERS; k++) {
		MUST(cudaMemcpy(host.data(), net->w[k], N * sizeof(float), cudaMemcpyDeviceToHost));
		for (int i = 0; i < N; i += STEP)
			all += host[i];
	}
	return all;
}

static void close(Net *net)
{
	for (int i = 0; i < LAYERS; i++)
		MUST(is("async") ? cudaFreeAsync(net->w[i], net->stream) : cudaFree(net->w[i]));
	for (int i = 0; i <= LAYERS; i++)
		MUST(is("async") ? cudaFreeAsync(net->y[i], net->stream) : cudaFree(net->y[i]));
}

/* The iterations, as one graph that is launched again and again in mode graph. */
static void steps(const Net *net, int n)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	if (!is("graph")) {
		for (int i = 0; i < n; i++) {
			char name[32];

			std::snprintf(name, sizeof name, "step %d", i);
			nvtxRangePushA(name);
			step(net);
			nvtxRangePop();
		}
		return;
	}
	MUST(cudaStreamBeginCapture(net->stream, cudaStreamCaptureModeThreadLocal));
	step(net);
	MUST(cudaStreamEndCapture(net->stream, &graph));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < n; i++)
		MUST(cudaGraphLaunch(exec, net->stream));
	MUST(cudaStreamSynchronize(net->stream));
	MUST(cudaGraphExecDestroy(exec));
	MUST(cudaGraphDestroy(graph));
}

static void queries(void)
{
	size_t before, after, total;
	cudaPointerAttributes a;
	CUdeviceptr base;
	void *p, *pitched;
	size_t pitch, bytes;
	int managed = -1;

	MUST(cudaFree(0));
	MUST(cudaMemGetInfo(&before, &total));
	MUST(cudaMalloc(&p, 16 << 20));
	MUST(cudaMemGetInfo(&after, &total));
	MUST(cudaPointerGetAttributes(&a, p));
	std::printf("used %zu of %zu, type %d, host %d\n", before - after, total, a.type, a.hostPointer != NULL);
	MUST(cudaMallocPitch(&pitched, &pitch, 1000, 10));
	std::printf("pitch %zu\n", pitch);
	if (cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)p + 100) == CUDA_SUCCESS)
		std::printf("range %d %zu\n", base == (CUdeviceptr)p, bytes);
	if (cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, (CUdeviceptr)p) == CUDA_SUCCESS)
		std::printf("managed %d\n", managed);
	std::printf("free %s\n", cudaGetErrorName(cudaFree(p)));
	std::printf("again %s\n", cudaGetErrorName(cudaFree(p)));
	MUST(cudaMallocAsync(&p, 1 << 20, 0));
	MUST(cudaPointerGetAttributes(&a, p));
	if (cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)p + 100) == CUDA_SUCCESS)
		std::printf("async type %d range %d %zu\n", a.type, base == (CUdeviceptr)p, bytes);
	MUST(cudaFree(p));
	std::printf("huge %s\n", cudaGetErrorName(cudaMalloc(&p, (size_t)1 << 46)));
	std::printf("none %s\n", cudaGetErrorName(cudaMalloc(&p, 0)));
}

static void run_threads(int n)
{
	std::vector<std::thread> threads;
	std::vector<double> sums(4);

	for (int t = 0; t < 4; t++)
		threads.emplace_back([&, t] {
			cudaStream_t stream;
			Net net;

			MUST(cudaStreamCreate(&stream));
			open(&net, stream);
			steps(&net, n);
			sums[t] = sum(&net);
			MUST(cudaStreamSynchronize(stream));
			MUST(cudaStreamDestroy(stream));
			close(&net);
		});
	for (auto &t : threads)
		t.join();
	for (double s : sums)
		std::printf("%.4f\n", s);
}

/* The same in a library with a runtime of its own: all but this function stays inside. */
#ifdef AS_LIBRARY
extern "C" __attribute__((visibility("default"))) int run_library(int argc, char **argv)
#else
extern "C" int run_library(int argc, char **argv);
int main(int argc, char **argv)
#endif
{
	int n = argc > 2 ? std::atoi(argv[2]) : 10;
	cudaStream_t stream;
	Net net;

	mode = argc > 1 ? argv[1] : "plain";
	umadv_dryrun_kernel((const void *)forward, forward_host);
	umadv_dryrun_kernel((const void *)forward_pair, forward_pair_host);
	umadv_dryrun_kernel((const void *)backward, backward_host);
	if (is("queries")) {
		queries();
		return 0;
	}
	if (is("threads")) {
		run_threads(n);
		return 0;
	}
	MUST(cudaStreamCreate(&stream));
	open(&net, stream);
	steps(&net, n);
	std::printf("%.4f\n", sum(&net));
	std::fflush(stdout);
	if (is("abort"))
		std::abort();
	close(&net);
	if (is("reset")) {
		MUST(cudaDeviceReset());
		MUST(cudaStreamCreate(&stream));
		open(&net, stream);
		steps(&net, n);
		std::printf("%.4f\n", sum(&net));
	}
#ifdef WITH_LIBRARY
	return run_library(argc, argv);
#endif
	return is("fails") ? 7 : 0;
}
