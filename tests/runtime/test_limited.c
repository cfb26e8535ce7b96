/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs for which hints do not pay, or a plan does not, in simulated time: the library notices and stops them.
 * Kernels touch a little of what their ops declare; or they take longer than declared, so that a plan is made for
 * another program.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#include <string.h>

#define MIB (1ull << 20)
#define TENSORS 24
#define BYTES (8 * MIB)

struct setting {
	const char *what;
	uint64_t capacity, budget; /* budget 0: the capacity */
	uint64_t ns, declared_ns; /* of a kernel */
	uint64_t touched; /* of each tensor, by its kernel */
	unsigned iterations, then; /* with that; then with everything touched */
	int unmarked;
	int distinct; /* in each iteration ops use other parts of the tensors */
	int returns; /* the second half of an iteration uses the tensors of the first one, backwards */
};

struct outcome {
	double total, rest; /* ns; of the last quarter */
	struct umadv_stats stats;
	unsigned warnings, resumed;
};

static struct outcome *logs_to;

static void count_lines(void *user, enum umadv_log_level level, const char *text)
{
	(void)user;
	logs_to->warnings += level == UMADV_LOG_WARN && strstr(text, "hints stop") != NULL;
	logs_to->resumed += strstr(text, "hints are resumed") != NULL;
}

static int iteration(struct umadv *adv, struct um_gpu *gpu, void **w, const struct setting *s, uint64_t touched,
		     unsigned number)
{
	int err = s->unmarked ? 0 : umadv_iter(adv, NULL);

	for (int n = 0; n < TENSORS && !err; n++) {
		int i = s->returns && n >= TENSORS / 2 ? TENSORS - 1 - n : n;
		const struct um_touch touch = {.ptr = w[i], .bytes = touched, .access = UM_READ | UM_WRITE};
		const struct um_sim_kernel k = {.ns = s->ns, .timed = 1, .access = &touch, .n_access = 1};
		struct umadv_use use = UMADV_UPDATE(w[i]);
		const struct umadv_op_info info = {
			.struct_size = sizeof info, .uses = &use, .n_uses = 1, .ns = s->declared_ns};

		if (s->distinct)
			use.bytes = BYTES - (size_t)(number * 7919 % 10007) * 64;
		err = umadv_op_ex(adv, NULL, "op", &info);
		if (!err)
			err = um_sim_run(gpu, NULL, &k);
	}
	return err;
}

/* `strategy` NULL: lookahead. */
static struct outcome play(const struct setting *s, const char *strategy, enum umadv_referee referee)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = s->capacity};
	struct outcome out = {.stats = {.struct_size = sizeof out.stats}};
	unsigned n = s->iterations + s->then;
	struct umadv_options o;
	struct um_gpu *gpu;
	struct umadv *adv;
	uint64_t begin = 0;
	void *w[TENSORS];
	int err;

	logs_to = &out;
	umadv_options_init(&o);
	o.log = count_lines;
	o.log_level = UMADV_LOG_INFO;
	o.budget = s->budget ? s->budget : s->capacity;
	o.strategy = strategy;
	o.referee = referee;
	if (um_sim_open(&gpu, &so) || um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
	err = 0;
	for (int i = 0; i < TENSORS && !err; i++)
		err = umadv_alloc(adv, &w[i], BYTES, "w", UMADV_PARAM);
	for (unsigned i = 0; i < n && !err; i++) {
		if (i == n - n / 4) {
			err = um_sim_sync(gpu);
			begin = gpu->api->now(gpu);
		}
		if (!err)
			err = iteration(adv, gpu, w, s, i < s->iterations ? s->touched : BYTES, i);
	}
	if (err || um_sim_sync(gpu))
		tap_bail("the program does not run");
	out.total = (double)gpu->api->now(gpu);
	out.rest = out.total - (double)begin;
	umadv_stats_get(adv, &out.stats);
	umadv_close(adv);
	return out;
}

/* Hints stop, and the program then takes no longer than without them. */
static void as_without(const struct setting *s)
{
	struct outcome with = play(s, NULL, UMADV_REFEREE_ON), always = play(s, NULL, UMADV_REFEREE_OFF);
	struct outcome none = play(s, "on-demand", UMADV_REFEREE_OFF);

	ok(always.rest >= 1.5 * none.rest, "%s: iterations take %.2f times as long with hints as without", s->what,
	   always.rest / none.rest);
	ok(with.rest <= 1.02 * none.rest, "%s: the referee stops the hints (%.3f)", s->what, with.rest / none.rest);
	ok(with.total < always.total, "%s: the whole run takes less time, too (%.3f)", s->what,
	   with.total / always.total);
	ok(with.stats.limited_iterations > s->iterations / 3, "%s: %llu of %u iterations count as limited", s->what,
	   (unsigned long long)with.stats.limited_iterations, s->iterations);
	is_int(with.warnings, 1, "%s: one line warns of it", s->what);
	ok(!always.stats.limited_iterations && !always.warnings, "%s: without the referee nothing of this happens",
	   s->what);
}

