/* SPDX-License-Identifier: Apache-2.0
 *
 * The bound of the tool: small schedules whose best time is known, then schedules by chance: never above a plan that
 * was proved, never below the planner's own bound where every moment is a cut, never lower for being finer. A byte is
 * a nanosecond on the link.
 */
#include "bound/bound.h"
#include "bound/bound_lp.h"
#include "plan/blocks.h"
#include "plan/bound.h"
#include "fixture/plan_fixture.h"
#include "tap.h"

#define B UM_BLOCK_BYTES

static struct bound_result out;

static int recompute, copies;

static uint64_t find_in(const struct um_schedule *s, uint64_t budget, double duplex, int all, double seconds)
{
	struct bound_request r = {.sched = s,
				  .recompute = recompute,
				  .copies = copies,
				  .budget = budget,
				  .h2d = 1e9,
				  .d2h = 1e9,
				  .duplex = duplex,
				  .all = all,
				  .seconds = seconds};

	return bound_find(&r, &out) ? 0 : out.ns;
}

static uint64_t find(const struct um_schedule *s, uint64_t budget, double duplex, int all)
{
	return find_in(s, budget, duplex, all, 0);
}

/* As near as the bound promises: below by a ten-thousandth of the copies and a nanosecond, never above. */
static void near(uint64_t got, uint64_t want, const char *what)
{
	int good = got <= want && want - got <= want / 4000 + 1;

	ok(good, "%s", what);
	if (!good)
		diag("%llu, by hand %llu", (unsigned long long)got, (unsigned long long)want);
}

/* Written first, read last, with one op between that needs all the room: out before it, in behind it. */
static void out_and_in(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, 4 * B, 0, 3);
	fx_slot(&s, 8 * B, 1, 2);
	fx_op(&s, "write", 100, "w0");
	fx_op(&s, "big", 1000, "w1");
	fx_op(&s, "read", 10, "r0");
	near(find(&s, 8 * B, 1, 1), 1110 + 8 * B, "out before the op that needs the room, in behind it");
	near(find(&s, 10 * B, 1, 1), 1110 + 4 * B, "half of it, where half of it fits");
	near(find(&s, 10 * B, 0, 1), 1110 + 4 * B, "one direction at a time is no matter here");
	is_u64(find(&s, 12 * B, 1, 1), 1110, "nothing, where all fits");
	s.uses.at[2].access = UM_WRITE;
	is_u64(find(&s, 8 * B, 1, 1), 1110, "nothing, where it is overwritten");
	s.uses.at[2].access = UM_READ;
	s.uses.at[0].dead_after = 1;
	is_u64(find(&s, 8 * B, 1, 1), 1110, "nothing, where it is dead");
	is_u64(find(&s, 7 * B, 1, 1), 0, "none, where an op does not fit");
	um_schedule_fini(&s);
}

/* What is only read comes back and is never copied out; long ops hide it. */
static void clean(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, 4 * B, -1, -1);
	fx_slot(&s, 8 * B, 1, 2);
	fx_op(&s, "read", 100, "r0");
	fx_op(&s, "big", 1000, "w1");
	fx_op(&s, "rest", 10, "");
	near(find(&s, 8 * B, 1, 1), 1100 + 4 * B, "only in, and while the last op runs");
	copies = 1;
	near(find(&s, 8 * B, 1, 1), 1100 + 4 * B, "what no op writes is not copied out, as it is read mostly");
	copies = 0;
	s.ops.at[2].ns = 3 * B;
	near(find(&s, 8 * B, 1, 1), 1100 + 4 * B, "a longer one hides more");
	s.ops.at[2].ns = 5 * B;
	is_u64(find(&s, 8 * B, 1, 1), 1100 + 5 * B, "an op as long as all copies hides all of them");
	s.uses.at[0].access = UM_UPDATE;
	near(find(&s, 8 * B, 1, 1), 1100 + 9 * B, "updated, it has to leave as well");
	um_schedule_fini(&s);
}

