/* SPDX-License-Identifier: Apache-2.0
 *
 * The public API on the simulated GPU: a loop that computes real results, with and without hints, under budgets;
 * arguments that make no sense; names, ranges, adoption, statistics, plans saved and loaded.
 */
#include "umadvise.h"

#include "tap.h"

#include <errno.h>
#include <unistd.h>

#define N (1u << 20) /* floats: 4 MiB */
#define BUFS 12
#define MIB (1ull << 20)

static char last_log[512];
static int n_logs;

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	n_logs++;
	snprintf(last_log, sizeof last_log, "%s", line);
}

static struct umadv *open_sim(uint64_t budget, const char *strategy, const char *plan)
{
	struct umadv_options o;
	struct umadv *adv = NULL;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = budget;
	o.strategy = strategy;
	o.plan = plan;
	o.log = on_log;
	o.check = UMADV_CHECK_DISCARDS;
	int err = umadv_open(&adv, &o);

	if (err)
		diag("umadv_open: %s (%s)", umadv_strerror(err), last_log);
	return adv;
}

struct step {
	float *in, *out, *w;
};

/* Element by element; depends on all that went before, and stays small. */
static void layer(void *arg)
{
	struct step *s = arg;

	for (unsigned i = 0; i < N; i += 97)
		s->out[i] = s->in[i] * s->w[i] * 0.25f + 1;
}

static void update(void *arg)
{
	struct step *s = arg;

	for (unsigned i = 0; i < N; i += 97)
		s->w[i] = s->w[i] * 0.5f + s->out[i] * 0.03125f;
}

struct result {
	double sum;
	uint64_t ns;
	struct umadv_stats stats;
};

/* A chain of layers forward, weights updated backward; activations are allocated and freed in every iteration. */
static int train(struct umadv *adv, int iterations, const char *save, struct result *r)
{
	static struct step steps[64][2 * BUFS];
	float *w[BUFS], *x, *y[BUFS];
	int err = umadv_alloc(adv, (void **)&x, N * sizeof *x, "x", UMADV_INPUT);

	for (int i = 0; i < BUFS && !err; i++)
		err = umadv_alloc(adv, (void **)&w[i], N * sizeof *x, "w", UMADV_PARAM);
	if (err)
		return err;
	for (unsigned i = 0; i < N; i += 97) {
		x[i] = 1 + (float)(i % 13);
		for (int k = 0; k < BUFS; k++)
			w[k][i] = (float)((i + (unsigned)k) % 7) / 8;
	}
	for (int it = 0; it < iterations && !err; it++) {
		err = umadv_iter(adv, NULL);
		for (int k = 0; k < BUFS && !err; k++) {
			float *in = k ? y[k - 1] : x;

			err = umadv_alloc(adv, (void **)&y[k], N * sizeof *x, "y", UMADV_ACT);
			if (!err)
				err = umadv_op(adv, NULL, "layer",
					       UMADV_USES(UMADV_READ(in), UMADV_READ(w[k]), UMADV_WRITE(y[k])));
			steps[it % 64][k] = (struct step){in, y[k], w[k]};
			if (!err)
				err = umadv_sim_run(adv, NULL, layer, &steps[it % 64][k]);
		}
		for (int k = BUFS; k-- > 0 && !err;) {
			err = umadv_op(adv, NULL, "update", UMADV_USES(UMADV_READ(y[k]), UMADV_UPDATE(w[k])));
			steps[it % 64][BUFS + k] = (struct step){x, y[k], w[k]};
			if (!err)
				err = umadv_sim_run(adv, NULL, update, &steps[it % 64][BUFS + k]);
			if (!err)
				err = umadv_free(adv, y[k]);
		}
	}
	if (!err)
		err = umadv_sim_sync(adv);
	r->sum = 0;
	for (int k = 0; k < BUFS && !err; k++)
		for (unsigned i = 0; i < N; i += 97)
			r->sum += w[k][i];
	r->ns = umadv_sim_now(adv);
	if (!err && save)
		err = umadv_save_plan(adv, save);
	r->stats.struct_size = sizeof r->stats;
	if (!err)
		err = umadv_stats_get(adv, &r->stats);
	return err;
}

