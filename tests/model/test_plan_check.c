/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof: figures worked by hand, and each way to be unsound. A byte is a nanosecond on the link, in both
 * directions.
 */
#include "fixture/plan_proof.h"
#include "model/plan_host.h"

/* Two slots of 100 bytes, one op each; both fit. */
static void everything_fits(void)
{
	begin(200);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "a", 10, "r0");
	fx_op(&p.sched, "b", 20, "u1");
	is_int(check(), 0, "all fits without a hint: what stays was brought once");
	is_u64(f.ns, 30, "the iteration takes the time of its ops");
	is_u64(f.peak_bytes, 200, "both tensors are resident at the peak");
	is_u64(f.h2d_bytes + f.d2h_bytes + f.stall_ns, 0, "nothing moves, nothing waits");
	p.budget = 199;
	refused("200 bytes resident, 199 allowed", "one byte less is too little");
}

/* Slots 0 and 1 take turns in room for one: each evicted behind its op and fetched before. */
static void turns(uint32_t access)
{
	begin(100);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "a", 10, access == UM_READ ? "r0" : "u0");
	fx_op(&p.sched, "b", 20, "r1");
	fx_hint(&p, UM_HINT_EVICT, 0, -1, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 0);
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 1);
}

static void copies(void)
{
	turns(UM_READ);
	is_int(check(), 0, "two take turns");
	is_u64(f.ns, 100 + 10 + 100 + 20, "each op waits for its copy");
	is_u64(f.stall_ns, 200, "the wait for the copy is the stall");
	is_u64(f.h2d_bytes, 200, "both tensors are copied in");
	is_u64(f.d2h_bytes, 0, "a tensor that was only read is not copied out");
	is_u64(f.peak_bytes, 100, "the tensors are never resident together");
	turns(UM_UPDATE);
	is_int(check(), 0, "the plan with a written tensor is sound");
	is_u64(f.ns, 100 + 10 + 100 + 100 + 20, "its copy out comes before the other one's copy in");
	is_u64(f.d2h_bytes, 100, "a written tensor is copied out");
	p.hints.at[2].copy = 0;
	refused("op 0 'a' reads 100 bytes of slot 0 that were discarded", "a promise that nothing is stale, broken");
}

/* A block is 2 MiB; the slots lie in two of them, and in the second one both. */
static void host_memory(void)
{
	turns(UM_UPDATE);
	p.sched.slots.at[0].place = 10 * UM_BLOCK_BYTES - 50;
	p.sched.slots.at[1].place = 10 * UM_BLOCK_BYTES + 50;
	is_int(check(), 0, "a plan without a host budget");
	is_u64(f.host_bytes, 2 * UM_BLOCK_BYTES, "blocks that are evicted count once each, in whole");
	p.host_budget = 2 * UM_BLOCK_BYTES;
	is_int(check(), 0, "two blocks of host memory are enough");
	p.host_budget--;
	refused("4194304 bytes of host memory for evicted blocks, 4194303 allowed", "one byte less is too little");
	is_u64(f.host_bytes, 2 * UM_BLOCK_BYTES, "the figures say how much is needed");
	p.sched.slots.at[0].place = p.sched.slots.at[1].place = UINT64_MAX;
	p.host_budget++;
	is_int(check(), 0, "slots without a place have blocks of their own");
	p.sched.ops.at[0].paged = 1;
	um_plan_host_bytes(&p, &f.host_bytes);
	is_u64(f.host_bytes, 2 * UM_BLOCK_BYTES, "with a paged op all blocks count");
	p.hints.n = 0;
	p.sched.ops.at[0].paged = 0;
	um_plan_host_bytes(&p, &f.host_bytes);
	is_u64(f.host_bytes, 0, "without evictions no block counts");
	p.sched.ops.at[0].stream = UM_STREAM_CPU;
	um_plan_host_bytes(&p, &f.host_bytes);
	is_u64(f.host_bytes, UM_BLOCK_BYTES, "what the CPU accesses is on the host");
	begin(100);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	p.sched.slots.at[0].carry = 1;
	p.sched.slots.at[1].carry = 0;
	fx_op(&p.sched, "a", 10, "r0");
	fx_op(&p.sched, "b", 10, "r1");
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 0);
	um_plan_host_bytes(&p, &f.host_bytes);
	is_u64(f.host_bytes, 2 * UM_BLOCK_BYTES, "buffers that take turns are evicted in turn");
}

