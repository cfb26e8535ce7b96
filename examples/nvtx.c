/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx.c - a program that marks its steps for a profiler, and not for libumadvise
 *
 *     UMADVISE_ITERATION='Step *' ./nvtx
 *
 * A sweep over 24 vectors of 4 MiB with a budget of 32 MiB, on the simulated GPU. Every step is an NVTX range. With
 * the variable the ranges are iterations; without it the library finds the iterations in the operations.
 */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <umadvise.h>

enum { VECTORS = 24, LENGTH = 1 << 20, STEPS = 12 };

static void add_one(void *arg)
{
	float *y = arg;

	for (int i = 0; i < LENGTH; i++)
		y[i] += 1;
}

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "nvtx: %s: %s\n", what, umadv_strerror(err));
	exit(1);
}

static void sweep(struct umadv *adv, float *vec[VECTORS])
{
	for (int v = 0; v < VECTORS; v++) {
		check(umadv_op(adv, NULL, "add_one", UMADV_USES(UMADV_UPDATE(vec[v]))), "op");
		check(umadv_sim_run(adv, NULL, add_one, vec[v]), "run");
	}
}

int main(void)
{
	struct umadv_stats stats = {.struct_size = sizeof(stats)};
	struct umadv_options options;
	float *vec[VECTORS];
	struct umadv *adv;
	char name[32];
	int wrong = 0;

	umadv_options_init(&options);
	options.device = UMADV_DEVICE_SIM;
	options.budget = 32 << 20;
	check(umadv_open(&adv, &options), "open");
	for (int v = 0; v < VECTORS; v++)
		check(umadv_alloc(adv, (void **)&vec[v], LENGTH * sizeof(float), NULL, UMADV_OTHER), "alloc");

	for (int step = 0; step < STEPS; step++) {
		snprintf(name, sizeof(name), "Step %d", step);
		nvtxRangePushA(name);
		sweep(adv, vec);
		nvtxRangePop();
	}
	check(umadv_sim_sync(adv), "sync");

	for (int v = 0; v < VECTORS; v++)
		for (int i = 0; i < LENGTH; i++)
			wrong += vec[v][i] != STEPS;
	check(umadv_stats_get(adv, &stats), "stats");
	printf("%d wrong elements, %llu iterations, %llu of them hinted, %.3f ms simulated\n", wrong,
	       (unsigned long long)stats.iterations, (unsigned long long)stats.hinted_iterations,
	       (double)umadv_sim_now(adv) / 1e6);
	umadv_close(adv);
	return wrong != 0;
}
