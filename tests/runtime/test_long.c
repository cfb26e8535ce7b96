/* SPDX-License-Identifier: Apache-2.0
 *
 * An iteration that never ends: what is kept of it is freed at a cap, one line says so, and the next iteration that is
 * marked is recorded and planned again. Nothing is kept of set-up. Planning ends at its deadline, and a trace that is
 * too long is refused.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"
#include "io/umtrace.h"

#include "fixture/random.h"
#include "tap.h"

#define MIB (1ull << 20)
#define WEIGHTS 12

static struct {
	struct umadv *adv;
	void *w[WEIGHTS];
	char line[512];
	int lines, err;
	uint64_t ops;
} app;

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	if (level > UMADV_LOG_WARN)
		return;
	app.lines++;
	snprintf(app.line, sizeof app.line, "%s", line);
}

static int relaunch(void *arg, void *stream)
{
	(void)arg;
	(void)stream;
	return 0;
}

static void open_app(void)
{
	struct umadv_options o;

	memset(&app, 0, sizeof app);
	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 32 * MIB;
	o.log = on_log;
	o.log_level = UMADV_LOG_WARN;
	if (umadv_open(&app.adv, &o))
		tap_bail("no context");
	for (int i = 0; i < WEIGHTS; i++)
		app.err |= umadv_alloc(app.adv, &app.w[i], 4 * MIB, "w", UMADV_PARAM);
}

static void ops(unsigned n)
{
	char arg[64] = "";

	for (unsigned i = 0; i < n && !app.err; i++, app.ops++) {
		struct umadv_use uses[2];
		struct umadv_op_info info = {.struct_size = sizeof info,
					     .uses = uses,
					     .n_uses = 2,
					     .ns = 100000,
					     .relaunch = relaunch,
					     .relaunch_arg = arg,
					     .relaunch_arg_bytes = sizeof arg};
		void *t;

		app.err |= umadv_alloc(app.adv, &t, 4096, "t", UMADV_ACT);
		uses[0] = UMADV_READ(app.w[i % WEIGHTS]);
		uses[1] = UMADV_WRITE(t);
		app.err |= umadv_op_ex(app.adv, NULL, "op", &info);
		app.err |= umadv_free(app.adv, t);
	}
}

static int holds_nothing(void)
{
	const struct um_iteration *it = &app.adv->iterations.recorder.it;

	return !it->ops.cap && !it->uses.cap && !it->tensors.cap && !it->births.cap && !it->late_frees.cap &&
	       !it->relaunch.cap && !app.adv->iterations.recorder.last_use.cap && !app.adv->iterations.closures.cap;
}

/* Short iterations; returns how many of them had hints. */
static uint64_t short_iterations(unsigned n)
{
	struct umadv_stats before = {.struct_size = sizeof before}, st = {.struct_size = sizeof st};

	umadv_stats_get(app.adv, &before);
	for (unsigned i = 0; i < n; i++) {
		app.err |= umadv_iter(app.adv, NULL);
		ops(WEIGHTS);
		app.err |= umadv_sim_sync(app.adv);
	}
	umadv_stats_get(app.adv, &st);
	return st.hinted_iterations - before.hinted_iterations;
}

static void endless(void)
{
	struct umadv_stats st = {.struct_size = sizeof st};

	open_app();
	is_u64(app.adv->iterations.recorder.caps.ops, UMADV_MOST_OPS, "the header says how many ops are kept");
	ok(UMADV_MOST_OPS > 1000000, "an iteration of a million ops is planned");
	app.adv->iterations.recorder.caps = (struct um_record_caps){1000, 4000, 2500};
	app.err |= umadv_iter(app.adv, NULL);
	ops(1000);
	ok(!holds_nothing() && app.lines == 0, "an iteration of as many ops as the cap is kept");
	ops(3000);
	ok(holds_nothing(), "of an iteration with more ops nothing is kept");
	is_int(app.lines, 1, "one line says so");
	ok(strstr(app.line, "iteration 0 is too long") && strstr(app.line, "limits: 1000 operations") &&
		   strstr(app.line, "umadv_iter"),
	   "it names the iteration, the cap and what to do");
	ok(short_iterations(5) >= 3, "the iterations after it are recorded, planned and hinted");
	app.err |= umadv_iter(app.adv, NULL);
	ops(5000);
	ok(holds_nothing(), "nothing is kept of another long iteration, though a plan is followed");
	ok(short_iterations(5) >= 3, "hints resume after it");
	is_int(app.lines, 1, "the line is not said again");
	umadv_stats_get(app.adv, &st);
	is_int(app.err, 0, "no call fails");
	ok(st.ops == app.ops && st.iterations == 12 && st.errors == 0 && st.tensors_live == WEIGHTS,
	   "statistics count all ops and iterations");
	umadv_close(app.adv);
}

/* Tensors that are born and freed without any op. */
static void births(void)
{
	void *t;

	open_app();
	app.adv->iterations.recorder.caps = (struct um_record_caps){1000, 4000, 2500};
	app.err |= umadv_iter(app.adv, NULL);
	for (int i = 0; i < 5000 && !app.err; i++) {
		app.err |= umadv_alloc(app.adv, &t, 4096, "t", UMADV_ACT);
		app.err |= umadv_free(app.adv, t);
	}
	ok(!app.err && holds_nothing() && app.lines == 1, "tensors without an op count as well");
	umadv_close(app.adv);
}

