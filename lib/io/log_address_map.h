/* SPDX-License-Identifier: Apache-2.0
 *
 * log_address_map.h - which tensor of a part an address was, while a umlog is written
 *
 * in    the tensors that were alive when the part began, and those that were born in it
 * out   for an address and a time, the innermost of them
 * owns  a sorted table
 *
 * For what is told after it happened: where none was alive at that time, one that was there at another counts.
 * Building is O(n log n), finding O(log n) and a bounded look at what begins before the address.
 */
#ifndef UM_IO_LOG_ADDRESS_MAP_H
#define UM_IO_LOG_ADDRESS_MAP_H

#include "io/log_part.h"

#define UM_LOG_NOWHERE UINT32_MAX

struct um_log_place {
	uint64_t address, bytes;
	int64_t from, to; /* alive: the clock's own time */
	uint32_t def;
};

struct um_log_address_map {
	UM_VEC(struct um_log_place) at; /* by address, the larger first */
};

/* 0 or -ENOMEM, and it is empty. */
int um_log_address_map_build(struct um_log_address_map *p, const struct um_log_part *part,
			     const struct um_log_defs *defs);
/* The definition, or UM_LOG_NOWHERE; it is the same up to `*until`, which lies behind the address. */
uint32_t um_log_address_map_find(const struct um_log_address_map *p, uint64_t address, int64_t t, uint64_t *until);

#endif
