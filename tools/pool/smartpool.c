/* SPDX-License-Identifier: Apache-2.0
 *
 * smartpool.c - SmartPool: a period packed in advance, the largest tensor first
 *
 * Zhang et al., "Efficient memory management for GPU-based deep learning systems", 2019 (arXiv 1903.06631), section 4,
 * and its code (apache/singa, commit 8e8a7e15, src/core/memory/memory.cc). Tensors are sorted by size, then by birth.
 * Each goes into the smallest hole between the tensors placed before it that are alive at the same time, else above
 * them. Tensors that are freed in the next period are packed first, and there is a second copy of what they occupy: the
 * next period's are born before they are freed, so the copies are used in turn. The others lie above both copies. Later
 * periods look their addresses up by the number of the birth; a birth of another size goes to cudaMalloc.
 *
 * The publication leaves two points open. A period begins with a birth: here with the one across which the fewest bytes
 * live, if calls are alike from period to period. Tensors that stay for ever lie one after the other in multiples of
 * 512 bytes, which is the least that any pool needs.
 */
#include "model/event.h"
#include "pool/policy.h"

#define GRANULE 512ull

struct item {
	uint64_t bytes, at; /* bytes 0: not placed */
	uint32_t from, to; /* alive in calls [from, to) of the period; beyond its end: in the next one */
	uint32_t number; /* of the birth */
	int crosses; /* the period's end */
};

