/* SPDX-License-Identifier: Apache-2.0
 *
 * train.c - trains a small network, in memory that holds less and less of it
 *
 * 16 layers with activations of 4 MiB each. A layer mixes neighbouring channels, then squashes them. umadv_launch
 * announces and launches each operation, and registers it: the library may launch it again to make its output anew. The
 * weights are the same to the last bit with any budget. It runs on the simulated GPU, where a "kernel" is a C function.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umadvise.h>

enum { LAYERS = 16, CHANNELS = 32, BATCH = 1 << 15, STEPS = 10 };

#define ACTIVATION (sizeof(float) * CHANNELS * BATCH)
#define WEIGHTS (sizeof(float) * 2 * CHANNELS)

struct layer {
	struct umadv *adv;
	float *x, *y; /* activations: input, output */
	float *dx, *dy; /* their gradients */
	float *w, *dw; /* weights: of the channel, of the next one */
};

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "train: %s: %s\n", what, umadv_strerror(err));
	exit(1);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static void forward(void *arg)
{
	const struct layer *l = arg;

	for (size_t i = 0; i < (size_t)CHANNELS * BATCH; i++) {
		size_t c = i % CHANNELS, next = i - c + (c + 1) % CHANNELS;
		float sum = l->w[c] * l->x[i] + l->w[CHANNELS + c] * l->x[next];

		l->y[i] = sum / (1 + fabsf(sum));
	}
}

/* The derivative of y = s / (1 + |s|) is (1 - |y|)^2. */
static void backward(void *arg)
{
	const struct layer *l = arg;

	memset(l->dx, 0, ACTIVATION);
	memset(l->dw, 0, WEIGHTS);
	for (size_t i = 0; i < (size_t)CHANNELS * BATCH; i++) {
		size_t c = i % CHANNELS, next = i - c + (c + 1) % CHANNELS;
		float slope = 1 - fabsf(l->y[i]), d = l->dy[i] * slope * slope;

		l->dx[i] += l->w[c] * d;
		l->dx[next] += l->w[CHANNELS + c] * d;
		l->dw[c] += l->x[i] * d;
		l->dw[CHANNELS + c] += l->x[next] * d;
	}
}

/* The goal: each output is a quarter. */
static void loss(void *arg)
{
	const struct layer *l = arg;

	for (size_t i = 0; i < (size_t)CHANNELS * BATCH; i++)
		l->dy[i] = (l->y[i] - 0.25f) / BATCH;
}

