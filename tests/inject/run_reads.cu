/* SPDX-License-Identifier: Apache-2.0
 *
 * run_reads.cu - a program that only reads most of its memory, for run_reads.sh: `run_reads MODE` multiplies a vector by
 * weights, layer by layer, and prints a sum
 *
 * "const" has kernels that take the weights as pointers to const; the one of "cast" writes them all the same. The kernel
 * of "plain" has no const and no mangled name, that of "struct" takes a structure of pointers, that of "change" takes
 * one and writes the weights. "small" also uses a scale of one page for each layer, in an allocation of its own. "odd"
 * has weights of 7.5 MiB.
 */
#include "run_must.h"

#include <cuda.h>
#include <umadvise_dryrun.h>
#include <vector>

#define LAYERS 12
#define STEP 1024 /* every so many elements are computed */

static int n = 2 << 20;

__global__ void multiply(const float *w, const float *x, const float *scale, float *y, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		y[i] = x[i] * w[i] + *scale;
}

__global__ void multiply_and_change(const float *w, const float *x, const float *scale, float *y, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count) {
		y[i] = x[i] * w[i] + *scale;
		const_cast<float *>(w)[i] = y[i] / 2;
	}
}

extern "C" __global__ void multiply_plain(float *w, float *x, float *scale, float *y, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		y[i] = x[i] * w[i] + *scale;
}

struct layer {
	float *w, *x, *scale, *y;
	int count;
};

template <bool changes> __global__ void multiply_layer(layer l)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < l.count) {
		l.y[i] = l.x[i] * l.w[i] + *l.scale;
		if (changes)
			l.w[i] = l.y[i] / 2;
	}
}

template <bool changes> static void host(void **args, const unsigned *, const unsigned *)
{
	float *w = *(float **)args[0], *y = *(float **)args[3];
	const float *x = *(const float **)args[1], *scale = *(const float **)args[2];

	for (int i = 0; i < *(int *)args[4]; i += STEP) {
		y[i] = x[i] * w[i] + *scale;
		if (changes)
			w[i] = y[i] / 2;
	}
}

template <bool changes> static void host_layer(void **args, const unsigned *grid, const unsigned *block)
{
	layer *l = (layer *)args[0];
	void *each[] = {&l->w, &l->x, &l->scale, &l->y, &l->count};

	host<changes>(each, grid, block);
}

static void launch(float *w, float *x, float *scale, float *y)
{
	layer l = {w, x, scale, y, n};

	if (is("cast"))
		multiply_and_change<<<n / 256, 256>>>(w, x, scale, y, n);
	else if (is("plain"))
		multiply_plain<<<n / 256, 256>>>(w, x, scale, y, n);
	else if (is("struct"))
		multiply_layer<false><<<n / 256, 256>>>(l);
	else if (is("change"))
		multiply_layer<true><<<n / 256, 256>>>(l);
	else
		multiply<<<n / 256, 256>>>(w, x, scale, y, n);
}

static float *make(int count, float value)
{
	std::vector<float> all((size_t)count, value);
	float *p;

	MUST(cudaMalloc((void **)&p, (size_t)count * sizeof(float)));
	MUST(cudaMemcpy(p, all.data(), (size_t)count * sizeof(float), cudaMemcpyHostToDevice));
	return p;
}

int main(int argc, char **argv)
{
	float *w[LAYERS], *scale[LAYERS], *x[2];
	std::vector<float> all;
	double sum = 0;

	mode = argc > 1 ? argv[1] : "const";
	if (is("odd"))
		n -= n / 16;
	all.resize((size_t)n);
	umadv_dryrun_kernel((const void *)multiply, host<false>);
	umadv_dryrun_kernel((const void *)multiply_and_change, host<true>);
	umadv_dryrun_kernel((const void *)multiply_plain, host<false>);
	umadv_dryrun_kernel((const void *)multiply_layer<false>, host_layer<false>);
	umadv_dryrun_kernel((const void *)multiply_layer<true>, host_layer<true>);
	for (int i = 0; i < 2; i++)
		x[i] = make(n, (float)(i + 1));
	for (int i = 0; i < LAYERS; i++) {
		w[i] = make(n, (float)(i % 3 + 1) / 4);
		scale[i] = i && !is("small") ? scale[0] : make(1024, .5f);
	}
	for (int step = 0; step < 30; step++)
		for (int i = 0; i < LAYERS; i++)
			launch(w[i], x[i % 2], scale[i], x[1 - i % 2]);
	MUST(cudaDeviceSynchronize());
	for (int k = 0; k < LAYERS; k++) {
		MUST(cudaMemcpy(all.data(), w[k], (size_t)n * sizeof(float), cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i += STEP)
			sum += all[i];
	}
	MUST(cudaMemcpy(all.data(), x[0], (size_t)n * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i += STEP)
		sum += all[i];
	std::printf("%.6f\n", sum);
	for (int i = 0; i < LAYERS; i++) {
		MUST(cudaFree(w[i]));
		if (!i || is("small"))
			MUST(cudaFree(scale[i]));
	}
	return 0;
}
