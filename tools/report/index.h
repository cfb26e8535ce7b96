/* SPDX-License-Identifier: Apache-2.0
 *
 * index.h - a hash table of row numbers with open addressing
 *
 * in    the key's hash, and a function that says whether a row has that key
 * out   the row, or none
 * owns  the slots; the rows are the caller's
 */
#ifndef UM_REPORT_INDEX_H
#define UM_REPORT_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct um_index_place {
	uint32_t row; /* + 1; 0: free */
	uint32_t hash; /* lower half of the hash: distinguishes most keys without access to the row */
};

struct um_index {
	struct um_index_place *at;
	size_t n, size; /* size: 0 or a power of two, at least 2 n */
};

#define UM_INDEX_NONE UINT32_MAX

void um_index_fini(struct um_index *x); /* zeroed: empty */

uint32_t um_index_find(const struct um_index *x, uint64_t hash, int (*same)(const void *user, uint32_t row),
		       const void *user);

/* Adds a row that is not in the table. 0 or -ENOMEM. */
int um_index_add(struct um_index *x, uint64_t hash, uint32_t row);

#endif
