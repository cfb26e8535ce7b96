/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_view.h - a umplan read, proved and carried out once, for those who show it
 *
 * in    a umplan file
 * out   a steady iteration of it: when each op begins, what is copied when, what is resident; and per departure what
 *       it costs and which ops it makes room for
 * owns  the plan and the arrays
 *
 *     plan_view.c    reads, proves, watches a steady iteration
 *     plan_leave.c   what leaves, and until when
 *     plan_show.c    all of it as text
 *     plan_diff.c    two of them beside each other
 *     plan_json.h    both as JSON
 *     plan_svg.c     as a drawing
 *     plan_timeline.c  over time, for Perfetto
 *
 * Positions of a departure are ops, counted in the iteration in which the tensor is needed again: negative ones are of
 * the iteration before.
 */
#ifndef UM_TOOLS_PLAN_VIEW_H
#define UM_TOOLS_PLAN_VIEW_H

#include <stdio.h>

#include "model/plan_run.h"

#define PLAN_VIEW_COLUMNS 1000 /* of the residency, at most */
#define PLAN_LEAVE_NEVER (-1) /* `need` of what is not used again */

struct plan_copy {
	uint64_t begin, end; /* ns from the iteration's beginning; `end` may lie behind its end */
	uint64_t bytes;
	uint32_t slot, hint;
	int out; /* to the host */
	int carried; /* begun in the iteration before, where it counts */
};

/* A hint starts. */
struct plan_start {
	uint64_t at; /* ns from the iteration's beginning */
	uint32_t hint, slot; /* slot: as it is called then */
};

struct plan_sample {
	uint64_t at; /* ns; holds until the next one */
	uint64_t bytes[UM_ROLES]; /* of device memory taken */
};

/* One tensor, or a part of it, away between two uses. */
struct plan_leave {
	uint32_t slot; /* as it is called when it leaves */
	uint32_t next; /* as it is called when it is needed again, or the same */
	int32_t after; /* the first part may leave once this op has finished */
	int32_t back; /* the first part is asked for before this op; INT32_MAX: not at all */
	int32_t need; /* the op that uses it again, PLAN_LEAVE_NEVER */
	uint64_t bytes, dropped; /* that leave; of them discarded */
	uint64_t copied_out, returned, copied_in; /* bytes */
	uint32_t over; /* ops between that have more alive than the budget */
	int32_t worst; /* the fullest one between, 0 <= worst < ops; -1: none is between */
};

struct plan_view {
	const char *path;
	struct um_plan plan;
	struct um_plan_figures figures;
	uint64_t *op_begin; /* by op, ns */
	uint64_t *alive; /* by op: bytes of the slots that are */
	uint64_t *in, *out; /* by slot: bytes copied */
	size_t fullest; /* the op with the most alive */
	UM_VEC(struct plan_copy) copies; /* those to the device, and those to the host: each in order of time */
	UM_VEC(struct plan_start) starts; /* in order of time */
	UM_VEC(struct plan_sample) samples;
	unsigned roles; /* bits: of which there are slots */
	UM_VEC(struct plan_leave) leaves; /* in the order of the file */
};

/* 0, or an exit code (what is wrong was said, the name of the verb before it): the file is refused, or -
 * TOOL_FAILED - the plan is not sound. */
int plan_view_open(struct plan_view *v, const char *path);
void plan_view_close(struct plan_view *v);

/* plan_leave.c: fills v->leaves. `copied`: by hint. `after`: by hint, the op that it really waits for. 0 or -ENOMEM. */
int plan_leave_find(struct plan_view *v, const uint64_t *copied, const int32_t *after);

/* "name", or "slot 12 of op 3 'relu'" where it has none and is born before that op. */
#define PLAN_SLOT_NAME 128
const char *plan_slot_name(const struct plan_view *v, uint32_t slot, char *room, size_t size);

/* Nanoseconds that so many bytes take. */
double plan_copy_ns(uint64_t bytes, uint64_t rate);

int plan_show(const struct plan_view *v, FILE *to); /* 0 or -ENOMEM */
int plan_show_json(const struct plan_view *v, FILE *to); /* likewise */
int plan_diff(const struct plan_view *a, const struct plan_view *b, int json, FILE *to); /* exit code */
int plan_svg_write(const struct plan_view *v, const char *path); /* exit code; "-": standard output */
int plan_timeline_write(const struct plan_view *v, const char *path); /* the same */

/* "umadvise plan" with --show or --diff: the exit code. */
struct play_args;
int plan_tools_main(const struct play_args *a);

#endif
