/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans choose algorithms by their workspaces: the fastest where there is room, and otherwise what makes the iteration
 * shortest. A byte is a nanosecond on the link.
 */
#include "io/plan_file.h"
#include "model/workspace.h"
#include "fixture/plan_fixture.h"
#include "tap.h"

#define B UM_BLOCK_BYTES

static struct um_plan p;
static struct um_plan_figures f;

static int build(const struct um_plan_request *r, struct um_plan *to)
{
	uint64_t grow;

	return fx_build(r, to, &f, &grow);
}

static void picks(void)
{
	static const struct um_workspace ws[] = {{8, 30}, {0, 90}, {64, 30}, {32, 20}, {0, 80}, {64, 10}};

	is_int(um_workspace_pick(ws, 6, 1000), 5, "with room for all the fastest is picked");
	is_int(um_workspace_pick(ws, 6, 64), 5, "its size fits exactly");
	is_int(um_workspace_pick(ws, 6, 63), 3, "with less room the fastest that fits is picked");
	is_int(um_workspace_pick(ws, 6, 31), 0, "of equally fast ones the smaller one is picked");
	is_int(um_workspace_pick(ws, 6, 0), 4, "of equally small ones the faster one is picked");
	is_int(um_workspace_pick(ws + 2, 2, 0), 1, "if none fits the smallest is picked");
}

/* Slots 1 to n are made and used again on the way back; each op lasts `ns`, the op in the middle offers. */
static void net(struct um_schedule *s, int n, uint64_t ns, const char *offer)
{
	char uses[32];

	fx_slot(s, B, -1, -1);
	for (int i = 1; i <= n; i++)
		fx_slot(s, B, i - 1, 2 * n - i + 2);
	for (int i = 1; i <= n; i++) {
		snprintf(uses, sizeof uses, "r0 w%d", i);
		fx_op(s, "make", ns, uses);
	}
	fx_op(s, "middle", 1, "r0");
	fx_offer(s, offer);
	for (int i = n; i >= 1; i--) {
		snprintf(uses, sizeof uses, "r%d", i);
		fx_op(s, "use", ns, uses);
	}
}

static uint64_t choice_of(int n, uint64_t ns, const char *offer, uint64_t budget)
{
	struct um_schedule s = {0};
	struct um_plan_request r;
	uint64_t choice = UINT64_MAX;

	net(&s, n, ns, offer);
	r = fx_request(&s, budget);
	if (!build(&r, &p))
		choice = p.sched.ops.at[n].choice;
	um_schedule_fini(&s);
	return choice;
}

static void by_hand(void)
{
	uint64_t in_core = 8 * B / 4 + B;

	is_u64(choice_of(4, B / 4, "0:9000000 4194304:2097152", 7 * B), 1, "where all fits the fastest is chosen");
	is_u64(p.predicted_ns, in_core, "the iteration takes the time in core");
	is_u64(f.peak_bytes, 7 * B, "the workspace counts while its op runs");
	is_u64(f.h2d_bytes + f.d2h_bytes, 0, "no bytes move");
	um_plan_fini(&p);

	/* a block less: two copies of a block each way; they overlap with ops */
	is_u64(choice_of(4, B / 4, "0:2100000 4194304:2097152", 6 * B), 0, "little gain moves nothing");
	is_u64(f.h2d_bytes, 0, "nothing leaves for it");
	is_u64(p.in_core_ns, in_core, "the time in core is that of the fastest");
	is_u64(f.slower_ns, 2100000 - B, "the proof tells what the choice takes longer");
	is_u64(um_plan_core_ns(&f), in_core, "and the rest is the time in core");
	um_plan_fini(&p);
	is_u64(choice_of(4, B, "0:90000000 4194304:2097152", 6 * B), 1, "much gain is worth copies");
	ok(f.h2d_bytes >= B && f.peak_bytes <= 6 * B, "tensors leave for the workspace");
	um_plan_fini(&p);
	is_u64(choice_of(4, B / 64, "0:90000000 2097152:4000000 4194304:3999999", 6 * B), 1,
	       "between both one that fits");
	um_plan_fini(&p);
	is_u64(choice_of(2, B, "41943040:1 0:900", 6 * B), 1, "a workspace above the budget is not chosen");
	um_plan_fini(&p);
}

static int same_plan(const struct um_plan *a, const struct um_plan *b)
{
	int same = a->hints.n == b->hints.n && a->predicted_ns == b->predicted_ns;

	for (size_t i = 0; same && i < a->sched.ops.n; i++)
		same = a->sched.ops.at[i].choice == b->sched.ops.at[i].choice;
	return same;
}

