/* SPDX-License-Identifier: Apache-2.0
 *
 * train.cu - a small training loop: a network of equal layers, gradients, SGD with momentum
 *
 * The network learns to output a shuffled version of its input. Weights, momentum, gradients and activations are
 * tensors of their own, as in a framework. Gradients and activations are written before they are read in every step, so
 * the program declares them transient: between steps they may be discarded instead of copied. Every output element is
 * one sum in a fixed order: the same result in every run, to the last bit. Every operation of a step may be launched
 * again: with less memory the library drops activations and makes them anew.
 *
 *     train [--size 1024] [--iterations 10] [--budget MIB] [--plain]        size: neurons in a layer
 */
#include "dual.h"

enum { LAYERS = 8, ACTIVATION = 1 << 20 }; /* elements: the fewer neurons, the larger the batch */

struct layer {
	float *weight, *momentum, *gradient;
	float *out; /* activations, a row for each element of the batch */
	float *delta; /* derivative of the loss by the input of the layer's relu */
};

/* --- kernels ----------------------------------------------------------------------------------------------------- */

struct fill { /* pseudo-random numbers */
	float *x;
	float scale;
	unsigned seed;

	__host__ __device__ void operator()(long i) const
	{
		unsigned h = (unsigned)i * 2654435761u + seed;

		h = (h ^ h >> 15) * 2246822519u;
		h = (h ^ h >> 13) * 3266489917u;
		x[i] = ((float)(h >> 8) / 16777216.0f - 0.5f) * scale;
	}
};

struct forward { /* out = relu(in weight) */
	const float *in, *weight;
	float *out;
	long n;
	int last;

	__host__ __device__ void operator()(long i) const
	{
		const float *row = in + i / n * n, *w = weight + i % n;
		float sum = 0;

		for (long k = 0; k < n; k++)
			sum += row[k] * w[k * n];
		out[i] = sum > 0 || last ? sum : 0;
	}
};

struct loss { /* delta = out - target, target: the input, shuffled */
	const float *out, *in;
	float *delta;
	long n, batch;

	__host__ __device__ void operator()(long i) const
	{
		delta[i] = (out[i] - in[i / n * n + (i % n * 5 + 3) % n]) / (float)batch;
	}
};

struct backward { /* delta of the layer below = (delta weight') where its relu let through */
	const float *delta, *weight, *below;
	float *out;
	long n;

	__host__ __device__ void operator()(long i) const
	{
		const float *row = delta + i / n * n, *w = weight + i % n * n;
		float sum = 0;

		for (long k = 0; k < n; k++)
			sum += row[k] * w[k];
		out[i] = below[i] > 0 ? sum : 0;
	}
};

struct gradient { /* gradient = in' delta */
	const float *in, *delta;
	float *gradient;
	long n, batch;

	__host__ __device__ void operator()(long i) const
	{
		float sum = 0;

		for (long b = 0; b < batch; b++)
			sum += in[b * n + i / n] * delta[b * n + i % n];
		gradient[i] = sum;
	}
};

struct update {
	float *weight, *momentum;
	const float *gradient;

	__host__ __device__ void operator()(long i) const
	{
		momentum[i] = 0.9f * momentum[i] + gradient[i];
		weight[i] -= 0.02f * momentum[i];
	}
};

/* --- training ---------------------------------------------------------------------------------------------------- */

static void step(struct dual *d, struct layer *layer, const float *input)
{
	long n = d->size, batch = n <= ACTIVATION ? ACTIVATION / n : 1;

	dual_iter(d);
	for (int l = 0; l < LAYERS; l++) {
		const float *in = l ? layer[l - 1].out : input;

		launch(d, 0, "forward",
		       UMADV_USES(UMADV_READ(in), UMADV_READ(layer[l].weight), UMADV_WRITE(layer[l].out)), batch * n,
		       forward{in, layer[l].weight, layer[l].out, n, l == LAYERS - 1});
	}
	launch(d, 0, "loss",
	       UMADV_USES(UMADV_READ(layer[LAYERS - 1].out), UMADV_READ(input), UMADV_WRITE(layer[LAYERS - 1].delta)),
	       batch * n, loss{layer[LAYERS - 1].out, input, layer[LAYERS - 1].delta, n, batch});
	for (int l = LAYERS - 1; l >= 0; l--) {
		const float *in = l ? layer[l - 1].out : input;

		launch(d, 0, "gradient",
		       UMADV_USES(UMADV_READ(in), UMADV_READ(layer[l].delta), UMADV_WRITE(layer[l].gradient)), n * n,
		       gradient{in, layer[l].delta, layer[l].gradient, n, batch});
		if (!l)
			break;
		launch(d, 0, "backward",
		       UMADV_USES(UMADV_READ(layer[l].delta), UMADV_READ(layer[l].weight), UMADV_READ(in),
				  UMADV_WRITE(layer[l - 1].delta)),
		       batch * n, backward{layer[l].delta, layer[l].weight, in, layer[l - 1].delta, n});
	}
	for (int l = 0; l < LAYERS; l++)
		launch(d, 0, "update",
		       UMADV_USES(UMADV_UPDATE(layer[l].weight), UMADV_UPDATE(layer[l].momentum),
				  UMADV_READ(layer[l].gradient)),
		       n * n, update{layer[l].weight, layer[l].momentum, layer[l].gradient});
}

static float *tensor(struct dual *d, long count, const char *what, int l, enum umadv_role role)
{
	char name[32];
	float *t;

	snprintf(name, sizeof(name), "layer%d.%s", l, what);
	t = dual_alloc<float>(d, count, name, role);
	if (role == UMADV_GRAD || role == UMADV_ACT)
		dual_transient(d, t);
	return t;
}

int main(int argc, char **argv)
{
	struct dual d = dual_open("train", 1024, 10, argc, argv);
	struct layer layer[LAYERS];
	uint64_t checksum = 0;
	double error = 0;
	float *input;
	long n = d.size, elements = n <= ACTIVATION ? ACTIVATION / n * n : n;

	input = dual_alloc<float>(&d, elements, "input", UMADV_INPUT);
	USES(&d, 0, "input", UMADV_WRITE(input));
	each(0, elements, fill{input, 2, 1});
	for (int l = 0; l < LAYERS; l++) {
		layer[l].weight = tensor(&d, n * n, "weight", l, UMADV_PARAM);
		layer[l].momentum = tensor(&d, n * n, "momentum", l, UMADV_OPTIM);
		layer[l].gradient = tensor(&d, n * n, "gradient", l, UMADV_GRAD);
		layer[l].out = tensor(&d, elements, "out", l, UMADV_ACT);
		/* The last one is looked at after the last step: no promise about that. */
		layer[l].delta = tensor(&d, elements, "delta", l, l == LAYERS - 1 ? UMADV_OTHER : UMADV_ACT);
		USES(&d, 0, "start", UMADV_WRITE(layer[l].weight), UMADV_WRITE(layer[l].momentum));
		each(0, n * n, fill{layer[l].weight, 0.1f, 17u + l});
		each(0, n * n, fill{layer[l].momentum, 0, 0});
	}
	for (int i = 0; i < d.iterations; i++)
		step(&d, layer, input);
	check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

	for (int l = 0; l < LAYERS; l++)
		checksum = checksum * 31 + dual_checksum(layer[l].weight, n * n * sizeof(float));
	for (long i = 0; i < elements; i++)
		error += (double)layer[LAYERS - 1].delta[i] * layer[LAYERS - 1].delta[i];
	return dual_close(&d, checksum, error);
}
