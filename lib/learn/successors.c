/* SPDX-License-Identifier: Apache-2.0
 *
 * successors.c - finds the successor of each tensor
 *
 * Observation has priority (the same signature twice, now or before), then birth order, then the rule that a live
 * tensor succeeds itself. No tensor succeeds two others: an earlier rule has precedence.
 */
#include "learn/successors.h"

/* Several supplied tensors have at most this share of an iteration's bytes: with more the cursor leaves a plan
 * (UM_CURSOR_OTHER). */
#define MOST_SUPPLIED 8

static int alive_at_end(const struct um_iter_tensor *t)
{
	return t->death == UM_NOWHERE;
}

/* Makes b the successor of a, unless b will be dead or succeeds another tensor already. */
static int set_successor(struct um_successors *r, const struct um_iteration *it, unsigned char *taken, uint32_t a,
			 uint32_t b)
{
	if (taken[b] || !alive_at_end(&it->tensors.at[b]) || it->tensors.at[b].bytes != it->tensors.at[a].bytes)
		return 0;
	taken[b] = 1;
	r->next[a] = b;
	if (a != b)
		r->predecessor[b] = a;
	return 1;
}

/* The birth of this iteration that corresponds to a tensor born in the previous one; UM_NOBODY if none. */
static uint32_t same_birth(const struct um_iteration *it, uint64_t ord, uint64_t bytes)
{
	uint32_t b;

	if (ord >= it->births.n)
		return UM_NO_NUMBER;
	b = it->births.at[ord];
	return it->tensors.at[b].bytes == bytes ? b : UM_NO_NUMBER;
}

static void by_number(struct um_successors *r, const struct um_iteration *it, const struct um_previous_iteration *past,
		      unsigned char *taken)
{
	for (uint32_t a = 0; a < it->tensors.n; a++) {
		uint32_t b;

		if (it->tensors.at[a].birth != UM_NOWHERE)
			continue;
		b = um_previous_iteration_find(past, it->tensors.at[a].id);
		if (b < it->tensors.n)
			set_successor(r, it, taken, a, b);
	}
}

/* What is held without a use has been passed on by the tensor that is used, and is older by an iteration. Only that is
 * certain to recur. */
static void find_idle(struct um_successors *r, const struct um_iteration *it, const struct um_previous_iteration *past,
		      unsigned char *taken)
{
	for (uint32_t i = 0; i < it->idle_frees.n; i++) {
		const struct um_iter_idle *f = &it->idle_frees.at[i];
		uint32_t b = um_previous_iteration_find(past, f->id);

		if (b >= it->tensors.n || taken[b] || !alive_at_end(&it->tensors.at[b]) ||
		    it->tensors.at[b].bytes != f->bytes)
			continue;
		taken[b] = 1;
		r->idle[b] = f->pos;
	}
}

/* As in an earlier iteration that numbers its tensors alike. */
static void by_rule(struct um_successors *r, const struct um_iteration *it, const struct um_successors *known,
		    unsigned char *taken)
{
	for (uint32_t a = 0; a < it->tensors.n; a++)
		if (it->tensors.at[a].birth == UM_NOWHERE && known->next[a] < it->tensors.n)
			set_successor(r, it, taken, a, known->next[a]);
	for (uint32_t b = 0; b < it->tensors.n; b++) {
		if (known->idle[b] == UM_NOWHERE || taken[b] || !alive_at_end(&it->tensors.at[b]))
			continue;
		taken[b] = 1;
		r->idle[b] = known->idle[b];
	}
}

static void by_birth_order(struct um_successors *r, const struct um_iteration *it, unsigned char *taken)
{
	for (uint32_t a = 0; a < it->tensors.n; a++) {
		const struct um_iter_tensor *t = &it->tensors.at[a];
		uint32_t b;

		if (r->next[a] != UM_NO_NUMBER || t->birth != UM_NOWHERE || alive_at_end(t))
			continue;
		if (t->born_iter == 0 || t->born_iter + 1 != it->n)
			continue; /* births of set-up have another order */
		b = same_birth(it, t->born_ord, t->bytes);
		if (b != UM_NO_NUMBER)
			set_successor(r, it, taken, a, b);
	}
}

