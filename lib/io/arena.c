/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c - chunks of memory and a table of interned strings
 */
#include "io/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define CHUNK (256u << 10)
#define ALIGN _Alignof(max_align_t)

struct um_arena_chunk {
	struct um_arena_chunk *next;
	_Alignas(max_align_t) char data[];
};

void um_arena_fini(struct um_arena *a)
{
	while (a->chunks) {
		struct um_arena_chunk *next = a->chunks->next;

		free(a->chunks);
		a->chunks = next;
	}
	free(a->names);
	*a = (struct um_arena){0};
}

void *um_arena_copy(struct um_arena *a, const void *data, size_t bytes)
{
	size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;

	if (room > a->cap - a->used) {
		size_t cap = room > CHUNK ? room : CHUNK;
		struct um_arena_chunk *c = malloc(sizeof *c + cap);

		if (!c)
			return NULL;
		c->next = a->chunks;
		a->chunks = c;
		a->used = 0;
		a->cap = cap;
	}
	a->used += room;
	return memcpy(a->chunks->data + a->used - room, data, bytes);
}

static size_t probe(const char **names, size_t cap, const char *s)
{
	size_t i = (size_t)um_hash_u64(0, um_hash_str(s)) & (cap - 1);

	while (names[i] && strcmp(names[i], s) != 0)
		i = (i + 1) & (cap - 1);
	return i;
}

static int grow_names(struct um_arena *a)
{
	size_t cap = a->names_cap ? a->names_cap * 2 : 256;
	const char **names = calloc(cap, sizeof *names);

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < a->names_cap; i++)
		if (a->names[i])
			names[probe(names, cap, a->names[i])] = a->names[i];
	free(a->names);
	a->names = names;
	a->names_cap = cap;
	return 0;
}

const char *um_arena_intern(struct um_arena *a, const char *s)
{
	size_t i;

	if (a->n_names >= a->names_cap / 2 && grow_names(a))
		return NULL;
	i = probe(a->names, a->names_cap, s);
	if (!a->names[i]) {
		a->names[i] = um_arena_copy(a, s, strlen(s) + 1);
		if (a->names[i])
			a->n_names++;
	}
	return a->names[i];
}