static void starts(void)
{
	turns(UM_READ);
	ok(!p.start && check() == 0 && !p.start, "a check leaves no starts behind");
	is_int(um_plan_prove(&p, &f, why, sizeof why), 0, "the plan is proved");
	is_u64(p.start[0], 100, "op 0 starts when its copy has come");
	is_u64(p.start[1], 100 + 10 + 100, "op 1 starts after the wait of op 0");
	is_u64(p.start[2], 100 + f.ns, "op 0 of the next iteration starts after the iteration's time");
	p.hints.n = 0;
	ok(um_plan_prove(&p, NULL, why, sizeof why) == -EINVAL && !p.start, "an unsound plan has no starts");
}

static void read_mostly(void)
{
	turns(UM_READ);
	fx_hint(&p, UM_HINT_ADVISE, 1, -1, 0);
	p.hints.at[4].advice = UM_ADVICE_READ_MOSTLY;
	is_int(check(), 0, "read mostly, and only read");
	is_u64(f.ns, 100 + 10 + 100 + 20, "takes as long: clean leaves without a copy as it is");
	turns(UM_UPDATE);
	fx_hint(&p, UM_HINT_ADVISE, 1, -1, 0);
	p.hints.at[4].advice = UM_ADVICE_READ_MOSTLY;
	refused("slot 0 is advised read-mostly, but an op writes it", "read mostly, and written");
	p.hints.at[4].slot = 1;
	is_int(check(), 0, "another one is");
	p.hints.at[4].bytes = 101;
	refused("slot 1 has no such range", "advice for more than there is");
}

/* Room for 100 bytes, and an op that updates 300. */
static void paged(void)
{
	begin(100);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 300, -1, -1);
	fx_op(&p.sched, "a", 10, "u0");
	fx_op(&p.sched, "large", 20, "u1");
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 0);
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 0);
	fx_hint_part(&p, UM_HINT_PREFETCH, 1, 0, 1, 0, 100);
	refused("300 bytes resident of 100", "an op above the budget that is not paged is unsound");
	p.sched.ops.at[1].paged = 1;
	is_int(check(), 0, "a plan with a paged op is sound");
	is_u64(f.ns, 100 + 10 + 100 + 100 + 20 + 200 + 200,
	       "a paged op takes its time, and that of its absent bytes in and of those above the budget out");
	is_u64(f.peak_bytes, 100, "bytes that the driver brings do not count towards the budget");
	p.hints.n = 1;
	p.hints.at[0].kind = UM_HINT_EVICT;
	refused("op 0 'a': 100 bytes of slot 0 are absent", "nothing counts as resident after a paged op");
}

/* The CPU reads what op 0 wrote, and writes what op 2 reads. */
static void by_cpu(void)
{
	begin(200);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "a", 10, "u0");
	fx_op(&p.sched, "host", 0, "r0 w1");
	fx_op(&p.sched, "b", 20, "r1");
	p.sched.ops.at[1].stream = UM_STREAM_CPU;
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 0);
	refused("op 2 'b': 100 bytes of slot 1 are absent", "what the CPU wrote must be prefetched again");
	p.hints.n = 0;
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 1);
	is_int(check(), 0, "a plan that prefetches after the CPU's access is sound");
	is_u64(f.ns, 100 + 10 + 100 + 100 + 20, "the CPU waits for the copy of what is stale on the host");
	is_u64(f.d2h_bytes, 100, "only the stale range is copied to the host");
	p.hints.n = 1;
	fx_hint(&p, UM_HINT_DISCARD, 1, 0, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 1);
	refused("reads 100 bytes of slot 0", "the CPU must not read discarded content");
}

static void advise(uint32_t slot, int advice)
{
	fx_hint(&p, UM_HINT_ADVISE, (int32_t)p.sched.ops.n - 1, -1, slot);
	p.hints.at[p.hints.n - 1].advice = advice;
}

/* A table of 1,000 bytes, of which two ops look up 50 each, beside something that takes all of the budget. */
static void far(int update)
{
	begin(100);
	fx_slot(&p.sched, 1000, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "look up", 10, "r0 r1");
	fx_op(&p.sched, "again", 150, update ? "u0 u1" : "r0 r1");
	p.sched.uses.at[0].touched = p.sched.uses.at[2].touched = 50;
	p.remote = 500000000;
	advise(0, UM_ADVICE_PREFERRED);
	advise(0, UM_ADVICE_ACCESSED_BY);
}

