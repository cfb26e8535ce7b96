/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that change from iteration to iteration, and the iterations before a plan is followed: lookahead is not
 * slower there than prefetch-on-use or the driver alone.
 */
#include "io/umtrace.h"
#include "play/player.h"

#include "tap.h"

#include <stdlib.h>

#define ITERATIONS 16

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
			never_behind(traces[i].name, profiles[k], 1.5, traces[i].cold);
			never_behind(traces[i].name, profiles[k], 2, traces[i].cold);
		}
	return tap_done();
}