static void touch_little(void)
{
	struct setting s = {.what = "ops that touch a little of what they declare",
			    .capacity = TENSORS * BYTES / 2,
			    .ns = 300000,
			    .touched = 65536,
			    .iterations = 3000};

	as_without(&s);
	if (tap_few())
		return;
	s.what = "the same without marks";
	s.unmarked = 1;
	as_without(&s);
	s.what = "the same in iterations of which no two are alike";
	s.unmarked = 0;
	s.distinct = 1;
	as_without(&s);
}

static void changes(void)
{
	const struct setting s = {
		.capacity = TENSORS * BYTES / 2, .ns = 300000, .touched = 65536, .iterations = 3000, .then = 3000};
	struct outcome with = play(&s, NULL, UMADV_REFEREE_ON), always = play(&s, NULL, UMADV_REFEREE_OFF);

	ok(with.resumed, "hints are resumed when ops have come to touch all that they declare");
	ok(with.rest <= 1.02 * always.rest, "iterations then take no longer than if they had never stopped (%.3f)",
	   with.rest / always.rest);
}

static void wrong_times(void)
{
	const struct setting s = {.capacity = TENSORS * BYTES / 3,
				  .ns = 800000,
				  .declared_ns = 15000,
				  .touched = BYTES,
				  .iterations = 1000};
	struct outcome with = play(&s, NULL, UMADV_REFEREE_ON), always = play(&s, NULL, UMADV_REFEREE_OFF);

	ok(always.rest >= 1.1 * with.rest,
	   "a plan for ops that take much longer than declared is suspended: the others take %.2f times as long",
	   always.rest / with.rest);
	ok(with.total < always.total, "the whole run takes less time, too (%.3f)", with.total / always.total);
	is_int(with.warnings, 1, "one line warns of it");
}

/* The driver alone does not keep such a budget, so it would always seem faster. */
static void small_budget(void)
{
	const struct setting s = {.capacity = TENSORS * BYTES,
				  .budget = TENSORS * BYTES / 2,
				  .ns = 300000,
				  .touched = 65536,
				  .iterations = 2000};
	struct outcome with = play(&s, NULL, UMADV_REFEREE_ON);

	ok(!with.stats.limited_iterations && !with.warnings,
	   "with a budget below the device's memory hints are not compared");
}

/* What is resident is decided by page faults while there are no hints, and is not known after that. */
static void resumes(void)
{
	const struct setting s = {.capacity = TENSORS * BYTES / 2, .ns = 300000, .touched = BYTES};
	struct um_sim_options so = {.profile = um_profile_find("v100"), .capacity = s.capacity};
	struct um_tally before, after;
	struct umadv_options o;
	struct um_gpu *gpu;
	struct umadv *adv;
	void *w[TENSORS];
	int err = 0;

	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = s.capacity;
	o.referee = UMADV_REFEREE_OFF;
	if (um_sim_open(&gpu, &so) || um_context_open(&adv, &o, gpu, um_profile_find("v100")))
		tap_bail("no context");
	for (int i = 0; i < TENSORS && !err; i++)
		err = umadv_alloc(adv, &w[i], BYTES, "w", UMADV_PARAM);
	for (unsigned i = 0; i < 9 && !err; i++) {
		adv->replan.referee.allowed = i == 6 || i == 7 ? UM_REFEREE_NONE : UM_REFEREE_PREDICTED;
		um_sim_tally(gpu, &before);
		err = iteration(adv, gpu, w, &s, BYTES, i);
		err = err ? err : um_sim_sync(gpu);
		um_sim_tally(gpu, &after);
		if (i == 7)
			ok(after.faults > before.faults, "an iteration without hints has page faults (%llu)",
			   (unsigned long long)(after.faults - before.faults));
		if (i == 8)
			is_u64(after.faults - before.faults, 0, "the first iteration with hints has none");
	}
	is_int(err, 0, "the program runs");
	umadv_close(adv);
}

static void costs_little(void)
{
	const struct setting s = {.capacity = TENSORS * BYTES / 4,
				  .returns = 1,
				  .ns = 300000,
				  .declared_ns = 300000,
				  .touched = BYTES,
				  .iterations = 2000};
	struct outcome with = play(&s, NULL, UMADV_REFEREE_ON), always = play(&s, NULL, UMADV_REFEREE_OFF);

	ok(with.total <= 1.01 * always.total, "a program that hints help takes at most 1 %% longer (%.4f)",
	   with.total / always.total);
	ok(with.stats.limited_iterations, "hints are compared in %llu of %u iterations",
	   (unsigned long long)with.stats.limited_iterations, s.iterations);
	is_u64(with.stats.errors, 0, "the library counts no error of its own");
}

int main(void)
{
	touch_little();
	if (!tap_few())
		changes();
	wrong_times();
	small_budget();
	resumes();
	costs_little();
	return tap_done();
}
