/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers that take turns: over how many iterations everybody is who he was, and the schedule of all of them as one.
 */
#include "learn/unroll.h"

#include "tap.h"

#define ODD (UM_BLOCK_BYTES + 512)

static struct um_schedule one, all;

static uint32_t slot(int32_t birth, int32_t death, uint32_t carry, uint64_t place)
{
	struct um_slot t = {.bytes = 1000,
			    .birth = birth,
			    .death = death,
			    .carry = carry,
			    .born_ord = birth >= 0 ? (uint32_t)one.births.n : 0,
			    .place = place,
			    .flags = place == UINT64_MAX ? 0 : UM_SLOT_FIXED,
			    .bound = {birth < 0 ? one.slots.n + 1 : 0},
			    .name = strdup("t")};

	if (birth >= 0 && um_vec_push(&one.births, (uint32_t)one.slots.n))
		abort();
	if (um_vec_push(&one.slots, t))
		abort();
	return (uint32_t)one.slots.n - 1;
}

static void op(uint32_t reads, uint32_t writes)
{
	struct um_sched_op o = {.name = strdup("op"), .first_use = (uint32_t)one.uses.n, .n_uses = 2, .ns = 5};

	if (um_vec_push(&one.uses, ((struct um_sched_use){.slot = reads, .access = UM_READ, .bytes = 1000})) ||
	    um_vec_push(&one.uses, ((struct um_sched_use){.slot = writes, .access = UM_WRITE, .bytes = 1000})) ||
	    um_vec_push(&one.ops, o))
		abort();
}

static void begin(void)
{
	um_schedule_fini(&one);
	um_schedule_fini(&all);
	um_schedule_init(&one);
	um_schedule_init(&all);
}

static uint32_t used(size_t op, uint32_t use)
{
	return all.uses.at[all.ops.at[op].first_use + use].slot;
}

static void test_swap(void)
{
	uint32_t a, b, c, t;

	begin();
	a = slot(-1, -1, 1, ODD);
	b = slot(-1, -1, 0, ODD + 4096);
	c = slot(-1, -1, 2, 8 * UM_BLOCK_BYTES);
	t = slot(0, 2, UM_NO_SLOT, UINT64_MAX);
	op(a, t);
	op(t, b);
	is_u64(um_unroll_iterations(&one), 2, "two swapping tensors repeat after two iterations");
	is_int(um_unroll_build(&one, 2, &all), 0, "two iterations become one schedule");
	is_u64(all.slots.n, 5, "what stays is one slot, what is born is one each time");
	is_u64(all.ops.n, 4, "the schedule has all four ops");
	ok(used(0, 0) == a && used(1, 1) == b, "first one way round");
	ok(used(2, 0) == b && used(3, 1) == a, "the second iteration uses the other buffers");
	ok(used(0, 1) == used(1, 0) && used(2, 1) == used(3, 0) && used(0, 1) != used(2, 1),
	   "what is born is used in its own iteration");
	for (uint32_t i = 0; i < 3; i++)
		ok(all.slots.at[i].carry == i && all.slots.at[i].bound.v == i + 1 &&
			   all.slots.at[i].place == one.slots.at[i].place,
		   "a tensor that stays keeps its slot");
	is_u64(all.births.n, 2, "the schedule has two births");
	is_int(all.slots.at[all.births.at[1]].birth, 2, "the second birth is in the second iteration");
	is_int(all.slots.at[all.births.at[1]].death, 4, "the second birth dies at the end of its iteration");
	is_u64(all.slots.at[all.births.at[1]].born_ord, 1, "births keep their ordinals");
	(void)c;
}

static void test_whether(void)
{
	begin();
	slot(-1, -1, 0, ODD);
	slot(-1, -1, 1, ODD);
	op(0, 1);
	is_u64(um_unroll_iterations(&one), 1, "no slots take turns");
	begin();
	slot(-1, -1, 1, 2 * UM_BLOCK_BYTES);
	slot(-1, -1, 0, 4 * UM_BLOCK_BYTES);
	op(0, 1);
	is_u64(um_unroll_iterations(&one), 1, "places that are alike: one plan fits both");
	begin();
	slot(-1, -1, 1, UINT64_MAX);
	slot(-1, -1, 0, UINT64_MAX);
	op(0, 1);
	is_u64(um_unroll_iterations(&one), 1, "places that the planner will choose: it makes them alike");
	begin();
	slot(-1, -1, 1, ODD);
	slot(-1, -1, 2, ODD);
	slot(-1, -1, 0, ODD);
	op(0, 1);
	is_u64(um_unroll_iterations(&one), 3, "three in turn: three iterations");
	slot(-1, -1, 4, ODD);
	slot(-1, -1, 3, ODD);
	is_u64(um_unroll_iterations(&one), 1, "three and two: six would be too many");
	begin();
	slot(-1, -1, 1, ODD);
	slot(-1, -1, 0, ODD);
	slot(1, 0, 2, UINT64_MAX);
	op(0, 1);
	op(2, 0);
	is_u64(um_unroll_iterations(&one), 1, "lives that reach into the next iteration: not told");
	begin();
	slot(-1, -1, 1, ODD);
	slot(-1, -1, 0, ODD);
	slot(-1, -1, 2, ODD);
	op(0, 1);
	is_u64(um_unroll_iterations(&one), 2, "beside a tensor that stays: two iterations");
	one.slots.at[2].flags |= UM_SLOT_SUPPLIED;
	is_u64(um_unroll_iterations(&one), 1, "beside another one each time: not told");
	begin();
}

int main(void)
{
	um_schedule_init(&one);
	um_schedule_init(&all);
	test_swap();
	test_whether();
	return tap_done();
}
