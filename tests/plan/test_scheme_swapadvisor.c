/* SPDX-License-Identifier: Apache-2.0
 *
 * SwapAdvisor's planner on cases worked by hand: a slot is a block, a byte a nanosecond on the link.
 */
#include "scheme_case.h"

#include "schemes/schemes.h"

#define U ((uint64_t)UM_BLOCK_BYTES)

static void in_turn(struct um_schedule *s, int n, uint64_t ns)
{
	for (int i = 0; i < n; i++)
		fx_slot(s, B, -1, -1);
	for (int i = 0; i < n; i++) {
		char use[16];

		snprintf(use, sizeof use, "r%d", i);
		fx_op(s, "op", ns, use);
	}
}

/* Four weights in turn, room for three. The first pass begins with none of them; op 3 finds no room. The furthest next
 * use is that of 2, but that was used just now: 1 goes. The second begins with 0, 2 and 3; for op 1, 0 was used just
 * now and 3 is further than 2, so 3 is not there when an iteration begins; for op 3, 1 goes again. */
static void double_pass(void)
{
	struct um_schedule s = {0};
	struct scheme_plan p;

	in_turn(&s, 4, 10 * U);
	is_int(scheme_plan(&p, &s, "swapadvisor", 3 * B), 0, "four in turn, room for three");
	ok(!scheme_leaves(&p, 0) && scheme_leaves(&p, 1) && !scheme_leaves(&p, 2) && scheme_leaves(&p, 3),
	   "two of them leave");
	is_u64(p.f.h2d_bytes, 2 * B, "two tensors return");
	is_u64(p.f.stall_ns, 0, "the swaps delay no op");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "swapadvisor", 4 * B), 0, "a budget for all tensors is accepted");
	is_u64(p.f.d2h_bytes + p.f.h2d_bytes, 0, "a schedule that fits moves nothing");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "swapadvisor", B), 0, "a budget for one tensor is accepted");
	is_u64(p.f.h2d_bytes, 4 * B, "all four tensors return");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* There and back over three, room for two: the furthest next use leaves when the third is made, and is back as soon as
 * that one is gone. */
static void belady(void)
{
	static const char *const use[] = {"w0", "w1", "w2", "r2", "r1", "r1", "r0"};
	struct um_schedule s = {0};
	struct scheme_plan p;

	for (int i = 0; i < 3; i++)
		fx_slot(&s, B, i, i == 2 ? 4 : 7);
	for (int i = 0; i < 7; i++)
		fx_op(&s, "op", 4 * U, use[i]);
	is_int(scheme_plan(&p, &s, "swapadvisor", 2 * B), 0, "memory for two of three gets a plan");
	ok(scheme_leaves(&p, 0) && !scheme_leaves(&p, 1) && !scheme_leaves(&p, 2), "the furthest next use leaves");
	is_int(scheme_returns_after(&p, 0), 3, "the tensor returns as soon as there is room");
	is_u64(p.f.stall_ns, 0, "the returns delay no op");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

int main(void)
{
	um_schemes_add();
	double_pass();
	belady();
	scheme_recorded("swapadvisor");
	return tap_done();
}
