/* SPDX-License-Identifier: Apache-2.0
 *
 * AppObMem, as read, on cases worked by hand: a byte is a nanosecond on the link.
 */
#include "scheme_case.h"

#define U ((uint64_t)UM_BLOCK_BYTES)

/* Five blocks at ops 3 and 4, a slot of two among those that are idle: it leaves first where its gap of `ns` and 3 more
 * is long enough for its copies of 4, and last if not. */
static void largest(uint64_t ns, int leaves)
{
	static const char *const use[] = {"u0", "u1", "u2", "u3", "u3", "u2", "u1", "u0"};
	struct um_schedule s = {0};
	struct scheme_plan p;

	for (int i = 0; i < 4; i++)
		fx_slot(&s, i == 1 ? 2 * B : B, i, 8 - i);
	for (int i = 0; i < 8; i++)
		fx_op(&s, "op", i == 3 ? ns : U, use[i]);
	is_int(scheme_plan(&p, &s, "appobmem", 4 * B), 0, "a limit one block below the peak gets a plan");
	is_int(scheme_leaves(&p, 1), leaves, "the largest leaves, if its gap is long enough");
	is_int(scheme_leaves(&p, 0), !leaves, "otherwise the one with the longer gap leaves");
	ok(!scheme_leaves(&p, 2) && !scheme_leaves(&p, 3), "no other tensor leaves the device");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* A tensor's second best gap is no candidate. */
static void extremal(void)
{
	struct um_schedule s = {0};
	struct scheme_plan p;

	fx_slot(&s, B, 0, 7);
	fx_slot(&s, 2 * B, 1, 2);
	fx_slot(&s, 2 * B, 4, 5);
	fx_op(&s, "a", U, "u0");
	fx_op(&s, "short", U, "u1");
	fx_op(&s, "b", U, "u0");
	fx_op(&s, "c", U, "");
	fx_op(&s, "long", U, "u2");
	fx_op(&s, "d", U, "");
	fx_op(&s, "e", U, "u0");
	is_int(scheme_plan(&p, &s, "appobmem", 3 * B), 0, "a budget for all tensors is accepted");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "appobmem", 2 * B), -E2BIG, "a peak in a gap that is not the longest");
	is_str(p.why, "appobmem: one gap of each tensor does not suffice at op 1 'short' for a budget of 4 MiB",
	       "cannot be met");
	scheme_plan_fini(&p);
	s.slots.at[1].bytes = s.uses.at[1].bytes = B;
	is_int(scheme_plan(&p, &s, "appobmem", 2 * B), 0, "one in the longest gap can");
	ok(scheme_leaves(&p, 0) && p.f.d2h_bytes == B, "the tensor leaves with one copy");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

int main(void)
{
	largest(U, 1);
	largest(U / 2, 0);
	extremal();
	scheme_recorded("appobmem");
	return tap_done();
}
