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
#define STEPS 60000

enum { NOT_KNOWN, LIVE, DEAD, MISSED };

static struct um_horizon_blocks t;
static uint64_t seed = 11;

static struct {
	int state, near;
	uint64_t next, entered; /* `entered`: its list */
} model[BLOCKS];
static uint64_t lo, entries; /* ops of the window: [lo, lo + WINDOW) */

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

static uint64_t any_next(void)
{
	return test_random(&seed, 8) ? lo + test_random(&seed, 500) : UM_HORIZON_UNKNOWN;
}

static void pass(uint64_t to)
{
	um_horizon_blocks_pass(&t, to);
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (model[i].state == MISSED && model[i].next < to)
			model[i].state = NOT_KNOWN;
	lo = to;
}

static void begin(uint64_t op)
{
	um_horizon_blocks_begin(&t, op);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		model[i].near = 0;
		if (model[i].state == MISSED)
			model[i].state = NOT_KNOWN;
	}
	lo = op;
}

static void enter(uint32_t i, int state, uint64_t next)
{
	model[i].state = state;
	model[i].next = next;
	model[i].entered = ++entries;
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
		enter(i, LIVE, any_next());
		um_horizon_blocks_set_next(&t, b, model[i].next);
		break;
	case 1:
		model[i].near = (int)test_random(&seed, 2);
		um_horizon_blocks_set_near(&t, b, model[i].near);
		break;
	case 2:
		um_horizon_blocks_die(&t, b);
		enter(i, DEAD, 0);
		model[i].near = 0;
		break;
	default:
		drop(i, b);
	}
}

static void come(uint32_t i)
{
	if (resident() == CAPACITY)
		return;
	enter(i, LIVE, any_next());
	um_horizon_blocks_come(&t, addr_of(i), model[i].next, (int)test_random(&seed, 2));
}

static void change(uint32_t i)
{
	struct um_horizon_block *b = um_horizon_blocks_find(&t, addr_of(i));
	int other = (int)test_random(&seed, 3);

	if (model[i].state == LIVE) {
		change_live(i, b);
	} else if (model[i].state == DEAD && other) {
		enter(i, LIVE, any_next());
		um_horizon_blocks_revive(&t, b, model[i].next);
	} else if (model[i].state == MISSED && other) {
		come(i);
	} else if (model[i].state != NOT_KNOWN) {
		drop(i, b);
	} else if (other) {
		enter(i, MISSED, lo + test_random(&seed, WINDOW));
		um_horizon_blocks_miss(&t, addr_of(i), model[i].next);
	} else {
		come(i);
	}
}

/* --- comparison --------------------------------------------------------------------------------------------------- */

static int model_state(const struct um_horizon_block *b)
{
	return b->state == UM_BLOCK_DEAD ? DEAD : b->state == UM_BLOCK_MISSED ? MISSED : LIVE;
}

static int same_find(void)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		const struct um_horizon_block *b = um_horizon_blocks_find(&t, addr_of(i));

		if (!b != (model[i].state == NOT_KNOWN))
			return 0;
		if (b && (b->addr != addr_of(i) || model_state(b) != model[i].state))
			return 0;
		if (b && model_state(b) != DEAD && b->next != model[i].next)
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
	return um_horizon_blocks_live(&t) == n[LIVE] && t.n[UM_BLOCK_DEAD] == n[DEAD] &&
	       um_horizon_blocks_resident(&t) == n[LIVE] + n[DEAD] && t.n[UM_BLOCK_MISSED] == n[MISSED] &&
	       t.n_near == near;
}

static int same_furthest(void)
{
	const struct um_horizon_block *b = um_horizon_blocks_furthest(&t);
	uint64_t furthest = 0, n = 0;

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (model[i].state == LIVE && model[i].next < UM_HORIZON_UNKNOWN) {
			furthest = model[i].next > furthest ? model[i].next : furthest;
			n++;
		}
	return n ? b && b->next == furthest : !b;
}

/* The block that entered this list first; BLOCKS: none. */
static uint32_t first_entered(int state, uint64_t next)
{
	uint32_t first = BLOCKS;

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (model[i].state == state && model[i].next == next &&
		    (first == BLOCKS || model[i].entered < model[first].entered))
			first = i;
	return first;
}

