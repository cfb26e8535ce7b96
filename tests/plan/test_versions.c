/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions of slots: which op wrote what a slot holds, from where on it can be made again, and content that is not
 * known to be there.
 */
#include "fixture/plan_fixture.h"
#include "plan/versions.h"
#include "tap.h"

static struct um_schedule s;
static struct um_versions v;

static void begin(void)
{
	um_versions_fini(&v);
	um_schedule_fini(&s);
	um_schedule_init(&s);
}

static void build(void)
{
	if (um_versions_build(&v, &s))
		tap_bail("no memory");
}

/* The op that wrote a slot's content before an op; -1: older, -2: there is none. */
static int writer(uint32_t slot, int32_t op)
{
	uint32_t t = um_versions_at(&v, slot, op);

	return t == UM_VERSION_OLDER ? -1 : t == UM_VERSION_NONE ? -2 : v.touch[t].op;
}

/* The first op that must be launched again for a slot's content before an op; -1: it cannot be made again. */
static int base(uint32_t slot, int32_t op)
{
	uint32_t t = um_versions_base(&v, slot, um_versions_at(&v, slot, op));

	return t == UINT32_MAX ? -1 : v.touch[t].op;
}

static int undefined(uint32_t slot, int32_t op)
{
	return v.touch[um_versions_find(&v, slot, op)].undefined;
}

static void in_place(void)
{
	begin();
	fx_slot(&s, 100, -1, -1);
	fx_slot(&s, 100, 0, 6);
	fx_op(&s, "make", 1, "r0 w1");
	fx_relaunch(&s, "1");
	fx_op(&s, "relu", 1, "u1");
	fx_relaunch(&s, "1");
	fx_op(&s, "read", 1, "r1 u0");
	fx_op(&s, "part", 1, "w1@0+40");
	fx_op(&s, "read", 1, "r1");
	fx_op(&s, "again", 1, "w1");
	build();
	is_int(writer(0, 1), -1, "a parameter is older than the iteration");
	is_int(writer(0, 3), 2, "an update is a new version");
	is_int(base(0, 3), -1, "a version that began before the iteration cannot be made again");
	is_int(writer(1, 1), 0, "the op before wrote the content");
	is_int(writer(1, 2), 1, "an update in place wrote the content");
	is_int(base(1, 2), 0, "it is made again from the last whole overwrite on");
	is_int(writer(1, 4), 3, "a write of a part makes a version");
	is_int(base(1, 4), -1, "an op that may not be launched again makes it impossible");
	is_int((int)um_versions_find(&v, 1, 9), -1, "there is no touch by an op that does not use the slot");
	ok(v.touch[um_versions_find(&v, 1, 3)].needs && !v.touch[um_versions_find(&v, 1, 5)].needs,
	   "a write of a part needs the rest, a whole one nothing");
	is_int((int)(um_versions_from(&v, 1, 2) - v.first[1]), 2, "touches are found from an op on");
}

static void lives(void)
{
	begin();
	fx_slot(&s, 100, 2, 1); /* born in one iteration, freed in the next */
	fx_slot(&s, 100, -1, -1);
	s.slots.at[1].flags = UM_SLOT_TRANSIENT;
	fx_slot(&s, 100, -1, -1);
	fx_op(&s, "last", 1, "r0");
	fx_op(&s, "dead", 1, "w2");
	s.uses.at[1].dead_after = 1;
	fx_op(&s, "make", 1, "w0 w1");
	fx_relaunch(&s, "0 1");
	fx_op(&s, "use", 1, "r0 r1");
	build();
	is_int(writer(0, 0), -1, "the tensor of the iteration before is older");
	is_int(writer(0, 3), 2, "the one of this iteration is not");
	is_int(base(0, 3), 2, "it can be made again");
	is_int(writer(1, 1), -2, "transient content is gone when an iteration begins");
	is_int(writer(2, 3), -2, "content that was declared dead is gone");
}

static void unknown(void)
{
	begin();
	fx_slot(&s, 100, -1, -1);
	fx_slot(&s, 100, -1, -1);
	s.slots.at[0].carry = 1; /* they swap */
	s.slots.at[1].carry = 0;
	fx_slot(&s, 100, 0, 6);
	fx_slot(&s, 100, 5, 2);
	fx_slot(&s, 100, -1, -1);
	fx_op(&s, "a", 1, "r0 r1 w2@0+40 r3 r4");
	fx_op(&s, "b", 1, "r2@0+40");
	fx_op(&s, "c", 1, "r2 w4@0+100");
	fx_op(&s, "d", 1, "w2@40+60");
	fx_op(&s, "e", 1, "r2 r1");
	s.uses.at[s.uses.n - 1].dead_after = 1;
	fx_op(&s, "f", 1, "r4");
	build();
	ok(undefined(0, 0), "what was declared dead is undefined in the slot that its tensor has next");
	ok(undefined(1, 0), "and in the one that it has after that");
	ok(!undefined(2, 1), "a part that was written is defined");
	ok(undefined(2, 2), "the rest is not");
	ok(!undefined(2, 4), "two parts make a whole");
	ok(undefined(3, 0), "a tensor that nothing writes is undefined in the next iteration");
	ok(!undefined(4, 0) && !undefined(4, 5), "a tensor that stays is defined");
}

int main(void)
{
	in_place();
	lives();
	unknown();
	begin();
	return tap_done();
}
