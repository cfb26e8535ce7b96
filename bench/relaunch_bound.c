/* SPDX-License-Identifier: Apache-2.0
 *
 * relaunch_bound.c - plans with relaunches beside the bound of plans with the same relaunches
 *
 *     bench-relaunch-bound FILE.umplan...
 *
 * The iteration with the plan's relaunches as operations, and with its scratch memory, is bounded without further
 * relaunches: what the plan takes beyond that is lost by its copies, the rest by the choice of relaunches. Prints a
 * line a plan: both times in ms, and their ratio.
 */
#include "bound/bound.h"
#include "bound/bound_lp.h"
#include "io/plan_file.h"
#include "model/plan_unfold.h"

#include <stdio.h>

#define SECONDS 60

static int show(const char *file)
{
	struct bound_request r = {.duplex = 1, .seconds = SECONDS};
	struct um_unfolded_plan u;
	struct bound_result out;
	struct um_plan p;
	struct um_diag diag;
	char why[256];
	int err;

	um_plan_init(&p);
	err = um_plan_read(file, &p, &diag);
	if (err) {
		fprintf(stderr, "relaunch_bound: %s: not a plan\n", file);
		return err;
	}
	err = um_plan_unfold(&p, &u, why, sizeof why);
	if (!err) {
		r.sched = &u.plan.sched;
		r.budget = p.budget;
		r.h2d = (double)p.h2d;
		r.d2h = (double)p.d2h;
		err = bound_find(&r, &out);
		um_unfolded_plan_fini(&u);
	}
	if (err)
		fprintf(stderr, "%s: no bound (%d)\n", file, err);
	else
		printf("%.3f %.3f %.3f\n", (double)p.predicted_ns / 1e6, (double)out.ns / 1e6,
		       (double)p.predicted_ns / (double)out.ns);
	um_plan_fini(&p);
	return err;
}

int main(int argc, char **argv)
{
	int bad = 0;

	if (bound_lp_load()) {
		fputs("relaunch_bound: no LP solver is installed\n", stderr);
		return 1;
	}
	for (int i = 1; i < argc; i++)
		bad |= show(argv[i]) != 0;
	return bad;
}
