/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates of a search beside the plans that it makes, for programs by chance.
 */
#include "fixture/plan_fixture.h"
#include "plan/blocks.h"
#include "plan/search.h"
#include "tap.h"

#include <math.h>

static int has_paged(const struct um_plan *p)
{
	size_t i = 0;

	while (i < p->sched.ops.n && !p->sched.ops.at[i].paged)
		i++;
	return i < p->sched.ops.n;
}

/* Estimates with a limit out of reach that are no better and need no more work, and those that need less; estimates
 * with a limit in reach that are as without. */
static int no_better, saved, equal;

/* Limits end an estimate that cannot reach them, and no other one. */
static void limit(const struct um_blocks *b, struct um_plan *p, uint64_t ns, uint64_t work)
{
	uint64_t other, less = 0, same = 0;

	if (um_search_estimate(b, p, 6, p->in_core_ns / 2, &other, &less))
		tap_bail("no estimate");
	no_better += other >= ns && less <= work;
	if (um_search_estimate(b, p, 6, ns * 2, &other, &same))
		tap_bail("no estimate");
	equal += other == ns && same == work;
	saved += less < work;
}

/* Estimates / prediction, by 6 rounds and by the first one; 0: there is nothing to compare. */
static void compare(uint64_t seed, double x[2])
{
	struct um_schedule s = {0};
	struct um_blocks b = {0};
	struct um_plan p;
	struct um_plan_request r;

	fx_net(&s, seed);
	r = fx_request(&s, fx_peak(&s) / 2);
	um_plan_init(&p);
	x[0] = x[1] = 0;
	if (!um_plan_build(&r, &p, NULL, NULL, 0) && p.predicted_ns > p.in_core_ns && !has_paged(&p)) {
		if (um_blocks_build(&b, &p.sched, NULL))
			tap_bail("no memory");
		for (int i = 0; i < 2; i++) {
			uint64_t ns, work = 0;

			if (um_search_estimate(&b, &p, i ? 1 : 6, UINT64_MAX, &ns, &work))
				tap_bail("no estimate");
			if (!i)
				limit(&b, &p, ns, work);
			x[i] = (double)ns / (double)p.predicted_ns;
		}
	}
	um_blocks_fini(&b);
	um_plan_fini(&p);
	um_schedule_fini(&s);
}

int main(void)
{
	double sum = 0, most = 0, least = 1, first = 0;
	int n = 0, step = tap_step(3);

	for (uint64_t seed = 1; seed <= 60; seed += (uint64_t)step) {
		double x[2];

		compare(seed, x);
		if (x[0] == 0)
			continue;
		n++;
		sum += log(x[0]);
		first += log(x[1]);
		most = x[0] > most ? x[0] : most;
		least = x[0] < least ? x[0] : least;
	}
	ok(n > 40 / step, "%d programs need copies", n);
	ok(exp(sum / n) < 1.05, "their estimates are %.3f of the predictions by geometric mean", exp(sum / n));
	ok(least > 0.99 && most < 1.1, "and between %.3f and %.3f", least, most);
	ok(sum < first, "the first round alone estimates %.3f", exp(first / n));
	is_int(no_better, n, "an estimate whose limit is out of reach needs no more work");
	ok(saved > n / 4, "%d of them need less work", saved);
	is_int(equal, n, "a limit in reach changes no estimate");
	return tap_done();
}
