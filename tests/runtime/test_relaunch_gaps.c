/* SPDX-License-Identifier: Apache-2.0
 *
 * Gaps in which content is made anew, and relaunches that must not come earlier than planned.
 */
#include "runtime/relaunches.h"

#include "fixture/plan_fixture.h"
#include "tap.h"

#include <errno.h>

/* A chain: "input" writes slot x, f reads x and writes y, which is read twice; f is launched again before the second
 * time. */
struct chain {
	struct um_schedule s;
	uint32_t x, y;
	uint32_t again[8];
};

/* `f`, `g`, `h`: the uses of these ops. */
static void init(struct chain *c, int32_t death_of_x, const char *f, const char *g, const char *h)
{
	memset(c, 0, sizeof *c);
	um_schedule_init(&c->s);
	c->x = fx_slot(&c->s, FX_MIB, 0, death_of_x);
	c->y = fx_slot(&c->s, FX_MIB, 1, 5);
	fx_op(&c->s, "input", 1, "w0");
	fx_op(&c->s, "f", 1, f);
	fx_op(&c->s, "g", 1, g);
	fx_op(&c->s, "f", 1, f);
	fx_op(&c->s, "h", 1, h);
	c->again[3] = 2;
}

static int build(struct chain *c, struct um_relaunches *r)
{
	memset(r, 0, sizeof *r);
	return um_relaunches_build(r, &c->s, c->again);
}

static void end(struct chain *c, struct um_relaunches *r)
{
	um_relaunches_fini(r);
	um_schedule_fini(&c->s);
}

static void test_gap(void)
{
	struct um_relaunches r;
	struct chain c;

	init(&c, 5, "r0 w1", "r1", "r0 r1");
	is_int(build(&c, &r), 0, "a relaunch that may come at any time is accepted");
	is_int((long)r.gaps.n, 1, "it ends a gap");
	is_int(r.gaps.at[0].slot, (long)c.y, "of the slot that it writes");
	is_int(r.gaps.at[0].from, 2, "which begins after its last use");
	is_int(r.gaps.at[0].to, 3, "and ends with the relaunch");
	is_int(r.last.at[c.x], 4, "what it reads is needed until then");
	end(&c, &r);
}

static void refused(struct chain *c, const char *why)
{
	struct um_relaunches r;

	is_int(build(c, &r), -EINVAL, "refused: %s", why);
	end(c, &r);
}

static void test_refusals(void)
{
	struct chain c;

	init(&c, 5, "r0 w1", "r1 u0", "r1");
	refused(&c, "its input was written since");
	init(&c, 5, "r0 w1", "u1", "r1");
	refused(&c, "two ops write its output");
	init(&c, 3, "r0 w1", "r1", "r1");
	refused(&c, "its input was freed");
	init(&c, 5, "r0 w1@0+512", "r1", "r1");
	refused(&c, "it writes a part of its output");
	init(&c, 5, "r0 w1", "r1", "r1");
	c.s.ops.at[2].stream = 1;
	refused(&c, "ops are on several streams");
}

/* Two layers are dropped; the second one is made from the first one. */
static void test_order(void)
{
	struct um_relaunches r;
	struct chain c;

	memset(&c, 0, sizeof c);
	um_schedule_init(&c.s);
	fx_slot(&c.s, FX_MIB, 0, 7);
	fx_slot(&c.s, FX_MIB, 1, 7);
	fx_slot(&c.s, FX_MIB, 2, 7);
	fx_op(&c.s, "input", 1, "w0");
	fx_op(&c.s, "f", 1, "r0 w1");
	fx_op(&c.s, "f", 1, "r1 w2");
	fx_op(&c.s, "f", 1, "r0 w1");
	fx_op(&c.s, "f", 1, "r1 w2");
	fx_op(&c.s, "g", 1, "r2");
	fx_op(&c.s, "g", 1, "r1");
	c.again[3] = 2;
	c.again[4] = 3;
	is_int(build(&c, &r), 0, "a relaunch may read what another one made");
	r.open.at[r.open.n++] = 1;
	r.open.at[r.open.n++] = 0;
	is_int(um_relaunches_next(&r, 0), 3, "the first op of the program comes first");
	is_int(um_relaunches_next(&r, 2), 4, "the second op comes next");
	is_u64(um_relaunches_next(&r, 3), UINT32_MAX, "after both there is none");
	end(&c, &r);
}

/* f writes y and z, u updates y in place, which is read. Both are launched again before y is read once more. */
static void init_update(struct chain *c, const char *f, const char *u)
{
	memset(c, 0, sizeof *c);
	um_schedule_init(&c->s);
	for (int i = 0; i < 3; i++)
		fx_slot(&c->s, FX_MIB, 0, 8);
	fx_op(&c->s, "input", 1, "w0");
	fx_op(&c->s, "f", 1, f);
	fx_op(&c->s, "u", 1, u);
	fx_op(&c->s, "g", 1, "r1");
	fx_op(&c->s, "f", 1, f);
	fx_op(&c->s, "u", 1, u);
	fx_op(&c->s, "g", 1, "r1 r2");
	c->again[4] = 2;
	c->again[5] = 3;
}

static void test_update(void)
{
	struct um_relaunches r;
	struct chain c;

	init_update(&c, "r0 w1 w2", "r0 u1");
	is_int(build(&c, &r), 0, "ops that update a slot in place are launched again with the op that overwrote it");
	is_int((long)r.gaps.n, 2, "each slot that they write has one gap");
	is_int(r.gaps.at[0].slot, 2, "the second output of the first op");
	is_int(r.gaps.at[0].from, 2, "its gap begins after the update, which is launched with it");
	is_int(r.gaps.at[0].to, 5, "and ends with it");
	is_int(r.gaps.at[1].from, 3, "that of the updated slot begins after its last use");
	is_int(r.gaps.at[1].first, 4, "its memory is needed from the first relaunch on");
	is_int(r.gaps.at[1].made, 5, "and complete after the last one");
	r.open.at[r.open.n++] = 0;
	is_int(um_relaunches_next(&r, 0), 4, "for the second output alone both are launched");
	is_int(um_relaunches_next(&r, 2), 5, "the update after the overwrite");
	end(&c, &r);

	init_update(&c, "r0 w1 w2", "r0 u1");
	c.s.ops.at[5].n_uses = 0;
	refused(&c, "a relaunch overwrites a slot that was updated, and none updates it");
	init_update(&c, "r0 w1 w2", "r0 u1");
	c.again[4] = 3;
	c.again[5] = 2;
	refused(&c, "relaunches are not in the order of the program");
	init_update(&c, "r0 w1", "r1 w2");
	is_int(build(&c, &r), 0, "relaunches that write no slot together");
	r.open.at[r.open.n++] = r.gaps.at[0].slot == 2 ? 0 : 1;
	is_int(um_relaunches_next(&r, 0), 5, "are launched apart");
	end(&c, &r);
	init_update(&c, "r0 w1", "r0 u1 w2");
	c.s.ops.at[3].first_use = c.s.ops.at[1].first_use;
	c.s.ops.at[3].n_uses = 2;
	refused(&c, "the slot was overwritten since");
}

int main(void)
{
	test_gap();
	test_update();
	test_refusals();
	test_order();
	return tap_done();
}
