/* SPDX-License-Identifier: Apache-2.0
 *
 * uses_write.h - writes the keys of an `op` line: the counterpart of op_read.h
 *
 * Each key is preceded by a comma and goes into an object that the caller has opened.
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

/* `r`, `w`, and `touched` for uses that touch less than their range. */
void um_uses_write(struct um_out *o, const struct um_uses_view *v);

/* One range as in the formats: N, or [N,off,bytes] for a part. */
void um_range_write(struct um_out *o, const struct um_uses_view *v, const struct um_use *u);

void um_cost_write(struct um_out *o, const struct um_cost *cost); /* the known fields */
void um_ws_write(struct um_out *o, const struct um_workspace *ws, uint32_t n);
void um_launch_write(struct um_out *o, int32_t stream, char phase, int collective);

#endif
