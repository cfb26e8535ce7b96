/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks.c - builds blocks, visits and gaps
 *
 * Blocks are numbered along the addresses in use; touches are sorted into them by counting, since ops come in order.
 * Then each touch is linked to the next one of its part (through the renaming at the iteration's end), and the content
 * of the stretch between them is added to all gaps that it spans, by differences: linear in touches.
 */
#include "plan/blocks.h"

#include "base/bisect.h"
#include "plan/place.h"

#define MOST_NAMES 64 /* slots of a tensor in consecutive iterations until it is touched again */

struct build {
	struct um_blocks *b;
	const struct um_schedule *s;
	uint8_t *rotates, *used; /* by slot */
	uint32_t *block; /* by slot: its first */
	uint32_t *last; /* by part: scratch */
	int64_t *live, *overwritten, *parts; /* by visit: differences */
};

static uint64_t first_block(const struct um_slot *t)
{
	return t->place / UM_BLOCK_BYTES;
}

static uint64_t blocks_of(const struct um_slot *t)
{
	return (t->place + t->bytes - 1) / UM_BLOCK_BYTES - first_block(t) + 1;
}

struct by_place {
	uint64_t place;
	uint32_t slot;
};

static int compare_place(const void *a, const void *b)
{
	const struct by_place *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Numbers the blocks of the slots: along the addresses, then those of rotating slots. */
static int number_blocks(struct build *w)
{
	const struct um_schedule *s = w->s;
	struct by_place *order = malloc((s->slots.n + 1) * sizeof *order);
	uint64_t n = 0, high = 0; /* blocks so far; address of the last one */
	size_t m = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->slots.n; i++)
		if (w->used[i] && !w->rotates[i])
			order[m++] = (struct by_place){s->slots.at[i].place, i};
	qsort(order, m, sizeof *order, compare_place);
	for (size_t i = 0; i < m; i++) {
		const struct um_slot *t = &s->slots.at[order[i].slot];
		uint64_t lo = first_block(t), hi = lo + blocks_of(t) - 1;

		if (!i || lo > high)
			high = lo - 1;
		w->block[order[i].slot] = (uint32_t)(n - 1 - (high - lo));
		if (hi + 1 > high + 1) {
			n += hi - high;
			high = hi;
		}
	}
	free(order);
	for (uint32_t i = 0; i < s->slots.n; i++) {
		if (w->used[i] && w->rotates[i]) {
			w->block[i] = (uint32_t)n;
			n += blocks_of(&s->slots.at[i]);
		}
	}
	w->b->n_blocks = (uint32_t)n;
	return n >= UINT32_MAX ? -E2BIG : 0;
}

static int find_used(struct build *w)
{
	const struct um_schedule *s = w->s;
	uint64_t parts = 0;

	w->rotates = um_place_rotating(s);
	w->used = calloc(s->slots.n + 1, 1);
	w->block = malloc((s->slots.n + 1) * sizeof *w->block);
	if (!w->rotates || !w->used || !w->block)
		return -ENOMEM;
	for (size_t i = 0; i < s->uses.n; i++)
		w->used[s->uses.at[i].slot] = !(s->slots.at[s->uses.at[i].slot].flags & UM_SLOT_UNMANAGED);
	for (size_t i = 0; i < s->slots.n; i++)
		parts += w->used[i] ? blocks_of(&s->slots.at[i]) : 0;
	w->b->n_parts = (uint32_t)parts;
	return parts >= UINT32_MAX ? -E2BIG : number_blocks(w);
}

static int make_parts(struct build *w)
{
	struct um_blocks *b = w->b;
	uint32_t n = 0;

	b->first_part = malloc((w->s->slots.n + 1) * sizeof *b->first_part);
	b->part = malloc((b->n_parts + 1ull) * sizeof *b->part);
	if (!b->first_part || !b->part)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->s->slots.n; i++) {
		const struct um_slot *t = &w->s->slots.at[i];
		uint64_t off = 0;

		b->first_part[i] = n;
		for (uint32_t k = 0; w->used[i] && off < t->bytes; k++) {
			uint64_t end = (first_block(t) + k + 1) * UM_BLOCK_BYTES - t->place;

			if (end > t->bytes)
				end = t->bytes;
			b->part[n++] = (struct um_part){i, w->block[i] + k, off, (uint32_t)(end - off), 0};
			off = end;
		}
	}
	b->first_part[w->s->slots.n] = n;
	return 0;
}

