/* SPDX-License-Identifier: Apache-2.0
 *
 * The measured time of iterations, on the simulated GPU where it is known exactly; and the log line about a plan that
 * takes longer than predicted.
 */
#include "runtime/iteration_clock.h"

#include "runtime/context.h"
#include "runtime/plan_gap.h"
#include "sim/sim.h"
#include "umadvise.h"

#include "tap.h"

#include <string.h>

static struct um_gpu *gpu;
static const struct um_executor_counts none;

static void open_gpu(void)
{
	struct um_sim_options so = {.profile = um_profile_find("v100")};

	if (um_sim_open(&gpu, &so))
		tap_bail("no device");
}

/* An iteration of one kernel; the clock's event comes before it. */
static void iteration(struct um_iteration_clock *c, uint64_t ns)
{
	struct um_executor_counts counts = {.issued = c->n};
	struct um_sim_kernel k = {.name = "k", .ns = ns};
	struct um_iteration_kind kind = {.plan = ns, .n = 1};

	if (c->due)
		um_iteration_clock_record(c, NULL, &counts);
	um_sim_run(gpu, NULL, &k);
	um_iteration_clock_end(c, &kind);
}

static void measures(void)
{
	struct um_iteration_clock c;
	struct um_iteration_time t;

	um_iteration_clock_init(&c, gpu);
	iteration(&c, 500000);
	iteration(&c, 1000000);
	is_int(um_iteration_clock_read(&c, &t), 0, "nothing is measured before an iteration has ended on the device");
	iteration(&c, 2000000);
	gpu->api->simulation->sync(gpu);
	is_int(um_iteration_clock_read(&c, &t), 1, "an iteration between two begins is measured");
	is_u64(t.ns, 1000000, "its time is that of its kernel");
	is_u64(t.kind.plan, t.ns, "what it was is kept");
	is_u64(t.after.issued - t.before.issued, 1, "the counters at its begin and end are kept");
	is_int(um_iteration_clock_read(&c, &t), 0, "a measurement is reported once");
	iteration(&c, 4000000);
	iteration(&c, 5000000);
	gpu->api->simulation->sync(gpu);
	ok(um_iteration_clock_read(&c, &t) && t.ns == 2000000 && um_iteration_clock_read(&c, &t) && t.ns == 4000000,
	   "the next iterations are measured in order");
	um_iteration_clock_fini(&c);
}

static void far_ahead(void)
{
	struct um_iteration_clock c;
	struct um_iteration_time t;
	uint64_t n = 0, last = 0;

	um_iteration_clock_init(&c, gpu);
	for (uint64_t i = 0; i <= 2 * UM_ITERATION_CLOCK_EVENTS; i++)
		iteration(&c, (i + 1) * 1000000);
	gpu->api->simulation->sync(gpu);
	for (; um_iteration_clock_read(&c, &t); n++)
		last = t.ns;
	is_u64(n, UM_ITERATION_CLOCK_EVENTS - 1, "a program far ahead of the device has its first iterations measured");
	is_u64(last, UM_ITERATION_CLOCK_EVENTS * 1000000ull, "their times are right");
	for (uint64_t i = 1; i <= 3; i++)
		iteration(&c, i * 1000000);
	gpu->api->simulation->sync(gpu);
	ok(um_iteration_clock_read(&c, &t) && t.ns == 2000000,
	   "iterations are measured again when the device has caught up; one without a begin is not");
	um_iteration_clock_fini(&c);
}

/* --- the log line ------------------------------------------------------------------------------------------------- */

static char line[512];
static enum umadv_log_level line_level;
static int lines;

static void keep_line(void *user, enum umadv_log_level level, const char *text)
{
	(void)user;
	if (!strstr(text, "under the plan"))
		return;
	snprintf(line, sizeof line, "%s", text);
	line_level = level;
	lines++;
}

/* The last measurement of a plan that is predicted to take 1 ms; it takes `ns`. */
static void judge(uint64_t ns, struct um_executor_counts after, uint64_t misplaced, unsigned times, int last)
{
	struct um_notices n = {.log = keep_line, .level = UMADV_LOG_INFO};
	struct um_iteration_time t = {.ns = ns, .before = none, .after = after};
	struct um_plan_gap g = {0};

	lines = 0;
	*line = '\0';
	for (unsigned i = 0; i < times; i++)
		um_plan_gap_check(&g, &t, 1000000, misplaced, last, &n);
}

