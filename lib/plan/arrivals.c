/* SPDX-License-Identifier: Apache-2.0
 *
 * arrivals.c - lists the arrivals of each op
 */
#include "plan/arrivals.h"

/* The touch for which a part arrives whose content was dead and dropped after touch t; UINT32_MAX: none. */
static uint32_t next_of(const struct um_blocks *b, uint32_t t)
{
	uint32_t to = b->touch[t].liveness == UM_LIVENESS_DEAD ? b->to[t] : UINT32_MAX;

	return to != UINT32_MAX && b->visit[b->touch[to].visit].absent ? UINT32_MAX : to;
}

/* Counts dropped parts by op, two places up; returns their number. */
static uint32_t count(struct um_arrivals *a, const struct um_blocks *b, const struct um_choice *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_left; i++) {
		uint32_t to = next_of(b, c->left[i]);

		if (to == UINT32_MAX)
			continue;
		a->first[b->touch[to].op + 2]++;
		a->bytes[b->touch[to].op] += b->part[b->touch[to].part].bytes;
		n++;
	}
	return n;
}

/* A part arrives for the first touch of a life, and for the next one if dead content in between was dropped. */
static void fill(struct um_arrivals *a, const struct um_blocks *b, const struct um_choice *c)
{
	const struct um_baseline *s = &b->baseline;

	for (int32_t op = 0; op < b->n_ops; op++) {
		uint32_t n = s->first_born[op + 1] - s->first_born[op];

		a->first[op + 2] += a->first[op + 1] + n;
		memcpy(a->touch + a->first[op + 1], s->born + s->first_born[op], n * sizeof *a->touch);
		a->first[op + 1] += n;
	}
	for (uint32_t i = 0; i < c->n_left; i++) {
		uint32_t to = next_of(b, c->left[i]);

		if (to != UINT32_MAX)
			a->touch[a->first[b->touch[to].op + 1]++] = to;
	}
}

int um_arrivals_build(struct um_arrivals *a, const struct um_blocks *b, const struct um_choice *c)
{
	uint32_t n;

	a->first = calloc(b->n_ops + 2ull, sizeof *a->first);
	a->bytes = malloc((b->n_ops + 1ull) * sizeof *a->bytes);
	a->touch = NULL;
	if (!a->first || !a->bytes)
		goto no_memory;
	memcpy(a->bytes, b->baseline.born_bytes, (b->n_ops + 1ull) * sizeof *a->bytes);
	n = count(a, b, c);
	a->touch = malloc((b->baseline.first_born[b->n_ops] + n + 1ull) * sizeof *a->touch);
	if (!a->touch)
		goto no_memory;
	fill(a, b, c);
	return 0;
no_memory:
	um_arrivals_fini(a);
	return -ENOMEM;
}

void um_arrivals_fini(struct um_arrivals *a)
{
	free(a->first);
	free(a->touch);
	free(a->bytes);
	memset(a, 0, sizeof *a);
}