/* The parts [*lo, *hi) under a use; none for unmanaged memory. */
static void parts_under(const struct build *w, const struct um_sched_use *u, uint32_t *lo, uint32_t *hi)
{
	const struct um_slot *t = &w->s->slots.at[u->slot];
	uint32_t first = w->b->first_part[u->slot];

	*lo = *hi = first;
	if (!w->used[u->slot])
		return;
	*lo += (uint32_t)((t->place + u->off) / UM_BLOCK_BYTES - first_block(t));
	*hi += (uint32_t)((t->place + u->off + u->bytes - 1) / UM_BLOCK_BYTES - first_block(t) + 1);
}

/* Is this part of a slot host-resident? */
static int is_host_resident(const struct build *w, uint32_t slot, uint32_t p)
{
	const struct um_host_resident *range = w->b->host_resident ? &w->b->host_resident[slot] : NULL;
	const struct um_part *part = &w->b->part[p];

	return range && part->off >= range->off && part->off + part->bytes <= range->off + range->bytes;
}

static void add_touch(struct build *w, const struct um_sched_use *u, int32_t op, uint32_t p)
{
	struct um_blocks *b = w->b;
	const struct um_part *part = &b->part[p];
	int whole = u->off <= part->off && u->off + u->bytes >= part->off + part->bytes;
	struct um_touch *t;

	/* `last` holds the touch + 1, of this op or an older one. */
	if (!w->last[p] || b->touch[w->last[p] - 1].op != op) {
		uint32_t at = b->block[part->block].first_visit++;

		b->touch[at] = (struct um_touch){.op = op, .part = p};
		w->last[p] = at + 1;
	}
	t = &b->touch[w->last[p] - 1];
	t->needs |= (u->access & UM_READ) || !whole;
	t->writes |= (u->access & UM_WRITE) != 0;
	t->dead_after |= u->dead_after != 0;
	t->dense |= u->touched >= u->bytes;
	t->reads_all |= whole && u->access & UM_READ;
	t->writes_all |= whole && u->access & UM_WRITE;
}

/* Counts touches per block (first_visit serves as the counter and then as the cursor), sums, fills. */
static int make_touches(struct build *w)
{
	struct um_blocks *b = w->b;
	const struct um_schedule *s = w->s;
	uint64_t total = 0;
	uint32_t lo, hi;

	b->block = calloc(b->n_blocks + 1ull, sizeof *b->block);
	w->last = calloc(b->n_parts + 1ull, sizeof *w->last);
	if (!b->block || !w->last)
		return -ENOMEM;
	for (size_t i = 0; i < s->ops.n; i++) {
		for (uint32_t u = s->ops.at[i].first_use; u < s->ops.at[i].first_use + s->ops.at[i].n_uses; u++) {
			parts_under(w, &s->uses.at[u], &lo, &hi);
			for (uint32_t p = lo; p < hi; p++) {
				if (w->last[p] == i + 1 || is_host_resident(w, s->uses.at[u].slot, p))
					continue;
				w->last[p] = (uint32_t)i + 1;
				b->block[b->part[p].block].first_visit++;
				total++;
			}
		}
	}
	if (total >= UINT32_MAX)
		return -E2BIG;
	b->n_touches = (uint32_t)total;
	b->touch = malloc((total + 1) * sizeof *b->touch);
	if (!b->touch)
		return -ENOMEM;
	for (uint32_t i = 0, at = 0; i <= b->n_blocks; i++) {
		uint32_t n = b->block[i].first_visit;

		b->block[i].first_visit = at;
		at += n;
	}
	memset(w->last, 0, b->n_parts * sizeof *w->last);
	for (size_t i = 0; i < s->ops.n; i++) {
		for (uint32_t u = s->ops.at[i].first_use; u < s->ops.at[i].first_use + s->ops.at[i].n_uses; u++) {
			parts_under(w, &s->uses.at[u], &lo, &hi);
			for (uint32_t p = lo; p < hi; p++)
				if (!is_host_resident(w, s->uses.at[u].slot, p))
					add_touch(w, &s->uses.at[u], (int32_t)i, p);
		}
	}
	return 0;
}

