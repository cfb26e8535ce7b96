/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_run_init.c - sets up a run of a plan, and each of its iterations
 *
 * All tables by position are built here once, so that the run itself allocates nothing.
 */
#include "model/plan_content.h"
#include "model/plan_run.h"

static int bucket_init(struct um_plan_bucket *b, size_t positions, size_t items)
{
	b->first = calloc(positions + 2, sizeof *b->first);
	b->item = malloc((items + 1) * sizeof *b->item);
	return b->first && b->item ? 0 : -ENOMEM;
}

/* Counts are stored one place up and then summed, so that filling leaves first[i] at the begin of position i. */
static void bucket_sum(struct um_plan_bucket *b, size_t positions)
{
	for (size_t i = 0; i <= positions; i++)
		b->first[i + 1] += b->first[i];
}

static void add_free(struct um_plan_run *r, int32_t at, uint32_t slot, int fill)
{
	if (fill)
		r->frees.item[r->frees.first[at + 1]++] = slot;
	else
		r->frees.first[at + 2]++;
}

static int frees_init(struct um_plan_run *r)
{
	const struct um_schedule *s = &r->plan->sched;
	size_t n = s->ops.n;

	if (bucket_init(&r->frees, n + 1, 2 * s->slots.n))
		return -ENOMEM;
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t i = 0; i < s->slots.n; i++) {
			const struct um_slot *t = &s->slots.at[i];
			int32_t death = t->death;

			if (um_slot_alive_last(t, (int32_t)n)) {
				/* not carried into the next iteration: it ends; a tensor of the previous iteration may
				 * be freed */
				if (r->successor[i] == UM_NO_SLOT)
					add_free(r, (int32_t)n, i, fill);
				if (death < 0 || death >= (int32_t)n)
					continue;
			}
			add_free(r, death, i, fill);
		}
		if (!fill)
			bucket_sum(&r->frees, n + 1);
	}
	return 0;
}

/* A hint for a tensor that succeeds its own predecessor in the same slot waits until the predecessor is freed. */
static int32_t wait_of(const struct um_plan *p, const struct um_hint *h)
{
	const struct um_slot *s = &p->sched.slots.at[h->slot];

	if (s->birth >= 0 && s->death <= s->birth && h->at >= s->birth && s->death - 1 > h->after)
		return s->death - 1;
	return h->after;
}

/* The op before which the hint's tensor is freed; INT32_MAX: it lives on in the next iteration. */
static int32_t freed_at(const struct um_plan *p, const struct um_hint *h)
{
	const struct um_slot *s = &p->sched.slots.at[h->slot];
	int in_iteration = s->birth < 0 || h->at < s->birth || s->birth < s->death;

	return in_iteration && s->death >= 0 && s->death < (int32_t)p->sched.ops.n ? s->death : INT32_MAX;
}

static int hints_init(struct um_plan_run *r)
{
	const struct um_plan *p = r->plan;
	size_t n = p->sched.ops.n, k = 0;

	r->after = malloc((p->hints.n + 1) * sizeof *r->after);
	r->until = malloc((p->hints.n + 1) * sizeof *r->until);
	r->due = calloc(n + 1, sizeof *r->due);
	r->h2d.queue = malloc((p->hints.n + 1) * sizeof *r->h2d.queue);
	r->d2h.queue = malloc((p->hints.n + 1) * sizeof *r->d2h.queue);
	if (bucket_init(&r->discards, n + 1, p->hints.n) || !r->after || !r->until || !r->due || !r->h2d.queue ||
	    !r->d2h.queue)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];

		for (; k < (size_t)h->at; k++)
			r->due[k] = r->h2d.n;
		if (h->kind == UM_HINT_PREFETCH || h->kind == UM_HINT_EVICT || h->kind == UM_HINT_DISCARD)
			r->after[i] = wait_of(p, h);
		if (h->kind == UM_HINT_PREFETCH || h->kind == UM_HINT_EVICT)
			r->until[i] = freed_at(p, h);
		if (h->kind == UM_HINT_PREFETCH)
			r->h2d.queue[r->h2d.n++] = i;
		else if (h->kind == UM_HINT_EVICT)
			r->d2h.queue[r->d2h.n++] = i;
		else if (h->kind == UM_HINT_DISCARD)
			r->discards.first[r->after[i] + 3]++;
	}
	for (; k < n; k++)
		r->due[k] = r->h2d.n;
	r->h2d.after = r->h2d.n ? r->after[r->h2d.queue[0]] : INT32_MAX;
	r->d2h.after = r->d2h.n ? r->after[r->d2h.queue[0]] : INT32_MAX;
	bucket_sum(&r->discards, n + 1);
	for (uint32_t i = 0; i < p->hints.n; i++)
		if (p->hints.at[i].kind == UM_HINT_DISCARD)
			r->discards.item[r->discards.first[r->after[i] + 2]++] = i;
	return 0;
}

