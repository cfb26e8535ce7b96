/* SPDX-License-Identifier: Apache-2.0
 *
 * Best fit over arenas against a byte map of granules: nothing is given twice, what is given back is free again,
 * records are always at hand.
 */
#include "record/heap.h"
#include "model/event.h"
#include "fixture/random.h"
#include "tap.h"

#define G UM_HEAP_GRANULE
#define BASE (64 * UM_BLOCK_BYTES)

struct seen {
	uint64_t bytes, last_end;
	int n, ordered;
	uint64_t addr[64], len[64];
};

static void see(void *user, uint64_t addr, uint64_t bytes)
{
	struct seen *s = user;

	s->ordered &= s->n == 0 || addr >= s->last_end;
	s->last_end = addr + bytes;
	s->bytes += bytes;
	if (s->n < 64) {
		s->addr[s->n] = addr;
		s->len[s->n] = bytes;
	}
	s->n++;
}

static struct seen look(const struct um_heap *h)
{
	struct seen s = {.ordered = 1};

	um_heap_each_free(h, see, &s);
	return s;
}

static uint64_t take(struct um_heap *h, uint64_t bytes)
{
	uint64_t addr = 1;

	return um_heap_alloc(h, bytes, &addr) == 0 ? addr : 1;
}

static void fitting(void)
{
	struct um_heap h;
	uint64_t a, b, c, d, addr = 77;

	um_heap_init(&h);
	is_int(um_heap_alloc(&h, 1, &addr), -ENOSPC, "a heap without arenas has no memory");
	is_u64(addr, 77, "the output is left alone");
	is_int(um_heap_add_region(&h, BASE, UM_BLOCK_BYTES), 0, "an arena is added");
	a = take(&h, 4 * G);
	b = take(&h, 1);
	c = take(&h, 2 * G);
	d = take(&h, 5 * G);
	is_u64(a, BASE, "the lowest address is taken first");
	is_u64(b, BASE + 4 * G, "the second range lies right after the first");
	is_u64(c, BASE + 5 * G, "one byte takes a granule");
	is_u64(h.live_bytes, 12 * G, "live bytes are whole granules");
	um_heap_free(&h, a, 4 * G);
	um_heap_free(&h, c, 2 * G);
	is_u64(take(&h, 2 * G), c, "the smallest hole that fits, not the first");
	is_u64(take(&h, 0), a, "nothing is one granule too");
	um_heap_free(&h, a, 0);
	um_heap_free(&h, b, 1);
	is_u64(take(&h, 5 * G), a, "neighbours given back are one hole");
	is_int(um_heap_alloc(&h, UM_BLOCK_BYTES, &addr), -ENOSPC, "more than the largest hole is refused");
	is_int(um_heap_alloc(&h, UINT64_MAX - 3, &addr), -ENOMEM, "more than there can be");
	um_heap_free(&h, c, 2 * G);
	um_heap_free(&h, d, 5 * G);
	um_heap_free(&h, a, 5 * G);
	is_int(look(&h).n, 1, "a heap without allocations has one range");
	is_u64(look(&h).bytes, UM_BLOCK_BYTES, "the whole arena is free again");
	um_heap_fini(&h);
}

static void exact_places(void)
{
	struct um_heap h;

	um_heap_init(&h);
	um_heap_add_region(&h, BASE, UM_BLOCK_BYTES);
	is_int(um_heap_alloc_at(&h, BASE + 3 * G, 2 * G), 0, "a range in the middle of a hole is taken");
	is_int(look(&h).n, 2, "taking the middle of a hole leaves two holes");
	is_int(um_heap_alloc_at(&h, BASE + 4 * G, G), -EBUSY, "a range that is taken already is refused");
	is_int(um_heap_alloc_at(&h, BASE + 2 * G, 2 * G), -EBUSY, "a range that is partly taken is refused");
	is_int(um_heap_alloc_at(&h, BASE - G, G), -EBUSY, "a range below the arena is refused");
	is_int(um_heap_alloc_at(&h, BASE + UM_BLOCK_BYTES, G), -EBUSY, "a range above the arena is refused");
	is_int(um_heap_alloc_at(&h, BASE + UM_BLOCK_BYTES - G, 2 * G), -EBUSY,
	       "a range over the arena's end is refused");
	is_int(um_heap_alloc_at(&h, BASE + 10 * G + 8, G), -EBUSY,
	       "a range that does not begin at a granule is refused");
	is_int(um_heap_alloc_at(&h, BASE, 3 * G), 0, "a range that fills a hole is taken");
	is_int(look(&h).n, 1, "one hole is left");
	um_heap_fini(&h);
}

