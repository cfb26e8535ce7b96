/* SPDX-License-Identifier: Apache-2.0
 *
 * id_map.c - a hash table with linear probing
 */
#include "io/id_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define EMPTY UINT64_MAX

void um_id_map_fini(struct um_id_map *m)
{
	free(m->slots);
	*m = (struct um_id_map){0};
}

static size_t home(const struct um_id_map *m, uint64_t key)
{
	return (size_t)um_hash_u64(0, key) & (m->cap - 1);
}

/* The slot of the key, or the empty slot where it would be inserted. */
static size_t probe(const struct um_id_map *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->slots[i].key != EMPTY && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

uint64_t *um_id_map_find(const struct um_id_map *m, uint64_t key)
{
	size_t i;

	if (m->n == 0)
		return NULL;
	i = probe(m, key);
	return m->slots[i].key == EMPTY ? NULL : &m->slots[i].value;
}

static int grow(struct um_id_map *m)
{
	struct um_id_map bigger = {.n = m->n, .cap = m->cap ? m->cap * 2 : 64};

	if (bigger.cap > SIZE_MAX / sizeof *bigger.slots)
		return -ENOMEM;
	bigger.slots = malloc(bigger.cap * sizeof *bigger.slots);
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < bigger.cap; i++)
		bigger.slots[i].key = EMPTY;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].key != EMPTY)
			bigger.slots[probe(&bigger, m->slots[i].key)] = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int um_id_map_add(struct um_id_map *m, uint64_t key, uint64_t value)
{
	size_t i;

	assert(key != EMPTY);
	if (m->n >= m->cap / 2 && grow(m))
		return -ENOMEM;
	i = probe(m, key);
	assert(m->slots[i].key == EMPTY);
	m->slots[i] = (struct um_id_slot){key, value};
	m->n++;
	return 0;
}

void um_id_map_remove(struct um_id_map *m, uint64_t key)
{
	size_t hole, i;

	if (m->n == 0)
		return;
	hole = probe(m, key);
	if (m->slots[hole].key == EMPTY)
		return;
	/* Close the gap, so that no probe stops early: entries after the hole move up unless their own slot is after
	 * the hole. */
	for (i = (hole + 1) & (m->cap - 1); m->slots[i].key != EMPTY; i = (i + 1) & (m->cap - 1)) {
		size_t distance = (i - home(m, m->slots[i].key)) & (m->cap - 1);

		if (distance >= ((i - hole) & (m->cap - 1))) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].key = EMPTY;
	m->n--;
}
