/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c - rotating slots first, then permanent ones, then the others, in the order that packs best
 *
 * A lifetime is an arc of the iteration, since a tensor may be freed in the next one. Slots go into the smallest hole
 * between the slots placed before them whose lifetimes intersect their own, the largest first (SmartPool, Zhang et al.
 * 2019). Where this wastes memory, other orders are searched (place_order.c). Time is quadratic in the number of slots,
 * with a small constant; long schedules go to place_stream.c.
 */
#include "plan/place.h"

#include "plan/place_blocks.h"
#include "plan/place_order.h"
#include "plan/place_stream.h"

#define LONG 40 /* a tensor stays for long if it dies after this share of the schedule, of one iteration or several */
#define SPREAD 32 /* places are kept if the blocks of an iteration exceed those in use at once by up to this share */
#define WASTE 50 /* other orders are tried where the first one wastes more than this share of memory */
#define MOST_SEARCHED 40000 /* slots with a beginning and an end; beyond this number they are placed as a stream */

struct placing {
	const struct um_plan_request *request;
	struct um_schedule *sched;
	uint8_t *rotates;
	int32_t *used_at; /* by slot: the first op that uses it */
	struct um_place_list list;
	int through_end_for_ever;
};

static struct um_place_arc life_of(const struct um_slot *t)
{
	if (t->birth < 0)
		return t->death < 0 ? um_place_for_ever : (struct um_place_arc){0, t->death, 0};
	if (t->death > t->birth)
		return (struct um_place_arc){t->birth, t->death, 0};
	return (struct um_place_arc){t->birth, INT32_MAX - 1, t->death < 0 ? 0 : t->death};
}

/* When its place is occupied. */
static struct um_place_arc arc_of(const struct placing *p, uint32_t slot)
{
	const struct um_slot *t = &p->sched->slots.at[slot];

	if (p->rotates[slot] || (p->through_end_for_ever && um_slot_alive_first(t)))
		return um_place_for_ever;
	return life_of(t);
}

uint8_t *um_place_rotating(const struct um_schedule *s)
{
	uint8_t *w = calloc(s->slots.n + 1, 1);

	for (uint32_t i = 0; w && i < s->slots.n; i++)
		if (s->slots.at[i].carry < s->slots.n && s->slots.at[i].carry != i)
			w[i] = w[s->slots.at[i].carry] = 1;
	return w;
}

static int is_settled(const struct um_slot *t)
{
	return t->flags & UM_SLOT_FIXED && t->place != UINT64_MAX;
}

/* Adds walls (entries that intersect every lifetime) between the rooms. */
static int add_walls(struct placing *p)
{
	const struct um_plan_request *r = p->request;
	uint64_t from = 0;

	for (size_t i = 0; i < r->n_rooms; i++) {
		if (r->rooms[i].addr < from || r->rooms[i].bytes > UINT64_MAX - r->rooms[i].addr ||
		    (r->rooms[i].addr | r->rooms[i].bytes) % UM_BLOCK_BYTES)
			return -EINVAL;
		if (um_place_list_add(&p->list, from, r->rooms[i].addr, um_place_wall))
			return -ENOMEM;
		from = r->rooms[i].addr + r->rooms[i].bytes;
	}
	if (r->grow_at < from || r->grow_at % UM_BLOCK_BYTES)
		return -EINVAL;
	if (um_place_list_add(&p->list, from, r->grow_at, um_place_wall))
		return -ENOMEM;
	return um_place_list_add(&p->list, UINT64_MAX / UM_BLOCK_BYTES * UM_BLOCK_BYTES, UINT64_MAX, um_place_wall);
}

/* Is the slot's tensor at another place until it dies in the next iteration? */
static int is_elsewhere(const struct um_slot *t)
{
	return !(t->flags & UM_SLOT_FIXED) && t->bound.v && t->bound_addr != t->place && t->death >= 0 &&
	       (t->birth < 0 || t->death <= t->birth) && t->bound_addr < UINT64_MAX - t->bytes;
}

