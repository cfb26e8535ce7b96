/* SPDX-License-Identifier: Apache-2.0
 *
 * previous_iteration.c - a hash table of tensor ids with open addressing
 */
#include "learn/previous_iteration.h"

void um_previous_iteration_init(struct um_previous_iteration *p)
{
	memset(p, 0, sizeof *p);
}

void um_previous_iteration_fini(struct um_previous_iteration *p)
{
	um_vec_fini(&p->ids);
	um_vec_fini(&p->table);
	um_previous_iteration_init(p);
}

/* Ids are serial numbers: a multiplication spreads them. */
static size_t home_of(const struct um_previous_iteration *p, uint64_t id)
{
	return (size_t)(id * 0x9e3779b97f4a7c15ull >> p->shift);
}

static void add(struct um_previous_iteration *p, uint64_t id)
{
	size_t i = home_of(p, id);

	while (p->table.at[i])
		i = (i + 1) & (p->table.n - 1);
	p->ids.at[p->ids.n++] = id;
	p->table.at[i] = (uint32_t)p->ids.n;
}

int um_previous_iteration_fill(struct um_previous_iteration *p, const struct um_iteration *it)
{
	unsigned bits = 3;

	p->known = 0;
	um_vec_clear(&p->ids);
	um_vec_clear(&p->table);
	while ((size_t)1 << bits < 2 * it->tensors.n)
		bits++;
	if (um_vec_reserve(&p->ids, it->tensors.n) || um_vec_fill(&p->table, (size_t)1 << bits))
		return -ENOMEM;
	p->shift = 64 - bits;
	for (size_t i = 0; i < it->tensors.n; i++)
		add(p, it->tensors.at[i].id.v);
	p->n = it->n;
	p->signature = it->signature;
	p->known = 1;
	return 0;
}

uint32_t um_previous_iteration_find(const struct um_previous_iteration *p, struct um_tensor_id id)
{
	uint32_t number;

	if (!p->known)
		return UM_NO_NUMBER;
	for (size_t i = home_of(p, id.v); (number = p->table.at[i]); i = (i + 1) & (p->table.n - 1))
		if (p->ids.at[number - 1] == id.v)
			return number - 1;
	return UM_NO_NUMBER;
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
