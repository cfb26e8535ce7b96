/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme_superneurons_drops.c - the cost-aware recomputation of SuperNeurons
 *
 *   checkpoints   convolutions, other products, joins and concatenations keep their outputs
 *   segments      the other ops between two checkpoints: cheap ones. Their outputs are dropped after their last use on
 *                 the way forward and made again on the way back, the whole segment once
 *   cost          a segment is made again only if its outputs together are no larger than what the largest op uses, so
 *                 that it does not raise the peak. The paper makes the outputs of larger ones again one by one, with
 *                 quadratic work; here these are left to the tensor cache
 *
 * An output is dropped in the longest gap between two of its uses.
 */
#include "plan/scheme.h"

static int is_checkpoint(const char *name)
{
	return name && (um_scheme_is_product(name) || strncmp(name, "add", 3) == 0 || strncmp(name, "cat", 3) == 0);
}

/* Bytes of the ranges that an op uses. */
static uint64_t used_bytes(const struct um_schedule *s, const struct um_sched_op *op)
{
	uint64_t bytes = 0;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		bytes += s->uses.at[u].bytes;
	return bytes;
}

/* Are all ops cheap that must be launched again for the slot's content at op `to`? */
static int is_cheap(const struct um_versions *v, uint32_t slot, int32_t to)
{
	uint32_t version = um_versions_at(v, slot, to), base = um_versions_base(v, slot, version);

	for (uint32_t t = base; base != UINT32_MAX && t <= version; t++)
		if (v->touch[t].writes && is_checkpoint(v->s->ops.at[v->touch[t].op].name))
			return 0;
	return base != UINT32_MAX;
}

/* The longest gap of a slot, in time, whose content can be made again by cheap ops. 0 if there is none. */
static int find_gap(const struct um_versions *v, const uint64_t *clock, uint32_t slot, struct um_drop *gap)
{
	uint64_t longest = 0;

	for (uint32_t k = v->first[slot]; k + 1 < v->first[slot + 1]; k++) {
		int32_t from = v->touch[k].op, to = v->touch[k + 1].op;

		if (!v->touch[k + 1].needs || clock[to] - clock[from + 1] <= longest ||
		    !um_slot_alive_at(&v->s->slots.at[slot], to) || !is_cheap(v, slot, to))
			continue;
		longest = clock[to] - clock[from + 1];
		*gap = (struct um_drop){slot, from, to, v->s->slots.at[slot].bytes, 0, 0};
	}
	return longest > 0;
}

struct segments {
	uint64_t *clock; /* by op; n + 1 */
	uint32_t *of; /* by op: its segment */
	uint64_t *bytes; /* by segment: outputs that would be dropped */
	uint64_t most; /* bytes of the largest op */
};

static int find_segments(struct segments *g, const struct um_schedule *s)
{
	size_t n = s->ops.n;
	uint32_t segment = 0;

	g->clock = calloc(n + 1, sizeof *g->clock);
	g->of = calloc(n + 1, sizeof *g->of);
	g->bytes = calloc(n + 1, sizeof *g->bytes);
	if (!g->clock || !g->of || !g->bytes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t bytes = used_bytes(s, &s->ops.at[i]);

		segment += is_checkpoint(s->ops.at[i].name);
		g->of[i] = segment;
		g->most = bytes > g->most ? bytes : g->most;
		g->clock[i + 1] = g->clock[i] + s->ops.at[i].ns;
	}
	return 0;
}

/* The segment that makes a dropped slot. */
static uint32_t segment_of(const struct segments *g, const struct um_versions *v, const struct um_drop *gap)
{
	return g->of[v->touch[um_versions_at(v, gap->slot, gap->to)].op];
}

int um_superneurons_drops(const struct um_versions *v, const struct um_plan *plan, const struct um_profile *profile,
			  struct um_drops *d)
{
	const struct um_schedule *s = v->s;
	struct segments g = {0};
	int err = find_segments(&g, s);
	uint32_t n = 0, kept = 0;

	(void)plan;
	(void)profile;
	memset(d, 0, sizeof *d);
	if (!err) {
		d->at = malloc((s->slots.n + 1) * sizeof *d->at);
		err = d->at ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; !err && i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];

		if (t->bytes >= UM_DROP_LEAST && !(t->flags & UM_SLOT_UNMANAGED) && find_gap(v, g.clock, i, &d->at[n]))
			n++;
	}
	for (uint32_t i = 0; i < n; i++)
		g.bytes[segment_of(&g, v, &d->at[i])] += d->at[i].bytes;
	for (uint32_t i = 0; i < n; i++)
		if (g.bytes[segment_of(&g, v, &d->at[i])] <= g.most)
			d->at[kept++] = d->at[i];
	d->n = kept;
	free(g.clock);
	free(g.of);
	free(g.bytes);
	return err;
}
