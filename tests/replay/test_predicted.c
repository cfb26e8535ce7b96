/* SPDX-License-Identifier: Apache-2.0
 *
 * The time that the library predicts for an iteration under a plan, beside the time that the simulated GPU takes: every
 * recorded workload with equal iterations.
 */
#include "play/player.h"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PERCENT 10

static struct um_trace *load(const char *name)
{
	const char *top = getenv("top_srcdir");
	struct um_trace *t;
	struct um_diag d;
	char path[512];

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", name);
	if (um_trace_load(&t, path, &d))
		tap_bail(d.text);
	return t;
}

static void check(const char *name, const struct um_trace *t, const char *profile, unsigned percent)
{
	struct um_play_options o = {.profile = um_profile_find(profile),
				    .budget = um_trace_peak_bytes(t) / 100 * percent,
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = 8};
	struct um_play_result r;
	double ratio;

	if (um_play(t, &o, &r))
		tap_bail("a trace is not played");
	if (!r.planned_ns) { /* the plan pages an op, and iterations without it take less time */
		ok(!strcmp(name, "lstm_lm") && percent == 50 && !r.faults,
		   "%s on %s with %u %%: no plan, and no page faults", name, profile, percent);
		um_play_result_fini(&r);
		return;
	}
	ratio = r.played_ns ? (double)r.planned_ns / (double)r.played_ns : 0;
	ok(r.planned_ns && ratio * 100 >= 100 - MOST_PERCENT && ratio * 100 <= 100 + MOST_PERCENT,
	   "%s on %s with %u %% of its memory: predicted %.3f ms, played %.3f", name, profile, percent,
	   (double)r.planned_ns / 1e6, (double)r.played_ns / 1e6);
	if (!r.irregular)
		ok(r.played_ns <= r.steady_ns + r.steady_ns / 4 && r.played_ns >= r.steady_ns - r.steady_ns / 4,
		   "%s on %s with %u %%: the measured iteration is like the last one, %.3f ms", name, profile, percent,
		   (double)r.steady_ns / 1e6);
	um_play_result_fini(&r);
}

/* One op of lstm_lm exceeds half of its memory, and streams: its excess stays on the host. */
static void check_paged(void)
{
	struct um_trace *t = load("lstm_lm");
	struct um_play_options o = {.profile = um_profile_find("h100"),
				    .budget = um_trace_peak_bytes(t) / 2,
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = 8};
	struct um_play_result r;

	if (um_play(t, &o, &r))
		tap_bail("a trace is not played");
	is_u64(r.faults, 0, "an op above the budget that streams has no page faults");
	um_play_result_fini(&r);
	um_trace_free(t);
}

int main(void)
{
	static const char *const names[] = {"stencil_slabs",	"dlrm",	   "cg_laplace3d", "alexnet_b200", "vgg16",
					    "cifar_vgg16_b100", "lstm_lm", "resnet50",	   "gpt2_small"};
	static const char *const profiles[] = {"v100", "a100", "h100"};
	const char *sanitize = getenv("SANITIZE");
	size_t n = sanitize && *sanitize ? 4 : sizeof names / sizeof *names;

	for (size_t i = 0; i < n; i++) {
		struct um_trace *t = load(names[i]);

		for (size_t p = tap_few() ? i % 3 : 0; p < 3; p += (size_t)tap_step(3)) {
			check(names[i], t, profiles[p], 66);
			if (!tap_few())
				check(names[i], t, profiles[p], 50);
		}
		um_trace_free(t);
	}
	if (!tap_few())
		check_paged();
	return tap_done();
}
