/* SPDX-License-Identifier: Apache-2.0
 *
 * declared_ops.h - what a program says that its operations are
 *
 * in    ops and their uses, in order of time
 * out   by name: how often, and what they use
 * owns  its rows; after UM_DECLARED_OPS_MOST names one row takes the rest
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
	uint64_t read_bytes, written_bytes; /* what is read and written counts as both */
};

struct um_declared_ops {
	UM_VEC(struct um_declared_op) rows; /* in the order in which they came */
	struct um_index index;
	uint32_t latest; /* row of the op announced last, which the uses that follow are of */
};

void um_declared_ops_fini(struct um_declared_ops *o); /* one of zeroes is empty */

/* An OP, or a USE; other things are no matter. 0 or -ENOMEM. */
int um_declared_ops_feed(struct um_declared_ops *o, const struct um_activity *a);

#endif
