/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs whose iterations repeat now and then: planning takes time, so plans that are left become rare.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#define MIB (1ull << 20)
#define TENSORS 12
#define ITERATIONS 240

static uint64_t state;

static unsigned draw(unsigned n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % n;
}

struct app {
	struct umadv *adv;
	struct um_gpu *gpu;
	void *w[TENSORS];
	int err;
};

static void open_app(struct app *a)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = TENSORS * 8 * MIB / 2};
	struct umadv_options o;

	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = so.capacity;
	o.referee = UMADV_REFEREE_OFF; /* plans are followed whether they pay or not */
	a->err = um_sim_open(&a->gpu, &so);
	if (!a->err)
		a->err = um_context_open(&a->adv, &o, a->gpu, v100);
	for (int i = 0; i < TENSORS && !a->err; i++)
		a->err = umadv_alloc(a->adv, &a->w[i], 8 * MIB, "w", UMADV_PARAM);
	if (a->err)
		tap_bail("no context");
}

/* One iteration; `kind` says which tensors it uses and how often. */
static void iteration(struct app *a, unsigned kind)
{
	a->err |= umadv_iter(a->adv, NULL);
	for (unsigned i = 0; i < TENSORS + kind; i++) {
		a->err |= umadv_op(a->adv, NULL, "op", UMADV_USES(UMADV_UPDATE(a->w[i % TENSORS])));
		a->err |= um_sim_run(a->gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
	}
}

static struct umadv_stats close_app(struct app *a)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};

	a->err |= um_sim_sync(a->gpu);
	umadv_stats_get(a->adv, &stats);
	umadv_close(a->adv);
	return stats;
}

/* Every kind comes twice or three times in a row. */
static void twice(void)
{
	struct app a = {0};
	struct umadv_stats stats;

	open_app(&a);
	for (unsigned i = 0; i < ITERATIONS;) {
		unsigned kind = draw(40);

		for (unsigned n = 2 + draw(2); n > 0; n--, i++)
			iteration(&a, kind);
	}
	stats = close_app(&a);
	is_int(a.err, 0, "a program whose iterations come twice or three times runs");
	ok(stats.plans <= 12, "it gets few plans in %d iterations (%llu)", ITERATIONS, (unsigned long long)stats.plans);
}

/* Random kinds, then always the same. */
static void settles(void)
{
	struct app a = {0};
	struct umadv_stats before, after;

	open_app(&a);
	for (unsigned i = 0; i < ITERATIONS; i++)
		iteration(&a, draw(7));
	before = (struct umadv_stats){.struct_size = sizeof before};
	umadv_stats_get(a.adv, &before);
	for (unsigned i = 0; i < 60; i++)
		iteration(&a, 3);
	after = close_app(&a);
	is_int(a.err, 0, "a program that repeats in the end runs");
	ok(after.hinted_iterations >= before.hinted_iterations + 20,
	   "iterations that repeat in the end follow a plan (%llu of 60)",
	   (unsigned long long)(after.hinted_iterations - before.hinted_iterations));
}

/* Two kinds in turn, then others, each of which comes once. */
static void period_ends(void)
{
	struct app a = {0};
	unsigned kind = 2;

	open_app(&a);
	for (unsigned i = 0; i < 30; i++)
		iteration(&a, i % 2);
	ok(a.adv->iterations.period.length == 2, "two kinds in turn are one iteration");
	while (a.adv->iterations.period.length == 2 && kind < 20)
		iteration(&a, kind++);
	is_int(a.adv->iterations.period.length, 1, "the period ends where other kinds come");
	iteration(&a, kind++);
	is_int(a.adv->replan.state, UM_FOLLOW_NONE,
	       "no plan is made after the next iteration, which may not come again");
	iteration(&a, kind);
	iteration(&a, kind);
	iteration(&a, kind);
	ok(a.adv->replan.state != UM_FOLLOW_NONE, "one is made once an iteration has come twice");
	close_app(&a);
	is_int(a.err, 0, "a program whose period ends runs");
}

static int kinds_that_stay(const struct umadv *adv)
{
	int n = 0;

	for (size_t i = 0; i < UM_STAYING_KINDS; i++)
		n += adv->tensors.staying[i] != 0;
	return n;
}

/* Three kinds in turn, which are recorded as one iteration; a gradient lives until the next iteration, or until the one
 * after `stay` others. */
static int stay_in_groups(unsigned stay)
{
	struct app a = {0};
	void *gradients[8] = {NULL};
	int n;

	open_app(&a);
	for (unsigned i = 0; i < 60; i++) {
		void **born = &gradients[i % 8], **dies = &gradients[(i + 8 - stay - 1) % 8];

		iteration(&a, i % 3);
		if (*dies)
			a.err |= umadv_free(a.adv, *dies);
		*dies = NULL;
		a.err |= umadv_alloc(a.adv, born, (4 + i % 3) * MIB, "gradient", UMADV_GRAD);
		a.err |= umadv_op(a.adv, NULL, "backward", UMADV_USES(UMADV_WRITE(*born)));
		a.err |= um_sim_run(a.gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000});
	}
	n = kinds_that_stay(a.adv);
	ok(a.adv->iterations.period.length == 3, "three kinds in turn are one iteration, gradients stay for %u", stay);
	close_app(&a);
	is_int(a.err, 0, "a program whose gradients stay for %u iterations runs", stay);
	return n;
}

int main(void)
{
	twice();
	settles();
	period_ends();
	is_int(stay_in_groups(0), 0, "no gradient stays that dies in the next of several iterations recorded as one");
	is_int(stay_in_groups(6), 3, "those stay that live through all of them");
	return tap_done();
}
