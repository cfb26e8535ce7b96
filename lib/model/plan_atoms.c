/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_atoms.c - cuts slots into atoms
 *
 * Cuts are counted per group of slots, gathered, sorted group by group (most have two) and freed of duplicates: linear
 * in practice, where one sort over all cuts would dominate the whole proof.
 */
#include "model/plan_atoms.h"

#include "base/bisect.h"

struct cuts {
	uint32_t *root; /* by slot: the slot that represents its group */
	size_t *first; /* by root: its first cut; slots + 1 */
	size_t *n; /* by root: number of cuts */
	uint64_t *at;
};

static uint32_t lead_of(uint32_t *root, uint32_t s)
{
	while (root[s] != s)
		s = root[s] = root[root[s]];
	return s;
}

static void group(struct cuts *c, const struct um_schedule *sched)
{
	for (uint32_t s = 0; s < sched->slots.n; s++)
		c->root[s] = s;
	for (uint32_t s = 0; s < sched->slots.n; s++) {
		const struct um_slot *t = &sched->slots.at[s];
		uint32_t to = t->flags & UM_SLOT_SCRATCH ? t->of : t->carry;

		if (to < sched->slots.n) {
			uint32_t a = lead_of(c->root, s), b = lead_of(c->root, to);

			/* the lowest number represents the group, whatever the order */
			c->root[a > b ? a : b] = a < b ? a : b;
		}
	}
	for (uint32_t s = 0; s < sched->slots.n; s++)
		c->root[s] = lead_of(c->root, s);
}

static int has_range(const struct um_hint *h)
{
	return h->kind != UM_HINT_RECOMPUTE;
}

/* Adds a cut to a group, unless it equals the group's last one, as it often does. */
static void add(struct cuts *c, uint32_t group, uint64_t at)
{
	uint64_t *next = c->at + c->first[group] + c->n[group];

	if (c->n[group] && next[-1] == at)
		return;
	*next = at;
	c->n[group]++;
}

/* Visits all ranges; called twice: the first pass counts, the second fills. */
static void visit(struct cuts *c, const struct um_plan *p, uint32_t slot, uint64_t off, uint64_t bytes, int fill)
{
	int left = off > 0, right = off + bytes < p->sched.slots.at[slot].bytes;
	uint32_t g;

	if (!left && !right)
		return;
	g = c->root[slot];
	if (!fill)
		c->first[g + 1] += (size_t)left + (size_t)right;
	if (fill && left)
		add(c, g, off);
	if (fill && right)
		add(c, g, off + bytes);
}

