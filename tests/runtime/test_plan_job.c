/* SPDX-License-Identifier: Apache-2.0
 *
 * A planning job by itself: its stages, and how it ends early. tests/runtime/plan_job_memory.sh runs it with an
 * argument, and allocations failing in turn: status 3 says that something was lost or half made.
 */
#include "runtime/plan_job.h"

#include "fixture/plan_fixture.h"
#include "tap.h"

#include <errno.h>

#define ARENA (1ull << 40)

long failmalloc_live(void) __attribute__((weak));

static long live(void)
{
	return failmalloc_live ? failmalloc_live() : 0;
}

static uint64_t clock_ms, tick_ms;
static struct um_plan_job *cancels; /* by the clock, while the search looks at it */

static uint64_t ticking(void)
{
	if (cancels && clock_ms > 5)
		atomic_store(&cancels->cancelled, 1);
	return clock_ms += tick_ms;
}

static void fill(struct um_plan_job *j, uint64_t seed)
{
	um_plan_job_init(j);
	fx_random(&j->sched, seed);
	j->device.profile = *um_profile_find("v100");
	j->device.budget = fx_peak(&j->sched) / 2 + 8 * FX_MIB;
	j->device.can_discard = 1;
	j->strategy = "lookahead";
	j->wall_ms = ticking;
	tick_ms = 0;
}

static void stages(void)
{
	struct um_plan_job j;
	uint64_t grow, ns;

	fill(&j, 24);
	is_int(um_plan_job_search(&j), 0, "a search finds a plan");
	ok(j.grow > 0, "without rooms it needs memory");
	grow = j.grow;
	is_int(um_plan_job_move(&j, ARENA), 0, "the plan is moved there");
	for (size_t i = 0; i < j.plan.sched.slots.n; i++) {
		const struct um_slot *s = &j.plan.sched.slots.at[i];

		if (s->place != UINT64_MAX && (s->place < ARENA || s->place + s->bytes > ARENA + grow))
			tap_bail("a slot is outside");
	}
	is_int(um_plan_job_compile(&j), 0, "the moved plan is proved and compiled");
	ok(j.program.n_ops == j.sched.ops.n && j.plan.rehearsed_ns && j.figures.peak_bytes <= j.device.budget,
	   "the program has all ops, the plan a rehearsed time and figures within the budget");
	ns = j.plan.rehearsed_ns;
	is_int(um_plan_compile_again(&j.device, &j.plan, &j.program), 0, "it is compiled again");
	ok(j.program.n_ops == j.sched.ops.n && j.plan.rehearsed_ns == ns, "with the same policies");
	um_plan_job_fini(&j);
}

static void ends(void)
{
	struct um_plan_job j;

	fill(&j, 24);
	j.most_ms = 60000;
	tick_ms = 50000;
	is_int(um_plan_job_search(&j), -ETIMEDOUT, "a search ends at its limit");
	ok(strstr(j.why, "longer than 60 s") != NULL, "it says so: %s", j.why);
	um_plan_job_fini(&j);

	fill(&j, 24);
	clock_ms = 0;
	tick_ms = 1;
	j.plan_ms = j.most_ms = 1000000;
	cancels = &j;
	is_int(um_plan_job_search(&j), -ECANCELED, "a search that is cancelled ends");
	ok(clock_ms < 100, "it ends at once: the clock was read %d times", (int)clock_ms);
	cancels = NULL;
	um_plan_job_fini(&j);
}

/* 1: an error other than that memory runs out, or something is lost. */
static int runs_out(void)
{
	long before = live();
	struct um_plan_job j;
	int err;

	fill(&j, 20);
	err = um_plan_job_search(&j);
	if (!err)
		err = um_plan_job_move(&j, ARENA);
	if (!err)
		err = um_plan_job_compile(&j);
	if (!err) {
		err = um_plan_compile_again(&j.device, &j.plan, &j.program);
		if (!j.program.n_ops)
			err = -EIO;
	}
	um_plan_job_fini(&j);
	return (err && err != -ENOMEM) || live() != before;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return runs_out() && argv[1] ? 3 : 0;
	stages();
	ends();
	ok(!runs_out(), "a job leaves nothing behind");
	return tap_done();
}
