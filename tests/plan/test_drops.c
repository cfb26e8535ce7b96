/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of gaps to drop: what is worthwhile comes first, what does not help or cannot return never.
 */
#include "fixture/plan_fixture.h"
#include "plan/drops.h"
#include "tap.h"

#define MIB FX_MIB

static struct um_schedule s;
static struct um_drops d;

/* Slots 1 to 3 are made from slot 0 in 10, 1000 and 10 us, and used again at the end; slot 4 is in between. */
static void begin(void)
{
	um_schedule_fini(&s);
	um_schedule_init(&s);
	fx_slot(&s, MIB, -1, -1);
	for (int32_t i = 0; i < 3; i++)
		fx_slot(&s, i == 2 ? MIB / 2 : MIB, i, 7);
	fx_slot(&s, 2 * MIB, 3, 4);
	fx_op(&s, "cheap", 10000, "r0 w1");
	fx_relaunch(&s, "1");
	fx_op(&s, "costly", 1000000, "r0 w2");
	fx_relaunch(&s, "2");
	fx_op(&s, "half", 10000, "r0 w3");
	fx_relaunch(&s, "3");
	fx_op(&s, "large", 1000000, "w4");
	fx_op(&s, "use", 10000, "r3");
	fx_op(&s, "use", 10000, "r2");
	fx_op(&s, "use", 10000, "r1");
}

static void build(uint64_t budget, double burst)
{
	struct um_drops_rule rule = {.budget = budget, .power = 0.5, .burst = burst, .near_ns = 1000};
	struct um_versions v;

	um_drops_fini(&d);
	if (um_versions_build(&v, &s) || um_drops_build(&d, &v, &rule))
		tap_bail("no memory");
	um_versions_fini(&v);
}

/* "1 3": the slots in order. */
static const char *order(void)
{
	static char text[100];
	int at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < d.n; i++)
		at += snprintf(text + at, sizeof text - (size_t)at, "%s%u", i ? " " : "", d.at[i].slot);
	return text;
}

int main(void)
{
	begin();
	build(6 * MIB, 1);
	is_int((int)d.n, 0, "nothing is dropped while all fits");
	build(4 * MIB, 1);
	is_str(order(), "1 3", "tensors that are cheap to make again are dropped, until the rest fits");
	ok(d.at[0].from == 0 && d.at[0].to == 6 && d.at[0].bytes == MIB, "the gap is between two uses");
	build(3 * MIB, 1);
	is_str(order(), "1 3 2", "the costly one is dropped last");
	build(3 * MIB, 0.2);
	is_str(order(), "3", "no more may return at once than the given share of the budget");
	begin();
	s.ops.at[0].relaunchable = 0;
	s.ops.at[0].n_relaunch = 0;
	build(3 * MIB, 1);
	is_str(order(), "3 2", "what cannot be made again is not dropped");
	begin();
	s.slots.at[3].bytes = 1000;
	s.uses.at[5].bytes = 1000;
	s.uses.at[7].bytes = 1000;
	build(3 * MIB, 1);
	is_str(order(), "1 2", "small tensors are not dropped");
	begin();
	s.uses.at[2].slot = 1; /* slot 2 is made from slot 1 */
	build(3 * MIB, 1);
	is_str(order(), "1 3 2", "a tensor and what is made from it are dropped");
	build(3 * MIB, 0.6);
	is_str(order(), "1 3", "not if both at once are too much");
	um_drops_fini(&d);
	um_schedule_fini(&s);
	return tap_done();
}
