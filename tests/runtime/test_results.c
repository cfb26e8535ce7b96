/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints never change results: programs made up by chance compute the same with the driver alone and with hints, in
 * memory that is too small. What was discarded is poisoned, and kernels run when simulated time reaches them, long
 * after the program has announced them: whatever is taken away too early shows as a wrong number.
 *
 * Built a second time with REAL_THREADS: there the device's workers are threads, as on a real device, and what they do
 * when is a matter of chance.
 */
#include "umadvise.h"

#include "runtime/context.h"

#include "budget_kept.h"
#include "flaky_gpu.h"
#include "fixture/random.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)
#ifdef REAL_THREADS
#define SEEDS 5
#else
#define SEEDS 16
#endif
#define ITERATIONS 9
#define MOST 16 /* tensors of a kind */
#define STRIDE 8192 /* words: one in 64 KiB counts */

static uint64_t dice;
static struct um_gpu *gpu;
static unsigned larger; /* the device holds so many times the budget */

static uint32_t roll(uint32_t n)
{
	return test_random(&dice, n);
}

struct tensor {
	uint64_t *at; /* NULL: not alive */
	size_t bytes;
};

/* A kernel: out = f(in...), or out = f(in..., out). */
struct job {
	struct tensor in[2], out;
	unsigned n_in;
	int update;
	uint64_t salt;
};

/* A made-up program: parameters that stay, activations born and freed in every iteration. */
struct app {
	struct umadv *adv;
	struct tensor param[MOST], act[MOST], late[MOST];
	unsigned n_param, n_act;
	int scratch; /* a parameter that is transient; -1 none */
	int swaps; /* the first two parameters change places every iteration */
	int frees_late; /* some activations are freed in the next iteration */
	int strays; /* one iteration is not like the others */
	uint64_t script; /* the same dice in every iteration */
	struct job jobs[ITERATIONS][3 * MOST];
	unsigned n_jobs;
	int err;
};

static void kernel(void *arg)
{
	const struct job *j = arg;
	uint64_t h = j->salt;

	for (unsigned i = 0; i < j->n_in; i++)
		for (size_t k = 0; k < j->in[i].bytes / 8; k += STRIDE)
			h = (h ^ j->in[i].at[k]) * 0x9e3779b97f4a7c15ull + 1;
	for (size_t k = 0; k < j->out.bytes / 8; k += STRIDE)
		j->out.at[k] = (j->update ? j->out.at[k] * 31 : 0) + h + k;
}

static void launch(struct app *a, int iteration, struct job job)
{
	struct job *j = &a->jobs[iteration][a->n_jobs++];
	struct umadv_use uses[3];
	size_t n = 0;

	*j = job;
	for (unsigned i = 0; i < j->n_in; i++)
		uses[n++] = UMADV_READ(j->in[i].at);
	uses[n++] = umadv_use_(j->out.at, 0, 0, j->update ? UMADV_ACCESS_UPDATE : UMADV_ACCESS_WRITE);
	a->err |= umadv_op(a->adv, NULL, "job", uses, n);
	a->err |= um_sim_run(gpu, NULL, &(struct um_sim_kernel){.announced = 1, .fn = kernel, .arg = j});
}

static void add(struct job *j, const struct tensor *t)
{
	if (t->at)
		j->in[j->n_in++] = *t;
}

static void born(struct app *a, struct tensor *t, enum umadv_role role)
{
	a->err |= umadv_alloc(a->adv, (void **)&t->at, t->bytes, "t", role);
}

static void drop(struct app *a, struct tensor *t)
{
	a->err |= umadv_free(a->adv, t->at);
	t->at = NULL;
}

static void drop_late(struct app *a)
{
	for (unsigned i = 0; i < MOST; i++)
		drop(a, &a->late[i]);
}

static size_t some_bytes(void)
{
	return (roll(3) ? (1 + roll(6)) * MIB : (1 + roll(3000)) * 1024ull);
}

static void set_up(struct app *a)
{
	a->n_param = 3 + roll(8);
	a->n_act = 2 + roll(10);
	a->swaps = roll(3) == 0;
	a->frees_late = roll(3) == 0;
	a->scratch = roll(3) ? -1 : (int)a->n_param - 1;
	a->strays = roll(4) == 0;
	a->script = 1 + roll(1u << 30);
	for (unsigned i = 0; i < a->n_act; i++)
		a->act[i].bytes = some_bytes();
	for (unsigned i = 0; i < a->n_param; i++) {
		a->param[i].bytes = i == 1 && a->swaps ? a->param[0].bytes : some_bytes();
		born(a, &a->param[i], UMADV_PARAM);
		for (size_t k = 0; !a->err && k < a->param[i].bytes / 8; k += STRIDE)
			a->param[i].at[k] = k + i;
	}
	if (!a->err && a->scratch >= 0)
		a->err |= umadv_transient(a->adv, a->param[a->scratch].at);
}

static void forward(struct app *a, int it, unsigned i)
{
	struct job j = {.salt = i};
	int p = (int)roll(a->n_param);

	born(a, &a->act[i], UMADV_ACT);
	j.out = a->act[i];
	if (p != a->scratch)
		add(&j, &a->param[p]);
	else if (i) { /* by way of the scratch tensor: written, then read */
		struct job first = {.salt = 99, .out = a->param[p]};

		add(&first, &a->act[i - 1]);
		launch(a, it, first);
		add(&j, &a->param[p]);
	}
	if (i)
		add(&j, &a->act[roll(i)]);
	launch(a, it, j);
	if (i > 2 && roll(3) == 0)
		drop(a, &a->act[roll(i - 1)]);
}

