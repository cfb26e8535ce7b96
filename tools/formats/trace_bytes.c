/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_bytes.c - merges the ranges that ops use
 */
#include "formats/trace_bytes.h"

#include "base/bisect.h"

#define PAGE 4096u

/* A tensor with more ranges than that counts with the gaps between them. */
#define MOST_RANGES 4096

void um_trace_bytes_fini(struct um_trace_bytes *b)
{
	for (size_t i = 0; i < b->tensors.n; i++)
		um_vec_fini(&b->tensors.at[i].used);
	um_vec_fini(&b->tensors);
	um_vec_fini(&b->uses);
	um_id_map_fini(&b->index);
}

int um_trace_bytes_add(struct um_trace_bytes *b, uint64_t id, uint64_t bytes)
{
	if (um_vec_push(&b->tensors, (struct um_trace_tensor){.bytes = bytes}))
		return -ENOMEM;
	return um_id_map_add(&b->index, id, b->tensors.n - 1);
}

/* Adds a range to a tensor's, joining those that it touches. */
static int add_range(struct um_trace_tensor *t, uint64_t off, uint64_t end)
{
	struct um_trace_range *r = t->used.at;
	size_t lo = 0, hi;

	UM_BISECT(lo, t->used.n, i, r[i].end < off)
	for (hi = lo; hi < t->used.n && r[hi].off <= end; hi++) {
		off = r[hi].off < off ? r[hi].off : off;
		end = r[hi].end > end ? r[hi].end : end;
	}
	if (lo == hi && t->used.n == MOST_RANGES) {
		lo = lo ? lo - 1 : 0;
		hi = lo + 1;
		off = r[lo].off < off ? r[lo].off : off;
		end = r[lo].end > end ? r[lo].end : end;
	}
	if (um_vec_reserve(&t->used, 1))
		return -ENOMEM;
	r = t->used.at;
	memmove(r + lo + 1, r + hi, (t->used.n - hi) * sizeof *r);
	t->used.n = t->used.n - (hi - lo) + 1;
	r[lo] = (struct um_trace_range){off, end};
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct um_use *x = a, *y = b;

	if (x->id.v != y->id.v)
		return x->id.v < y->id.v ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* The blocks of a look-up's pages, which are spread over the range. */
static uint64_t look_up_bytes(const struct um_use *u)
{
	uint64_t pages = u->touched / PAGE + (u->touched % PAGE != 0);

	return pages < u->bytes / UM_BLOCK_BYTES ? pages * UM_BLOCK_BYTES : u->bytes;
}

static uint64_t at_most(uint64_t most, uint64_t a, uint64_t b)
{
	return a < most && b < most - a ? a + b : most;
}

/* Bytes that `n` uses of one tensor, by offset, touch. `*err`: -ENOMEM. */
static uint64_t tensor_bytes(struct um_trace_tensor *t, const struct um_use *u, size_t n, int *err)
{
	uint64_t dense = 0, looked_up = 0, end = 0;

	for (; n; n--, u++) {
		uint64_t from = u->off > end ? u->off : end, to = u->off + u->bytes;

		if (u->touched < u->bytes) {
			looked_up = at_most(t->bytes, looked_up, look_up_bytes(u));
			continue;
		}
		if (to <= from)
			continue;
		dense += to - from;
		end = to;
		if (add_range(t, u->off, to))
			*err = -ENOMEM;
	}
	if (looked_up > t->looked_up)
		t->looked_up = looked_up;
	return at_most(t->bytes, dense, looked_up);
}

int um_trace_bytes_op(struct um_trace_bytes *b, const struct um_op *op, uint64_t *bytes)
{
	int err = 0;

	*bytes = 0;
	um_vec_clear(&b->uses);
	if (!op->n_uses)
		return 0;
	if (um_vec_reserve(&b->uses, op->n_uses))
		return -ENOMEM;
	memcpy(b->uses.at, op->uses, op->n_uses * sizeof *op->uses);
	qsort(b->uses.at, op->n_uses, sizeof *b->uses.at, by_place);
	for (size_t i = 0, n; i < op->n_uses; i += n) {
		const struct um_use *u = &b->uses.at[i];

		for (n = 1; i + n < op->n_uses && u[n].id.v == u->id.v; n++)
			;
		*bytes += tensor_bytes(&b->tensors.at[*um_id_map_find(&b->index, u->id.v)], u, n, &err);
	}
	return err;
}

uint64_t um_trace_bytes_of(const struct um_trace_bytes *b, uint64_t id)
{
	const struct um_trace_tensor *t = &b->tensors.at[*um_id_map_find(&b->index, id)];
	uint64_t dense = 0;

	for (size_t i = 0; i < t->used.n; i++)
		dense += t->used.at[i].end - t->used.at[i].off;
	return at_most(t->bytes, dense, t->looked_up);
}
