/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that change from iteration to iteration, and the iterations before a plan is followed: lookahead is not
 * slower there than prefetch-on-use or the driver alone. Kinds of iterations that take turns are planned as one.
 */
#include "umadvise.h"

#include "io/umtrace.h"
#include "play/player.h"
#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#include <stdlib.h>

#define ITERATIONS 24

struct sums {
	double cold, rest; /* ns of the first two iterations, and of all others */
};

static struct sums played(const struct um_trace *t, struct um_play_options *o, enum um_play_strategy strategy)
{
	struct um_play_result r;
	struct sums s = {0};

	o->strategy = strategy;
	if (um_play(t, o, &r))
		tap_bail("cannot play");
	for (size_t i = 0; i < r.iterations.n; i++)
		*(i < 2 ? &s.cold : &s.rest) += (double)r.iterations.at[i].ns;
	um_play_result_fini(&r);
	return s;
}

static void never_behind(const char *name, const char *profile, double ratio, double cold)
{
	struct um_play_options o = {.profile = um_profile_find(profile), .iterations = ITERATIONS};
	const char *top = getenv("top_srcdir");
	struct sums driver, on_use, lookahead;
	struct um_diag diag;
	struct um_trace *t;
	char path[512];

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", name);
	um_diag_init(&diag, path);
	if (um_trace_load(&t, path, &diag))
		tap_bail("no trace");
	o.budget = (uint64_t)((double)um_trace_peak_bytes(t) / ratio) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	driver = played(t, &o, UM_PLAY_ON_DEMAND);
	on_use = played(t, &o, UM_PLAY_PREFETCH_ON_USE);
	lookahead = played(t, &o, UM_PLAY_LOOKAHEAD);
	ok(lookahead.cold <= cold * on_use.cold,
	   "%s, %s, %.1fx: the first two iterations take at most %.2f times prefetch-on-use (%.3f)", name, profile,
	   ratio, cold, lookahead.cold / on_use.cold);
	ok(lookahead.rest <= 1.02 * (driver.rest < on_use.rest ? driver.rest : on_use.rest),
	   "%s, %s, %.1fx: the others are no slower than on-demand or prefetch-on-use (%.3f, %.3f)", name, profile,
	   ratio, lookahead.rest / driver.rest, lookahead.rest / on_use.rest);
	um_trace_free(t);
}

/* --- kinds of iterations that take turns ------------------------------------------------------------------------- */

#define MIB (1ull << 20)
#define TENSORS 24
#define PAIRS 24
#define SETTLED 12 /* pairs after which the period is known */

struct app {
	struct umadv *adv;
	struct um_gpu *gpu;
	void *w[TENSORS];
	int err;
};

/* A program on a v100 with memory of so many bytes; its tensors have 8 MiB each. */
static void app_open(struct app *a, uint64_t capacity)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = capacity};
	struct umadv_options o;

	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = capacity;
	a->err = um_sim_open(&a->gpu, &so);
	if (!a->err)
		a->err = um_context_open(&a->adv, &o, a->gpu, v100);
	for (int i = 0; i < TENSORS && !a->err; i++)
		a->err = umadv_alloc(a->adv, &a->w[i], 8 * MIB, "w", UMADV_PARAM);
	if (a->err)
		tap_bail("no context");
}

static void op(struct app *a, unsigned i)
{
	a->err |= umadv_op(a->adv, NULL, "op", UMADV_USES(UMADV_UPDATE(a->w[i])));
	a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
}

/* A pair of iterations: all tensors in order, then every third one backwards. */
static void pair(struct app *a, int marks_each, int odd)
{
	a->err |= umadv_iter(a->adv, NULL);
	for (unsigned i = 0; i < TENSORS; i++)
		op(a, i);
	if (odd)
		op(a, 0);
	if (marks_each)
		a->err |= umadv_iter(a->adv, NULL);
	for (unsigned i = TENSORS; i-- > 0;)
		if (i % 3 == 0)
			op(a, i);
}

/* Simulated time of the pairs after the first ones, ns. `odd`: a pair that is not like the others, 0: none. */
static double pairs_take(int marks_each, unsigned odd, struct umadv_stats *stats)
{
	struct app a = {0};
	uint64_t begin = 0, end;

	app_open(&a, TENSORS * 8 * MIB / 2);
	for (unsigned i = 0; i < PAIRS; i++) {
		if (i == SETTLED) {
			a.err |= um_sim_sync(a.gpu);
			begin = a.gpu->api->now(a.gpu);
		}
		pair(&a, marks_each, odd && i == odd);
	}
	a.err |= um_sim_sync(a.gpu);
	end = a.gpu->api->now(a.gpu);
	*stats = (struct umadv_stats){.struct_size = sizeof *stats};
	umadv_stats_get(a.adv, stats);
	umadv_close(a.adv);
	is_int(a.err, 0, "%s: the program runs", marks_each ? "both kinds are marked" : "pairs are marked");
	return (double)(end - begin);
}

