/* SPDX-License-Identifier: Apache-2.0
 *
 * Places of a plan beside a heap, against a byte map of granules: nothing is given out twice, by neither of them, and
 * what is given back is free again, whoever gave it out.
 */
#include "record/planned_places.h"
#include "model/event.h"
#include "fixture/random.h"
#include "tap.h"

#define G UM_HEAP_GRANULE
#define BASE (64 * UM_BLOCK_BYTES)
#define GRANULES (3 * UM_BLOCK_BYTES / G) /* three regions of a block */
#define PLACES 60
#define RANGES 400

struct world {
	struct um_heap heap;
	struct um_planned_places places;
	struct um_heap_region place[PLACES], live[RANGES];
	size_t n;
	unsigned char used[GRANULES];
	uint64_t random;
	int twice, wrong, taken, busy;
};

static uint64_t draw(struct world *w, uint64_t below)
{
	return test_random64(&w->random) % below;
}

static void mark(struct world *w, struct um_heap_region r, int used)
{
	for (uint64_t i = (r.addr - BASE) / G; i < (r.addr - BASE + r.bytes + G - 1) / G; i++) {
		w->twice += w->used[i] == used;
		w->used[i] = (unsigned char)used;
	}
}

static int is_free(const struct world *w, struct um_heap_region r)
{
	for (uint64_t i = (r.addr - BASE) / G; i < (r.addr - BASE + r.bytes + G - 1) / G; i++)
		if (w->used[i])
			return 0;
	return 1;
}

static void add(struct world *w, struct um_heap_region r)
{
	mark(w, r, 1);
	w->live[w->n++] = r;
}

static void alloc_one(struct world *w)
{
	struct um_heap_region r = {0, 1 + draw(w, 40 * G)};

	if (w->n < RANGES && um_heap_alloc(&w->heap, r.bytes, &r.addr) == 0)
		add(w, r);
}

static void take_one(struct world *w)
{
	struct um_heap_region r = w->place[draw(w, PLACES)];
	int free = is_free(w, r), err;

	if (w->n == RANGES)
		return;
	err = um_planned_places_take(&w->places, &w->heap, r.addr, r.bytes);
	w->wrong += err != (free ? 0 : -EBUSY);
	w->taken += !err;
	w->busy += err == -EBUSY;
	if (!err)
		add(w, r);
}

static void give_one(struct world *w)
{
	size_t i = w->n ? draw(w, w->n) : 0;

	if (!w->n)
		return;
	mark(w, w->live[i], 0);
	if (um_planned_places_claimed(&w->places))
		um_planned_places_give(&w->places, &w->heap, w->live[i].addr, w->live[i].bytes);
	else
		um_heap_free(&w->heap, w->live[i].addr, w->live[i].bytes);
	w->live[i] = w->live[--w->n];
}

/* Places anywhere, many of which overlap; none crosses from one region to another. */
static void draw_places(struct world *w)
{
	for (int i = 0; i < PLACES; i++) {
		uint64_t region = draw(w, 3), from = draw(w, UM_BLOCK_BYTES / G - 1);
		uint64_t most = UM_BLOCK_BYTES / G - from, n = 1 + draw(w, draw(w, 2) ? most : most < 20 ? most : 20);

		w->place[i] = (struct um_heap_region){BASE + region * UM_BLOCK_BYTES + from * G, n * G - draw(w, G)};
	}
}

static uint64_t live_bytes(const struct world *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->n; i++)
		sum += (w->live[i].bytes + G - 1) / G * G;
	return sum;
}

static void see(void *user, uint64_t addr, uint64_t bytes)
{
	struct world *w = user;

	w->wrong += !is_free(w, (struct um_heap_region){addr, bytes});
}

