/* SPDX-License-Identifier: Apache-2.0
 *
 * advice.c - finds read-mostly and host-resident ranges
 */
#include "plan/advice.h"

#include "plan/spill.h"

/* By slot: ops leave its content the same in all iterations. */
static uint8_t *find_constant(const struct um_schedule *s)
{
	uint8_t *constant = malloc(s->slots.n + 1);

	if (!constant)
		return NULL;
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];

		constant[i] = t->birth < 0 && t->death < 0 && t->carry == i &&
			      !(t->flags & (UM_SLOT_TRANSIENT | UM_SLOT_UNMANAGED | UM_SLOT_SUPPLIED));
	}
	for (size_t i = 0; i < s->uses.n; i++)
		if (s->uses.at[i].access & UM_WRITE || s->uses.at[i].dead_after)
			constant[s->uses.at[i].slot] = 0;
	return constant;
}

static int by_range(const void *a, const void *b)
{
	const struct um_hint *x = a, *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* Merges adjacent ranges. */
static size_t join(struct um_hint *h, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct um_hint *last = kept ? &h[kept - 1] : NULL;
		uint64_t end = h[i].off + h[i].bytes;

		if (!last || last->slot != h[i].slot || last->off + last->bytes < h[i].off)
			h[kept++] = h[i];
		else if (end > last->off + last->bytes)
			last->bytes = end - last->off;
	}
	return kept;
}

int um_advice_add(struct um_plan *p)
{
	uint8_t *constant = find_constant(&p->sched);
	UM_VEC(struct um_hint) advice = {0};
	int err = constant ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < p->hints.n; i++) {
		struct um_hint h = p->hints.at[i];

		if (h.kind != UM_HINT_EVICT || !constant[h.slot])
			continue;
		err = um_vec_push(&advice, ((struct um_hint){.kind = UM_HINT_ADVISE,
							     .after = -1,
							     .slot = h.slot,
							     .off = h.off,
							     .bytes = h.bytes,
							     .copy = 1,
							     .advice = UM_ADVICE_READ_MOSTLY}));
	}
	if (!err && advice.n) {
		qsort(advice.at, advice.n, sizeof *advice.at, by_range);
		advice.n = join(advice.at, advice.n);
		err = um_vec_reserve(&p->hints, advice.n);
	}
	if (!err && advice.n) {
		memmove(p->hints.at + advice.n, p->hints.at, p->hints.n * sizeof *p->hints.at);
		memcpy(p->hints.at, advice.at, advice.n * sizeof *advice.at);
		p->hints.n += advice.n;
	}
	um_vec_fini(&advice);
	free(constant);
	return err;
}

int um_advice_drop(struct um_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->hints.n; i++)
		if (p->hints.at[i].kind != UM_HINT_ADVISE || p->hints.at[i].advice != UM_ADVICE_READ_MOSTLY)
			p->hints.at[n++] = p->hints.at[i];
	if (n == p->hints.n)
		return 0;
	p->hints.n = n;
	return 1;
}

/* The whole blocks of a slot, as a range of it. */
static struct um_host_resident inner_blocks(const struct um_slot *s)
{
	uint64_t lo = (s->place + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
	uint64_t hi = (s->place + s->bytes) & ~(UM_BLOCK_BYTES - 1);

	return lo < hi ? (struct um_host_resident){lo - s->place, hi - lo} : (struct um_host_resident){0, 0};
}

/* A use by the device: the range is no candidate if it is used as a whole. */
static void add_look_up(const struct um_sched_use *u, struct um_host_resident *host_resident, double *looked)
{
	uint64_t over = um_host_resident_overlap(u, &host_resident[u->slot]);

	if (over && u->touched >= u->bytes)
		host_resident[u->slot].bytes = 0;
	else if (over)
		looked[u->slot] += (double)u->touched * (double)over / (double)u->bytes;
}

int um_advice_host_resident(const struct um_plan *p, uint64_t remote, struct um_host_resident **out)
{
	const struct um_schedule *s = &p->sched;
	struct um_host_resident *host_resident = calloc(s->slots.n + 1, sizeof *host_resident);
	double *looked = calloc(s->slots.n + 1, sizeof *looked); /* bytes of the range that ops touch */
	int any = 0, spilled;

	*out = NULL;
	if (!host_resident || !looked) {
		free(host_resident);
		free(looked);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->slots.n; i++)
		if (um_host_resident_may(&s->slots.at[i], i))
			host_resident[i] = inner_blocks(&s->slots.at[i]);
	for (size_t i = 0; i < s->ops.n; i++)
		for (uint32_t k = 0; s->ops.at[i].stream != UM_STREAM_CPU && k < s->ops.at[i].n_uses; k++)
			add_look_up(&s->uses.at[s->ops.at[i].first_use + k], host_resident, looked);
	/* a table that exceeds the memory stays on the host, whatever a migration costs */
	for (size_t i = 0; i < s->ops.n; i++)
		for (uint32_t u = 0; s->ops.at[i].paged && u < s->ops.at[i].n_uses; u++) {
			uint32_t slot = s->uses.at[s->ops.at[i].first_use + u].slot;

			looked[slot] = looked[slot] > 0 ? 1 : 0;
		}
	for (size_t i = 0; i < s->slots.n; i++) {
		if (looked[i] <= 0 || looked[i] * (double)p->h2d >= (double)host_resident[i].bytes * (double)remote)
			host_resident[i].bytes = 0;
		any |= host_resident[i].bytes != 0;
	}
	free(looked);
	spilled = um_spill_paged(p, host_resident);
	if (spilled >= 0 && (any || spilled))
		*out = host_resident;
	else
		free(host_resident);
	return spilled < 0 ? spilled : 0;
}