static void results(void)
{
	struct result plain, fits, small, warm;
	char path[64];
	struct umadv *adv = open_sim(1024 * MIB, "on-demand", NULL);
	int err;

	snprintf(path, sizeof path, "test_api.%ld.umplan.gz", (long)getpid());
	ok(train(adv, 12, NULL, &plain) == 0, "a loop runs without hints");
	is_u64(plain.stats.hints_issued, 0, "none were issued");
	is_int(umadv_save_plan(adv, path), -ENODATA, "nothing was learned, no plan to save");
	umadv_close(adv);

	adv = open_sim(1024 * MIB, NULL, NULL);
	err = train(adv, 12, NULL, &fits);
	ok(err == 0 && fits.sum == plain.sum, "the results are the same where all fits (%g)", fits.sum);
	is_u64(fits.stats.divergences, 0, "the loop is regular");
	umadv_close(adv);

	/* 25 tensors of 4 MiB; room for 15. */
	adv = open_sim(60 * MIB, NULL, NULL);
	err = train(adv, 12, path, &small);
	ok(err == 0 && small.sum == plain.sum, "the results are the same in 60 %% of the memory");
	ok(small.stats.hints_issued > 0 && small.stats.evict_bytes > 0, "the smaller memory causes evictions");
	is_u64(small.stats.first_hinted_iteration, 2, "a plan is followed once one iteration has fitted it");
	is_u64(small.stats.hints_refused, 0, "no hint is refused");
	ok(small.stats.hints_announced && small.stats.hints_scheduled > small.stats.hints_announced,
	   "most hints are the plan's, others of the op at hand (%llu, %llu)",
	   (unsigned long long)small.stats.hints_scheduled, (unsigned long long)small.stats.hints_announced);
	ok(small.stats.plan_peak_bytes <= 60 * MIB, "the plan keeps to the budget");
	umadv_close(adv);

	struct result base;

	adv = open_sim(60 * MIB, "on-demand", NULL);
	err = train(adv, 12, NULL, &base);
	ok(err == 0 && small.ns < base.ns, "hints are faster than the driver alone (%.2f against %.2f ms)",
	   (double)small.ns / 1e6, (double)base.ns / 1e6);
	umadv_close(adv);

	adv = open_sim(60 * MIB, NULL, path);
	err = train(adv, 12, NULL, &warm);
	ok(err == 0 && warm.sum == plain.sum, "the results are the same with a saved plan");
	is_u64(warm.stats.first_hinted_iteration, 0, "the saved plan gives hints from the first iteration on");
	umadv_close(adv);
	remove(path);
}

#define CHANGING 40
#define ALIKE 20

/* Iterations that are not alike: some have fewer layers, some end early, some have larger tensors. Then come iterations
 * that are alike. What was planned for others must not show in the results. */
static int run_changing(struct umadv *adv, struct result *r)
{
	static struct step steps[CHANGING + ALIKE][2 * BUFS];
	float *w[BUFS], *x, *y[BUFS];
	int err = umadv_alloc(adv, (void **)&x, N * sizeof *x, "x", UMADV_INPUT);

	for (int i = 0; i < BUFS && !err; i++)
		err = umadv_alloc(adv, (void **)&w[i], N * sizeof *x, "w", UMADV_PARAM);
	for (unsigned i = 0; i < N && !err; i += 97) {
		x[i] = 1 + (float)(i % 11);
		for (int k = 0; k < BUFS; k++)
			w[k][i] = (float)((i + (unsigned)k) % 5) / 8;
	}
	for (int it = 0; it < CHANGING + ALIKE && !err; it++) {
		int changes = it < CHANGING, layers = changes && it % 7 == 3 ? BUFS - 4 : BUFS;
		int updates = changes && it % 11 == 5 ? layers / 2 : layers;

		err = umadv_iter(adv, NULL);
		for (int k = 0; k < layers && !err; k++) {
			size_t extra = changes && it % 13 == 7 ? 4096 : 0;

			err = umadv_alloc(adv, (void **)&y[k], N * sizeof *x + extra, "y", UMADV_ACT);
			if (!err)
				err = umadv_op(adv, NULL, "layer",
					       UMADV_USES(UMADV_READ(k ? y[k - 1] : x), UMADV_READ(w[k]),
							  UMADV_WRITE_RANGE(y[k], N * sizeof *x)));
			steps[it][k] = (struct step){k ? y[k - 1] : x, y[k], w[k]};
			if (!err)
				err = umadv_sim_run(adv, NULL, layer, &steps[it][k]);
		}
		for (int k = layers; k-- > 0 && !err;) {
			if (k < updates) {
				err = umadv_op(adv, NULL, "update", UMADV_USES(UMADV_READ(y[k]), UMADV_UPDATE(w[k])));
				steps[it][BUFS + k] = (struct step){x, y[k], w[k]};
				if (!err)
					err = umadv_sim_run(adv, NULL, update, &steps[it][BUFS + k]);
			}
			if (!err)
				err = umadv_free(adv, y[k]);
		}
	}
	if (!err)
		err = umadv_sim_sync(adv);
	r->sum = 0;
	for (int k = 0; k < BUFS && !err; k++)
		for (unsigned i = 0; i < N; i += 97)
			r->sum += w[k][i];
	r->stats.struct_size = sizeof r->stats;
	return err ? err : umadv_stats_get(adv, &r->stats);
}

