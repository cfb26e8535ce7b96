/* SPDX-License-Identifier: Apache-2.0
 *
 * versions.h - which op wrote the content that a slot holds before an op
 *
 * in    a schedule
 * out   by slot: the ops that touch it, and what each of them does to its content as a whole
 * owns  the arrays
 *
 * A version of a slot is the touch that wrote it last. The content of a tensor whose memory was dropped returns by
 * launching again all writers since it was last overwritten as a whole (umtrace).
 */
#ifndef UM_PLAN_VERSIONS_H
#define UM_PLAN_VERSIONS_H

#include "model/schedule.h"

/* Versions that no op of the iteration wrote. */
#define UM_VERSION_OLDER (UINT32_MAX - 1) /* from before the iteration */
#define UM_VERSION_NONE UINT32_MAX /* never written, or declared dead */

struct um_slot_touch {
	int32_t op;
	uint8_t needs; /* the content before it: a read, or a write of a part */
	uint8_t writes;
	uint8_t whole; /* overwrites all content without reading it */
	uint8_t dead; /* the content was declared dead after it */
	uint8_t again; /* the op makes what it writes again if it is launched again */
	uint8_t undefined; /* reads bytes that may never have been written, or were declared dead */
};

struct um_versions {
	const struct um_schedule *s; /* borrowed */
	uint32_t *first; /* by slot, into touch; slots + 1 */
	struct um_slot_touch *touch; /* by slot, then op */
};

int um_versions_build(struct um_versions *v, const struct um_schedule *s); /* 0 or -ENOMEM. Linear */
void um_versions_fini(struct um_versions *v);

/* The touch of a slot by an op, UINT32_MAX if it has none; the first one at or after it. */
uint32_t um_versions_find(const struct um_versions *v, uint32_t slot, int32_t op);
uint32_t um_versions_from(const struct um_versions *v, uint32_t slot, int32_t op);

/* The version of a slot before op `op`, in which the slot is alive. */
uint32_t um_versions_at(const struct um_versions *v, uint32_t slot, int32_t op);

/* The writer from which on all writers must be launched again for a version; UINT32_MAX if it cannot be made again. */
uint32_t um_versions_base(const struct um_versions *v, uint32_t slot, uint32_t version);

#endif