static void take_turns(void)
{
	struct umadv_stats whole, each;
	double pairs = pairs_take(0, 0, &whole), kinds = pairs_take(1, 0, &each);

	ok(kinds <= 1.02 * pairs, "two kinds of iterations that take turns are planned as one (%.3f)", kinds / pairs);
	is_u64(each.iterations, 2ull * PAIRS, "each mark counts as an iteration");
	ok(each.plan_ns * 2 <= whole.plan_ns + whole.plan_ns / 50 && each.plan_ns * 2 >= whole.plan_ns * 49 / 50,
	   "the planned time is that of one marked iteration");
	kinds = pairs_take(1, SETTLED - 4, &each);
	ok(kinds <= 1.02 * pairs, "one odd iteration does not end that (%.3f)", kinds / pairs);
}

/* --- every tenth iteration is odd -------------------------------------------------------------------------------- */

#define EVERY 10
#define ODD_ITERATIONS 28
#define LEFT_BYTES (4 * MIB - 65536) /* successors are at other offsets in their blocks */

/* Reads all weights in turn; what an iteration leaves behind is freed in the next one. An odd one reads them again. */
static void train(struct app *a, void **left, int odd)
{
	a->err |= umadv_iter(a->adv, NULL);
	for (unsigned i = 0; i < TENSORS; i++) {
		void *now = NULL;

		a->err |= umadv_alloc(a->adv, &now, LEFT_BYTES, "act", UMADV_ACT);
		a->err |= umadv_op(a->adv, NULL, "forward", UMADV_USES(UMADV_READ(a->w[i]), UMADV_WRITE(now)));
		a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
		if (left[i])
			a->err |= umadv_free(a->adv, left[i]);
		left[i] = now;
	}
	for (unsigned i = 0; i < TENSORS && odd; i++) {
		a->err |= umadv_op(a->adv, NULL, "moments", UMADV_USES(UMADV_READ(a->w[i])));
		a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
	}
}

static uint64_t plans_so_far(struct app *a, uint64_t *hinted)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};

	umadv_stats_get(a->adv, &stats);
	*hinted = stats.hinted_iterations;
	return stats.plans;
}

/* The latest measured iteration of the plan, ns. */
static uint64_t played_ns(struct app *a)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};

	a->err |= um_sim_sync(a->gpu);
	umadv_stats_get(a->adv, &stats);
	return stats.played_ns;
}

static void odd_ones(void)
{
	uint64_t played = 0, most = 0, ns;
	struct app a = {0};
	void *left[TENSORS] = {0};
	uint64_t first = 0, second = 0, hinted = 0, hinted_first = 0, ignored;

	app_open(&a, TENSORS * 12 * MIB / 2);
	for (unsigned i = 0; i < ODD_ITERATIONS; i++) {
		train(&a, left, i % EVERY == EVERY - 1);
		ns = i >= EVERY / 2 ? played_ns(&a) : 0; /* earlier, so that none of these waits for those before */
		if (i == EVERY - 2)
			first = plans_so_far(&a, &hinted_first), played = ns;
		most = i >= EVERY - 2 && ns > most ? ns : most;
		if (i == 2 * EVERY - 2)
			second = plans_so_far(&a, &ignored);
	}
	a.err |= um_sim_sync(a.gpu);
	plans_so_far(&a, &hinted);
	umadv_close(a.adv);
	is_int(a.err, 0, "the program with odd iterations runs");
	is_u64(first, 1, "one plan suffices, though tensors are passed on at addresses of the first iteration");
	is_u64(second - first, 1, "the plan begins anew once after an odd iteration");
	/* These two take more than twice as long, the second one after it 1.2 times. */
	ok(played && most < played + played / 2,
	   "an iteration that left its plan, or is the first one after that, is not measured as one of it (%.2f)",
	   (double)most / (double)played);
	is_u64(hinted - hinted_first, ODD_ITERATIONS - EVERY + 1, "no iteration after it is without hints");
}

/* --- a kind that seldom repeats ------------------------------------------------------------------------------- */

/* A letter for each iteration: between the a are others, each of its own, and at the end there are only a. */
static const char kinds[] = "aaaaabacadaefaghaiajakalmanaoaapaqarastauavawaxaaaaaaaaaaaaaaaa";
#define MIXED 48

/* Reads all tensors in turn, in ops of the kind's name, but for the first ones. */
static void visit(struct app *a, char kind, unsigned alike)
{
	const char name[] = {kind, 0};

	a->err |= umadv_iter(a->adv, NULL);
	for (unsigned i = 0; i < TENSORS; i++) {
		a->err |= umadv_op(a->adv, NULL, i < alike ? "op" : name, UMADV_USES(UMADV_UPDATE(a->w[i])));
		a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
	}
}

