/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the gaps in which bytes may be evicted from a schedule: by atoms (plan_atoms.h), so every byte of a chain has
 * one history. Written from the format's definition and without lib/plan/blocks.c: each checks the other.
 *
 * Only certain costs count. Content that was never written, declared dead, overwritten as a whole next or not used
 * again needs no copy. Bytes of sparse look-ups (each use touches less than its range) do not count at all: a sound
 * plan may leave them on the host, where ops read them over the link (model/host_resident.h) without device memory and
 * copies; the time of these reads is left out, so that the bound also holds for plans that prefetch them.
 */
#include "bound/bound.h"

#include "model/plan_atoms.h"

#define MOST_NAMES 64 /* slots of a tensor in successive iterations before its next use */

struct touch {
	int32_t op;
	uint32_t atom;
	uint32_t next; /* next touch of the same bytes, UINT32_MAX none */
	int64_t apart; /* ops from here to there */
	uint8_t reads, writes;
	uint8_t kept; /* the next touch finds this one's content */
	uint8_t fed; /* finds an earlier touch's content */
	uint8_t seen;
};

struct builder {
	struct bound_work *w;
	const struct um_schedule *s;
	struct um_plan_atoms atoms;
	int recompute, copies;
	uint32_t *successor, *slot_of; /* slot_of: by atom */
	uint32_t *first; /* by atom: its first touch; atoms + 1 */
	struct touch *touch; /* by atom, then op */
	uint32_t n;
	uint8_t *dense; /* by atom: an op uses it as a whole */
	uint32_t *first_dead; /* by slot, into dead_op; slots + 1 */
	int32_t *dead_op; /* ops after which the slot was declared dead, ascending */
};

static int managed(const struct um_schedule *s, uint32_t slot)
{
	return !(s->slots.at[slot].flags & UM_SLOT_UNMANAGED);
}

/* Touches of all uses of op `i`, one per atom. `fill` 0: counts into first[atom + 1]. */
static void add_op(struct builder *b, uint32_t i, uint32_t *last, int fill)
{
	const struct um_sched_op *op = &b->s->ops.at[i];

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		const struct um_sched_use *use = &b->s->uses.at[u];

		if (!managed(b->s, use->slot))
			continue;
		for (uint32_t a = b->atoms.use[u].lo; a < b->atoms.use[u].hi; a++) {
			if (!b->dense[a])
				continue;
			if (last[a] != i + 1) {
				last[a] = i + 1;
				if (fill) {
					b->touch[b->first[a]++] =
						(struct touch){.op = (int32_t)i, .atom = a, .next = UINT32_MAX};
					b->w->uses[i] += (int64_t)b->atoms.bytes[a];
				} else {
					b->first[a + 1]++;
				}
			}
			if (fill) {
				b->touch[b->first[a] - 1].reads |= (use->access & UM_READ) != 0;
				b->touch[b->first[a] - 1].writes |= (use->access & UM_WRITE) != 0;
			}
		}
	}
}

static void find_dense(struct builder *b)
{
	for (size_t u = 0; u < b->s->uses.n; u++)
		if (b->s->uses.at[u].touched >= b->s->uses.at[u].bytes)
			memset(b->dense + b->atoms.use[u].lo, 1, b->atoms.use[u].hi - b->atoms.use[u].lo);
}

static int find_touches(struct builder *b)
{
	uint32_t *last = calloc(b->atoms.n + 1ull, sizeof *last);

	b->first = calloc(b->atoms.n + 2ull, sizeof *b->first);
	b->dense = calloc(b->atoms.n + 1ull, 1);
	if (!last || !b->first || !b->dense) {
		free(last);
		return -ENOMEM;
	}
	find_dense(b);
	for (uint32_t i = 0; i < b->s->ops.n; i++)
		add_op(b, i, last, 0);
	for (uint32_t a = 0; a < b->atoms.n; a++)
		b->first[a + 1] += b->first[a];
	b->n = b->first[b->atoms.n];
	b->touch = malloc((b->n + 1ull) * sizeof *b->touch);
	memset(last, 0, b->atoms.n * sizeof *last);
	for (uint32_t i = 0; b->touch && i < b->s->ops.n; i++)
		add_op(b, i, last, 1);
	free(last);
	/* Filling moved each start to the next one. */
	memmove(b->first + 1, b->first, b->atoms.n * sizeof *b->first);
	b->first[0] = 0;
	return b->touch ? 0 : -ENOMEM;
}

