/* SPDX-License-Identifier: Apache-2.0
 *
 * log_address_map.h - finds the tensor at an address and a time, within one part of a umlog
 *
 * in    the tensors alive when the part began, and those allocated in it
 * out   for an address and a time, the innermost tensor
 * owns  a sorted table
 *
 * It serves driver records, which are delivered late: if no tensor was alive at that time, the result is a tensor that
 * had the address at another time of the part. Building is O(n log n), a look-up O(log n) plus a bounded scan of ranges
 * that begin before the address.
 */
#ifndef UM_IO_LOG_ADDRESS_MAP_H
#define UM_IO_LOG_ADDRESS_MAP_H

#include "io/log_part.h"

#define UM_LOG_NOWHERE UINT32_MAX

struct um_log_place {
	uint64_t address, bytes;
	int64_t from, to; /* lifetime, on the log's clock */
	uint32_t def;
};

struct um_log_address_map {
	UM_VEC(struct um_log_place) at; /* by address, larger ranges first */
};

/* 0, or -ENOMEM and the map is empty. */
int um_log_address_map_build(struct um_log_address_map *p, const struct um_log_part *part,
			     const struct um_log_defs *defs);
/* The definition, or UM_LOG_NOWHERE; the result is the same up to `*until`, which is after the address. */
uint32_t um_log_address_map_find(const struct um_log_address_map *p, uint64_t address, int64_t t, uint64_t *until);

#endif
