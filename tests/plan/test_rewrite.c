/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterations that are rewritten with relaunches: small ones by hand, then many by chance, each of which must end with
 * the content that it had without: the plan of swaps for the rewritten one, folded back, is proved. A byte is a
 * nanosecond on the link.
 */
#include "fixture/plan_fixture.h"
#include "model/plan_unfold.h"
#include "plan/blocks.h"
#include "plan/paged.h"
#include "plan/rewrite.h"
#include "plan/search.h"
#include "replay/compiled_plan.h"
#include "tap.h"

#define MIB FX_MIB

static struct um_plan plan_;
static struct um_versions v;
static struct um_drops drops;
static struct um_rewritten w;

/* Takes the schedule. */
static void begin(struct um_schedule *s, uint64_t budget)
{
	um_plan_init(&plan_);
	plan_.sched = *s;
	plan_.budget = budget;
	plan_.h2d = plan_.d2h = 1000000000;
	for (size_t i = 0; i < s->slots.n; i++)
		plan_.sched.slots.at[i].place = i * 64 * MIB;
	if (um_versions_build(&v, &plan_.sched))
		tap_bail("no memory");
}

static void end(void)
{
	um_rewritten_fini(&w);
	um_drops_fini(&drops);
	um_versions_fini(&v);
	um_plan_fini(&plan_);
}

static int rewrite(uint32_t n)
{
	struct um_rewrite_rule rule = {.near_ns = 1000000, .scratch_from = MIB / 4, .scratch_at = 1ull << 40};

	return um_rewrite_build(&w, &plan_, &v, &drops, n, &rule);
}

static void add_drop(uint32_t slot, int32_t from, int32_t to)
{
	drops.at = realloc(drops.at, (drops.n + 1) * sizeof *drops.at);
	drops.at[drops.n++] = (struct um_drop){slot, from, to, plan_.sched.slots.at[slot].bytes, 0, 0};
}

/* "0 1 0+ 2": ops in order, relaunches with a plus. */
static const char *launches(void)
{
	static char text[400];
	int at = 0;

	for (size_t i = 0; i < w.plan.sched.ops.n; i++)
		at += snprintf(text + at, sizeof text - (size_t)at, "%s%d%s", i ? " " : "", w.launch[i].op,
			       w.launch[i].again ? "+" : "");
	return text;
}

/* Slot 0 stays, op i makes slot i + 1 from slot i, slot 4 is read by the last op. */
static void chain(struct um_schedule *s)
{
	fx_slot(s, MIB, -1, -1);
	fx_slot(s, MIB, 0, 5);
	fx_slot(s, MIB, 1, 5);
	fx_slot(s, MIB, 2, 4);
	fx_op(s, "a", 10, "r0 w1");
	fx_relaunch(s, "1");
	fx_op(s, "b", 10, "r1 w2");
	fx_relaunch(s, "2");
	fx_op(s, "c", 10, "r2 w3");
	fx_op(s, "d", 10, "r3 r2");
	fx_op(s, "e", 10, "r1");
}

static void by_hand(void)
{
	struct um_schedule s = {0};

	chain(&s);
	begin(&s, 100 * MIB);
	add_drop(1, 1, 4);
	is_int(rewrite(0), 0, "nothing is dropped");
	is_str(launches(), "0 1 2 3 4", "an iteration without drops stays as it is");
	um_rewritten_fini(&w);
	is_int(rewrite(1), 0, "a tensor is dropped");
	is_str(launches(), "0 1 2 3 0+ 4", "its writer is launched again before its next use");
	is_u64(w.again_ns, 10, "the time of relaunches is known");
	is_u64(w.plan.in_core_ns, 60, "the rewritten iteration takes longer");
	ok(w.plan.sched.uses.at[2].dead_after && !w.plan.sched.uses.at[0].dead_after,
	   "the dropped content is dead after its last use");
	um_rewritten_fini(&w);
	add_drop(2, 2, 3);
	is_int(rewrite(2), 0, "two tensors are dropped");
	is_str(launches(), "0 1 2 0+ 1+ 3 4", "what a relaunch reads returns before it");
	is_u64(w.plan.sched.slots.n, 4, "all is done in the memory of the tensors");
	is_int(w.plan.sched.slots.at[3].death, 6, "lifetimes are moved");
	end();
}

