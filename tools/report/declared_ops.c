/* SPDX-License-Identifier: Apache-2.0 */
#include "report/declared_ops.h"

#include "base/hash.h"

void um_declared_ops_fini(struct um_declared_ops *o)
{
	for (size_t i = 0; i < o->rows.n; i++)
		free(o->rows.at[i].name);
	um_vec_fini(&o->rows);
	um_index_fini(&o->index);
}

struct looked_for {
	const struct um_declared_ops *o;
	const char *name;
};

static int same(const void *user, uint32_t row)
{
	const struct looked_for *l = user;

	return strcmp(l->o->rows.at[row].name, l->name) == 0;
}

static int find(struct um_declared_ops *o, const char *name, uint32_t *row)
{
	struct looked_for l = {o, o->rows.n < UM_DECLARED_OPS_MOST ? name : "(others)"};
	uint64_t hash = um_hash_u64(0, um_hash_str(l.name));
	struct um_declared_op fresh = {0};

	*row = um_index_find(&o->index, hash, same, &l);
	if (*row != UM_INDEX_NONE)
		return 0;
	fresh.name = strdup(l.name);
	if (!fresh.name || um_vec_reserve(&o->rows, 1) || um_index_add(&o->index, hash, (uint32_t)o->rows.n)) {
		free(fresh.name);
		return -ENOMEM;
	}
	*row = (uint32_t)o->rows.n;
	o->rows.at[o->rows.n++] = fresh;
	return 0;
}

int um_declared_ops_feed(struct um_declared_ops *o, const struct um_activity *a)
{
	struct um_declared_op *op;

	if (a->kind == UM_ACT_OP) {
		if (find(o, a->name, &o->latest))
			return -ENOMEM;
		o->rows.at[o->latest].n++;
	} else if (a->kind == UM_ACT_USE && o->latest < o->rows.n) {
		op = &o->rows.at[o->latest];
		op->uses++;
		op->read_bytes += a->access != UM_ACCESS_WRITE ? a->bytes : 0;
		op->written_bytes += a->access != UM_ACCESS_READ ? a->bytes : 0;
	}
	return 0;
}
