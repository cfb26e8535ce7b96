/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording has a group or lane per process, device, thread and stream; a damaged one may have one per row, and those
 * beyond a limit share the last.
 */
#include "formats/perfetto_state.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

#define GROUPS_MAX 1000u
#define LANES_MAX 10000u
#define FIRST_TID 1000u /* numbers of lanes and groups are disjoint */
#define BESIDE_MAX 32u
#define DEPTH_MAX 128u
#define APART 1000u /* ns */

static uint64_t key_of(uint64_t a, uint64_t b, uint64_t c)
{
	return um_hash_u64(um_hash_u64(um_hash_u64(0, a), b), c) >> 1;
}

static const struct um_capture_process *process_find(const struct um_capture *c, uint64_t process)
{
	for (size_t i = 0; c && i < c->processes.n; i++)
		if (c->processes.at[i].process == process)
			return &c->processes.at[i];
	return NULL;
}

static const char *device_name(const struct um_capture *c, int32_t device)
{
	for (size_t i = 0; c && i < c->devices.n; i++)
		if (c->devices.at[i].device == device)
			return c->devices.at[i].name;
	return NULL;
}

static void name_group(struct um_perfetto *w, const struct um_pf_group *g)
{
	const struct um_capture *c = w->o.capture;
	const struct um_capture_process *p = process_find(c, g->process);
	const char *program = p && p->name && *p->name ? p->name : "program", *device = device_name(c, g->device);
	char name[300];
	int n = 0;

	if (g->device != UM_PF_PROGRAM) {
		n = g->device < 0 ? snprintf(name, sizeof name, "GPU")
				  : snprintf(name, sizeof name, "GPU %" PRId32, g->device);
		n += snprintf(name + n, sizeof name - (size_t)n, "%s%.100s", device ? ": " : "", device ? device : "");
	}
	if (g->device == UM_PF_PROGRAM || (c && c->processes.n > 1)) {
		n += snprintf(name + n, sizeof name - (size_t)n, "%s%.100s", n ? ", " : "", program);
		if (p && p->pid)
			snprintf(name + n, sizeof name - (size_t)n, " (pid %" PRIu64 ")", p->pid);
	}
	um_pf_meta(w, "process_name", g->pid, 0, name);
}

int64_t um_pf_group(struct um_perfetto *w, uint64_t process, int32_t device)
{
	uint64_t key = key_of(process, (uint32_t)device, 0), *row = um_id_map_find(&w->group_of, key);
	struct um_pf_group g = {.process = process, .device = device};
	uint32_t n = (uint32_t)w->groups.n;

	if (row)
		return (int64_t)*row;
	if (n >= GROUPS_MAX)
		return n - 1;
	g.pid = n + 1;
	if (um_vec_push(&w->groups, g))
		return -ENOMEM;
	name_group(w, &w->groups.at[n]);
	return um_id_map_add(&w->group_of, key, n) ? -ENOMEM : (int64_t)n;
}

static void name_lane(struct um_perfetto *w, const struct um_pf_lane *l)
{
	static const char *const names[] = {[UM_PF_HINTS] = "hints",
					    [UM_PF_CPU_FAULTS] = "page faults of the CPU",
					    [UM_PF_TO_DEVICE] = "migration to the device",
					    [UM_PF_TO_HOST] = "migration to the host",
					    [UM_PF_BETWEEN] = "migration between devices",
					    [UM_PF_GPU_FAULTS] = "page faults"};
	uint64_t thread = l->number & 0xffffff; /* as numbered by profilers, with the process in the upper bits */
	char name[80];
	int n;

	switch (l->kind) {
	case UM_PF_THREAD:
		n = snprintf(name, sizeof name, "thread %" PRIu64, thread);
		break;
	case UM_PF_OPS:
		n = snprintf(name, sizeof name, "operations of thread %" PRIu64, thread);
		break;
	case UM_PF_STREAM:
		n = snprintf(name, sizeof name, "stream %" PRId64, (int64_t)l->number);
		break;
	default:
		n = snprintf(name, sizeof name, "%s", names[l->kind]);
	}
	if (l->sub)
		snprintf(name + n, sizeof name - (size_t)n, " (%u)", l->sub + 1);
	um_pf_meta(w, "thread_name", w->groups.at[l->group].pid, l->tid, name);
}

