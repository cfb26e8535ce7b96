/* SPDX-License-Identifier: Apache-2.0
 *
 * vector.c - a minimal program: vectors that exceed the memory, updated in a loop
 *
 * 24 vectors of 4 MiB each, a budget of 32 MiB. Every step adds to each vector its right neighbour. It runs on the
 * simulated GPU, where a "kernel" is a C function; on a real one, launch the kernel in place of umadv_sim_run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umadvise.h>

enum { VECTORS = 24, LENGTH = 1 << 20, STEPS = 6 };

/* Arguments of a kernel. They must live until the kernel has run, so each vector has its own. */
struct add {
	float *y;
	const float *x;
};

static void fill(void *arg)
{
	struct add *a = arg;

	for (int i = 0; i < LENGTH; i++)
		a->y[i] = 1;
}

static void add(void *arg)
{
	struct add *a = arg;

	for (int i = 0; i < LENGTH; i++)
		a->y[i] += a->x[i];
}

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "vector: %s: %s\n", what, umadv_strerror(err));
	exit(1);
}

/* The same on one number for each vector: all elements of a vector are equal. */
static void expected(float y[VECTORS])
{
	for (int v = 0; v < VECTORS; v++)
		y[v] = 1;
	for (int step = 0; step < STEPS; step++)
		for (int v = 0; v < VECTORS; v++)
			y[v] += y[(v + 1) % VECTORS];
}

int main(void)
{
	struct umadv_stats stats = {.struct_size = sizeof(stats)};
	struct umadv_options options;
	struct add args[VECTORS];
	float *vec[VECTORS], want[VECTORS];
	struct umadv *adv;
	char name[16];
	int wrong = 0;

	umadv_options_init(&options);
	options.device = UMADV_DEVICE_SIM;
	options.budget = 32 << 20;
	check(umadv_open(&adv, &options), "open");

	for (int v = 0; v < VECTORS; v++) {
		snprintf(name, sizeof(name), "y%d", v);
		check(umadv_alloc(adv, (void **)&vec[v], LENGTH * sizeof(float), name, UMADV_OTHER), "alloc");
	}
	for (int v = 0; v < VECTORS; v++) {
		args[v] = (struct add){vec[v], vec[(v + 1) % VECTORS]};
		check(umadv_op(adv, NULL, "fill", UMADV_USES(UMADV_WRITE(args[v].y))), "op");
		check(umadv_sim_run(adv, NULL, fill, &args[v]), "run");
	}

	for (int step = 0; step < STEPS; step++) {
		check(umadv_iter(adv, NULL), "iter");
		for (int v = 0; v < VECTORS; v++) {
			struct add *a = &args[v];

			check(umadv_op(adv, NULL, "add", UMADV_USES(UMADV_READ(a->x), UMADV_UPDATE(a->y))), "op");
			check(umadv_sim_run(adv, NULL, add, a), "run");
		}
	}
	for (int v = 0; v < VECTORS; v++)
		check(umadv_host(adv, "compare", UMADV_USES(UMADV_READ(vec[v]))), "host");
	check(umadv_sim_sync(adv), "sync");

	expected(want);
	for (int v = 0; v < VECTORS; v++)
		for (int i = 0; i < LENGTH; i++)
			wrong += vec[v][i] != want[v];
	check(umadv_stats_get(adv, &stats), "stats");
	printf("%d wrong elements; %.3f ms simulated; %llu of %llu iterations hinted\n", wrong,
	       (double)umadv_sim_now(adv) / 1e6, (unsigned long long)stats.hinted_iterations,
	       (unsigned long long)stats.iterations);
	umadv_close(adv);
	return wrong != 0;
}
