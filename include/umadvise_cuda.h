/* SPDX-License-Identifier: Apache-2.0
 *
 * umadvise_cuda.h - umadv_launch_kernel with the arguments of cudaLaunchKernel
 *
 *     void *args[] = {&x, &w, &y};
 *
 *     umadv_cuda_launch(adv, "conv1", UMADV_USES(UMADV_READ(x), UMADV_READ(w), UMADV_WRITE(y)),
 *                       (const void *)conv1, grid, block, args, 0, stream);
 *
 * In C or C++, with the shared or the static runtime of CUDA 12.4 or later; with an earlier one ops are launched, and
 * not launched again.
 */
#ifndef UMADVISE_CUDA_H
#define UMADVISE_CUDA_H

#include <cuda_runtime_api.h>
#include <umadvise.h>

static inline int umadv_cuda_kernel_(const struct umadv_kernel *k, void *stream)
{
	dim3 grid, block;

	grid.x = k->grid[0];
	grid.y = k->grid[1];
	grid.z = k->grid[2];
	block.x = k->block[0];
	block.y = k->block[1];
	block.z = k->block[2];
	return (int)cudaLaunchKernel(k->kernel, grid, block, k->args, k->shared_bytes, (cudaStream_t)stream);
}

/* Leaves the program's last error as it is: where there is one, the parameters count as unknown. */
static inline int umadv_cuda_param_(const void *kernel, size_t index, size_t *offset, size_t *bytes)
{
#if CUDART_VERSION >= 12040
	cudaError_t err = cudaPeekAtLastError();

	if (err != cudaSuccess)
		return (int)cudaErrorNotSupported;
	err = cudaFuncGetParamInfo(kernel, index, offset, bytes);
	if (err != cudaSuccess)
		(void)cudaGetLastError();
	return (int)err;
#else
	(void)kernel;
	(void)index;
	(void)offset;
	(void)bytes;
	return (int)cudaErrorNotSupported;
#endif
}

static inline int umadv_cuda_launch(struct umadv *adv, const char *name, const struct umadv_use *uses, size_t n_uses,
				    const void *kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes,
				    cudaStream_t stream)
{
	struct umadv_kernel k;

	k.struct_size = sizeof(k);
	k.kernel = kernel;
	k.grid[0] = grid.x;
	k.grid[1] = grid.y;
	k.grid[2] = grid.z;
	k.block[0] = block.x;
	k.block[1] = block.y;
	k.block[2] = block.z;
	k.args = args;
	k.shared_bytes = shared_bytes;
	k.launch = umadv_cuda_kernel_;
	k.param = umadv_cuda_param_;
	return umadv_launch_kernel(adv, stream, name, uses, n_uses, &k);
}

#endif
