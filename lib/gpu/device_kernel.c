/* SPDX-License-Identifier: Apache-2.0
 *
 * device_kernel.c - loads and launches our own kernels (probes)
 *
 * Always through the driver, whose handles the runtime shares.
 */
#include "gpu/device_state.h"

int um_device_module_load(struct um_gpu *gpu, const char *ptx, void **module)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	if (err)
		return err;
	err = v.device->cu.module_load ? v.device->cu.module_load(module, ptx) : UM_CUDA_NOT_SUPPORTED;
	return um_visit_end(&v, err);
}

int um_device_module_unload(struct um_gpu *gpu, void *module)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	if (err)
		return err;
	err = v.device->cu.module_unload ? v.device->cu.module_unload(module) : UM_CUDA_NOT_SUPPORTED;
	return um_visit_end(&v, err);
}

int um_device_function(struct um_gpu *gpu, void *module, const char *name, void **function)
{
	struct um_visit v;
	int err = um_visit_begin(&v, gpu, UM_VISIT_UNSAFE);

	if (err)
		return err;
	err = v.device->cu.module_function ? v.device->cu.module_function(function, module, name)
					   : UM_CUDA_NOT_SUPPORTED;
	return um_visit_end(&v, err);
}

int um_device_launch(struct um_gpu *gpu, void *function, unsigned blocks, unsigned threads, um_stream stream,
		     void **args)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_PLAIN);

	if (err)
		return err;
	err = v.device->cu.launch ? v.device->cu.launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, args, NULL)
				  : UM_CUDA_NOT_SUPPORTED;
	return um_visit_end(&v, err);
}

int um_device_copy(struct um_gpu *gpu, void *to, const void *from, size_t bytes, um_stream stream)
{
	struct um_visit v;
	int err = um_visit_stream(&v, gpu, stream, UM_VISIT_PLAIN);

	if (err)
		return err;
	err = v.device->cu.copy ? v.device->cu.copy((uintptr_t)to, (uintptr_t)from, bytes, stream)
				: UM_CUDA_NOT_SUPPORTED;
	return um_visit_end(&v, err);
}
