/* SPDX-License-Identifier: Apache-2.0
 *
 * run_blas.cu - sums of vectors by cuBLAS in device memory, for run.sh
 */
#include <cstdio>
#include <cublas_v2.h>
#include <vector>

#define VECTORS 5
#define N (2 << 20)

int main()
{
	std::vector<float> host(N, 1.5f);
	cublasHandle_t handle;
	float *v[VECTORS], one = 1, sum = 0;

	if (cublasCreate(&handle))
		return 1;
	for (int i = 0; i < VECTORS; i++)
		if (cudaMalloc((void **)&v[i], N * sizeof(float)) ||
		    cudaMemcpy(v[i], host.data(), N * sizeof(float), cudaMemcpyHostToDevice))
			return 2;
	for (int step = 0; step < 8; step++)
		for (int i = 0; i < VECTORS; i++)
			if (cublasSaxpy(handle, N, &one, v[i], 1, v[(i + 1) % VECTORS], 1))
				return 3;
	for (int i = 0; i < VECTORS; i++) {
		if (cublasSasum(handle, N, v[i], 1, &sum))
			return 4;
		std::printf("%g\n", sum);
	}
	cublasDestroy(handle);
	return 0;
}
