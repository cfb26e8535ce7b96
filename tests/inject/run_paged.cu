/* SPDX-License-Identifier: Apache-2.0
 *
 * run_paged.cu - a program with a paged optimizer that does not know of the library, for paged.sh: `run_paged MODE
 * [ITERATIONS]` trains with state in managed memory, and prints a sum
 *
 * Parameters and gradients of 4 MiB are device memory. The two states of each are managed memory that is attached to
 * the host. Before its update the state is prefetched, and after it the program waits for the device:
 *
 *     paged      as bitsandbytes 0.50 does
 *     global     the state is attached globally
 *     batch      both states are prefetched by one call
 *     side       kernels run in a non-blocking stream, so that only waiting for the device tells when they end
 *     brief      the same, and each stream is destroyed before its work is complete
 *     none       without prefetches
 *     refused    prefetches that CUDA refuses are made in each iteration, and their errors printed in the last one
 */
#include "run_must.h"

#include <cuda.h>
#include <umadvise_dryrun.h>

#define LAYERS 8
#define N (1 << 20)
#define STEP 1024 /* every so many elements are computed */

__global__ void backward(const float *p, float *g, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		g[i] = p[i] / 2 + 1;
}

__global__ void update(float *p, const float *g, float *m, float *v, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	m[i] = (m[i] + g[i]) / 2;
	v[i] = (v[i] + g[i] * g[i]) / 2;
	p[i] -= m[i] / (v[i] + 1) / 16;
}

static void backward_host(void **args, const unsigned *, const unsigned *)
{
	const float *p = *(const float **)args[0];
	float *g = *(float **)args[1];

	for (int i = 0; i < *(int *)args[2]; i += STEP)
		g[i] = p[i] / 2 + 1;
}

static void update_host(void **args, const unsigned *, const unsigned *)
{
	float *p = *(float **)args[0], *m = *(float **)args[2], *v = *(float **)args[3];
	const float *g = *(const float **)args[1];

	for (int i = 0; i < *(int *)args[4]; i += STEP) {
		m[i] = (m[i] + g[i]) / 2;
		v[i] = (v[i] + g[i] * g[i]) / 2;
		p[i] -= m[i] / (v[i] + 1) / 16;
	}
}

#define BYTES (N * sizeof(float))

static float *p[LAYERS], *g[LAYERS], *m[LAYERS], *v[LAYERS];
static cudaStream_t stream; /* NULL: the default stream */

static void begin(void)
{
	MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

static void open(void)
{
	unsigned attached = is("global") ? cudaMemAttachGlobal : cudaMemAttachHost;

	if (is("side"))
		begin();
	for (int i = 0; i < LAYERS; i++) {
		MUST(cudaMalloc((void **)&p[i], BYTES));
		MUST(cudaMalloc((void **)&g[i], BYTES));
		MUST(cudaMemset(p[i], 0, BYTES));
		MUST(cudaMallocManaged((void **)&m[i], BYTES, attached));
		MUST(cudaMallocManaged((void **)&v[i], BYTES, attached));
		MUST(cudaMemset(m[i], 0, BYTES));
		MUST(cudaMemset(v[i], 0, BYTES));
	}
	MUST(cudaDeviceSynchronize());
}

static void prefetch(int i)
{
	cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	void *at[] = {m[i], v[i]};
	size_t bytes[] = {BYTES, BYTES}, first = 0;

	if (is("none"))
		return;
	if (is("batch")) {
		MUST(cudaMemPrefetchBatchAsync(at, bytes, 2, &here, &first, 1, 0, cudaStreamPerThread));
		return;
	}
	MUST(cudaMemPrefetchAsync(m[i], BYTES, here, 0, stream));
	MUST(cudaMemPrefetchAsync(v[i], BYTES, here, 0, stream));
}

/* More bytes than the allocation has, a flag, a device that is not there, and no bytes. */
static void refused(int i, int shown)
{
	cudaMemLocation here = {cudaMemLocationTypeDevice, 0}, nowhere = {cudaMemLocationTypeDevice, 7};
	cudaError_t err[] = {
		cudaMemPrefetchAsync(m[i], (size_t)1 << 40, here, 0, stream),
		cudaMemPrefetchAsync(m[i], BYTES, here, 1, stream),
		cudaMemPrefetchAsync(m[i], BYTES, nowhere, 0, stream),
		cudaMemPrefetchAsync(m[i], 0, here, 0, stream),
	};

	for (size_t k = 0; k < sizeof err / sizeof *err && shown; k++)
		std::printf("%s%c", cudaGetErrorName(err[k]), k + 1 == sizeof err / sizeof *err ? '\n' : ' ');
	cudaGetLastError();
}

static void step(int last)
{
	if (is("brief"))
		begin();
	for (int i = LAYERS; i-- > 0;)
		backward<<<N / 256, 256, 0, stream>>>(p[i], g[i], N);
	for (int i = 0; i < LAYERS; i++) {
		prefetch(i);
		if (is("refused"))
			refused(i, last && i == 0);
		update<<<N / 256, 256, 0, stream>>>(p[i], g[i], m[i], v[i], N);
		if (is("brief") && i + 1 == LAYERS)
			MUST(cudaStreamDestroy(stream));
		MUST(cudaDeviceSynchronize());
	}
}

/* The CPU reads the state in place, as a checkpoint does, right after waiting for the device. */
static double sum(void)
{
	static float host[N];
	double s = 0;

	for (int i = 0; i < LAYERS; i++)
		for (int k = 0; k < N; k += STEP)
			s += (double)m[i][k] + v[i][k];
	for (int i = 0; i < LAYERS; i++) {
		MUST(cudaMemcpy(host, p[i], BYTES, cudaMemcpyDeviceToHost));
		for (int k = 0; k < N; k += STEP)
			s += (double)host[k];
	}
	return s;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? std::atoi(argv[2]) : 12;

	mode = argc > 1 ? argv[1] : "paged";
	umadv_dryrun_kernel((const void *)backward, backward_host);
	umadv_dryrun_kernel((const void *)update, update_host);
	open();
	for (int i = 0; i < n; i++)
		step(i + 1 == n);
	std::printf("%.4f\n", sum());
	return 0;
}
