/* SPDX-License-Identifier: Apache-2.0
 *
 * said.h - what a program says that its ops use
 *
 * in    ops and their uses, in order of time
 * out   the uses of an op by its number
 * owns  the last of them: rings of fixed size, made when the first op is announced
 *
 * What has been written over when its kernel begins counts as not said.
 */
#ifndef UM_REPORT_SAID_H
#define UM_REPORT_SAID_H

#include "model/activity.h"

struct um_said_use {
	uint64_t address, bytes;
	enum um_activity_access access;
};

struct um_said_op;

struct um_said {
	struct um_said_op *ops; /* by number, modulo their number; NULL: nothing was said */
	struct um_said_use *uses;
	uint64_t n_uses; /* ever */
};

void um_said_fini(struct um_said *s); /* one of zeroes is empty */

int um_said_on_op(struct um_said *s, uint32_t process, const struct um_activity *a); /* 0 or -ENOMEM */
void um_said_on_use(struct um_said *s, uint32_t process, const struct um_activity *a);

/* How many uses an op has, the first of which is at `*first`; 0: not said. */
uint32_t um_said_uses(const struct um_said *s, uint32_t process, uint64_t op, uint64_t *first);
const struct um_said_use *um_said_at(const struct um_said *s, uint64_t index);

#endif
