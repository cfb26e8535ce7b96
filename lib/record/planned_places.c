/* SPDX-License-Identifier: Apache-2.0
 *
 * planned_places.c - cells between the edges of places, and a bit for each
 *
 * Edges are the bounds of places, of ranges in use, of free ranges and of regions: so each of them covers whole cells.
 * The heap counts a live range for each run of claimed cells, and one for each range in use within it, which keeps the
 * records that it needs when the run is released.
 */
#include "record/planned_places.h"

#include "base/bisect.h"
#include "base/hash.h"

#include <assert.h>

void um_planned_places_init(struct um_planned_places *p)
{
	memset(p, 0, sizeof *p);
}

void um_planned_places_fini(struct um_planned_places *p)
{
	um_vec_fini(&p->edges);
	um_vec_fini(&p->cells);
	um_vec_fini(&p->ours);
	um_vec_fini(&p->busy);
	um_vec_fini(&p->free);
}

/* --- bits --------------------------------------------------------------------------------------------------------- */

/* The bits of a word that are in [from, to). */
static inline uint64_t mask(size_t word, size_t from, size_t to)
{
	uint64_t bits = UINT64_MAX;

	if (word == from / 64)
		bits <<= from % 64;
	if (word == to / 64)
		bits &= (1ull << to % 64) - 1;
	return bits;
}

static inline int any(const uint64_t *at, size_t from, size_t to)
{
	for (size_t w = from / 64; w <= (to - 1) / 64; w++)
		if (at[w] & mask(w, from, to))
			return 1;
	return 0;
}

static inline void fill(uint64_t *at, size_t from, size_t to, int value)
{
	for (size_t w = from / 64; w <= (to - 1) / 64; w++)
		at[w] = value ? at[w] | mask(w, from, to) : at[w] & ~mask(w, from, to);
}

static inline int is_set(const uint64_t *at, size_t i)
{
	return at[i / 64] >> i % 64 & 1;
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static size_t n_cells(const struct um_planned_places *p)
{
	return p->edges.n ? p->edges.n - 1 : 0;
}

/* The first edge at or above an address; `lo`: an edge at or below it. */
static inline size_t edge_at(const struct um_planned_places *p, size_t lo, uint64_t addr)
{
	UM_BISECT(lo, p->edges.n, i, p->edges.at[i] < addr)
	return lo;
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + UM_HEAP_GRANULE - 1) / UM_HEAP_GRANULE * UM_HEAP_GRANULE;
}

static int is_range(const struct um_planned_places *p, struct um_place_cells c, uint64_t addr, uint64_t bytes)
{
	return p->edges.at[c.from] == addr && p->edges.at[c.to] == addr + bytes;
}

/* The entry of the place with this range, or the empty one where it would be. */
static inline struct um_place_cells *find_place(const struct um_planned_places *p, uint64_t addr, uint64_t bytes)
{
	uint64_t hash = um_hash_fold(um_hash_fold(0, addr), bytes);
	size_t i = hash & (p->cells.n - 1);

	while (p->cells.at[i].to && !is_range(p, p->cells.at[i], addr, bytes))
		i = (i + 1) & (p->cells.n - 1);
	return &p->cells.at[i];
}

static int add_edges(struct um_planned_places *p, const struct um_heap_region *range, size_t n)
{
	if (um_vec_reserve(&p->edges, 2 * n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		p->edges.at[p->edges.n++] = range[i].addr;
		p->edges.at[p->edges.n++] = range[i].addr + round_up(range[i].bytes);
	}
	return 0;
}

struct free_ranges {
	struct um_planned_places *p;
	int err;
};

static void add_free(void *user, uint64_t addr, uint64_t bytes)
{
	struct free_ranges *f = user;

	if (um_vec_push(&f->p->free, ((struct um_heap_region){addr, bytes})))
		f->err = -ENOMEM;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts the edges, and keeps one of each within the first `n`, those of the places. */
static void sort_edges(struct um_planned_places *p, size_t n)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		lo = p->edges.at[i] < lo ? p->edges.at[i] : lo;
		hi = p->edges.at[i] > hi ? p->edges.at[i] : hi;
	}
	qsort(p->edges.at, p->edges.n, sizeof *p->edges.at, by_value);
	for (size_t i = 0; i < p->edges.n; i++) {
		uint64_t e = p->edges.at[i];

		if (e >= lo && e <= hi && !(kept && p->edges.at[kept - 1] == e))
			p->edges.at[kept++] = e;
	}
	p->edges.n = kept;
}

static int find_edges(struct um_planned_places *p, const struct um_heap *h, const struct um_heap_region *place,
		      size_t n, const struct um_heap_region *used, size_t n_used)
{
	struct free_ranges f = {p, 0};

	um_vec_clear(&p->free);
	um_heap_each_free(h, add_free, &f);
	if (f.err || add_edges(p, place, n) || add_edges(p, used, n_used) || add_edges(p, p->free.at, p->free.n) ||
	    add_edges(p, h->regions.at, h->regions.n))
		return -ENOMEM;
	sort_edges(p, 2 * n);
	return 0;
}

/* The cells that a range covers, of those that there are. 0: none. */
static int find_cells(const struct um_planned_places *p, const struct um_heap_region *range, size_t *from, size_t *to)
{
	*from = edge_at(p, 0, range->addr);
	*to = edge_at(p, *from, range->addr + round_up(range->bytes));
	*to = *to < n_cells(p) ? *to : n_cells(p);
	return *from < *to;
}

