/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that contexts of several devices use: who prefetches what, when copies are kept, and whose own it becomes.
 */
#include "runtime/joint.h"

#include "gpu/gpu.h"
#include "replay/block_lru.h"

#include "tap.h"

#define BASE ((uint64_t)1 << 32)
#define MIB ((uint64_t)1 << 20)

static const struct um_joint_run all = {BASE, 8 * MIB};
static int a, b;

/* Blocks to be prefetched by a use of the whole range. */
static uint64_t blocks_of_use(int context, int write, enum um_joint_how how, enum um_joint_advice *advice)
{
	struct um_joint_request r;
	uint64_t bytes = 0;

	um_joint_use(context, all, write, 1, how, &r);
	for (unsigned i = 0; i < r.n; i++)
		bytes += r.run[i].bytes;
	if (advice)
		*advice = r.advice;
	return bytes / UM_BLOCK_BYTES;
}

static uint64_t reads(int context)
{
	return blocks_of_use(context, 0, UM_JOINT_WHOLE, NULL);
}

static uint64_t writes(int context)
{
	return blocks_of_use(context, 1, UM_JOINT_WHOLE, NULL);
}

static void begin(int alone)
{
	a = um_joint_enter();
	b = um_joint_enter();
	um_joint_add(a, b, all, alone);
}

static void end(void)
{
	um_joint_leave_all(a);
	um_joint_leave_all(b);
}

static int is_alone(int context)
{
	struct um_joint_run range;
	int alone = 0;

	return um_joint_next(context, 0, &range, &alone) && alone;
}

static void moves(void)
{
	begin(-1);
	is_u64(writes(a), 4, "the first use prefetches all blocks");
	is_u64(writes(a), 0, "the same context does not prefetch them again");
	is_u64(writes(b), 4, "another one does");
	is_u64(reads(a), 4, "and takes them from the first");
	struct um_joint_request r;

	um_joint_use(b, (struct um_joint_run){BASE + 3 * MIB, 2 * MIB}, 1, 1, UM_JOINT_WHOLE, &r);
	ok(r.n == 1 && r.run[0].addr == BASE + 3 * MIB && r.run[0].bytes == 2 * MIB,
	   "a use of a part prefetches that part");
	is_u64(reads(a), 2, "and takes its two blocks alone");
	um_joint_use(a, all, 1, 0, UM_JOINT_WHOLE, &r);
	is_u64(r.n ? r.run[0].bytes : 0, all.bytes, "what does not stay is prefetched for each use");
	um_joint_use(a, all, 0, 1, UM_JOINT_ON_CPU, &r);
	is_u64(r.n, 0, "an access of the CPU prefetches nothing");
	is_u64(reads(a), 4, "and takes the blocks");
	is_u64(blocks_of_use(b, 1, UM_JOINT_SOMEWHERE, NULL), 0,
	       "where it is not known what an op accesses, nothing is prefetched");
	end();
}

static void several(void)
{
	struct um_joint_request r;

	begin(-1);
	um_joint_add(a, b, (struct um_joint_run){BASE - 4 * MIB, 4 * MIB}, -1);
	um_joint_use(a, (struct um_joint_run){BASE - 2 * MIB, 4 * MIB}, 1, 1, UM_JOINT_WHOLE, &r);
	ok(r.of.addr == BASE - 4 * MIB && r.of.bytes == 4 * MIB && r.n == 1 && r.run[0].bytes == 2 * MIB,
	   "of a part in two ranges, the use of the first one is reported");
	um_joint_use(a, (struct um_joint_run){BASE, 2 * MIB}, 1, 1, UM_JOINT_WHOLE, &r);
	ok(r.of.addr == BASE && r.n == 1 && r.run[0].bytes == 2 * MIB, "then that of the other");
	um_joint_use(a, (struct um_joint_run){BASE + 8 * MIB, MIB}, 1, 1, UM_JOINT_WHOLE, &r);
	ok(!r.of.bytes && !r.n, "behind both there is none");
	end();
}

static void keeps_copies(void)
{
	enum um_joint_advice advice = UM_JOINT_AS_IT_IS;

	begin(-1);
	for (int i = 0; i < 8; i++)
		reads(a);
	blocks_of_use(a, 0, UM_JOINT_WHOLE, &advice);
	is_int(advice, UM_JOINT_AS_IT_IS, "one context that reads needs no copies");
	blocks_of_use(b, 0, UM_JOINT_WHOLE, &advice);
	is_int(advice, UM_JOINT_ADVISE, "two that only read need them");
	is_u64(reads(a) + reads(b) + reads(a), 0, "then each context has a copy");
	is_u64(blocks_of_use(a, 0, UM_JOINT_SOMEWHERE, NULL), 0, "also where not all is accessed");
	blocks_of_use(b, 1, UM_JOINT_WHOLE, &advice);
	is_int(advice, UM_JOINT_WITHDRAW, "a write ends them");
	is_u64(reads(a), 4, "and takes the blocks of the others");
	for (int i = 0; i < 3; i++) {
		blocks_of_use(b, 0, UM_JOINT_WHOLE, &advice);
		reads(a);
	}
	is_int(advice, UM_JOINT_AS_IT_IS, "after it, copies need twice as many reads");
	blocks_of_use(b, 0, UM_JOINT_WHOLE, &advice);
	is_int(advice, UM_JOINT_ADVISE, "and come again");
	end();
}

static void belongs(void)
{
	unsigned news;

	begin(-1);
	writes(b);
	for (int i = 0; i < 63; i++)
		writes(a);
	ok(!is_alone(a), "after 63 uses in a row the range is still shared");
	news = atomic_load(&um_joint_news);
	writes(a);
	ok(is_alone(a) && !is_alone(b), "after 64 it is one context's own");
	ok(atomic_load(&um_joint_news) != news, "which is news");
	writes(b);
	ok(!is_alone(a) && !is_alone(b), "a use by another context ends that");
	for (int i = 0; i < 127; i++)
		writes(b);
	ok(is_alone(b), "then it takes twice as many uses");
	end();
	begin(a);
	ok(is_alone(a), "a context that alone has used a range so far has it for itself");
	end();
}

static void ends(void)
{
	struct um_joint_run range;
	int alone, more[UM_JOINT_CONTEXTS], n = 0;

	begin(-1);
	um_joint_leave(b, (struct um_joint_run){BASE + 4 * MIB, 8 * MIB});
	ok(!um_joint_next(a, 0, &range, &alone), "memory that has ended for one of two contexts is not shared");
	is_u64(writes(a), 0, "and its use requests nothing");
	um_joint_add(a, b, all, -1);
	ok(um_joint_next(b, 0, &range, &alone) && range.addr == all.addr && range.bytes == all.bytes,
	   "a range is found by each context");
	ok(!um_joint_next(b, BASE + 1, &range, &alone), "not from behind its start");
	um_joint_leave_all(b);
	ok(!um_joint_next(a, 0, &range, &alone), "a context that closes shares nothing any more");
	um_joint_leave_all(a);
	while (n < UM_JOINT_CONTEXTS && (more[n] = um_joint_enter()) >= 0)
		n++;
	is_int(n, UM_JOINT_CONTEXTS, "16 contexts get a number");
	is_int(um_joint_enter(), -1, "another one does not");
	while (n)
		um_joint_leave_all(more[--n]);
}

int main(void)
{
	moves();
	several();
	keeps_copies();
	belongs();
	ends();
	return tap_done();
}