static void backward(struct app *a, int it, unsigned i)
{
	unsigned p = roll(a->n_param - 1), how = roll(4);
	struct job j = {.salt = i, .update = 1, .out = a->param[p]};

	if (!a->act[i].at)
		return;
	add(&j, &a->act[i]);
	launch(a, it, j);
	if (how == 1)
		a->err |= umadv_dead(a->adv, a->act[i].at);
	if (how == 1 || (how == 0 && a->frees_late)) {
		a->late[i] = a->act[i];
		a->act[i].at = NULL;
	} else {
		drop(a, &a->act[i]);
	}
}

static int finish(struct app *a)
{
	(void)a;
	return um_sim_sync(gpu);
}

static void iterate(struct app *a, int it)
{
	uint64_t kept = dice;

	dice = a->script;
	a->n_jobs = 0;
	a->err |= umadv_iter(a->adv, NULL);
	for (unsigned i = 0; i < a->n_act && !a->err; i++) {
		forward(a, it, i);
		if (i == 0)
			drop_late(a);
		if (a->strays && it == 4 && i == a->n_act / 2)
			launch(a, it, (struct job){.salt = 3, .update = 1, .out = a->param[0]});
	}
	for (unsigned i = a->n_act; i-- > 0 && !a->err;)
		backward(a, it, i);
	if (!a->frees_late)
		drop_late(a);
	if (a->swaps) {
		struct tensor t = a->param[0];

		a->param[0] = a->param[1];
		a->param[1] = t;
	}
	dice = kept;
	if (roll(5) == 0)
		a->err |= finish(a);
}

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	(void)line;
}

#ifdef REAL_THREADS
/* Time and what happens on the device are simulated, threads are not. */
static int open_app(struct app *a, const struct umadv_options *o)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {
		.profile = v100, .capacity = larger * o->budget, .backed = 1, .poison = 1, .timeout_ms = 20000};
	int err = flaky_open(&gpu, &so);

	if (err)
		return err;
	err = um_context_open(&a->adv, o, gpu, v100);
	flaky.armed = 1;
	return err;
}
#else
static int open_app(struct app *a, const struct umadv_options *o)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = larger * o->budget, .backed = 1, .poison = 1};
	int err = um_sim_open(&gpu, &so);

	return err ? err : um_context_open(&a->adv, o, gpu, v100);
}
#endif

static unsigned over; /* runs in which hints exceeded the budget */

/* What the parameters hold at the end. */
static uint64_t run(uint64_t seed, const char *strategy, uint64_t budget, struct umadv_stats *stats)
{
	static struct app a;
	struct umadv_options o;
	uint64_t h = 0;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = budget;
	o.strategy = strategy;
	o.check = UMADV_CHECK_DISCARDS;
	o.log = on_log;
	memset(&a, 0, sizeof a);
#ifdef REAL_THREADS
	flaky.nth = seed % 2 ? 10 : 0;
	flaky.by_chance = 1;
#endif
	dice = seed;
	a.err = open_app(&a, &o);
	if (!a.err)
		set_up(&a);
	for (int it = 0; it < ITERATIONS && !a.err; it++)
		iterate(&a, it);
	if (!a.err)
		a.err = finish(&a);
	for (unsigned i = 0; i < a.n_param && !a.err; i++)
		for (size_t k = 0; k < a.param[i].bytes / 8; k += STRIDE)
			if ((int)i != a.scratch)
				h = (h ^ a.param[i].at[k]) * 0x100000001b3ull + 1;
	stats->struct_size = sizeof *stats;
	if (!a.err)
		a.err = umadv_stats_get(a.adv, stats);
	if (!a.err && !budget_kept(gpu, budget))
		over++;
	umadv_close(a.adv);
	return a.err ? 0 : h;
}

int main(void)
{
	static const unsigned percent[] = {90, 66, 50};
	uint64_t hinted = 0, discarded = 0, evicted = 0, diverged = 0, seeds = tap_few() ? 3 : SEEDS;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	for (uint64_t seed = 0; seed < seeds; seed++) {
		struct umadv_stats all, few;
		uint64_t want;

		larger = 1;
		want = run(seed, "on-demand", 1024 * MIB, &all);

		ok(want != 0, "program %d runs with the driver alone", (int)seed);
		for (unsigned i = 0; i < sizeof percent / sizeof *percent && want; i++) {
			uint64_t budget = all.bytes_live_peak * percent[i] / 100 / (2 * MIB) * (2 * MIB);

			/* the largest op has three ranges of 6 MiB, which lie in four blocks each */
			budget = budget < 24 * MIB ? 24 * MIB : budget;
			larger = budget_devices[(seed + i) % BUDGET_DEVICES];
			is_u64(run(seed, "lookahead", budget, &few), want,
			       "the results are the same in %u %% of the memory", percent[i]);
			hinted += few.hinted_iterations;
			discarded += few.discard_bytes;
			evicted += few.evict_bytes;
			diverged += few.divergences;
		}
	}
	is_u64(over, 0, "hints never make more resident than the budget");
	if (!tap_few())
		ok(discarded && evicted, "some memory was discarded, some evicted");
#ifdef REAL_THREADS
	ok(hinted > seeds * (ITERATIONS - 4), "many iterations were hinted, though calls failed");
	diag("%llu iterations left the schedule",
	     (unsigned long long)diverged); /* few programs are played: may be none */
#else
	ok(hinted > seeds * 3 * (ITERATIONS - 4), "most iterations were hinted");
	if (!tap_few())
		ok(diverged > 0, "some iteration left the schedule");
#endif
	return tap_done();
}
