/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the touches of each atom, then follows its content from one to the next, also across iterations.
 */
#include "bound/bound_history.h"

#define MOST_NAMES 64 /* slots of a tensor in successive iterations before its next use */

static int managed(const struct um_schedule *s, uint32_t slot)
{
	return !(s->slots.at[slot].flags & UM_SLOT_UNMANAGED);
}

/* Touches of all uses of op `i`, one per atom. `fill` 0: counts into first[atom + 1]. */
static void add_op(struct bound_history *h, uint32_t i, uint32_t *last, int fill)
{
	const struct um_sched_op *op = &h->s->ops.at[i];

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		const struct um_sched_use *use = &h->s->uses.at[u];

		if (!managed(h->s, use->slot))
			continue;
		for (uint32_t a = h->atoms.use[u].lo; a < h->atoms.use[u].hi; a++) {
			if (!h->dense[a])
				continue;
			if (last[a] != i + 1) {
				last[a] = i + 1;
				if (fill) {
					h->touch[h->first[a]++] = (struct bound_touch){
						.op = (int32_t)i, .atom = a, .next = BOUND_NO_TOUCH};
					h->uses[i] += (int64_t)h->atoms.bytes[a];
				} else {
					h->first[a + 1]++;
				}
			}
			if (fill) {
				h->touch[h->first[a] - 1].reads |= (use->access & UM_READ) != 0;
				h->touch[h->first[a] - 1].writes |= (use->access & UM_WRITE) != 0;
			}
		}
	}
}

static void find_dense(struct bound_history *h)
{
	for (size_t u = 0; u < h->s->uses.n; u++)
		if (h->s->uses.at[u].touched >= h->s->uses.at[u].bytes)
			memset(h->dense + h->atoms.use[u].lo, 1, h->atoms.use[u].hi - h->atoms.use[u].lo);
}

static int find_touches(struct bound_history *h)
{
	uint32_t *last = calloc(h->atoms.n + 1ull, sizeof *last);

	h->first = calloc(h->atoms.n + 2ull, sizeof *h->first);
	h->dense = calloc(h->atoms.n + 1ull, 1);
	if (!last || !h->first || !h->dense) {
		free(last);
		return -ENOMEM;
	}
	find_dense(h);
	for (uint32_t i = 0; i < h->s->ops.n; i++)
		add_op(h, i, last, 0);
	for (uint32_t a = 0; a < h->atoms.n; a++)
		h->first[a + 1] += h->first[a];
	h->n = h->first[h->atoms.n];
	h->touch = malloc((h->n + 1ull) * sizeof *h->touch);
	memset(last, 0, h->atoms.n * sizeof *last);
	for (uint32_t i = 0; h->touch && i < h->s->ops.n; i++)
		add_op(h, i, last, 1);
	free(last);
	/* Filling moved each start to the next one. */
	memmove(h->first + 1, h->first, h->atoms.n * sizeof *h->first);
	h->first[0] = 0;
	return h->touch ? 0 : -ENOMEM;
}

static int find_dead(struct bound_history *h)
{
	const struct um_schedule *s = h->s;

	h->first_dead = calloc(s->slots.n + 2, sizeof *h->first_dead);
	h->dead_op = malloc((s->uses.n + 1) * sizeof *h->dead_op);
	if (!h->first_dead || !h->dead_op)
		return -ENOMEM;
	for (size_t u = 0; u < s->uses.n; u++)
		h->first_dead[s->uses.at[u].slot + 2] += s->uses.at[u].dead_after != 0;
	for (size_t i = 0; i < s->slots.n; i++)
		h->first_dead[i + 1] += h->first_dead[i];
	for (uint32_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];

		for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
			if (s->uses.at[u].dead_after)
				h->dead_op[h->first_dead[s->uses.at[u].slot + 1]++] = (int32_t)i;
	}
	return 0;
}

int bound_dead_between(const struct bound_history *h, uint32_t slot, int32_t from, int32_t to)
{
	for (uint32_t k = h->first_dead[slot]; k < h->first_dead[slot + 1]; k++)
		if (h->dead_op[k] >= from && h->dead_op[k] < to)
			return 1;
	return 0;
}

int32_t bound_dies_at(const struct bound_history *h, uint32_t slot, int32_t from)
{
	const struct um_slot *t = &h->s->slots.at[slot];
	int older = t->birth < 0 || from < t->birth;

	if (t->death >= 0 && t->death < h->n_ops && (older || t->birth < t->death))
		return t->death;
	return h->successor[slot] == UM_NO_SLOT ? h->n_ops : INT32_MAX;
}

/* Finds the touch after touch `k`, also under the tensor's slots of the next iterations. */
static void follow(struct bound_history *h, uint32_t k)
{
	struct bound_touch *t = &h->touch[k];
	uint32_t slot = h->slot_of[t->atom], j = t->atom - h->atoms.first[slot], next = k + 1, end;
	int32_t from = t->op, n = h->n_ops;
	int kept = 1;

	end = h->first[t->atom + 1];
	for (int64_t name = 0; name < MOST_NAMES; name++) {
		int32_t dies = bound_dies_at(h, slot, from);

		if (next < end && h->touch[next].op < dies) {
			t->next = next;
			t->apart = name * n + h->touch[next].op - t->op;
			t->kept = kept && !bound_dead_between(h, slot, from, h->touch[next].op);
			h->touch[next].fed = t->kept;
			return;
		}
		if (dies != INT32_MAX)
			return;
		kept = kept && !bound_dead_between(h, slot, from, n);
		slot = h->successor[slot];
		kept = kept && !(h->s->slots.at[slot].flags & UM_SLOT_TRANSIENT);
		next = h->first[h->atoms.first[slot] + j];
		end = h->first[h->atoms.first[slot] + j + 1];
		from = -1;
	}
}

static int build(struct bound_history *h)
{
	struct um_plan plan = {.sched = *h->s};
	int err = um_plan_atoms_init(&h->atoms, &plan);

	if (err)
		return err;
	h->successor = um_schedule_successors(h->s);
	h->slot_of = malloc((h->atoms.n + 1ull) * sizeof *h->slot_of);
	h->uses = calloc((size_t)h->n_ops + 1, sizeof *h->uses);
	if (!h->successor || !h->slot_of || !h->uses)
		return -ENOMEM;
	for (uint32_t s = 0; s < h->s->slots.n; s++)
		for (uint32_t a = h->atoms.first[s]; a < h->atoms.first[s + 1]; a++)
			h->slot_of[a] = s;
	err = find_dead(h);
	if (!err)
		err = find_touches(h);
	for (uint32_t k = 0; !err && k < h->n; k++)
		follow(h, k);
	return err;
}

int bound_history_init(struct bound_history *h, const struct um_schedule *s)
{
	int err;

	memset(h, 0, sizeof *h);
	h->s = s;
	h->n_ops = (int32_t)s->ops.n;
	err = build(h);
	if (err)
		bound_history_fini(h);
	return err;
}

void bound_history_fini(struct bound_history *h)
{
	um_plan_atoms_fini(&h->atoms);
	free(h->successor);
	free(h->slot_of);
	free(h->first);
	free(h->touch);
	free(h->uses);
	free(h->dense);
	free(h->first_dead);
	free(h->dead_op);
	memset(h, 0, sizeof *h);
}