/* The host's copy stays good while nothing writes: out once, in twice. */
static void once_out(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, 4 * B, 0, 5);
	fx_slot(&s, 8 * B, 1, 2);
	fx_slot(&s, 8 * B, 3, 4);
	fx_op(&s, "write", 100, "w0");
	fx_op(&s, "big", 100, "w1");
	fx_op(&s, "read", 100, "r0");
	fx_op(&s, "big", 100, "w2");
	fx_op(&s, "read", 100, "r0");
	near(find(&s, 8 * B, 1, 1), 500 + 12 * B, "copied out once, in twice");
	copies = 1;
	near(find(&s, 8 * B, 1, 1), 500 + 16 * B, "as by the driver, out twice");
	near(find(&s, 8 * B, 1, 0), 500 + 16 * B, "with few cuts as well");
	copies = 0;
	s.uses.at[2].access = UM_UPDATE;
	near(find(&s, 8 * B, 1, 1), 500 + 16 * B, "written between, out twice");
	um_schedule_fini(&s);
}

/* Two tensors in turn around the circle, room for one: each in and out in every iteration. */
static void both_ways(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, 4 * B, -1, -1);
	fx_slot(&s, 4 * B, -1, -1);
	fx_op(&s, "a", 100, "u0");
	fx_op(&s, "b", 100, "u1");
	near(find(&s, 4 * B, 1, 1), 200 + 8 * B, "room for one: they change places, piece by piece, twice");
	near(find(&s, 6 * B, 1, 1), 200 + 4 * B, "room for half as much more: half of it moves");
	near(find(&s, 6 * B, 0, 1), 200 + 8 * B, "one direction at a time: twice as long");
	near(find(&s, 6 * B, 0.5, 1), 200 + 8 * B * 2 / 3, "half duplex: between them");
	um_schedule_fini(&s);
}

static int relaunch(struct um_schedule *s, uint32_t op, uint32_t slot)
{
	s->ops.at[op].relaunchable = 1;
	s->ops.at[op].first_relaunch = (uint32_t)s->relaunch.n;
	s->ops.at[op].n_relaunch = 1;
	return um_vec_push(&s->relaunch, slot);
}

/* In place of two copies the writer's time once more, if it may run again. */
static void computed_again(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, 4 * B, 0, 5);
	fx_slot(&s, 8 * B, 1, 2);
	fx_slot(&s, 8 * B, 3, 4);
	fx_op(&s, "write", 100000, "w0");
	fx_op(&s, "big", 100000, "w1");
	fx_op(&s, "read", 10, "r0");
	fx_op(&s, "rest", 10, "");
	fx_op(&s, "rest", 10, "");
	recompute = 1;
	near(find(&s, 8 * B, 1, 1), 200030 + 8 * B, "an op that may not run again: copies");
	is_int(relaunch(&s, 0, 0), 0, "the op may be launched again now");
	near(find(&s, 8 * B, 1, 1), 300030, "its time instead");
	near(find(&s, 8 * B, 1, 0), 300030, "with few cuts as well");
	near(find(&s, 10 * B, 1, 1), 250030, "half of it, where half of it fits");
	s.ops.at[0].ns = 20 * B;
	near(find(&s, 8 * B, 1, 1), (20 * B + 100030) + 4 * B * 5 / 3, "slow: a sixth, while the rest is copied in");
	s.ops.at[0].ns = 1000;
	fx_op(&s, "big", 100, "w2");
	s.slots.at[0].death = 7;
	s.slots.at[2].birth = 5;
	s.slots.at[2].death = 6;
	fx_op(&s, "read", 10, "r0");
	near(find(&s, 8 * B, 1, 1), 103140, "in two gaps: twice");
	recompute = 0;
	near(find(&s, 8 * B, 1, 1), 101140 + 12 * B, "not asked for: out once, in twice");
	um_schedule_fini(&s);
}

/* All that wrote the content since it was last overwritten runs again. */
static void chain_again(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, 4 * B, 0, 4);
	fx_slot(&s, 8 * B, 2, 3);
	fx_op(&s, "write", 1000, "w0");
	fx_relaunch(&s, "0");
	fx_op(&s, "update", 300, "u0");
	fx_relaunch(&s, "0");
	fx_op(&s, "big", 1000, "w1");
	fx_op(&s, "read", 10, "r0");
	recompute = 1;
	near(find(&s, 8 * B, 1, 1), 2310 + 1300, "what was updated in place takes the time of all its writers");
	near(find(&s, 8 * B, 1, 0), 2310 + 1300, "with few cuts as well");
	s.ops.at[0].relaunchable = 0;
	near(find(&s, 8 * B, 1, 1), 2310 + 8 * B, "it is copied where one of them may not run again");
	s.uses.at[1].access = UM_WRITE;
	near(find(&s, 8 * B, 1, 1), 2310 + 300, "writers before it was overwritten do not count");
	recompute = 0;
	um_schedule_fini(&s);
}

