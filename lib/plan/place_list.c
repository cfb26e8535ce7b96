/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/place_list.h"

#include <assert.h>

int um_place_list_init(struct um_place_list *l)
{
	um_vec_clear(&l->runs);
	l->spare = 0;
	if (um_vec_reserve(&l->runs, 1))
		return -ENOMEM;
	memset(&l->runs.at[0], 0, sizeof l->runs.at[0]);
	l->runs.n = 1;
	return 0;
}

void um_place_list_fini(struct um_place_list *l)
{
	um_vec_fini(&l->runs);
}

static void find_tops(struct um_place_run *r, uint32_t from)
{
	for (uint32_t i = from; i < r->n; i++)
		r->top[i] = i && r->top[i - 1] > r->end[i] ? r->top[i - 1] : r->end[i];
}

/* Moves `n` entries of a run to index `to` of another, or of the same one. */
static void run_move(struct um_place_run *r, uint32_t to, const struct um_place_run *s, uint32_t from, uint32_t n)
{
	memmove(r->from + to, s->from + from, n * sizeof *s->from);
	memmove(r->to + to, s->to + from, n * sizeof *s->to);
	memmove(r->wrap + to, s->wrap + from, n * sizeof *s->wrap);
	memmove(r->addr + to, s->addr + from, n * sizeof *s->addr);
	memmove(r->end + to, s->end + from, n * sizeof *s->end);
}

/* A run without entries; 0: out of memory. */
static uint32_t run_new(struct um_place_list *l)
{
	uint32_t at = l->spare;

	if (at)
		l->spare = l->runs.at[at].next;
	else if (um_vec_reserve(&l->runs, 1))
		return 0;
	else
		at = (uint32_t)l->runs.n++;
	memset(&l->runs.at[at], 0, sizeof l->runs.at[at]);
	return at;
}

static int run_split(struct um_place_list *l, uint32_t at)
{
	uint32_t more = run_new(l);
	struct um_place_run *a = &l->runs.at[at], *b = &l->runs.at[more];

	if (!more)
		return -ENOMEM;
	b->n = a->n / 2;
	a->n -= b->n;
	run_move(b, 0, a, a->n, b->n);
	find_tops(b, 0);
	b->next = a->next;
	a->next = more;
	return 0;
}

int um_place_list_add(struct um_place_list *l, uint64_t addr, uint64_t end, struct um_place_arc arc)
{
	uint32_t at = 0, i;
	struct um_place_run *r;

	while (l->runs.at[at].next && l->runs.at[l->runs.at[at].next].addr[0] <= addr)
		at = l->runs.at[at].next;
	if (l->runs.at[at].n == UM_PLACE_RUN) {
		if (run_split(l, at))
			return -ENOMEM;
		if (l->runs.at[l->runs.at[at].next].addr[0] <= addr)
			at = l->runs.at[at].next;
	}
	r = &l->runs.at[at];
	for (i = r->n; i > 0 && r->addr[i - 1] > addr; i--)
		;
	if (i > 0 && !arc.from && um_place_is_for_ever(arc) && !r->from[i - 1] && r->to[i - 1] == INT32_MAX &&
	    r->end[i - 1] == addr) {
		r->end[i - 1] = end;
		find_tops(r, i - 1);
		return 0;
	}
	run_move(r, i + 1, r, i, r->n - i);
	r->from[i] = arc.from;
	r->to[i] = arc.to;
	r->wrap[i] = arc.wrap;
	r->addr[i] = addr;
	r->end[i] = end;
	r->n++;
	find_tops(r, i);
	return 0;
}

/* The index of an entry in a run; r->n: not there. */
static uint32_t run_find(const struct um_place_run *r, uint64_t addr, uint64_t end, struct um_place_arc arc)
{
	uint32_t i = 0;

	while (i < r->n && (r->addr[i] != addr || r->end[i] != end || r->from[i] != arc.from || r->to[i] != arc.to ||
			    r->wrap[i] != arc.wrap))
		i++;
	return i;
}