static void irregular(void)
{
	struct result plain, hinted;
	struct umadv *adv = open_sim(60 * MIB, "on-demand", NULL);
	int err = run_changing(adv, &plain);

	umadv_close(adv);
	ok(err == 0, "iterations that are not alike");
	adv = open_sim(60 * MIB, NULL, NULL);
	err = run_changing(adv, &hinted);
	umadv_close(adv);
	ok(err == 0 && hinted.sum == plain.sum, "hints give the same results (%g, %g)", hinted.sum, plain.sum);
	ok(hinted.stats.divergences > 2, "though the schedule is left (%llu times)",
	   (unsigned long long)hinted.stats.divergences);
	ok(hinted.stats.hints_predicted && hinted.stats.prefetch_predicted_bytes, "predicted ops cause hints (%llu)",
	   (unsigned long long)hinted.stats.hints_predicted);
	is_u64(hinted.stats.hints_scheduled + hinted.stats.hints_predicted + hinted.stats.hints_announced,
	       hinted.stats.hints_issued, "each hint has one source");
	is_u64(hinted.stats.prefetch_scheduled_bytes + hinted.stats.prefetch_predicted_bytes +
		       hinted.stats.prefetch_announced_bytes,
	       hinted.stats.prefetch_bytes, "and so has each prefetched byte");
	ok(hinted.stats.hinted_iterations > 2 * ALIKE / 3 && hinted.stats.discard_bytes > 0,
	   "a plan is followed between departures, and soon after them (%llu of %d iterations)",
	   (unsigned long long)hinted.stats.hinted_iterations, CHANGING + ALIKE);
}

enum promise { NOTHING, NONE, TRANSIENT, DEAD }; /* nothing: not even that all of a buffer is written */

