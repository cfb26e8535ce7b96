/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_view.h - reads a umplan, proves it and executes a steady iteration, for output
 *
 * in    a umplan file
 * out   a steady iteration of it: when each op begins, what is copied when, what is resident; and per departure what it
 *       costs and which ops it makes room for
 * owns  the plan and the arrays
 *
 *     plan_view.c       reads, proves, watches a steady iteration
 *     plan_evictions.c  evictions and their ends
 *     plan_show.c       the plan as text
 *     plan_diff.c       compares two plans
 *     plan_json.h       both as JSON
 *     plan_svg.c        the plan as a drawing
 *     plan_timeline.c   the plan over time, for Perfetto
 *
 * The plan is unfolded (plan_unfold.h): its ops are launches, and so are positions but those of an eviction. These are
 * ops of the program, counted in the iteration in which the tensor is needed again: negative ones are of the previous
 * iteration.
 */
#ifndef UM_TOOLS_PLAN_VIEW_H
#define UM_TOOLS_PLAN_VIEW_H

#include <stdio.h>

#include "model/plan_run.h"
#include "model/plan_unfold.h"

#define PLAN_VIEW_COLUMNS 1000 /* of the residency, at most */
#define PLAN_NEVER_USED (-1) /* `need` of a tensor that is not used again */

struct plan_copy {
	uint64_t begin, end; /* ns from the iteration's beginning; `end` may lie after its end */
	uint64_t bytes;
	uint32_t slot, hint;
	int out; /* to the host */
	int carried; /* begun in the previous iteration, where it counts */
};

/* A hint starts. */
struct plan_start {
	uint64_t at; /* ns from the iteration's beginning */
	uint32_t hint, slot; /* slot: its slot at that time */
};

struct plan_sample {
	uint64_t at; /* ns; holds until the next one */
	uint64_t bytes[UM_ROLES]; /* of device memory taken */
};

/* One tensor, or a part of it, evicted between two uses. */
struct plan_eviction {
	uint32_t slot; /* its slot when it is evicted */
	uint32_t next; /* its slot when it is needed again, or the same */
	int32_t after; /* the first part may be evicted after this op */
	int32_t back; /* the first part is prefetched before this op; INT32_MAX: never */
	int32_t need; /* the op that uses it again, PLAN_NEVER_USED */
	int again; /* it returns by a relaunch just before that op */
	uint64_t bytes, dropped; /* evicted; of them discarded */
	uint64_t copied_out, returned, copied_in; /* bytes */
	uint32_t over; /* ops between that have more alive than the budget */
	int32_t worst; /* the fullest launch in between, 0 <= worst < launches; -1: none */
};

struct plan_view {
	const char *path;
	struct um_plan plan;
	int32_t n_ops; /* of the program */
	size_t n_slots, n_hints,
		relaunches; /* slots without scratch slots; hints as in the file, relaunches among them */
	int32_t *op; /* by launch: as in um_unfolded_plan */
	struct um_plan_figures figures;
	uint64_t *op_begin; /* by op, ns */
	uint64_t *alive; /* by op: bytes of live slots */
	uint64_t *in, *out; /* by slot: bytes copied */
	size_t fullest; /* the op with the most bytes alive */
	UM_VEC(struct plan_copy) copies; /* copies to the device and to the host: each in order of time */
	UM_VEC(struct plan_start) starts; /* in order of time */
	UM_VEC(struct plan_sample) samples;
	unsigned roles; /* bits: roles that slots have */
	UM_VEC(struct plan_eviction) evictions; /* in the order of the file */
};

/* 0, or an exit code after an error message of `verb`: the file is refused, or (TOOL_FAILED) the plan is not sound. */
int plan_view_open(struct plan_view *v, const char *path);
void plan_view_close(struct plan_view *v);

/* plan_evictions.c: fills v->evictions. `copied`: by hint. `after`: by hint, the op that it waits for. 0 or -ENOMEM. */
int plan_evictions_find(struct plan_view *v, const uint64_t *copied, const int32_t *after);

/* "12 'relu'", or "12 'relu' again": a launch. */
#define PLAN_OP_NAME 128
const char *plan_op_name(const struct plan_view *v, size_t launch, char *room, size_t size);

/* "name", or "slot 12 of op 3 'relu'" if it has none and is born before that op. */
#define PLAN_SLOT_NAME 128
const char *plan_slot_name(const struct plan_view *v, uint32_t slot, char *room, size_t size);

/* Bytes that are discarded and made again in an iteration. */
uint64_t plan_dropped_bytes(const struct plan_view *v);

/* Time to copy `bytes`, ns. */
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
