/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.h - host memory of a reader that is freed as a whole, with interned strings
 *
 * Memory from an arena does not move until um_arena_fini; a loaded trace points into it.
 */
#ifndef UM_IO_ARENA_H
#define UM_IO_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct um_arena {
	struct um_arena_chunk *chunks; /* the newest first */
	size_t used, cap; /* of the newest */
	const char **names; /* open addressing by content, NULL empty */
	size_t n_names, names_cap;
};

/* All zero is an empty arena. */
void um_arena_fini(struct um_arena *a);

/* A copy of `bytes` bytes, aligned for anything; NULL without memory. bytes > 0. */
void *um_arena_copy(struct um_arena *a, const void *data, size_t bytes);

/* The one copy of a string; NULL without memory. */
const char *um_arena_intern(struct um_arena *a, const char *s);

#endif
