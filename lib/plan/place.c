/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c - places slots, largest first, into the smallest hole
 *
 * Each slot goes into the smallest hole between the slots placed before it whose lifetimes intersect its own
 * (SmartPool, Zhang et al. 2019). A lifetime is an arc of the iteration, since a tensor may be freed in the next one.
 * Placed slots are a list in address order, stored in runs of some entries: a search reads it front to back, an
 * insertion moves one run. Permanent slots are merged with their neighbours. Time is quadratic in the number of slots,
 * with a small constant: lifetimes of a run are adjacent in memory and compared several at once, before places are
 * examined. Long schedules go to place_stream.c.
 */
#include "plan/place.h"

#include "plan/place_stream.h"

#define RUN 256
#define LONG 8 /* a life is long from this share of an iteration on */
#define MOST_SEARCHED 40000 /* slots with a beginning and an end; beyond this number they are placed as a stream */

/* [from, to) in ops, and [0, wrap) where it continues in the next iteration. */
struct arc {
	int32_t from, to, wrap;
};

struct run {
	uint32_t n, next; /* next: 0 for none, since run 0 comes first */
	int32_t from[RUN], to[RUN], wrap[RUN]; /* arcs */
	uint64_t addr[RUN], end[RUN];
	uint64_t top[RUN]; /* the highest end so far in this run */
};

struct placing {
	struct um_schedule *sched;
	uint8_t *rotates;
	int32_t *used_at; /* by slot: the first op that uses it */
	UM_VEC(struct run) runs;
	int through_end_for_ever;
};

static const struct arc for_ever = {0, INT32_MAX, 0};
static const struct arc wall = {-1, INT32_MAX, 0}; /* not a slot: the end of a room. Intersects every lifetime */

static int is_for_ever(struct arc a)
{
	return a.to == INT32_MAX;
}

static struct arc arc_of(const struct placing *p, uint32_t slot)
{
	const struct um_slot *t = &p->sched->slots.at[slot];

	if (p->rotates[slot] || (t->birth < 0 && t->death < 0))
		return for_ever;
	if (p->through_end_for_ever && um_slot_alive_first(t))
		return for_ever;
	if (t->birth < 0)
		return (struct arc){0, t->death, 0};
	if (t->death > t->birth)
		return (struct arc){t->birth, t->death, 0};
	return (struct arc){t->birth, INT32_MAX - 1, t->death};
}