/* Scratch buffers that are written, read by the next op, and not needed after it, in room for half of them. */
static int scratch(enum promise promise, struct result *r)
{
	static struct step steps[64][2 * BUFS];
	struct umadv *adv = open_sim(32 * MIB, NULL, NULL);
	float *buf[BUFS], *sum;
	int err = umadv_alloc(adv, (void **)&sum, N * sizeof *sum, "sum", UMADV_PARAM);

	for (int k = 0; k < BUFS && !err; k++) {
		err = umadv_alloc(adv, (void **)&buf[k], N * sizeof *sum, "scratch", UMADV_WORKSPACE);
		if (!err && promise == TRANSIENT)
			err = umadv_transient(adv, buf[k]);
	}
	for (unsigned i = 0; i < N && !err; i += 97)
		sum[i] = (float)(i % 5);
	for (int it = 0; it < 14 && !err; it++) {
		err = umadv_iter(adv, NULL);
		for (int k = 0; k < BUFS && !err; k++) {
			float *in = k ? buf[k - 1] : sum;

			err = umadv_op(adv, NULL, "fill",
				       UMADV_USES(UMADV_READ(in), UMADV_READ(sum),
						  promise ? UMADV_WRITE(buf[k]) : UMADV_UPDATE(buf[k])));
			steps[it][k] = (struct step){in, buf[k], sum};
			if (!err)
				err = umadv_sim_run(adv, NULL, layer, &steps[it][k]);
			if (!err && promise == DEAD && k)
				err = umadv_dead(adv, buf[k - 1]);
		}
		if (!err)
			err = umadv_op(adv, NULL, "fold", UMADV_USES(UMADV_READ(buf[BUFS - 1]), UMADV_UPDATE(sum)));
		steps[it][BUFS] = (struct step){sum, buf[BUFS - 1], sum};
		if (!err)
			err = umadv_sim_run(adv, NULL, update, &steps[it][BUFS]);
		if (!err && promise == DEAD)
			err = umadv_dead(adv, buf[BUFS - 1]);
	}
	if (!err)
		err = umadv_sim_sync(adv);
	r->sum = 0;
	for (unsigned i = 0; i < N && !err; i += 97)
		r->sum += sum[i];
	r->stats.struct_size = sizeof r->stats;
	if (!err)
		err = umadv_stats_get(adv, &r->stats);
	umadv_close(adv);
	return err;
}

struct batch {
	unsigned char *at, value;
	unsigned wrong;
};

static void batch_fill(void *arg)
{
	struct batch *b = arg;

	memset(b->at, b->value, 8 * MIB);
}

static void batch_compare(void *arg)
{
	struct batch *b = arg;

	for (unsigned i = 0; i < 8 * MIB; i += 4096)
		b->wrong += b->at[i] != b->value;
}

/* One op on 8 MiB. The next free element of `b` is its kernel's argument. */
static int batch_op(struct umadv *adv, struct batch **b, void *at, unsigned char value, int write)
{
	int err = umadv_op(adv, NULL, write ? "fill" : "compare", UMADV_USES(write ? UMADV_WRITE(at) : UMADV_READ(at)));

	**b = (struct batch){at, value, 0};
	return err ? err : umadv_sim_run(adv, NULL, write ? batch_fill : batch_compare, (*b)++);
}

/* A temporary is freed and its memory discarded. In the last iterations the CPU fills an input in its place. No hint is
 * given for what follows: the input arrives by faults, and the weights evict it between its uses. */
static int input_of_the_cpu(struct umadv *adv, struct batch *b)
{
	unsigned char *w[4], *temporary, *input;
	int err = 0;

	for (int k = 0; k < 4 && !err; k++)
		err = umadv_alloc(adv, (void **)&w[k], 8 * MIB, "weight", UMADV_PARAM);
	for (int it = 0; it < 12 && !err; it++) {
		err = umadv_iter(adv, NULL);
		if (!err)
			err = umadv_alloc(adv, (void **)&temporary, 8 * MIB, "temporary", UMADV_ACT);
		if (!err)
			err = batch_op(adv, &b, temporary, 1, 1);
		if (!err)
			err = umadv_free(adv, temporary);
		for (int k = 0; k < 4 && !err; k++)
			err = batch_op(adv, &b, w[k], 1, 1);
		if (it < 9 || err)
			continue;
		err = umadv_alloc(adv, (void **)&input, 8 * MIB, "input", UMADV_INPUT);
		if (!err)
			err = umadv_sim_sync(adv);
		if (!err)
			memset(input, 40 + it, 8 * MIB);
		for (int k = 0; k < 4 && !err; k++) {
			err = batch_op(adv, &b, input, (unsigned char)(40 + it), 0);
			if (!err)
				err = batch_op(adv, &b, w[k], 1, 1);
		}
		if (!err)
			err = umadv_free(adv, input);
	}
	return err ? err : umadv_sim_sync(adv);
}

static void written_by_the_cpu(void)
{
	static struct batch b[256];
	struct umadv *adv = open_sim(24 * MIB, NULL, NULL);
	struct umadv_stats s = {.struct_size = sizeof s};
	unsigned wrong = 0;
	int err = input_of_the_cpu(adv, b);

	umadv_stats_get(adv, &s);
	umadv_close(adv);
	for (unsigned i = 0; i < 256; i++)
		wrong += b[i].wrong;
	ok(!err && s.discard_bytes > 0, "a program discards memory that the CPU writes later");
	is_u64(wrong, 0, "the check poisons nothing that the CPU wrote after the discard");
}