static int64_t lane_add(struct um_perfetto *w, const struct um_pf_lane *like, unsigned sub)
{
	struct um_pf_lane l = {.group = like->group, .kind = like->kind, .number = like->number, .sub = sub};

	l.tid = FIRST_TID + (uint32_t)w->lanes.n;
	l.next = UM_PF_NONE;
	if (um_vec_push(&w->lanes, l))
		return -ENOMEM;
	name_lane(w, &l);
	return (int64_t)w->lanes.n - 1;
}

int64_t um_pf_lane(struct um_perfetto *w, uint64_t process, int32_t device, enum um_pf_kind kind, uint64_t number)
{
	int64_t group = um_pf_group(w, process, device), lane;
	struct um_pf_lane like = {.kind = kind, .number = number};
	uint64_t key, *row;

	if (group < 0)
		return group;
	key = key_of((uint64_t)group, kind, number);
	row = um_id_map_find(&w->lane_of, key);
	if (row)
		return (int64_t)*row;
	if (w->lanes.n >= LANES_MAX && number) {
		/* The lane of a kind, or the common lane of this kind beyond the limit. */
		return um_pf_lane(w, process, device, kind, 0);
	}
	like.group = (uint32_t)group;
	lane = lane_add(w, &like, 0);
	if (lane < 0)
		return lane;
	return um_id_map_add(&w->lane_of, key, (uint64_t)lane) ? -ENOMEM : lane;
}

uint32_t um_pf_lane_find(const struct um_perfetto *w, uint64_t process, int32_t device, enum um_pf_kind kind,
			 uint64_t number)
{
	uint64_t *group = um_id_map_find(&w->group_of, key_of(process, (uint32_t)device, 0));
	uint64_t *lane = group ? um_id_map_find(&w->lane_of, key_of(*group, kind, number)) : NULL;

	return lane ? (uint32_t)*lane : UM_PF_NONE;
}

/* Arrows need slices with a duration, and many hints and announcements may share a time. */
static void spread(const struct um_pf_lane *l, struct um_pf_slice *s)
{
	uint64_t end = l->open.n ? l->open.at[l->open.n - 1] : 0;

	if (end > s->begin && end - s->begin <= APART)
		s->begin = end;
	if (s->end <= s->begin)
		s->end = s->begin + 1;
}

static int fits(struct um_pf_lane *l, struct um_pf_slice *s)
{
	if (l->kind == UM_PF_HINTS || l->kind == UM_PF_OPS)
		spread(l, s);
	while (l->open.n && l->open.at[l->open.n - 1] <= s->begin)
		l->open.n--;
	if (!l->open.n)
		return 1;
	return l->kind == UM_PF_THREAD && s->end <= l->open.at[l->open.n - 1] && l->open.n < DEPTH_MAX;
}

int um_pf_place(struct um_perfetto *w, uint32_t lane, struct um_pf_slice *s)
{
	int64_t fresh;

	for (s->lane = lane;; s->lane = w->lanes.at[s->lane].next) {
		struct um_pf_lane *l = &w->lanes.at[s->lane];

		if (fits(l, s))
			return um_vec_push(&l->open, s->end) ? -ENOMEM : 1;
		if (l->next != UM_PF_NONE)
			continue;
		if (l->sub + 1 >= BESIDE_MAX)
			return 0;
		fresh = lane_add(w, l, l->sub + 1);
		if (fresh < 0)
			return (int)fresh;
		w->lanes.at[s->lane].next = (uint32_t)fresh;
	}
}
