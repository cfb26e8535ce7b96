/* SPDX-License-Identifier: Apache-2.0
 *
 * train_mpi.c - data-parallel training with MPI, each rank with less memory than its part of the batch needs
 *
 *     mpirun -np 4 examples/train_mpi [FILE [STEPS]]      FILE: the weights
 *
 * The network of train.c. The batch consists of slices, and each rank has some of them and a budget of two thirds of
 * what they need (UMADVISE_BUDGET: another one). A rank computes the weight gradients of each slice by itself; all are
 * gathered through buffers of the role UMADV_COMM, and added in the order of the slices. So the weights are bitwise
 * equal for any number of ranks. It runs on the simulated GPU: communication takes no simulated time.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umadvise.h>

enum { LAYERS = 16, CHANNELS = 32, SLICES = 64, SLICE = 1 << 10, WEIGHTS = 2 * CHANNELS, STEPS = 8 };

struct layer {
	const struct rank *of;
	float *x, *y; /* activations: input, output */
	float *dx, *dy; /* their gradients */
	float *w; /* weights: of the channel, of the next one */
	float *dw, *all; /* weight gradients by slice, of this rank and of all: parts of one allocation, UMADV_COMM */
};

struct rank {
	struct umadv *adv;
	int number, ranks;
	int first, slices; /* of the batch */
	size_t elements; /* of an activation */
	int count[SLICES], at[SLICES]; /* gradients by rank, in floats */
	struct layer layer[LAYERS];
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "train_mpi: %s: %s\n", what, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int err, const char *what)
{
	if (err)
		fail(what, umadv_strerror(err));
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static void forward(void *arg)
{
	const struct layer *l = arg;

	for (size_t i = 0; i < l->of->elements; i++) {
		size_t c = i % CHANNELS, next = i - c + (c + 1) % CHANNELS;
		float sum = l->w[c] * l->x[i] + l->w[CHANNELS + c] * l->x[next];

		l->y[i] = sum / (1 + fabsf(sum));
	}
}

/* The goal: each output is a quarter. */
static void loss(void *arg)
{
	const struct layer *l = arg;

	for (size_t i = 0; i < l->of->elements; i++)
		l->dy[i] = (l->y[i] - 0.25f) / (SLICES * SLICE);
}

/* The derivative of y = s / (1 + |s|) is (1 - |y|)^2. */
static void backward(void *arg)
{
	const struct layer *l = arg;

	memset(l->dx, 0, l->of->elements * sizeof(float));
	memset(l->dw, 0, (size_t)l->of->slices * WEIGHTS * sizeof(float));
	for (size_t i = 0; i < l->of->elements; i++) {
		size_t c = i % CHANNELS, next = i - c + (c + 1) % CHANNELS;
		float slope = 1 - fabsf(l->y[i]), d = l->dy[i] * slope * slope;
		float *dw = l->dw + i / (SLICE * CHANNELS) * WEIGHTS;

		l->dx[i] += l->w[c] * d;
		l->dx[next] += l->w[CHANNELS + c] * d;
		dw[c] += l->x[i] * d;
		dw[CHANNELS + c] += l->x[next] * d;
	}
}

static void update(void *arg)
{
	const struct layer *l = arg;

	for (int i = 0; i < WEIGHTS; i++) {
		float sum = 0;

		for (int k = 0; k < SLICES; k++)
			sum += l->all[k * WEIGHTS + i];
		l->w[i] -= 0.05f * sum;
	}
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* The argument of a launch is copied; the layer that it points to must live until the kernel has run. */
static int launch_forward(void *arg, void *stream)
{
	struct layer *l = *(struct layer **)arg;

	return umadv_sim_run(l->of->adv, stream, forward, l);
}

static void launch(struct layer *l, const char *name, const struct umadv_use *uses, size_t n, void (*fn)(void *))
{
	check(umadv_op(l->of->adv, NULL, name, uses, n), name);
	check(umadv_sim_run(l->of->adv, NULL, fn, l), name);
}

/* Every rank gets all gradients. MPI_Allreduce would add in an order that depends on the number of ranks. */
static void gather(struct rank *r)
{
	check(umadv_sim_sync(r->adv), "sync");
	for (struct layer *l = r->layer; l < r->layer + LAYERS; l++)
		MPI_Allgatherv(l->dw, r->slices * WEIGHTS, MPI_FLOAT, l->all, r->count, r->at, MPI_FLOAT,
			       MPI_COMM_WORLD);
}

static void step(struct rank *r)
{
	struct layer *l, *last = &r->layer[LAYERS - 1];
	const size_t bytes = (size_t)r->slices * WEIGHTS * sizeof(float), all = sizeof(float) * SLICES * WEIGHTS;

	check(umadv_iter(r->adv, NULL), "iter");
	for (l = r->layer; l <= last; l++)
		check(umadv_launch(r->adv, NULL, "forward",
				   UMADV_USES(UMADV_READ(l->x), UMADV_READ(l->w), UMADV_WRITE(l->y)), launch_forward,
				   &l, sizeof(l)),
		      "forward");
	launch(last, "loss", UMADV_USES(UMADV_READ(last->y), UMADV_WRITE(last->dy)), loss);
	for (l = last; l >= r->layer; l--) {
		launch(l, "backward",
		       UMADV_USES(UMADV_READ(l->x), UMADV_READ(l->y), UMADV_READ(l->w), UMADV_READ(l->dy),
				  UMADV_WRITE(l->dx), UMADV_WRITE_RANGE(l->dw, bytes)),
		       backward);
		check(umadv_dead(r->adv, l->y), "dead"); /* until the next step writes it */
		check(umadv_dead(r->adv, l->dy), "dead");
	}
	gather(r);
	for (l = r->layer; l <= last; l++)
		launch(l, "update", UMADV_USES(UMADV_READ_RANGE(l->all, all), UMADV_UPDATE(l->w)), update);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static float *tensor(struct rank *r, size_t n, const char *name, enum umadv_role role)
{
	void *p;

	check(umadv_alloc(r->adv, &p, n * sizeof(float), name, role), name);
	return p;
}

/* Slices are split as evenly as they can be. */
static void split(struct rank *r)
{
	if (r->ranks > SLICES)
		fail("start", "more ranks than slices of the batch");
	for (int k = 0; k < r->ranks; k++) {
		r->at[k] = SLICES * k / r->ranks * WEIGHTS;
		r->count[k] = SLICES * (k + 1) / r->ranks * WEIGHTS - r->at[k];
	}
	r->first = r->at[r->number] / WEIGHTS;
	r->slices = r->count[r->number] / WEIGHTS;
	r->elements = (size_t)r->slices * SLICE * CHANNELS;
}

static void begin(struct rank *r)
{
	float *gradient[2], *gathered, *x;
	struct umadv_options options;
	size_t before = (size_t)r->first * SLICE * CHANNELS;

	umadv_options_init(&options);
	options.device = UMADV_DEVICE_SIM;
	if (!options.budget)
		options.budget = (LAYERS + 3) * r->elements * sizeof(float) * 2 / 3;
	check(umadv_open(&r->adv, &options), "open");
	gradient[0] = tensor(r, r->elements, "gradient0", UMADV_GRAD);
	gradient[1] = tensor(r, r->elements, "gradient1", UMADV_GRAD);
	gathered = tensor(r, (size_t)(r->slices + SLICES) * LAYERS * WEIGHTS, "weight gradients", UMADV_COMM);
	x = tensor(r, r->elements, "input", UMADV_INPUT);
	for (size_t i = 0; i < r->elements; i++)
		x[i] = (float)((before + i) * 2654435761u % 1000) / 1000;
	for (int i = 0; i < LAYERS; i++) {
		struct layer *l = &r->layer[i];

		l->of = r;
		l->x = x;
		l->y = tensor(r, r->elements, "activation", UMADV_ACT);
		l->dx = gradient[i % 2];
		l->dy = gradient[(i + 1) % 2];
		l->w = tensor(r, WEIGHTS, "weights", UMADV_PARAM);
		l->dw = gathered + (size_t)i * (size_t)(r->slices + SLICES) * WEIGHTS;
		l->all = l->dw + (size_t)r->slices * WEIGHTS;
		for (int c = 0; c < WEIGHTS; c++)
			l->w[c] = 1 + 0.01f * (float)(c % 7 - i % 5);
		x = l->y;
	}
}

/* Writes the first rank's weights. Returns whether those of all ranks are equal. */
static int save(struct rank *r, const char *path)
{
	static float mine[LAYERS][WEIGHTS], first[LAYERS][WEIGHTS];
	int differ, any;
	FILE *f;

	for (int i = 0; i < LAYERS; i++) {
		check(umadv_host(r->adv, "result", UMADV_USES(UMADV_READ(r->layer[i].w))), "host");
		memcpy(mine[i], r->layer[i].w, sizeof(mine[i]));
	}
	memcpy(first, mine, sizeof(first));
	MPI_Bcast(first, LAYERS * WEIGHTS, MPI_FLOAT, 0, MPI_COMM_WORLD);
	differ = memcmp(mine, first, sizeof(first)) != 0;
	MPI_Allreduce(&differ, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (path && !r->number) {
		f = fopen(path, "wb");
		if (!f || fwrite(first, sizeof(first), 1, f) != 1 || fclose(f))
			fail(path, "cannot be written");
	}
	return !any;
}

/* The first rank prints a line for each. */
static void show(struct rank *r)
{
	struct umadv_stats stats = {.struct_size = sizeof(stats)};
	unsigned long long mine[4], all[4 * SLICES];

	check(umadv_stats_get(r->adv, &stats), "stats");
	mine[0] = umadv_sim_now(r->adv);
	mine[1] = stats.hinted_iterations;
	mine[2] = stats.iterations;
	mine[3] = stats.relaunches;
	MPI_Gather(mine, 4, MPI_UNSIGNED_LONG_LONG, all, 4, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
	for (int k = 0; !r->number && k < r->ranks; k++)
		printf("rank %d: %d slices, %.3f ms simulated, %llu of %llu iterations hinted, %llu operations "
		       "launched again\n",
		       k, r->count[k] / WEIGHTS, (double)all[4 * k] / 1e6, all[4 * k + 1], all[4 * k + 2],
		       all[4 * k + 3]);
}

int main(int argc, char **argv)
{
	static struct rank r;
	int steps = argc > 2 ? atoi(argv[2]) : STEPS, equal;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r.number);
	MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
	split(&r);
	begin(&r);
	for (int i = 0; i < steps; i++)
		step(&r);
	check(umadv_sim_sync(r.adv), "sync");
	equal = save(&r, argc > 1 ? argv[1] : NULL);
	show(&r);
	if (!r.number)
		puts(equal ? "the weights are the same in all ranks" : "the weights differ");
	umadv_close(r.adv);
	MPI_Finalize();
	return !equal;
}