static void update(void *arg)
{
	const struct layer *l = arg;

	for (int i = 0; i < 2 * CHANNELS; i++)
		l->w[i] -= 0.05f * l->dw[i];
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* The argument of a launch is copied; the layer that it points to must live until the kernel has run. */
static int launch_forward(void *arg, void *stream)
{
	struct layer *l = *(struct layer **)arg;

	return umadv_sim_run(l->adv, stream, forward, l);
}

static int launch_loss(void *arg, void *stream)
{
	struct layer *l = *(struct layer **)arg;

	return umadv_sim_run(l->adv, stream, loss, l);
}

static int launch_backward(void *arg, void *stream)
{
	struct layer *l = *(struct layer **)arg;

	return umadv_sim_run(l->adv, stream, backward, l);
}

static int launch_update(void *arg, void *stream)
{
	struct layer *l = *(struct layer **)arg;

	return umadv_sim_run(l->adv, stream, update, l);
}

static void step(struct umadv *adv, struct layer *layers)
{
	struct layer *l = layers;

	check(umadv_iter(adv, NULL), "iter");
	for (l = layers; l < layers + LAYERS; l++)
		check(umadv_launch(adv, NULL, "forward",
				   UMADV_USES(UMADV_READ(l->x), UMADV_READ(l->w), UMADV_WRITE(l->y)), launch_forward,
				   &l, sizeof(l)),
		      "forward");
	l = &layers[LAYERS - 1];
	check(umadv_launch(adv, NULL, "loss", UMADV_USES(UMADV_READ(l->y), UMADV_WRITE(l->dy)), launch_loss, &l,
			   sizeof(l)),
	      "loss");
	for (l = &layers[LAYERS - 1]; l >= layers; l--) {
		check(umadv_launch(adv, NULL, "backward",
				   UMADV_USES(UMADV_READ(l->x), UMADV_READ(l->y), UMADV_READ(l->w), UMADV_READ(l->dy),
					      UMADV_WRITE(l->dx), UMADV_WRITE(l->dw)),
				   launch_backward, &l, sizeof(l)),
		      "backward");
		check(umadv_dead(adv, l->y), "dead"); /* until the next step writes it */
		check(umadv_dead(adv, l->dy), "dead");
		check(umadv_launch(adv, NULL, "update", UMADV_USES(UMADV_READ(l->dw), UMADV_UPDATE(l->w)),
				   launch_update, &l, sizeof(l)),
		      "update");
	}
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static float *tensor(struct umadv *adv, size_t bytes, const char *name, enum umadv_role role)
{
	void *p;

	check(umadv_alloc(adv, &p, bytes, name, role), "alloc");
	return p;
}

static void build(struct umadv *adv, struct layer *layers)
{
	float *gradient[2] = {tensor(adv, ACTIVATION, "gradient0", UMADV_GRAD),
			      tensor(adv, ACTIVATION, "gradient1", UMADV_GRAD)};
	float *x = tensor(adv, ACTIVATION, "input", UMADV_INPUT);

	for (size_t i = 0; i < (size_t)CHANNELS * BATCH; i++)
		x[i] = (float)(i * 2654435761u % 1000) / 1000;
	for (int i = 0; i < LAYERS; i++) {
		struct layer *l = &layers[i];

		l->adv = adv;
		l->x = x;
		l->y = tensor(adv, ACTIVATION, "activation", UMADV_ACT);
		l->dx = gradient[i % 2];
		l->dy = gradient[(i + 1) % 2];
		l->w = tensor(adv, WEIGHTS, "weights", UMADV_PARAM);
		l->dw = tensor(adv, WEIGHTS, "weight gradients", UMADV_GRAD);
		for (int c = 0; c < 2 * CHANNELS; c++)
			l->w[c] = 1 + 0.01f * (float)(c % 7 - i % 5);
		x = l->y;
	}
}

/* Trains with this budget (0: all is resident). `weights`: the result. Returns the simulated ms of a step, and what the
 * library did. */
static double train(size_t budget, float *weights, struct umadv_stats *stats)
{
	struct umadv_options options;
	struct layer layers[LAYERS];
	struct umadv *adv;
	uint64_t before = 0;
	double ms;

	umadv_options_init(&options);
	options.device = UMADV_DEVICE_SIM;
	options.budget = budget;
	check(umadv_open(&adv, &options), "open");
	build(adv, layers);
	for (int i = 0; i < STEPS; i++) {
		if (i == STEPS / 2) {
			check(umadv_sim_sync(adv), "sync");
			before = umadv_sim_now(adv);
		}
		step(adv, layers);
	}
	check(umadv_sim_sync(adv), "sync");
	ms = (double)(umadv_sim_now(adv) - before) / (STEPS - STEPS / 2) / 1e6;
	for (int i = 0; i < LAYERS; i++) {
		check(umadv_host(adv, "result", UMADV_USES(UMADV_READ(layers[i].w))), "host");
		memcpy(&weights[2 * CHANNELS * i], layers[i].w, WEIGHTS);
	}
	stats->struct_size = sizeof(*stats);
	check(umadv_stats_get(adv, stats), "stats");
	umadv_close(adv);
	return ms;
}

int main(void)
{
	static const double ratios[] = {1, 1.5, 2, 3};
	static float weights[4][2 * CHANNELS * LAYERS];
	double needed = (LAYERS + 3) * (double)ACTIVATION;
	int wrong = 0;

	for (int i = 0; i < 4; i++) {
		struct umadv_stats stats = {0};
		double ms = train(i ? (size_t)(needed / ratios[i]) : 0, weights[i], &stats);

		wrong += memcmp(weights[i], weights[0], sizeof(weights[0])) != 0;
		printf("%3.1fx: %.3f ms simulated for a step, predicted %.3f ms, %llu operations launched again\n",
		       ratios[i], ms, (double)stats.plan_ns / 1e6, (unsigned long long)stats.relaunches);
	}
	puts(wrong ? "the weights differ" : "the weights are the same");
	return wrong != 0;
}