/* Cold: the device is empty; tensors alive at the begin have their content on the host. */
static int state_init(struct um_plan_run *r)
{
	const struct um_schedule *s = &r->plan->sched;

	r->state = calloc(r->atoms.n + 1, 1);
	r->spare = malloc(r->atoms.n + 1);
	r->begun = malloc(r->atoms.n + 1);
	if (!r->state || !r->spare || !r->begun)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->slots.n; i++) {
		if (um_slot_alive_first(&s->slots.at[i]) && !(s->slots.at[i].flags & UM_SLOT_TRANSIENT))
			memset(r->state + r->atoms.first[i], UM_ATOM_LIVE | UM_ATOM_FRESH,
			       r->atoms.first[i + 1] - r->atoms.first[i]);
	}
	return 0;
}

static int uses_init(struct um_plan_run *r)
{
	const struct um_schedule *s = &r->plan->sched;

	r->how = malloc(s->uses.n + 1);
	if (!r->how)
		return -ENOMEM;
	for (size_t i = 0; i < s->uses.n; i++) {
		const struct um_sched_use *u = &s->uses.at[i];
		int managed = !(s->slots.at[u->slot].flags & UM_SLOT_UNMANAGED);

		r->how[i] = (uint8_t)((managed ? UM_USE_MANAGED : 0) | (u->access & UM_READ ? UM_USE_READS : 0) |
				      (u->access & UM_WRITE ? UM_USE_WRITES : 0) | (u->dead_after ? UM_USE_DEAD : 0));
	}
	return 0;
}

static int host_resident_init(struct um_plan_run *r)
{
	const struct um_plan *p = r->plan;
	int err = um_host_resident_find(p, &r->host_resident);

	if (err || !r->host_resident)
		return err;
	r->host_atoms = calloc(p->sched.slots.n + 1, sizeof *r->host_atoms);
	for (uint32_t s = 0; r->host_atoms && s < p->sched.slots.n; s++)
		r->host_atoms[s] =
			um_plan_atoms_range(&r->atoms, s, r->host_resident[s].off, r->host_resident[s].bytes);
	return r->host_atoms ? 0 : -ENOMEM;
}

int um_plan_run_init(struct um_plan_run *r, const struct um_plan *p)
{
	int err;

	memset(r, 0, sizeof *r);
	r->plan = p;
	r->successor = um_schedule_successors(&p->sched);
	err = r->successor ? um_plan_atoms_init(&r->atoms, p) : -ENOMEM;
	if (!err)
		err = host_resident_init(r);
	if (!err)
		err = uses_init(r);
	if (!err)
		err = frees_init(r);
	if (!err)
		err = hints_init(r);
	if (!err)
		err = state_init(r);
	if (!err)
		err = um_plan_content_init(r);
	if (err)
		um_plan_run_fini(r);
	return err;
}

void um_plan_run_rename(struct um_plan_run *r)
{
	const struct um_schedule *s = &r->plan->sched;
	const uint32_t *first = r->atoms.first;

	memcpy(r->spare, r->state, r->atoms.n);
	for (uint32_t q = 0; q < s->slots.n; q++) {
		const struct um_slot *t = &s->slots.at[q];
		uint32_t p = t->carry, n = first[q + 1] - first[q];

		if (p != UM_NO_SLOT && p != q)
			memcpy(r->state + first[q], r->spare + first[p], n);
		else if (p == UM_NO_SLOT)
			memset(r->state + first[q], um_slot_alive_first(t) ? UM_ATOM_LIVE | UM_ATOM_FRESH : 0, n);
		if (t->flags & UM_SLOT_TRANSIENT)
			for (uint32_t i = first[q]; i < first[q + 1]; i++)
				r->state[i] &= (uint8_t) ~(UM_ATOM_LIVE | UM_ATOM_FRESH | UM_ATOM_LOST);
	}
	for (int i = 0; i < 2; i++) {
		struct um_plan_engine *e = i ? &r->h2d : &r->d2h;

		if (e->busy && r->successor[e->slot] != UM_NO_SLOT)
			e->slot = r->successor[e->slot];
	}
}

void um_plan_run_fini(struct um_plan_run *r)
{
	um_plan_atoms_fini(&r->atoms);
	free(r->state);
	free(r->spare);
	free(r->begun);
	free(r->successor);
	free(r->host_resident);
	free(r->host_atoms);
	free(r->how);
	um_plan_content_fini(r->content);
	free(r->after);
	free(r->until);
	free(r->due);
	free(r->frees.first);
	free(r->frees.item);
	free(r->discards.first);
	free(r->discards.item);
	free(r->h2d.queue);
	free(r->d2h.queue);
	memset(r, 0, sizeof *r);
}
