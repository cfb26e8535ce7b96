/* SPDX-License-Identifier: Apache-2.0
 *
 * baseline.c - computes the load, births and frees of an iteration without evictions
 */
#include "plan/baseline.h"

#include "plan/blocks.h"

/* Counts differences by op, then sums them. A gap of a whole iteration or more (rotating slots) counts at every op. */
static void find_load(struct um_baseline *s, const struct um_blocks *b)
{
	for (uint32_t v = 0; v < b->n_visits; v++) {
		int32_t from = b->visit[v].op + b->visit[v].absent, to = b->visit[v].held;

		for (; to - from >= b->n_ops; to -= b->n_ops)
			s->load[0]++;
		s->load[from]++;
		if (to > b->n_ops) {
			s->load[0]++;
			s->load[to - b->n_ops]--;
		} else {
			s->load[to]--;
		}
	}
	for (int32_t i = 1; i < b->n_ops; i++)
		s->load[i] += s->load[i - 1];
}

/* Does the part arrive for this touch, without content? */
static int is_born(const struct um_blocks *b, uint32_t t)
{
	return b->touch[t].born && !b->visit[b->touch[t].visit].absent;
}

/* Counts are stored one place up and then summed, so that filling leaves first_born[i] at the begin of op i. */
static int find_born(struct um_baseline *s, const struct um_blocks *b)
{
	for (uint32_t t = 0; t < b->n_touches; t++) {
		if (!is_born(b, t))
			continue;
		s->first_born[b->touch[t].op + 2]++;
		s->born_bytes[b->touch[t].op] += b->part[b->touch[t].part].bytes;
	}
	for (int32_t i = 0; i <= b->n_ops; i++)
		s->first_born[i + 1] += s->first_born[i];
	s->born = malloc((s->first_born[b->n_ops + 1] + 1ull) * sizeof *s->born);
	if (!s->born)
		return -ENOMEM;
	for (uint32_t t = 0; t < b->n_touches; t++)
		if (is_born(b, t))
			s->born[s->first_born[b->touch[t].op + 1]++] = t;
	return 0;
}

static void find_bytes(struct um_baseline *s, const struct um_blocks *b)
{
	for (uint32_t t = 0; t < b->n_touches; t++) {
		const struct um_touch *x = &b->touch[t];
		uint64_t bytes = b->part[x->part].bytes;

		if (b->visit[x->visit].on_cpu)
			continue;
		if (x->liveness == UM_LIVENESS_FREED)
			s->freed[x->until % b->n_ops] += bytes;
		if (x->until >= b->n_ops)
			s->resident += bytes;
	}
}

int um_baseline_build(struct um_baseline *s, const struct um_blocks *b)
{
	memset(s, 0, sizeof *s);
	s->load = calloc(b->n_ops + 1ull, sizeof *s->load);
	s->first_born = calloc(b->n_ops + 2ull, sizeof *s->first_born);
	s->born_bytes = calloc(b->n_ops + 1ull, sizeof *s->born_bytes);
	s->freed = calloc(b->n_ops + 1ull, sizeof *s->freed);
	if (!s->load || !s->first_born || !s->born_bytes || !s->freed || find_born(s, b)) {
		um_baseline_fini(s);
		return -ENOMEM;
	}
	find_load(s, b);
	find_bytes(s, b);
	return 0;
}

void um_baseline_fini(struct um_baseline *s)
{
	free(s->load);
	free(s->first_born);
	free(s->born);
	free(s->born_bytes);
	free(s->freed);
	memset(s, 0, sizeof *s);
}
