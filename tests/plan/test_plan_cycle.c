/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles over equal tensors, few of which fit: while an op runs, one tensor leaves and another one comes. A byte is a
 * nanosecond on the link.
 */
#include "fixture/plan_fixture.h"
#include "tap.h"

#include <math.h>

/* Plan / bound with room for `room` of n tensors. */
static double measure(int n, uint64_t bytes, int room, char access, uint64_t ns)
{
	struct um_plan plan;
	struct um_plan_request r;
	struct um_schedule s = {0};
	double x = 0;

	fx_cycle(&s, n, bytes, access, ns);
	r = fx_request(&s, (uint64_t)room * bytes);
	if (!fx_build(&r, &plan, NULL, NULL))
		x = (double)plan.predicted_ns / (double)plan.bound_ns;
	um_plan_fini(&plan);
	um_schedule_fini(&s);
	return x;
}

/* Ops that take `share` of a copy's time. `mean`, `worst`: limits on plan / bound. */
static void sweep(char access, double share, double mean, double worst)
{
	static const int count[] = {8, 24, 64}, mib[] = {4, 8, 32}, room[] = {3, 4, 5, 8, 12};
	int n = 0, failed = 0;
	double sum = 0, most = 0;

	for (int i = 0; i < 3 * 3 * 5; i++) {
		int tensors = count[i % 3], fit = room[i / 9];
		uint64_t bytes = (uint64_t)mib[i / 3 % 3] * FX_MIB;
		double x;

		if (fit >= tensors)
			continue;
		x = measure(tensors, bytes, fit, access, (uint64_t)(share * (double)bytes));
		n++;
		failed += x == 0;
		sum += x > 0 ? log(x) : 0;
		most = x > most ? x : most;
	}
	is_int(failed, 0, "%d cycles '%c' of ops that take %.2f of a copy are planned", n, access, share);
	ok(exp(sum / n) <= mean, "the plans take %.3f of their bounds by geometric mean", exp(sum / n));
	ok(most <= worst, "and %.3f at worst", most);
}

int main(void)
{
	sweep('u', 0.3, 1.1, 1.4);
	sweep('u', 0.77, 1.04, 1.16);
	sweep('u', 1.2, 1.001, 1.005);
	sweep('r', 0.77, 1.04, 1.12);
	return tap_done();
}