/* first_visit is now the end of each block's touches; it becomes the begin. */
static int make_visits(struct build *w)
{
	struct um_blocks *b = w->b;
	uint32_t n = 0, t = 0;

	b->visit = malloc((b->n_touches + 1ull) * sizeof *b->visit);
	if (!b->visit)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_blocks; i++) {
		uint32_t end = b->block[i].first_visit, first = n;

		for (; t < end; t++) {
			if (n == first || b->visit[n - 1].op != b->touch[t].op)
				b->visit[n++] = (struct um_visit){
					.op = b->touch[t].op, .block = i, .first_touch = t, .paged_at = -1};
			b->touch[t].visit = n - 1;
		}
		b->block[i].first_visit = first;
	}
	b->block[b->n_blocks].first_visit = n;
	b->visit[n].first_touch = t;
	b->n_visits = n;
	return 0;
}

static int index_parts(struct build *w)
{
	struct um_blocks *b = w->b;

	b->part_touch = malloc((b->n_touches + 1ull) * sizeof *b->part_touch);
	b->block_part = malloc((b->n_parts + 1ull) * sizeof *b->block_part);
	if (!b->part_touch || !b->block_part)
		return -ENOMEM;
	memset(w->last, 0, b->n_parts * sizeof *w->last);
	for (uint32_t t = 0; t < b->n_touches; t++)
		w->last[b->touch[t].part]++;
	for (uint32_t p = 0, at = 0; p <= b->n_parts; p++) {
		b->part[p].first_touch = at;
		at += p < b->n_parts ? w->last[p] : 0;
	}
	memset(w->last, 0, b->n_parts * sizeof *w->last);
	for (uint32_t t = 0; t < b->n_touches; t++) {
		uint32_t p = b->touch[t].part;

		b->part_touch[b->part[p].first_touch + w->last[p]++] = t;
	}
	for (uint32_t p = 0; p < b->n_parts; p++)
		b->block[b->part[p].block + 1].first_part++;
	for (uint32_t i = 0; i < b->n_blocks; i++)
		b->block[i + 1].first_part += b->block[i].first_part;
	memset(w->last, 0, b->n_parts * sizeof *w->last);
	for (uint32_t i = 0, p = 0; p < b->n_parts; p++) {
		i = b->part[p].block;
		b->block_part[b->block[i].first_part + w->last[i]++] = p;
	}
	return 0;
}

/* --- from touch to touch ------------------------------------------------------------------------------------------ */

/* Position at which the tensor of this slot after op `op` is freed in this iteration; INT32_MAX if it stays alive. */
static int32_t dies_at(const struct um_blocks *b, const struct um_schedule *s, uint32_t slot, int32_t op)
{
	const struct um_slot *t = &s->slots.at[slot];
	int older = t->birth < 0 || op < t->birth; /* alive since before this iteration */

	if (t->death >= 0 && t->death < b->n_ops && (older || t->birth < t->death))
		return t->death;
	return b->successor[slot] != UM_NO_SLOT ? INT32_MAX : b->n_ops;
}