static void promises(void)
{
	struct result nothing, none, transient, dead;
	int err = scratch(NOTHING, &nothing);

	ok(!err && nothing.stats.hinted_iterations > 8, "a program with scratch and no promise runs");
	is_u64(nothing.stats.discard_bytes, 0, "scratch without a promise is never discarded");
	ok(nothing.stats.evict_bytes > 0, "memory without a promise is copied to the host");
	err = scratch(NONE, &none);
	ok(!err && none.sum == nothing.sum,
	   "scratch that is overwritten as a whole: the same results, poisoned as it is");
	ok(none.stats.discard_bytes > 0 && none.stats.evict_bytes > none.stats.discard_bytes,
	   "scratch is copied to the host and discarded there (%llu copied, %llu discarded)",
	   (unsigned long long)none.stats.evict_bytes, (unsigned long long)none.stats.discard_bytes);
	err = scratch(TRANSIENT, &transient);
	ok(!err && transient.sum == none.sum, "transient scratch gives the same results");
	ok(transient.stats.evict_bytes + transient.stats.discard_bytes > 0 &&
		   transient.stats.evict_bytes <= none.stats.evict_bytes,
	   "transient memory is not copied more often (%llu discarded, %llu copied)",
	   (unsigned long long)transient.stats.discard_bytes, (unsigned long long)transient.stats.evict_bytes);
	err = scratch(DEAD, &dead);
	ok(!err && dead.sum == none.sum, "scratch declared dead: the same results, poisoned as it is");
	ok(dead.stats.discard_bytes > 0 && dead.stats.evict_bytes < none.stats.evict_bytes,
	   "dead scratch is discarded instead of copied (%llu discarded, %llu copied of %llu)",
	   (unsigned long long)dead.stats.discard_bytes, (unsigned long long)dead.stats.evict_bytes,
	   (unsigned long long)none.stats.evict_bytes);
}

/* What a resident op takes, by the simulated clock: its time, and that of the calls around it. */
static uint64_t op_time(struct umadv *adv, void *p, double bytes)
{
	const struct umadv_use use[] = {UMADV_UPDATE(p)};
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = use, .n_uses = 1, .bytes = bytes};
	uint64_t begin = umadv_sim_now(adv);

	if (umadv_op_ex(adv, NULL, "op", &info) || umadv_sim_run(adv, NULL, NULL, NULL) || umadv_sim_sync(adv))
		tap_bail("cannot run");
	return umadv_sim_now(adv) - begin;
}

static void op_without_a_cost(void)
{
	struct umadv *adv = open_sim(128 * MIB, "on-demand", NULL);
	uint64_t with_cost, without_cost;
	void *p;

	if (umadv_alloc(adv, &p, 64 * MIB, "p", UMADV_OTHER))
		tap_bail("cannot allocate");
	op_time(adv, p, 0);
	with_cost = op_time(adv, p, 64 * MIB);
	without_cost = op_time(adv, p, 0);
	ok(without_cost > 64000, "an op without a cost takes time (%llu ns)", (unsigned long long)without_cost);
	is_u64(without_cost, with_cost,
	       "an op without a cost takes as long as one that moves each byte of its uses once");
	umadv_close(adv);
}

