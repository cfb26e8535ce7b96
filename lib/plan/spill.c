/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/spill.h"

struct span {
	uint64_t lo, hi; /* blocks */
};

struct spill {
	const struct um_plan *p;
	struct um_host_resident *range; /* by slot */
	double *touched; /* by slot: bytes that ops touch in an iteration; negative: must not be spilled */
	struct span *span; /* of one op */
};

static int streams(const struct um_schedule *s, const struct um_sched_op *op)
{
	return um_cost_streams(&op->cost, um_sched_touched(s, op));
}

static void find_touched(struct spill *w)
{
	const struct um_schedule *s = &w->p->sched;

	for (size_t i = 0; i < s->slots.n; i++)
		if (!um_host_resident_may(&s->slots.at[i], i))
			w->touched[i] = -1;
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];
		int may = op->stream == UM_STREAM_CPU || streams(s, op);

		for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
			double *touched = &w->touched[s->uses.at[u].slot];

			if (*touched >= 0)
				*touched = may ? *touched + (double)s->uses.at[u].touched : -1;
		}
	}
}

static int by_block(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->lo != y->lo ? (x->lo < y->lo ? -1 : 1) : 0;
}

/* The whole blocks between two addresses. */
static struct span whole_blocks(uint64_t lo, uint64_t hi)
{
	struct span b = {(lo + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES, hi / UM_BLOCK_BYTES};

	return b.lo < b.hi ? b : (struct span){0, 0};
}

/* Adds the blocks of a use that are not host-resident. Returns their ranges: up to two. */
static uint32_t add_spans(const struct spill *w, const struct um_sched_use *u, uint32_t n)
{
	const struct um_slot *t = &w->p->sched.slots.at[u->slot];
	const struct um_host_resident *r = &w->range[u->slot];
	uint64_t lo = (t->place + u->off) / UM_BLOCK_BYTES;
	uint64_t hi = (t->place + u->off + u->bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;
	struct span host = whole_blocks(t->place + r->off, t->place + r->off + r->bytes);

	if (host.lo < host.hi && host.lo > lo)
		w->span[n++] = (struct span){lo, host.lo < hi ? host.lo : hi};
	if (host.lo == host.hi || host.hi < hi)
		w->span[n++] = (struct span){host.hi > lo ? host.hi : lo, hi};
	return n;
}

/* The number of blocks that an op needs on the device. */
static uint64_t count_blocks(const struct spill *w, const struct um_sched_op *op)
{
	const struct um_schedule *s = &w->p->sched;
	uint32_t n = 0;
	uint64_t sum = 0, end = 0;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		const struct um_slot *t = &s->slots.at[s->uses.at[u].slot];

		if (t->place != UINT64_MAX && !(t->flags & UM_SLOT_UNMANAGED))
			n = add_spans(w, &s->uses.at[u], n);
	}
	if (n)
		qsort(w->span, n, sizeof *w->span, by_block);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t lo = w->span[i].lo > end ? w->span[i].lo : end;

		sum += w->span[i].hi > lo ? w->span[i].hi - lo : 0;
		end = w->span[i].hi > end ? w->span[i].hi : end;
	}
	return sum;
}

/* The blocks of a use that may be added to its slot's range: at its end, or before the range that the slot has. */
static struct span candidates(const struct spill *w, const struct um_sched_use *u)
{
	const struct um_slot *t = &w->p->sched.slots.at[u->slot];
	const struct um_host_resident *r = &w->range[u->slot];
	uint64_t hi = u->off + u->bytes;

	if (w->touched[u->slot] < 0 || (r->bytes && (r->off >= hi || r->off + r->bytes <= u->off)))
		return (struct span){0, 0};
	return whole_blocks(t->place + u->off, t->place + (r->bytes ? r->off : hi));
}

/* The use whose slot is touched least for its size, of those that may be spilled; NULL: there is none. */
static const struct um_sched_use *find_use(const struct spill *w, const struct um_sched_op *op)
{
	const struct um_schedule *s = &w->p->sched;
	const struct um_sched_use *best = NULL;
	double least = 0;

	for (uint32_t i = op->first_use; i < op->first_use + op->n_uses; i++) {
		const struct um_sched_use *u = &s->uses.at[i];
		struct span c = candidates(w, u);
		double rate = w->touched[u->slot] / (double)s->slots.at[u->slot].bytes;

		if (c.lo < c.hi && (!best || rate < least)) {
			best = u;
			least = rate;
		}
	}
	return best;
}

/* Adds up to `blocks` blocks of a use. */
static void spill(struct spill *w, const struct um_sched_use *u, uint64_t blocks)
{
	const struct um_slot *t = &w->p->sched.slots.at[u->slot];
	struct um_host_resident *r = &w->range[u->slot];
	struct span c = candidates(w, u);
	uint64_t end = r->bytes ? r->off + r->bytes : c.hi * UM_BLOCK_BYTES - t->place;

	if (c.hi - c.lo > blocks)
		c.lo = c.hi - blocks;
	r->off = c.lo * UM_BLOCK_BYTES - t->place;
	r->bytes = end - r->off;
}

static int spill_op(struct spill *w, const struct um_sched_op *op)
{
	uint64_t most = w->p->budget / UM_BLOCK_BYTES, n = count_blocks(w, op);
	const struct um_sched_use *u;
	int any = 0;

	while (n > most && (u = find_use(w, op))) {
		uint64_t left = n;

		spill(w, u, n - most);
		n = count_blocks(w, op);
		if (n >= left)
			break;
		any = 1;
	}
	return any;
}

int um_spill_paged(const struct um_plan *p, struct um_host_resident *host_resident)
{
	const struct um_schedule *s = &p->sched;
	struct spill w = {.p = p, .range = host_resident};
	uint32_t most = 0;
	int any = 0;

	for (size_t i = 0; i < s->ops.n; i++)
		most = s->ops.at[i].n_uses > most ? s->ops.at[i].n_uses : most;
	w.touched = calloc(s->slots.n + 1, sizeof *w.touched);
	w.span = malloc((2ull * most + 1) * sizeof *w.span);
	if (w.touched && w.span) {
		find_touched(&w);
		for (size_t i = 0; i < s->ops.n; i++)
			if (s->ops.at[i].paged && streams(s, &s->ops.at[i]))
				any |= spill_op(&w, &s->ops.at[i]);
	} else {
		any = -ENOMEM;
	}
	free(w.touched);
	free(w.span);
	return any;
}
