/* SPDX-License-Identifier: Apache-2.0
 *
 * uses_write.h - what an op line says, in writing: the counterpart of op_read.h
 *
 * Writes keys with a comma before each, into an object that the caller opened.
 */
#ifndef UM_IO_USES_WRITE_H
#define UM_IO_USES_WRITE_H

#include "io/out.h"
#include "model/event.h"

struct um_uses_view {
	const struct um_use *uses;
	uint32_t n;
	uint64_t base; /* id.v - base is the number in the file */
	const void *user;
	uint64_t (*whole)(const void *user, uint64_t id); /* bytes of the whole tensor or slot */
};

/* `r`, `w`, and `touched` where a use touches less than its range. */
void um_uses_write(struct um_out *o, const struct um_uses_view *v);

/* One range as the formats spell it: N, or [N,off,bytes] for a part. */
void um_range_write(struct um_out *o, const struct um_uses_view *v, const struct um_use *u);

void um_cost_write(struct um_out *o, const struct um_cost *cost); /* what is known of it */
void um_launch_write(struct um_out *o, int32_t stream, char phase);

#endif
