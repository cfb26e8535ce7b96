/* SPDX-License-Identifier: Apache-2.0
 *
 * function.c - attributes and occupancy of kernels
 *
 * Occupancy considers threads only, with plausible numbers of registers: no kernel runs here, and programs only derive
 * their grid sizes from it.
 */
#include "standin/module.h"

#define THREADS 2048 /* of a multiprocessor */
#define BLOCK 1024

enum { MAX_THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, PTX, BINARY, CACHE_CA, MAX_SHARED, CARVEOUT, ATTRIBUTES = 16 };

UM_EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function);
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
	struct um_function *f = function;

	if (!f || !value)
		return f ? UM_CUDA_INVALID_VALUE : UM_CU_INVALID_HANDLE;
	if (attribute < 0 || attribute >= ATTRIBUTES)
		return UM_CUDA_INVALID_VALUE;
	*value = 0;
	if (attribute == MAX_THREADS)
		*value = BLOCK;
	else if (attribute == REGISTERS)
		*value = 32;
	else if (attribute == PTX || attribute == BINARY)
		*value = um_standin_sm();
	else if (attribute == MAX_SHARED)
		*value = f->shared;
	else if (attribute == CARVEOUT)
		*value = -1;
	return UM_CUDA_OK;
}

UM_EXPORT int cuFuncSetAttribute(void *function, int attribute, int value);
int cuFuncSetAttribute(void *function, int attribute, int value)
{
	struct um_function *f = function;

	if (!f)
		return UM_CU_INVALID_HANDLE;
	if (attribute < MAX_SHARED || attribute >= ATTRIBUTES)
		return UM_CUDA_INVALID_VALUE;
	if (attribute == MAX_SHARED)
		f->shared = value;
	return UM_CUDA_OK;
}

UM_EXPORT int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device);
int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
	return device ? UM_CUDA_INVALID_DEVICE : cuFuncGetAttribute(value, attribute, kernel);
}

UM_EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device);
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
	return device ? UM_CUDA_INVALID_DEVICE : cuFuncSetAttribute(kernel, attribute, value);
}

UM_EXPORT int cuFuncSetCacheConfig(void *function, int config);
int cuFuncSetCacheConfig(void *function, int config)
{
	(void)config;
	return function ? UM_CUDA_OK : UM_CU_INVALID_HANDLE;
}

UM_EXPORT int cuKernelSetCacheConfig(void *kernel, int config, int device);
int cuKernelSetCacheConfig(void *kernel, int config, int device)
{
	return device ? UM_CUDA_INVALID_DEVICE : cuFuncSetCacheConfig(kernel, config);
}

UM_EXPORT int cuFuncGetName(const char **name, void *function);
int cuFuncGetName(const char **name, void *function)
{
	struct um_function *f = function;

	if (!f || !name)
		return f ? UM_CUDA_INVALID_VALUE : UM_CU_INVALID_HANDLE;
	*name = f->kernel->name;
	return UM_CUDA_OK;
}

UM_EXPORT int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes);
int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
	struct um_function *f = function;

	if (!f)
		return UM_CU_INVALID_HANDLE;
	if (!offset || index >= f->kernel->params.n)
		return UM_CUDA_INVALID_VALUE;
	*offset = f->kernel->params.at[index].offset;
	if (bytes)
		*bytes = f->kernel->params.at[index].bytes;
	return UM_CUDA_OK;
}

UM_EXPORT int cuFuncGetModule(void **module, void *function);
int cuFuncGetModule(void **module, void *function)
{
	struct um_function *f = function;

	if (!f || !module)
		return UM_CU_INVALID_HANDLE;
	*module = f->module;
	return UM_CUDA_OK;
}

/* A kernel has one handle for both types. */
UM_EXPORT int cuKernelGetFunction(void **function, void *kernel);
int cuKernelGetFunction(void **function, void *kernel)
{
	if (!function || !kernel)
		return UM_CU_INVALID_HANDLE;
	*function = kernel;
	return UM_CUDA_OK;
}

