/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_finder.h - iterations of a program that marks none, found in its ops
 *
 * in    ops as they are announced, births
 * out   op_period.h's answer: an iteration begins with or after this op, or may begin
 * owns  the search
 *
 * Off from the program's first mark on; then it costs one comparison an op. Op path, op_period.h has the cost. Not
 * thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_ITERATION_FINDER_H
#define UM_RUNTIME_ITERATION_FINDER_H

#include "learn/op_period.h"
#include "model/tensor.h"

struct um_iteration_finder {
	struct um_op_period period;
	uint64_t born; /* bytes that were ever allocated or adopted */
	int on;
	enum um_op_period_step step; /* of the current op */
};

void um_iteration_finder_init(struct um_iteration_finder *f); /* on */
void um_iteration_finder_fini(struct um_iteration_finder *f); /* off */

/* What is compared of an op: its name, stream, uses and sizes, and no address. Never 0. */
uint64_t um_iteration_finder_key(const char *name, unsigned stream, const struct um_use *uses, uint32_t n);

/* An op is announced, after `ops` others, with so many bytes alive: sets `step`. */
void um_iteration_finder_op(struct um_iteration_finder *f, uint64_t key, const struct um_use *uses, uint32_t n,
			    uint64_t ops, uint64_t live);

#endif
