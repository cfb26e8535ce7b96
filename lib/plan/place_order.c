/* SPDX-License-Identifier: Apache-2.0
 *
 * place_order.c - best fit in a given order, and a local search over orders
 *
 * The search tries three other first orders: the given one into the lowest instead of the smallest hole, and by size
 * times the root of the lifetime into either. The best one is improved by moves: it is placed until an item would end
 * at or above the best height so far; this item moves forward by a random distance, most often a short one, and placing
 * goes on from its new position. The items before that position stay in place, so a move costs as much as those after
 * it. An order that places all items is the new best one.
 */
#include "plan/place_order.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

#define MOST_WORK 200000 /* searched runs of the list: some tens of ms */

int um_place_in_order(struct um_place_list *l, struct um_place_item *item, size_t n)
{
	for (struct um_place_item *x = item; x < item + n; x++) {
		x->place = um_place_list_find(l, x->bytes, x->align, x->arc, UM_PLACE_BEST);
		if (x->place == UINT64_MAX)
			return -EINVAL;
		if (um_place_list_add(l, x->place, x->place + x->bytes, x->arc))
			return -ENOMEM;
	}
	return 0;
}

uint64_t um_place_height(const struct um_plan_request *r, uint64_t end)
{
	uint64_t below = 0;

	for (size_t i = 0; i < r->n_rooms; i++) {
		if (end <= r->rooms[i].addr + r->rooms[i].bytes)
			return below + (end > r->rooms[i].addr ? end - r->rooms[i].addr : 0);
		below += r->rooms[i].bytes;
	}
	return below + (end > r->grow_at ? end - r->grow_at : 0);
}

struct order {
	struct um_place_list *list;
	const struct um_plan_request *request;
	struct um_place_item *item;
	size_t n;
	uint32_t *at; /* the order: indices of items */
	size_t placed; /* items of it that are in the list */
	uint64_t *best_place; /* by item */
	uint64_t best, enough; /* heights */
	uint64_t most_work;
	enum um_place_fit fit;
	uint64_t random;
};

static uint64_t height_of(const struct order *o, const struct um_place_item *x)
{
	return um_place_height(o->request, x->place + x->bytes);
}

static int is_done(const struct order *o)
{
	return o->best <= o->enough || o->list->work >= o->most_work;
}

/* Places the next items until one would reach the best height. 0: all are placed; 1: this one is not; -ENOMEM. */
static int place_next(struct order *o)
{
	while (o->placed < o->n) {
		struct um_place_item *x = &o->item[o->at[o->placed]];

		x->place = um_place_list_find(o->list, x->bytes, x->align, x->arc, o->fit);
		if (x->place == UINT64_MAX || height_of(o, x) >= o->best)
			return 1;
		if (um_place_list_add(o->list, x->place, x->place + x->bytes, x->arc))
			return -ENOMEM;
		o->placed++;
	}
	return 0;
}

/* Takes the items from position `to` of the order on out of the list. */
static void take_back(struct order *o, size_t to)
{
	while (o->placed > to) {
		const struct um_place_item *x = &o->item[o->at[--o->placed]];

		um_place_list_remove(o->list, x->place, x->place + x->bytes, x->arc);
	}
}

/* All items are placed: this is the best packing. */
static void keep(struct order *o)
{
	o->best = 0;
	for (size_t i = 0; i < o->n; i++) {
		uint64_t height = height_of(o, &o->item[i]);

		o->best_place[i] = o->item[i].place;
		o->best = height > o->best ? height : o->best;
	}
}

/* --- first orders ------------------------------------------------------------------------------------------------- */

struct weighed {
	double weight;
	uint32_t item;
};

static int by_weight(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

/* Sorts by size times the root of the lifetime. */
static int sort_by_weight(struct order *o)
{
	struct weighed *w = malloc(o->n * sizeof *w);
	double n_ops = (double)o->request->sched->ops.n;

	if (!w)
		return -ENOMEM;
	for (size_t i = 0; i < o->n; i++) {
		const struct um_place_item *x = &o->item[i];
		double life = x->arc.wrap ? n_ops - x->arc.from + x->arc.wrap : (double)x->arc.to - x->arc.from;

		w[i] = (struct weighed){(double)x->bytes * sqrt(life), (uint32_t)i};
	}
	qsort(w, o->n, sizeof *w, by_weight);
	for (size_t i = 0; i < o->n; i++)
		o->at[i] = w[i].item;
	free(w);
	return 0;
}

static void sort_as_given(struct order *o)
{
	for (size_t i = 0; i < o->n; i++)
		o->at[i] = (uint32_t)i;
}

/* Tries the first orders; the given one is placed. The best one is then to be placed again. 0 or -ENOMEM. */
static int try_first_orders(struct order *o)
{
	int best = 0, err = 0;

	for (int i = 1; i < 4 && !err && !is_done(o); i++) {
		take_back(o, 0);
		o->fit = i & 1 ? UM_PLACE_LOWEST : UM_PLACE_BEST;
		if (i == 2)
			err = sort_by_weight(o);
		if (!err)
			err = place_next(o);
		if (!err) {
			keep(o);
			best = i;
		}
		err = err < 0 ? err : 0;
	}
	take_back(o, 0);
	o->fit = best & 1 ? UM_PLACE_LOWEST : UM_PLACE_BEST;
	if (best < 2)
		sort_as_given(o);
	return err;
}

/* --- moves -------------------------------------------------------------------------------------------------------- */

static size_t draw(struct order *o, size_t below)
{
	o->random = um_hash_u64(o->random, below);
	return (size_t)((o->random >> 32) * below >> 32);
}

/* Moves an item forward in the order. The list then contains the items before its new position. */
static void move(struct order *o, size_t at)
{
	uint32_t x = o->at[at];
	size_t distance = 1 + draw(o, 1 + draw(o, 1 + draw(o, at + 1)));
	size_t to = distance < at ? at - distance : 0;

	take_back(o, to);
	memmove(o->at + to + 1, o->at + to, (at - to) * sizeof *o->at);
	o->at[to] = x;
}

/* The first item of the order that reaches the best height. */
static size_t find_highest(const struct order *o)
{
	size_t i = 0;

	while (height_of(o, &o->item[o->at[i]]) < o->best)
		i++;
	return i;
}

static int improve(struct order *o)
{
	while (!is_done(o)) {
		int err = place_next(o);
		size_t at;

		if (err < 0)
			return err;
		if (!err)
			keep(o);
		at = err ? o->placed : find_highest(o);
		if (!at)
			break; /* the first item alone is as high */
		move(o, at);
	}
	return 0;
}

int um_place_search(struct um_place_list *l, const struct um_plan_request *r, struct um_place_item *item, size_t n,
		    uint64_t enough)
{
	struct order o = {.list = l, .request = r, .item = item, .n = n, .placed = n, .enough = enough};
	int err = 0;

	if (!n)
		return 0;
	o.most_work = l->work + MOST_WORK;
	o.at = malloc(n * sizeof *o.at);
	o.best_place = malloc(n * sizeof *o.best_place);
	if (!o.at || !o.best_place) {
		err = -ENOMEM;
		goto out;
	}
	sort_as_given(&o);
	keep(&o);
	err = try_first_orders(&o);
	if (!err)
		err = improve(&o);
	for (size_t i = 0; i < n; i++)
		item[i].place = o.best_place[i];
out:
	free(o.at);
	free(o.best_place);
	return err;
}
