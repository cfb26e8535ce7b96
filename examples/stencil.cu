/* SPDX-License-Identifier: Apache-2.0
 *
 * stencil.cu - heat in a cube, with two buffers that swap; neither needs to fit
 *
 * Every step reads the old temperatures, six neighbours and the point itself, and writes the new ones. The cube is
 * processed in slabs of planes, so that an operation needs a slab of each buffer only. A third array, read-only, has
 * the conductivity of each point.
 *
 *     stencil [--size 256] [--iterations 20] [--budget MIB] [--plain]
 */
#include "dual.h"

enum { SLABS = 8 };

struct start {
	float *heat, *conduct;
	long first, side;

	__host__ __device__ void operator()(long i) const
	{
		long at = first + i, x = at % side, y = at / side % side, z = at / side / side;

		heat[at] = (float)((x * 7 + y * 13 + z * 29) % 101);
		conduct[at] = 0.1f + 0.001f * (float)((x + y + z) % 50);
	}
};

struct sweep {
	const float *old, *conduct;
	float *heat;
	long first, side;

	__host__ __device__ void operator()(long i) const
	{
		long plane = side * side, at = first + i, x = at % side, y = at / side % side, z = at / plane;
		float here = old[at], sum;

		/* What is beyond the border is as warm as the border. */
		sum = x > 0 ? old[at - 1] : here;
		sum += x < side - 1 ? old[at + 1] : here;
		sum += y > 0 ? old[at - side] : here;
		sum += y < side - 1 ? old[at + side] : here;
		sum += z > 0 ? old[at - plane] : here;
		sum += z < side - 1 ? old[at + plane] : here;
		heat[at] = here + conduct[at] * (sum - 6 * here);
	}
};

int main(int argc, char **argv)
{
	struct dual d = dual_open("stencil", 256, 20, argc, argv);
	long plane, slab;
	size_t bytes;
	float *heat[2], *conduct, *result;
	double sum = 0;

	d.size = (d.size + SLABS - 1) / SLABS * SLABS;
	plane = d.size * d.size;
	slab = plane * (d.size / SLABS);
	bytes = slab * sizeof(float);
	heat[0] = dual_alloc<float>(&d, slab * SLABS, "heat.a", UMADV_OTHER);
	heat[1] = dual_alloc<float>(&d, slab * SLABS, "heat.b", UMADV_OTHER);
	conduct = dual_alloc<float>(&d, slab * SLABS, "conduct", UMADV_PARAM);

	for (long at = 0; at < slab * SLABS; at += slab) {
		USES(&d, 0, "start", UMADV_WRITE_RANGE(heat[0] + at, bytes), UMADV_WRITE_RANGE(conduct + at, bytes));
		each(0, slab, start{heat[0], conduct, at, d.size});
	}
	for (int i = 0; i < d.iterations; i++) {
		const float *old = heat[i % 2];
		float *fresh = heat[1 - i % 2];

		dual_iter(&d);
		for (long at = 0; at < slab * SLABS; at += slab) {
			long from = at ? at - plane : 0; /* a plane more on either side */
			long to = at + slab < slab * SLABS ? at + slab + plane : slab * SLABS;

			USES(&d, 0, "sweep", UMADV_READ_RANGE(old + from, (to - from) * sizeof(float)),
			     UMADV_READ_RANGE(conduct + at, bytes), UMADV_WRITE_RANGE(fresh + at, bytes));
			each(0, slab, sweep{old, conduct, fresh, at, d.size});
		}
	}
	check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

	result = heat[d.iterations % 2];
	for (long i = 0; i < slab * SLABS; i++)
		sum += result[i];
	return dual_close(&d, dual_checksum(result, slab * SLABS * sizeof(float)), sum / (double)(slab * SLABS));
}
