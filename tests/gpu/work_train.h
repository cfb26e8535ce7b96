/* SPDX-License-Identifier: Apache-2.0
 *
 * work_train.h - a training loop of matrix products: forward, loss, backward, SGD with momentum
 *
 * Layers are n x n, the batch has `batch` rows. With nvcc a product is a kernel with tiles in shared memory, of which a
 * thread does four by four elements; under the stand-in driver and without nvcc the same sums are done by loops, in the
 * same order of k. Every element is one sum in a fixed order.
 */
#ifndef WORK_TRAIN_H
#define WORK_TRAIN_H

#include "work.h"

/* c = a b, rows x inner times inner x columns; either may be stored transposed. `mask`: where it is not above 0 the
 * result is 0. `relu`: of the result. */
struct product {
	const float *a, *b, *mask;
	float *c;
	long rows, inner, columns;
	int a_turned, b_turned, relu;

	BODY float a_at(long i, long k) const
	{
		return a_turned ? a[k * rows + i] : a[i * inner + k];
	}
	BODY float b_at(long k, long j) const
	{
		return b_turned ? b[j * inner + k] : b[k * columns + j];
	}
	BODY void put(long i, long j, float sum) const
	{
		if ((relu && sum < 0) || (mask && mask[i * columns + j] <= 0))
			sum = 0;
		c[i * columns + j] = sum;
	}
	/* One row, when loops stand for the kernel: columns inside, which is how memory lies. */
	BODY void operator()(long i) const
	{
		for (long j = 0; j < columns; j++)
			c[i * columns + j] = 0;
		if (b_turned)
			for (long j = 0; j < columns; j++)
				for (long k = 0; k < inner; k++)
					c[i * columns + j] += a_at(i, k) * b_at(k, j);
		else
			for (long k = 0; k < inner; k++)
				for (long j = 0; j < columns; j++)
					c[i * columns + j] += a_at(i, k) * b_at(k, j);
		for (long j = 0; j < columns; j++)
			put(i, j, c[i * columns + j]);
	}
};

#ifdef __CUDACC__

enum { TILE = 64, DEEP = 16, EACH = 4 };

static __global__ void product_kernel(struct product p)
{
	__shared__ float a[DEEP][TILE + 1], b[DEEP][TILE + 1];
	const long row = blockIdx.y * (long)TILE, column = blockIdx.x * (long)TILE;
	const int x = threadIdx.x % (TILE / EACH), y = threadIdx.x / (TILE / EACH);
	float sum[EACH][EACH] = {};

	for (long k0 = 0; k0 < p.inner; k0 += DEEP) {
		/* Neighbouring threads read neighbouring addresses, whichever way a matrix lies. */
		for (int t = threadIdx.x; t < TILE * DEEP; t += blockDim.x) {
			int ak = p.a_turned ? t / TILE : t % DEEP, ai = p.a_turned ? t % TILE : t / DEEP;
			int bk = p.b_turned ? t % DEEP : t / TILE, bj = p.b_turned ? t / DEEP : t % TILE;

			a[ak][ai] = row + ai < p.rows && k0 + ak < p.inner ? p.a_at(row + ai, k0 + ak) : 0;
			b[bk][bj] = column + bj < p.columns && k0 + bk < p.inner ? p.b_at(k0 + bk, column + bj) : 0;
		}
		__syncthreads();
		for (int k = 0; k < DEEP; k++)
			for (int i = 0; i < EACH; i++)
				for (int j = 0; j < EACH; j++)
					sum[i][j] += a[k][y + i * (TILE / EACH)] * b[k][x + j * (TILE / EACH)];
		__syncthreads();
	}
	for (int i = 0; i < EACH; i++)
		for (int j = 0; j < EACH; j++) {
			long r = row + y + i * (TILE / EACH), c = column + x + j * (TILE / EACH);

			if (r < p.rows && c < p.columns)
				p.put(r, c, sum[i][j]);
		}
}

static inline void product_host(void **args, const unsigned *, const unsigned *)
{
	const struct product &p = *(const struct product *)args[0];

	for (long i = 0; i < p.rows; i++)
		p(i);
}

static inline void multiply(stream_t s, const struct product &p)
{
	static int told = umadv_dryrun_kernel((const void *)product_kernel, product_host);
	dim3 grid((unsigned)((p.columns + TILE - 1) / TILE), (unsigned)((p.rows + TILE - 1) / TILE));

	(void)told;
	product_kernel<<<grid, TILE * TILE / EACH / EACH, 0, s>>>(p);
	check_cuda(cudaGetLastError(), "launch");
}

#else

static inline void multiply(stream_t s, const struct product &p)
{
	each(s, p.rows, p);
}

#endif

