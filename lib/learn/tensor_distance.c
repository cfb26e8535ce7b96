/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/tensor_distance.h"

#define COMPARED_SHARE 4 /* a quarter of the period is compared, at least, and */
#define COMPARED_OPS 8 /* as many ops */

/* 1: op `at` uses the tensors of the op `distance` before it, but for those that were born since. The ops are equal. */
static int same_tensors(const struct um_iteration *all, uint32_t at, uint32_t distance)
{
	const struct um_iter_op *is = &all->ops.at[at], *was = &all->ops.at[at - distance];

	if (is->n_uses != was->n_uses)
		return 0;
	for (uint32_t i = 0; i < is->n_uses; i++) {
		uint32_t t = all->uses.at[is->first_use + i].tensor;

		if (t != all->uses.at[was->first_use + i].tensor &&
		    all->tensors.at[t].birth <= (int32_t)(at - distance))
			return 0;
	}
	return 1;
}

/* 1: each of the latest ops does, of a period or as many as there are. */
static int all_same(const struct um_iteration *all, uint32_t length, uint32_t distance)
{
	uint32_t end = (uint32_t)all->ops.n, n = end - distance < length ? end - distance : length;

	for (uint32_t i = 1; i <= n; i++)
		if (!same_tensors(all, end - i, distance))
			return 0;
	return 1;
}

uint32_t um_tensor_distance(const struct um_iteration *all, uint32_t length, uint32_t unit)
{
	uint32_t end = (uint32_t)all->ops.n, at = end - 1,
		 compared = length / COMPARED_SHARE > COMPARED_OPS ? length / COMPARED_SHARE : COMPARED_OPS;

	if (unit == length)
		return length;
	while (at > end - 1 - length && same_tensors(all, at, length))
		at--;
	if (at == end - 1 - length)
		return length;
	for (uint32_t d = length + unit; d + compared <= end && d <= at; d += unit)
		if (d % length && same_tensors(all, at, d) && all_same(all, length, d))
			return d;
	return length;
}
