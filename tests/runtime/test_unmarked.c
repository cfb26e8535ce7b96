/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that mark no iterations: they are found, planned and hinted; nothing is found where nothing repeats, and
 * a program that marks is left alone.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "fixture/random.h"
#include "tap.h"

#define MIB (1ull << 20)
#define TENSORS 24
#define STEPS 24

struct app {
	struct umadv *adv;
	struct um_gpu *gpu;
	void *w[TENSORS];
	int err;
};

static void open_app(struct app *a)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = TENSORS * 8 * MIB / 2, .backed = 1, .poison = 1};
	struct umadv_options o;

	memset(a, 0, sizeof *a);
	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = so.capacity;
	a->err = um_sim_open(&a->gpu, &so);
	if (!a->err)
		a->err = um_context_open(&a->adv, &o, a->gpu, v100);
	for (int i = 0; i < TENSORS && !a->err; i++)
		a->err = umadv_alloc(a->adv, &a->w[i], 8 * MIB, "w", UMADV_PARAM);
	if (a->err)
		tap_bail("no context");
}

static struct umadv_stats stats_of(struct app *a)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	a->err |= umadv_stats_get(a->adv, &s);
	return s;
}

static void op(struct app *a, unsigned i)
{
	a->err |= umadv_op(a->adv, NULL, "op", UMADV_USES(UMADV_UPDATE(a->w[i])));
	a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
}

struct word {
	uint64_t *at, want, wrong;
};

static void put_word(void *arg)
{
	struct word *w = arg;

	*w->at = ++w->want;
}

static void look_at_word(void *arg)
{
	struct word *w = arg;

	w->wrong += *w->at != w->want;
}

static void run(struct app *a, void (*fn)(void *), struct word *w)
{
	a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000, .fn = fn, .arg = w});
}

/* Of two tensors one holds something at any time. The program begins its iterations before `small` is written, and
 * promises that this comes first. Less has to be kept while `small` holds something: iterations are found there. */
static void promises(void)
{
	struct word small = {0}, large = {0};
	struct umadv_stats s;
	struct app a;

	open_app(&a);
	a.err |= umadv_alloc(a.adv, (void **)&small.at, 16 * MIB, "small", UMADV_ACT);
	a.err |= umadv_alloc(a.adv, (void **)&large.at, 32 * MIB, "large", UMADV_ACT);
	a.err |= umadv_transient(a.adv, small.at);
	for (int i = 0; i < 12; i++) {
		a.err |= umadv_op(a.adv, NULL, "put", UMADV_USES(UMADV_WRITE(small.at)));
		run(&a, put_word, &small);
		a.err |= umadv_op(a.adv, NULL, "look", UMADV_USES(UMADV_READ(large.at)));
		run(&a, i ? look_at_word : NULL, &large);
		for (unsigned k = 0; k < TENSORS; k++)
			op(&a, k);
		a.err |= umadv_op(a.adv, NULL, "put large", UMADV_USES(UMADV_WRITE(large.at)));
		run(&a, put_word, &large);
		a.err |= umadv_op(a.adv, NULL, "look at small", UMADV_USES(UMADV_READ(small.at)));
		run(&a, look_at_word, &small);
		for (unsigned k = 0; k < TENSORS; k++)
			op(&a, k);
	}
	a.err |= um_sim_sync(a.gpu);
	s = stats_of(&a);
	ok(!a.err && s.hinted_iterations > 4, "iterations are found and hinted");
	is_u64(small.wrong + large.wrong, 0, "a promise about the program's iterations is not used for others");
	umadv_close(a.adv);
}

/* A step has an activation of its own, and goes through all weights there and back. */
static void step(struct app *a, int marked)
{
	void *act;

	if (marked)
		a->err |= umadv_iter(a->adv, NULL);
	a->err |= umadv_alloc(a->adv, &act, 4 * MIB, "act", UMADV_ACT);
	for (unsigned i = 0; i < TENSORS; i++)
		op(a, i);
	a->err |= umadv_op(a->adv, NULL, "loss", UMADV_USES(UMADV_WRITE(act)));
	for (unsigned i = TENSORS; i-- > 0;)
		op(a, i);
	a->err |= umadv_op(a->adv, NULL, "update", UMADV_USES(UMADV_READ(act), UMADV_UPDATE(a->w[0])));
	a->err |= umadv_free(a->adv, act);
}

