/* SPDX-License-Identifier: Apache-2.0
 *
 * Capuchin on cases worked by hand: a byte is a nanosecond on the link.
 */
#include "scheme_case.h"

#include "schemes/schemes.h"

#define U ((uint64_t)UM_BLOCK_BYTES)

/* There and back over three blocks, room for two. Free times: 16 - 2 for the first, 8 - 2 for the second. Asked for
 * with the last op that begins a copy's time before the use: the one before it. */
static void free_time(void)
{
	static const char *const use[] = {"w0", "w1", "w2", "r2", "r1", "r0"};
	struct um_schedule s = {0};
	struct scheme_plan p;

	for (int i = 0; i < 3; i++)
		fx_slot(&s, B, i, 6 - i);
	for (int i = 0; i < 6; i++)
		fx_op(&s, "op", 4 * U, use[i]);
	is_int(scheme_plan(&p, &s, "capuchin", 3 * B), 0, "a budget for all tensors is accepted");
	is_u64(p.f.d2h_bytes + p.f.h2d_bytes, 0, "a schedule that fits moves nothing");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "capuchin", 2 * B), 0, "memory for two of three gets a plan");
	ok(scheme_leaves(&p, 0) && !scheme_leaves(&p, 1) && !scheme_leaves(&p, 2), "most free time leaves");
	is_int(scheme_returns_after(&p, 0), 3, "it is asked for one op ahead");
	is_u64(p.f.stall_ns, 0, "the swaps delay no op");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* Two tensors of four blocks make room for one of eight, and are used again one right behind the other. Asked for four
 * ops ahead each, the second has to wait for the first. It asks earlier by a fifth of an op, again and again, until
 * both take the eight ops before the second one's use. */
static void feedback(void)
{
	struct um_schedule s = {0};
	struct scheme_plan p;

	fx_slot(&s, 4 * B, 0, 25);
	fx_slot(&s, 4 * B, 1, 26);
	fx_slot(&s, 8 * B, 3, 4);
	fx_op(&s, "op", 4 * U, "w0");
	fx_op(&s, "op", 4 * U, "w1");
	fx_op(&s, "op", 4 * U, "");
	fx_op(&s, "large", 20 * U, "w2");
	for (int i = 4; i < 24; i++)
		fx_op(&s, "op", U, "");
	fx_op(&s, "first", U, "r0");
	fx_op(&s, "second", U, "r1");
	is_int(scheme_plan(&p, &s, "capuchin", 9 * B), 0, "two late tensors get a plan");
	is_int(scheme_returns_after(&p, 0), 16, "the first is asked for eight ops before the second is used");
	is_u64(p.f.h2d_bytes, 8 * U, "both tensors return");
	is_u64(p.f.d2h_bytes, 8 * U, "each block leaves once");
	is_u64(p.f.stall_ns, 0, "all blocks return in time");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* Op 0 makes slot 1, op 1 makes slot 2 from it, a large op between two idle ones needs room, and both are used again.
 * All ops lock slot 0. */
static void chain(struct um_schedule *s, uint64_t first, uint64_t second, uint64_t large, uint64_t idle)
{
	fx_slot(s, B, -1, -1);
	fx_slot(s, B, 0, 7);
	fx_slot(s, B, 1, 7);
	fx_slot(s, 2 * B, 3, 4);
	fx_op(s, "first", first, "r0 w1");
	fx_relaunch(s, "1");
	fx_op(s, "second", second, "r0 r1 w2");
	fx_relaunch(s, "2");
	fx_op(s, "idle", idle, "r0");
	fx_op(s, "large", large, "r0 w3");
	fx_op(s, "idle", idle, "r0");
	fx_op(s, "uses the second", U, "r0 r2");
	fx_op(s, "uses the first", U, "r0 r1");
}

static const char *launched_again(const struct um_schedule *s, uint64_t budget)
{
	return scheme_launched_again(s, "capuchin", budget);
}

static void again_is(uint64_t first, uint64_t second, uint64_t large, uint64_t idle, int blocks, const char *ops,
		     const char *label)
{
	struct um_schedule s = {0};

	chain(&s, first, second, large, idle);
	is_str(launched_again(&s, (uint64_t)blocks * B), ops, "%s", label);
	um_schedule_fini(&s);
}

/* A copy takes U in each direction. Slot 1 is used last: it has the most free time, and its return is hidden. */
static void again(void)
{
	again_is(U / 8, U / 8, U / 8, 1, 5, "", "a schedule that fits launches nothing again");
	again_is(U / 2, U / 4, U / 8, 1, 4, "1", "the tensor with the highest MSPS is made again");
	again_is(U / 4, U / 2, U / 8, 1, 4, "0", "MSPS is higher for the tensor that its ops make faster");
	again_is(3 * U, 3 * U, U / 8, 1, 4, "", "recomputation that takes longer than the swap's copies is not chosen");
	again_is(U / 4, U / 4, 4 * U, 2 * U, 3, "", "both are swapped if the link has time for both");
	again_is(U / 4, U / 4, 4 * U, U / 2 * 3, 3, "1", "a pair is made again if the link is busy with the first one");
	again_is(U / 8 * 6, U / 4, U / 8, 1, 3, "1", "a tensor that a chosen one reads would be made again twice");
	again_is(U / 4, U / 10 * 9, U / 8, U / 2, 3, "0", "a tensor costs its dropped source, too");
}

/* Plans with recomputation of a recorded training are faster; without `relaunch` they are the same. */
static void recorded(void)
{
	const char *dir = getenv("top_srcdir");
	uint64_t ns[3];
	char path[4096];

	snprintf(path, sizeof path, "%s/tests/data/resnet50.umtrace.gz", dir ? dir : ".");
	for (int i = 0; i < 3; i++) {
		struct um_schedule s = {0};
		struct um_plan_request r;
		struct um_plan p;

		if (fx_trace(&s, path)) {
			ok(0, "resnet50 is read");
			return;
		}
		for (size_t k = 0; k < s.ops.n; k++) {
			s.ops.at[k].ns = um_profile_op_ns(um_profile_find("v100"), &s.ops.at[k].cost, 0);
			s.ops.at[k].relaunchable &= i < 2;
		}
		r = fx_request(&s, fx_peak(&s) / 2);
		r.profile = um_profile_find("v100");
		r.strategy = "capuchin";
		r.recompute = i > 0;
		um_plan_init(&p);
		ns[i] = um_plan_build(&r, &p, NULL, NULL, 0) ? 0 : p.predicted_ns;
		um_plan_fini(&p);
		um_schedule_fini(&s);
	}
	ok(ns[1] && ns[1] < ns[0] / 3 * 2, "resnet50 takes %.2f of the time without recomputation",
	   (double)ns[1] / (double)ns[0]);
	is_u64(ns[2], ns[0], "a schedule without ops to launch again gets the plan without recomputation");
}

int main(void)
{
	um_schemes_add();
	free_time();
	feedback();
	again();
	recorded();
	scheme_recorded_one("capuchin", "alexnet_b200");
	scheme_recorded_one("capuchin", "cifar_vgg16_b100");
	scheme_recorded_one("capuchin", "resnet50");
	scheme_recorded_one("capuchin", "cg_laplace3d");
	return tap_done();
}
