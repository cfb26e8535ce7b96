/* SPDX-License-Identifier: Apache-2.0 */
#include "report/index.h"

#include <errno.h>
#include <stdlib.h>

#define SIZE_MIN 64

void um_index_fini(struct um_index *x)
{
	free(x->at);
	*x = (struct um_index){0};
}

uint32_t um_index_find(const struct um_index *x, uint64_t hash, int (*same)(const void *user, uint32_t row),
		       const void *user)
{
	if (!x->size)
		return UM_INDEX_NONE;
	for (size_t i = (uint32_t)hash & (x->size - 1); x->at[i].row; i = (i + 1) & (x->size - 1))
		if (x->at[i].hash == (uint32_t)hash && same(user, x->at[i].row - 1))
			return x->at[i].row - 1;
	return UM_INDEX_NONE;
}

static void put(struct um_index *x, struct um_index_place place)
{
	size_t i = place.hash & (x->size - 1);

	while (x->at[i].row)
		i = (i + 1) & (x->size - 1);
	x->at[i] = place;
}

int um_index_add(struct um_index *x, uint64_t hash, uint32_t row)
{
	if (2 * (x->n + 1) > x->size) {
		struct um_index wide = {.n = x->n, .size = x->size ? 2 * x->size : SIZE_MIN};

		wide.at = calloc(wide.size, sizeof *wide.at);
		if (!wide.at)
			return -ENOMEM;
		for (size_t i = 0; i < x->size; i++)
			if (x->at[i].row)
				put(&wide, x->at[i]);
		free(x->at);
		*x = wide;
	}
	put(x, (struct um_index_place){row + 1, (uint32_t)hash});
	x->n++;
	return 0;
}