static uint64_t now(struct app *a)
{
	a->err |= um_sim_sync(a->gpu);
	return a->gpu->api->now(a->gpu);
}

/* Set-up makes tensors; the first step begins with the program's first op. */
static void found_at_once(void)
{
	struct umadv_stats s;
	struct app a;

	open_app(&a);
	step(&a, 0);
	step(&a, 0);
	is_u64(stats_of(&a).plans, 0, "no plan is followed in the first two steps");
	step(&a, 0);
	s = stats_of(&a);
	is_u64(s.plans, 1, "if the program begins with a step, the third one follows a plan");
	is_u64(s.divergences, 0, "it is not left");
	is_int(a.err, 0, "no call fails");
	umadv_close(a.adv);
}

/* Simulated time of the second half of the steps, ns. */
static double steps_take(int marked, struct umadv_stats *stats)
{
	struct app a;
	uint64_t begin = 0, end;

	open_app(&a);
	for (int i = 0; i < 5; i++)
		op(&a, (unsigned)i * 3); /* warm-up */
	for (int i = 0; i < STEPS; i++) {
		if (i == STEPS / 2)
			begin = now(&a);
		step(&a, marked);
	}
	end = now(&a);
	*stats = stats_of(&a);
	umadv_close(a.adv);
	is_int(a.err, 0, marked ? "a program with marks runs" : "a program without marks runs");
	return (double)(end - begin);
}

static void found(void)
{
	struct umadv_stats with, without;
	double marked = steps_take(1, &with), unmarked = steps_take(0, &without);

	ok(unmarked <= 1.01 * marked, "steps that are not marked take the time of marked ones (%.3f)",
	   unmarked / marked);
	ok(without.iterations >= STEPS - 1 && without.iterations <= STEPS + 1, "each step is found");
	is_u64(without.first_hinted_iteration, 2, "the third one follows a plan");
	is_u64(without.divergences, with.divergences, "the schedule is not left");
}

static void nothing_repeats(void)
{
	struct umadv_stats s;
	uint64_t seed = 5;
	struct app a;

	open_app(&a);
	for (int i = 0; i < 5000; i++)
		op(&a, test_random(&seed, TENSORS));
	s = stats_of(&a);
	is_u64(s.iterations, 0, "no iteration is found in 5,000 ops on tensors chosen at random");
	is_u64(s.plans, 0, "nothing is planned");
	umadv_close(a.adv);
}

static void marks_end_the_search(void)
{
	struct umadv_stats s;
	uint64_t before;
	struct app a;

	open_app(&a);
	for (int i = 0; i < 6; i++)
		step(&a, 0);
	before = stats_of(&a).iterations;
	ok(before > 0, "iterations are found before the first mark");
	for (int i = 0; i < 6; i++)
		step(&a, 1);
	s = stats_of(&a);
	ok(!a.adv->iterations.finder.on, "the first mark ends the search");
	is_u64(s.iterations, before + 6, "from then on each mark is an iteration, and nothing else");
	is_int(a.err, 0, "no call fails");
	umadv_close(a.adv);
}

static void odd_ops(void)
{
	struct umadv_stats s;
	struct app a;

	open_app(&a);
	for (int i = 0; i < 12; i++) {
		step(&a, 0);
		if (i == 7)
			a.err |= umadv_op(a.adv, NULL, "save", UMADV_USES(UMADV_READ(a.w[3])));
	}
	s = stats_of(&a);
	ok(s.iterations >= 11, "an op between two steps changes nothing of the others");
	ok(s.divergences <= 1, "at most one iteration leaves the schedule");
	ok(um_replan_hints(&a.adv->replan), "hints are issued again after it");
	umadv_close(a.adv);
}