static int find_dead(struct builder *b)
{
	const struct um_schedule *s = b->s;

	b->first_dead = calloc(s->slots.n + 2, sizeof *b->first_dead);
	b->dead_op = malloc((s->uses.n + 1) * sizeof *b->dead_op);
	if (!b->first_dead || !b->dead_op)
		return -ENOMEM;
	for (size_t u = 0; u < s->uses.n; u++)
		b->first_dead[s->uses.at[u].slot + 2] += s->uses.at[u].dead_after != 0;
	for (size_t i = 0; i < s->slots.n; i++)
		b->first_dead[i + 1] += b->first_dead[i];
	for (uint32_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];

		for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
			if (s->uses.at[u].dead_after)
				b->dead_op[b->first_dead[s->uses.at[u].slot + 1]++] = (int32_t)i;
	}
	return 0;
}

/* Declared dead after an op of [from, to)? */
static int dead_between(const struct builder *b, uint32_t slot, int32_t from, int32_t to)
{
	for (uint32_t k = b->first_dead[slot]; k < b->first_dead[slot + 1]; k++)
		if (b->dead_op[k] >= from && b->dead_op[k] < to)
			return 1;
	return 0;
}

/* The op that frees the tensor of `slot` after op `from`; INT32_MAX if it lives on in the next iteration. */
static int32_t dies_at(const struct builder *b, uint32_t slot, int32_t from)
{
	const struct um_slot *t = &b->s->slots.at[slot];
	int older = t->birth < 0 || from < t->birth;

	if (t->death >= 0 && t->death < b->w->n_ops && (older || t->birth < t->death))
		return t->death;
	return b->successor[slot] == UM_NO_SLOT ? b->w->n_ops : INT32_MAX;
}

/* Finds the touch after touch `k`, also under the tensor's slots of the next iterations. */
static void follow(struct builder *b, uint32_t k)
{
	struct touch *t = &b->touch[k];
	uint32_t slot = b->slot_of[t->atom], j = t->atom - b->atoms.first[slot], next = k + 1, end;
	int32_t from = t->op, n = b->w->n_ops;
	int kept = 1;

	end = b->first[t->atom + 1];
	for (int64_t name = 0; name < MOST_NAMES; name++) {
		int32_t dies = dies_at(b, slot, from);

		if (next < end && b->touch[next].op < dies) {
			t->next = next;
			t->apart = name * n + b->touch[next].op - t->op;
			t->kept = kept && !dead_between(b, slot, from, b->touch[next].op);
			b->touch[next].fed = t->kept;
			return;
		}
		if (dies != INT32_MAX)
			return;
		kept = kept && !dead_between(b, slot, from, n);
		slot = b->successor[slot];
		kept = kept && !(b->s->slots.at[slot].flags & UM_SLOT_TRANSIENT);
		next = b->first[b->atoms.first[slot] + j];
		end = b->first[b->atoms.first[slot] + j + 1];
		from = -1;
	}
}

enum content { CONTENT_NONE, CONTENT_STALE, CONTENT_CLEAN };

/* Cost of recomputing a touch's content: the op's time per byte that it can be launched again for. */
static double again_ms(const struct builder *b, const struct touch *t)
{
	const struct um_sched_op *op = &b->s->ops.at[t->op];
	uint64_t bytes = 0;
	int mine = 0;

	for (uint32_t i = op->first_relaunch; op->relaunchable && i < op->first_relaunch + op->n_relaunch; i++) {
		uint32_t slot = b->s->relaunch.at[i];

		bytes += managed(b->s, slot) ? b->s->slots.at[slot].bytes : 0;
		mine |= slot == b->slot_of[t->atom];
	}
	return mine && bytes ? (double)op->ns / 1e6 / ((double)bytes / 1048576.0) : BOUND_NEVER;
}

/* The driver copies written content out in each gap in which it is evicted. */
static int add_gap_alone(struct builder *b, const struct bound_chain *like)
{
	struct bound_chain c = *like;

	c.first = (uint32_t)b->w->gaps.n - 1;
	c.n = 1;
	c.written = b->w->gaps.at[c.first].from;
	return um_vec_push(&b->w->chains, c);
}

/* Walks the gaps after touch `k`, which leaves such content, until it is lost, overwritten or modified. */
static int add_chain(struct builder *b, uint32_t k, enum content what)
{
	struct bound_work *w = b->w;
	struct bound_chain c = {.bytes = b->atoms.bytes[b->touch[k].atom], .first = (uint32_t)w->gaps.n};
	int64_t at = b->touch[k].op;

	c.again = what == CONTENT_STALE && b->recompute ? again_ms(b, &b->touch[k]) : BOUND_NEVER;
	c.written = what == CONTENT_STALE ? 2 * at + 1 : BOUND_CLEAN;
	b->touch[k].seen = 1;
	for (;;) {
		const struct touch *t = &b->touch[k];

		if (t->next == UINT32_MAX || !t->kept || !b->touch[t->next].reads)
			break;
		if (what != CONTENT_NONE &&
		    um_vec_push(&w->gaps, ((struct bound_gap){2 * at + 1, 2 * (at + t->apart)})))
			return -ENOMEM;
		if (b->copies && what == CONTENT_STALE && add_gap_alone(b, &c))
			return -ENOMEM;
		at += t->apart;
		k = t->next;
		/* Stops after one round of read-only content. */
		if (b->touch[k].writes || b->touch[k].seen)
			break;
		b->touch[k].seen = 1;
	}
	c.n = b->copies && what == CONTENT_STALE ? 0 : (uint32_t)w->gaps.n - c.first;
	return c.n ? um_vec_push(&w->chains, c) : 0;
}

