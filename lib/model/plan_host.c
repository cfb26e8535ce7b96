/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan_host.h"

#include "model/host_resident.h"

/* Blocks, by number: first to last. Slots without a place get numbers of their own. */
struct run {
	uint64_t first, end;
};

struct count {
	const struct um_schedule *s;
	uint32_t *successor;
	uint64_t *own; /* by slot: its address without a place */
	UM_VEC(struct run) runs;
};

#define UNPLACED (1ull << 63) /* addresses of slots without a place begin here */

/* A tensor that is born in one iteration and freed in the next alternates between two places. */
static int has_two_places(const struct um_slot *t)
{
	return t->birth >= 0 && t->death >= 0 && t->death <= t->birth;
}

static int add_at(struct count *c, uint64_t from, uint64_t bytes)
{
	const struct run r = {from / UM_BLOCK_BYTES, (from + bytes - 1) / UM_BLOCK_BYTES + 1};

	return bytes ? um_vec_push(&c->runs, r) : 0;
}

static int add_slot(struct count *c, uint32_t slot, uint64_t off, uint64_t bytes)
{
	const struct um_slot *t = &c->s->slots.at[slot];
	int err = 0;

	if (t->flags & UM_SLOT_UNMANAGED)
		return 0;
	if (t->place == UINT64_MAX || has_two_places(t))
		err = add_at(c, c->own[slot] + off, bytes);
	return err || t->place == UINT64_MAX ? err : add_at(c, t->place + off, bytes);
}

/* A range of a slot, and of the slots that its tensor becomes: buffers that take turns are all affected in time. */
static int add(struct count *c, uint32_t slot, uint64_t off, uint64_t bytes)
{
	uint32_t s = slot;
	int err;

	do {
		err = add_slot(c, s, off, bytes);
		s = c->successor[s];
	} while (!err && s != UM_NO_SLOT && s != slot);
	return err;
}

static int by_first(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static uint64_t total(struct count *c)
{
	uint64_t n = 0, end = 0;

	if (c->runs.n)
		qsort(c->runs.at, c->runs.n, sizeof *c->runs.at, by_first);
	for (size_t i = 0; i < c->runs.n; i++) {
		const struct run *r = &c->runs.at[i];
		uint64_t first = r->first > end ? r->first : end;

		n += r->end > first ? r->end - first : 0;
		end = r->end > end ? r->end : end;
	}
	return n * UM_BLOCK_BYTES;
}

static int init(struct count *c, const struct um_schedule *s)
{
	memset(c, 0, sizeof *c);
	c->s = s;
	c->successor = um_schedule_successors(s);
	c->own = malloc((s->slots.n + 1) * sizeof *c->own);
	if (!c->successor || !c->own)
		return -ENOMEM;
	c->own[0] = UNPLACED;
	for (size_t i = 0; i < s->slots.n; i++)
		c->own[i + 1] = c->own[i] + (s->slots.at[i].bytes / UM_BLOCK_BYTES + 1) * UM_BLOCK_BYTES;
	return 0;
}

static void fini(struct count *c)
{
	free(c->successor);
	free(c->own);
	um_vec_fini(&c->runs);
}

static int add_hints(struct count *c, const struct um_plan *p)
{
	int err = 0;

	for (size_t i = 0; !err && i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];

		if (h->kind == UM_HINT_EVICT || h->kind == UM_HINT_DISCARD)
			err = add(c, h->slot, h->off, h->bytes);
	}
	return err;
}

static int add_host_resident(struct count *c, const struct um_plan *p)
{
	struct um_host_resident *range;
	int err = um_host_resident_find(p, &range);

	for (uint32_t i = 0; !err && range && i < c->s->slots.n; i++)
		err = add(c, i, range[i].off, range[i].bytes);
	free(range);
	return err;
}

/* What the CPU accesses. */
static int add_cpu_uses(struct count *c)
{
	int err = 0;

	for (size_t i = 0; i < c->s->ops.n; i++) {
		const struct um_sched_op *op = &c->s->ops.at[i];

		if (op->stream != UM_STREAM_CPU)
			continue;
		for (uint32_t k = op->first_use; !err && k < op->first_use + op->n_uses; k++)
			err = add(c, c->s->uses.at[k].slot, c->s->uses.at[k].off, c->s->uses.at[k].bytes);
	}
	return err;
}

int um_plan_managed_bytes(const struct um_schedule *s, uint64_t *bytes)
{
	struct count c;
	int err = init(&c, s);

	for (uint32_t i = 0; !err && i < s->slots.n; i++)
		err = add(&c, i, 0, s->slots.at[i].bytes);
	*bytes = err ? 0 : total(&c);
	fini(&c);
	return err;
}

static int is_paged(const struct um_schedule *s)
{
	int paged = 0;

	for (size_t i = 0; i < s->ops.n; i++)
		paged |= s->ops.at[i].paged;
	return paged;
}

int um_plan_host_bytes(const struct um_plan *p, uint64_t *bytes)
{
	struct count c;
	int err;

	if (is_paged(&p->sched))
		return um_plan_managed_bytes(&p->sched, bytes);
	err = init(&c, &p->sched);
	if (!err)
		err = add_cpu_uses(&c);
	if (!err)
		err = add_hints(&c, p);
	if (!err)
		err = add_host_resident(&c, p);
	*bytes = err ? 0 : total(&c);
	fini(&c);
	return err;
}
