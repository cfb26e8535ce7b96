/* SPDX-License-Identifier: Apache-2.0
 *
 * drop_pool.c - sorts the gaps of all orders, and keeps one of those that are equal
 */
#include "plan/drop_pool.h"

struct entry {
	const struct um_drops *from;
	const struct um_drop *gap;
	size_t order;
	uint32_t rank;
};

static int by_gap(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->gap->slot != y->gap->slot)
		return x->gap->slot < y->gap->slot ? -1 : 1;
	if (x->gap->from != y->gap->from)
		return x->gap->from < y->gap->from ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int add_order(struct um_drop_order *o, const struct um_drops *d)
{
	o->n = d->n;
	o->at = malloc((d->n + 1ull) * sizeof *o->at);
	o->bytes = calloc(d->n + 1ull, sizeof *o->bytes);
	if (!o->at || !o->bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->n; i++)
		o->bytes[i + 1] = o->bytes[i] + d->at[i].bytes;
	return 0;
}

/* Adds a gap with its shared relaunches, for which there is room. */
static void add_gap(struct um_drops *all, size_t *shared, const struct entry *e)
{
	struct um_drop *to = &all->at[all->n++];

	*to = *e->gap;
	to->first_shared = (uint32_t)*shared;
	if (to->n_shared)
		memcpy(all->shared + *shared, e->from->shared + e->gap->first_shared,
		       to->n_shared * sizeof *all->shared);
	*shared += to->n_shared;
}

static int merge(struct um_drop_pool *p, const struct um_drops *d)
{
	struct entry *e;
	size_t n = 0, shared = 0;

	for (size_t i = 0; i < p->n_orders; i++) {
		n += d[i].n;
		for (uint32_t k = 0; k < d[i].n; k++)
			shared += d[i].at[k].n_shared;
	}
	e = malloc((n + 1) * sizeof *e);
	p->all.at = malloc((n + 1) * sizeof *p->all.at);
	p->all.shared = malloc((shared + 1) * sizeof *p->all.shared);
	if (!e || !p->all.at || !p->all.shared) {
		free(e);
		return -ENOMEM;
	}
	n = shared = 0;
	for (size_t i = 0; i < p->n_orders; i++)
		for (uint32_t k = 0; k < d[i].n; k++)
			e[n++] = (struct entry){&d[i], &d[i].at[k], i, k};
	qsort(e, n, sizeof *e, by_gap);
	for (size_t i = 0; i < n; i++) {
		if (!i || e[i].gap->slot != e[i - 1].gap->slot || e[i].gap->from != e[i - 1].gap->from)
			add_gap(&p->all, &shared, &e[i]);
		p->order[e[i].order].at[e[i].rank] = p->all.n - 1;
	}
	free(e);
	return 0;
}

int um_drop_pool_build(struct um_drop_pool *p, const struct um_versions *v, const struct um_drops_rule *rule, size_t n)
{
	struct um_drops *d = calloc(n + 1, sizeof *d);
	int err = 0;

	memset(p, 0, sizeof *p);
	p->n_orders = n;
	p->order = calloc(n + 1, sizeof *p->order);
	if (!d || !p->order)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < n; i++) {
		err = um_drops_build(&d[i], v, &rule[i]);
		if (!err)
			err = add_order(&p->order[i], &d[i]);
	}
	if (!err)
		err = merge(p, d);
	for (size_t i = 0; d && i < n; i++)
		um_drops_fini(&d[i]);
	free(d);
	if (err)
		um_drop_pool_fini(p);
	return err;
}

void um_drop_pool_fini(struct um_drop_pool *p)
{
	for (size_t i = 0; p->order && i < p->n_orders; i++) {
		free(p->order[i].at);
		free(p->order[i].bytes);
	}
	free(p->order);
	um_drops_fini(&p->all);
	memset(p, 0, sizeof *p);
}
