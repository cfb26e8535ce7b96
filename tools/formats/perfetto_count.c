/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends are known in advance: copies under way wait in a heap for their end. Of points within STEP only the last is
 * written: each written point is exact.
 */
#include "formats/perfetto_state.h"

#include "base/pqueue.h"

#include <inttypes.h>

#define STEP 10000u /* ns */
#define BLOCK (2ull << 20)
#define NO_BLOCK (1ull << 60) /* of addresses that were not recorded */
#define MOST (1ull << 40) /* bytes; larger ranges are not split into blocks */

static const struct {
	const char *name, *series[2];
} counters[UM_PF_COUNTERS] = {
	[UM_PF_RESIDENT] = {"resident", {"bytes", NULL}},
	[UM_PF_FLIGHT] = {"migrating", {"bytes to the device", "bytes to the host"}},
	[UM_PF_FAULTS] = {"page faults so far", {"faults", NULL}},
	[UM_PF_MANAGED] = {"managed memory allocated", {"bytes", NULL}},
};

static void point(struct um_perfetto *w, uint32_t pid, uint64_t at, const char *name, unsigned n,
		  const char *const *series, const uint64_t *values)
{
	int first = 1;

	um_pf_event(w, "C", pid, 0, at, name);
	um_out_str(w->out, ",\"args\":{");
	for (unsigned i = 0; i < n; i++)
		um_pf_key_u64(w, &first, series[i], values[i]);
	um_out_str(w->out, "}}");
}

static void write_pending(struct um_perfetto *w, const struct um_pf_group *g, enum um_pf_counter c,
			  struct um_pf_points *p)
{
	point(w, g->pid, p->pending_at, counters[c].name, counters[c].series[1] ? 2 : 1, counters[c].series, p->value);
	p->written_at = p->pending_at;
	p->any = 1;
	p->pends = 0;
}

/* A new value holds from `at` on. */
static void change(struct um_perfetto *w, const struct um_pf_group *g, struct um_pf_points *p, enum um_pf_counter c,
		   uint64_t at, unsigned series, uint64_t value)
{
	if (p->value[series] == value)
		return;
	if (p->pends && at > p->pending_at && (!p->any || at >= p->written_at + STEP))
		write_pending(w, g, c, p);
	p->value[series] = value;
	p->pending_at = at;
	p->pends = 1;
}

static uint64_t added(uint64_t value, int64_t by)
{
	if (by < 0)
		return value > 0 - (uint64_t)by ? value + (uint64_t)by : 0;
	return value + (uint64_t)by;
}

void um_pf_count_add(struct um_perfetto *w, uint32_t group, enum um_pf_counter c, uint64_t at, int64_t by)
{
	struct um_pf_group *g = &w->groups.at[group];

	change(w, g, &g->points[c], c, at, 0, added(g->points[c].value[0], by));
}

/* --- what is resident --------------------------------------------------------------------------------------------- */

/* Sets the bytes of a block. */
static int block_set(struct um_pf_group *g, uint64_t block, uint64_t bytes)
{
	uint64_t *at = um_id_map_find(&g->blocks, block);

	if (at && bytes)
		*at = bytes;
	else if (at)
		um_id_map_remove(&g->blocks, block);
	else if (bytes)
		return um_id_map_add(&g->blocks, block, bytes);
	return 0;
}

/* Clamps to the block's size: pages that a kernel populated have no migration. */
static int arrived_or_left(struct um_pf_group *g, const struct um_pf_move *m, int64_t *by)
{
	uint64_t address = m->address, left = m->bytes;
	int known = m->address && m->bytes <= MOST;

	for (*by = 0; left;) {
		uint64_t block = known ? address / BLOCK : NO_BLOCK, in = BLOCK - address % BLOCK;
		uint64_t part = known && in < left ? in : left, most = known ? BLOCK : UINT64_MAX;
		uint64_t *at = um_id_map_find(&g->blocks, block), has = at ? *at : 0, now;

		if (m->dir == UM_DIR_H2D)
			now = part < most - has ? has + part : most;
		else
			now = has > part ? has - part : 0;
		if (block_set(g, block, now))
			return -ENOMEM;
		*by += (int64_t)(now - has);
		address += part;
		left -= part;
	}
	return 0;
}

