/* SPDX-License-Identifier: Apache-2.0
 *
 * The proof of plans with relaunches: figures worked by hand, and each way to end with other content than without
 * hints. A byte is a nanosecond on the link, in both directions.
 */
#include "fixture/plan_proof.h"

/* Slot 1 is made from slot 0 and used by the last op; slot 2 needs its room in between. */
static void make_again(uint64_t budget)
{
	begin(budget);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, 0, 3);
	fx_slot(&p.sched, 100, 1, 2);
	fx_op(&p.sched, "make", 10, "r0 w1");
	fx_relaunch(&p.sched, "1");
	fx_op(&p.sched, "other", 20, "w2");
	fx_op(&p.sched, "use", 5, "r1");
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 1);
	fx_hint(&p, UM_HINT_DISCARD, 1, 0, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 2);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 1);
	fx_again(&p, 2, 0, "");
}

static void figures(void)
{
	make_again(200);
	sound("a tensor that is dropped and made again is sound");
	is_u64(f.ns, 10 + 20 + 10 + 5, "a relaunch takes the time of its op");
	is_u64(f.again_ns, 10, "the time of relaunches is counted");
	is_u64(f.stall_ns, 0, "a relaunch is no stall");
	is_u64(f.h2d_bytes + f.d2h_bytes, 0, "a relaunch copies nothing");
	is_u64(f.peak_bytes, 200, "the room of a dropped tensor is free");
	is_int(um_plan_prove(&p, &f, why, sizeof why), 0, "the plan is proved");
	ok(p.start[1] == 10 && p.start[2] == 10 + 20 + 10, "starts are those of the program's ops");
	p.hints.at[3] = p.hints.at[4];
	p.hints.n--;
	sound("a relaunch makes room for its output itself");
	is_u64(f.ns, 45, "which takes no time");
	p.hints.n--;
	refused("op 2 'use': 100 bytes of slot 1 are absent", "without the relaunch the tensor is absent");
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 1);
	refused("op 2 'use' reads 100 bytes of slot 1 that were discarded", "room alone is no content");
}

/* The relaunch's input leaves meanwhile, and returns by a copy. */
static void inputs_return(void)
{
	make_again(200);
	p.hints.n = 3;
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 0);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 1);
	fx_again(&p, 2, 0, "");
	sound("the input of a relaunch may leave and return");
	is_u64(f.ns, 10 + 20 + 100 + 10 + 5, "the relaunch waits for its input");
	is_u64(f.stall_ns, 100, "the wait of a relaunch is a stall");
	p.hints.at[4] = p.hints.at[5];
	p.hints.at[5] = p.hints.at[6];
	p.hints.n--;
	refused("op 0 'make' again before op 2: 100 bytes of slot 0 are absent and not in flight",
		"an input that does not return is seen");
	p.hints.n--;
	fx_again(&p, 2, 0, "");
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 0);
	refused("op 0 'make' again before op 2: 100 bytes of slot 0 are absent and not in flight",
		"a prefetch issued after the relaunch does not count");
}

/* Slot 3, used by the last op alone, is away meanwhile. */
static void other_copies(void)
{
	make_again(400);
	fx_slot(&p.sched, 100, -1, -1);
	fx_op(&p.sched, "last", 1, "r3");
	p.hints.n = 0;
	fx_hint(&p, UM_HINT_EVICT, 0, -1, 3);
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 1);
	fx_hint(&p, UM_HINT_DISCARD, 1, 0, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 2);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 3);
	fx_again(&p, 2, 0, "");
	sound("a relaunch runs while a prefetch is under way");
	is_u64(f.ns, 10 + 20 + 100 + 1, "relaunch and op take place during the copy");
	is_u64(f.stall_ns, 100 - 10 - 5, "only the op that uses the copied tensor waits");
}

