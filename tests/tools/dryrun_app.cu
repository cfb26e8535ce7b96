/* SPDX-License-Identifier: Apache-2.0
 *
 * dryrun_app.cu - a program that nvcc compiles, for tests of `umadvise dryrun`: managed memory of 8 MiB is initialised
 * from a file by the C library and doubled by a kernel, three times, then read back; it prints the mean
 */
#include <cstdio>
#include <cuda_runtime.h>
#include <umadvise_dryrun.h>

#define N (2u << 20)

__global__ void twice(float *x, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] *= 2;
}

static void twice_host(void **args, const unsigned *, const unsigned *)
{
	float *x = *(float **)args[0];

	for (unsigned i = 0, n = *(unsigned *)args[1]; i < n; i++)
		x[i] *= 2;
}

static int must(cudaError_t err, const char *what)
{
	if (err != cudaSuccess)
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err));
	return err != cudaSuccess;
}

int main(int, char **argv)
{
	FILE *f = fopen(argv[1], "rb");
	double sum = 0;
	float *x;

	if (!f || must(cudaMallocManaged(&x, N * sizeof *x), "cudaMallocManaged"))
		return 1;
	if (umadv_dryrun_kernel((const void *)twice, twice_host) != 1)
		return 2;
	for (int round = 0; round < 3; round++) {
		/* The second time into memory that is on the device: one big read, which is a system call. */
		rewind(f);
		if (fread(x, sizeof *x, N, f) != N)
			return 3;
		twice<<<N / 256, 256>>>(x, N);
		if (must(cudaGetLastError(), "launch") || must(cudaDeviceSynchronize(), "cudaDeviceSynchronize"))
			return 1;
	}
	for (unsigned i = 0; i < N; i++)
		sum += x[i];
	fclose(f);
	printf("mean %.3f\n", sum / N);
	return must(cudaFree(x), "cudaFree");
}