/* Content that is on the host at the begin of each iteration and found by the first touch. */
static int from_host(const struct builder *b, uint32_t k)
{
	uint32_t atom = b->touch[k].atom, slot = b->slot_of[atom];
	const struct um_slot *t = &b->s->slots.at[slot];

	return k == b->first[atom] && um_slot_alive_first(t) && t->carry == UM_NO_SLOT &&
	       !(t->flags & UM_SLOT_TRANSIENT) && (t->death < 0 || b->touch[k].op < t->death) &&
	       !dead_between(b, slot, -1, b->touch[k].op);
}

/* Content comes from a write, from the host, or, if an iteration only reads it, from the previous one. */
static int add_chains(struct builder *b)
{
	int err = 0;

	for (uint32_t k = 0; k < b->n && !err; k++)
		if (b->touch[k].writes)
			err = add_chain(b, k, CONTENT_STALE);
	for (uint32_t k = 0; k < b->n && !err; k++)
		if (!b->touch[k].seen && !b->touch[k].fed)
			err = add_chain(b, k, from_host(b, k) ? CONTENT_CLEAN : CONTENT_NONE);
	for (uint32_t k = 0; k < b->n && !err; k++)
		if (!b->touch[k].seen)
			err = add_chain(b, k, CONTENT_CLEAN);
	return err;
}

static void find_need(struct bound_work *w)
{
	int64_t sum = 0, n = w->n_ops;

	for (size_t c = 0; c < w->chains.n; c++) {
		const struct bound_chain *x = &w->chains.at[c];

		for (uint32_t g = x->first; g < x->first + x->n; g++) {
			int64_t from = w->gaps.at[g].from / 2 + 1, to = w->gaps.at[g].to / 2, bytes = (int64_t)x->bytes;

			for (; to - from >= n; from += n)
				w->need[0] += bytes;
			if (from >= to)
				continue;
			w->need[from % n] += bytes;
			w->need[to % n] -= bytes;
			if (to % n < from % n)
				w->need[0] += bytes;
		}
	}
	for (int64_t i = 0; i < n; i++) {
		sum += w->need[i];
		w->need[i] = sum + w->uses[i];
	}
}

static int build(struct builder *b)
{
	struct um_plan plan = {.sched = *b->s};
	size_t n = b->s->ops.n;
	int err = um_plan_atoms_init(&b->atoms, &plan);

	if (err)
		return err;
	b->successor = um_schedule_successors(b->s);
	b->slot_of = malloc((b->atoms.n + 1ull) * sizeof *b->slot_of);
	b->w->before = calloc(n + 1, sizeof *b->w->before);
	b->w->need = calloc(n + 1, sizeof *b->w->need);
	b->w->uses = calloc(n + 1, sizeof *b->w->uses);
	if (!b->successor || !b->slot_of || !b->w->before || !b->w->need || !b->w->uses)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		b->w->before[i + 1] = b->w->before[i] + b->s->ops.at[i].ns;
	for (uint32_t s = 0; s < b->s->slots.n; s++)
		for (uint32_t a = b->atoms.first[s]; a < b->atoms.first[s + 1]; a++)
			b->slot_of[a] = s;
	err = find_dead(b);
	if (!err)
		err = find_touches(b);
	for (uint32_t k = 0; !err && k < b->n; k++)
		follow(b, k);
	if (!err)
		err = add_chains(b);
	if (!err)
		find_need(b->w);
	return err;
}

int bound_work_init(struct bound_work *w, const struct bound_request *r)
{
	struct builder b = {.w = w, .s = r->sched, .recompute = r->recompute, .copies = r->copies};
	int err;

	memset(w, 0, sizeof *w);
	w->n_ops = (int32_t)r->sched->ops.n;
	err = build(&b);
	um_plan_atoms_fini(&b.atoms);
	free(b.successor);
	free(b.slot_of);
	free(b.first);
	free(b.dense);
	free(b.touch);
	free(b.first_dead);
	free(b.dead_op);
	if (err)
		bound_work_fini(w);
	return err;
}

void bound_work_fini(struct bound_work *w)
{
	free(w->before);
	free(w->need);
	free(w->uses);
	um_vec_fini(&w->gaps);
	um_vec_fini(&w->chains);
	memset(w, 0, sizeof *w);
}