static void other_content(void)
{
	make_again(200);
	p.sched.uses.at[2] = (struct um_sched_use){0, UM_UPDATE, 0, 100, 100, 0};
	p.hints.at[2].slot = 0;
	refused("op 0 'make' again before op 2 reads 100 bytes of slot 0 whose content is not that of the first time",
		"an input that was updated since is refused");
	p.sched.uses.at[2].access = UM_WRITE;
	p.sched.uses.at[2].off = 60;
	p.sched.uses.at[2].bytes = 40;
	refused("reads 40 bytes of slot 0", "an input of which a part was overwritten since is refused");
	make_again(200);
	p.sched.slots.at[0].flags = UM_SLOT_TRANSIENT;
	refused("reads 100 bytes of slot 0", "an input without content is refused");
	make_again(200);
	p.sched.uses.at[0].dead_after = 1;
	refused("reads 100 bytes of slot 0", "an input that was declared dead is refused");
	/* the same, by a slot that is freed and born again as another tensor */
	make_again(200);
	p.sched.slots.at[0].birth = 1;
	p.sched.slots.at[0].death = 1;
	p.sched.uses.at[2].slot = 0;
	p.sched.uses.at[2].access = UM_READ;
	p.hints.at[2].slot = 0;
	refused("reads 100 bytes of slot 0", "an input that is another tensor meanwhile is refused");
}

/* Slot 1 is made, updated in place twice, dropped, and made again. */
static void in_place(void)
{
	begin(200);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, 0, 5);
	fx_slot(&p.sched, 100, 3, 4);
	fx_op(&p.sched, "make", 10, "r0 w1");
	fx_relaunch(&p.sched, "1");
	fx_op(&p.sched, "scale", 7, "u1");
	fx_relaunch(&p.sched, "1");
	fx_op(&p.sched, "shift", 8, "u1");
	fx_relaunch(&p.sched, "1");
	fx_op(&p.sched, "other", 20, "w2");
	fx_op(&p.sched, "use", 5, "r1");
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 1);
	fx_hint(&p, UM_HINT_DISCARD, 3, 2, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 3, 2, 2);
	fx_hint(&p, UM_HINT_PREFETCH, 4, 3, 1);
	fx_again(&p, 4, 0, "");
	fx_again(&p, 4, 1, "");
	fx_again(&p, 4, 2, "");
	sound("all writers since the last whole overwrite make a tensor again");
	is_u64(f.ns, 10 + 7 + 8 + 20 + 10 + 7 + 8 + 5, "each relaunch takes its time");
	p.hints.at[5].slot = 2;
	p.hints.at[6].slot = 1;
	refused("op 2 'shift' again before op 4 reads 100 bytes of slot 1", "writers in another order are refused");
	p.hints.at[5].slot = 1;
	p.hints.n--;
	refused("op 4 'use' reads 100 bytes of slot 1 that were discarded", "an older version is no content");
	p.hints.at[4].slot = 1;
	p.hints.n--;
	refused("op 1 'scale' again before op 4 reads 100 bytes of slot 1", "an update needs the version before it");
	p.budget = 300;
	p.hints.at[1].bytes = 30;
	p.hints.at[3].bytes = 30;
	refused("op 1 'scale' again before op 4 reads 100 bytes of slot 1",
		"what was not dropped must not be updated twice");
	fx_again(&p, 4, 2, "");
	p.hints.at[4].slot = 0;
	p.hints.at[5].slot = 1;
	fx_again(&p, 4, 2, "");
	sound("a part that was dropped comes back with the whole tensor");
}

/* Slot 3 is read and written by the first op, which may be launched again without it. */
static void side_state(void)
{
	make_again(300);
	fx_slot(&p.sched, 100, -1, -1);
	um_vec_clear(&p.sched.uses);
	while (p.sched.ops.n)
		free(p.sched.ops.at[--p.sched.ops.n].name);
	fx_op(&p.sched, "make", 10, "r0 w1 u3");
	fx_relaunch(&p.sched, "1");
	fx_op(&p.sched, "other", 20, "w2");
	fx_op(&p.sched, "use", 5, "r1");
	p.hints.n = 0;
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 3);
	fx_hint(&p, UM_HINT_DISCARD, 1, 0, 1);
	fx_hint(&p, UM_HINT_EVICT, 1, 0, 3);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 2);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 1);
	fx_again(&p, 2, 0, "");
	sound("a relaunch does not need side state");
	is_u64(f.h2d_bytes, 100, "nor brings it");
	fx_relaunch(&p.sched, "1 3");
	p.sched.ops.at[0].first_relaunch = p.sched.ops.at[2].first_relaunch;
	p.sched.ops.at[0].n_relaunch = 2;
	refused("of slot 3", "what is updated and made again needs its old content");
}

