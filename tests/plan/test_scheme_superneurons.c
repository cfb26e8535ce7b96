/* SPDX-License-Identifier: Apache-2.0
 *
 * SuperNeurons on cases worked by hand: a slot is a block, a byte a nanosecond on the link.
 */
#include "scheme_case.h"

#define U ((uint64_t)UM_BLOCK_BYTES)

static uint64_t in(const struct scheme_plan *p)
{
	return p->f.h2d_bytes / B;
}

/* There and back over three, room for two: the least recently used one leaves, the others do not move. */
static void cache(const char *name, int32_t after)
{
	static const char *const use[] = {"w0", "w1", "w2", "r2", "r1", "r0"};
	struct um_schedule s = {0};
	struct scheme_plan p;

	for (int i = 0; i < 3; i++)
		fx_slot(&s, B, i, 6 - i);
	for (int i = 0; i < 6; i++)
		fx_op(&s, name, 4 * U, use[i]);
	is_int(scheme_plan(&p, &s, "superneurons", 3 * B), 0, "%s: memory for all gets a plan", name);
	is_u64(p.f.d2h_bytes + p.f.h2d_bytes, 0, "a schedule that fits moves nothing");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "superneurons", 2 * B), 0, "memory for two of three gets a plan");
	ok(scheme_leaves(&p, 0) && !scheme_leaves(&p, 1) && !scheme_leaves(&p, 2), "the least recently used leaves");
	is_u64(p.f.d2h_bytes, B, "the tensor leaves once");
	is_int(scheme_returns_after(&p, 0), after, "it comes back behind op %d", after);
	is_u64(p.f.stall_ns, after == 4 ? U : 0, "the op waits exactly when the prefetch is late");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* In turn, with one too many, the least recently used one is the next one needed: all move, not just one. */
static void cliff(void)
{
	for (int n = 4; n <= 7; n++) {
		struct um_schedule s = {0};
		struct scheme_plan p;
		char use[32];

		for (int i = 0; i < n; i++)
			fx_slot(&s, B, -1, -1);
		for (int i = 0; i < n; i++) {
			snprintf(use, sizeof use, "r%d", i);
			fx_op(&s, "op", 10 * U, use);
		}
		is_int(scheme_plan(&p, &s, "superneurons", (uint64_t)(n - 1) * B), 0, "%d in turn, one too many", n);
		is_u64(in(&p), (uint64_t)n, "all of them come back");
		scheme_plan_fini(&p);
		is_int(scheme_plan(&p, &s, "lookahead", (uint64_t)(n - 1) * B), 0, "lookahead plans the same schedule");
		ok(in(&p) < (uint64_t)n, "no more than %d", (int)in(&p));
		scheme_plan_fini(&p);
		um_schedule_fini(&s);
	}
}

/* Locked operands never leave. */
static void locked(void)
{
	struct um_schedule s = {0};
	struct scheme_plan p;

	for (int i = 0; i < 4; i++)
		fx_slot(&s, B, -1, -1);
	fx_op(&s, "both", U, "r0 r1");
	fx_op(&s, "others", U, "r2 r3");
	fx_op(&s, "one of each", U, "r1 r2");
	is_int(scheme_plan(&p, &s, "superneurons", 2 * B), 0, "two operands fit into the memory of two");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "superneurons", B), -E2BIG, "memory for one operand is refused");
	ok(strstr(p.why, "in 4.0 MiB of whole blocks; the budget is 2.0 MiB") != NULL,
	   "the reason names the blocks that the op needs and the budget");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* Slot 1 is made by a convolution, slots 2 to 4 by cheap ops of one segment, and all are used on the way back. */
static void layers(struct um_schedule *s, const char *cheap, uint64_t largest)
{
	char uses[32];

	fx_slot(s, B, -1, -1);
	for (int i = 0; i < 4; i++)
		fx_slot(s, B, i, 9 - i);
	fx_slot(s, largest, 4, 5);
	fx_op(s, "conv2d", U, "r0 w1");
	fx_relaunch(s, "1");
	for (int i = 1; i < 4; i++) {
		snprintf(uses, sizeof uses, "r1 w%d", i + 1);
		fx_op(s, cheap, U / 8, uses);
		fx_relaunch(s, uses + 4);
	}
	fx_op(s, "conv2d", U, "w5");
	for (int i = 4; i > 0; i--) {
		snprintf(uses, sizeof uses, "r%d", i);
		fx_op(s, "grad", U / 8, uses);
	}
	fx_op(s, "end", U, "r0");
}

static const char *launched_again(const char *cheap, uint64_t largest, uint64_t budget)
{
	struct um_schedule s = {0};
	const char *text;

	layers(&s, cheap, largest);
	text = scheme_launched_again(&s, "superneurons", budget);
	um_schedule_fini(&s);
	return text;
}

static void again(void)
{
	is_str(launched_again("relu", 3 * B, 9 * B), "", "what fits launches nothing again");
	is_str(launched_again("relu", 3 * B, 5 * B), "3 2 1", "cheap layers are launched again on the way back");
	is_str(launched_again("add_", 3 * B, 5 * B), "", "checkpoints are not");
	is_str(launched_again("relu", 2 * B, 4 * B), "", "a segment that is larger than the largest op is not");
}

int main(void)
{
	cache("conv2d", 3); /* prefetched while the convolution before runs */
	cache("relu", 4); /* no checkpoints: when it is used */
	cliff();
	locked();
	again();
	scheme_recorded("superneurons");
	return tap_done();
}
