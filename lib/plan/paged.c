/* SPDX-License-Identifier: Apache-2.0
 *
 * paged.c - finds ops above the budget and the gaps around them
 *
 * An op is assumed to access its ranges in ascending order, all of them at the same fraction at a time.
 */
#include "plan/paged.h"

#include "base/bisect.h"

#define TORN_MOST (128 * 1024) /* bytes of what ops use in a block that the CPU may use, for the block to stay */
#define SPARE 32 /* 1/32 of the blocks stays free when a paged op begins, for its first faults */

struct access {
	double at; /* fraction of its range before the block; -1: the block is resident when the op begins */
	uint32_t visit;
};

static int by_order(const void *a, const void *b)
{
	const struct access *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->visit < y->visit ? -1 : x->visit > y->visit;
}

/* The op's access to a block, among its `n` accesses, which are sorted by block. */
static struct access *find_access(const struct um_blocks *b, struct access *access, uint32_t n, uint32_t block)
{
	uint32_t lo = 0;

	UM_BISECT(lo, n, i, b->visit[access[i].visit].block < block)
	return lo < n && b->visit[access[lo].visit].block == block ? &access[lo] : NULL;
}

/* Sets the order of the blocks of a use: by offset. */
static void add_accesses(const struct um_blocks *b, const struct um_sched_use *u, struct access *access, uint32_t n)
{
	uint32_t first = b->first_part[u->slot], last = b->first_part[u->slot + 1];

	for (uint32_t p = first; p < last; p++) {
		const struct um_part *part = &b->part[p];
		struct access *t;
		double at;

		if (part->off + part->bytes <= u->off || part->off >= u->off + u->bytes)
			continue;
		at = part->off > u->off ? (double)(part->off - u->off) / (double)u->bytes : 0;
		t = find_access(b, access, n, part->block);
		if (t && at < t->at)
			t->at = at;
	}
}

/* Blocks that the previous op uses are resident when this op begins. */
static void mark_resident(const struct um_blocks *b, int32_t op, struct access *access, uint32_t n)
{
	int32_t before = op ? op - 1 : b->n_ops - 1;

	for (uint32_t i = b->first_of_op[before]; i < b->first_of_op[before + 1]; i++) {
		uint32_t next = b->after[b->of_op[i]];
		struct access *t = next == UINT32_MAX ? NULL : find_access(b, access, n, b->visit[next].block);

		if (t && t->visit == next)
			t->at = -1;
	}
}

/* Leaves all of the op's blocks to page faults, except the first `most` in the order of access. */
static int leave_to_faults(struct um_blocks *b, const struct um_schedule *s, int32_t op, uint32_t most)
{
	const struct um_sched_op *o = &s->ops.at[op];
	uint32_t from = b->first_of_op[op], n = b->first_of_op[op + 1] - from;
	struct access *access = malloc(n * sizeof *access);

	if (!access)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		access[i] = (struct access){2, b->of_op[from + i]};
	for (uint32_t u = o->first_use; u < o->first_use + o->n_uses; u++)
		add_accesses(b, &s->uses.at[u], access, n);
	mark_resident(b, op, access, n);
	qsort(access, n, sizeof *access, by_order);
	for (uint32_t i = most; i < n; i++)
		b->visit[access[i].visit].absent = 1;
	free(access);
	return 0;
}

/* The last position of a paged op in [from, to); -1: none. `last`: by op, the last paged op up to it, -1 none. */
static int32_t last_paged(const int32_t *last, int32_t n, int32_t from, int32_t to)
{
	int32_t base = (to - 1) / n * n, at = last[(to - 1) % n];

	if (at < 0) {
		at = last[n - 1];
		base -= n;
	}
	return base + at >= from ? base + at : -1;
}

/* Does an op use the part, too? */
static int is_used_by_ops(const struct um_blocks *b, const struct um_schedule *s, uint32_t part)
{
	for (uint32_t i = b->part[part].first_touch; i < b->part[part + 1].first_touch; i++)
		if (s->ops.at[b->touch[b->part_touch[i]].op].stream != UM_STREAM_CPU)
			return 1;
	return 0;
}

/* Bytes of the part that op `op` uses. */
static uint64_t used_bytes(const struct um_schedule *s, int32_t op, const struct um_part *p)
{
	const struct um_sched_op *o = &s->ops.at[op];
	uint64_t bytes = 0;

	for (uint32_t u = o->first_use; u < o->first_use + o->n_uses; u++) {
		const struct um_sched_use *use = &s->uses.at[u];
		uint64_t lo = use->off > p->off ? use->off : p->off, hi = use->off + use->bytes;

		hi = hi < p->off + p->bytes ? hi : p->off + p->bytes;
		bytes += use->slot == p->slot && lo < hi ? hi - lo : 0;
	}
	return bytes;
}

/* Does the CPU use little of what ops use in the block? Then only that moves. */
static int may_stay(const struct um_blocks *b, const struct um_schedule *s, uint32_t visit)
{
	const struct um_visit *v = &b->visit[visit];
	const struct um_block *bl = &b->block[v->block];
	uint64_t torn = 0;
	int any = 0;

	for (uint32_t t = v->first_touch; t < v[1].first_touch; t++)
		if (is_used_by_ops(b, s, b->touch[t].part))
			torn += used_bytes(s, v->op, &b->part[b->touch[t].part]);
	for (uint32_t i = bl->first_visit; i < bl[1].first_visit; i++)
		any |= s->ops.at[b->visit[i].op].stream != UM_STREAM_CPU;
	return any && !bl->rotates && torn <= TORN_MOST;
}

static void mark_cpu(struct um_blocks *b, const struct um_schedule *s, int32_t op)
{
	for (uint32_t i = b->first_of_op[op]; i < b->first_of_op[op + 1]; i++) {
		struct um_visit *v = &b->visit[b->of_op[i]];

		v->in_part = (uint8_t)may_stay(b, s, b->of_op[i]);
		v->absent = v->on_cpu = !v->in_part;
	}
}

int um_paged_mark(struct um_blocks *b, struct um_schedule *s, uint64_t capacity_blocks)
{
	int32_t *last = malloc((b->n_ops + 1ull) * sizeof *last), found = 0, at = -1;
	int any = 0;
	int err = last ? 0 : -ENOMEM;

	for (int32_t op = 0; op < b->n_ops && !err; op++) {
		uint32_t n = b->first_of_op[op + 1] - b->first_of_op[op];
		int cpu = s->ops.at[op].stream == UM_STREAM_CPU;

		if (cpu)
			mark_cpu(b, s, op);
		any |= cpu;
		s->ops.at[op].paged = !cpu && n > capacity_blocks;
		if (s->ops.at[op].paged) {
			err = leave_to_faults(b, s, op, (uint32_t)(capacity_blocks - capacity_blocks / SPARE));
			at = op;
			found++;
		}
		last[op] = at;
	}
	any |= found;
	for (uint32_t v = 0; v < b->n_visits && any && !err; v++) {
		struct um_visit *x = &b->visit[v];

		if (found && !x->changes)
			x->paged_at = last_paged(last, b->n_ops, x->op, x->end > x->op ? x->end : x->op + 1);
		if (x->on_cpu && x->paged_at < x->op)
			x->paged_at = x->op;
		/* makes room for blocks that the op accesses earlier */
		if (x->paged_at < 0 && b->after[v] != UINT32_MAX && b->visit[b->after[v]].absent)
			x->paged_at = x->end - 1;
	}
	free(last);
	if (!err && any) {
		um_baseline_fini(&b->baseline);
		err = um_baseline_build(&b->baseline, b);
	}
	return err ? err : found;
}