static void by_staying(struct um_successors *r, const struct um_iteration *it, unsigned char *taken)
{
	for (uint32_t a = 0; a < it->tensors.n; a++)
		if (r->next[a] == UM_NO_NUMBER && it->tensors.at[a].birth == UM_NOWHERE)
			set_successor(r, it, taken, a, a);
}

/* Older tensors that the previous iteration, which did the same, did not use. In the next one such a tensor stays, or
 * has another role, as the latest of several does. Where there are several with many bytes, the program chooses its
 * tensors (expert weights, one of several models): then a plan that evicts each of them is worse than none. */
static void find_supplied(struct um_successors *r, const struct um_iteration *it,
			  const struct um_previous_iteration *past)
{
	uint32_t n = 0;

	for (uint32_t a = 0; a < it->tensors.n; a++) {
		const struct um_iter_tensor *t = &it->tensors.at[a];

		r->supplied[a] = t->birth == UM_NOWHERE && um_previous_iteration_find(past, t->id) == UM_NO_NUMBER;
		n += r->supplied[a];
		r->supplied[a] &= alive_at_end(t);
	}
	if (n > 1 && um_previous_iteration_other(past, it) > 1.0 / MOST_SUPPLIED)
		memset(r->supplied, 0, it->tensors.n);
}

static void find_late(struct um_successors *r, const struct um_iteration *it)
{
	for (size_t i = 0; i < it->births.n; i++)
		r->late[i] = UM_NOWHERE;
	for (size_t i = 0; i < it->late_frees.n; i++) {
		const struct um_iter_free *f = &it->late_frees.at[i];
		uint32_t b = same_birth(it, f->born_ord, f->bytes);

		if (b != UM_NO_NUMBER && alive_at_end(&it->tensors.at[b]))
			r->late[f->born_ord] = f->pos;
	}
}

/* The same by the rule of an earlier iteration. */
static void apply_rule(struct um_successors *r, const struct um_iteration *it, const struct um_successors *known)
{
	for (uint32_t a = 0; a < it->tensors.n; a++)
		r->supplied[a] =
			known->supplied[a] && it->tensors.at[a].birth == UM_NOWHERE && alive_at_end(&it->tensors.at[a]);
	for (size_t i = 0; i < it->births.n; i++)
		r->late[i] = alive_at_end(&it->tensors.at[it->births.at[i]]) ? known->late[i] : UM_NOWHERE;
}

int um_successors_init(struct um_successors *r, const struct um_iteration *it, const struct um_previous_iteration *past,
		       const struct um_successors *known)
{
	int like = um_previous_iteration_is_like(past, it);
	size_t n = it->tensors.n;
	unsigned char *taken = calloc(n + 1, 1);

	known = !like && known && known->n == n ? known : NULL;
	r->n = (uint32_t)n;
	r->next = malloc((n + 1) * sizeof *r->next);
	r->predecessor = malloc((n + 1) * sizeof *r->predecessor);
	r->idle = malloc((n + 1) * sizeof *r->idle);
	r->late = malloc((it->births.n + 1) * sizeof *r->late);
	r->supplied = calloc(n + 1, 1);
	if (!taken || !r->next || !r->predecessor || !r->idle || !r->late || !r->supplied) {
		free(taken);
		um_successors_fini(r);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		r->next[i] = r->predecessor[i] = UM_NO_NUMBER;
		r->idle[i] = UM_NOWHERE;
	}
	if (like) {
		by_number(r, it, past, taken);
		find_idle(r, it, past, taken);
	}
	if (known)
		by_rule(r, it, known, taken);
	else
		by_birth_order(r, it, taken);
	by_staying(r, it, taken);
	if (like)
		find_supplied(r, it, past);
	if (known)
		apply_rule(r, it, known);
	else
		find_late(r, it);
	free(taken);
	return 0;
}

void um_successors_fini(struct um_successors *r)
{
	free(r->next);
	free(r->predecessor);
	free(r->idle);
	free(r->late);
	free(r->supplied);
	memset(r, 0, sizeof *r);
}
