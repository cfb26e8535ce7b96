/* SPDX-License-Identifier: Apache-2.0
 *
 * nesting.c - finds tensors that contain other tensors
 */
#include "learn/nesting.h"

int um_nesting_init(struct um_nesting *n, const struct um_iteration *it, const struct um_previous_iteration *now)
{
	size_t count = it->tensors.n;
	unsigned char *used = calloc(count + 1, 1);

	n->host = malloc((count + 1) * sizeof *n->host);
	n->off = calloc(count + 1, sizeof *n->off);
	n->whole = calloc(count + 1, 1);
	n->parts_only = calloc(count + 1, 1);
	if (!used || !n->host || !n->off || !n->whole || !n->parts_only) {
		free(used);
		um_nesting_fini(n);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		n->host[i] = i;
	for (size_t i = 0; i < it->uses.n; i++)
		used[it->uses.at[i].tensor] = 1;
	/* entries of one tensor come innermost first: the last used one is the outermost */
	for (size_t i = 0; i < it->nests.n; i++) {
		const struct um_iter_nest *nest = &it->nests.at[i];
		uint32_t outer = um_previous_iteration_find(now, nest->outer);

		if (outer == UM_NO_NUMBER)
			continue;
		if (!used[outer]) {
			n->parts_only[outer] = 1;
			continue;
		}
		n->host[nest->inner] = outer;
		n->off[nest->inner] = nest->off;
		n->whole[outer] = 1;
	}
	free(used);
	return 0;
}

void um_nesting_fini(struct um_nesting *n)
{
	free(n->host);
	free(n->off);
	free(n->whole);
	free(n->parts_only);
	memset(n, 0, sizeof *n);
}