/* Fills liveness and until of one touch, and its next touch. */
static void follow(struct build *w, uint32_t part, uint32_t k)
{
	struct um_blocks *b = w->b;
	uint32_t here = b->part_touch[k], slot = b->part[part].slot, j = part - b->first_part[slot];
	struct um_touch *t = &b->touch[here];
	int32_t from = t->op, base = 0, n = b->n_ops;

	k++;
	for (int name = 0; name < MOST_NAMES; name++) {
		int32_t dies = dies_at(b, w->s, slot, from);
		uint32_t p = b->first_part[slot] + j;
		int there = p < b->first_part[slot + 1] && k < b->part[p + 1].first_touch;

		if (there && b->touch[b->part_touch[k]].op < dies) {
			const struct um_touch *u = &b->touch[b->part_touch[k]];
			int declared = t->dead_after || (name && w->s->slots.at[slot].flags & UM_SLOT_TRANSIENT);

			b->to[here] = b->part_touch[k];
			t->liveness = !u->needs || declared ? UM_LIVENESS_DEAD : UM_LIVENESS_NEEDED;
			t->overwritten = !u->needs && !declared;
			t->until = base + u->op;
			return;
		}
		if (dies != INT32_MAX) {
			t->liveness = UM_LIVENESS_FREED;
			t->until = base + dies;
			return;
		}
		slot = b->successor[slot];
		if (b->first_part[slot] + j < b->first_part[slot + 1])
			k = b->part[b->first_part[slot] + j].first_touch;
		from = -1;
		base += n;
	}
	/* content without a known end of the gap: never off the device */
	t->liveness = UM_LIVENESS_NEEDED;
	t->until = base;
}

static int follow_all(struct build *w)
{
	struct um_blocks *b = w->b;

	b->to = malloc((b->n_touches + 1ull) * sizeof *b->to);
	if (!b->to)
		return -ENOMEM;
	memset(b->to, 0xff, b->n_touches * sizeof *b->to);
	for (uint32_t t = 0; t < b->n_touches; t++)
		b->touch[t].born = 1;
	for (uint32_t p = 0; p < b->n_parts; p++)
		for (uint32_t k = b->part[p].first_touch; k < b->part[p + 1].first_touch; k++)
			follow(w, p, k);
	for (uint32_t t = 0; t < b->n_touches; t++)
		if (b->to[t] != UINT32_MAX)
			b->touch[b->to[t]].born = 0;
	return 0;
}

/* --- gaps --------------------------------------------------------------------------------------------------------- */

/* Adds the part of a touch to the gaps after visits [from, to); `to` UINT32_MAX: to the block's last. */
static void span(struct build *w, uint32_t from, uint32_t to, const struct um_touch *x)
{
	int64_t bytes = w->b->part[x->part].bytes;
	int64_t live = x->liveness == UM_LIVENESS_NEEDED ? bytes : 0, overwritten = x->overwritten ? bytes : 0;

	w->parts[from]++;
	w->live[from] += live;
	w->overwritten[from] += overwritten;
	if (to == UINT32_MAX)
		return;
	w->parts[to]--;
	w->live[to] -= live;
	w->overwritten[to] -= overwritten;
}

/* The last visit of [lo, hi) at or before `op`; lo - 1 if none. */
static uint32_t visit_before(const struct um_blocks *b, uint32_t lo, uint32_t hi, int32_t op)
{
	UM_BISECT(lo, hi, i, b->visit[i].op <= op)
	return lo - 1;
}

