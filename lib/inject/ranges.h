/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.h - the program's allocations of device memory, by address
 *
 * in    allocations and frees
 * out   the allocation that an address belongs to
 * owns  copies of the entries
 *
 * Looking up takes no lock and no allocation for an address that the calling thread has looked up before; entries are
 * kept per thread until something is freed. Thread-safe. One list for the process.
 */
#ifndef UM_INJECT_RANGES_H
#define UM_INJECT_RANGES_H

#include <stdint.h>

struct um_injected; /* inject/session.h */

enum um_range_kind {
	UM_RANGE_ADOPTED, /* managed memory of the driver */
	UM_RANGE_OWN, /* of umadv_alloc */
	UM_RANGE_DEVICE /* not managed */
};

struct um_range {
	uint64_t at, bytes;
	struct um_injected *device;
	enum um_range_kind kind;
	int converted; /* the program asked for device memory and got managed memory */
};

int um_ranges_add(const struct um_range *r); /* 0 or -ENOMEM */
int um_ranges_remove(uint64_t at, struct um_range *out); /* the one that starts there: 1, or 0: none */
int um_ranges_find(uint64_t addr, struct um_range *out); /* 1; 0: none */
int um_ranges_any(void); /* 0: the list has never had an entry */

/* Removes all of a device, or of each if NULL. */
void um_ranges_drop(const struct um_injected *device);

#endif
