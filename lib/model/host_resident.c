/* SPDX-License-Identifier: Apache-2.0
 *
 * host_resident.c - finds and checks the ranges that a plan keeps on the host
 */
#include "model/host_resident.h"

#include "base/diag.h"

static struct um_host_resident both(const struct um_host_resident *a, const struct um_host_resident *b)
{
	uint64_t lo = a->off > b->off ? a->off : b->off;
	uint64_t hi = a->off + a->bytes < b->off + b->bytes ? a->off + a->bytes : b->off + b->bytes;

	return lo < hi ? (struct um_host_resident){lo, hi - lo} : (struct um_host_resident){0, 0};
}

int um_host_resident_find(const struct um_plan *p, struct um_host_resident **out)
{
	struct um_host_resident *ranges, *preferred;
	size_t any = 0;

	*out = NULL;
	for (size_t i = 0; i < p->hints.n; i++)
		any += p->hints.at[i].kind == UM_HINT_ADVISE && p->hints.at[i].advice == UM_ADVICE_ACCESSED_BY;
	if (!any || !p->remote)
		return 0;
	ranges = calloc(2 * p->sched.slots.n + 1, sizeof *ranges);
	if (!ranges)
		return -ENOMEM;
	preferred = ranges + p->sched.slots.n;
	for (size_t i = 0; i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];

		if (h->kind == UM_HINT_ADVISE && h->advice == UM_ADVICE_PREFERRED)
			preferred[h->slot] = (struct um_host_resident){h->off, h->bytes};
		else if (h->kind == UM_HINT_ADVISE && h->advice == UM_ADVICE_ACCESSED_BY)
			ranges[h->slot] = (struct um_host_resident){h->off, h->bytes};
	}
	for (size_t s = 0; s < p->sched.slots.n; s++)
		ranges[s] = both(&ranges[s], &preferred[s]);
	*out = ranges;
	return 0;
}

uint64_t um_host_resident_overlap(const struct um_sched_use *use, const struct um_host_resident *ranges)
{
	struct um_host_resident u = {use->off, use->bytes};

	return both(&u, ranges).bytes;
}

uint64_t um_host_resident_ns(const struct um_schedule *s, const struct um_sched_op *op,
			     const struct um_host_resident *ranges, uint64_t rate)
{
	double bytes = 0;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		const struct um_sched_use *use = &s->uses.at[u];
		uint64_t over = um_host_resident_overlap(use, &ranges[use->slot]);

		bytes += over ? (double)use->touched * (double)over / (double)use->bytes : 0;
	}
	return (uint64_t)(bytes * 1e9 / (double)rate + 0.5);
}

/* The bytes of the whole blocks that a use lies in. */
static uint64_t block_bytes(const struct um_plan *p, const struct um_sched_use *u)
{
	uint64_t place = p->sched.slots.at[u->slot].place, lo = (place == UINT64_MAX ? 0 : place) + u->off;

	return ((lo + u->bytes + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1)) - (lo & ~(UM_BLOCK_BYTES - 1));
}

/* By slot: is it used by an op whose ranges, in whole blocks, exceed the budget? To be freed; NULL: out of memory. */
static uint8_t *find_large(const struct um_plan *p)
{
	uint8_t *large = calloc(p->sched.slots.n + 1, 1);

	for (size_t i = 0; large && i < p->sched.ops.n; i++) {
		const struct um_sched_op *op = &p->sched.ops.at[i];
		const struct um_sched_use *use = &p->sched.uses.at[op->first_use];
		uint64_t bytes = 0;

		for (uint32_t k = 0; k < op->n_uses; k++)
			bytes += block_bytes(p, &use[k]);
		for (uint32_t k = 0; k < op->n_uses && bytes > p->budget; k++)
			large[use[k].slot] = 1;
	}
	return large;
}

/* A slot with a range that some op uses as a whole, and no large one; UM_NO_SLOT: there is none. */
static uint32_t find_whole(const struct um_plan *p, const struct um_host_resident *ranges, const uint8_t *large)
{
	for (size_t i = 0; i < p->sched.ops.n; i++) {
		const struct um_sched_op *op = &p->sched.ops.at[i];

		for (uint32_t k = 0; op->stream != UM_STREAM_CPU && k < op->n_uses; k++) {
			const struct um_sched_use *u = &p->sched.uses.at[op->first_use + k];

			if (u->touched >= u->bytes && !large[u->slot] && um_host_resident_overlap(u, &ranges[u->slot]))
				return u->slot;
		}
	}
	return UM_NO_SLOT;
}

int um_host_resident_check(const struct um_plan *p, const struct um_host_resident *ranges, char *why, size_t size)
{
	uint8_t *large;
	uint32_t whole;

	for (uint32_t i = 0; i < p->sched.slots.n; i++) {
		const struct um_slot *s = &p->sched.slots.at[i];

		if (ranges[i].bytes &&
		    (s->birth >= 0 || s->death >= 0 || s->carry != i || s->flags & UM_SLOT_UNMANAGED))
			return um_refuse(
				why, size,
				"slot %u is advised to stay on the host, but it does not live in all iterations", i);
	}
	large = find_large(p);
	if (!large)
		return -ENOMEM;
	whole = find_whole(p, ranges, large);
	free(large);
	if (whole != UM_NO_SLOT)
		return um_refuse(why, size,
				 "slot %u is advised to stay on the host, but an op uses it as a whole, and none that "
				 "exceeds the budget does",
				 whole);
	for (size_t i = 0; i < p->hints.n; i++) {
		const struct um_hint *h = &p->hints.at[i];
		struct um_sched_use range = {.off = h->off, .bytes = h->bytes};

		if (h->kind != UM_HINT_ADVISE && h->kind != UM_HINT_RECOMPUTE &&
		    um_host_resident_overlap(&range, &ranges[h->slot]))
			return um_refuse(why, size, "hint %zu at op %d: slot %u is advised to stay on the host", i,
					 h->at, h->slot);
	}
	return 0;
}
