/* SPDX-License-Identifier: Apache-2.0
 *
 * run_must.h - what programs of nvcc under umadvise run share: the mode that is asked for, and CUDA calls that must
 * succeed
 */
#ifndef UM_TESTS_RUN_MUST_H
#define UM_TESTS_RUN_MUST_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

static const char *mode;

static int is(const char *name)
{
	return std::strcmp(mode, name) == 0;
}

static void must(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return;
	std::printf("%s: %s\n", what, cudaGetErrorName(err));
	std::exit(3);
}
#define MUST(call) must(call, #call)

#endif