/* The first op makes slots 1 and 3; slot 3 is updated later, and read after the relaunch. */
static void several_outputs(void)
{
	begin(400);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, 0, 4);
	fx_slot(&p.sched, 100, 1, 2);
	fx_slot(&p.sched, 100, 0, 4);
	fx_op(&p.sched, "make", 10, "r0 w1 w3");
	fx_relaunch(&p.sched, "1 3");
	fx_op(&p.sched, "other", 20, "w2");
	fx_op(&p.sched, "use", 5, "r1");
	fx_op(&p.sched, "more", 5, "r3");
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 3);
	fx_hint(&p, UM_HINT_DISCARD, 1, 0, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 2);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 1);
	fx_again(&p, 2, 0, "");
	sound("an output that has not changed may be written again");
	p.sched.uses.at[3] = (struct um_sched_use){3, UM_UPDATE, 0, 100, 100, 0};
	p.hints.at[3].slot = 3;
	refused("op 3 'more' reads 100 bytes of slot 3 that were discarded", "an output that changed since is lost");
	fx_scratch(&p.sched, 3, 2, 3);
	p.hints.n--;
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 4);
	fx_again(&p, 2, 0, "4");
	sound("scratch memory takes an output that changed since");
	is_u64(f.peak_bytes, 400, "scratch memory counts while it is used");
	p.budget = 399;
	refused("", "scratch memory needs room");
}

/* Slot 1 is made from slot 0, slot 2 from slot 1, which is freed; slot 2 is dropped and made again. */
static void ghost(void)
{
	begin(300);
	fx_slot(&p.sched, 100, -1, -1);
	fx_slot(&p.sched, 100, 0, 2);
	fx_slot(&p.sched, 100, 1, 4);
	fx_slot(&p.sched, 200, 2, 3);
	fx_op(&p.sched, "make", 10, "r0 w1");
	fx_relaunch(&p.sched, "1");
	fx_op(&p.sched, "next", 20, "r1 w2");
	fx_relaunch(&p.sched, "2");
	fx_op(&p.sched, "other", 30, "w3");
	fx_op(&p.sched, "use", 5, "r2");
	fx_scratch(&p.sched, 1, 3, 4);
	fx_hint(&p, UM_HINT_PREFETCH, 0, -1, 1);
	fx_hint(&p, UM_HINT_PREFETCH, 1, 0, 2);
	fx_hint(&p, UM_HINT_DISCARD, 2, 1, 2);
	fx_hint(&p, UM_HINT_PREFETCH, 2, 1, 3);
	fx_hint(&p, UM_HINT_PREFETCH, 3, 2, 4);
	fx_again(&p, 3, 0, "4");
	fx_hint(&p, UM_HINT_PREFETCH, 3, 2, 2);
	p.hints.at[p.hints.n - 1].again = 1;
	fx_again(&p, 3, 1, "4");
}

static void scratch(void)
{
	ghost();
	sound("a tensor that was freed is made again in scratch memory");
	is_u64(f.ns, 10 + 20 + 30 + 10 + 20 + 5, "both relaunches take their time");
	p.hints.at[7].n_scratch = 0;
	refused("op 1 'next' again before op 3: slot 1 is not alive", "the freed tensor itself cannot be used");
}

