/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/iteration_start.h"

#include <errno.h>
#include <stdlib.h>

struct work {
	const struct um_iteration *all;
	uint32_t begin, length; /* the first op of two periods */
	int64_t *kept; /* by position in the first period: bytes of live content, as differences; length + 1 entries */
	int32_t *last; /* by tensor: the position after its last use or its birth, at least 0 */
};

/* A use in op `at`, counted from `begin`. The content is live since the previous use, unless the op overwrites all of
 * it. */
static void add_use(struct work *w, const struct um_iter_use *u, uint32_t at)
{
	const struct um_iter_tensor *t = &w->all->tensors.at[u->tensor];
	int whole = u->access == UM_WRITE && u->touched == u->bytes && u->bytes == t->bytes;
	uint32_t from = (uint32_t)w->last[u->tensor], to = at + 1 < w->length ? at + 1 : w->length;

	if (!whole && from < to) {
		w->kept[from] += (int64_t)t->bytes;
		w->kept[to] -= (int64_t)t->bytes;
	}
	w->last[u->tensor] = (int32_t)at + 1;
}

static void add_uses(struct work *w)
{
	for (size_t i = 0; i < w->all->tensors.n; i++) {
		int32_t birth = w->all->tensors.at[i].birth;

		w->last[i] = birth > (int32_t)w->begin ? birth - (int32_t)w->begin + 1 : 0;
	}
	for (uint32_t i = 0; i < 2 * w->length; i++) {
		const struct um_iter_op *op = &w->all->ops.at[w->begin + i];

		for (uint32_t k = 0; k < op->n_uses; k++)
			add_use(w, &w->all->uses.at[op->first_use + k], i);
	}
}

int um_iteration_start(const struct um_iteration *all, uint32_t length, uint32_t first, uint32_t *out)
{
	struct work w = {.all = all, .begin = (uint32_t)all->ops.n - 2 * length, .length = length};
	int64_t least = INT64_MAX, kept = 0;

	w.kept = calloc(length + 1, sizeof *w.kept);
	w.last = malloc((all->tensors.n + 1) * sizeof *w.last);
	if (!w.kept || !w.last) {
		free(w.kept);
		free(w.last);
		return -ENOMEM;
	}
	add_uses(&w);
	for (uint32_t i = 0; i < length; i++) {
		kept += w.kept[i];
		w.kept[i] = kept;
	}
	for (uint32_t i = 0; i < length; i++) {
		uint32_t at = (first + i) % length;

		if (w.kept[at] >= least)
			continue;
		least = w.kept[at];
		*out = at;
	}
	free(w.kept);
	free(w.last);
	return 0;
}
