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

int main(void)
{
	um_schemes_add();
	free_time();
	feedback();
	scheme_recorded_one("capuchin", "alexnet_b200");
	scheme_recorded_one("capuchin", "cifar_vgg16_b100");
	scheme_recorded_one("capuchin", "resnet50");
	scheme_recorded_one("capuchin", "cg_laplace3d");
	return tap_done();
}
