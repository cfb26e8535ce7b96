/* SPDX-License-Identifier: Apache-2.0
 *
 * names.h - interned strings
 *
 * in    strings that the caller may overwrite
 * out   permanent strings, equal ones at the same address
 * owns  the copies
 *
 * Op path: a known name allocates nothing. Names are never removed: programs have few different names. Not thread-safe.
 */
#ifndef UM_RECORD_NAMES_H
#define UM_RECORD_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct um_name {
	uint64_t hash;
	char *text; /* owned; NULL: an empty slot */
};

#define UM_NAMES_RECENT 256

struct um_names {
	struct um_name *at; /* open addressing, at most half full */
	size_t n, size; /* size: 0 or a power of two */
	struct um_name recent[UM_NAMES_RECENT]; /* recent results by address of the caller's string: most callers pass a
						   literal, and comparing is cheaper than hashing. Texts borrowed */
};

void um_names_init(struct um_names *names);
void um_names_fini(struct um_names *names);

/* The interned string and its um_hash_str(), valid until the next call; NULL: out of memory. `text` is not NULL. */
const struct um_name *um_names_find(struct um_names *names, const char *text);

#endif
