/* SPDX-License-Identifier: Apache-2.0 */
#include "scheme_case.h"

#include "plan/place.h"

void scheme_case_init(struct scheme_case *x, const struct um_schedule *s, int32_t capacity)
{
	struct um_plan_request r = fx_request(s, (uint64_t)capacity * B);
	uint64_t grow;

	memset(x, 0, sizeof *x);
	if (um_schedule_copy(&x->sched, s) || um_place_build(&r, &x->sched, &grow) ||
	    um_blocks_build(&x->blocks, &x->sched, NULL))
		tap_bail("no memory");
	x->keep_resident = calloc(x->blocks.n_visits + 1ull, 1);
	x->clock = calloc(s->ops.n + 1, sizeof *x->clock);
	if (!x->keep_resident || !x->clock || um_scheme_result_init(&x->a, &x->blocks, x->keep_resident))
		tap_bail("no memory");
	for (size_t i = 0; i < s->ops.n; i++)
		x->clock[i + 1] = x->clock[i] + s->ops.at[i].ns;
	x->s = (struct um_scheme_input){.b = &x->blocks,
					.sched = &x->sched,
					.clock = x->clock,
					.carry = {{r.budget, 1000000000, 1000000000, 1, 0}, capacity, 4, NULL}};
}

void scheme_case_fini(struct scheme_case *x)
{
	um_scheme_result_fini(&x->a);
	um_blocks_fini(&x->blocks);
	um_schedule_fini(&x->sched);
	free(x->keep_resident);
	free(x->clock);
}

int scheme_plan(struct scheme_plan *p, const struct um_schedule *s, const char *scheme, uint64_t budget)
{
	struct um_plan_request r = fx_request(s, budget);
	uint64_t grow;
	int err;

	memset(p, 0, sizeof *p);
	um_plan_init(&p->plan);
	r.strategy = scheme;
	err = um_plan_build(&r, &p->plan, &grow, p->why, sizeof p->why);
	if (!err && um_plan_check(&p->plan, &p->f, p->why, sizeof p->why))
		err = -1;
	if (err)
		diag("%s", p->why);
	return err;
}

void scheme_plan_fini(struct scheme_plan *p)
{
	um_plan_fini(&p->plan);
}

int scheme_leaves(const struct scheme_plan *p, uint32_t slot)
{
	for (size_t i = 0; i < p->plan.hints.n; i++)
		if (p->plan.hints.at[i].kind == UM_HINT_EVICT && p->plan.hints.at[i].slot == slot)
			return 1;
	return 0;
}

int32_t scheme_returns_after(const struct scheme_plan *p, uint32_t slot)
{
	int32_t after = -2;

	for (size_t i = 0; i < p->plan.hints.n; i++)
		if (p->plan.hints.at[i].kind == UM_HINT_PREFETCH && p->plan.hints.at[i].slot == slot)
			after = p->plan.hints.at[i].after;
	return after;
}

const char *scheme_launched_again(const struct um_schedule *s, const char *scheme, uint64_t budget)
{
	static char text[100];
	struct um_plan_request r = fx_request(s, budget);
	struct um_plan_figures f;
	struct um_plan p;
	int at = 0;

	r.strategy = scheme;
	r.recompute = 1;
	text[0] = '\0';
	um_plan_init(&p);
	if (um_plan_build(&r, &p, NULL, NULL, 0) || um_plan_check(&p, &f, NULL, 0))
		at = snprintf(text, sizeof text, "no plan");
	for (size_t i = 0; i < p.hints.n; i++)
		if (p.hints.at[i].kind == UM_HINT_RECOMPUTE)
			at += snprintf(text + at, sizeof text - (size_t)at, "%s%u", at ? " " : "", p.hints.at[i].slot);
	um_plan_fini(&p);
	return text;
}