struct packing {
	UM_VEC(struct item) items; /* in the order of placing, then by number */
	struct item *placed; /* in the order of addresses */
	size_t n_placed;
	uint64_t crossing; /* bytes of one copy */
	uint64_t top;
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static int by_number(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Those that cross the period's end first, then the largest. */
static int by_size(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->crosses != y->crosses)
		return x->crosses ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return by_number(a, b);
}

/* The smallest hole above `base` between placed items that are alive together with `x`. */
static uint64_t find_hole(const struct packing *p, const struct item *x, uint64_t base)
{
	uint64_t from = base, best = UINT64_MAX, at = 0;

	for (const struct item *y = p->placed; y < p->placed + p->n_placed; y++) {
		if (y->from >= x->to || x->from >= y->to)
			continue;
		if (y->at > from && y->at - from >= x->bytes && y->at - from < best) {
			best = y->at - from;
			at = from;
		}
		from = y->at + y->bytes > from ? y->at + y->bytes : from;
	}
	return best == UINT64_MAX ? from : at;
}

static void keep(struct packing *p, const struct item *x)
{
	size_t i = p->n_placed++;

	for (; i && p->placed[i - 1].at > x->at; i--)
		p->placed[i] = p->placed[i - 1];
	p->placed[i] = *x;
}

static int place_items(struct packing *p)
{
	p->placed = malloc((p->items.n + 1) * sizeof *p->placed);
	if (!p->placed)
		return -ENOMEM;
	if (p->items.n)
		qsort(p->items.at, p->items.n, sizeof *p->items.at, by_size);
	for (struct item *x = p->items.at; x < p->items.at + p->items.n && x->bytes; x++) {
		if (!x->crosses && p->n_placed && p->placed[0].crosses)
			p->n_placed = 0; /* the others lie above both copies */
		x->at = find_hole(p, x, x->crosses ? 0 : 2 * p->crossing);
		keep(p, x);
		if (x->crosses && x->at + x->bytes > p->crossing)
			p->crossing = x->at + x->bytes;
		if (x->at + x->bytes > p->top)
			p->top = x->at + x->bytes;
	}
	if (p->top < 2 * p->crossing)
		p->top = 2 * p->crossing;
	if (p->items.n)
		qsort(p->items.at, p->items.n, sizeof *p->items.at, by_number);
	return 0;
}

/* The births of a period; those that stay beyond the end of the next one are not placed. */
static int add_items(struct packing *p, const struct um_pool_calls *c, struct um_pool_window w, uint32_t end)
{
	for (uint32_t i = w.from; i < w.to; i++) {
		const struct um_pool_tensor *t = &c->tensors.at[c->calls.at[i].tensor];
		struct item x = {.number = (uint32_t)p->items.n, .from = t->birth - w.from, .to = t->death - w.from};

		if (c->calls.at[i].is_free)
			continue;
		x.bytes = t->death < end ? round_up(t->bytes, GRANULE) : 0;
		x.crosses = x.bytes && t->death >= w.to;
		if (um_vec_push(&p->items, x))
			return -ENOMEM;
	}
	return 0;
}

/* Addresses of a period's births. `copy`: of those that cross its end. Births of other sizes go to cudaMalloc, at
 * `*beyond`; returns how many there are from the call `from` on. */
static uint64_t look_up(const struct packing *p, const struct um_pool_calls *c, struct um_pool_window w, unsigned copy,
			uint32_t from, uint64_t *addr, uint64_t *beyond)
{
	uint64_t elsewhere = 0;
	size_t n = 0;

	for (uint32_t i = w.from; i < w.to; i++) {
		uint32_t tensor = c->calls.at[i].tensor;
		uint64_t bytes = c->tensors.at[tensor].bytes;
		const struct item *x = n < p->items.n ? &p->items.at[n] : NULL;

		if (c->calls.at[i].is_free)
			continue;
		n++;
		if (x && x->bytes == round_up(bytes, GRANULE)) {
			addr[tensor] = x->at + (x->crosses ? copy * p->crossing : 0);
			continue;
		}
		addr[tensor] = *beyond;
		*beyond += round_up(bytes, UM_BLOCK_BYTES);
		elsewhere += i >= from;
	}
	return elsewhere;
}

/* Was the tensor born before both periods, or in the first one, to stay? */
static int stays(const struct um_pool_tensor *t, struct um_pool_window before, struct um_pool_window last)
{
	if (t->birth < before.from)
		return t->death >= last.from;
	return t->birth < before.to && t->death >= last.to;
}

/* The birth of the first of the two periods across which the fewest bytes live. */
static uint32_t find_begin(const struct um_pool_calls *c, struct um_pool_window before, struct um_pool_window last)
{
	uint64_t alive = 0, least = UINT64_MAX;
	uint32_t begin = before.from;

	for (size_t i = 0; i < c->tensors.n; i++) {
		const struct um_pool_tensor *t = &c->tensors.at[i];

		alive += t->birth < before.from && t->death >= before.from && !stays(t, before, last) ? t->bytes : 0;
	}
	for (uint32_t i = before.from; i < before.to; i++) {
		uint64_t bytes = c->tensors.at[c->calls.at[i].tensor].bytes;

		if (alive < least && !c->calls.at[i].is_free) {
			least = alive;
			begin = i;
		}
		alive = c->calls.at[i].is_free ? alive - bytes : alive + bytes;
	}
	return begin;
}

/* Addresses of tensors that stay, from `end` on. */
static uint64_t place_staying(const struct um_pool_calls *c, struct um_pool_window before, struct um_pool_window last,
			      uint64_t end, uint64_t *addr)
{
	for (size_t i = 0; i < c->tensors.n; i++) {
		if (!stays(&c->tensors.at[i], before, last))
			continue;
		addr[i] = end;
		end += round_up(c->tensors.at[i].bytes, GRANULE);
	}
	return end;
}

static int pack(const struct um_pool_calls *c, struct um_pool_window before, struct um_pool_window last, uint64_t *addr,
		uint64_t *reserved, uint64_t *elsewhere)
{
	uint32_t n = last.to - last.from;
	int alike = before.to - before.from == n && before.from >= n;
	uint32_t begin = alike ? find_begin(c, before, last) : last.from;
	struct um_pool_window period = {alike ? begin - n : before.from, begin}, next = {begin, last.to}, after = last;
	struct packing p = {0};
	uint64_t end, beyond = 0;
	int err = add_items(&p, c, period, last.to);

	if (!err)
		err = place_items(&p);
	if (!err) {
		/* the copies are used in turn */
		look_up(&p, c, period, 0, last.from, addr, &beyond);
		end = place_staying(c, before, last, p.top, addr);
		beyond = round_up(end, UM_BLOCK_BYTES);
		*elsewhere = 0;
		if (alike) {
			next.to = begin + n;
			after.from = next.to;
			*elsewhere = look_up(&p, c, after, 0, last.from, addr, &beyond);
		}
		*elsewhere += look_up(&p, c, next, 1, last.from, addr, &beyond);
		*reserved = *elsewhere ? beyond : end;
	}
	um_vec_fini(&p.items);
	free(p.placed);
	return err;
}

const struct um_pool_policy um_pool_smartpool = {.name = "smartpool", .pack = pack};
