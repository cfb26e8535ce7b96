/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_cut.c - numbers the tensors of a part in order of appearance and computes its fingerprints
 */
#include "learn/iteration_cut.h"

#include "model/tensor.h"

#include <errno.h>
#include <stdlib.h>

#define NO_NUMBER UINT32_MAX

struct work {
	const struct um_iteration *all;
	const struct um_cut *cut;
	struct um_iteration *out;
	uint32_t *number; /* by tensor of `all` */
	size_t birth; /* of `all`: the next birth to copy */
	size_t first_before; /* of `all`: the first birth of the previous iteration */
	size_t set_up; /* of `all`: the number of births that belong to no iteration */
};

static int within(int32_t position, uint32_t from, uint32_t to)
{
	return position != UM_NOWHERE && (uint32_t)position >= from && (uint32_t)position < to;
}

static int32_t shift(const struct work *w, int32_t position)
{
	return within(position, w->cut->from, w->cut->to) ? position - (int32_t)w->cut->from : UM_NOWHERE;
}

/* Born in an op of [from, to), and not in set-up. */
static int born_within(const struct work *w, uint32_t tensor, uint32_t from, uint32_t to)
{
	if (w->set_up && tensor <= w->all->births.at[w->set_up - 1]) /* births are numbered in their order */
		return 0;
	return within(w->all->tensors.at[tensor].birth, from, to);
}

/* The index of a tensor among the births of the previous iteration. */
static uint32_t order_before(const struct work *w, uint32_t tensor)
{
	size_t lo = w->first_before, hi = w->all->births.n; /* births are numbered in their order */

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (w->all->births.at[mid] < tensor)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (uint32_t)(lo - w->first_before);
}