static void visit_all(struct cuts *c, const struct um_plan *p, int fill)
{
	const struct um_schedule *s = &p->sched;

	for (size_t i = 0; i < s->uses.n; i++)
		visit(c, p, s->uses.at[i].slot, s->uses.at[i].off, s->uses.at[i].bytes, fill);
	for (size_t i = 0; i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];

		if (has_range(h))
			visit(c, p, h->slot, h->off, h->bytes, fill);
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int is_sorted(const uint64_t *at, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (at[i - 1] > at[i])
			return 0;
	return 1;
}

/* Sorts each group's cuts and drops duplicates. Hints are in order of time, so cuts are often sorted already. */
static void sort_cuts(struct cuts *c, size_t slots)
{
	for (size_t g = 0; g < slots; g++) {
		uint64_t *at = c->at + c->first[g];
		size_t n = c->n[g], kept = 0;

		if (!is_sorted(at, n))
			qsort(at, n, sizeof *at, by_value);
		for (size_t i = 0; i < n; i++)
			if (!kept || at[kept - 1] != at[i])
				at[kept++] = at[i];
		c->n[g] = kept;
	}
}

static int cuts_init(struct cuts *c, const struct um_plan *p)
{
	size_t slots = p->sched.slots.n;

	c->root = malloc((slots + 1) * sizeof *c->root);
	c->first = calloc(slots + 1, sizeof *c->first);
	c->n = calloc(slots + 1, sizeof *c->n);
	c->at = NULL;
	if (!c->root || !c->first || !c->n)
		return -ENOMEM;
	group(c, &p->sched);
	visit_all(c, p, 0);
	for (size_t s = 0; s < slots; s++)
		c->first[s + 1] += c->first[s];
	c->at = malloc((c->first[slots] + 1) * sizeof *c->at);
	if (!c->at)
		return -ENOMEM;
	visit_all(c, p, 1);
	sort_cuts(c, slots);
	return 0;
}

static void cuts_fini(struct cuts *c)
{
	free(c->root);
	free(c->first);
	free(c->n);
	free(c->at);
}

/* The first atom of [lo, hi), those of one slot, that starts at or after `off`. */
static uint32_t atom_at(const struct um_plan_atoms *a, uint32_t lo, uint32_t hi, uint64_t off)
{
	UM_BISECT(lo, hi, i, a->off[i] < off)
	return lo;
}

/* Most ranges are a whole slot, or one atom. */
struct um_atom_range um_plan_atoms_range(const struct um_plan_atoms *a, uint32_t slot, uint64_t off, uint64_t bytes)
{
	uint32_t hi = a->first[slot + 1], lo = off ? atom_at(a, a->first[slot], hi, off) : a->first[slot];

	if (off + bytes == a->off[hi - 1] + a->bytes[hi - 1])
		return (struct um_atom_range){lo, hi};
	if (lo < hi && off + bytes == a->off[lo] + a->bytes[lo])
		return (struct um_atom_range){lo, lo + 1};
	return (struct um_atom_range){lo, atom_at(a, lo, hi, off + bytes)};
}

static void fill_atoms(struct um_plan_atoms *a, const struct cuts *c, const struct um_schedule *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->slots.n; i++) {
		const uint64_t *cut = c->at + c->first[c->root[i]];
		uint64_t off = 0;

		a->first[i] = n;
		for (size_t k = 0; k <= c->n[c->root[i]]; k++) {
			uint64_t end = k < c->n[c->root[i]] ? cut[k] : s->slots.at[i].bytes;

			a->off[n] = off;
			a->bytes[n++] = end - off;
			off = end;
		}
	}
	a->first[s->slots.n] = n;
	a->n = n;
}

int um_plan_atoms_init(struct um_plan_atoms *a, const struct um_plan *p)
{
	const struct um_schedule *s = &p->sched;
	struct cuts c;
	size_t most = s->slots.n + 1;
	int err = cuts_init(&c, p);

	memset(a, 0, sizeof *a);
	if (err)
		goto out;
	for (size_t i = 0; i < s->slots.n; i++)
		most += c.n[c.root[i]];
	a->first = malloc((s->slots.n + 1) * sizeof *a->first);
	a->off = malloc(most * sizeof *a->off);
	a->bytes = malloc(most * sizeof *a->bytes);
	a->use = malloc((s->uses.n + 1) * sizeof *a->use);
	a->hint = malloc((p->hints.n + 1) * sizeof *a->hint);
	err = a->first && a->off && a->bytes && a->use && a->hint ? 0 : -ENOMEM;
	if (err)
		goto out;
	fill_atoms(a, &c, s);
	for (size_t i = 0; i < s->uses.n; i++)
		a->use[i] = um_plan_atoms_range(a, s->uses.at[i].slot, s->uses.at[i].off, s->uses.at[i].bytes);
	for (size_t i = 0; i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];

		a->hint[i] = (struct um_atom_range){0, 0};
		if (has_range(h))
			a->hint[i] = um_plan_atoms_range(a, h->slot, h->off, h->bytes);
	}
out:
	cuts_fini(&c);
	if (err)
		um_plan_atoms_fini(a);
	return err;
}

void um_plan_atoms_fini(struct um_plan_atoms *a)
{
	free(a->first);
	free(a->off);
	free(a->bytes);
	free(a->use);
	free(a->hint);
	memset(a, 0, sizeof *a);
}