static void on_the_host(void)
{
	far(0);
	is_int(check(), 0, "a table stays on the host");
	is_u64(f.ns, 100 + 150, "an op takes what the link does for what it looks up, or its own time");
	is_u64(f.h2d_bytes + f.d2h_bytes, 0, "a table on the host is never copied");
	is_u64(f.peak_bytes, 100, "a table on the host takes no room");
	far(1);
	is_int(check(), 0, "it may be written there");
	p.hints.at[0].off = 200;
	p.hints.at[0].bytes = 800;
	p.budget = 300;
	is_int(check(), 0, "the plan without the first 200 bytes is sound");
	is_u64(f.peak_bytes, 300, "the bytes on the device take room");
	is_u64(f.ns, 80 + 150, "the bytes on the device are not reached over the link");
	far(0);
	p.hints.n--;
	refused("1100 bytes resident, 100 allowed", "preferred on the host alone does not do");
	far(0);
	p.remote = 0;
	refused("1100 bytes resident, 100 allowed", "nor without a rate");
	far(0);
	p.sched.uses.at[0].touched = 1000;
	is_int(check(), 0, "an op that exceeds the budget may access all of what stays on the host");
	is_u64(f.ns, 2000 + 150, "it takes what the link needs for all of that");
	p.budget = 4 * UM_BLOCK_BYTES;
	refused("slot 0 is advised to stay on the host, but an op uses it as a whole, and "
		"none that exceeds the budget does",
		"an op that fits uses as a whole what stays on the host");
	far(0);
	fx_op(&p.sched, "checkpoint", 0, "r0");
	p.sched.ops.at[2].stream = UM_STREAM_CPU;
	is_int(check(), 0, "the CPU may read all of a table that stays on the host");
	is_u64(f.ns, 100 + 150, "that takes no time of the link");
	far(0);
	fx_hint_part(&p, UM_HINT_PREFETCH, 1, 0, 0, 10, 10);
	refused("hint 2 at op 1: slot 0 is advised to stay on the host", "and is brought");
	far(0);
	p.sched.slots.at[0].birth = 0;
	p.sched.slots.at[0].death = 2;
	p.sched.slots.at[0].carry = UM_NO_SLOT;
	refused("slot 0 is advised to stay on the host, but it does not live in all iterations", "and is freed");
}

/* With room for both, the copy out of one and the copy in of the other overlap, and both overlap the op between. */
static void overlap(void)
{
	begin(300);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "a", 10, "u0");
	fx_op(&p.sched, "b", 200, "u2");
	fx_op(&p.sched, "c", 20, "r1");
	fx_hint(&p, UM_HINT_EVICT, 0, -1, 1);
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 0, 0);
	is_int(check(), 0, "copies beside an op");
	/* Slot 1 comes at 10..110; slot 0 is out at 110 and back at 210, when op b ends. */
	is_u64(f.ns, 230, "the copies overlap with the op");
	is_u64(f.h2d_bytes, 200, "two tensors are copied in");
	is_u64(f.d2h_bytes, 100, "one tensor is copied out");
	is_u64(f.peak_bytes, 300, "three tensors are resident at the peak");
	p.sched.ops.at[1].ns = 190;
	is_int(check(), 0, "the plan with a shorter op is sound");
	/* b ends at 200, c runs until 220, and slot 0 is there at 210. */
	is_u64(f.ns, 220, "hides them as well");
	p.sched.ops.at[1].ns = 100;
	is_int(check(), 0, "a much shorter op keeps the plan sound");
	is_u64(f.stall_ns, 80, "the part of the copy that is not hidden is a stall");
}

static void births(void)
{
	begin(150);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 50, 1, 2);
	fx_op(&p.sched, "a", 10, "u0");
	fx_op(&p.sched, "b", 10, "w1 r0");
	fx_op(&p.sched, "c", 10, "r0");
	refused("op 1 'b': 50 bytes of slot 1 are absent", "what is born must be made resident");
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 1);
	is_int(check(), 0, "a prefetch may make new memory resident");
	is_u64(f.ns, 30, "the prefetch of new memory takes no time");
	is_u64(f.h2d_bytes, 0, "the prefetch of new memory copies nothing");
	p.hints.at[0].at = 2;
	refused("slot 1 is not alive", "not behind the free");
	p.hints.at[0].at = 0;
	p.hints.at[0].after = -1;
	refused("slot 1 is not alive", "not ahead of the birth");
}