/* Two ops at the peak, apart from each other: room is made for the one that gains much, and not for the other. */
static void apart(void)
{
	struct um_schedule s = {0};
	struct um_plan_request r;
	char uses[32];

	fx_slot(&s, B, -1, -1);
	for (int i = 1; i <= 4; i++)
		fx_slot(&s, B, i - 1, 8);
	for (int i = 1; i <= 4; i++) {
		snprintf(uses, sizeof uses, "r0 w%d", i);
		fx_op(&s, "make", B / 64, uses);
	}
	for (int i = 0; i < 2; i++) {
		fx_op(&s, "middle", 1, "r0");
		fx_offer(&s, i ? "0:2100000 4194304:2097152" : "0:90000000 4194304:2097152");
		fx_op(&s, "use", B / 64, "r1 r2 r3 r4");
	}
	r = fx_request(&s, 6 * B);
	is_int(build(&r, &p), 0, "a plan is made for two ops that offer");
	is_int((int)p.sched.ops.at[4].choice, 1, "room is made for the one that gains much");
	is_int((int)p.sched.ops.at[6].choice, 0, "and not for the one that gains little");
	um_plan_fini(&p);
	um_schedule_fini(&s);
}

/* Sound, the same again, and not slower than the smallest; how often it is faster. */
static int by_chance(uint64_t seed, int relaunches)
{
	struct um_schedule s = {0}, small = {0};
	struct um_plan_request r, least;
	struct um_plan again, smallest;
	uint64_t budget;
	int err, faster = 0;

	for (int i = 0; i < 2; i++) {
		struct um_schedule *to = i ? &small : &s;

		if (relaunches)
			fx_net(to, seed);
		else
			fx_random(to, seed);
		fx_offers(to, seed, i);
	}
	budget = fx_peak(&s) / 2 + 16 * B;
	r = fx_request(&s, budget);
	least = fx_request(&small, budget);
	r.recompute = least.recompute = relaunches;
	err = build(&least, &smallest);
	is_int(build(&r, &p), err, "seed %d: there is a plan where there is one with the smallest", (int)seed);
	if (!err && p.sched.ops.n) {
		ok(p.predicted_ns <= smallest.predicted_ns, "it is not slower");
		faster = p.predicted_ns < smallest.predicted_ns;
		is_int(build(&r, &again), 0, "it can be made again");
		ok(same_plan(&p, &again), "and is the same");
		ok(p.bound_ns <= p.predicted_ns && p.bound_ns >= p.in_core_ns, "the bound is below it");
		um_plan_fini(&again);
	}
	um_plan_fini(&p);
	um_plan_fini(&smallest);
	um_schedule_fini(&s);
	um_schedule_fini(&small);
	return faster;
}

static void many(void)
{
	int faster = 0, seeds = tap_few() ? 6 : 24;

	for (int i = 0; i < seeds; i++)
		faster += by_chance(100 + (uint64_t)i, i % 3 == 0);
	ok(faster > seeds / 2, "most plans are faster than with the smallest workspaces");
}

/* What a plan with a choice must not be. */
static void refused(const char *reason, const char *what)
{
	char why[300] = "";

	is_int(um_plan_check(&p, NULL, why, sizeof why), -EINVAL, "%s is refused", what);
	ok(strstr(why, reason) != NULL, "the reason is given");
	diag("%s", why);
}

static void proof(void)
{
	struct um_sched_op *op;
	struct um_slot *t;
	uint32_t slot;

	choice_of(4, B / 4, "0:9000000 4194304:2097152", 7 * B);
	op = &p.sched.ops.at[4];
	slot = um_workspace_slot(&p.sched, op);
	t = &p.sched.slots.at[slot];
	is_u64(t->bytes, 2 * B, "the workspace has a slot");
	ok(t->birth == 4 && t->death == 5 && t->role == UM_ROLE_WORKSPACE && t->place != UINT64_MAX,
	   "which lives as long as its op, at a place");
	op->choice = 0;
	refused("has 1 workspaces of 0 bytes", "another choice");
	op->choice = 2;
	refused("chooses workspace 2 of 2", "a choice that is none");
	op->choice = 1;
	t->bytes -= 512;
	p.sched.uses.at[op->first_use + op->n_uses - 1].bytes -= 512;
	refused("cannot be the workspace", "a smaller slot");
	t->bytes += 512;
	p.sched.uses.at[op->first_use + op->n_uses - 1].bytes += 512;
	p.sched.uses.at[op->first_use + op->n_uses - 1].access = UM_UPDATE;
	refused("cannot be the workspace", "a workspace that is read");
	p.sched.uses.at[op->first_use + op->n_uses - 1].access = UM_WRITE;
	t->flags = 0;
	refused("has 0 workspaces of 4194304 bytes", "a workspace without a slot");
	t->flags = UM_SLOT_WORKSPACE;
	op->n_ws = 0;
	refused("has 1 workspaces of 0 bytes", "a workspace of an op that offers none");
	op->n_ws = 2;
	p.budget = 6 * B;
	refused("", "a plan without room for the workspace");
	p.budget = 7 * B;
	is_int(um_plan_check(&p, NULL, NULL, 0), 0, "the plan itself is sound");
	um_plan_fini(&p);
}