/* Slot 1 is freed before slot 2, which was made from it, is needed again. */
static void ghost(void)
{
	struct um_schedule s = {0};

	chain(&s);
	s.slots.at[1].death = 3;
	s.uses.at[s.ops.at[4].first_use].slot = 2;
	begin(&s, 100 * MIB);
	add_drop(2, 3, 4);
	is_int(rewrite(1), 0, "a tensor is made again from one that was freed");
	is_str(launches(), "0 1 2 3 0+ 1+ 4", "the freed one is made again, too");
	is_u64(w.plan.sched.slots.n, 5, "in scratch memory");
	is_u64(w.plan.sched.slots.at[4].of, 1, "of its size");
	is_int(w.plan.sched.slots.at[4].birth, 4, "which begins with the relaunch that writes it");
	is_int(w.plan.sched.slots.at[4].death, 6, "and ends with the one that reads it");
	ok(w.plan.sched.slots.at[4].place >= 1ull << 40, "scratch memory has a place behind all tensors");
	is_u64(w.scratch_bytes, UM_BLOCK_BYTES, "addresses for scratch memory are counted in blocks");
	is_int(um_rewritten_fold(&w, &plan_), 0, "the hints are moved into the plan of the program");
	is_u64(plan_.hints.n, 2, "each relaunch is a hint");
	ok(plan_.hints.at[0].kind == UM_HINT_RECOMPUTE && plan_.hints.at[0].slot == 0 && plan_.hints.at[0].at == 4,
	   "it names op and position");
	ok(plan_.hints.at[0].n_scratch == 1 && plan_.scratch.at[plan_.hints.at[0].first_scratch] == 4,
	   "it names its scratch slot");
	ok(plan_.sched.slots.n == 5 && plan_.sched.slots.at[4].birth == 4 && plan_.sched.slots.at[4].death == 5,
	   "the scratch slot lives around the op of the program");
	end();
}

/* --- room --------------------------------------------------------------------------------------------------------- */

/* Plans the rewritten iteration. 0; -E2BIG: an op or a burst does not fit. */
static int plan_swaps(char *why, size_t size)
{
	struct um_search_request request = {.part = 64};
	struct um_blocks blocks = {0};
	int err = um_blocks_build(&blocks, &w.plan.sched, NULL);
	int paged = err ? 0 : um_paged_mark(&blocks, &w.plan.sched, plan_.budget / UM_BLOCK_BYTES);

	if (!err)
		err = paged < 0 ? paged : paged ? -E2BIG : um_search_run(&blocks, &request, &w.plan, why, size);
	um_blocks_fini(&blocks);
	return err;
}

/* Plans the rewritten iteration for a budget of some blocks, and folds it. 0 or -errno; `*peak`: the blocks that are
 * resident at most. */
static int plan_blocks(uint64_t blocks, uint64_t *peak)
{
	struct um_unfolded_plan u;
	struct um_compiled_plan c;
	char why[300] = "";
	int err;

	*peak = 0;
	w.plan.budget = plan_.budget = blocks * UM_BLOCK_BYTES;
	err = plan_swaps(why, sizeof why);
	if (err)
		return err;
	um_compiled_plan_init(&c);
	if (um_rewritten_fold(&w, &plan_) || um_plan_unfold(&plan_, &u, why, sizeof why) ||
	    um_plan_prove(&u.plan, NULL, why, sizeof why) || um_compiled_plan_build(&u.plan, blocks, &c))
		tap_bail("the plan cannot be folded");
	*peak = c.peak;
	um_compiled_plan_fini(&c);
	um_unfolded_plan_fini(&u);
	return 0;
}

/* Slot 4 is born before a relaunch, in the memory of slot 2, which is freed there: nothing can be discarded in between,
 * and slot 3 has to leave for the relaunch. `b`: where slot 4 is touched first. */
