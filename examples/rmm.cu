/* SPDX-License-Identifier: Apache-2.0
 *
 * rmm.cu - adds vectors that RMM allocates, and knows of no library: umadvise run -- ./rmm RESOURCE (doc/rmm.md)
 *
 * 12 vectors of 16 MiB live to the end; each step bears and frees a temporary one for each of them. RESOURCE is cuda,
 * async, managed, pool or arena.
 */
#include <rmm/cuda_stream_view.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/managed_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <cstdio>
#include <string>
#include <vector>

constexpr size_t n = 4 << 20;
constexpr size_t slab = 256u << 20;

__global__ void axpy(float a, const float *x, float *y)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}

template <class Resource> static int run(Resource &&mr)
{
	rmm::cuda_stream_view stream;
	std::vector<rmm::device_uvector<float>> v;

	for (int i = 0; i < 12; i++)
		v.emplace_back(n, stream, mr);
	for (int step = 0; step < 10; step++) {
		for (int i = 0; i + 1 < 12; i++) {
			rmm::device_uvector<float> sum(n, stream, mr);

			axpy<<<n / 256, 256>>>(1.5f, v[i].data(), sum.data());
			axpy<<<n / 256, 256>>>(0.5f, sum.data(), v[i + 1].data());
		}
		if (cudaDeviceSynchronize() != cudaSuccess)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const std::string kind = argc > 1 ? argv[1] : "";
	rmm::mr::cuda_memory_resource memory;

	if (kind == "cuda")
		return run(memory);
	if (kind == "async")
		return run(rmm::mr::cuda_async_memory_resource{});
	if (kind == "managed")
		return run(rmm::mr::managed_memory_resource{});
	if (kind == "pool")
		return run(rmm::mr::pool_memory_resource{memory, slab});
	if (kind == "arena")
		return run(rmm::mr::arena_memory_resource{memory, slab});
	fprintf(stderr, "usage: rmm cuda|async|managed|pool|arena\n");
	return 2;
}