struct train_loss { /* delta = out - the input, shuffled */
	const float *out, *in;
	float *delta;
	long n, batch;

	BODY void operator()(long i) const
	{
		delta[i] = (out[i] - in[i / n * n + (i % n * 5 + 3) % n]) / (float)batch;
	}
};

struct train_update {
	float *weight, *momentum;
	const float *gradient;

	BODY void operator()(long i) const
	{
		momentum[i] = 0.9f * momentum[i] + gradient[i];
		weight[i] -= 0.01f * momentum[i];
	}
};

struct train_tensors {
	std::vector<int> weight, momentum, gradient, out, delta;
	int input;
	long n, batch;
};

static inline void train_forward(struct work *w, const struct train_tensors &t)
{
	const long n = t.n, batch = t.batch;
	const int layers = (int)t.weight.size();

	for (int l = 0; l < layers; l++) {
		const int in = l ? t.out[l - 1] : t.input, weight = t.weight[l], out = t.out[l];
		const int relu = l < layers - 1;

		w->step[0].push_back({"forward",
				      {{in, R}, {weight, R}, {out, W}},
				      2.0 * batch * n * n,
				      [=](const struct work &k, stream_t s) {
					      multiply(s, {k.at<float>(in), k.at<float>(weight), NULL, k.at<float>(out),
							   batch, n, n, 0, 0, relu});
				      }});
	}
	const int last = t.out[layers - 1], input = t.input, delta = t.delta[layers - 1];

	w->step[0].push_back(
		{"loss", {{last, R}, {input, R}, {delta, W}}, 2.0 * batch * n, [=](const struct work &k, stream_t s) {
			 each(s, batch * n,
			      (struct train_loss){k.at<float>(last), k.at<float>(input), k.at<float>(delta), n, batch});
		 }});
}

static inline void train_backward(struct work *w, const struct train_tensors &t)
{
	const long n = t.n, batch = t.batch;

	for (int l = (int)t.weight.size() - 1; l >= 0; l--) {
		const int in = l ? t.out[l - 1] : t.input, delta = t.delta[l], gradient = t.gradient[l];
		const int weight = t.weight[l], below = l ? t.delta[l - 1] : -1;

		w->step[0].push_back({"gradient",
				      {{in, R}, {delta, R}, {gradient, W}},
				      2.0 * batch * n * n,
				      [=](const struct work &k, stream_t s) {
					      multiply(s, {k.at<float>(in), k.at<float>(delta), NULL,
							   k.at<float>(gradient), n, batch, n, 1, 0, 0});
				      }});
		if (below >= 0)
			w->step[0].push_back({"backward",
					      {{delta, R}, {weight, R}, {in, R}, {below, W}},
					      2.0 * batch * n * n,
					      [=](const struct work &k, stream_t s) {
						      multiply(s, {k.at<float>(delta), k.at<float>(weight),
								   k.at<float>(in), k.at<float>(below), batch, n, n, 0,
								   1, 0});
					      }});
	}
	for (size_t l = 0; l < t.weight.size(); l++) {
		const int weight = t.weight[l], momentum = t.momentum[l], gradient = t.gradient[l];

		w->step[0].push_back({"update",
				      {{weight, RW}, {momentum, RW}, {gradient, R}},
				      4.0 * n * n,
				      [=](const struct work &k, stream_t s) {
					      each(s, n * n,
						   (struct train_update){k.at<float>(weight), k.at<float>(momentum),
									 k.at<float>(gradient)});
				      }});
	}
}

static inline struct work work_train(int layers, long n, long batch)
{
	struct train_tensors t;
	struct work w;

	w.name = "train";
	t.n = n;
	t.batch = batch;
	t.input = w.add("input", batch * n * sizeof(float), UMADV_INPUT);
	work_fill(&w, t.input, 2);
	for (int l = 0; l < layers; l++) {
		std::string of = "layer" + std::to_string(l) + ".";

		t.weight.push_back(w.add(of + "weight", n * n * sizeof(float), UMADV_PARAM));
		t.momentum.push_back(w.add(of + "momentum", n * n * sizeof(float), UMADV_OPTIM));
		t.gradient.push_back(w.add(of + "gradient", n * n * sizeof(float), UMADV_GRAD, true));
		t.out.push_back(w.add(of + "out", batch * n * sizeof(float), UMADV_ACT, true));
		t.delta.push_back(w.add(of + "delta", batch * n * sizeof(float), UMADV_ACT, true));
		work_fill(&w, t.weight[l], 0.1f);
		work_fill(&w, t.momentum[l], 0);
	}
	train_forward(&w, t);
	train_backward(&w, t);
	w.step[1] = w.step[0];
	return w;
}

#endif