static void free_in(struct um_perfetto *w, struct um_pf_group *g, uint64_t at, uint64_t from, uint64_t to)
{
	struct um_pf_points *p = &g->points[UM_PF_RESIDENT];
	uint64_t gone = 0;

	for (uint64_t b = from / BLOCK; b <= (to - 1) / BLOCK; b++) {
		uint64_t lo = b * BLOCK > from ? b * BLOCK : from, hi = (b + 1) * BLOCK < to ? (b + 1) * BLOCK : to;
		uint64_t *value = um_id_map_find(&g->blocks, b), most = hi - lo;

		if (!value)
			continue;
		most = most < *value ? most : *value;
		gone += most;
		block_set(g, b, *value - most); /* of an existing one: needs no memory */
	}
	change(w, g, p, UM_PF_RESIDENT, at, 0, added(p->value[0], -(int64_t)gone));
}

/* --- under way ---------------------------------------------------------------------------------------------------- */

static int ends_before(const struct um_pf_move *a, const struct um_pf_move *b)
{
	return a->end < b->end;
}

UM_PQUEUE(moves, struct um_pf_move, ends_before)

/* Removes copies that ended by `now`. */
static int settle(struct um_perfetto *w, struct um_pf_group *g, uint64_t now)
{
	while (g->moving.n && g->moving.at[0].end <= now) {
		struct um_pf_move m = g->moving.at[0];
		struct um_pf_points *flight = &g->points[UM_PF_FLIGHT], *resident = &g->points[UM_PF_RESIDENT];
		unsigned series = m.dir == UM_DIR_D2H;
		int64_t by = 0;

		g->moving.at[0] = g->moving.at[--g->moving.n];
		moves_sink(g->moving.at, g->moving.n, 0);
		change(w, g, flight, UM_PF_FLIGHT, m.end, series, flight->value[series] - m.bytes);
		if (w->o.own_residency)
			continue;
		if (arrived_or_left(g, &m, &by))
			return -ENOMEM;
		change(w, g, resident, UM_PF_RESIDENT, m.end, 0, added(resident->value[0], by));
	}
	return 0;
}

int um_pf_count_move(struct um_perfetto *w, uint32_t group, const struct um_activity *a)
{
	struct um_pf_group *g = &w->groups.at[group];
	struct um_pf_move m = {um_pf_time(w, a->end), a->bytes, a->address, a->dir};
	uint64_t now = um_pf_time(w, a->begin);
	struct um_pf_points *p = &g->points[UM_PF_FLIGHT];
	unsigned series = a->dir == UM_DIR_D2H;
	int err = settle(w, g, now);

	if (err || (a->dir != UM_DIR_H2D && a->dir != UM_DIR_D2H) || !a->bytes)
		return err;
	change(w, g, p, UM_PF_FLIGHT, now, series, p->value[series] + a->bytes);
	if (um_vec_push(&g->moving, m))
		return -ENOMEM;
	moves_rise(g->moving.at, g->moving.n - 1);
	return 0;
}

int um_pf_count_free(struct um_perfetto *w, const struct um_activity *a)
{
	uint64_t from = a->address, to = from + a->bytes, now = um_pf_time(w, a->begin);
	int err = 0;

	if (a->bytes > MOST || to <= from || to > UINT64_MAX - BLOCK)
		return 0;
	for (size_t i = 0; i < w->groups.n && !err; i++) {
		struct um_pf_group *g = &w->groups.at[i];

		if (g->process != a->process || g->device == UM_PF_PROGRAM)
			continue;
		err = settle(w, g, now);
		free_in(w, g, now, from, to);
	}
	return err;
}

void um_pf_count_end(struct um_perfetto *w, uint32_t group)
{
	struct um_pf_group *g = &w->groups.at[group];
	int err = settle(w, g, UINT64_MAX);

	if (err)
		um_out_fail(w->out, err);
	for (int c = 0; c < UM_PF_COUNTERS; c++)
		if (g->points[c].pends)
			write_pending(w, g, (enum um_pf_counter)c, &g->points[c]);
	um_vec_fini(&g->moving);
	um_id_map_fini(&g->blocks);
}

int um_perfetto_count(struct um_perfetto *w, uint64_t process, int32_t device, int64_t at, const char *name, unsigned n,
		      const char *const *series, const uint64_t *values)
{
	int64_t group = um_pf_group(w, process, device);

	if (group < 0)
		return (int)group;
	point(w, w->groups.at[group].pid, um_pf_time(w, at), name, n, series, values);
	return 0;
}