void um_place_list_remove(struct um_place_list *l, uint64_t addr, uint64_t end, struct um_place_arc arc)
{
	uint32_t at = 0, before = 0, i;
	struct um_place_run *r;

	/* Entries of one address may be in several runs. */
	for (;;) {
		r = &l->runs.at[at];
		i = r->next && l->runs.at[r->next].addr[0] < addr ? r->n : run_find(r, addr, end, arc);
		if (i < r->n)
			break;
		assert(r->next);
		before = at;
		at = r->next;
	}
	r->n--;
	run_move(r, i, r, i + 1, r->n - i);
	find_tops(r, i);
	if (r->n || !at)
		return;
	l->runs.at[before].next = r->next;
	r->next = l->spare;
	l->spare = at;
}

/* By entry of the run: does its arc intersect this one? A loop of fixed length without branches, so that compilers
 * vectorise it. */
static void find_crossing(const struct um_place_run *r, struct um_place_arc arc, uint8_t *hit)
{
	int32_t wraps = arc.wrap ? 0 : INT32_MAX; /* a wrap beyond this one intersects */

	for (int i = 0; i < UM_PLACE_RUN; i++)
		hit[i] = (uint8_t)(((r->from[i] < arc.to) & (arc.from < r->to[i])) | (r->wrap[i] > arc.from) |
				   (arc.wrap > r->from[i]) | (r->wrap[i] > wraps));
}

int um_place_list_is_free(struct um_place_list *l, uint64_t addr, uint64_t end, struct um_place_arc arc)
{
	uint8_t hit[UM_PLACE_RUN];
	uint32_t at = 0;

	do {
		const struct um_place_run *r = &l->runs.at[at];

		at = r->next;
		if (!r->n || r->top[r->n - 1] <= addr)
			continue;
		if (r->addr[0] >= end)
			break;
		l->work++;
		find_crossing(r, arc, hit);
		for (uint32_t i = 0; i < r->n && r->addr[i] < end; i++)
			if (hit[i] && r->end[i] > addr)
				return 0;
	} while (at);
	return 1;
}

struct search {
	uint64_t bytes, align;
	uint64_t best, best_size; /* the smallest hole that fits */
	uint64_t open; /* the first place that fits above everything in the room so far */
	enum um_place_fit fit;
};

/* The hole [from, to); `top`: the end of the room's contents, at any time. 1: no other hole is better. */
static int try_hole(struct search *f, uint64_t from, uint64_t to, uint64_t top)
{
	from = (from + f->align - 1) & ~(f->align - 1);
	if (from >= to || to - from < f->bytes)
		return 0;
	if (f->fit == UM_PLACE_LOWEST) {
		f->best = from;
		return 1;
	}
	if (from + f->bytes > top) {
		if (f->open == UINT64_MAX)
			f->open = from;
	} else if (to - from < f->best_size) {
		f->best_size = to - from;
		f->best = from;
	}
	return f->best_size == f->bytes;
}

static int none_of_eight(const uint8_t *hit)
{
	uint64_t all;

	memcpy(&all, hit, sizeof all);
	return !all;
}

uint64_t um_place_list_find(struct um_place_list *l, uint64_t bytes, uint64_t align, struct um_place_arc arc,
			    enum um_place_fit fit)
{
	struct search f = {bytes, align, UINT64_MAX, UINT64_MAX, UINT64_MAX, fit};
	uint64_t from = 0, top = 0, before;
	uint8_t hit[UM_PLACE_RUN];
	uint32_t at = 0;

	do {
		const struct um_place_run *r = &l->runs.at[at];

		l->work++;
		find_crossing(r, arc, hit);
		for (uint32_t i = 0; i < r->n; i++) {
			if (i % 8 == 0 && none_of_eight(hit + i)) {
				i += 7;
				continue;
			}
			if (!hit[i])
				continue;
			if (r->addr[i] > from && r->addr[i] - from >= bytes) {
				before = i && r->top[i - 1] > top ? r->top[i - 1] : top;
				if (try_hole(&f, from, r->addr[i], before))
					return f.best;
			}
			if (r->end[i] > from)
				from = r->end[i];
		}
		if (r->n && r->top[r->n - 1] > top)
			top = r->top[r->n - 1];
		at = r->next;
	} while (at);
	return f.best != UINT64_MAX ? f.best : f.open;
}
