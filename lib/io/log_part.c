/* SPDX-License-Identifier: Apache-2.0
 *
 * log_part.c - definitions and the memory of a part
 */
#include "io/log_part.h"

#include "base/hash.h"

#include <errno.h>

void um_log_defs_fini(struct um_log_defs *d)
{
	um_vec_fini(&d->at);
	um_id_map_fini(&d->ids);
	um_arena_fini(&d->arena);
}

/* Ranges with equal fingerprints would be treated as one; the value is below UINT64_MAX, as the map requires. */
static uint64_t fingerprint(uint64_t address, uint64_t bytes, const char *name)
{
	return um_hash_u64(um_hash_u64(um_hash_str(name), address), bytes) >> 1;
}

int um_log_defs_get(struct um_log_defs *d, uint64_t address, uint64_t bytes, const char *name, uint32_t *id, int *fresh)
{
	uint64_t key = fingerprint(address, bytes, name), *known = um_id_map_find(&d->ids, key);
	struct um_log_def def = {.address = address, .bytes = bytes};

	*fresh = !known;
	if (known) {
		*id = (uint32_t)*known;
		return 0;
	}
	if (d->at.n >= UINT32_MAX - 1)
		return -ENOMEM;
	def.name = um_arena_intern(&d->arena, name);
	if (!def.name || um_vec_reserve(&d->at, 1) || um_id_map_add(&d->ids, key, d->at.n))
		return -ENOMEM;
	*id = (uint32_t)d->at.n;
	d->at.at[d->at.n++] = def;
	return 0;
}

void um_log_defs_live(struct um_log_defs *d, uint32_t id, int alive)
{
	struct um_log_def *def = &d->at.at[id];
	int was = def->alive != 0;

	if (alive)
		def->alive++;
	else if (was)
		def->alive--;
	if (was != (def->alive != 0))
		d->alive ^= um_hash_u64(1, id);
}

void um_log_part_clear(struct um_log_part *p)
{
	struct um_log_part fresh = {0};

	um_vec_clear(&p->events);
	um_vec_clear(&p->uses);
	um_vec_clear(&p->hints);
	um_vec_clear(&p->alive);
	um_log_counts_clear(&p->counted);
	memcpy(&fresh.events, &p->events, sizeof fresh.events);
	memcpy(&fresh.uses, &p->uses, sizeof fresh.uses);
	memcpy(&fresh.hints, &p->hints, sizeof fresh.hints);
	memcpy(&fresh.alive, &p->alive, sizeof fresh.alive);
	memcpy(&fresh.counted, &p->counted, sizeof fresh.counted);
	*p = fresh;
}

void um_log_part_fini(struct um_log_part *p)
{
	um_vec_fini(&p->events);
	um_vec_fini(&p->uses);
	um_vec_fini(&p->hints);
	um_vec_fini(&p->alive);
	um_log_counts_fini(&p->counted);
}

int um_log_part_alive(struct um_log_part *p, const struct um_log_defs *d)
{
	um_vec_clear(&p->alive);
	for (uint32_t i = 0; i < d->at.n; i++) {
		if (!d->at.at[i].alive)
			continue;
		if (p->alive.n && p->alive.at[p->alive.n - 1] + 1 == i) {
			p->alive.at[p->alive.n - 1] = i;
			continue;
		}
		if (um_vec_reserve(&p->alive, 2))
			return -ENOMEM;
		p->alive.at[p->alive.n++] = i;
		p->alive.at[p->alive.n++] = i;
	}
	return 0;
}

int um_log_hint_cmp(const struct um_log_hint *a, const struct um_log_hint *b)
{
	if (a->op != b->op)
		return a->op < b->op ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return a->error < b->error ? -1 : a->error > b->error;
}

/* Equal ones in order of time, so that the file is deterministic. */
static int cmp(const void *x, const void *y)
{
	const struct um_log_hint *a = x, *b = y;
	int c = um_log_hint_cmp(a, b);

	if (c)
		return c;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

void um_log_part_sort(struct um_log_part *p)
{
	if (p->hints.n)
		qsort(p->hints.at, p->hints.n, sizeof *p->hints.at, cmp);
}
