/* SPDX-License-Identifier: Apache-2.0
 *
 * perfetto_state.h - state of writing a trace: private to the perfetto_* files
 *
 * A group is a process of the trace: a program, or a device of a program. A lane is a thread of the trace. Viewers
 * require that slices of a lane nest or follow each other: others go to another lane of the same name. Times are
 * nanoseconds from the trace's zero.
 */
#ifndef UM_FORMATS_PERFETTO_STATE_H
#define UM_FORMATS_PERFETTO_STATE_H

#include "base/vec.h"
#include "io/id_map.h"
#include "io/out.h"
#include "formats/perfetto.h"

#define UM_PF_PROGRAM INT32_MIN /* in place of a device */
#define UM_PF_NONE UINT32_MAX
#define UM_PF_RING 65536u /* operations and calls that are remembered */

enum um_pf_kind {
	UM_PF_THREAD, /* ranges and calls: they nest */
	UM_PF_OPS, /* announced by a thread */
	UM_PF_HINTS,
	UM_PF_CPU_FAULTS,
	UM_PF_STREAM,
	UM_PF_TO_DEVICE,
	UM_PF_TO_HOST,
	UM_PF_BETWEEN,
	UM_PF_GPU_FAULTS
};

enum um_pf_counter { UM_PF_RESIDENT, UM_PF_FLIGHT, UM_PF_FAULTS, UM_PF_MANAGED, UM_PF_COUNTERS };

struct um_pf_points {
	uint64_t value[2]; /* now */
	uint64_t pending_at, written_at;
	int pends, any; /* a point waits to be written; one was */
};

struct um_pf_move {
	uint64_t end, bytes, address;
	enum um_activity_dir dir;
};

struct um_pf_group {
	uint64_t process;
	int32_t device; /* or UM_PF_PROGRAM */
	uint32_t pid; /* in the trace */
	struct um_pf_points points[UM_PF_COUNTERS];
	UM_VEC(struct um_pf_move) moving; /* a heap: the first to end on top */
	struct um_id_map blocks; /* 2 MiB block -> bytes of it on the device */
};

/* The current op of a thread. */
struct um_pf_announced {
	char *name; /* owned; NULL: none */
	uint64_t op, begin;
	int calls; /* calls since then, which identify its kernels */
};

struct um_pf_lane {
	uint32_t group, tid, next; /* next: the next lane of this name, or UM_PF_NONE */
	enum um_pf_kind kind;
	uint64_t number;
	unsigned sub; /* 0: the first of this name */
	UM_VEC(uint64_t) open; /* ends of the slices that contain `now`, innermost last */
	struct um_pf_announced announced; /* UM_PF_OPS, sub 0 */
};

struct um_pf_slice {
	uint32_t lane;
	uint64_t begin, end;
};

/* A hint that waits for its op. */
struct um_pf_hint {
	struct um_pf_slice from;
	enum um_hint_kind kind;
	uint32_t next;
};

struct um_pf_op {
	uint64_t process, number;
	char *name; /* owned; may be NULL */
	struct um_pf_slice met; /* its slice */
	int used, has_met;
	uint32_t hints; /* waiting: a list, UM_PF_NONE ends it */
};

struct um_pf_call {
	uint64_t process, correlation, op; /* correlation 0: free */
};

struct um_perfetto {
	struct um_activity_sink sink; /* first */
	struct um_perfetto_options o;
	struct um_out *out;
	int any; /* an event was written */
	int64_t zero, last; /* of the source's clock: the trace's zero; the latest begin */
	int begun;
	uint64_t flows;
	UM_VEC(struct um_pf_group) groups;
	UM_VEC(struct um_pf_lane) lanes;
	struct um_id_map group_of, lane_of;
	UM_VEC(struct um_pf_hint) hints;
	uint32_t free_hint;
	struct um_pf_op *ops; /* UM_PF_RING of each */
	struct um_pf_call *calls;
};

/* --- perfetto_event.c: events as text ----------------------------------------------------------------------------- */

void um_pf_event(struct um_perfetto *w, const char *ph, uint32_t pid, uint32_t tid, uint64_t ts, const char *name);
void um_pf_slice_begin(struct um_perfetto *w, const struct um_pf_slice *s, int fits, const char *cat, const char *name);
void um_pf_key_u64(struct um_perfetto *w, int *first, const char *key, uint64_t value);
void um_pf_key_str(struct um_perfetto *w, int *first, const char *key, const char *value);
void um_pf_key_address(struct um_perfetto *w, int *first, uint64_t address); /* none if 0 */
void um_pf_meta(struct um_perfetto *w, const char *what, uint32_t pid, uint32_t tid, const char *name);

/* --- perfetto_lanes.c: groups and lanes --------------------------------------------------------------------------- */

/* Rows, or a negative -errno. */
int64_t um_pf_group(struct um_perfetto *w, uint64_t process, int32_t device);
int64_t um_pf_lane(struct um_perfetto *w, uint64_t process, int32_t device, enum um_pf_kind kind, uint64_t number);

uint32_t um_pf_lane_find(const struct um_perfetto *w, uint64_t process, int32_t device, enum um_pf_kind kind,
			 uint64_t number); /* its row, or UM_PF_NONE */

/* Chooses a lane of this name for the slice: sets s->lane, and moves an announcement or a hint after others of the same
 * time. 1: it fits; 0: it conflicts and can only be an instant; or -errno. */
int um_pf_place(struct um_perfetto *w, uint32_t lane, struct um_pf_slice *s);

/* --- perfetto_ops.c: operations, and the arrows to them ----------------------------------------------------------- */

int um_pf_on_op(struct um_perfetto *w, const struct um_activity *a);
void um_pf_on_call(struct um_perfetto *w, const struct um_activity *a);
int um_pf_on_hint(struct um_perfetto *w, const struct um_activity *a);
/* The op of a kernel; NULL: unknown. */
struct um_pf_op *um_pf_op_of(struct um_perfetto *w, const struct um_activity *kernel);
/* Sets the op's slice, the end of its arrows, unless it has one already. */
void um_pf_op_meet(struct um_perfetto *w, struct um_pf_op *op, const struct um_pf_slice *s);
/* Ends the thread's current op and writes it. */
int um_pf_op_over(struct um_perfetto *w, uint32_t lane, uint64_t at);
void um_pf_ops_fini(struct um_perfetto *w);

/* --- perfetto_count.c: counters ----------------------------------------------------------------------------------- */

int um_pf_count_move(struct um_perfetto *w, uint32_t group, const struct um_activity *a);
void um_pf_count_add(struct um_perfetto *w, uint32_t group, enum um_pf_counter c, uint64_t at, int64_t by);
int um_pf_count_free(struct um_perfetto *w, const struct um_activity *a); /* memory was freed */
void um_pf_count_end(struct um_perfetto *w, uint32_t group);

static inline uint64_t um_pf_time(const struct um_perfetto *w, int64_t t)
{
	return t > w->zero ? (uint64_t)t - (uint64_t)w->zero : 0;
}

static inline const char *um_pf_tensor(const struct um_perfetto *w, const struct um_activity *a)
{
	return w->o.tensor ? w->o.tensor(w->o.user, a) : NULL;
}

#endif
