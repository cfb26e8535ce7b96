/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/arrivals.h"

/* The touch for which touch t's part arrives: itself if it is the first of a life; the next one if what is dead in
 * between was dropped. */
static uint32_t find(const struct um_blocks *b, const struct um_choice *c, uint32_t t, int next)
{
	if (!next)
		return b->touch[t].born ? t : UINT32_MAX;
	if (b->touch[t].fate != UM_FATE_DEAD || um_choice_first(c, b, t) == UINT32_MAX)
		return UINT32_MAX;
	return b->to[t];
}

static void note(struct um_arrivals *a, const struct um_blocks *b, uint32_t touch, int fill)
{
	int32_t op = b->touch[touch].op;

	if (fill) {
		a->touch[a->first[op + 1]++] = touch;
		a->bytes[op] += b->part[b->touch[touch].part].bytes;
	} else {
		a->first[op + 2]++;
	}
}

int um_arrivals_build(struct um_arrivals *a, const struct um_blocks *b, const struct um_choice *c)
{
	a->first = calloc(b->n_ops + 2ull, sizeof *a->first);
	a->touch = malloc((2ull * b->n_touches + 1) * sizeof *a->touch);
	a->bytes = calloc(b->n_ops + 1ull, sizeof *a->bytes);
	if (!a->first || !a->touch || !a->bytes) {
		um_arrivals_fini(a);
		return -ENOMEM;
	}
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t t = 0; t < b->n_touches; t++) {
			for (int next = 0; next < 2; next++) {
				uint32_t to = find(b, c, t, next);

				if (to != UINT32_MAX)
					note(a, b, to, fill);
			}
		}
		for (int32_t i = 0; !fill && i <= b->n_ops; i++)
			a->first[i + 1] += a->first[i];
	}
	return 0;
}

void um_arrivals_fini(struct um_arrivals *a)
{
	free(a->first);
	free(a->touch);
	free(a->bytes);
	memset(a, 0, sizeof *a);
}