/* Waits for relaunches: the room of the scratch slot is free once the second one has finished. */
static void waits(void)
{
	ghost();
	fx_slot(&p.sched, 100, -1, -1);
	free(p.sched.ops.at[--p.sched.ops.n].name);
	p.sched.uses.n--;
	fx_op(&p.sched, "use", 5, "r2 r5");
	fx_hint(&p, UM_HINT_EVICT, 3, -1, 5);
	fx_hint(&p, UM_HINT_PREFETCH, 3, 2, 5);
	p.hints.at[p.hints.n - 1].again = 2;
	p.budget = 400;
	sound("a prefetch may wait for relaunches");
	p.hints.at[p.hints.n - 1].again = 3;
	refused("waits for op 2 and 3 relaunches", "but not for more than there are");
	ghost();
	p.hints.at[6].again = 2;
	refused("hint 6 at op 3 waits for a later relaunch", "nor for one that is issued later");
	ghost();
	p.hints.at[2].again = 1;
	refused("waits for op 1 and 1 relaunches", "nor for one where there is none");
}

static void rules(void)
{
	make_again(200);
	p.hints.at[4].slot = 2;
	refused("hint 4 at op 2: op 2 was not launched before", "only what was launched is launched again");
	p.hints.at[4].slot = 3;
	refused("hint 4 at op 2: op 3 was not launched before", "an op that does not exist is refused");
	p.hints.at[4].slot = 1;
	refused("op 1 'other' must not be launched again", "what is not declared is not launched again");
	make_again(200);
	p.sched.ops.at[0].stream = UM_STREAM_CPU;
	refused("must not be launched again", "an access of the CPU is not launched again");
	make_again(200);
	p.sched.ops.at[0].paged = 1;
	refused("must not be launched again", "a paged op is not launched again");
	ghost();
	p.sched.slots.at[4].of = 2;
	refused("op 0 'make' again before op 3: slot 1 is not alive",
		"scratch memory replaces the slot that it is for");
	ghost();
	p.sched.slots.at[4].of = 4;
	refused("slot 4 cannot be scratch memory for slot 4", "scratch memory is not for scratch memory");
	ghost();
	p.sched.slots.at[4].of = 3;
	refused("slot 4 cannot be scratch memory for slot 3", "scratch memory is as large as what it replaces");
	ghost();
	p.sched.slots.at[4].death = 3;
	refused("", "scratch memory has a birth and a death");
	ghost();
	p.sched.slots.at[4].birth = 2;
	p.sched.slots.at[4].death = 3;
	refused("slot 4 is not alive", "scratch memory is used in its life");
	ghost();
	p.sched.uses.at[5].slot = 4;
	refused("op uses slot 4, which is scratch memory", "ops of the program do not use scratch memory");
	ghost();
	p.scratch.at[1] = 2;
	refused("hint 7 at op 3: slot 2 is no scratch memory", "other slots do not replace any");
	ghost();
	p.hints.at[5].n_scratch = 3;
	refused("hint 5 at op 3: its scratch slots are out of range", "a list of scratch slots has an end");
	ghost();
	p.hints.at[4].after = 0;
	p.hints.at[4].at = 3;
	fx_scratch(&p.sched, 1, 3, 4);
	refused("slot 5: no relaunch uses this scratch memory", "scratch memory is used");
}

/* A tensor that lives on is dropped and not made again. */
static void around_the_end(void)
{
	make_again(300);
	p.sched.slots.at[1].birth = p.sched.slots.at[1].death = -1;
	p.sched.slots.at[1].carry = 1;
	sound("a tensor that lives on may be dropped and made again");
	p.hints.at[1] = p.hints.at[2];
	p.hints.at[2] = p.hints.at[3];
	p.hints.at[3] = p.hints.at[4];
	p.hints.n--;
	sound("content that was not dropped may be made again, too");
	p.sched.uses.at[1].access = UM_UPDATE;
	refused("op 0 'make' again before op 2 reads 100 bytes of slot 1", "but not if it is updated by that");
}

int main(void)
{
	um_plan_init(&p);
	figures();
	inputs_return();
	other_copies();
	other_content();
	in_place();
	side_state();
	several_outputs();
	scratch();
	waits();
	rules();
	around_the_end();
	um_plan_fini(&p);
	return tap_done();
}