/* Born at op 2, freed before op 1 of the next iteration. */
static void born_and_freed_later(void)
{
	begin(100);
	fx_slot(&p.sched, 100, 2, 1);
	fx_op(&p.sched, "a", 10, "r0");
	fx_op(&p.sched, "b", 10, "");
	fx_op(&p.sched, "c", 10, "w0");
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 0);
	is_int(check(), 0, "a life through the iteration's end");
	is_u64(f.ns, 30, "the iteration takes no time for a copy");
	p.hints.at[0].after = 0;
	fx_hint(&p, UM_HINT_DISCARD, 2, 1, 0);
	refused("op 2 'c': 100 bytes of slot 0 are absent", "dropped before it is used");
	um_vec_clear(&p.hints);
	p.sched.slots.at[0].birth = 1;
	fx_hint(&p, UM_HINT_DISCARD, 1, -1, 0);
	refused("slot 0 is not alive", "not while its forerunner is");
}

/* Two buffers that swap roles: 0 is read, 1 written. */
static void swap(void)
{
	begin(100);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	p.sched.slots.at[0].carry = 1;
	p.sched.slots.at[1].carry = 0;
	fx_op(&p.sched, "a", 10, "r0");
	fx_op(&p.sched, "b", 10, "w1");
	fx_hint(&p, UM_HINT_DISCARD, 1, 0, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 1);
	is_int(check(), 0, "what is written as 1 is read as 0");
	is_u64(f.h2d_bytes, 0, "the tensor stays on the device");
	p.hints.at[0].slot = 1;
	p.hints.at[0].at = 0;
	p.hints.at[0].after = -1;
	refused("slot 0", "and must not be thrown away under its other name");
	p.sched.slots.at[0].carry = 0;
	refused("slot 1 cannot carry", "because slot 0 carries it");
}

static void dead_content(void)
{
	begin(100);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "a", 10, "w0");
	fx_op(&p.sched, "b", 10, "r1");
	fx_hint(&p, UM_HINT_EVICT, 0, -1, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 0);
	fx_hint(&p, UM_HINT_DISCARD, 1, 0, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 1);
	is_int(check(), 0, "overwritten as a whole: may be dropped");
	is_u64(f.ns, 120, "the discarded tensor returns in no time");
	p.sched.uses.at[0].access = UM_UPDATE;
	refused("op 0 'a' reads 100 bytes of slot 0", "not if the old content is read");
	p.sched.slots.at[0].flags = UM_SLOT_TRANSIENT;
	is_int(check(), 0, "a discard of a transient tensor is sound");
	p.sched.slots.at[0].flags = 0;
	p.sched.uses.at[0].dead_after = 1;
	is_int(check(), 0, "a discard of a tensor that is dead after its use is sound");
	p.sched.uses.at[0].dead_after = 0;
	p.sched.uses.at[0].access = UM_WRITE;
	p.sched.uses.at[0].bytes = 60;
	is_int(check(), 0, "written in part: no op reads the rest");
	fx_op(&p.sched, "c", 10, "");
	p.sched.ops.at[2].first_use = 0;
	p.sched.ops.at[2].n_uses = 1;
	p.sched.uses.at[0].access = UM_READ;
	refused("slot 0", "read in part");
}

static void parts(void)
{
	begin(100);
	fx_slot(&p.sched, 200, -1, -1);
	fx_op(&p.sched, "a", 10, "r0@0+100");
	fx_op(&p.sched, "b", 10, "u0@100+100");
	fx_hint_part(&p, UM_HINT_EVICT, 0, -1, 0, 100, 100);
	fx_hint_part(&p, UM_HINT_PREFETCH, 0, -1, 0, 0, 100);
	fx_hint_part(&p, UM_HINT_EVICT, 1, 0, 0, 0, 100);
	fx_hint_part(&p, UM_HINT_PREFETCH, 1, 0, 0, 100, 60);
	refused("op 1 'b': 40 bytes of slot 0 are absent", "ranges are exact");
	fx_hint_part(&p, UM_HINT_PREFETCH, 1, 0, 0, 160, 40);
	is_int(check(), 0, "an eviction in two pieces is sound");
	is_u64(f.d2h_bytes, 100, "only the written half is copied");
	is_u64(f.ns, 100 + 100 + 10 + 100 + 10, "the copies run one after the other");
}

