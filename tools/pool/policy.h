/* SPDX-License-Identifier: Apache-2.0
 *
 * policy.h - the pools that are compared: each answers births as they come, or packs a period in advance
 *
 * in    sizes; or the calls of a period
 * out   addresses, bytes taken from the device, steps
 *
 * A step is one record of the pool that a call examines: an entry of a table or of a list, a node of a tree on the way
 * from its root. It does not depend on the machine; bench/pool.sh counts instructions. Addresses of different pools
 * have nothing to do with each other.
 */
#ifndef UM_POOL_POLICY_H
#define UM_POOL_POLICY_H

#include "pool/calls.h"

struct um_pool_piece {
	uint64_t addr;
	void *record; /* the pool's own */
};

struct um_pool_policy {
	const char *name;
	/* Online pools. open: NULL, out of memory. alloc: 0 or -ENOMEM. reserved: bytes that the pool has taken from
	 * the device and not returned. close: all pieces are freed. */
	void *(*open)(void);
	int (*alloc)(void *pool, uint64_t bytes, struct um_pool_piece *out);
	void (*free)(void *pool, struct um_pool_piece *piece);
	uint64_t (*reserved)(const void *pool);
	uint64_t (*steps)(const void *pool); /* so far */
	void (*close)(void *pool);
	/* Offline ones: addresses by tensor, of those that are alive in `last`; and bytes taken. `before`: the calls
	 * from which they are packed. 0 or -ENOMEM. */
	int (*pack)(const struct um_pool_calls *c, struct um_pool_window before, struct um_pool_window last,
		    uint64_t *addr, uint64_t *reserved, uint64_t *elsewhere);
};

/* The i-th, in the order of the table; NULL past the last. */
const struct um_pool_policy *um_pool_policy_at(unsigned i);

extern const struct um_pool_policy um_pool_library, um_pool_smartpool, um_pool_best_fit, um_pool_caching,
	um_pool_first_fit, um_pool_cuda_malloc;

#endif