static void seldom_repeats(void)
{
	struct app a = {0};
	uint64_t mixed = 0, all, hinted = 0, ignored;

	app_open(&a, TENSORS * 8 * MIB / 2);
	for (unsigned i = 0; kinds[i]; i++) {
		if (i == MIXED)
			mixed = plans_so_far(&a, &ignored);
		visit(&a, kinds[i], 0);
	}
	a.err |= um_sim_sync(a.gpu);
	all = plans_so_far(&a, &hinted);
	umadv_close(a.adv);
	is_int(a.err, 0, "the program with a kind that seldom repeats runs");
	ok(mixed <= 6, "a plan that is soon left does not begin each time (%llu)", (unsigned long long)mixed);
	ok(all > mixed, "it begins again when its kind repeats (%llu)", (unsigned long long)all);
}

/* One kind occurs twice in a row between others, and all of them begin alike. */
static const char pairs[] = "aacbaabcaadaacdaacaabaacdaabcbaacbaacdaadbaabcaacbaabcaadbaa"
			    "aaaaaaaaaaaaaaaaaaaaaaaa";
#define PAIRED 60

static void two_in_a_row(void)
{
	struct app a = {0};
	uint64_t mixed = 0, all, hinted = 0, ignored;

	app_open(&a, TENSORS * 8 * MIB / 2);
	for (unsigned i = 0; pairs[i]; i++) {
		if (i == PAIRED)
			mixed = plans_so_far(&a, &ignored);
		visit(&a, pairs[i], TENSORS / 2);
	}
	a.err |= um_sim_sync(a.gpu);
	all = plans_so_far(&a, &hinted);
	umadv_close(a.adv);
	is_int(a.err, 0, "the program with kinds that begin alike and occur twice in a row runs");
	ok(mixed <= 3, "plans that were left as they had begun do not begin for two iterations in a row (%llu)",
	   (unsigned long long)mixed);
	ok(all > mixed, "one begins after more (%llu)", (unsigned long long)all);
}

/* --- sizes that grow ---------------------------------------------------------------------------------------------- */

/* Bears all tensors anew, each of `bytes`, uses them forwards and backwards, and frees them. Were places claimed for
 * them? */
static int layers(struct app *a, uint64_t bytes)
{
	void *act[TENSORS];
	int claims;

	a->err |= umadv_iter(a->adv, NULL);
	claims = um_planned_places_claimed(&a->adv->tensors.pool.planned);
	for (unsigned i = 0; i < TENSORS; i++) {
		a->err |= umadv_alloc(a->adv, &act[i], bytes, "act", UMADV_ACT);
		a->err |= umadv_op(a->adv, NULL, "forward", UMADV_USES(UMADV_READ(a->w[i]), UMADV_WRITE(act[i])));
		a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
	}
	for (unsigned i = TENSORS; i-- > 0;) {
		a->err |= umadv_op(a->adv, NULL, "backward", UMADV_USES(UMADV_UPDATE(a->w[i]), UMADV_READ(act[i])));
		a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
		a->err |= umadv_free(a->adv, act[i]);
	}
	return claims;
}

static void growing(void)
{
	struct app a = {0};
	int claims = 0;

	app_open(&a, TENSORS * 10 * MIB);
	for (unsigned i = 0; i < 6; i++)
		claims |= layers(&a, 4 * MIB + i * MIB / 8);
	ok(!claims, "no places are claimed for tensors that grow, since no iteration fits the plan of another");
	for (unsigned i = 0; i < 6; i++)
		claims = layers(&a, 4 * MIB);
	ok(claims, "they are claimed when tensors have stopped growing");
	umadv_close(a.adv);
	is_int(a.err, 0, "the program with tensors that grow runs");
}

int main(void)
{
	/* A plan that is taken up evicts what it does not begin with: small programs feel it in iteration 2. */
	static const struct {
		const char *name;
		double cold;
	} traces[] = {{"transformer_varlen", 1.05}, {"alexnet_b200", 1.05}, {"resnet50", 1.05},
		      {"cg_laplace3d", 1.3},	    {"dlrm", 1.1},	    {"stencil_slabs", 1.25}};
	static const char *const profiles[] = {"v100", "h100"};

	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++)
		for (size_t k = 0; k < sizeof profiles / sizeof *profiles; k++) {
			never_behind(traces[i].name, profiles[k], 0.9, 1.5);
			never_behind(traces[i].name, profiles[k], 1.5, traces[i].cold);
			never_behind(traces[i].name, profiles[k], 2, traces[i].cold);
		}
	take_turns();
	odd_ones();
	seldom_repeats();
	two_in_a_row();
	growing();
	return tap_done();
}
