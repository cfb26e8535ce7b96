/* SPDX-License-Identifier: Apache-2.0
 *
 * umadvise_dryrun.h - host functions for kernels under `umadvise dryrun`
 *
 * Under `umadvise dryrun` there is no GPU: kernels move memory and take time, but compute nothing. A program that needs
 * their results registers, for each kernel, a host function that computes the same:
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
 * them. The function runs when simulated time reaches the kernel: memory then has the content that it would have on a
 * device, and managed and device memory are accessible at their addresses. The function must not call CUDA, and may run
 * on any thread.
 *
 * Without the stand-in driver the calls do nothing. The header needs the C library and, for umadv_dryrun_kernel, nvcc;
 * nothing of libumadvise is linked.
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

/* Registers `host` for a CUfunction or CUkernel of the driver API. 1: registered; 0: there is no stand-in driver in
 * this process; -1: it does not know the handle. */
static inline int umadv_dryrun_function(void *function, umadv_dryrun_host *host)
{
	int (*find)(const char *, void **, int, unsigned long long, int *);
	int (*add)(void *, umadv_dryrun_host *);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *symbol = NULL, *entry = NULL;

	if (driver)
		symbol = dlsym(driver, "cuGetProcAddress_v2");
	memcpy(&find, &symbol, sizeof find); /* converts an object pointer to a function pointer */
	if (symbol)
		find("umStandinKernel", &entry, 12000, 0, NULL);
	memcpy(&add, &entry, sizeof add);
	if (driver)
		dlclose(driver); /* the driver stays loaded: the runtime holds it */
	if (!entry)
		return 0;
	return function && !add(function, host) ? 1 : -1;
}

#ifdef __cplusplus
}
#endif

#ifdef __CUDACC__
#include <cuda_runtime.h>

/* Registers `host` for `kernel`, the symbol that cudaLaunchKernel takes. Initialises the runtime if needed. Returns as
 * umadv_dryrun_function. */
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