UM_EXPORT int cuKernelGetLibrary(void **library, void *kernel);
int cuKernelGetLibrary(void **library, void *kernel)
{
	return cuFuncGetModule(library, kernel);
}

UM_EXPORT int cuFuncIsLoaded(int *state, void *function);
int cuFuncIsLoaded(int *state, void *function)
{
	if (!state || !function)
		return UM_CU_INVALID_HANDLE;
	*state = 1;
	return UM_CUDA_OK;
}

UM_EXPORT int cuFuncLoad(void *function);
int cuFuncLoad(void *function)
{
	return function ? UM_CUDA_OK : UM_CU_INVALID_HANDLE;
}

/* --- occupancy ---------------------------------------------------------------------------------------------------- */

UM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *function, int threads,
								   size_t shared, unsigned flags);
int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *function, int threads, size_t shared,
							 unsigned flags)
{
	(void)shared;
	(void)flags;
	if (!function)
		return UM_CU_INVALID_HANDLE;
	if (!blocks || threads <= 0)
		return UM_CUDA_INVALID_VALUE;
	*blocks = threads > BLOCK ? 0 : THREADS / threads > 32 ? 32 : THREADS / threads;
	return UM_CUDA_OK;
}

UM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}

UM_EXPORT int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, size_t (*shared_of)(int block),
					       size_t shared, int limit);
int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, size_t (*shared_of)(int block),
				     size_t shared, int limit)
{
	(void)shared_of;
	(void)shared;
	if (!function)
		return UM_CU_INVALID_HANDLE;
	if (!grid || !block)
		return UM_CUDA_INVALID_VALUE;
	*block = limit > 0 && limit < BLOCK ? limit : BLOCK;
	*grid = 2 * 80;
	return UM_CUDA_OK;
}

UM_EXPORT int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, void *function, int blocks, int threads);
int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, void *function, int blocks, int threads)
{
	(void)threads;
	if (!function || !bytes || blocks <= 0)
		return UM_CUDA_INVALID_VALUE;
	*bytes = 49152 / (size_t)blocks;
	return UM_CUDA_OK;
}

const struct um_entry um_function_entries[] = {
	UM_ENTRY(cuFuncGetAttribute, 2020, cuFuncGetAttribute),
	UM_ENTRY(cuFuncSetAttribute, 9000, cuFuncSetAttribute),
	UM_ENTRY(cuFuncSetCacheConfig, 3000, cuFuncSetCacheConfig),
	UM_ENTRY(cuFuncGetName, 12030, cuFuncGetName),
	UM_ENTRY(cuFuncGetParamInfo, 12040, cuFuncGetParamInfo),
	UM_ENTRY(cuFuncGetModule, 11000, cuFuncGetModule),
	UM_ENTRY(cuFuncIsLoaded, 12040, cuFuncIsLoaded),
	UM_ENTRY(cuFuncLoad, 12040, cuFuncLoad),
	UM_ENTRY(cuKernelGetFunction, 12000, cuKernelGetFunction),
	UM_ENTRY(cuKernelGetLibrary, 12050, cuKernelGetLibrary),
	UM_ENTRY(cuKernelGetName, 12030, cuFuncGetName),
	UM_ENTRY(cuKernelGetParamInfo, 12040, cuFuncGetParamInfo),
	UM_ENTRY(cuKernelGetAttribute, 12000, cuKernelGetAttribute),
	UM_ENTRY(cuKernelSetAttribute, 12000, cuKernelSetAttribute),
	UM_ENTRY(cuKernelSetCacheConfig, 12000, cuKernelSetCacheConfig),
	UM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor),
	UM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,
		 cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
	UM_ENTRY(cuOccupancyMaxPotentialBlockSize, 6050, cuOccupancyMaxPotentialBlockSize),
	UM_ENTRY(cuOccupancyAvailableDynamicSMemPerBlock, 10020, cuOccupancyAvailableDynamicSMemPerBlock),
	{NULL, 0, NULL, NULL},
};