static int make_cells(struct um_planned_places *p, const struct um_heap_region *place, size_t n)
{
	size_t words = p->edges.n / 64 + 1, entries = 64, from, to;

	while (entries < 4 * n)
		entries *= 2;
	um_vec_clear(&p->cells);
	um_vec_clear(&p->ours);
	um_vec_clear(&p->busy);
	if (um_vec_fill(&p->ours, words) || um_vec_fill(&p->busy, words) || um_vec_fill(&p->cells, entries))
		return -ENOMEM;
	memset(p->busy.at, 0xff, words * sizeof *p->busy.at);
	for (size_t i = 0; i < n; i++) {
		find_cells(p, &place[i], &from, &to);
		fill(p->ours.at, from, to, 1);
		*find_place(p, place[i].addr, round_up(place[i].bytes)) =
			(struct um_place_cells){(uint32_t)from, (uint32_t)to};
	}
	for (size_t i = 0; i < p->free.n; i++)
		if (find_cells(p, &p->free.at[i], &from, &to))
			fill(p->busy.at, from, to, 0);
	for (size_t w = 0; w < words; w++)
		p->busy.at[w] |= ~p->ours.at[w];
	return 0;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

/* Cells of ours that follow each other, within one region. */
struct run {
	size_t from, to;
};

/* The next run; `run->to`: where the one before ended. */
static int next_run(const struct um_planned_places *p, const struct um_heap *h, struct run *run)
{
	size_t i = run->to;

	while (i < n_cells(p) && !is_set(p->ours.at, i))
		i++;
	run->from = i;
	if (i < n_cells(p))
		i++;
	while (i < n_cells(p) && is_set(p->ours.at, i) && !um_heap_is_start(h, p->edges.at[i]))
		i++;
	run->to = i;
	return run->from < n_cells(p);
}

/* Moves the free cells of all runs from the heap to the places, or back. */
static void move_free(struct um_planned_places *p, struct um_heap *h,
		      void (*move)(struct um_heap *, uint64_t, uint64_t))
{
	for (struct run run = {0}; next_run(p, h, &run);)
		for (size_t i = run.from; i < run.to; i++) {
			size_t from = i;

			while (i < run.to && !is_set(p->busy.at, i))
				i++;
			if (i > from)
				move(h, p->edges.at[from], p->edges.at[i] - p->edges.at[from]);
		}
}

/* Counts the first `n` runs as live no longer. */
static void leave(const struct um_planned_places *p, struct um_heap *h, size_t n)
{
	for (struct run run = {0}; n && next_run(p, h, &run); n--)
		um_heap_leave(h, 0);
}

int um_planned_places_claim(struct um_planned_places *p, struct um_heap *h, const struct um_heap_region *place,
			    size_t n_places, const struct um_heap_region *used, size_t n_used)
{
	size_t n = 0;
	int err;

	assert(!p->edges.n);
	if (!n_places)
		return 0;
	err = find_edges(p, h, place, n_places, used, n_used);
	if (!err)
		err = make_cells(p, place, n_places);
	for (struct run run = {0}; !err && next_run(p, h, &run); n++)
		if (um_heap_enter(h, 0)) {
			leave(p, h, n);
			err = -ENOMEM;
		}
	if (err)
		um_vec_clear(&p->edges);
	else
		move_free(p, h, um_heap_cut);
	return err;
}

void um_planned_places_release(struct um_planned_places *p, struct um_heap *h)
{
	move_free(p, h, um_heap_uncut);
	leave(p, h, SIZE_MAX);
	um_vec_clear(&p->edges);
}

/* --- op path ------------------------------------------------------------------------------------------------------ */

int um_planned_places_take(struct um_planned_places *p, struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	struct um_place_cells c = *find_place(p, addr, round_up(bytes));

	if (!c.to)
		return -ENOENT;
	if (any(p->busy.at, c.from, c.to))
		return -EBUSY;
	if (um_heap_enter(h, bytes))
		return -ENOMEM;
	fill(p->busy.at, c.from, c.to, 1);
	return 0;
}

/* A range that was given out before the places were claimed, or beside them: cells of ours are free then, the rest is
 * the heap's. A cell that is not covered as a whole stays in use. */
static void give_parts(struct um_planned_places *p, struct um_heap *h, uint64_t addr, uint64_t end)
{
	size_t i = edge_at(p, 0, addr);
	uint64_t from = addr; /* of the heap's part */

	if (i && i < p->edges.n && is_set(p->ours.at, i - 1))
		from = p->edges.at[i];
	for (; i < n_cells(p) && p->edges.at[i] < end; i++) {
		if (!is_set(p->ours.at, i))
			continue;
		if (from < p->edges.at[i])
			um_heap_uncut(h, from, p->edges.at[i] - from);
		if (p->edges.at[i + 1] <= end)
			fill(p->busy.at, i, i + 1, 0);
		from = p->edges.at[i + 1];
	}
	if (from < end)
		um_heap_uncut(h, from, end - from);
}

void um_planned_places_give(struct um_planned_places *p, struct um_heap *h, uint64_t addr, uint64_t bytes)
{
	struct um_place_cells c = *find_place(p, addr, round_up(bytes));

	if (c.to)
		fill(p->busy.at, c.from, c.to, 0);
	else
		give_parts(p, h, addr, addr + round_up(bytes));
	um_heap_leave(h, bytes);
}