/* What the launches read is made anew as well, where it is lost. */
static void inputs_again(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, 4 * B, 0, 2);
	fx_slot(&s, 4 * B, 1, 5);
	fx_slot(&s, 8 * B, 2, 3);
	fx_op(&s, "source", 1000, "w0");
	fx_relaunch(&s, "0");
	fx_op(&s, "make", 300, "r0 w1");
	fx_relaunch(&s, "1");
	fx_op(&s, "big", 1000, "w2");
	fx_op(&s, "read", 10, "r1");
	recompute = 1;
	near(find(&s, 8 * B, 1, 1), 2310 + 1300, "an input that was freed is made anew");
	near(find(&s, 8 * B, 1, 0), 2310 + 1300, "with few cuts as well");
	s.slots.at[0].death = 4;
	near(find(&s, 8 * B, 1, 1), 2310 + 300, "one that is alive is assumed resident");
	fx_op(&s, "big", 1000, "w2");
	s.slots.at[2].death = 5;
	fx_op(&s, "read", 10, "r1");
	s.slots.at[1].death = 6;
	s.slots.at[0].death = 2;
	near(find(&s, 8 * B, 1, 1), 3320 + 1000 + 2 * 300, "scratch memory may keep it for a second gap");
	recompute = 0;
	um_schedule_fini(&s);
}

static void overwritten_input(void)
{
	struct um_schedule s = {0};

	fx_slot(&s, 4 * B, 0, 4);
	fx_slot(&s, 4 * B, 1, 6);
	fx_slot(&s, 8 * B, 4, 5);
	fx_op(&s, "source", 1000, "w0");
	fx_relaunch(&s, "0");
	fx_op(&s, "make", 300, "r0 w1");
	fx_relaunch(&s, "1");
	fx_op(&s, "overwrite", 10, "w0");
	fx_op(&s, "read", 10, "r1");
	fx_op(&s, "big", 1000, "w2");
	fx_op(&s, "read", 10, "r1");
	recompute = 1;
	near(find(&s, 8 * B, 1, 1), 2330 + 1300, "an input that was overwritten is made anew");
	s.ops.at[0].relaunchable = 0;
	near(find(&s, 8 * B, 1, 1), 2330 + 8 * B, "where that is impossible, copies");
	s.uses.at[3].access = UM_READ;
	s.slots.at[0].death = 5;
	near(find(&s, 8 * B, 1, 1), 2330 + 300, "one that was only read since is not lost");
	s.uses.at[3].access = UM_WRITE;
	s.uses.at[1].access = UM_UPDATE;
	near(find(&s, 8 * B, 1, 1), 2330 + 300, "side state is not read again");
	recompute = 0;
	um_schedule_fini(&s);
}

/* Proved plans that launch ops again. */
static void again_by_chance(void)
{
	int tried = 0, above = 0, lower = 0, step = tap_step(9);

	for (uint64_t seed = 1; seed <= 60; seed += (uint64_t)step) {
		struct um_schedule s = {0};
		struct um_plan_figures f;
		struct um_plan p;
		uint64_t draw = seed, grow, fine, coarse, budget;

		if (seed % 3)
			fx_net(&s, seed);
		else
			fx_random(&s, seed);
		if (seed % 3 == 0)
			fx_may_relaunch(&s, seed);
		budget = fx_peak(&s) / 8 * (3 + fx_draw(&draw, 4));
		struct um_plan_request q = fx_request(&s, budget);

		q.recompute = 1;
		um_plan_init(&p);
		if (!um_plan_build(&q, &p, &grow, NULL, 0) && !um_plan_check(&p, &f, NULL, 0) && f.again_ns) {
			recompute = 1;
			coarse = find(&s, budget, 1, 0);
			fine = seed % 4 ? coarse : find(&s, budget, 1, 1);
			recompute = 0;
			tried++;
			above += fine > f.ns || coarse > f.ns;
			lower += find(&s, budget, 1, 0) > coarse;
			if (fine > f.ns || coarse > f.ns)
				diag("seed %llu: %llu, coarse %llu, a plan takes %llu", (unsigned long long)seed,
				     (unsigned long long)fine, (unsigned long long)coarse, (unsigned long long)f.ns);
		}
		um_plan_fini(&p);
		um_schedule_fini(&s);
	}
	ok(tried > 20 / step, "%d plans that launch ops again are tried", tried);
	is_int(above, 0, "the bound is never above what such a plan takes");
	ok(lower > 0 || step > 1, "without relaunches it is higher in %d cases", lower);
}