static void arguments(void)
{
	struct umadv_options o;
	struct umadv_stats s = {.struct_size = sizeof s};
	struct umadv_caps c = {.struct_size = sizeof c};
	struct umadv *adv = NULL, *none = NULL;
	char *p, *q;

	is_int(umadv_open(NULL, NULL), -EINVAL, "a missing pointer for the context is refused");
	umadv_options_init(&o);
	o.log = on_log;
	o.strategy = "belady";
	is_int(umadv_open(&adv, &o), -EINVAL, "an unknown strategy is refused");
	ok(strstr(last_log, "belady") && strstr(last_log, "lookahead"),
	   "the message names the unknown strategy and the known ones: %s", last_log);
	o.strategy = "vdnn";
	is_int(umadv_open(&adv, &o), -EINVAL, "a strategy that is only compared with");
	ok(strstr(last_log, "'vdnn'") && strstr(last_log, "umadvise simulate only"), "is refused: %s", last_log);
	o.strategy = NULL;
	o.nvtx = (enum umadv_nvtx)3;
	is_int(umadv_open(&adv, &o), -EINVAL, "marks of no such kind");
	ok(strstr(last_log, "UMADV_NVTX_ALL"), "are refused: %s", last_log);
	o.nvtx = UMADV_NVTX_ALL;
	setenv("UMADVISE_NVTX", "iterations", 1);
	umadv_options_init(&o);
	is_int(o.nvtx, UMADV_NVTX_ITERATIONS, "UMADVISE_NVTX sets the option");
	unsetenv("UMADVISE_NVTX");
	umadv_options_init(&o);
	is_int(o.nvtx, UMADV_NVTX_ALL, "without the variable all marks are on");
	is_int(o.evict, UMADV_EVICT_AUTO, "the default eviction policy is auto");
	o.log = on_log;
	o.evict = (enum umadv_evict)3;
	is_int(umadv_open(&adv, &o), -EINVAL, "an unknown eviction policy is refused");
	ok(strstr(last_log, "UMADV_EVICT_AUTO"), "the message names the option: %s", last_log);
	setenv("UMADVISE_EVICT", "driver", 1);
	umadv_options_init(&o);
	is_int(o.evict, UMADV_EVICT_DRIVER, "UMADVISE_EVICT sets the option");
	unsetenv("UMADVISE_EVICT");
	umadv_options_init(&o);
	is_int(o.counters, 0, "counters are off by default");
	setenv("UMADVISE_COUNTERS", "on", 1);
	umadv_options_init(&o);
	is_int(o.counters, 1, "UMADVISE_COUNTERS sets the option");
	unsetenv("UMADVISE_COUNTERS");
	o.log = on_log;
	o.device = UMADV_DEVICE_SIM;
	o.profile = "nonesuch";
	ok(umadv_open(&adv, &o) < 0, "an unknown profile is refused");
	o.profile = NULL;
	o.struct_size = 1;
	is_int(umadv_open(&adv, &o), -EINVAL, "options that were not initialised");
	ok(adv == NULL, "outputs are set only on success");
	umadv_close(NULL);

	adv = open_sim(64 * MIB, NULL, NULL);
	is_int(umadv_alloc(adv, (void **)&p, 0, "p", UMADV_OTHER), -EINVAL, "an allocation of no bytes is refused");
	is_int(umadv_alloc(adv, (void **)&p, 4096, "p", (enum umadv_role)99), -EINVAL, "an unknown role is refused");
	ok(umadv_alloc(adv, (void **)&p, 100000, "p", UMADV_OTHER) == 0 && (uintptr_t)p % 512 == 0,
	   "memory is 512-byte aligned");
	ok(umadv_alloc(adv, (void **)&q, 100000, NULL, UMADV_COMM) == 0, "role comm, no name");
	is_int(umadv_free(adv, p + 512), -EINVAL, "free of an inner address");
	is_int(umadv_adopt(adv, p + 99000, 2000, "x", UMADV_OTHER), -EEXIST, "adoption that overlaps in part");
	ok(umadv_adopt(adv, p + 1000, 2000, "x", UMADV_OTHER) == 0, "a part of a tensor is a tensor");
	is_int(umadv_free(adv, p), -EINVAL, "memory with an adopted range is not freed");
	is_int(umadv_disown(adv, p + 1000, 1999), -EINVAL, "a range is disowned only as it was adopted");
	ok(umadv_disown(adv, p + 1000, 2000) == 0 && umadv_free(adv, p) == 0,
	   "memory is freed after its adopted range");
	is_int(umadv_free(adv, p), -EINVAL, "freeing memory twice is refused");
	ok(umadv_free(adv, NULL) == 0 && umadv_free(adv, q) == 0, "NULL is nothing to free");

	ok(umadv_alloc(adv, (void **)&p, 4096, "p", UMADV_OTHER) == 0 && umadv_iter(adv, "train") == 0,
	   "an iteration begins");
	is_int(umadv_op(adv, NULL, "op", NULL, 1), -EINVAL, "uses that are not there");
	is_int(umadv_op(adv, NULL, "op", UMADV_USES(UMADV_READ_RANGE(p, 4097))), -EINVAL,
	       "a range past the tensor's end");
	n_logs = 0;
	ok(umadv_op(adv, NULL, "op", UMADV_USES(UMADV_READ(&o), UMADV_READ(p))) == 0, "an unknown pointer is ignored");
	ok(umadv_op(adv, NULL, "op", UMADV_USES(UMADV_READ(&o))) == 0, "an op with unknown memory succeeds again");
	is_int(n_logs, 1, "unknown memory is logged once");
	ok(umadv_op(adv, NULL, NULL, NULL, 0) == 0, "an op without a name or uses");
	ok(umadv_stats_get(adv, &s) == 0, "statistics are read");
	is_u64(s.unknown_pointers, 2, "count unknown pointers");
	is_u64(s.ops, 3, "ops are counted");
	is_u64(s.tensors_live, 1, "live tensors are counted");
	is_u64(s.bytes_live_peak, 200000, "the peak of live bytes is counted");
	s.struct_size = 0;
	is_int(umadv_stats_get(adv, &s), -EINVAL, "statistics of size 0 are refused");
	ok(umadv_caps_get(adv, &c) == 0 && c.simulated && c.managed && c.capacity == 64 * MIB, "capabilities are read");
	is_int(umadv_transient(adv, p + 1), -EINVAL, "transient: a tensor's start");
	is_int(umadv_dead(adv, &o), -EINVAL, "dead: a tensor's start");
	is_int(umadv_load_plan(adv, "/nonexistent/plan"), -ENOENT, "a plan that is not there");
	umadv_close(adv);

	umadv_options_init(&o);
	o.log = on_log;
	o.device = UMADV_DEVICE_NONE;
	ok(umadv_open(&none, &o) == 0, "a context without a device opens");
	ok(umadv_alloc(none, (void **)&p, 1000, "p", UMADV_OTHER) == 0, "allocates host memory");
	memset(p, 1, 1000);
	ok(umadv_iter(none, NULL) == 0 && umadv_op(none, NULL, "op", UMADV_USES(UMADV_UPDATE(p))) == 0,
	   "a context without a device accepts announcements");
	is_int(umadv_sim_run(none, NULL, NULL, NULL), -ENODEV, "a context without a device simulates nothing");
	ok(umadv_caps_get(none, &c) == 0 && !c.managed && *c.why, "a context without a device says why: %s", c.why);
	umadv_close(none);
	is_str(umadv_strerror(-ENOMEM), "out of memory", "errors have texts");
	is_str(umadv_version(), "0.1.0", "the version is 0.1.0");
}

/* Less than a block: a line, and plain managed memory. */
static void tiny_budget(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	struct umadv *adv;
	float *p;
	int err = 0;

	*last_log = '\0';
	adv = open_sim(1, "lookahead", NULL);
	ok(adv != NULL, "a context with a budget below one block opens");
	ok(strstr(last_log, "budget of 1 bytes is less than one block") != NULL, "the log says so: %s", last_log);
	if (!adv)
		return;
	err = umadv_alloc(adv, (void **)&p, 1000, "p", UMADV_OTHER);
	for (int i = 0; i < 6 && !err; i++) {
		err = umadv_iter(adv, NULL);
		err = err ? err : umadv_op(adv, NULL, "op", UMADV_USES(UMADV_UPDATE(p)));
		err = err ? err : umadv_sim_run(adv, NULL, NULL, NULL);
	}
	is_int(err, 0, "the program runs with a budget below one block");
	umadv_stats_get(adv, &s);
	is_u64(s.hints_issued, 0, "a budget below one block has no hints");
	umadv_close(adv);
}

int main(void)
{
	results();
	irregular();
	promises();
	written_by_the_cpu();
	op_without_a_cost();
	arguments();
	tiny_budget();
	return tap_done();
}