static void by_chance(void)
{
	static struct world w = {.random = 3};
	int failed = 0, uncounted = 0;

	um_heap_init(&w.heap);
	um_planned_places_init(&w.places);
	for (int i = 0; i < 3; i++)
		failed += um_heap_add_region(&w.heap, BASE + (uint64_t)i * UM_BLOCK_BYTES, UM_BLOCK_BYTES);
	for (int round = 0; round < 200 / tap_step(10); round++) {
		for (int i = 0; i < 100; i++)
			draw(&w, 5) < 3 ? alloc_one(&w) : give_one(&w);
		draw_places(&w);
		failed += um_planned_places_claim(&w.places, &w.heap, w.place, PLACES, w.live, w.n);
		for (int i = 0; i < 300; i++)
			switch (draw(&w, 8)) {
			case 0:
				alloc_one(&w);
				break;
			case 1:
			case 2:
			case 3:
				take_one(&w);
				break;
			default:
				give_one(&w);
			}
		um_planned_places_release(&w.places, &w.heap);
		um_heap_each_free(&w.heap, see, &w);
		uncounted += w.heap.n_live != w.n || w.heap.live_bytes != live_bytes(&w);
	}
	is_int(failed, 0, "places are claimed with ranges in use anywhere");
	is_int(w.twice, 0, "no granule is given out twice, or given back twice");
	is_int(w.wrong, 0, "a place is taken exactly when all of it is free");
	ok(w.taken > 100 && w.busy > 100, "many places were free (%d), and many were not (%d)", w.taken, w.busy);
	is_int(uncounted, 0, "released places leave the heap with its live ranges");
	while (w.n)
		give_one(&w);
	is_u64(w.heap.live_bytes, 0, "no byte is live when all ranges are given back");
	is_int(um_heap_alloc_at(&w.heap, BASE, UM_BLOCK_BYTES), 0, "and each region is free as a whole");
	um_planned_places_fini(&w.places);
	um_heap_fini(&w.heap);
}

static void by_hand(void)
{
	struct um_heap h;
	struct um_planned_places p;
	struct um_heap_region place[] = {{BASE, 4 * G}, {BASE + 2 * G, 4 * G}}, used;
	uint64_t addr;

	um_heap_init(&h);
	um_planned_places_init(&p);
	um_heap_add_region(&h, BASE, UM_BLOCK_BYTES);
	um_heap_alloc(&h, 3 * G, &used.addr);
	used.bytes = 3 * G;
	is_int(um_planned_places_claim(&p, &h, NULL, 0, &used, 1), 0, "no places can be claimed");
	ok(!um_planned_places_claimed(&p), "then there are none");
	um_planned_places_claim(&p, &h, place, 2, &used, 1);
	is_int(um_planned_places_take(&p, &h, BASE, 4 * G), -EBUSY, "a range that was in use before keeps its place");
	um_planned_places_give(&p, &h, BASE, 3 * G);
	um_heap_alloc(&h, 3 * G, &addr);
	is_u64(addr, BASE + 6 * G, "given back, it belongs to the places, and not to the heap");
	is_int(um_planned_places_take(&p, &h, BASE, 4 * G), 0, "so that its place is taken");
	is_int(um_planned_places_take(&p, &h, BASE + 2 * G, 4 * G), -EBUSY, "a place that overlaps it is not free");
	is_int(um_planned_places_take(&p, &h, BASE, 5 * G), -ENOENT, "another size is no place");
	is_int(um_planned_places_take(&p, &h, BASE + G, 3 * G), -ENOENT, "nor is another address");
	is_int(um_planned_places_take(&p, &h, BASE + 100 * G, G), -ENOENT, "nor one beyond the places");
	um_planned_places_give(&p, &h, addr, 3 * G);
	um_heap_alloc(&h, G, &addr);
	is_u64(addr, BASE + 6 * G, "a range of the heap is the heap's again");
	um_planned_places_release(&p, &h);
	is_int(um_heap_alloc_at(&h, BASE, 4 * G), -EBUSY, "a taken place is in use when the places are released");
	is_int(um_heap_alloc_at(&h, BASE + 4 * G, 2 * G), 0, "and the rest is free");
	um_heap_free(&h, BASE, 4 * G);
	is_int(um_heap_alloc_at(&h, BASE, 4 * G), 0, "the heap takes such a range back");
	um_planned_places_fini(&p);
	um_heap_fini(&h);
}

int main(void)
{
	by_hand();
	by_chance();
	return tap_done();
}
