/* SPDX-License-Identifier: Apache-2.0
 *
 * run_devices.cu - a program for two devices that does not know of the library, for run_devices.sh: `run_devices MODE`
 * adds vectors on both, and prints a sum for each device
 *
 *     turns      one thread gives work to both devices in turn
 *     threads    a thread for each device
 *     copy       as turns; after each step the first vector of each device is copied to the other one
 *     managed    as turns; all vectors are managed memory, allocated for the first device; both devices read the same
 *                vectors, and in each step the first device writes one that the second one reads
 *     halves     two large arrays of managed memory; each device uses a half of both
 *     whole      the same; each device in turn uses both as a whole
 */
#include "run_must.h"

#include <thread>
#include <umadvise_dryrun.h>

#define DEVICES 2
#define VECTORS 8
#define N (4 << 20)
#define STEPS 12
#define STEP 1024 /* every so many elements are computed */

static float *v[DEVICES][VECTORS], *other[DEVICES];
static float *both[VECTORS / 2], *pass, *large[2];

__global__ void mix(float *y, const float *x, float a, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = y[i] / 2 + x[i] * a + 1;
}

static void mix_host(void **args, const unsigned *, const unsigned *)
{
	float *y = *(float **)args[0];
	const float *x = *(const float **)args[1];

	for (int i = 0; i < *(int *)args[3]; i += STEP)
		y[i] = y[i] / 2 + x[i] * *(float *)args[2] + 1;
}

static float *allocate_managed(int d, int vectors)
{
	float *p;

	MUST(cudaMallocManaged((void **)&p, vectors * N * sizeof(float)));
	for (int i = 0; i < vectors * N; i += STEP)
		p[i] = (float)d;
	return p;
}

static void open_managed(void)
{
	MUST(cudaSetDevice(0));
	pass = allocate_managed(0, 1);
	for (int i = 0; i < VECTORS / 2; i++)
		both[i] = allocate_managed(1, 1);
	for (int d = 0; d < DEVICES; d++)
		for (int i = 0; i < VECTORS; i++)
			v[d][i] = allocate_managed(d, 1);
}

static void open_large(void)
{
	MUST(cudaSetDevice(0));
	for (int i = 0; i < 2; i++)
		large[i] = allocate_managed(i, VECTORS);
	for (int d = 0; d < DEVICES; d++)
		v[d][VECTORS - 1] = large[d];
}

static void open(int d)
{
	MUST(cudaSetDevice(d));
	for (int i = 0; i < VECTORS; i++) {
		MUST(cudaMalloc((void **)&v[d][i], N * sizeof(float)));
		MUST(cudaMemset(v[d][i], 0, N * sizeof(float)));
	}
	MUST(cudaMalloc((void **)&other[d], N * sizeof(float)));
	MUST(cudaMemset(other[d], 0, N * sizeof(float)));
	MUST(cudaDeviceSynchronize());
}

static void step(int d)
{
	MUST(cudaSetDevice(d));
	for (int i = 0; i < VECTORS; i++)
		mix<<<N / 256, 256>>>(v[d][i], i ? v[d][i - 1] : other[d], 0.25f * (float)(d + 1), N);
	MUST(cudaGetLastError());
}

static void step_managed(int d)
{
	MUST(cudaSetDevice(d));
	if (d)
		mix<<<N / 256, 256>>>(v[d][0], pass, 0.25f, N);
	for (int i = 0; i < VECTORS; i++)
		mix<<<N / 256, 256>>>(v[d][i], both[i % (VECTORS / 2)], 0.25f * (float)(d + 1), N);
	if (!d)
		mix<<<N / 256, 256>>>(pass, v[d][0], 0.25f, N);
	MUST(cudaGetLastError());
	MUST(cudaDeviceSynchronize());
}

static void step_large(int d, int k)
{
	int n = is("halves") ? VECTORS * N / 2 : VECTORS * N, from = is("halves") ? d * n : 0;

	MUST(cudaSetDevice(d));
	mix<<<n / 256, 256>>>(large[k % 2] + from, large[(k + 1) % 2] + from, 0.25f, n);
	MUST(cudaGetLastError());
	if (is("whole"))
		MUST(cudaDeviceSynchronize());
}

static void steps(int d)
{
	for (int k = 0; k < STEPS; k++)
		step(d);
	MUST(cudaDeviceSynchronize());
}

static void exchange(void)
{
	for (int d = 0; d < DEVICES; d++) {
		MUST(cudaSetDevice(d));
		MUST(cudaDeviceSynchronize());
	}
	for (int d = 0; d < DEVICES; d++)
		MUST(cudaMemcpyPeer(other[d], d, v[1 - d][VECTORS - 1], 1 - d, N * sizeof(float)));
}

static void print_sums(void)
{
	static float host[N];

	for (int d = 0; d < DEVICES; d++) {
		double sum = 0;

		MUST(cudaSetDevice(d));
		MUST(cudaMemcpy(host, v[d][VECTORS - 1], sizeof host, cudaMemcpyDeviceToHost));
		for (int i = 0; i < N; i += STEP)
			sum += host[i];
		std::printf("%.4f\n", sum);
	}
}

int main(int argc, char **argv)
{
	int count = 0;

	mode = argc > 1 ? argv[1] : "turns";
	umadv_dryrun_kernel((const void *)mix, mix_host);
	MUST(cudaGetDeviceCount(&count));
	if (count < DEVICES) {
		std::printf("%d devices\n", count);
		return 4;
	}
	if (is("managed"))
		open_managed();
	else if (is("halves") || is("whole"))
		open_large();
	else
		for (int d = 0; d < DEVICES; d++)
			open(d);
	if (is("threads")) {
		std::thread second(steps, 1);

		steps(0);
		second.join();
	}
	for (int k = 0; k < STEPS && !is("threads"); k++) {
		for (int d = 0; d < DEVICES; d++)
			large[0] ? step_large(d, k) : is("managed") ? step_managed(d) : step(d);
		for (int d = 0; large[0] && d < DEVICES; d++) {
			MUST(cudaSetDevice(d));
			MUST(cudaDeviceSynchronize());
		}
		if (is("copy"))
			exchange();
	}
	print_sums();
	return 0;
}