static void span_touch(struct build *w, uint32_t t)
{
	struct um_blocks *b = w->b;
	const struct um_touch *x = &b->touch[t];
	const struct um_part *p = &b->part[x->part];
	uint32_t lo = b->block[p->block].first_visit, hi = b->block[p->block + 1].first_visit;
	int around = x->until >= b->n_ops;
	uint32_t last = b->to[t] != UINT32_MAX
				? b->touch[b->to[t]].visit
				: visit_before(b, around ? lo : x->visit, hi, x->until - (around ? b->n_ops : 0));

	/* `last` may be lo - 1: freed in the next iteration before any touch of the block there, so after its last
	 * visit */
	if (last + 1 == lo) {
		span(w, x->visit, hi - 1, x);
	} else {
		if (around)
			span(w, x->visit, UINT32_MAX, x);
		span(w, around ? lo : x->visit, last, x);
	}
	if (b->to[t] == UINT32_MAX) {
		int32_t until = x->until;

		/* the gap of the free: after `last`, or the one around the end */
		if (last + 1 == lo) {
			last = hi - 1;
		} else if (around) {
			until -= b->n_ops;
		}
		if (b->visit[last].held < until)
			b->visit[last].held = until;
	}
}

static void gaps_of_rotating(struct build *w, uint32_t block)
{
	struct um_blocks *b = w->b;

	for (uint32_t v = b->block[block].first_visit; v < b->block[block + 1].first_visit; v++) {
		const struct um_touch *t = &b->touch[b->visit[v].first_touch];
		uint32_t to = b->to[b->visit[v].first_touch];

		b->visit[v].end = b->visit[v].held = t->until;
		b->visit[v].live = t->liveness == UM_LIVENESS_NEEDED ? b->part[t->part].bytes : 0;
		b->visit[v].overwritten = t->overwritten ? b->part[t->part].bytes : 0;
		b->visit[v].parts = 1;
		b->after[v] = to == UINT32_MAX ? UINT32_MAX : b->touch[to].visit;
	}
}

static void gaps_of_block(struct build *w, uint32_t block)
{
	struct um_blocks *b = w->b;
	uint32_t lo = b->block[block].first_visit, hi = b->block[block + 1].first_visit;
	int64_t live = 0, overwritten = 0, parts = 0;

	for (uint32_t t = b->visit[lo].first_touch; t < b->visit[hi].first_touch; t++)
		span_touch(w, t);
	for (uint32_t v = lo; v < hi; v++) {
		struct um_visit *x = &b->visit[v];

		live += w->live[v];
		overwritten += w->overwritten[v];
		parts += w->parts[v];
		b->after[v] = v + 1 < hi ? v + 1 : lo;
		x->end = v + 1 < hi ? b->visit[v + 1].op : b->visit[lo].op + b->n_ops;
		if (parts > 0 || x->held > x->end)
			x->held = x->end;
		else if (x->held <= x->op)
			x->held = x->op + 1;
		x->live = (uint32_t)live;
		x->overwritten = (uint32_t)overwritten;
		x->parts = (uint32_t)parts;
	}
}

/* Visits by op: counted, summed, filled. */
static int index_ops(struct um_blocks *b)
{
	b->first_of_op = calloc(b->n_ops + 2ull, sizeof *b->first_of_op);
	b->of_op = malloc((b->n_visits + 1ull) * sizeof *b->of_op);
	if (!b->first_of_op || !b->of_op)
		return -ENOMEM;
	for (uint32_t v = 0; v < b->n_visits; v++)
		b->first_of_op[b->visit[v].op + 2]++;
	for (int32_t i = 0; i <= b->n_ops; i++)
		b->first_of_op[i + 1] += b->first_of_op[i];
	for (uint32_t v = 0; v < b->n_visits; v++)
		b->of_op[b->first_of_op[b->visit[v].op + 1]++] = v;
	return 0;
}

/* Keeps blocks until the first touch of tensors that are born before relaunches. `inside`: the gap begins after the
 * birth; the block is kept. Of the gap before that it depends on `held`. */
