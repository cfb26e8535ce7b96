/* SPDX-License-Identifier: Apache-2.0
 *
 * previous_iteration.c - a sorted array of tensor ids and their numbers
 */
#include "learn/previous_iteration.h"

#include "base/bisect.h"

void um_previous_iteration_init(struct um_previous_iteration *p)
{
	memset(p, 0, sizeof *p);
}

void um_previous_iteration_fini(struct um_previous_iteration *p)
{
	um_vec_fini(&p->entries);
	um_previous_iteration_init(p);
}

static int by_id(const void *a, const void *b)
{
	const struct um_previous_iteration_entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int um_previous_iteration_fill(struct um_previous_iteration *p, const struct um_iteration *it)
{
	p->known = 0;
	um_vec_clear(&p->entries);
	if (um_vec_reserve(&p->entries, it->tensors.n))
		return -ENOMEM;
	for (size_t i = 0; i < it->tensors.n; i++)
		p->entries.at[p->entries.n++] =
			(struct um_previous_iteration_entry){it->tensors.at[i].id.v, (uint32_t)i};
	if (p->entries.n)
		qsort(p->entries.at, p->entries.n, sizeof *p->entries.at, by_id);
	p->n = it->n;
	p->signature = it->signature;
	p->known = 1;
	return 0;
}

uint32_t um_previous_iteration_find(const struct um_previous_iteration *p, struct um_tensor_id id)
{
	size_t lo = 0;

	UM_BISECT(lo, p->known ? p->entries.n : 0, i, p->entries.at[i].id < id.v)
	if (!p->known || lo == p->entries.n || p->entries.at[lo].id != id.v)
		return UM_NO_NUMBER;
	return p->entries.at[lo].number;
}

double um_previous_iteration_other(const struct um_previous_iteration *p, const struct um_iteration *it)
{
	uint64_t other = 0, all = 0;

	for (size_t i = 0; i < it->tensors.n; i++) {
		const struct um_iter_tensor *t = &it->tensors.at[i];

		all += t->bytes;
		if (t->birth == UM_NOWHERE && um_previous_iteration_find(p, t->id) == UM_NO_NUMBER)
			other += t->bytes;
	}
	return all ? (double)other / (double)all : 0;
}