static void born_before(int32_t b)
{
	struct um_schedule s = {0};
	uint64_t peak;

	fx_slot(&s, 2 * MIB, -1, -1);
	fx_slot(&s, 2 * MIB, 0, 5);
	fx_slot(&s, 2 * MIB, 1, 4);
	fx_slot(&s, 2 * MIB, 1, 5);
	fx_slot(&s, 2 * MIB, 4, 7);
	fx_op(&s, "make", 10, "r0 w1");
	fx_relaunch(&s, "1");
	fx_op(&s, "keep", 10, "w3");
	fx_op(&s, "use", 10, "r1 w2");
	fx_op(&s, "last", 10, "r2 r3");
	fx_op(&s, "next", 10, b == 4 ? "r1 r3 w4" : "r1 r3");
	fx_op(&s, "more", 10, b == 5 ? "w4" : "r4");
	fx_op(&s, "end", 10, "r4");
	if (um_schedule_merge_births(&s, NULL, 0, 1))
		tap_bail("no memory");
	begin(&s, 100 * MIB);
	plan_.sched.slots.at[4].place = plan_.sched.slots.at[2].place;
	add_drop(1, 2, 4);
	is_int(rewrite(1), 0, "a tensor is made again just after a birth");
	is_str(launches(), "0 1 2 3 0+ 4 5 6", "its writer is launched again");
	is_int(plan_blocks(3, &peak), 0, "there is a plan with room for the relaunch and that birth");
	is_u64(peak, 3, "no more is resident at once");
	end();
}

/* --- by chance ---------------------------------------------------------------------------------------------------- */

struct found {
	int planned, relaunches, scratch, unsound, late;
};

/* Drops a part of what may be dropped. */
static void try_part(uint64_t seed, uint32_t n, struct found *all)
{
	struct um_plan_figures f = {0};
	char why[300] = "";
	size_t slots = plan_.sched.slots.n;
	int err = rewrite(n);

	if (!err)
		err = plan_swaps(why, sizeof why);
	if (!err)
		err = um_rewritten_fold(&w, &plan_);
	if (!err) {
		all->planned++;
		all->relaunches += (int)(w.plan.sched.ops.n - plan_.sched.ops.n);
		all->scratch += plan_.sched.slots.n > slots;
		err = um_plan_check(&plan_, &f, why, sizeof why);
		all->unsound += err != 0;
		all->late += !err && f.ns != w.plan.predicted_ns;
	}
	if (err && err != -E2BIG)
		diag("seed %d, %u of %u: %d %s", (int)seed, n, drops.n, err, why);
	um_rewritten_fini(&w);
	um_vec_clear(&plan_.hints);
	plan_.sched.slots.n = slots;
}

static void by_chance(void)
{
	struct um_drops_rule rule = {.power = 0.5, .burst = 0.5, .near_ns = 1000000};
	struct found all = {0};
	int last = getenv("UM_TEST_ALL") ? 4000 : 400, dropped = 0, step = tap_step(13);

	for (uint64_t seed = 1; seed <= (uint64_t)last; seed += (uint64_t)step) {
		struct um_schedule s = {0};
		uint64_t r = seed;

		if (seed % 4) {
			fx_net(&s, seed);
		} else {
			fx_random(&s, seed);
			fx_may_relaunch(&s, seed);
		}
		begin(&s, fx_peak(&s) / 8 * (3 + fx_draw(&r, 4)));
		rule.budget = plan_.budget;
		if (um_drops_build(&drops, &v, &rule))
			tap_bail("no memory");
		dropped += drops.n > 0;
		for (uint32_t n = drops.n; n; n /= 2)
			try_part(seed, n, &all);
		end();
	}
	diag("%d of %d drop, %d plans, %d relaunches, %d with scratch memory", dropped, last / step, all.planned,
	     all.relaunches, all.scratch);
	ok(dropped > last / step / 4, "iterations by chance: many of them can drop something");
	ok(all.relaunches > 2 * all.planned && all.scratch > all.planned / 10,
	   "plans launch ops again, with scratch memory");
	is_int(all.unsound, 0, "every plan is sound");
	is_int(all.late, 0, "every plan takes the time of its rewritten iteration");
}

int main(void)
{
	by_hand();
	ghost();
	born_before(4);
	born_before(5);
	by_chance();
	return tap_done();
}