static void keep_born(struct build *w)
{
	struct um_blocks *b = w->b;

	for (const struct um_touch *t = b->touch; t < b->touch + b->n_touches; t++) {
		const struct um_slot *s = &w->s->slots.at[b->part[t->part].slot];
		const struct um_block *bl = &b->block[b->part[t->part].block];
		int32_t birth = s->birth;
		int inside = !bl->rotates && s->flags & UM_SLOT_BEFORE_BURST && t->born && t->op >= birth;

		for (uint32_t v = t->visit; inside; v--) {
			struct um_visit *x = &b->visit[v > bl->first_visit ? v - 1 : bl[1].first_visit - 1];

			birth += v > bl->first_visit ? 0 : b->n_ops;
			inside = x->op >= birth;
			if (x->held == x->end || (!inside && x->held < birth))
				continue;
			x->can_leave &= !inside;
			x->held = x->end;
		}
	}
}

/* A block of a supplied tensor leaves after its last visit. The next tensor is prefetched by the op that uses it
 * first. A block with other tensors in it stays. */
static void leave_supplied(struct build *w)
{
	struct um_blocks *b = w->b;

	for (uint32_t p = 0; p < b->n_parts; p++) {
		const struct um_block *bl = &b->block[b->part[p].block];
		struct um_visit *last = &b->visit[bl[1].first_visit - 1];

		if (!(w->s->slots.at[b->part[p].slot].flags & UM_SLOT_SUPPLIED) || bl->rotates ||
		    bl[1].first_part != bl->first_part + 1 || bl[1].first_visit == bl->first_visit)
			continue;
		last->changes = 1;
		last->paged_at = last->end - 1;
	}
}

static int make_gaps(struct build *w)
{
	struct um_blocks *b = w->b;
	size_t n = b->n_visits + 1ull;

	b->after = malloc(n * sizeof *b->after);
	w->live = calloc(n, sizeof *w->live);
	w->overwritten = calloc(n, sizeof *w->overwritten);
	w->parts = calloc(n, sizeof *w->parts);
	if (!b->after || !w->live || !w->overwritten || !w->parts)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_blocks; i++) {
		if (b->block[i].first_visit == b->block[i + 1].first_visit)
			continue;
		b->block[i].rotates = w->rotates[b->part[b->block_part[b->block[i].first_part]].slot];
		if (b->block[i].rotates)
			gaps_of_rotating(w, i);
		else
			gaps_of_block(w, i);
	}
	for (uint32_t v = 0; v < b->n_visits; v++)
		b->visit[v].can_leave =
			b->visit[v].held > b->visit[v].op + 1 && !(b->visit[v].live && b->after[v] == UINT32_MAX);
	keep_born(w);
	leave_supplied(w);
	return 0;
}

int um_blocks_build(struct um_blocks *b, const struct um_schedule *s, const struct um_host_resident *host_resident)
{
	struct build w = {.b = b, .s = s};
	int err;

	memset(b, 0, sizeof *b);
	b->n_ops = (int32_t)s->ops.n;
	b->host_resident = host_resident;
	b->successor = um_schedule_successors(s);
	err = b->successor ? find_used(&w) : -ENOMEM;
	if (!err)
		err = make_parts(&w);
	if (!err)
		err = make_touches(&w);
	if (!err)
		err = make_visits(&w);
	if (!err)
		err = index_parts(&w);
	if (!err)
		err = follow_all(&w);
	if (!err)
		err = make_gaps(&w);
	if (!err)
		err = index_ops(b);
	if (!err)
		err = um_baseline_build(&b->baseline, b);
	free(w.rotates);
	free(w.used);
	free(w.block);
	free(w.last);
	free(w.live);
	free(w.overwritten);
	free(w.parts);
	if (err)
		um_blocks_fini(b);
	return err;
}

void um_blocks_fini(struct um_blocks *b)
{
	free(b->successor);
	free(b->first_part);
	free(b->part);
	free(b->touch);
	free(b->to);
	free(b->part_touch);
	free(b->visit);
	free(b->block);
	free(b->block_part);
	free(b->after);
	free(b->first_of_op);
	free(b->of_op);
	um_baseline_fini(&b->baseline);
	memset(b, 0, sizeof *b);
}
