/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/arrivals.h"

/* Notes the touch that a part arrives for. */
static void note(struct um_arrivals *a, const struct um_blocks *b, uint32_t touch, uint32_t *seen, uint32_t *n)
{
	const struct um_touch *t = &b->touch[touch];

	seen[(*n)++] = touch;
	a->first[t->op + 2]++;
	a->bytes[t->op] += b->part[t->part].bytes;
}

/* A part arrives for the first touch of a life, and for the next one if what is dead in between was dropped. */
static uint32_t note_all(struct um_arrivals *a, const struct um_blocks *b, const struct um_choice *c, uint32_t *seen)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < b->n_touches; t++) {
		if (b->touch[t].born)
			note(a, b, t, seen, &n);
		if (b->touch[t].fate == UM_FATE_DEAD && um_choice_first(c, t) != UINT32_MAX)
			note(a, b, b->to[t], seen, &n);
	}
	return n;
}

int um_arrivals_build(struct um_arrivals *a, const struct um_blocks *b, const struct um_choice *c)
{
	uint32_t *seen = malloc((2ull * b->n_touches + 1) * sizeof *seen), n;

	a->first = calloc(b->n_ops + 2ull, sizeof *a->first);
	a->bytes = calloc(b->n_ops + 1ull, sizeof *a->bytes);
	a->touch = NULL;
	if (!seen || !a->first || !a->bytes)
		goto no_memory;
	n = note_all(a, b, c, seen);
	a->touch = malloc((n + 1ull) * sizeof *a->touch);
	if (!a->touch)
		goto no_memory;
	for (int32_t i = 0; i <= b->n_ops; i++)
		a->first[i + 1] += a->first[i];
	for (uint32_t i = 0; i < n; i++)
		a->touch[a->first[b->touch[seen[i]].op + 1]++] = seen[i];
	free(seen);
	return 0;
no_memory:
	free(seen);
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