static void other_pattern(void)
{
	struct umadv_stats s;
	struct app a;

	open_app(&a);
	for (int i = 0; i < 6; i++)
		step(&a, 0);
	for (int k = 0; k < 12; k++)
		for (unsigned i = 0; i < TENSORS; i += 2)
			a.err |= umadv_op(a.adv, NULL, "evaluate", UMADV_USES(UMADV_READ(a.w[i])));
	is_u64(um_op_period_length(&a.adv->iterations.finder.period), TENSORS / 2,
	       "another period that repeats takes the place of the first");
	s = stats_of(&a);
	ok(s.iterations >= 10 && a.err == 0, "its iterations are found (%d)", (int)s.iterations);
	umadv_close(a.adv);
}

/* Equal ops, each of which uses a tensor, the next one, and one of its own if `temporary`. */
static void rings(int temporary)
{
	struct app a;

	open_app(&a);
	for (int i = 0; i < 6 * TENSORS; i++) {
		void *from = a.w[i % TENSORS], *to = a.w[(i + 1) % TENSORS], *own = a.w[i % TENSORS];

		if (temporary)
			a.err |= umadv_alloc(a.adv, &own, 2 * MIB, "own", UMADV_ACT);
		a.err |= umadv_op(a.adv, NULL, "walk", UMADV_USES(UMADV_READ(from), UMADV_READ(to), UMADV_READ(own)));
		a.err |= um_sim_run(a.gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
		if (temporary)
			a.err |= umadv_free(a.adv, own);
	}
	is_u64(um_op_period_length(&a.adv->iterations.finder.period), TENSORS,
	       "equal ops that walk around a ring%s have the ring's length as their period",
	       temporary ? ", with temporary tensors," : "");
	is_int(a.err, 0, "no call fails");
	umadv_close(a.adv);
}

/* Equal ops read one half of the tensors and write the other one; each step exchanges the halves. */
static void exchanged_halves(void)
{
	struct app a;

	open_app(&a);
	for (int i = 0; i < 6 * TENSORS; i++) {
		unsigned half = i / (TENSORS / 2) % 2, at = i % (TENSORS / 2);

		a.err |= umadv_op(a.adv, NULL, "exchange",
				  UMADV_USES(UMADV_READ(a.w[2 * at + half]), UMADV_WRITE(a.w[2 * at + !half])));
		a.err |= um_sim_run(a.gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
	}
	is_u64(um_op_period_length(&a.adv->iterations.finder.period), TENSORS / 2,
	       "where each step exchanges two halves, a step is the period");
	is_int(a.err, 0, "no call fails");
	umadv_close(a.adv);
}

/* The CPU reads the result of each step: least is alive after that. */
static void results_are_read(void)
{
	struct umadv_stats s;
	struct app a;
	void *act;

	open_app(&a);
	for (int i = 0; i < STEPS; i++) {
		a.err |= umadv_alloc(a.adv, &act, 8 * MIB, "act", UMADV_ACT);
		a.err |= umadv_op(a.adv, NULL, "begin", UMADV_USES(UMADV_WRITE(act)));
		run(&a, NULL, NULL);
		for (unsigned k = 0; k < TENSORS; k++)
			op(&a, k);
		a.err |= umadv_host(a.adv, "read", UMADV_USES(UMADV_READ(act)));
		a.err |= umadv_free(a.adv, act);
	}
	a.err |= um_sim_sync(a.gpu);
	s = stats_of(&a);
	is_int(a.err, 0, "the program runs");
	ok(s.iterations > STEPS / 2, "iterations that end with an access of the CPU are found (%" PRIu64 ")",
	   s.iterations);
	ok(s.hints_scheduled > 0, "they follow a plan");
	umadv_close(a.adv);
}

/* While no period is followed, the ops' closures are not kept. */
static void ops_without_closures(void)
{
	struct umadv_op_info info = {.struct_size = sizeof info};
	struct um_iterations it;

	if (um_iterations_init(&it))
		tap_bail("no iterations");
	it.n = 1;
	it.ops = 100;
	is_int(um_iterations_keep_closure(&it, &info), 0, "an op after others without closures is accepted");
	is_int((int)it.closures.n, 0, "it has no closure either");
	um_iterations_fini(&it);
}

int main(void)
{
	results_are_read();
	ops_without_closures();
	rings(0);
	rings(1);
	exchanged_halves();
	found();
	found_at_once();
	nothing_repeats();
	marks_end_the_search();
	odd_ops();
	other_pattern();
	promises();
	return tap_done();
}