static void arenas(void)
{
	struct um_heap h;
	struct seen s;
	uint64_t a;

	um_heap_init(&h);
	um_heap_add_region(&h, BASE + 2 * UM_BLOCK_BYTES, UM_BLOCK_BYTES);
	um_heap_add_region(&h, BASE, UM_BLOCK_BYTES);
	um_heap_add_region(&h, BASE + UM_BLOCK_BYTES, UM_BLOCK_BYTES);
	is_int(look(&h).n, 3, "three arenas side by side stay three ranges");
	a = take(&h, UM_BLOCK_BYTES);
	is_u64(a, BASE, "lowest address first, whatever the order they came in");
	um_heap_alloc_at(&h, BASE + UM_BLOCK_BYTES, UM_BLOCK_BYTES);
	um_heap_free(&h, a, UM_BLOCK_BYTES);
	um_heap_free(&h, BASE + UM_BLOCK_BYTES, UM_BLOCK_BYTES);
	s = look(&h);
	is_int(s.n, 3, "holes of adjacent arenas do not merge");
	ok(s.ordered && s.addr[0] == BASE && s.len[1] == UM_BLOCK_BYTES, "holes are in address order");
	a = 5;
	is_int(um_heap_alloc(&h, UM_BLOCK_BYTES + G, &a), -ENOSPC, "a tensor never spans two arenas");
	is_u64(h.regions.at[0].addr, BASE + 2 * UM_BLOCK_BYTES, "the regions are listed in the order given");
	um_heap_fini(&h);
}

#define B UM_BLOCK_BYTES

static unsigned resident; /* a bit for each block */
static int costs;

static uint64_t missing(void *user, uint64_t addr, uint64_t bytes)
{
	uint64_t n = 0;

	(void)user;
	costs++;
	for (uint64_t b = (addr - BASE) / B; b <= (addr - BASE + bytes - 1) / B; b++)
		n += !(resident >> b & 1);
	return n;
}

static uint64_t take_cheapest(struct um_heap *h, uint64_t bytes, unsigned in)
{
	uint64_t addr = 1;

	resident = in;
	costs = 0;
	if (um_heap_alloc_cheapest(h, bytes, &(struct um_heap_cost){missing, NULL}, &addr))
		return 1;
	um_heap_free(h, addr, bytes);
	return (addr - BASE) / B;
}

static void cheapest_places(void)
{
	struct um_heap h;

	um_heap_init(&h);
	um_heap_add_region(&h, BASE, 16 * B);
	um_heap_alloc_at(&h, BASE + 2 * B, B);
	um_heap_alloc_at(&h, BASE + 6 * B, B);
	is_u64(take_cheapest(&h, 2 * B, 3u << 4), 4, "the end of a hole that costs less than the best fit");
	is_u64(take_cheapest(&h, 2 * B, 1u << 3), 3, "the beginning of a hole that costs less than the best fit");
	is_u64(take_cheapest(&h, 2 * B, 3u << 14), 14, "the end of the largest hole");
	is_u64(take_cheapest(&h, 2 * B, 0), 0, "the best fit among places that cost the same");
	is_u64(take_cheapest(&h, 2 * B, 3), 0, "the best fit if it costs nothing");
	is_int(costs, 1, "no other place is looked at then");
	is_u64(take_cheapest(&h, 10 * B, 0), 1, "there is no such hole");
	um_heap_fini(&h);
	um_heap_init(&h);
	um_heap_add_region(&h, BASE, 16 * B);
	for (uint64_t at = 0; at < 40; at++)
		um_heap_alloc_at(&h, BASE + (2 * at + 1) * G, G);
	take_cheapest(&h, G, 0);
	is_int(costs, 2 * UM_HEAP_FITS, "of many holes a few are looked at");
	um_heap_fini(&h);
}

