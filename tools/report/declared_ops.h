/* SPDX-License-Identifier: Apache-2.0
 *
 * declared_ops.h - the operations that a program declares
 *
 * in    ops and their uses, in order of time
 * out   by name: their number and uses
 * owns  its rows; beyond UM_DECLARED_OPS_MOST names one row takes the rest
 */
#ifndef UM_REPORT_DECLARED_OPS_H
#define UM_REPORT_DECLARED_OPS_H

#include "base/vec.h"
#include "model/activity.h"
#include "report/index.h"

#define UM_DECLARED_OPS_MOST 65536u

struct um_declared_op {
	char *name;
	uint64_t n, uses;
	uint64_t read_bytes, written_bytes; /* an update counts as both */
};

struct um_declared_ops {
	UM_VEC(struct um_declared_op) rows; /* in order of appearance */
	struct um_index index;
	uint32_t latest; /* row of the last announced op, which owns the following uses */
};

void um_declared_ops_fini(struct um_declared_ops *o); /* zeroed: empty */

/* An OP or a USE; others are ignored. 0 or -ENOMEM. */
int um_declared_ops_feed(struct um_declared_ops *o, const struct um_activity *a);

#endif