/* One like no other. */
static void irregular_ops(unsigned n)
{
	static uint64_t seed;

	for (unsigned i = 0; i < n; i++)
		app.err |= umadv_op(app.adv, NULL, "op",
				    UMADV_USES(UMADV_UPDATE_RANGE(app.w[0], 1 + test_random(&seed, 4 * MIB - 1))));
}

/* A warning is logged for ops without iterations, and for an endless iteration. */
static void set_up_then_endless(void)
{
	open_app();
	app.adv->iterations.recorder.caps = (struct um_record_caps){1000, 4000, 2500};
	irregular_ops(99999);
	is_int(app.lines, 0, "99,999 ops without umadv_iter are not logged");
	irregular_ops(150000);
	ok(app.lines == 1 && strstr(app.line, "umadv_iter was never called"),
	   "250,000 ops without umadv_iter are one line: %s", app.line);
	ok(app.adv->iterations.recorder.it.ops.cap <= 1024, "a record of ops that do not repeat is bounded");
	app.err |= umadv_iter(app.adv, NULL);
	ops(12000);
	ok(app.lines == 2 && strstr(app.line, "iteration 0 is too long"),
	   "12,000 ops of an iteration beyond the cap are one more line: %s", app.line);
	for (int i = 0; i < 3; i++) {
		app.err |= umadv_iter(app.adv, NULL);
		ops(11000);
	}
	is_int(app.lines, 2, "neither line is logged again");
	is_int(app.err, 0, "no call fails after both lines");
	umadv_close(app.adv);
}

static uint64_t clock_ms, tick_ms;
static unsigned n_ticks;

static uint64_t ticking(void)
{
	n_ticks++;
	return clock_ms += tick_ms;
}

/* Planning on a device whose time is real, with a clock that passes `tick_ms` whenever it is looked at. */
static void deadline(void)
{
	unsigned ticks;

	open_app();
	app.adv->device.real = 1;
	app.adv->replan.planning.host.wall_ms = ticking;
	tick_ms = 0;
	ok(short_iterations(4) > 0 && app.lines == 0, "a plan that is found in time is followed");
	umadv_close(app.adv);

	open_app();
	app.adv->device.real = 1;
	app.adv->replan.planning.host.wall_ms = ticking;
	tick_ms = 50000; /* the planner is late when it asks for the first time */
	n_ticks = 0;
	is_u64(short_iterations(2), 0, "a plan that is not found within a minute is not followed");
	ticks = n_ticks;
	ok(ticks >= 3 && ticks < 16, "planning ends at its deadline: the clock was read %u times", ticks);
	is_int(app.lines, 1, "one line says so");
	ok(strstr(app.line, "no plan") && strstr(app.line, "longer than 60 s") && strstr(app.line, "umadv_iter"),
	   "it names the limit and what to do: %s", app.line);
	is_u64(short_iterations(5), 0, "the program goes on without hints");
	ok(n_ticks - ticks <= 5, "no plan is looked for again for iterations as long: the clock was read %u times",
	   n_ticks - ticks);
	is_int(app.lines, 1, "the line is not said again after more iterations");
	is_int(app.err, 0, "no call fails beyond the deadline");
	tick_ms = 0;
	for (int i = 0; i < 4; i++) {
		app.err |= umadv_iter(app.adv, NULL);
		ops(WEIGHTS / 2);
		app.err |= umadv_sim_sync(app.adv);
	}
	ok(app.adv->replan.plan.sched.ops.n == WEIGHTS / 2 && app.err == 0, "shorter iterations are planned");
	umadv_close(app.adv);
}

static void trace(void)
{
	static const char text[] = "{\"umtrace\":1}\n"
				   "{\"ev\":\"alloc\",\"t\":0,\"bytes\":4096}\n{\"ev\":\"iter\",\"n\":0}\n"
				   "{\"ev\":\"op\",\"name\":\"a\",\"r\":[0],\"w\":[0]}\n"
				   "{\"ev\":\"op\",\"name\":\"b\",\"r\":[0],\"w\":[0]}\n";
	const struct um_trace_caps enough = {4, 2}, few = {3, 2}, narrow = {4, 1};
	struct um_trace *t;
	struct um_diag d;

	is_int(um_trace_load_capped(&t, text, sizeof text - 1, &enough, &d), 0, "a trace as long as the cap is loaded");
	um_trace_free(t);
	is_int(um_trace_load_capped(&t, text, sizeof text - 1, &few, &d), -E2BIG, "one with more events is refused");
	ok(d.line == 5 && strstr(d.text, "too long"), "the message says where and why");
	is_int(um_trace_load_capped(&t, text, sizeof text - 1, &narrow, &d), -E2BIG, "one with more ranges is refused");
}

int main(void)
{
	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	endless();
	births();
	set_up_then_endless();
	deadline();
	trace();
	return tap_done();
}