static uint64_t take_aligned(struct um_heap *h, uint64_t bytes)
{
	uint64_t addr = 1;

	return um_heap_alloc_aligned(h, bytes, &addr) == 0 ? addr - BASE : 1;
}

static void aligned_places(void)
{
	struct um_heap h;

	um_heap_init(&h);
	um_heap_add_region(&h, BASE, 8 * B);
	is_u64(take_aligned(&h, B / 8), 0, "a small piece takes the start of the region");
	is_u64(take_aligned(&h, B), B, "a piece of one block takes a block boundary");
	is_u64(take_aligned(&h, B / 4), B / 8, "the next small piece fills the first block");
	is_u64(take_aligned(&h, B + B / 4), 2 * B, "a medium piece follows at a boundary");
	is_u64(take_aligned(&h, B + B / 4), 3 * B + B / 4, "a medium piece may begin inside a block");
	is_u64(h.used_blocks, 5, "five blocks are in use");
	um_heap_free(&h, BASE + 2 * B, B + B / 4);
	is_u64(take_aligned(&h, B / 8), B / 2 - B / 8, "a small piece prefers the smallest range");
	um_heap_alloc_at(&h, BASE + B / 2, B / 2);
	is_u64(take_aligned(&h, B / 8), 3 * B, "a small piece takes the end of a range that lies in a block in use");
	is_u64(take_aligned(&h, B), 2 * B, "the whole block before it is left to a large piece");
	is_u64(take_aligned(&h, 8 * B), 1, "a piece that fits nowhere is refused");
	um_heap_fini(&h);
}

static void aligned_elsewhere(void)
{
	struct um_heap h;

	um_heap_init(&h);
	um_heap_add_region(&h, BASE, 32 * B);
	um_heap_alloc_at(&h, BASE, B - G);
	um_heap_alloc_at(&h, BASE + 2 * B, 26 * B);
	um_heap_alloc_at(&h, BASE + 31 * B, B);
	is_u64(take_aligned(&h, B + G), B - G, "a medium piece takes the range of exactly its size");
	um_heap_free(&h, BASE + B - G, B + G);
	um_heap_alloc_at(&h, BASE + 2 * B - G, G);
	is_u64(take_aligned(&h, B), 28 * B, "a piece of one block passes over a range where it would straddle two");
	is_u64(take(&h, B) - BASE, B - G, "the plain best fit takes that range");
	um_heap_fini(&h);
}

static uint32_t draw(uint32_t below)
{
	static uint64_t seed = 7;

	return test_random(&seed, below);
}

#define LIVE 300
#define MAP (2 * (int)(UM_BLOCK_BYTES / G))

static struct {
	uint64_t addr, bytes;
} live[LIVE];
static unsigned char map[MAP];

/* Marks or clears granules; 0 if one was in that state before. */
static int mark(uint64_t addr, uint64_t bytes, unsigned char to)
{
	int good = 1;

	for (uint64_t g = (addr - BASE) / G; g < (addr - BASE + bytes + G - 1) / G; g++) {
		good &= map[g] != to;
		map[g] = to;
	}
	return good;
}

static int take_somehow(struct um_heap *h, uint64_t bytes, uint64_t *addr)
{
	switch (draw(5)) {
	case 0:
		return um_heap_alloc_at(h, *addr, bytes);
	case 1:
		return um_heap_alloc_aligned(h, bytes, addr);
	case 2:
		resident = draw(4);
		return um_heap_alloc_cheapest(h, bytes, &(struct um_heap_cost){missing, NULL}, addr);
	default:
		return um_heap_alloc(h, bytes, addr);
	}
}

