/* SPDX-License-Identifier: Apache-2.0
 *
 * G10 on cases worked by hand: a slot is a block, a byte a nanosecond on the link.
 */
#include "scheme_case.h"

#include "schemes/schemes.h"

#define U ((uint64_t)UM_BLOCK_BYTES)
#define OPS 20

/* Room for two. The load is three in ops 2 to 5, where slot 1 lives. Slot 0 is away all of that time: its copies are
 * made in ops 1 and 6. Slot 2 is idle for 19 of 20 ops, but used in op 4: with its copies in 5 and 3 it is away in op 2
 * alone. */
static void above_the_line(void)
{
	struct um_schedule s = {0};
	struct scheme_plan p;

	fx_slot(&s, B, 0, 8);
	fx_slot(&s, B, 2, 6);
	fx_slot(&s, B, -1, -1);
	for (int i = 0; i < OPS; i++)
		fx_op(&s, "op", 4 * U, i == 0 ? "w0" : i == 4 ? "u1 r2" : i >= 2 && i <= 5 ? "u1" : i == 7 ? "r0" : "");
	is_int(scheme_plan(&p, &s, "g10", 2 * B), 0, "memory for two of three gets a plan");
	ok(scheme_leaves(&p, 0) && !scheme_leaves(&p, 1) && !scheme_leaves(&p, 2),
	   "what is away longest above the line leaves, and nothing else");
	is_int(scheme_returns_after(&p, 0), 5, "the tensor returns as soon as there is room");
	is_u64(p.f.stall_ns, 0, "the returns delay no op");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "autoswap-doa", 2 * B), 0, "choosing by the length of the absence gives a plan");
	ok(scheme_leaves(&p, 2), "another one leaves");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "g10", 3 * B), 0, "a budget for all tensors is accepted");
	is_u64(p.f.d2h_bytes + p.f.h2d_bytes, 0, "a schedule that fits moves nothing");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* By the time above the line per time of copies, not by the size: three blocks that are above it in one op only stay,
 * one that is there in five leaves. */
static void profit(void)
{
	struct um_schedule s = {0};
	struct scheme_plan p;

	fx_slot(&s, 2 * B, 5, 10); /* away in op 7: out in 6, back in 8 */
	fx_slot(&s, B, 0, 12); /* away in ops 2 to 9 */
	fx_slot(&s, B, 6, 9);
	for (int i = 0; i < OPS; i++)
		fx_op(&s, "op", 4 * U,
		      i == 0		 ? "w1"
		      : i == 5		 ? "w0"
		      : i >= 6 && i <= 8 ? "u2"
		      : i == 9		 ? "r0"
		      : i == 11		 ? "r1"
					 : "");
	is_int(scheme_plan(&p, &s, "g10", 3 * B), 0, "one block above the limit gets a plan");
	ok(!scheme_leaves(&p, 0) && scheme_leaves(&p, 1), "most time above the line for its copies");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* Ops are short: no period can hide its copies. There is a plan all the same, and ops wait. */
static void crossing(void)
{
	static const char *const use[] = {"w0", "w1", "w2", "u2", "r1", "r0"};
	struct um_schedule s = {0};
	struct scheme_plan p;

	for (int i = 0; i < 3; i++)
		fx_slot(&s, B, i, 6 - i);
	for (int i = 0; i < 6; i++)
		fx_op(&s, "op", U / 4, use[i]);
	is_int(scheme_plan(&p, &s, "g10", 2 * B), 0, "copies that meet");
	ok(p.f.stall_ns > 0 && p.f.h2d_bytes, "an op waits for its tensor");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "g10", B), 0, "a budget for one tensor is accepted");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

int main(void)
{
	um_schemes_add();
	above_the_line();
	profit();
	crossing();
	scheme_recorded("g10");
	return tap_done();
}