/* The first entry of the tensor among the nests of `all`, if it has one. */
static size_t first_nest(const struct um_iteration *all, uint32_t tensor)
{
	size_t lo = 0, hi = all->nests.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (all->nests.at[mid].inner < tensor)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int is_nested(const struct work *w, uint32_t tensor)
{
	size_t i = first_nest(w->all, tensor);

	return i < w->all->nests.n && w->all->nests.at[i].inner == tensor;
}

static int add_nests(struct work *w, uint32_t tensor)
{
	const struct um_iteration *all = w->all;

	for (size_t lo = first_nest(all, tensor); lo < all->nests.n && all->nests.at[lo].inner == tensor; lo++) {
		struct um_iter_nest nest = all->nests.at[lo];

		nest.inner = w->number[tensor];
		if (um_vec_push(&w->out->nests, nest))
			return -ENOMEM;
	}
	return 0;
}

/* Gives the tensor a number in the part, unless it has one. 0 or -ENOMEM. */
static int number(struct work *w, uint32_t tensor)
{
	struct um_iter_tensor t = w->all->tensors.at[tensor];

	if (w->number[tensor] != NO_NUMBER)
		return 0;
	if (born_within(w, tensor, w->cut->from, w->cut->to)) {
		t.born_iter = w->cut->n;
		t.born_ord = (uint32_t)w->out->births.n;
	} else if (born_within(w, tensor, w->cut->before, w->cut->from)) {
		t.born_iter = w->cut->n - 1;
		t.born_ord = order_before(w, tensor);
	} else {
		t.born_iter = 0;
	}
	t.flags &= ~(unsigned)UM_TENSOR_TRANSIENT;
	t.birth = t.born_iter == w->cut->n ? shift(w, t.birth) : UM_NOWHERE;
	t.death = shift(w, t.death);
	w->number[tensor] = (uint32_t)w->out->tensors.n;
	return um_vec_push(&w->out->tensors, t) ? -ENOMEM : add_nests(w, tensor);
}

/* Adds the births before op `position`. */
static int add_births(struct work *w, uint32_t position)
{
	const struct um_iteration *all = w->all;

	for (; w->birth < all->births.n; w->birth++) {
		uint32_t tensor = all->births.at[w->birth];

		if ((uint32_t)all->tensors.at[tensor].birth > position)
			return 0;
		if (number(w, tensor) || um_vec_push(&w->out->births, w->number[tensor]))
			return -ENOMEM;
		w->out->signature = um_signature_birth(w->out->signature, all->tensors.at[tensor].bytes);
	}
	return 0;
}

static int add_uses(struct work *w, const struct um_iter_op *op, uint64_t *hash)
{
	for (uint32_t i = 0; i < op->n_uses; i++) {
		struct um_iter_use use = w->all->uses.at[op->first_use + i];
		const struct um_use as = {.access = use.access, .off = use.off, .bytes = use.bytes};
		uint64_t bytes = w->all->tensors.at[use.tensor].bytes;

		if (number(w, use.tensor))
			return -ENOMEM;
		use.tensor = w->number[use.tensor];
		*hash = um_op_hash_use(*hash, use.tensor, bytes, &as);
		if (um_vec_push(&w->out->uses, use))
			return -ENOMEM;
	}
	return 0;
}

static int add_op(struct work *w, const struct um_iter_op *from)
{
	struct um_iter_op op = *from;
	uint64_t hash = um_op_hash(um_hash_str(op.name), op.stream);

	op.first_use = (uint32_t)w->out->uses.n;
	op.first_relaunch = (uint32_t)w->out->relaunch.n;
	op.first_ws = (uint32_t)w->out->ws.n;
	if (add_uses(w, from, &hash))
		return -ENOMEM;
	for (uint32_t i = 0; i < op.n_relaunch; i++)
		if (um_vec_push(&w->out->relaunch, w->number[w->all->relaunch.at[from->first_relaunch + i]]))
			return -ENOMEM;
	for (uint32_t i = 0; i < op.n_ws; i++)
		if (um_vec_push(&w->out->ws, w->all->ws.at[from->first_ws + i]))
			return -ENOMEM;
	if (op.n_ws)
		hash = um_op_hash_ws(hash, w->all->ws.at + from->first_ws, op.n_ws);
	op.hash = um_op_hash_end(hash, op.n_uses);
	w->out->signature = um_signature_op(w->out->signature, op.hash);
	return um_vec_push(&w->out->ops, op);
}

static int by_position(const void *a, const void *b)
{
	const struct um_iter_free *x = a, *y = b;

	if (x->pos != y->pos)
		return x->pos < y->pos ? -1 : 1;
	return x->born_ord < y->born_ord ? -1 : x->born_ord > y->born_ord;
}

/* Adds the frees, in this part, of tensors born in the previous iteration. */
static int add_late_frees(struct work *w)
{
	const struct um_iteration *all = w->all;
	struct um_iteration *out = w->out;

	for (size_t i = w->first_before; i < all->births.n; i++) {
		const struct um_iter_tensor *t = &all->tensors.at[all->births.at[i]];

		if ((uint32_t)t->birth >= w->cut->from)
			break;
		if (!within(t->death, w->cut->from, w->cut->to))
			continue;
		if (um_vec_push(&out->late_frees,
				((struct um_iter_free){(uint32_t)(i - w->first_before), t->bytes, shift(w, t->death)})))
			return -ENOMEM;
	}
	if (out->late_frees.n)
		qsort(out->late_frees.at, out->late_frees.n, sizeof *out->late_frees.at, by_position);
	return 0;
}

/* Adds the frees, in this part, of tensors that are older and not used in it. */
static int add_idle_frees(struct work *w)
{
	const struct um_iteration *all = w->all;

	for (size_t i = 0; i < all->tensors.n; i++) {
		const struct um_iter_tensor *t = &all->tensors.at[i];

		if (w->number[i] != NO_NUMBER || !within(t->death, w->cut->from, w->cut->to) ||
		    born_within(w, (uint32_t)i, w->cut->before, w->cut->to) || t->bytes < UM_BLOCK_BYTES ||
		    is_nested(w, (uint32_t)i))
			continue;
		if (um_vec_push(&w->out->idle_frees, ((struct um_iter_idle){t->id, t->bytes, shift(w, t->death)})))
			return -ENOMEM;
	}
	return 0;
}

/* The first birth after the op before `position`. */
static size_t first_birth(const struct um_iteration *all, uint32_t position)
{
	size_t lo = 0, hi = all->births.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if ((uint32_t)all->tensors.at[all->births.at[mid]].birth < position)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The number of births in set-up, which are those before the first op of the recording up to the last one that outlives
 * the iteration which begins there. 0 if neither part begins there. */
static size_t set_up_births(const struct um_iteration *all, const struct um_cut *cut)
{
	uint32_t end = cut->from ? cut->from : cut->to;
	size_t n = cut->before ? 0 : first_birth(all, 1);

	for (; n; n--) {
		int32_t death = all->tensors.at[all->births.at[n - 1]].death;

		if (death == UM_NOWHERE || (uint32_t)death >= end)
			break;
	}
	return n;
}

int um_iteration_cut(const struct um_iteration *all, const struct um_cut *cut, struct um_iteration *out)
{
	struct work w = {.all = all, .cut = cut, .out = out};
	int err = 0;

	w.number = malloc((all->tensors.n + 1) * sizeof *w.number);
	if (!w.number)
		return -ENOMEM;
	for (size_t i = 0; i < all->tensors.n; i++)
		w.number[i] = NO_NUMBER;
	w.set_up = set_up_births(all, cut);
	w.birth = cut->from ? first_birth(all, cut->from) : w.set_up;
	w.first_before = cut->before ? first_birth(all, cut->before) : w.set_up;
	out->n = cut->n;
	for (uint32_t i = cut->from; i < cut->to && !err; i++) {
		err = add_births(&w, i);
		if (!err)
			err = add_op(&w, &all->ops.at[i]);
	}
	if (!err)
		err = add_late_frees(&w);
	if (!err)
		err = add_idle_frees(&w);
	free(w.number);
	if (err)
		um_iteration_fini(out);
	return err ? -ENOMEM : 0;
}