/* A choice is replaced as a whole; without one the schedule is the bound's. */
static void applied(void)
{
	struct um_schedule s = {0}, a, b, c;
	uint32_t choice[9] = {0};

	net(&s, 4, B, "0:900 4194304:30 512:700");
	um_schedule_init(&a);
	um_schedule_init(&b);
	um_schedule_init(&c);
	choice[4] = 1;
	is_int(um_workspace_apply(&s, choice, 1, &a), 0, "a choice is applied");
	ok(a.slots.n == s.slots.n + 1 && a.ops.at[4].n_uses == 2 && a.ops.at[4].ns == 30, "its workspace is a slot");
	is_int((long long)a.births.n, (long long)s.births.n + 1, "which is born");
	choice[4] = 2;
	is_int(um_workspace_apply(&a, choice, 1, &b), 0, "another one replaces it");
	ok(b.slots.n == a.slots.n && b.slots.at[s.slots.n].bytes == 512 && b.ops.at[4].ns == 700, "with its size");
	is_int(um_workspace_apply(&b, NULL, 1, &c), 0, "none takes it away");
	ok(c.slots.n == s.slots.n && c.ops.at[4].ns == 30 && !c.ops.at[4].n_ws, "and leaves the shortest time");
	um_schedule_fini(&s);
	um_schedule_fini(&a);
	um_schedule_fini(&b);
	um_schedule_fini(&c);
}

/* An op with a workspace is launched again with scratch memory for it; not where relaunches may come at any time. */
static void again(void)
{
	struct um_schedule s = {0};
	struct um_plan_request r;
	int launched = 0;
	char uses[32];

	fx_slot(&s, B, -1, -1);
	for (int i = 1; i <= 8; i++)
		fx_slot(&s, B, i - 1, 17 - i);
	for (int i = 1; i <= 8; i++) {
		snprintf(uses, sizeof uses, "r0 w%d", i);
		fx_op(&s, "make", B / 8, uses);
		fx_relaunch(&s, uses + 4);
		fx_offer(&s, "0:1048576 2048:262144");
	}
	for (int i = 8; i >= 1; i--) {
		snprintf(uses, sizeof uses, "r%d", i);
		fx_op(&s, "use", B / 8, uses);
	}
	r = fx_request(&s, 6 * B);
	r.recompute = 1;
	is_int(build(&r, &p), 0, "a plan is made that may launch ops with workspaces again");
	for (size_t i = 0; i < p.hints.n; i++)
		launched += p.hints.at[i].kind == UM_HINT_RECOMPUTE && p.sched.ops.at[p.hints.at[i].slot].choice &&
			    p.hints.at[i].n_scratch;
	ok(launched > 0, "it does, with scratch memory for the workspace");
	um_plan_fini(&p);
	r.in_place = 1;
	is_int(build(&r, &p), 0, "a plan is made whose relaunches may come at any time");
	for (size_t i = 0; i < p.hints.n; i++)
		if (p.hints.at[i].kind == UM_HINT_RECOMPUTE && p.sched.ops.at[p.hints.at[i].slot].choice)
			launched = -1;
	ok(launched >= 0, "none of them has a workspace");
	um_plan_fini(&p);
	um_schedule_fini(&s);
}

/* The tensor cache of SuperNeurons keeps five of six blocks busy around the op in the middle. */
static void superneurons(void)
{
	struct um_schedule s = {0};
	struct um_plan_request r;

	net(&s, 4, B, "0:8000000 2097152:4000000 4194304:2000000");
	r = fx_request(&s, 6 * B);
	r.strategy = "superneurons";
	is_int(build(&r, &p), 0, "superneurons makes a plan");
	is_int((int)p.sched.ops.at[4].choice, 1, "with the fastest workspace that fits into free memory");
	is_u64(f.h2d_bytes, 0, "for which nothing leaves");
	um_plan_fini(&p);
	r.strategy = "autoswap-swdoa";
	is_int(build(&r, &p), 0, "another scheme makes a plan");
	is_int((int)p.sched.ops.at[4].choice, 1, "with what fits beside all that is alive");
	um_plan_fini(&p);
	um_schedule_fini(&s);
}

int main(void)
{
	picks();
	by_hand();
	apart();
	proof();
	applied();
	again();
	superneurons();
	many();
	return tap_done();
}
