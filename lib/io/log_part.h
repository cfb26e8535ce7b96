/* SPDX-License-Identifier: Apache-2.0
 *
 * log_part.h - one part (iteration or set-up) of a umlog in memory, for writer and reader
 *
 * Times are ns since the part's beginning, ops are counted from the part's first one, so that equal iterations have
 * equal parts.
 */
#ifndef UM_IO_LOG_PART_H
#define UM_IO_LOG_PART_H

#include "base/vec.h"
#include "io/arena.h"
#include "io/id_map.h"
#include "io/log_driver_counters.h"
#include "model/activity.h"
#include "model/capture.h"

#define UM_LOG_VERSION 1
#define UM_LOG_SETUP (-1) /* the part before the first iteration */
#define UM_LOG_NO_OP INT64_MIN
#define UM_LOG_REFERRED 8 /* number of previous whole parts that can be referred to */

/* An address range with a name. */
struct um_log_def {
	uint64_t address, bytes;
	const char *name; /* in the table's arena */
	uint32_t alive; /* number of live tensors with this definition */
};

struct um_log_defs {
	UM_VEC(struct um_log_def) at; /* by id */
	struct um_id_map ids; /* by fingerprint */
	struct um_arena arena;
	uint64_t alive; /* fingerprint of the live ones */
};

enum um_log_event_kind { UM_LOG_TENSOR, UM_LOG_TENSOR_END, UM_LOG_OP };

struct um_log_event {
	enum um_log_event_kind kind;
	uint32_t def; /* TENSOR, TENSOR_END */
	const char *name; /* OP: in an arena */
	int64_t at;
	uint32_t first_use, n_uses;
};

struct um_log_use {
	uint64_t address, bytes;
	enum um_activity_access access;
};

struct um_log_hint {
	enum um_hint_kind kind;
	int error;
	int64_t op; /* or UM_LOG_NO_OP */
	uint64_t address, bytes;
	int64_t begin, end;
};

struct um_log_part {
	int64_t n; /* iteration, or UM_LOG_SETUP */
	const char *name; /* borrowed, or NULL */
	int64_t begin, end;
	uint64_t first_op;
	uint64_t counts[UM_LIBRARY_COUNTS], levels[UM_LIBRARY_LEVELS];
	uint64_t left_out; /* events and hints that were not kept */
	UM_VEC(struct um_log_event) events;
	UM_VEC(struct um_log_use) uses;
	UM_VEC(struct um_log_hint) hints; /* sorted when the part is over */
	UM_VEC(uint32_t) alive; /* at its beginning: first and last id of each run, ascending */
	struct um_log_counts counted;
	uint64_t fingerprint; /* of everything but times, hints and driver counters */
};

void um_log_defs_fini(struct um_log_defs *d);
/* The id of a range with a name, added if it is new (*fresh). 0 or -ENOMEM. */
int um_log_defs_get(struct um_log_defs *d, uint64_t address, uint64_t bytes, const char *name, uint32_t *id,
		    int *fresh);
void um_log_defs_live(struct um_log_defs *d, uint32_t id, int alive);

void um_log_part_clear(struct um_log_part *p); /* keeps its memory */
void um_log_part_fini(struct um_log_part *p);
int um_log_part_alive(struct um_log_part *p, const struct um_log_defs *d); /* fills p->alive; 0 or -ENOMEM */
void um_log_part_sort(struct um_log_part *p); /* hints, by everything but time */
int um_log_hint_cmp(const struct um_log_hint *a, const struct um_log_hint *b);

#endif
