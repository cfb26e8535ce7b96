/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op uses beyond the budget: how much of it stays on the host, and of which slots.
 */
#include "fixture/plan_fixture.h"
#include "plan/spill.h"
#include "tap.h"

#define BLOCKS 8
#define SLOT (BLOCKS * UM_BLOCK_BYTES)

static struct um_plan p;
static struct um_host_resident range[8];

/* Slots of 8 blocks, one after the other, and room for `budget` blocks. */
static void begin(uint32_t slots, uint64_t budget)
{
	um_plan_fini(&p);
	um_plan_init(&p);
	memset(range, 0, sizeof range);
	p.budget = budget * UM_BLOCK_BYTES;
	for (uint32_t i = 0; i < slots; i++) {
		fx_slot(&p.sched, SLOT, -1, -1);
		p.sched.slots.at[i].place = i * SLOT;
	}
}

/* The op's traffic is `accesses` times the bytes that it touches. */
static void op(const char *uses, double accesses, double flops, int paged)
{
	int32_t i = fx_op(&p.sched, "op", 1000, uses);
	struct um_sched_op *o = &p.sched.ops.at[i];

	o->cost.bytes = accesses * um_sched_touched(&p.sched, o);
	o->cost.flops = flops * um_sched_touched(&p.sched, o);
	o->paged = (uint8_t)paged;
}

static uint64_t blocks(uint32_t slot)
{
	return range[slot].bytes / UM_BLOCK_BYTES;
}

static uint64_t all_blocks(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p.sched.slots.n; i++)
		n += blocks(i);
	return n;
}

int main(void)
{
	um_plan_init(&p);
	begin(3, 20);
	op("r0 r1 w2", 1, 0, 1);
	op("r0", 1, 0, 0);
	op("u2", 1, 0, 0);
	is_int(um_spill_paged(&p, range), 1, "a part of a paged op's data is spilled");
	is_u64(blocks(1), 4, "as many blocks are spilled as the op exceeds the budget by, of the slot used least");
	is_u64(all_blocks(), 4, "only that slot is spilled");
	is_u64(range[1].off + range[1].bytes, SLOT, "the end of the slot is spilled");

	begin(3, 4);
	op("r0 r1 w2", 1, 0, 1);
	is_int(um_spill_paged(&p, range), 1, "an op of six times the budget is spilled");
	is_u64(all_blocks(), 20, "as many slots are spilled as it takes");

	begin(3, 20);
	op("r0 r1 w2", 1, 0, 1);
	op("r1 r0", 1, 300, 0);
	um_spill_paged(&p, range);
	is_u64(blocks(2), 4, "what a product of matrices uses is not spilled");
	is_u64(all_blocks(), 4, "another slot is spilled in place of what a product uses");

	begin(3, 20);
	op("r0 r1 w2", 3, 0, 1);
	is_int(um_spill_paged(&p, range), 0, "an op that accesses each byte three times is left to page faults");
	begin(3, 20);
	op("r0 r1 w2", 0, 0, 1);
	is_int(um_spill_paged(&p, range), 0, "an op of unknown cost is left to page faults");
	begin(3, 20);
	op("r0 r1 w2", 1, 0, 0);
	is_int(um_spill_paged(&p, range), 0, "an op that is not paged keeps its data on the device");

	begin(4, 20);
	op("r0 r1 w2", 1, 0, 1);
	op("r0 r1 r3", 1, 0, 1);
	op("r0 r1", 1, 0, 0);
	um_spill_paged(&p, range);
	is_u64(blocks(2) + blocks(3), 8, "each of two paged ops spills what it alone uses");
	is_u64(all_blocks(), 8, "two paged ops spill nothing twice");

	begin(3, 20);
	op("r0 r1@0+8388608 w2", 1, 0, 1);
	is_int(um_spill_paged(&p, range), 0, "parts of slots count as what they are");
	begin(3, 20);
	p.sched.slots.at[1].birth = 0;
	op("w1 r0 u2", 1, 0, 1);
	um_spill_paged(&p, range);
	is_u64(blocks(1), 0, "a tensor that is born in the iteration is not spilled");
	is_u64(all_blocks(), 4, "tensors that live in all iterations are spilled in place of it");
	um_plan_fini(&p);
	return tap_done();
}
