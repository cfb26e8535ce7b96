/* SPDX-License-Identifier: Apache-2.0
 *
 * declared_uses.h - what a program says that its ops use
 *
 * in    ops and their uses, in order of time
 * out   the uses of an op by its number
 * owns  the last of them: rings of fixed size, made when the first op is announced
 *
 * What has been written over when its kernel begins counts as not said.
 */
#ifndef UM_REPORT_DECLARED_USES_H
#define UM_REPORT_DECLARED_USES_H

#include "model/activity.h"

struct um_declared_use {
	uint64_t address, bytes;
	enum um_activity_access access;
};

struct um_declared_uses_op;

struct um_declared_uses {
	struct um_declared_uses_op *ops; /* by number, modulo their number; NULL: nothing was said */
	struct um_declared_use *uses;
	uint64_t n_uses; /* ever */
};

void um_declared_uses_fini(struct um_declared_uses *s); /* one of zeroes is empty */

int um_declared_uses_on_op(struct um_declared_uses *s, uint32_t process,
			   const struct um_activity *a); /* 0 or -ENOMEM */
void um_declared_uses_on_use(struct um_declared_uses *s, uint32_t process, const struct um_activity *a);

/* How many uses an op has, the first of which is at `*first`; 0: not said. */
uint32_t um_declared_uses_of(const struct um_declared_uses *s, uint32_t process, uint64_t op, uint64_t *first);
const struct um_declared_use *um_declared_uses_at(const struct um_declared_uses *s, uint64_t index);

#endif
