/* SPDX-License-Identifier: Apache-2.0
 *
 * Accesses of the CPU that a plan does not have, on the simulated GPU: the plan goes on where they are seldom, and is
 * learned anew where they come in every iteration. Content is never lost.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"
#include "tap.h"

#define MIB (1ull << 20)
#define N (1u << 20) /* floats: 4 MiB */
#define BUFS 8
#define ITERATIONS 24
#define FIRST 6 /* iterations without an access, in which the plan is learned */

struct step {
	const float *x;
	float *w;
};

struct run {
	int every; /* the CPU reads in each iteration with a number that this divides; 0: never */
	int writes; /* it also writes what it reads */
	int at; /* op before which it does; BUFS: after the last one */
	int first; /* the first iteration that it may do so in */
	/* results */
	double read; /* sum of what the CPU read, and of all tensors at the end */
	uint64_t faults; /* of iterations from number FIRST on */
	struct umadv_stats stats;
	int err;
};

static void update(void *arg)
{
	const struct step *s = arg;

	for (unsigned i = 0; i < N; i += 61)
		s->w[i] = s->w[i] * 0.5f + s->x[i];
}

static struct umadv *open_sim(const char *strategy)
{
	struct umadv_options o;
	struct umadv *adv = NULL;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 20 * MIB;
	o.strategy = strategy;
	o.check = UMADV_CHECK_DISCARDS;
	if (umadv_open(&adv, &o))
		tap_bail("no simulated device");
	return adv;
}

static int access(struct umadv *adv, struct run *r, float *w)
{
	const struct umadv_use update = UMADV_UPDATE(w), read = UMADV_READ(w);
	int err = umadv_host(adv, "look", r->writes ? &update : &read, 1);

	if (!err)
		err = adv->device.gpu->api->cudaStreamSynchronize(adv->device.gpu, NULL) ? -1 : 0;
	if (!err)
		err = um_sim_host_touch(adv->device.gpu, w, N * sizeof *w, r->writes ? UM_UPDATE : UM_READ);
	for (unsigned i = 0; i < N && !err; i += 61) {
		r->read += w[i];
		w[i] += r->writes ? 1 : 0;
	}
	return err;
}

static int iterate(struct umadv *adv, int it, float *x, float *const *w, struct step *steps, struct run *r)
{
	int err = umadv_iter(adv, NULL), looks = r->every && it >= r->first && it % r->every == 0;

	for (int k = 0; k <= BUFS && !err; k++) {
		if (looks && k == r->at)
			err = access(adv, r, w[1]);
		if (err || k == BUFS)
			break;
		steps[k] = (struct step){x, w[k]};
		err = umadv_op(adv, NULL, "update", UMADV_USES(UMADV_READ(x), UMADV_UPDATE(w[k])));
		if (!err)
			err = umadv_sim_run(adv, NULL, update, &steps[k]);
	}
	return err;
}

static void play(struct run *r, const char *strategy)
{
	static struct step steps[ITERATIONS][BUFS];
	struct umadv *adv = open_sim(strategy);
	struct um_tally before, t;
	float *x, *w[BUFS];

	r->stats.struct_size = sizeof r->stats;
	r->err = umadv_alloc(adv, (void **)&x, N * sizeof *x, "x", UMADV_INPUT);
	for (int k = 0; k < BUFS && !r->err; k++) {
		r->err = umadv_alloc(adv, (void **)&w[k], N * sizeof *x, "w", UMADV_PARAM);
		for (unsigned i = 0; i < N && !r->err; i++)
			w[k][i] = x[i] = (float)k;
	}
	for (int it = 0; it < ITERATIONS && !r->err; it++) {
		if (it == FIRST && !umadv_sim_sync(adv))
			um_sim_tally(adv->device.gpu, &before);
		r->err = iterate(adv, it, x, w, steps[it], r);
	}
	if (!r->err)
		r->err = umadv_sim_sync(adv);
	um_sim_tally(adv->device.gpu, &t);
	r->faults = t.faults - before.faults;
	for (int k = 0; k < BUFS && !r->err; k++)
		for (unsigned i = 0; i < N; i += 61)
			r->read += w[k][i];
	if (!r->err)
		r->err = umadv_stats_get(adv, &r->stats);
	umadv_close(adv);
}

static void goes_on(const char *name, struct run r)
{
	struct run plain = r;

	play(&plain, "on-demand");
	play(&r, NULL);
	is_int(plain.err | r.err, 0, "%s: the loop runs", name);
	ok(r.read == plain.read, "%s: all content is as without hints (%.9g, %.9g)", name, r.read, plain.read);
	is_u64(r.stats.divergences, 0, "%s: the plan goes on", name);
	is_u64(r.faults, 0, "%s: no op faults", name);
	is_u64(r.stats.host_accesses, plain.stats.host_accesses, "%s: the statistics count each access", name);
}

/* The CPU comes to read in every iteration. */
static void learned(void)
{
	struct run r = {.every = 1, .at = 4, .first = 12};

	play(&r, NULL);
	is_int(r.err, 0, "a loop that comes to read in every iteration runs");
	ok(r.stats.divergences && r.stats.divergences <= 2, "the second access in a row ends the plan (%llu)",
	   (unsigned long long)r.stats.divergences);
	ok(r.stats.plans > 1, "a plan with the access follows (%llu plans)", (unsigned long long)r.stats.plans);
}

int main(void)
{
	goes_on("read between ops", (struct run){.every = 5, .at = 4, .first = FIRST});
	goes_on("read before its op", (struct run){.every = 5, .at = 1, .first = FIRST});
	goes_on("read after the last op", (struct run){.every = 4, .at = BUFS, .first = FIRST});
	goes_on("written between ops", (struct run){.every = 5, .at = 4, .writes = 1, .first = FIRST});
	learned();
	return tap_done();
}
