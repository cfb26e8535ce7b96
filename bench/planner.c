/* SPDX-License-Identifier: Apache-2.0
 *
 * planner.c - what plans are worth: for a recorded workload, a device and budgets, one line each
 *
 *     planner TRACE PROFILE RATIO...     budget = most bytes alive at once / RATIO
 *
 * What planning takes is time of the processor, so that what else runs does not count.
 * The link is taken at its full rate in both directions at once (duplex 1, eta 1), as the plan's own measure has it.
 */
#include "fixture/plan_fixture.h"

#include "base/clock.h"

#include <stdio.h>

static double now_ms(void)
{
	return (double)um_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

static void line(const char *trace, const struct um_schedule *s, const struct um_profile *profile, double ratio)
{
	struct um_plan_request r = fx_request(s, (uint64_t)((double)fx_peak(s) / ratio));
	const char *name = strrchr(trace, '/') ? strrchr(trace, '/') + 1 : trace;
	struct um_plan p;
	struct um_plan_figures f;
	char why[200] = "";
	double begin, best = 1e18;
	uint64_t grow;
	int err = 0;

	r.profile = profile;
	/* The least of three: what else runs here only adds. */
	for (int i = 0; i < 3 && !err; i++) {
		um_plan_init(&p);
		begin = now_ms();
		err = um_plan_build(&r, &p, &grow, why, sizeof why);
		begin = now_ms() - begin;
		best = begin < best ? begin : best;
		if (!err)
			err = um_plan_check(&p, &f, why, sizeof why);
		if (i < 2)
			um_plan_fini(&p);
	}
	if (err)
		printf("%-28.*s %-8s %5.2f  %s\n", (int)strcspn(name, "."), name, profile->name, ratio, why);
	else
		printf("%-28.*s %-8s %5.2f %9.3f %9.3f %8.1f %8.1f %7zu %9.1f\n", (int)strcspn(name, "."), name,
		       profile->name, ratio, (double)p.predicted_ns / (double)p.in_core_ns,
		       (double)p.predicted_ns / (double)p.bound_ns, (double)f.h2d_bytes / 1048576,
		       (double)f.d2h_bytes / 1048576, p.hints.n, best);
	um_plan_fini(&p);
}

int main(int argc, char **argv)
{
	struct um_schedule s = {0};
	const struct um_profile *known;
	struct um_profile profile;

	if (argc < 4)
		return fprintf(stderr, "usage: planner TRACE PROFILE RATIO...\n"), 2;
	known = um_profile_find(argv[2]);
	if (!known)
		return fprintf(stderr, "planner: no profile %s\n", argv[2]), 2;
	profile = *known;
	profile.duplex = profile.duplex_evict = profile.eta = 1;
	if (fx_trace(&s, argv[1]))
		return 1;
	for (size_t i = 0; i < s.ops.n; i++)
		s.ops.at[i].ns = um_profile_op_ns(&profile, &s.ops.at[i].cost, um_sched_touched(&s, &s.ops.at[i]));
	for (int i = 3; i < argc; i++)
		line(argv[1], &s, &profile, atof(argv[i]));
	um_schedule_fini(&s);
	return 0;
}
