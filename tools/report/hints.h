/* SPDX-License-Identifier: Apache-2.0
 *
 * hints.h - what became of the hints that a program gave
 *
 * in    hints as they are given, and what then happens to their pages
 * out   by kind and tensor: how many did what they were for
 * owns  its rows, and the prefetches that are not judged yet
 *
 * A prefetch is
 *     refused    where the call failed
 *     redundant  where all of its pages were there
 *     late       where a kernel faulted on some of them before they had come
 *     early      where some of them were evicted before they were used
 *     useful     where it was none of these and a kernel used them
 * and not judged where no kernel is known to have used them. Other hints are refused or not.
 */
#ifndef UM_REPORT_HINTS_H
#define UM_REPORT_HINTS_H

#include "model/activity.h"
#include "report/index.h"

#include "base/vec.h"

struct um_hint_row {
	enum um_hint_kind kind;
	uint32_t tensor; /* of its first page */
	uint64_t issued, bytes; /* those refused, too */
	uint64_t useful, late, redundant, early, refused;
};

struct um_hint_open { /* a prefetch that is not judged yet */
	uint32_t row;
	uint32_t blocks; /* that may still tell; 0: this one is free, and `row` the next free one */
	int used, late, early;
	uint64_t kernel; /* that used it */
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
	uint64_t call_ns; /* the shortest call that prefetches, in a recording of calls: longer ones wait for a queue */
	struct {
		uint64_t thread;
		uint32_t process;
	} launcher[UM_HINT_LAUNCHERS]; /* threads that launch kernels: what they call delays those */
	unsigned n_launchers;
};

void um_hints_fini(struct um_hints *h); /* one of zeroes is empty */

/* The row of a kind and tensor. 0 or -ENOMEM. */
int um_hints_row(struct um_hints *h, enum um_hint_kind kind, uint32_t tensor, uint32_t *row);

/* A prefetch of so many blocks is to be judged. 0 or -ENOMEM. */
int um_hints_open(struct um_hints *h, uint32_t row, uint32_t blocks, uint32_t *open);

/* One of its blocks will tell no more. */
void um_hints_release(struct um_hints *h, uint32_t open);

/* A call of the program: does it prefetch, on a thread that launches kernels? */
int um_hints_on_call(struct um_hints *h, uint32_t process, const struct um_activity *call);

/* 0 or -ENOMEM. */
int um_hints_refused(struct um_hints *h, const char *name, uint32_t tensor, int error);

const char *um_hint_word(enum um_hint_kind kind);

#endif
