/* SPDX-License-Identifier: Apache-2.0
 *
 * umadv_host on the simulated GPU: a loop whose input the CPU writes and whose first weights the CPU reads in every
 * iteration. Content is on the host by the access, on the device again by the next op, and never lost.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"
#include "tap.h"

#include <errno.h>
#include <unistd.h>

#define N (1u << 20) /* floats: 4 MiB */
#define BUFS 8
#define MIB (1ull << 20)
#define ITERATIONS 12

struct step {
	const float *x;
	float *w;
};

static void update(void *arg)
{
	const struct step *s = arg;

	for (unsigned i = 0; i < N; i += 61)
		s->w[i] = s->w[i] * 0.5f + s->x[i];
}

static struct umadv *open_sim(const char *strategy, const char *trace)
{
	struct umadv_options o;
	struct umadv *adv = NULL;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 20 * MIB;
	o.strategy = strategy;
	o.trace = trace;
	o.check = UMADV_CHECK_DISCARDS;
	if (umadv_open(&adv, &o))
		tap_bail("no simulated device");
	return adv;
}

struct result {
	double read; /* sum of what the CPU read */
	int at_home; /* of the last iteration: pages that the CPU is about to read came home by a hint */
	struct umadv_stats stats;
	int err;
};

/* Waits for the program's own stream, not for the library's. */
static int wait_for_ops(struct umadv *adv)
{
	struct um_gpu *gpu = adv->device.gpu;

	return gpu->api->cudaStreamSynchronize(gpu, NULL) ? -EIO : 0;
}

static int came_home(struct umadv *adv, const void *ptr)
{
	struct um_sim_range_attributes a;

	return !um_sim_range_attributes(adv->device.gpu, ptr, N * sizeof(float), &a) && a.prefetched == -1;
}

static int iterate(struct umadv *adv, int it, float *x, float *const *w, struct step *steps, struct result *r)
{
	int err = umadv_iter(adv, NULL);

	if (!err)
		err = umadv_host(adv, "input", UMADV_USES(UMADV_WRITE(x)));
	for (unsigned i = 0; i < N && !err; i += 61)
		x[i] = (float)((i + (unsigned)it) % 17);
	for (int k = 0; k < BUFS && !err; k++) {
		steps[k] = (struct step){x, w[k]};
		err = umadv_op(adv, NULL, "update", UMADV_USES(UMADV_READ(x), UMADV_UPDATE(w[k])));
		if (!err)
			err = umadv_sim_run(adv, NULL, update, &steps[k]);
	}
	if (!err)
		err = umadv_dead(adv, x);
	if (!err)
		err = umadv_host(adv, "checkpoint", UMADV_USES(UMADV_READ(w[0]), UMADV_READ_RANGE(w[1], N)));
	if (!err)
		err = wait_for_ops(adv);
	r->at_home = came_home(adv, w[0]);
	for (unsigned i = 0; i < N && !err; i += 61)
		r->read += w[0][i] + (i < N / 4 ? w[1][i] : 0);
	return err;
}

static struct result run(const char *strategy, const char *trace)
{
	static struct step steps[ITERATIONS][BUFS];
	struct result r = {.stats = {.struct_size = sizeof r.stats}};
	struct umadv *adv = open_sim(strategy, trace);
	float *x, *w[BUFS];

	r.err = umadv_alloc(adv, (void **)&x, N * sizeof *x, "x", UMADV_INPUT);
	for (int k = 0; k < BUFS && !r.err; k++) {
		r.err = umadv_alloc(adv, (void **)&w[k], N * sizeof *x, "w", UMADV_PARAM);
		for (unsigned i = 0; i < N && !r.err; i++)
			w[k][i] = (float)k;
	}
	for (int it = 0; it < ITERATIONS && !r.err; it++)
		r.err = iterate(adv, it, x, w, steps[it], &r);
	if (!r.err)
		r.err = umadv_sim_sync(adv);
	for (int k = 0; k < BUFS && !r.err; k++)
		for (unsigned i = 0; i < N; i += 61)
			r.read += w[k][i];
	if (!r.err)
		r.err = umadv_stats_get(adv, &r.stats);
	umadv_close(adv);
	return r;
}

static void results(void)
{
	struct result plain = run("on-demand", NULL), use = run("prefetch-on-use", NULL), hints = run(NULL, NULL);

	is_int(plain.err | use.err | hints.err, 0, "a loop with CPU accesses runs under three strategies");
	ok(hints.read == plain.read, "the CPU reads the same with a plan as without hints (%.9g, %.9g)", hints.read,
	   plain.read);
	ok(use.read == plain.read, "the CPU reads the same with prefetches on use");
	ok(hints.stats.discard_bytes > 0, "dead content was discarded in the same iterations");
	ok(hints.stats.hinted_iterations >= ITERATIONS - 3, "iterations with CPU accesses are planned (%llu)",
	   (unsigned long long)hints.stats.hinted_iterations);
	is_u64(hints.stats.divergences, 0, "CPU accesses do not leave the schedule");
	ok(hints.at_home, "content is evicted to the host ahead of the CPU's access");
	is_u64(hints.stats.host_accesses, 2 * ITERATIONS, "the statistics count CPU accesses");
	is_u64(hints.stats.ops, BUFS * ITERATIONS, "CPU accesses are not counted as ops");
}

static void arguments(void)
{
	struct umadv *adv = open_sim(NULL, NULL);
	float *x = NULL;

	is_int(umadv_alloc(adv, (void **)&x, MIB, "x", UMADV_OTHER), 0, "a tensor is allocated");
	is_int(umadv_host(NULL, "a", UMADV_USES(UMADV_READ(x))), -EINVAL, "no context is refused");
	is_int(umadv_host(adv, "a", NULL, 1), -EINVAL, "no ranges where one is counted are refused");
	is_int(umadv_host(adv, NULL, NULL, 0), 0, "an access of nothing is allowed");
	is_int(umadv_host(adv, "a", UMADV_USES(UMADV_READ_RANGE(x, 2 * MIB))), -EINVAL,
	       "a range that exceeds its tensor is refused");
	is_int(umadv_host(adv, "a", UMADV_USES(UMADV_UPDATE(x))), 0, "an access outside iterations is allowed");
	umadv_close(adv);
}

static void recorded(void)
{
	char path[64], line[400];
	int hosts = 0, ops = 0;
	FILE *f;

	snprintf(path, sizeof path, "test_host.%ld.umtrace", (long)getpid());
	is_int(run(NULL, path).err, 0, "a loop with CPU accesses is recorded");
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f)) {
		hosts += strncmp(line, "{\"ev\":\"host\",\"name\":\"", 21) == 0;
		ops += strncmp(line, "{\"ev\":\"op\"", 10) == 0;
	}
	if (f)
		fclose(f);
	unlink(path);
	is_int(hosts, 2 * ITERATIONS, "the trace has a host line for each CPU access");
	is_int(ops, BUFS * ITERATIONS, "the trace has an op line for each op");
}

int main(void)
{
	results();
	arguments();
	recorded();
	return tap_done();
}