uint8_t *um_place_rotating(const struct um_schedule *s)
{
	uint8_t *w = calloc(s->slots.n + 1, 1);

	for (uint32_t i = 0; w && i < s->slots.n; i++)
		if (s->slots.at[i].carry < s->slots.n && s->slots.at[i].carry != i)
			w[i] = w[s->slots.at[i].carry] = 1;
	return w;
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

static int list_init(struct placing *p)
{
	if (um_vec_reserve(&p->runs, 1))
		return -ENOMEM;
	memset(&p->runs.at[0], 0, sizeof p->runs.at[0]);
	p->runs.n = 1;
	return 0;
}

static void find_tops(struct run *r, uint32_t from)
{
	for (uint32_t i = from; i < r->n; i++)
		r->top[i] = i && r->top[i - 1] > r->end[i] ? r->top[i - 1] : r->end[i];
}

/* Moves `n` entries of a run to index `to` of another, or of the same one. */
static void run_move(struct run *r, uint32_t to, const struct run *s, uint32_t from, uint32_t n)
{
	memmove(r->from + to, s->from + from, n * sizeof *s->from);
	memmove(r->to + to, s->to + from, n * sizeof *s->to);
	memmove(r->wrap + to, s->wrap + from, n * sizeof *s->wrap);
	memmove(r->addr + to, s->addr + from, n * sizeof *s->addr);
	memmove(r->end + to, s->end + from, n * sizeof *s->end);
}

static int run_split(struct placing *p, uint32_t at)
{
	struct run *a, *b;

	if (um_vec_reserve(&p->runs, 1))
		return -ENOMEM;
	a = &p->runs.at[at];
	b = &p->runs.at[p->runs.n];
	memset(b, 0, sizeof *b);
	b->n = a->n / 2;
	a->n -= b->n;
	run_move(b, 0, a, a->n, b->n);
	find_tops(b, 0);
	b->next = a->next;
	a->next = (uint32_t)p->runs.n++;
	return 0;
}

static int list_add(struct placing *p, uint64_t addr, uint64_t end, struct arc arc)
{
	uint32_t at = 0, i;
	struct run *r;

	while (p->runs.at[at].next && p->runs.at[p->runs.at[at].next].addr[0] <= addr)
		at = p->runs.at[at].next;
	if (p->runs.at[at].n == RUN) {
		if (run_split(p, at))
			return -ENOMEM;
		if (p->runs.at[p->runs.at[at].next].addr[0] <= addr)
			at = p->runs.at[at].next;
	}
	r = &p->runs.at[at];
	for (i = r->n; i > 0 && r->addr[i - 1] > addr; i--)
		;
	if (i > 0 && !arc.from && is_for_ever(arc) && !r->from[i - 1] && r->to[i - 1] == INT32_MAX &&
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

/* By entry of the run: does its arc intersect this one? A loop of fixed length without branches, so that compilers
 * vectorise it. */
static void find_crossing(const struct run *r, struct arc arc, uint8_t *hit)
{
	int32_t wraps = arc.wrap ? 0 : INT32_MAX; /* a wrap beyond this one intersects */

	for (int i = 0; i < RUN; i++)
		hit[i] = (uint8_t)(((r->from[i] < arc.to) & (arc.from < r->to[i])) | (r->wrap[i] > arc.from) |
				   (arc.wrap > r->from[i]) | (r->wrap[i] > wraps));
}

struct search {
	uint64_t bytes, align; /* a power of two */
	uint64_t best, best_size; /* the smallest hole that fits */
	uint64_t open; /* the first place that fits above everything in the room so far */
};

/* The hole [from, to); `top`: the end of the room's contents, at any time. */
static void try_hole(struct search *f, uint64_t from, uint64_t to, uint64_t top)
{
	from = (from + f->align - 1) & ~(f->align - 1);
	if (from >= to || to - from < f->bytes)
		return;
	if (from + f->bytes > top) {
		if (f->open == UINT64_MAX)
			f->open = from;
	} else if (to - from < f->best_size) {
		f->best_size = to - from;
		f->best = from;
	}
}

static int none_of_eight(const uint8_t *hit)
{
	uint64_t all;

	memcpy(&all, hit, sizeof all);
	return !all;
}

/* A place for `bytes` during `arc`; UINT64_MAX if none. */
static uint64_t list_find(const struct placing *p, uint64_t bytes, uint64_t align, struct arc arc)
{
	struct search f = {bytes, align, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	uint64_t from = 0, top = 0, before;
	uint8_t hit[RUN];
	uint32_t at = 0;

	do {
		const struct run *r = &p->runs.at[at];

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
				try_hole(&f, from, r->addr[i], before);
				if (f.best_size == bytes)
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

/* --- slots -------------------------------------------------------------------------------------------------------- */

static int is_settled(const struct um_slot *t)
{
	return t->flags & UM_SLOT_FIXED && t->place != UINT64_MAX;
}

/* Adds walls (entries that intersect every lifetime) between the rooms. */
static int add_walls(struct placing *p, const struct um_plan_request *r)
{
	uint64_t from = 0;

	for (size_t i = 0; i < r->n_rooms; i++) {
		if (r->rooms[i].addr < from || r->rooms[i].bytes > UINT64_MAX - r->rooms[i].addr ||
		    (r->rooms[i].addr | r->rooms[i].bytes) % UM_BLOCK_BYTES)
			return -EINVAL;
		if (list_add(p, from, r->rooms[i].addr, wall))
			return -ENOMEM;
		from = r->rooms[i].addr + r->rooms[i].bytes;
	}
	if (r->grow_at < from || r->grow_at % UM_BLOCK_BYTES)
		return -EINVAL;
	if (list_add(p, from, r->grow_at, wall))
		return -ENOMEM;
	return list_add(p, UINT64_MAX / UM_BLOCK_BYTES * UM_BLOCK_BYTES, UINT64_MAX, wall);
}

/* Is the slot's tensor at another place until it dies in the next iteration? */
static int is_elsewhere(const struct um_slot *t)
{
	return !(t->flags & UM_SLOT_FIXED) && t->bound.v && t->bound_addr != t->place && t->death >= 0 &&
	       (t->birth < 0 || t->death <= t->birth) && t->bound_addr < UINT64_MAX - t->bytes;
}

/* Adds slots that have a place, and places that tensors have in the next iteration alone. `rotating`: rotating slots
 * have none yet. One that cannot be born at its place in that iteration is out of turn for ever; others find theirs
 * free an iteration later, and avoid only tensors that live long. */
static int add_settled(struct placing *p, int rotating)
{
	for (uint32_t i = 0; i < p->sched->slots.n; i++) {
		const struct um_slot *t = &p->sched->slots.at[i];

		if (is_elsewhere(t) && (rotating || (t->birth < 0 && (size_t)t->death > p->sched->ops.n / LONG)) &&
		    list_add(p, t->bound_addr, t->bound_addr + t->bytes, (struct arc){0, t->death, 0}))
			return -ENOMEM;
		if (!(is_settled(t) || (p->rotates[i] && !rotating)) || t->flags & UM_SLOT_UNMANAGED)
			continue;
		uint64_t end = t->place + t->bytes;

		/* A rotating slot with whole blocks keeps them. */
		if (p->rotates[i] && t->place % UM_BLOCK_BYTES == 0)
			end = (end + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
		if (list_add(p, t->place, end, arc_of(p, i)))
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
		w->rank = p->rotates[i] ? 0 : is_for_ever(arc_of(p, i)) ? 1 : 2;
		w->at = w->rank == 2 ? t->birth : p->used_at[i];
		w->bytes = (t->bytes + UM_PLACE_GRANULE - 1) / UM_PLACE_GRANULE * UM_PLACE_GRANULE;
		n++;
	}
	qsort(request, n, sizeof *request, by_rank);
	return n;
}

static int place_slot(struct placing *p, const struct request *request, size_t n, uint64_t *top)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t s = request[i].slot;
		uint64_t align = p->rotates[s] ? UM_BLOCK_BYTES : UM_PLACE_GRANULE;
		uint64_t bytes = (request[i].bytes + align - 1) / align * align;
		uint64_t at = list_find(p, bytes, align, arc_of(p, s));

		if (at == UINT64_MAX)
			return -EINVAL;
		if (list_add(p, at, at + bytes, arc_of(p, s)))
			return -ENOMEM;
		p->sched->slots.at[s].place = at;
		if (at + bytes > *top)
			*top = at + bytes;
	}
	return 0;
}

/* Places slots of the last rank in the holes that are always free. A slot with a fixed place blocks it in all
 * iterations. */
static int place_as_stream(struct placing *p, const struct request *request, size_t n, uint64_t *top)
{
	struct um_place_life *life = malloc((n + 1) * sizeof *life);
	UM_VEC(struct um_place_hole) holes = {0};
	uint64_t from = 0;
	uint32_t at = 0;
	int err = life ? 0 : -ENOMEM;

	do {
		const struct run *r = &p->runs.at[at];

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
	for (size_t i = 0; !err && i < n; i++) {
		p->sched->slots.at[life[i].slot].place = life[i].place;
		if (life[i].place + life[i].bytes > *top)
			*top = life[i].place + life[i].bytes;
	}
	um_vec_fini(&holes);
	free(life);
	return err;
}

static int by_birth(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Places all slots: by search if they are few, otherwise those with a beginning and an end within the iteration as a
 * stream. */
static int place_all(struct placing *p, struct request *request, size_t n, uint64_t *top)
{
	size_t first = 0, kept = 0;
	int err;

	while (first < n && request[first].rank < 2)
		first++;
	if (n - first <= MOST_SEARCHED)
		return place_slot(p, request, n, top);
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
	err = place_slot(p, request, first + kept, top);
	qsort(request + first + kept, n - first - kept, sizeof *request, by_birth);
	return err ? err : place_as_stream(p, request + first + kept, n - first - kept, top);
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
static int begin_list(struct placing *p, const struct um_plan_request *r, int rotating)
{
	int err;

	um_vec_clear(&p->runs);
	err = list_init(p);
	if (!err)
		err = add_walls(p, r);
	return err ? err : add_settled(p, rotating);
}

int um_place_build(const struct um_plan_request *r, struct um_schedule *s, uint64_t *grow_bytes)
{
	struct placing p = {.sched = s};
	struct request *request = malloc((s->slots.n + 1) * sizeof *request);
	uint64_t top = r->grow_at;
	size_t n = 0, first = 0;
	int err = request ? find_uses(&p) : -ENOMEM;

	if (!err)
		n = list_requests(&p, request);
	while (first < n && request[first].rank == 0)
		first++;
	if (!err && first)
		err = begin_list(&p, r, 1);
	if (!err && first)
		err = place_slot(&p, request, first, &top);
	if (!err)
		err = begin_list(&p, r, 0);
	if (!err)
		err = place_all(&p, request + first, n - first, &top);
	if (!err)
		*grow_bytes = (top - r->grow_at + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	free(request);
	free(p.rotates);
	free(p.used_at);
	um_vec_fini(&p.runs);
	return err;
}
