/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of blocks against plain arrays: the same answers after each of many random operations.
 */
#include "replay/horizon_blocks.h"

#include "fixture/random.h"
#include "tap.h"

#define CAPACITY 48u
#define BLOCKS 160u /* distinct addresses */
#define WINDOW 60u /* ops that are scanned */
#define IN_NS 1000
#define STEPS 60000

enum { NOT_KNOWN, LIVE, DEAD, MISSED };

static struct um_horizon_blocks t;
static uint64_t seed = 11;

static struct {
	int state, near;
	uint64_t next, died;
} model[BLOCKS];
static uint64_t lo, hi, deaths; /* ops of the window: [lo, hi) */
static int64_t begins[UM_HORIZON_OPS]; /* by number % UM_HORIZON_OPS */

static uint64_t addrs[BLOCKS + 1];

/* Addresses whose slots in the hash table are near its end, so that they collide and wrap. */
static void find_addrs(void)
{
	uint64_t addr = 0;

	for (uint32_t n = 0; n <= BLOCKS; addr += UM_BLOCK_BYTES) {
		uint32_t slot = (uint32_t)(addr / UM_BLOCK_BYTES * 0x9e3779b97f4a7c15ull >> 32) & t.mask;

		if (slot > t.mask - 80)
			addrs[n++] = addr;
	}
}

static uint64_t addr_of(uint32_t i)
{
	return addrs[i];
}

static uint32_t resident(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < BLOCKS; i++)
		n += model[i].state == LIVE || model[i].state == DEAD;
	return n;
}

static void extend(uint64_t to)
{
	for (; hi < to; hi++) {
		int64_t before = hi == lo ? 0 : begins[(hi - 1) % UM_HORIZON_OPS];

		begins[hi % UM_HORIZON_OPS] = before + (int64_t)test_random(&seed, 4 * IN_NS);
		t.misses[hi % UM_HORIZON_OPS].begins = begins[hi % UM_HORIZON_OPS];
	}
}

static uint64_t any_next(void)
{
	uint32_t k = test_random(&seed, 8);

	return k == 0 ? UM_HORIZON_UNKNOWN - lo : k == 1 ? UM_HORIZON_NEVER - lo : lo + test_random(&seed, 500);
}

static void pass(uint64_t to)
{
	um_horizon_blocks_pass(&t, to);
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (model[i].state == MISSED && model[i].next < to)
			model[i].state = NOT_KNOWN;
	lo = to;
	extend(lo + WINDOW);
}

static void begin(uint64_t op)
{
	um_horizon_blocks_begin(&t, op);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		model[i].near = 0;
		if (model[i].state == MISSED)
			model[i].state = NOT_KNOWN;
	}
	lo = hi = op;
	extend(lo + WINDOW);
}

static void drop(uint32_t i, struct um_horizon_block *b)
{
	um_horizon_blocks_drop(&t, b);
	model[i].state = NOT_KNOWN;
	model[i].near = 0;
}

static void change_live(uint32_t i, struct um_horizon_block *b)
{
	switch (test_random(&seed, 4)) {
	case 0:
		model[i].next = any_next();
		um_horizon_blocks_set_next(&t, b, model[i].next);
		break;
	case 1:
		model[i].near = (int)test_random(&seed, 2);
		um_horizon_blocks_set_near(&t, b, model[i].near);
		break;
	case 2:
		um_horizon_blocks_die(&t, b);
		model[i].state = DEAD;
		model[i].near = 0;
		model[i].died = ++deaths;
		break;
	default:
		drop(i, b);
	}
}

static void come(uint32_t i)
{
	if (resident() == CAPACITY)
		return;
	model[i].next = any_next();
	model[i].state = LIVE;
	um_horizon_blocks_come(&t, addr_of(i), model[i].next);
}

static void change(uint32_t i)
{
	struct um_horizon_block *b = um_horizon_blocks_find(&t, addr_of(i));
	int other = (int)test_random(&seed, 3);

	if (model[i].state == LIVE) {
		change_live(i, b);
	} else if (model[i].state == DEAD && other) {
		model[i].next = any_next();
		model[i].state = LIVE;
		um_horizon_blocks_revive(&t, b, model[i].next);
	} else if (model[i].state == MISSED && other) {
		come(i);
	} else if (model[i].state != NOT_KNOWN) {
		drop(i, b);
	} else if (other) {
		model[i].next = lo + test_random(&seed, WINDOW);
		model[i].state = MISSED;
		um_horizon_blocks_miss(&t, addr_of(i), model[i].next);
	} else {
		come(i);
	}
}

/* --- comparison --------------------------------------------------------------------------------------------------- */

static int same_find(void)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		const struct um_horizon_block *b = um_horizon_blocks_find(&t, addr_of(i));

		if (!b != (model[i].state == NOT_KNOWN))
			return 0;
		if (b && (b->addr != addr_of(i) || (int)b->state + 1 != model[i].state))
			return 0;
		if (b && b->state != UM_BLOCK_DEAD && b->next != model[i].next)
			return 0;
	}
	return !um_horizon_blocks_find(&t, addr_of(BLOCKS));
}

