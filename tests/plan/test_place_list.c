/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of occupied addresses beside a plain array: the same holes, whatever was added and removed before.
 */
#include "plan/place_list.h"
#include "fixture/random.h"
#include "tap.h"

#define MOST 1200
#define OPS 50
#define ROOM 100000

struct entry {
	uint64_t addr, end;
	struct um_place_arc arc;
};

static int crosses(struct um_place_arc a, struct um_place_arc b)
{
	for (int32_t op = 0; op < OPS; op++) {
		int in_a = (op >= a.from && op < a.to) || op < a.wrap;
		int in_b = (op >= b.from && op < b.to) || op < b.wrap;

		if (in_a && in_b)
			return 1;
	}
	return 0;
}

static int is_free(const struct entry *e, size_t n, uint64_t addr, uint64_t bytes, struct um_place_arc arc)
{
	for (size_t i = 0; i < n; i++)
		if (e[i].addr < addr + bytes && addr < e[i].end && crosses(e[i].arc, arc))
			return 0;
	return 1;
}

/* The lowest place: at address 0 or at the end of an entry. */
static uint64_t lowest(const struct entry *e, size_t n, uint64_t bytes, uint64_t align, struct um_place_arc arc)
{
	uint64_t best = UINT64_MAX;

	for (size_t i = 0; i <= n; i++) {
		uint64_t at = i < n ? (e[i].end + align - 1) / align * align : 0;

		if (at < best && at + bytes <= ROOM && is_free(e, n, at, bytes, arc))
			best = at;
	}
	return best;
}

static struct um_place_arc draw_arc(uint64_t *r)
{
	int32_t from = (int32_t)(test_random64(r) % OPS),
		to = from + 1 + (int32_t)(test_random64(r) % (uint64_t)(OPS - from));

	if (from && test_random64(r) % 8 == 0)
		return (struct um_place_arc){from, OPS, (int32_t)(test_random64(r) % (uint64_t)from)};
	return (struct um_place_arc){from, to, 0};
}

struct world {
	struct um_place_list list;
	struct entry e[MOST];
	size_t n;
	uint64_t random;
	int wrong;
};

static void drop_one(struct world *w)
{
	size_t i = test_random64(&w->random) % w->n;

	um_place_list_remove(&w->list, w->e[i].addr, w->e[i].end, w->e[i].arc);
	w->e[i] = w->e[--w->n];
}

static void place_one(struct world *w)
{
	uint64_t align = 1ull << test_random64(&w->random) % 4, bytes = 1 + test_random64(&w->random) % 200;
	struct um_place_arc arc = draw_arc(&w->random);
	int best_fit = test_random64(&w->random) % 2 != 0;
	uint64_t at = um_place_list_find(&w->list, bytes, align, arc, best_fit ? UM_PLACE_BEST : UM_PLACE_LOWEST);
	uint64_t low = lowest(w->e, w->n, bytes, align, arc);

	if (best_fit)
		w->wrong += (at == UINT64_MAX) != (low == UINT64_MAX) ||
			    (at != UINT64_MAX && (at % align || !is_free(w->e, w->n, at, bytes, arc)));
	else
		w->wrong += at != low;
	if (at == UINT64_MAX)
		return;
	w->e[w->n++] = (struct entry){at, at + bytes, arc};
	if (um_place_list_add(&w->list, at, at + bytes, arc))
		tap_bail("no memory");
}

int main(void)
{
	static struct world w;
	uint64_t runs;

	w.random = 5;
	if (um_place_list_init(&w.list) || um_place_list_add(&w.list, ROOM, UINT64_MAX, um_place_wall))
		tap_bail("no memory");
	for (int i = 0; i < 6000 / tap_step(4); i++) {
		/* it fills up, and empties again */
		if (w.n && (w.n == MOST || test_random64(&w.random) % 16 < (i / 1500 % 2 ? 11u : 4u)))
			drop_one(&w);
		else
			place_one(&w);
	}
	is_int(w.wrong, 0, "holes are those of a plain array, for the lowest fit and the best fit");
	while (w.n)
		drop_one(&w);
	is_u64(um_place_list_find(&w.list, ROOM, 1, (struct um_place_arc){0, OPS, 0}, UM_PLACE_LOWEST), 0,
	       "the whole room is free when all entries are removed");
	runs = w.list.work;
	um_place_list_find(&w.list, 1, 1, (struct um_place_arc){0, OPS, 0}, UM_PLACE_BEST);
	ok(w.list.work - runs <= 2, "runs without entries are not searched");

	is_int(um_place_list_init(&w.list), 0, "a list is cleared");
	um_place_list_add(&w.list, 0, 10, (struct um_place_arc){0, 5, 0});
	um_place_list_add(&w.list, 14, 20, (struct um_place_arc){0, 5, 0});
	um_place_list_add(&w.list, 22, 30, (struct um_place_arc){0, 5, 0});
	um_place_list_add(&w.list, 10, 22, (struct um_place_arc){20, 25, 0});
	um_place_list_add(&w.list, 100, 200, um_place_wall);
	is_u64(um_place_list_find(&w.list, 2, 1, (struct um_place_arc){4, 6, 0}, UM_PLACE_BEST), 20,
	       "best fit takes the smallest hole");
	is_u64(um_place_list_find(&w.list, 2, 1, (struct um_place_arc){4, 6, 0}, UM_PLACE_LOWEST), 10,
	       "lowest fit takes the first hole");
	is_u64(um_place_list_find(&w.list, 2, 1, (struct um_place_arc){5, 6, 0}, UM_PLACE_LOWEST), 0,
	       "addresses are free once the arc of their entry has ended");
	is_u64(um_place_list_find(&w.list, 2, 1, (struct um_place_arc){30, OPS, 1}, UM_PLACE_LOWEST), 10,
	       "an arc that wraps intersects entries at the iteration's beginning");
	is_u64(um_place_list_find(&w.list, 71, 1, (struct um_place_arc){0, 1, 0}, UM_PLACE_BEST), UINT64_MAX,
	       "what fits in no hole has no place");
	um_place_list_fini(&w.list);
	return tap_done();
}
