/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c - online pools answer all calls from the beginning, since their state is that of the calls before
 */
#include "pool/compare.h"

#include "model/event.h"
#include "plan/place_blocks.h"

void um_pool_figures_fini(struct um_pool_figures *f)
{
	free(f->addr);
	f->addr = NULL;
}

static void count_steps(struct um_pool_figures *f, uint64_t steps)
{
	f->steps += steps;
	f->most_steps = steps > f->most_steps ? steps : f->most_steps;
}

/* One call; `piece`: of its tensor. */
static int answer(const struct um_pool_policy *policy, void *pool, const struct um_pool_calls *c, uint32_t i,
		  struct um_pool_piece *piece, uint64_t *addr)
{
	const struct um_pool_call *call = &c->calls.at[i];
	const struct um_pool_tensor *t = &c->tensors.at[call->tensor];
	int err;

	if (call->is_free) {
		policy->free(pool, piece);
		return 0;
	}
	err = policy->alloc(pool, t->bytes, piece);
	if (!err)
		addr[call->tensor] = piece->addr;
	return err;
}

static int run_online(const struct um_pool_calls *c, struct um_pool_window last, const struct um_pool_policy *policy,
		      struct um_pool_figures *f)
{
	struct um_pool_piece *piece = calloc(c->tensors.n + 1, sizeof *piece);
	void *pool = policy->open();
	int err = piece && pool ? 0 : -ENOMEM;
	uint32_t i = 0;

	for (; i < last.to && !err; i++) {
		uint64_t before = policy->steps ? policy->steps(pool) : 0;

		err = answer(policy, pool, c, i, &piece[c->calls.at[i].tensor], f->addr);
		if (i >= last.from && policy->steps)
			count_steps(f, policy->steps(pool) - before);
		if (i >= last.from && policy->reserved(pool) > f->reserved)
			f->reserved = policy->reserved(pool);
	}
	for (size_t k = 0; k < c->tensors.n && pool && piece; k++) {
		const struct um_pool_tensor *t = &c->tensors.at[k];

		if (t->birth < i - (err != 0) && t->death >= i)
			policy->free(pool, &piece[k]);
	}
	if (pool)
		policy->close(pool);
	free(piece);
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct um_place_range *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Bytes of the blocks that the ranges touch; sorts them. */
static uint64_t touched_blocks(struct um_place_range *range, size_t n)
{
	uint64_t blocks = 0, end = 0;

	if (n)
		qsort(range, n, sizeof *range, by_address);
	for (size_t i = 0; i < n; i++) {
		uint64_t from = range[i].addr / UM_BLOCK_BYTES;
		uint64_t to = (range[i].addr + range[i].bytes - 1) / UM_BLOCK_BYTES + 1;

		from = from > end ? from : end;
		blocks += to > from ? to - from : 0;
		end = to > end ? to : end;
	}
	return blocks * UM_BLOCK_BYTES;
}

/* Counts memory over the calls of the last period. */
static int measure(const struct um_pool_calls *c, struct um_pool_window last, struct um_pool_figures *f)
{
	struct um_place_range *range = malloc((c->tensors.n + 1) * sizeof *range);
	int32_t n_calls = (int32_t)(last.to - last.from) + 1;
	uint64_t blocks, touched;
	size_t n = 0;
	int err;

	if (!range)
		return -ENOMEM;
	for (size_t i = 0; i < c->tensors.n; i++) {
		const struct um_pool_tensor *t = &c->tensors.at[i];
		uint32_t from = t->birth < last.from ? 0 : t->birth - last.from + 1;
		uint32_t to = t->death >= last.to ? (uint32_t)n_calls : t->death - last.from + 1;

		if (t->birth < last.to && t->death >= last.from)
			range[n++] = (struct um_place_range){f->addr[i], t->bytes, {(int32_t)from, (int32_t)to, 0}};
	}
	err = um_place_blocks(range, n, n_calls, &blocks, &f->alive);
	f->blocks = blocks * UM_BLOCK_BYTES;
	touched = touched_blocks(range, n);
	if (!f->reserved)
		f->reserved = touched;
	free(range);
	return err;
}

int um_pool_compare(const struct um_pool_calls *c, struct um_pool_window before, struct um_pool_window last,
		    const struct um_pool_policy *policy, struct um_pool_figures *out)
{
	int err;

	memset(out, 0, sizeof *out);
	for (uint32_t i = last.from; i < last.to; i++) {
		out->births += !c->calls.at[i].is_free;
		out->frees += c->calls.at[i].is_free != 0;
	}
	out->addr = calloc(c->tensors.n + 1, sizeof *out->addr);
	if (!out->addr)
		return -ENOMEM;
	if (policy->pack) {
		err = policy->pack(c, before, last, out->addr, &out->reserved, &out->elsewhere);
		out->steps = out->births + out->frees; /* a look-up each */
		out->most_steps = out->steps ? 1 : 0;
	} else {
		err = run_online(c, last, policy, out);
	}
	return err ? err : measure(c, last, out);
}
