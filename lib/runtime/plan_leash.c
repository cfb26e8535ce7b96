/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_leash.h"

static void pay_off(struct um_plan_leash *l, uint64_t now_ns)
{
	uint64_t paid = now_ns > l->at_ns ? (now_ns - l->at_ns) / 100 * UM_PLAN_LEASH_PERCENT : 0;

	l->debt_ns -= paid < l->debt_ns ? paid : l->debt_ns;
	l->at_ns = now_ns;
}

void um_plan_leash_spend(struct um_plan_leash *l, uint64_t now_ns, uint64_t cpu_ns)
{
	pay_off(l, now_ns);
	l->debt_ns += cpu_ns;
	if (cpu_ns > l->most_ns)
		l->most_ns = cpu_ns;
}

int um_plan_leash_follow(struct um_plan_leash *l)
{
	return ++l->followed >= UM_PLAN_LEASH_PAYS;
}

void um_plan_leash_end(struct um_plan_leash *l, int had)
{
	if (l->followed >= UM_PLAN_LEASH_PAYS)
		l->repetitions = 0;
	else if (had && l->repetitions < UM_PLAN_LEASH_REPETITIONS)
		l->repetitions = 2 * l->repetitions + 1;
	l->followed = 0;
}

int um_plan_leash_allows(struct um_plan_leash *l, uint64_t now_ns)
{
	uint64_t allowance = UM_PLAN_LEASH_FREE_PLANS * l->most_ns;

	if (!l->debt_ns)
		return 1;
	pay_off(l, now_ns);
	return l->debt_ns <= (allowance > UM_PLAN_LEASH_FREE_NS ? allowance : UM_PLAN_LEASH_FREE_NS);
}
