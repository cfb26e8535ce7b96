/* SPDX-License-Identifier: Apache-2.0
 *
 * declared_uses.h - the uses of ops that a program declares
 *
 * in    ops and their uses, in order of time
 * out   the uses of an op, by its number
 * owns  the last of them: rings of fixed size, made when the first op is announced
 *
 * Uses that were overwritten before their kernel begins count as undeclared.
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
	struct um_declared_uses_op *ops; /* ring, by number; NULL: no declarations */
	struct um_declared_use *uses;
	uint64_t n_uses; /* ever */
};

void um_declared_uses_fini(struct um_declared_uses *s); /* zeroed: empty */

int um_declared_uses_on_op(struct um_declared_uses *s, uint32_t process,
			   const struct um_activity *a); /* 0 or -ENOMEM */
void um_declared_uses_on_use(struct um_declared_uses *s, uint32_t process, const struct um_activity *a);

/* Number of uses of an op, beginning at `*first`; 0: undeclared. */
uint32_t um_declared_uses_of(const struct um_declared_uses *s, uint32_t process, uint64_t op, uint64_t *first);
const struct um_declared_use *um_declared_uses_at(const struct um_declared_uses *s, uint64_t index);

#endif
