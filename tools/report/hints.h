/* SPDX-License-Identifier: Apache-2.0
 *
 * hints.h - outcomes of a program's hints
 *
 * in    hints, and later events of their pages
 * out   by kind and tensor: the number of hints of each outcome
 * owns  its rows, and prefetches with a pending outcome
 *
 * A prefetch is
 *     refused    if the call failed
 *     redundant  if all of its pages were resident
 *     late       if a kernel faulted on some of them before the copy completed
 *     early      if some of them were evicted before their use
 *     useful     if none of these applies and a kernel used them
 * and pending if no kernel is known to have used them. Other hints are only refused or not.
 */
#ifndef UM_REPORT_HINTS_H
#define UM_REPORT_HINTS_H

#include "model/activity.h"
#include "report/index.h"

#include "base/vec.h"

struct um_hint_row {
	enum um_hint_kind kind;
	uint32_t tensor; /* of its first page */
	uint64_t issued, bytes; /* including refused ones */
	uint64_t useful, late, redundant, early, refused;
};

struct um_hint_open { /* a prefetch with a pending outcome */
	uint32_t row;
	uint32_t blocks; /* blocks with a pending outcome; 0: this slot is free, and `row` is the next free one */
	int used, late, early;
	uint64_t kernel; /* the kernel that used it */
};

struct um_hint_refusal {
	char name[48]; /* the call, or the kind of hint */
	uint32_t tensor;
	int error;
	uint64_t n;
};

#define UM_HINT_REFUSALS 64u
#define UM_HINT_LAUNCHERS 32u

struct um_hints {
	UM_VEC(struct um_hint_row) rows;
	UM_VEC(struct um_hint_open) open;
	UM_VEC(struct um_hint_refusal) refusals;
	uint32_t free; /* + 1; 0: none */
	struct um_index index;
	uint64_t call_ns; /* the shortest recorded prefetch call: longer ones wait for a queue */
	struct {
		uint64_t thread;
		uint32_t process;
	} launcher[UM_HINT_LAUNCHERS]; /* threads that launch kernels: their calls delay kernels */
	unsigned n_launchers;
};

void um_hints_fini(struct um_hints *h); /* zeroed: empty */

/* The row of a kind and tensor. 0 or -ENOMEM. */
int um_hints_row(struct um_hints *h, enum um_hint_kind kind, uint32_t tensor, uint32_t *row);

/* Begins a prefetch of so many blocks. 0 or -ENOMEM. */
int um_hints_open(struct um_hints *h, uint32_t row, uint32_t blocks, uint32_t *open);

/* Completes the outcome of one of its blocks. */
void um_hints_release(struct um_hints *h, uint32_t open);

/* Feeds a call of the program. */
int um_hints_on_call(struct um_hints *h, uint32_t process, const struct um_activity *call);

/* 0 or -ENOMEM. */
int um_hints_refused(struct um_hints *h, const char *name, uint32_t tensor, int error);

const char *um_hint_word(enum um_hint_kind kind);

#endif