/* Adds slots that have a place, and places that tensors have in the next iteration alone. `rotating`: rotating slots
 * have none yet. One that cannot be born at its place in that iteration is out of turn for ever; others find theirs
 * free an iteration later, and avoid only tensors that stay for long: births elsewhere cost memory beside the plan. */
static int add_settled(struct placing *p, int rotating)
{
	for (uint32_t i = 0; i < p->sched->slots.n; i++) {
		const struct um_slot *t = &p->sched->slots.at[i];

		if (is_elsewhere(t) && (rotating || (size_t)t->death > p->sched->ops.n / LONG) &&
		    um_place_list_add(&p->list, t->bound_addr, t->bound_addr + t->bytes,
				      (struct um_place_arc){0, t->death, 0}))
			return -ENOMEM;
		if (!(is_settled(t) || (p->rotates[i] && !rotating)) || t->flags & UM_SLOT_UNMANAGED)
			continue;
		uint64_t end = t->place + t->bytes;

		/* A rotating slot with whole blocks keeps them. */
		if (p->rotates[i] && t->place % UM_BLOCK_BYTES == 0)
			end = (end + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
		if (um_place_list_add(&p->list, t->place, end, arc_of(p, i)))
			return -ENOMEM;
	}
	return 0;
}

struct request {
	uint32_t slot;
	int rank; /* rotating slots, then permanent ones, then the others */
	int32_t at;
	uint64_t bytes;
};

/* Permanent slots in the order of use, so that blocks are shared by tensors that are used together. The others: largest
 * first. */
static int by_rank(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank - y->rank;
	if (x->rank == 1 && x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static size_t list_requests(const struct placing *p, struct request *request)
{
	size_t n = 0;

	for (uint32_t i = 0; i < p->sched->slots.n; i++) {
		const struct um_slot *t = &p->sched->slots.at[i];
		struct request *w = &request[n];

		if (is_settled(t) || t->flags & UM_SLOT_UNMANAGED)
			continue;
		w->slot = i;
		w->rank = p->rotates[i] ? 0 : um_place_is_for_ever(arc_of(p, i)) ? 1 : 2;
		w->at = w->rank == 2 ? t->birth : p->used_at[i];
		w->bytes = (t->bytes + UM_PLACE_GRANULE - 1) / UM_PLACE_GRANULE * UM_PLACE_GRANULE;
		n++;
	}
	qsort(request, n, sizeof *request, by_rank);
	return n;
}

enum counted { COUNT_ALL, COUNT_IN_ROOMS, COUNT_USED };

static int is_counted(const struct placing *p, size_t slot, enum counted counted)
{
	const struct um_slot *t = &p->sched->slots.at[slot];

	if (t->flags & UM_SLOT_UNMANAGED)
		return 0;
	if (counted == COUNT_IN_ROOMS)
		return um_place_height(p->request, t->place) != um_place_height(p->request, t->place + t->bytes);
	return counted == COUNT_ALL || p->used_at[slot] != INT32_MAX;
}

/* The most blocks that hold live content at once, and the most live bytes, of some slots. */
static int count_blocks(const struct placing *p, enum counted counted, uint64_t *blocks, uint64_t *bytes)
{
	const struct um_schedule *s = p->sched;
	struct um_place_range *range = malloc((s->slots.n + 1) * sizeof *range);
	size_t n = 0;
	int err;

	if (!range)
		return -ENOMEM;
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];

		if (!is_counted(p, i, counted))
			continue;
		range[n++] = (struct um_place_range){t->place, t->bytes, life_of(t)};
	}
	err = um_place_blocks(range, n, (int32_t)s->ops.n, blocks, bytes);
	free(range);
	return err;
}

static struct um_place_item *make_items(const struct placing *p, const struct request *request, size_t n)
{
	struct um_place_item *item = malloc((n + 1) * sizeof *item);

	for (size_t i = 0; item && i < n; i++) {
		uint32_t s = request[i].slot;
		uint64_t align = p->rotates[s] ? UM_BLOCK_BYTES : UM_PLACE_GRANULE;

		item[i] = (struct um_place_item){s, (request[i].bytes + align - 1) / align * align, align, arc_of(p, s),
						 UINT64_MAX};
	}
	return item;
}

static void set_places(struct placing *p, const struct um_place_item *item, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p->sched->slots.at[item[i].slot].place = item[i].place;
}

/* Places slots in this order. */
static int place_slots(struct placing *p, const struct request *request, size_t n)
{
	struct um_place_item *item = make_items(p, request, n);
	int err = item ? um_place_in_order(&p->list, item, n) : -ENOMEM;

	if (!err)
		set_places(p, item, n);
	free(item);
	return err;
}

static int is_wasteful(uint64_t blocks, uint64_t bytes)
{
	return blocks * UM_BLOCK_BYTES >= bytes + bytes / WASTE + UM_BLOCK_BYTES;
}

/* Searches for an order of the items that needs fewer than `blocks` blocks. A lower packing is not better in itself:
 * the given order puts tensors of one size, which are used alike, into the same blocks. */
static int reorder(struct placing *p, struct um_place_item *item, size_t n, uint64_t blocks)
{
	struct um_place_item *first = malloc((n + 1) * sizeof *first);
	uint64_t fewer, least;
	int err = first ? count_blocks(p, COUNT_IN_ROOMS, &fewer, &least) : -ENOMEM;

	if (!err) {
		memcpy(first, item, n * sizeof *first);
		err = um_place_search(&p->list, p->request, item, n, least);
	}
	if (!err) {
		set_places(p, item, n);
		err = count_blocks(p, COUNT_ALL, &fewer, &least);
	}
	if (!err && fewer >= blocks)
		set_places(p, first, n);
	free(first);
	return err;
}

/* Places slots in this order, or in a better one if the blocks that hold live content hold much else. */
static int place_densely(struct placing *p, const struct request *request, size_t n)
{
	struct um_place_item *item = make_items(p, request, n);
	uint64_t blocks, bytes;
	int err = item ? um_place_in_order(&p->list, item, n) : -ENOMEM;

	if (!err) {
		set_places(p, item, n);
		err = count_blocks(p, COUNT_ALL, &blocks, &bytes);
	}
	if (!err && is_wasteful(blocks, bytes))
		err = reorder(p, item, n, blocks);
	free(item);
	return err;
}

/* Places slots of the last rank in the holes that are always free. A slot with a fixed place blocks it in all
 * iterations. */
static int place_as_stream(struct placing *p, const struct request *request, size_t n)
{
	struct um_place_life *life = malloc((n + 1) * sizeof *life);
	UM_VEC(struct um_place_hole) holes = {0};
	uint64_t from = 0;
	uint32_t at = 0;
	int err = life ? 0 : -ENOMEM;

	do {
		const struct um_place_run *r = &p->list.runs.at[at];

		for (uint32_t i = 0; !err && i < r->n; i++) {
			if (r->addr[i] > from)
				err = um_vec_push(&holes, ((struct um_place_hole){from, r->addr[i]}));
			from = r->end[i] > from ? r->end[i] : from;
		}
		at = r->next;
	} while (at);
	for (size_t i = 0; !err && i < n; i++)
		life[i] = (struct um_place_life){request[i].slot, request[i].at,
						 p->sched->slots.at[request[i].slot].death, request[i].bytes, 0};
	if (!err)
		err = um_place_stream(holes.at, holes.n, life, n, (int32_t)p->sched->ops.n);
	for (size_t i = 0; !err && i < n; i++)
		p->sched->slots.at[life[i].slot].place = life[i].place;
	um_vec_fini(&holes);
	free(life);
	return err;
}

/* Is the range within one room? */
static int is_in_room(const struct um_plan_request *r, uint64_t addr, uint64_t bytes)
{
	size_t i = 0;

	while (i < r->n_rooms && addr >= r->rooms[i].addr + r->rooms[i].bytes)
		i++;
	return i < r->n_rooms && addr >= r->rooms[i].addr && bytes <= r->rooms[i].addr + r->rooms[i].bytes - addr;
}

static int by_addr(const void *a, const void *b)
{
	const struct um_plan_room *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* All blocks that the ops use. 0 or -ENOMEM. */
static int count_touched(const struct placing *p, uint64_t *blocks)
{
	const struct um_schedule *s = p->sched;
	struct um_plan_room *range = malloc((s->slots.n + 1) * sizeof *range);
	uint64_t from = 0;
	size_t n = 0;

	*blocks = 0;
	if (!range)
		return -ENOMEM;
	for (size_t i = 0; i < s->slots.n; i++)
		if (is_counted(p, i, COUNT_USED))
			range[n++] = (struct um_plan_room){s->slots.at[i].place, s->slots.at[i].bytes};
	if (n)
		qsort(range, n, sizeof *range, by_addr);
	for (size_t i = 0; i < n; i++) {
		uint64_t lo = range[i].addr / UM_BLOCK_BYTES;
		uint64_t hi = (range[i].addr + range[i].bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;

		lo = lo > from ? lo : from;
		*blocks += hi > lo ? hi - lo : 0;
		from = hi > from ? hi : from;
	}
	free(range);
	return 0;
}

/* Is this place of the item's latest tensor free whenever the item has a tensor? */
static int may_keep(struct placing *p, const struct um_place_item *item, uint64_t at)
{
	return at % item->align == 0 && is_in_room(p->request, at, item->bytes) &&
	       um_place_list_is_free(&p->list, at, at + item->bytes, item->arc);
}

/* Places all slots where their latest tensors were. 1: what the ops use fits in the budget like that, and needs hardly
 * more blocks than at once: nothing has to move, and all stays resident; 0; -ENOMEM. */
static int keep_places(struct placing *p, const struct request *request, size_t n)
{
	struct um_place_item *item = make_items(p, request, n);
	uint64_t all = 0, blocks = 0, bytes;
	int err = item ? 0 : -ENOMEM, kept = 1;

	for (size_t i = 0; i < n && kept && !err; i++) {
		uint64_t at = p->sched->slots.at[item[i].slot].last_addr, end = at + item[i].bytes;

		kept = may_keep(p, &item[i], at);
		item[i].place = at;
		if (kept)
			err = um_place_list_add(&p->list, at, end, item[i].arc);
	}
	if (kept && !err) {
		set_places(p, item, n);
		err = count_blocks(p, COUNT_USED, &blocks, &bytes);
	}
	if (kept && !err)
		err = count_touched(p, &all);
	free(item);
	return err ? err : kept && blocks <= p->request->budget / UM_BLOCK_BYTES && all <= blocks + blocks / SPREAD;
}

/* Places those slots where their latest tensors were that can be there. The others are then the first ones of
 * `request`. Their number, or -ENOMEM. */
static int64_t keep_some(struct placing *p, struct request *request, size_t n)
{
	struct um_place_item *item = make_items(p, request, n);
	size_t left = 0;
	int err = item ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		struct um_slot *t = &p->sched->slots.at[item[i].slot];

		if (may_keep(p, &item[i], t->last_addr)) {
			t->place = t->last_addr;
			err = um_place_list_add(&p->list, t->place, t->place + item[i].bytes, item[i].arc);
		} else {
			request[left++] = request[i];
		}
	}
	free(item);
	return err ? err : (int64_t)left;
}

static int by_birth(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Places all slots: permanent ones first. Of many others, those with a beginning and an end within the iteration are
 * placed as a stream. */
static int place_all(struct placing *p, struct request *request, size_t n)
{
	size_t first = 0, kept = 0;
	int err;

	while (first < n && request[first].rank < 2)
		first++;
	if (n - first <= MOST_SEARCHED) {
		err = place_slots(p, request, first);
		return err ? err : place_densely(p, request + first, n - first);
	}
	for (size_t i = first; i < n; i++) {
		const struct um_slot *t = &p->sched->slots.at[request[i].slot];
		struct request w = request[i];

		if (t->birth >= 0 && t->birth < t->death)
			continue;
		request[i] = request[first + kept];
		request[first + kept++] = w;
	}
	/* slots that are alive at the end get places of their own: addresses cost little, and blocks without content
	 * cost nothing */
	p->through_end_for_ever = 1;
	err = place_slots(p, request, first + kept);
	qsort(request + first + kept, n - first - kept, sizeof *request, by_birth);
	return err ? err : place_as_stream(p, request + first + kept, n - first - kept);
}

static int find_uses(struct placing *p)
{
	const struct um_schedule *s = p->sched;

	p->rotates = um_place_rotating(s);
	p->used_at = malloc((s->slots.n + 1) * sizeof *p->used_at);
	if (!p->rotates || !p->used_at)
		return -ENOMEM;
	for (size_t i = 0; i < s->slots.n; i++)
		p->used_at[i] = INT32_MAX;
	for (size_t i = s->ops.n; i-- > 0;)
		for (uint32_t u = 0; u < s->ops.at[i].n_uses; u++)
			p->used_at[s->uses.at[s->ops.at[i].first_use + u].slot] = (int32_t)i;
	return 0;
}

/* A list of what has a place. */
static int begin_list(struct placing *p, int rotating)
{
	int err = um_place_list_init(&p->list);

	if (!err)
		err = add_walls(p);
	return err ? err : add_settled(p, rotating);
}

/* The end of the highest slot that was placed here, of those after r->grow_at. */
static uint64_t find_top(const struct placing *p, const struct request *request, size_t n)
{
	uint64_t top = p->request->grow_at;

	for (size_t i = 0; i < n; i++) {
		const struct um_slot *t = &p->sched->slots.at[request[i].slot];

		if (t->place + t->bytes > top)
			top = t->place + t->bytes;
	}
	return top;
}

/* Places slots that do not rotate. 0 or -ENOMEM. */
static int place_others(struct placing *p, struct request *request, size_t n)
{
	int64_t left = n;
	int kept = 0, err = 0;

	if (p->request->stay && n <= MOST_SEARCHED) {
		left = keep_some(p, request, n);
	} else if (n <= MOST_SEARCHED) {
		kept = keep_places(p, request, n);
		err = kept < 0 ? kept : kept ? 0 : begin_list(p, 0);
	}
	if (left < 0)
		err = (int)left;
	return err || kept > 0 ? err : place_all(p, request, (size_t)left);
}

int um_place_build(const struct um_plan_request *r, struct um_schedule *s, uint64_t *grow_bytes)
{
	struct placing p = {.request = r, .sched = s};
	struct request *request = malloc((s->slots.n + 1) * sizeof *request);
	size_t n = 0, first = 0;
	int err = request ? find_uses(&p) : -ENOMEM;

	if (!err)
		n = list_requests(&p, request);
	while (first < n && request[first].rank == 0)
		first++;
	if (!err && first)
		err = begin_list(&p, 1);
	if (!err && first)
		err = place_slots(&p, request, first);
	if (!err)
		err = begin_list(&p, 0);
	if (!err)
		err = place_others(&p, request + first, n - first);
	if (!err)
		*grow_bytes =
			(find_top(&p, request, n) - r->grow_at + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	free(request);
	free(p.rotates);
	free(p.used_at);
	um_place_list_fini(&p.list);
	return err;
}