static int same_victim(void)
{
	const struct um_horizon_block *b = um_horizon_blocks_victim(&t);
	uint32_t i = first_entered(LIVE, UM_HORIZON_UNKNOWN);

	return i < BLOCKS ? b && b->addr == addr_of(i) : b == um_horizon_blocks_furthest(&t);
}

static int same_dead(void)
{
	const struct um_horizon_block *b = um_horizon_blocks_dead(&t);
	uint32_t i = first_entered(DEAD, 0);

	return i < BLOCKS ? b && b->addr == addr_of(i) : !b;
}

/* Of the first op that misses any: the block that entered first. */
static int same_first_missed(void)
{
	uint32_t first = BLOCKS;

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (model[i].state == MISSED &&
		    (first == BLOCKS || model[i].next < model[first].next ||
		     (model[i].next == model[first].next && model[i].entered < model[first].entered)))
			first = i;
	return first == BLOCKS || um_horizon_blocks_first_missed(&t)->addr == addr_of(first);
}

static void random_operations(void)
{
	int find = 1, counts = 1, furthest = 1, victim = 1, dead = 1, missed = 1;

	if (um_horizon_blocks_init(&t, CAPACITY))
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
		furthest &= same_furthest();
		victim &= same_victim();
		dead &= same_dead();
		missed &= same_first_missed();
		if (i % 16 == 0)
			find &= same_find();
	}
	ok(find, "a block is found with its state and next use if and only if it is known");
	ok(counts, "blocks of each state are counted");
	ok(furthest, "of the live blocks whose next use is known, the furthest is found");
	ok(victim, "a block that is not used again is evicted first, then one of unknown use, then the furthest");
	ok(dead, "of the dead blocks, the one that died first is found");
	ok(missed, "the first missed block is the first one that was missed for the first op that misses any");
	um_horizon_blocks_fini(&t);
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

static void bounds(void)
{
	if (um_horizon_blocks_init(&t, 4))
		tap_bail("no memory");
	um_horizon_blocks_begin(&t, 1);
	for (uint64_t i = 0; i < UM_HORIZON_MISSED + 10; i++)
		um_horizon_blocks_miss(&t, (i + 1) * UM_BLOCK_BYTES, 1 + i % UM_HORIZON_OPS);
	is_u64(t.n[UM_BLOCK_MISSED], UM_HORIZON_MISSED, "no more blocks are missed than there is room for");
	for (uint64_t i = 0; i < 4; i++)
		um_horizon_blocks_come(&t, (UM_HORIZON_MISSED + 20 + i) * UM_BLOCK_BYTES, i, 0);
	is_u64(um_horizon_blocks_live(&t), 4, "beside them as many blocks are resident as fit");
	ok(um_horizon_block_resident(um_horizon_blocks_find(&t, (UM_HORIZON_MISSED + 20) * UM_BLOCK_BYTES)) &&
		   !um_horizon_block_resident(um_horizon_blocks_find(&t, UM_BLOCK_BYTES)) &&
		   !um_horizon_block_resident(NULL),
	   "a missed block and one that is not known are not resident");
	um_horizon_blocks_begin(&t, 2);
	is_u64(t.n[UM_BLOCK_MISSED], 0, "a new window misses nothing");
	um_horizon_blocks_fini(&t);
}

/* --- some of them ------------------------------------------------------------------------------------------------- */

/* A bit for each block from the second on. */
static int is_in(void *user, uint64_t addr)
{
	return (int)(*(const unsigned *)user >> (addr / UM_BLOCK_BYTES) & 1);
}

static uint64_t chosen(unsigned of)
{
	const struct um_horizon_block *b = um_horizon_blocks_victim_of(&t, 10, is_in, &of);

	return b ? b->addr / UM_BLOCK_BYTES : 0;
}

