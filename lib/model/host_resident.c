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

int um_host_resident_check(const struct um_plan *p, const struct um_host_resident *ranges, char *why, size_t size)
{
	for (uint32_t i = 0; i < p->sched.slots.n; i++) {
		const struct um_slot *s = &p->sched.slots.at[i];

		if (ranges[i].bytes &&
		    (s->birth >= 0 || s->death >= 0 || s->carry != i || s->flags & UM_SLOT_UNMANAGED))
			return um_refuse(
				why, size,
				"slot %u is advised to stay on the host, but it does not live in all iterations", i);
	}
	for (size_t i = 0; i < p->sched.ops.n; i++) {
		const struct um_sched_op *op = &p->sched.ops.at[i];

		for (uint32_t k = 0; op->stream != UM_STREAM_CPU && k < op->n_uses; k++) {
			const struct um_sched_use *u = &p->sched.uses.at[op->first_use + k];

			if (u->touched >= u->bytes && um_host_resident_overlap(u, &ranges[u->slot]))
				return um_refuse(why, size,
						 "slot %u is advised to stay on the host, but an op uses it as a whole",
						 u->slot);
		}
	}
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