/* Of such plans only the trivial bound is known. */
static int has_paged_ops(const struct um_plan *p)
{
	int paged = 0;

	for (size_t i = 0; i < p->sched.ops.n; i++)
		paged |= p->sched.ops.at[i].paged;
	return paged;
}

static void by_chance(void)
{
	int above = 0, below = 0, down = 0, lost = 0, fewer = 0, more = 0, tried = 0, cheaper = 0, dearer = 0;
	int step = tap_step(9);

	for (uint64_t seed = 1; seed <= 150; seed += (uint64_t)step) {
		struct um_schedule s = {0};
		struct um_plan p;
		struct um_plan_figures f;
		uint64_t r = seed, fine, coarse, hurry, again, quick, grow, copied;

		fx_random(&s, seed);
		if (seed % 2 == 0)
			fx_thin(&s, seed);
		uint64_t budget = fx_peak(&s) * (4 + fx_draw(&r, 6)) / 10;
		struct um_plan_request q = fx_request(&s, budget);

		um_plan_init(&p);
		if (!um_plan_build(&q, &p, &grow, NULL, 0) && !um_plan_check(&p, &f, NULL, 0) && !has_paged_ops(&p)) {
			quick = p.bound_ns;
			fine = find(&p.sched, budget, 1, 1);
			coarse = find(&p.sched, budget, 1, 0);
			tried++;
			above += fine > f.ns || coarse > f.ns;
			copies = 1;
			copied = find(&p.sched, budget, 1, 1);
			copies = 0;
			cheaper += copied + fine / 10000 < fine;
			dearer += copied > fine + fine / 1000;
			below += fine + 1 < quick;
			down += coarse > fine + fine / 10000;
			for (unsigned i = 1; i < out.rounds; i++)
				down += out.by_round[i] < out.by_round[i - 1];
			/* With no time to solve: what an unsolved program proves. */
			hurry = find_in(&p.sched, budget, 1, 0, 1e-9);
			lost += hurry < p.in_core_ns || hurry > f.ns || !out.cut_short;
			/* All that is overwritten may be computed again. */
			for (uint32_t i = 0; i < p.sched.ops.n; i++)
				for (uint32_t u = 0; u < p.sched.ops.at[i].n_uses; u++) {
					const struct um_sched_use *x =
						&p.sched.uses.at[p.sched.ops.at[i].first_use + u];

					if (x->access == UM_WRITE && relaunch(&p.sched, i, x->slot))
						lost++;
				}
			recompute = 1;
			again = find(&p.sched, budget, 1, 1);
			recompute = 0;
			fewer += again < fine;
			more += again > fine + fine / 10000 || again < p.in_core_ns;
			if (fine > f.ns || fine + 1 < quick || coarse > fine + fine / 10000)
				diag("seed %llu: %llu, coarse %llu, planner's %llu, a plan takes %llu, core %llu",
				     (unsigned long long)seed, (unsigned long long)fine, (unsigned long long)coarse,
				     (unsigned long long)quick, (unsigned long long)f.ns,
				     (unsigned long long)p.in_core_ns);
		}
		um_plan_fini(&p);
		um_schedule_fini(&s);
	}
	ok(tried > 50 / step, "%d random schedules are tried", tried);
	is_int(above, 0, "never above what a plan takes");
	is_int(below, 0, "the bound with all cuts is never below the planner's own");
	is_int(down, 0, "finer cuts never lower it");
	is_int(cheaper, 0, "more copies never lower it");
	ok(dearer > 0 || step > 1, "more copies raise the bound %d times", dearer);
	is_int(more, 0, "computing again never raises it, nor takes it below what ops take");
	ok(fewer > 0 || step > 1, "computing again lowers the bound %d times", fewer);
	is_int(lost, 0, "cut short, between what ops take and what a plan takes");
}

int main(void)
{
	if (bound_lp_load())
		tap_skip_all("no LP solver is installed");
	out_and_in();
	clean();
	once_out();
	both_ways();
	computed_again();
	chain_again();
	inputs_again();
	overwritten_input();
	by_chance();
	again_by_chance();
	return tap_done();
}