static void some(void)
{
	const uint64_t next[] = {0, UM_HORIZON_UNKNOWN, UM_HORIZON_UNKNOWN, 30, 20, 10};

	if (um_horizon_blocks_init(&t, 8))
		tap_bail("no memory");
	um_horizon_blocks_begin(&t, 1);
	for (uint64_t i = 1; i <= 5; i++)
		um_horizon_blocks_come(&t, i * UM_BLOCK_BYTES, next[i], 0);
	is_u64(chosen(0x3e), 2, "of blocks of unknown use, one that came last is chosen");
	is_u64(chosen(0x3a), 1, "but only one that is accepted");
	is_u64(chosen(0x38), 3, "without one of these, the one that is used furthest from now");
	is_u64(chosen(0x30), 4, "likewise only one that is accepted");
	is_u64(chosen(0x20), 0, "none that the op at hand uses");
	is_u64(chosen(0), 0, "nothing is chosen where none is accepted");
	um_horizon_blocks_fini(&t);
}

/* --- host memory -------------------------------------------------------------------------------------------------- */

static void host_memory(void)
{
	static const struct {
		uint64_t next;
		int on_host;
	} is[] = {{0}, {20, 1}, {30, 0}, {30, 1}, {30, 0}, {30, 1}, {20, 1}};
	unsigned first = 0, then = 0;

	if (um_horizon_blocks_init(&t, 8))
		tap_bail("no memory");
	um_horizon_blocks_begin(&t, 1);
	for (uint64_t i = 1; i <= 6; i++)
		um_horizon_blocks_come(&t, i * UM_BLOCK_BYTES, is[i].next, is[i].on_host);
	for (int k = 0; k < 4; k++) {
		struct um_horizon_block *b = um_horizon_blocks_victim(&t);

		*(k < 2 ? &first : &then) |= 1u << (b->addr / UM_BLOCK_BYTES);
		um_horizon_blocks_drop(&t, b);
	}
	is_u64(first, 1u << 3 | 1u << 5, "of victims that are used equally late, those with host memory leave first");
	is_u64(then, 1u << 2 | 1u << 4, "those without leave before any that is used earlier");
	um_horizon_blocks_fini(&t);
}

/* --- latest uses -------------------------------------------------------------------------------------------------- */

static uint64_t number(const struct um_horizon_block *b)
{
	return b ? b->addr / UM_BLOCK_BYTES : 0;
}

static void latest_uses(void)
{
	struct um_horizon_block *b[6];

	if (um_horizon_blocks_init(&t, 8))
		tap_bail("no memory");
	ok(!um_horizon_blocks_oldest(&t) && !um_horizon_blocks_take(&t),
	   "of no block, none is the least recently used");
	um_horizon_blocks_begin(&t, 1);
	for (uint64_t i = 1; i <= 5; i++)
		b[i] = um_horizon_blocks_come(&t, i * UM_BLOCK_BYTES, i % 2 ? UM_HORIZON_UNKNOWN : 20 + i, 0);
	um_horizon_blocks_use(&t, b[1]);
	is_u64(number(um_horizon_blocks_oldest(&t)), 2, "of live blocks, the least recently used is found");
	is_u64(number(um_horizon_blocks_take(&t)), 2, "it is taken");
	is_u64(number(um_horizon_blocks_take(&t)), 3, "then the one that was used after it");
	um_horizon_blocks_use(&t, b[3]);
	is_u64(number(um_horizon_blocks_take(&t)), 4, "a use of the taken block skips none");
	um_horizon_blocks_die(&t, b[5]);
	um_horizon_blocks_drop(&t, b[4]);
	is_u64(number(um_horizon_blocks_take(&t)), 1, "blocks that die or leave are not taken");
	is_u64(number(um_horizon_blocks_take(&t)), 3, "a block that is used again is taken again");
	ok(!um_horizon_blocks_take(&t), "none is taken twice");
	um_horizon_blocks_revive(&t, b[5], 30);
	is_u64(number(um_horizon_blocks_take(&t)), 5, "a block that lives again is taken");
	is_u64(number(um_horizon_blocks_oldest(&t)), 2, "what was taken is still there");
	um_horizon_blocks_fini(&t);
}

int main(void)
{
	random_operations();
	some();
	host_memory();
	latest_uses();
	bounds();
	return tap_done();
}
