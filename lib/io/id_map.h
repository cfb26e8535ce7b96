/* SPDX-License-Identifier: Apache-2.0
 *
 * id_map.h - hash map from 64-bit ids of a file to one word each
 *
 * Open addressing, linear probing, at most half full. Keys are below UINT64_MAX. Time does not depend on the order of
 * the ids, and no result depends on the order in the table. Expected O(1).
 */
#ifndef UM_IO_ID_MAP_H
#define UM_IO_ID_MAP_H

#include <stddef.h>
#include <stdint.h>

struct um_id_map {
	struct um_id_slot {
		uint64_t key; /* UINT64_MAX: empty */
		uint64_t value;
	} * slots;
	size_t n, cap; /* cap: 0 or a power of two */
};

/* All zero is an empty map. */
void um_id_map_fini(struct um_id_map *m);

/* The value of `key`, NULL if absent. Valid until the next add or remove. */
uint64_t *um_id_map_find(const struct um_id_map *m, uint64_t key);

/* Adds `key`, which must be absent. 0 or -ENOMEM. */
int um_id_map_add(struct um_id_map *m, uint64_t key, uint64_t value);
void um_id_map_remove(struct um_id_map *m, uint64_t key); /* does nothing if absent */

#endif
