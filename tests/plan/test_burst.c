/* SPDX-License-Identifier: Apache-2.0
 *
 * Bursts: which ops are launched again for dropped content, in which memory, and what cannot be done.
 */
#include "fixture/plan_fixture.h"
#include "plan/burst.h"
#include "tap.h"

#define MIB FX_MIB

static struct um_schedule s;
static struct um_versions v;
static struct um_burst b;
static uint8_t dropped[16];

static void begin(void)
{
	um_burst_fini(&b);
	um_versions_fini(&v);
	um_schedule_fini(&s);
	um_schedule_init(&s);
	memset(dropped, 0, sizeof dropped);
}

static void build(void)
{
	if (um_versions_build(&v, &s) || um_burst_init(&b, &v))
		tap_bail("no memory");
	b.dropped = dropped;
	b.scratch_from = MIB;
	b.most = 8;
}

static int bring(uint32_t slot, int32_t at)
{
	return um_burst_build(&b, at, &slot, 1);
}

static const char *ops(void)
{
	static char text[100];
	int at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < b.ops.n; i++)
		at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", i ? " " : "", b.ops.at[i]);
	return text;
}

/* Slot 0 stays, op i makes slot i + 1 from slot i. */
static void chain(void)
{
	begin();
	fx_slot(&s, MIB, -1, -1);
	for (int32_t i = 0; i < 4; i++)
		fx_slot(&s, MIB, i, 6);
	fx_op(&s, "a", 1, "r0 w1");
	fx_relaunch(&s, "1");
	fx_op(&s, "b", 1, "r1 w2");
	fx_relaunch(&s, "2");
	fx_op(&s, "c", 1, "r2 w3");
	fx_relaunch(&s, "3");
	fx_op(&s, "d", 1, "r3 w4");
	fx_op(&s, "e", 1, "r3");
	fx_op(&s, "f", 1, "r2");
}

static void chains(void)
{
	chain();
	build();
	dropped[3] = 1;
	is_int(bring(3, 4), 0, "a dropped tensor returns");
	is_str(ops(), "2", "by the op that wrote it");
	ok(b.role[3] == UM_BURST_OWN && b.role[2] == UM_BURST_READ && !b.role[1],
	   "in its own memory, from what is there");
	dropped[2] = dropped[1] = 1;
	is_int(bring(3, 4), 0, "a dropped tensor returns whose input was dropped");
	is_str(ops(), "0 1 2", "after the input, and what that is made from");
	ok(b.role[1] == UM_BURST_OWN && b.role[2] == UM_BURST_OWN && b.role[0] == UM_BURST_READ,
	   "all return to their memory");
	b.most = 2;
	is_int(bring(3, 4), -EINVAL, "there is a limit to the relaunches");
	b.most = 8;
	is_int(bring(2, 5), 0, "a burst is found after one that failed");
	is_str(ops(), "0 1", "with its own relaunches only");
}

static void changed(void)
{
	chain();
	s.uses.at[s.ops.at[3].first_use].access = UM_UPDATE; /* slot 3, in place */
	fx_relaunch(&s, "4 3");
	s.ops.at[3].relaunchable = 1;
	s.ops.at[3].first_relaunch = s.ops.at[5].first_relaunch;
	s.ops.at[3].n_relaunch = 2;
	s.ops.at[5].relaunchable = 0;
	s.ops.at[5].n_relaunch = 0;
	build();
	dropped[3] = 1;
	is_int(bring(3, 4), 0, "a tensor that was updated in place returns");
	is_str(ops(), "2 3", "by all its writers since it was last overwritten");
	ok(b.role[4] == UM_BURST_SCRATCH && um_burst_is_scratch(&b, 3, 4),
	   "an output that is there is written to scratch memory");
	ok(!um_burst_is_scratch(&b, 2, 3) && !um_burst_is_scratch(&b, 3, 3), "the dropped tensor is not");
	s.slots.at[4].bytes = MIB / 2;
	s.uses.at[s.ops.at[3].first_use + 1].bytes = MIB / 2;
	is_int(bring(3, 4), 0, "a small output is there");
	ok(b.role[4] == UM_BURST_AGAIN && !um_burst_is_scratch(&b, 3, 4), "it is overwritten with the same content");
	dropped[3] = 0;
	dropped[4] = 1;
	is_int(bring(4, 4), 0, "a tensor returns whose input has changed since");
	is_str(ops(), "2 3", "the input is made again");
	ok(b.role[3] == UM_BURST_SCRATCH && um_burst_is_scratch(&b, 2, 3) && um_burst_is_scratch(&b, 3, 3),
	   "in scratch memory, as the tensor itself is there");
}

static void impossible(void)
{
	chain();
	s.slots.at[2].death = 3;
	s.uses.at[s.ops.at[5].first_use].slot = 3;
	build();
	dropped[3] = 1;
	is_int(bring(3, 4), 0, "a tensor returns whose input was freed");
	is_str(ops(), "1 2", "the input is made again");
	ok(b.role[2] == UM_BURST_SCRATCH && um_burst_is_scratch(&b, 1, 2) && um_burst_is_scratch(&b, 2, 2),
	   "in scratch memory");
	s.ops.at[1].n_relaunch = 0;
	um_burst_fini(&b);
	um_versions_fini(&v);
	build();
	is_int(bring(3, 4), -EINVAL, "not if nothing makes the input again");
	chain();
	s.uses.at[s.ops.at[1].first_use + 1].bytes = MIB / 2; /* a half of slot 2 is never written */
	build();
	dropped[3] = 1;
	is_int(bring(3, 4), -EINVAL, "an op that reads what was never written is not launched again");
}

int main(void)
{
	chains();
	changed();
	impossible();
	begin();
	return tap_done();
}