static void log_lines(void)
{
	judge(1090000, none, 0, 3, 0);
	is_int(lines, 0, "9 %% more than predicted is not logged");
	judge(910000, none, 0, 3, 0);
	is_int(lines, 0, "9 %% less than predicted is not logged");
	judge(1500000, none, 0, 1, 0);
	is_int(lines, 0, "the first measurement is not logged");
	judge(1500000, none, 0, 1, 1);
	is_int(lines, 1, "the first measurement is logged if it is the last");
	judge(1500000, none, 0, 5, 0);
	is_int(lines, 1, "a slow plan is logged once");
	is_int(line_level, UMADV_LOG_WARN, "a slow plan is a warning");
	ok(strstr(line, "takes 1.500 ms, predicted 1.000 ms (+50 %)") != NULL, "the line has both times: %s", line);
	judge(500000, none, 0, 2, 0);
	ok(lines == 1 && line_level == UMADV_LOG_INFO, "a fast plan is no warning: %s", line);
	judge(1500000, (struct um_executor_counts){.refused = 3, .dropped = 4}, 0, 2, 0);
	ok(strstr(line, "3 hints were refused") != NULL, "refused hints are a cause: %s", line);
	judge(1500000, (struct um_executor_counts){.dropped = 4}, 0, 2, 0);
	ok(strstr(line, "4 hints were dropped") != NULL, "dropped hints are a cause: %s", line);
	judge(1500000, none, 2, 2, 0);
	ok(strstr(line, "2 tensors") != NULL, "tensors at other addresses are a cause: %s", line);
	judge(1500000, (struct um_executor_counts){.kept_bytes = 3 << 20}, 0, 2, 0);
	ok(strstr(line, "3.0 MiB that must not be discarded were copied") != NULL, "missing discards are a cause: %s",
	   line);
}

/* --- a program on a device that is slower than its profile says --------------------------------------------------- */

enum { TENSORS = 6, ITERATIONS = 12 };

/* `transient`: of the tensors, so many are written anew in each iteration; then the program waits only at its end. */
static void run(const struct um_profile *device, int transient, int discard, struct umadv_stats *stats)
{
	struct um_sim_options so = {.profile = device, .capacity = 64 << 20};
	struct umadv_options o = {.struct_size = sizeof o,
				  .device = UMADV_DEVICE_SIM,
				  .log = keep_line,
				  .log_level = UMADV_LOG_INFO,
				  .nvtx = UMADV_NVTX_OFF};
	void *t[TENSORS];
	struct umadv *adv;

	lines = 0;
	if (um_sim_open(&gpu, &so) || um_context_open(&adv, &o, gpu, um_profile_find("v100")))
		tap_bail("no context");
	gpu->caps.discard = discard;
	for (int i = 0; i < TENSORS; i++)
		if (umadv_alloc(adv, &t[i], 16 << 20, NULL, UMADV_OTHER) ||
		    (i < transient && umadv_transient(adv, t[i])))
			tap_bail("no tensor");
	for (int k = 0; k < ITERATIONS; k++) {
		umadv_iter(adv, NULL);
		for (int i = 0; i < TENSORS; i++) {
			if (i < transient)
				umadv_op(adv, NULL, "write", UMADV_USES(UMADV_WRITE(t[i])));
			else
				umadv_op(adv, NULL, "update", UMADV_USES(UMADV_UPDATE(t[i])));
			umadv_sim_run(adv, NULL, NULL, NULL);
		}
		if (!transient)
			umadv_sim_sync(adv);
	}
	umadv_sim_sync(adv);
	stats->struct_size = sizeof *stats;
	umadv_stats_get(adv, stats);
	umadv_close(adv);
}

static void programs(void)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_profile slow = *v100;
	struct umadv_stats s = {0};
	uint64_t ns[2];

	run(v100, 0, 1, &s);
	ok(s.plan_ns && s.played_ns <= s.plan_ns + s.plan_ns / 10 && s.played_ns >= s.plan_ns - s.plan_ns / 10,
	   "a program takes what its plan predicts: %.3f ms, %.3f", (double)s.played_ns / 1e6, (double)s.plan_ns / 1e6);
	is_int(lines, 0, "nothing is logged about it");
	slow.h2d /= 2;
	slow.d2h /= 2;
	run(&slow, 0, 1, &s);
	ok(s.played_ns > s.plan_ns * 3 / 2, "a slow link is measured: %.3f ms, predicted %.3f",
	   (double)s.played_ns / 1e6, (double)s.plan_ns / 1e6);
	ok(lines == 1 && line_level == UMADV_LOG_WARN, "the log says so, once: %s", line);
	for (int discard = 1; discard >= 0; discard--) {
		run(v100, 4, discard, &s);
		ok(s.played_ns && s.played_ns <= s.plan_ns + s.plan_ns / 10 &&
			   s.played_ns >= s.plan_ns - s.plan_ns / 10,
		   "dead tensors on a device %s discards: %.3f ms, predicted %.3f", discard ? "with" : "without",
		   (double)s.played_ns / 1e6, (double)s.plan_ns / 1e6);
		ns[discard] = s.played_ns;
	}
	ok(ns[0] > ns[1] + ns[1] / 10, "which the device without pays for");
}

int main(void)
{
	open_gpu();
	measures();
	far_ahead();
	gpu->api->close(gpu);
	log_lines();
	programs();
	return tap_done();
}