static void waits(void)
{
	begin(100);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "a", 10, "r0");
	fx_op(&p.sched, "b", 10, "r1");
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 0);
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 1);
	refused("waits forever", "nothing makes room");
	um_vec_clear(&p.hints);
	turns(UM_READ);
	p.hints.n--;
	refused("op 1 'b': 100 bytes of slot 1 are absent and not in flight", "one is not asked for");
	begin(300);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "a", 10, "r0");
	fx_op(&p.sched, "b", 50, "");
	fx_op(&p.sched, "c", 10, "r0");
	fx_hint(&p, UM_HINT_EVICT, 2, 1, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 0);
	is_int(check(), 0, "an eviction with an immediate prefetch is sound");
	is_u64(f.ns, 170, "the op waits");
	p.hints.at[0].after = 0;
	p.hints.at[0].at = 1;
	p.hints.at[1].after = -1;
	refused("op 2 'c': 100 bytes of slot 0 are absent", "asked for before it leaves, in vain");
}

static void in_use(void)
{
	begin(300);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "a", 10, "u0");
	fx_op(&p.sched, "b", 500, "r1");
	fx_op(&p.sched, "c", 10, "u0");
	/* Slot 0 is out for 100 from op a on, and slot 1 has to wait for that, in the middle of op b. */
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 0);
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 0);
	refused("slot 1 is evicted while the op uses it", "not under an op's feet");
}

static void rules(void)
{
	turns(UM_READ);
	p.hints.at[3].after = 1;
	refused("waits for op 1", "`after` is below `at`");
	turns(UM_READ);
	p.hints.at[0].at = 1;
	refused("at 0, after a hint at 1", "`at` never goes down");
	turns(UM_READ);
	p.hints.at[3].at = 2;
	refused("of 2 ops", "no op behind the last");
	turns(UM_READ);
	p.hints.at[1].bytes = 101;
	refused("no such range", "a range inside its slot");
	turns(UM_READ);
	p.hints.at[1].slot = 2;
	refused("no such range", "a slot that is there");
	turns(UM_READ);
	p.sched.slots.at[1].flags = UM_SLOT_UNMANAGED;
	refused("not managed", "no hints on memory that is not managed");
	turns(UM_READ);
	p.sched.slots.at[1].birth = 3;
	refused("birth 3", "a birth inside the iteration");
	turns(UM_READ);
	p.sched.slots.at[1].birth = 1;
	refused("birth 1, death -1", "a birth without a death");
	turns(UM_READ);
	p.sched.slots.at[1].death = 1;
	p.sched.slots.at[1].carry = UM_NO_SLOT;
	refused("op 1 'b' uses slot 1, which is not alive", "no use behind the free");
	turns(UM_READ);
	p.sched.slots.at[1].bytes = 90;
	p.sched.uses.at[1].bytes = 90;
	p.sched.slots.at[1].carry = 0;
	p.sched.slots.at[0].carry = 1;
	refused("cannot carry the tensor of slot", "another size is another tensor");
	turns(UM_READ);
	p.h2d = 0;
	refused("0 and", "a link");
	begin(1);
	refused("0 ops", "something to do");
}

/* Nothing is read behind a prefetch that is still on its way, and figures hold when copies run on into the next
 * iteration. */
static void around_the_end(void)
{
	begin(300);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 200, -1, -1);
	fx_op(&p.sched, "a", 10, "r0");
	fx_op(&p.sched, "b", 10, "u1");
	fx_op(&p.sched, "c", 150, "");
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 0);
	is_int(check(), 0, "a prefetch for the next iteration is sound");
	is_u64(f.ns, 170, "the ordered copy arrives in time");
	p.sched.ops.at[2].ns = 30;
	is_int(check(), 0, "a plan whose copy arrives late is sound");
	is_u64(f.ns, 10 + 10 + 100, "the next iteration waits");
	is_u64(f.stall_ns, 70, "the op stalls for the rest of the copy");
}

int main(void)
{
	um_plan_init(&p);
	everything_fits();
	copies();
	host_memory();
	starts();
	paged();
	by_cpu();
	read_mostly();
	on_the_host();
	overlap();
	births();
	born_and_freed_later();
	swap();
	dead_content();
	parts();
	waits();
	in_use();
	rules();
	around_the_end();
	um_plan_fini(&p);
	return tap_done();
}
