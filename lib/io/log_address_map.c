/* SPDX-License-Identifier: Apache-2.0
 *
 * log_address_map.c - a sorted table of address ranges and their lifetimes
 */
#include "io/log_address_map.h"

#include "base/bisect.h"

#include <errno.h>

#define LOOKS 64 /* entries before an address that a look-up visits */

static int by_address(const void *x, const void *y)
{
	const struct um_log_place *a = x, *b = y;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->def < b->def ? -1 : a->def > b->def;
}

static int add(struct um_log_address_map *p, const struct um_log_defs *defs, uint32_t id, int64_t from)
{
	const struct um_log_def *d = &defs->at.at[id];
	struct um_log_place place = {d->address, d->bytes, from, INT64_MAX, id};

	return um_vec_push(&p->at, place);
}

/* Ends the open lifetime. */
static void end(struct um_log_address_map *p, uint32_t id, int64_t t)
{
	for (size_t i = p->at.n; i--;)
		if (p->at.at[i].def == id && p->at.at[i].to == INT64_MAX) {
			p->at.at[i].to = t;
			return;
		}
}

int um_log_address_map_build(struct um_log_address_map *p, const struct um_log_part *part,
			     const struct um_log_defs *defs)
{
	int err = 0;

	um_vec_clear(&p->at);
	for (size_t i = 0; i + 1 < part->alive.n && !err; i += 2)
		for (uint32_t id = part->alive.at[i]; id <= part->alive.at[i + 1] && !err; id++)
			err = add(p, defs, id, INT64_MIN);
	for (size_t i = 0; i < part->events.n && !err; i++) {
		const struct um_log_event *e = &part->events.at[i];

		if (e->kind == UM_LOG_TENSOR)
			err = add(p, defs, e->def, part->begin + e->at);
		else if (e->kind == UM_LOG_TENSOR_END)
			end(p, e->def, part->begin + e->at);
	}
	if (err)
		um_vec_clear(&p->at);
	else if (p->at.n)
		qsort(p->at.at, p->at.n, sizeof *p->at.at, by_address);
	return err;
}

/* Number of ranges that begin at the address or before. */
static size_t before(const struct um_log_address_map *p, uint64_t address)
{
	size_t lo = 0;

	UM_BISECT(lo, p->at.n, i, p->at.at[i].address <= address)
	return lo;
}

uint32_t um_log_address_map_find(const struct um_log_address_map *p, uint64_t address, int64_t t, uint64_t *until)
{
	size_t n = before(p, address);
	const struct um_log_place *other = NULL;

	*until = n < p->at.n ? p->at.at[n].address : UINT64_MAX;
	for (size_t i = n; i-- && n - i <= LOOKS;) {
		const struct um_log_place *x = &p->at.at[i];

		if (address - x->address >= x->bytes)
			continue;
		if (t < x->from || t >= x->to) {
			other = other ? other : x;
			continue;
		}
		other = x;
		break;
	}
	if (!other)
		return UM_LOG_NOWHERE;
	if (other->address + other->bytes < *until)
		*until = other->address + other->bytes;
	return other->def;
}