/* Blocks of the map that hold a marked granule. */
static uint64_t marked_blocks(void)
{
	uint64_t n = 0;

	for (int b = 0; b < 2; b++)
		n += memchr(map + (size_t)b * (MAP / 2), 1, MAP / 2) != NULL;
	return n;
}

static void random_changes(void)
{
	struct um_heap h;
	struct seen s;
	uint64_t used;
	int exact = 1, sums = 1, spare = 1, blocks = 1, full = 0;

	um_heap_init(&h);
	um_heap_add_region(&h, BASE, UM_BLOCK_BYTES);
	um_heap_add_region(&h, BASE + UM_BLOCK_BYTES, UM_BLOCK_BYTES);
	for (int step = 0; step < 20000; step++) {
		int i = (int)draw(LIVE);

		if (live[i].bytes) {
			um_heap_free(&h, live[i].addr, live[i].bytes);
			exact &= mark(live[i].addr, live[i].bytes, 0);
			live[i].bytes = 0;
		} else {
			uint64_t bytes = 1 + draw(40 * G), addr = BASE + draw(MAP) * G;

			if (take_somehow(&h, bytes, &addr)) {
				full++;
				continue;
			}
			exact &= mark(addr, bytes, 1);
			live[i].addr = addr;
			live[i].bytes = bytes;
		}
		s = look(&h);
		used = 0;
		for (int g = 0; g < MAP; g++)
			used += map[g];
		sums &= s.ordered && s.bytes + h.live_bytes == 2 * UM_BLOCK_BYTES && used * G == h.live_bytes;
		blocks &= h.used_blocks == marked_blocks();
		spare &= h.n_records >= h.n_live + 2 && (size_t)s.n <= h.n_records;
	}
	ok(exact, "20000 changes: nothing given twice, everything given back was taken");
	ok(sums, "free and live bytes always add up");
	ok(blocks, "the number of blocks in use is always exact");
	ok(spare, "there is always a record for the next give");
	ok(full > 100, "the heap was full at times");
	for (int i = 0; i < LIVE; i++)
		if (live[i].bytes)
			um_heap_free(&h, live[i].addr, live[i].bytes);
	is_int(look(&h).n, 2, "a heap without allocations has its two arenas");
	um_heap_fini(&h);
}

/* Takes pieces of `least` to `most` bytes until 2000 blocks are full. The largest excess of the bytes of blocks in use
 * over 65/64 of the live bytes, in blocks, rounded up. */
static int64_t worst_waste(uint64_t least, uint64_t most)
{
	struct um_heap h;
	int64_t worst = 0;
	uint64_t addr;

	um_heap_init(&h);
	um_heap_add_region(&h, BASE, 2000 * B);
	while (!um_heap_alloc_aligned(&h, least + (most > least ? draw((uint32_t)(most - least)) : 0), &addr)) {
		int64_t limit = (int64_t)(h.live_bytes + h.live_bytes / 64);
		int64_t over = (int64_t)(h.used_blocks * B) - limit;

		worst = over > worst ? over : worst;
	}
	um_heap_fini(&h);
	return (worst + (int64_t)B - 1) / (int64_t)B;
}

static void bounded_waste(void)
{
	ok(worst_waste(B + B / 2 + G, 0) <= 2, "pieces of a block and a half leave 1/64 and two blocks free at most");
	ok(worst_waste(B / 2 + G, 0) <= 2, "pieces of half a block leave 1/64 and two blocks free at most");
	ok(worst_waste(1, 9 * B) <= 2, "pieces of all sizes leave 1/64 and two blocks free at most");
	ok(worst_waste(1, B) <= 2, "pieces of up to a block leave 1/64 and two blocks free at most");
	ok(worst_waste(B, 0) == 0, "pieces of one block leave nothing free");
}

int main(void)
{
	fitting();
	exact_places();
	arenas();
	aligned_places();
	aligned_elsewhere();
	cheapest_places();
	bounded_waste();
	random_changes();
	return tap_done();
}
