/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_finder.h - finds the iterations of a program that does not mark them
 *
 * in    ops as they are announced, births
 * out   op_period.h's step for each op: an iteration begins with it, after it, or may begin
 * owns  the search
 *
 * It is switched off at the program's first mark and then costs one comparison per op. Op path; op_period.h states the
 * cost. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_ITERATION_FINDER_H
#define UM_RUNTIME_ITERATION_FINDER_H

#include "learn/op_period.h"
#include "model/tensor.h"

struct um_iteration_finder {
	struct um_op_period period;
	uint64_t born; /* bytes allocated or adopted so far, freed ones too */
	int on;
	enum um_op_period_step step; /* of the current op */
};

void um_iteration_finder_init(struct um_iteration_finder *f); /* on */
void um_iteration_finder_fini(struct um_iteration_finder *f); /* off */

/* Hash of an op's name, stream, uses and sizes, without addresses. Never 0. */
uint64_t um_iteration_finder_key(const char *name, unsigned stream, const struct um_use *uses, uint32_t n);

/* The next op, after `ops` others, with `live` bytes alive. Sets `step`. */
void um_iteration_finder_op(struct um_iteration_finder *f, uint64_t key, const struct um_use *uses, uint32_t n,
			    uint64_t ops, uint64_t live);

#endif
