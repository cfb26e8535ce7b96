/* SPDX-License-Identifier: Apache-2.0
 *
 * vDNN on a net of three layers, worked by hand: a slot is a block, a byte a nanosecond on the link.
 */
#include "scheme_case.h"

#include "schemes/schemes.h"

#define U ((uint64_t)UM_BLOCK_BYTES)
#define STAYS (-2)

/* Forward there, backward back: the input of the second convolution (slot 0) and of the layer behind it (1) are used
 * again, and so is that of the third (2). */
static void net(struct um_schedule *s, const char *turn)
{
	static const char *const name[] = {"conv", "conv", "relu", "conv", "loss", "loss", "turned", "relu", "conv"};
	static const char *const use[] = {"w0", "r0 w1", "r1 w2", "r2 w3", "u3", "u3", "r3", "r1 r2", "r0"};

	for (int32_t i = 0; i < 4; i++) {
		fx_slot(s, B, i, i == 0 ? 9 : i == 3 ? 7 : 8);
		s->slots.at[i].role = UM_ROLE_ACT;
	}
	for (int i = 0; i < 9; i++) {
		fx_op(s, i == 6 ? turn : name[i], 4 * U, use[i]);
		s->ops.at[i].phase = i < 5 ? 'f' : 'b';
	}
}

static void check(const char *scheme, const char *turn, int32_t blocks, const int32_t *back)
{
	struct um_schedule s = {0};
	struct scheme_plan p;
	uint64_t n = 0;

	net(&s, turn);
	is_int(scheme_plan(&p, &s, scheme, (uint64_t)blocks * B), 0, "%s in %d blocks", scheme, blocks);
	for (uint32_t i = 0; i < 4; i++) {
		int leaves = back[i] != STAYS;

		is_int(scheme_leaves(&p, i), leaves, "slot %u %s", i, leaves ? "leaves" : "stays");
		if (leaves)
			is_int(scheme_returns_after(&p, i), back[i], "the tensor returns after op %d", back[i]);
		n += (uint64_t)leaves;
	}
	is_u64(p.f.h2d_bytes / B, n, "each tensor returns once");
	is_u64(p.f.stall_ns, 0, "the swaps delay no op");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* What cannot leave is too much, and that is said. */
static void weights(void)
{
	struct um_schedule s = {0};
	struct scheme_plan p;

	net(&s, "relu");
	fx_slot(&s, 3 * B, -1, -1);
	s.slots.at[4].role = UM_ROLE_PARAM;
	fx_op(&s, "update", U, "u4");
	s.ops.at[9].phase = 'o';
	is_int(scheme_plan(&p, &s, "vdnn", 4 * B), -E2BIG, "weights never leave");
	ok(strstr(p.why, "feature maps alone") != NULL, "the plan says that feature maps alone do not suffice: %s",
	   p.why);
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "vdnn", 5 * B), 0, "a budget with room beside the weights is accepted");
	ok(!scheme_leaves(&p, 4), "the weights stay on the device");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

int main(void)
{
	const int32_t none[] = {STAYS, STAYS, STAYS, STAYS}, conv[] = {6, STAYS, 5, STAYS};
	const int32_t all[] = {6, 5, 5, STAYS}, early[] = {5, 4, 4, STAYS};

	ok(!um_scheme_find("vdnn"), "vdnn is unknown without its variant");
	um_schemes_add();
	check("vdnn", "relu", 4, none); /* all fits: nothing leaves */
	check("vdnn-all", "conv", 4, all); /* no further ahead than the next convolution */
	check("vdnn-all", "relu", 4, early); /* none between: as the loss begins */
	check("vdnn-conv", "conv", 4, conv); /* not the input of the activation */
	check("vdnn", "conv", 3, conv); /* as much as is needed */
	weights();
	scheme_recorded_one("vdnn", "resnet50");
	scheme_recorded_one("vdnn", "cifar_vgg16_b100");
	scheme_recorded_one("vdnn-all", "gpt2_small");
	return tap_done();
}
