/* SPDX-License-Identifier: Apache-2.0
 *
 * run_hook.c - launches of a kernel with six pointers, for callgrind: run_hook N makes N iterations of 64 launches of
 * eight kernels
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAYS 96
#define LAUNCHES 64
#define BYTES ((size_t)4 << 20)

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, (*alloc)(uint64_t *, size_t);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
		      void **);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *fn;
	uint64_t at[ARRAYS];

	fn = driver ? dlsym(driver, "cuMemAlloc_v2") : NULL;
	memcpy(&alloc, &fn, sizeof alloc);
	fn = driver ? dlsym(driver, "cuLaunchKernel") : NULL;
	memcpy(&launch, &fn, sizeof launch);
	if (!fn)
		return 1;
	for (int i = 0; i < ARRAYS; i++)
		alloc(&at[i], BYTES);
	for (int k = 0; k < n; k++)
		for (int i = 0; i < LAUNCHES; i++) {
			void *params[6];

			for (int p = 0; p < 6; p++)
				params[p] = &at[(i + p * 13) % ARRAYS];
			launch((void *)(uintptr_t)(4096 * (8 + i * i % 61 % 8)), 1, 1, 1, 64, 1, 1, 0, NULL, params,
			       NULL);
		}
	return 0;
}
