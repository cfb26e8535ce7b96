/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of probes, and the setup of each run.
 */
#include "probe/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probe/bench.h"
#include "probe/guard.h"

#define BLOCKS_MAX 32u /* more give no further information */
#define BLOCKS_MAX_EXACT 16u /* without noise */
#define ROUNDS 11u
#define ROUNDS_EXACT 2u

static const struct {
	const char *name, *unit, *text;
} observations[UM_OBS_N] = {
#define ROW(id, name, unit, text) [UM_OBS_##id] = {name, unit, text},
	UM_OBSERVATIONS(ROW)
#undef ROW
};

static const struct {
	const char *name;
	void (*run)(struct um_bench *b);
} probes[] = {
	{"prefetch", um_probe_prefetch}, {"split", um_probe_split},	  {"hints", um_probe_hints},
	{"discard", um_probe_discard},	 {"pages", um_probe_pages},	  {"home", um_probe_home},
	{"duplex", um_probe_duplex},	 {"link", um_probe_link},	  {"rates", um_probe_rates},
	{"faults", um_probe_faults},	 {"patterns", um_probe_patterns}, {"permissions", um_probe_permissions},
	{"remote", um_probe_remote},	 {"cpu", um_probe_cpu},		  {"compute", um_probe_compute},
	{"calls", um_probe_calls},	 {"packing", um_probe_packing},
};

const char *um_observation_name(enum um_observation o)
{
	return observations[o].name;
}

const char *um_observation_unit(enum um_observation o)
{
	return observations[o].unit;
}

const char *um_observation_text(enum um_observation o)
{
	return observations[o].text;
}

int um_observation_find(const char *name)
{
	for (int i = 0; i < UM_OBS_N; i++)
		if (strcmp(observations[i].name, name) == 0)
			return i;
	return -ENOENT;
}

const char *um_probe_name(unsigned n)
{
	return n < sizeof probes / sizeof *probes ? probes[n].name : NULL;
}

int um_probe_find(const char *name)
{
	for (unsigned i = 0; i < sizeof probes / sizeof *probes; i++)
		if (strcmp(probes[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

/* Usable blocks, less one for alignment. */
static int afford(struct um_bench *b, uint64_t budget)
{
	uint64_t most = um_probe_allowance(b->gpu);
	unsigned useful = b->rounds > ROUNDS_EXACT ? BLOCKS_MAX : BLOCKS_MAX_EXACT;

	if (budget && um_probe_guard(b->gpu, budget, 0, b->why, b->size))
		return -EPERM;
	b->budget = budget ? budget : most;
	if (b->budget < UM_PROBE_LEAST) {
		snprintf(b->why, b->size, "%.1f MiB of managed memory are too little: probes need %.0f MiB",
			 (double)b->budget / 1048576, (double)UM_PROBE_LEAST / 1048576);
		return -EPERM;
	}
	b->blocks = b->budget / UM_BLOCK_BYTES > useful ? useful : (unsigned)(b->budget / UM_BLOCK_BYTES) - 1;
	return 0;
}

int um_probe_run(unsigned n, const struct um_probe_setup *setup, struct um_observed *out, char *why, size_t size)
{
	struct um_gpu *gpu = setup->gpu;
	struct um_bench b = {.gpu = gpu,
			     .launcher = setup->launcher,
			     .out = out,
			     .rounds = setup->rounds   ? setup->rounds
				       : gpu->api->now ? ROUNDS_EXACT
						       : ROUNDS,
			     .why = why,
			     .size = size};

	why[0] = '\0';
	if (!gpu->caps.concurrent_managed) {
		snprintf(why, size, "%s", gpu->caps.why);
		return -EIO;
	}
	b.err = afford(&b, setup->budget);
	if (b.err)
		return b.err;
	um_bench_check(&b, gpu->api->cudaStreamCreateWithFlags(gpu, &b.a, UM_STREAM_NON_BLOCKING),
		       "cudaStreamCreateWithFlags");
	if (!b.err)
		um_bench_check(&b, gpu->api->cudaStreamCreateWithFlags(gpu, &b.b, UM_STREAM_NON_BLOCKING),
			       "cudaStreamCreateWithFlags");
	if (!b.err)
		probes[n].run(&b);
	if (b.b)
		um_bench_check(&b, gpu->api->cudaStreamDestroy(gpu, b.b), "cudaStreamDestroy");
	if (b.a)
		um_bench_check(&b, gpu->api->cudaStreamDestroy(gpu, b.a), "cudaStreamDestroy");
	return b.err;
}
