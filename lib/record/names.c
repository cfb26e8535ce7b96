/* SPDX-License-Identifier: Apache-2.0
 *
 * names.c - a hash table of interned names
 */
#include "record/names.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 64

void um_names_init(struct um_names *names)
{
	memset(names, 0, sizeof *names);
}

void um_names_fini(struct um_names *names)
{
	for (size_t i = 0; i < names->size; i++)
		free(names->at[i].text);
	free(names->at);
	um_names_init(names);
}

/* The slot of `text`, or the one for inserting it: the table is never full, so the search ends. */
static struct um_name *place_of(struct um_name *at, size_t size, uint64_t hash, const char *text)
{
	size_t i = hash & (size - 1);

	while (at[i].text && (at[i].hash != hash || strcmp(at[i].text, text) != 0))
		i = (i + 1) & (size - 1);
	return &at[i];
}

static int grow(struct um_names *names)
{
	size_t size = names->size ? names->size * 2 : FIRST_SIZE;
	struct um_name *at = calloc(size, sizeof *at);

	if (!at)
		return -1;
	for (size_t i = 0; i < names->size; i++) {
		const struct um_name *name = &names->at[i];

		if (name->text)
			*place_of(at, size, name->hash, name->text) = *name;
	}
	free(names->at);
	names->at = at;
	names->size = size;
	return 0;
}

static const struct um_name *find(struct um_names *names, const char *text)
{
	uint64_t hash = um_hash_str(text);
	struct um_name *place;

	if (names->size) {
		place = place_of(names->at, names->size, hash, text);
		if (place->text)
			return place;
	}
	if (names->n >= names->size / 2 && grow(names))
		return NULL;
	place = place_of(names->at, names->size, hash, text);
	place->text = strdup(text);
	if (!place->text)
		return NULL;
	place->hash = hash;
	names->n++;
	return place;
}

const struct um_name *um_names_find(struct um_names *names, const char *text)
{
	uintptr_t where = (uintptr_t)text;
	struct um_name *recent = &names->recent[(where ^ where >> 8) % UM_NAMES_RECENT];
	const struct um_name *name;

	if (recent->text && strcmp(recent->text, text) == 0)
		return recent;
	name = find(names, text);
	if (name)
		*recent = *name;
	return name;
}
