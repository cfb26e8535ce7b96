/* SPDX-License-Identifier: Apache-2.0
 *
 * umadvise_dryrun.h - host code that stands for a kernel under `umadvise dryrun`
 *
 * Under `umadvise dryrun` there is no GPU: kernels move memory and take time, but compute nothing. A program that wants
 * results there, too, gives for each kernel a function that computes the same on the host:
 *
 *     __global__ void axpy(float a, const float *x, float *y, int n) { ... }
 *
 *     static void axpy_host(void **args, const unsigned grid[3], const unsigned block[3])
 *     {
 *             float a = *(float *)args[0];
 *             const float *x = *(const float **)args[1];
 *             ...
 *     }
 *
 *     umadv_dryrun_kernel((const void *)axpy, axpy_host);      // once, before the first launch
 *
 * `args` holds a pointer to a copy of each parameter, in the order of the kernel's signature, as cudaLaunchKernel takes
 * them. The function runs when simulated time has reached the kernel: memory then holds what it would hold on a device,
 * and managed and device memory can be used by their addresses. It must not call CUDA, and may run on any thread.
 *
 * Anywhere else, with a real driver or with none, the calls do nothing. Header only: needs the C library and, for the
 * first of the two calls, nvcc; nothing of libumadvise is linked.
 */
#ifndef UMADVISE_DRYRUN_H
#define UMADVISE_DRYRUN_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void umadv_dryrun_host(void **args, const unsigned grid[3], const unsigned block[3]);

/* The same for a handle of the driver API, a CUfunction or CUkernel. 1: `host` stands for it; 0: there is no stand-in
 * driver in this process; -1: it does not know the handle. */
static inline int umadv_dryrun_function(void *function, umadv_dryrun_host *host)
{
	int (*find)(const char *, void **, int, unsigned long long, int *);
	int (*add)(void *, umadv_dryrun_host *);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *symbol = NULL, *entry = NULL;

	if (driver)
		symbol = dlsym(driver, "cuGetProcAddress_v2");
	memcpy(&find, &symbol, sizeof find); /* an object pointer becomes one to a function */
	if (symbol)
		find("umStandinKernel", &entry, 12000, 0, NULL);
	memcpy(&add, &entry, sizeof add);
	if (driver)
		dlclose(driver); /* whoever loaded it still holds it */
	if (!entry)
		return 0;
	return function && !add(function, host) ? 1 : -1;
}

#ifdef __cplusplus
}
#endif

#ifdef __CUDACC__
#include <cuda_runtime.h>

/* `kernel` is the symbol, as cudaLaunchKernel takes it. Starts the runtime if nothing has yet. Returns as above. */
static inline int umadv_dryrun_kernel(const void *kernel, umadv_dryrun_host *host)
{
	cudaFunction_t function = NULL;

	if (cudaGetFuncBySymbol(&function, kernel) != cudaSuccess) {
		(void)cudaGetLastError();
		return umadv_dryrun_function(NULL, host);
	}
	return umadv_dryrun_function((void *)function, host);
}

#ifdef __cplusplus
template <typename... Args> static inline int umadv_dryrun_kernel(void (*kernel)(Args...), umadv_dryrun_host *host)
{
	return umadv_dryrun_kernel((const void *)kernel, host);
}
#endif
#endif

#endif
