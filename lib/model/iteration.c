/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration.c - memory of a recorded iteration
 */
#include "model/iteration.h"

void um_iteration_init(struct um_iteration *it)
{
	memset(it, 0, sizeof *it);
}

static void strings_free(struct um_iteration *it)
{
	for (size_t i = 0; i < it->strings.n; i++)
		free(it->strings.at[i]);
	um_vec_clear(&it->strings);
}

void um_iteration_clear(struct um_iteration *it)
{
	strings_free(it);
	um_vec_clear(&it->tensors);
	um_vec_clear(&it->ops);
	um_vec_clear(&it->uses);
	um_vec_clear(&it->relaunch);
	um_vec_clear(&it->ws);
	um_vec_clear(&it->births);
	um_vec_clear(&it->late_frees);
	um_vec_clear(&it->idle_frees);
	um_vec_clear(&it->nests);
	it->n = 0;
	it->signature = 0;
	it->incomplete = 0;
}

void um_iteration_fini(struct um_iteration *it)
{
	strings_free(it);
	um_vec_fini(&it->strings);
	um_vec_fini(&it->tensors);
	um_vec_fini(&it->ops);
	um_vec_fini(&it->uses);
	um_vec_fini(&it->relaunch);
	um_vec_fini(&it->ws);
	um_vec_fini(&it->births);
	um_vec_fini(&it->late_frees);
	um_vec_fini(&it->idle_frees);
	um_vec_fini(&it->nests);
	um_iteration_init(it);
}