static int same_counts(void)
{
	uint32_t n[4] = {0}, near = 0;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		n[model[i].state]++;
		near += (uint32_t)model[i].near;
	}
	return t.n_live == n[LIVE] && t.n_dead == n[DEAD] && t.n_missed == n[MISSED] && t.n_near == near;
}

static int same_top(void)
{
	uint64_t furthest = 0;

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (model[i].state == LIVE && model[i].next > furthest)
			furthest = model[i].next;
	return !t.n_live || (t.heap->next == furthest && t.heap->block->next == furthest);
}

/* From the one that died first to the last. */
static int same_dead(void)
{
	uint64_t last = 0;
	uint32_t n = 0;

	for (uint32_t k = t.oldest; t.n_dead && k != UM_HORIZON_NONE; k = t.at[k].behind, n++) {
		uint32_t i = 0;

		while (i < BLOCKS && addr_of(i) != t.at[k].addr)
			i++;
		if (i == BLOCKS || model[i].state != DEAD || model[i].died <= last)
			return 0;
		last = model[i].died;
	}
	return n == t.n_dead;
}

static int same_first_missed(void)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (model[i].state == MISSED && model[i].next < first)
			first = model[i].next;
	return !t.n_missed || um_horizon_blocks_first_missed(&t)->next == first;
}

/* One prefetch after the other, those of an op before it begins. */
static int64_t slow_must_start(void)
{
	int64_t takes = 0, start = INT64_MAX;

	for (uint64_t op = lo; op < hi; op++) {
		int n = 0;

		for (uint32_t i = 0; i < BLOCKS; i++)
			n += model[i].state == MISSED && model[i].next == op;
		takes += n * IN_NS;
		if (n && begins[op % UM_HORIZON_OPS] - takes < start)
			start = begins[op % UM_HORIZON_OPS] - takes;
	}
	return start;
}

static void random_operations(void)
{
	int find = 1, counts = 1, top = 1, dead = 1, missed = 1, start = 1;

	if (um_horizon_blocks_init(&t, CAPACITY, IN_NS))
		tap_bail("no memory");
	find_addrs();
	begin(UM_HORIZON_OPS - 100); /* the ring of ops wraps */
	for (int i = 0; i < STEPS / tap_step(10); i++) {
		uint32_t what = test_random(&seed, 200);

		if (what == 0)
			begin(lo + test_random(&seed, 20));
		else if (what < 10)
			pass(lo + test_random(&seed, 4));
		else
			change(test_random(&seed, BLOCKS));
		counts &= same_counts();
		top &= same_top();
		missed &= same_first_missed();
		if (i % 16)
			continue;
		find &= same_find();
		dead &= same_dead();
		start &= um_horizon_blocks_must_start(&t, lo) == slow_must_start();
	}
	ok(find, "a block is found with its state and next use if and only if it is known");
	ok(counts, "blocks of each state are counted");
	ok(top, "the block that is used last of all is on top");
	ok(dead, "dead blocks are in the order in which they died");
	ok(missed, "the first missed block is one of the first op that misses any");
	ok(start, "prefetches must start when the slowest op by op computation says");
	um_horizon_blocks_fini(&t);
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

static void bounds(void)
{
	if (um_horizon_blocks_init(&t, 4, IN_NS))
		tap_bail("no memory");
	is_int(um_horizon_blocks_must_start(&t, 1) == INT64_MAX, 1, "where nothing is missed nothing must start");
	um_horizon_blocks_begin(&t, 1);
	for (uint64_t i = 0; i < UM_HORIZON_MISSED + 10; i++)
		um_horizon_blocks_miss(&t, (i + 1) * UM_BLOCK_BYTES, 1 + i % UM_HORIZON_OPS);
	is_u64(t.n_missed, UM_HORIZON_MISSED, "no more blocks are missed than there is room for");
	for (uint64_t i = 0; i < 4; i++)
		um_horizon_blocks_come(&t, (UM_HORIZON_MISSED + 20 + i) * UM_BLOCK_BYTES, i);
	is_u64(t.n_live, 4, "beside them as many blocks are resident as fit");
	ok(um_horizon_block_resident(um_horizon_blocks_find(&t, (UM_HORIZON_MISSED + 20) * UM_BLOCK_BYTES)) &&
		   !um_horizon_block_resident(um_horizon_blocks_find(&t, UM_BLOCK_BYTES)) &&
		   !um_horizon_block_resident(NULL),
	   "a missed block and one that is not known are not resident");
	um_horizon_blocks_begin(&t, 2);
	is_u64(t.n_missed, 0, "a new window misses nothing");
	um_horizon_blocks_fini(&t);
}

int main(void)
{
	random_operations();
	bounds();
	return tap_done();
}
