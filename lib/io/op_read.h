/* SPDX-License-Identifier: Apache-2.0
 *
 * op_read.h - the keys of an `op` line, common to umtrace (tensors) and umplan (slots)
 *
 * in    the JSON object, and a callback for the size of a tensor or slot
 * out   uses: those of `r` in their order (an UPDATE where `w` has the same range), then those of `w` alone
 *
 * The arrays are reused from op to op. Time and memory are linear in the length of the line.
 */
#ifndef UM_IO_OP_READ_H
#define UM_IO_OP_READ_H

#include "base/vec.h"
#include "io/id_map.h"
#include "io/json_in.h"
#include "model/event.h"

/* Callback for the objects that ops use. bytes_of: 0 and the size, or refuses the line (dead, unknown). */
struct um_op_names {
	const char *noun; /* "tensor", "slot" */
	int (*bytes_of)(const struct um_op_names *names, const struct um_json *j, uint64_t id, uint64_t *bytes);
};

struct um_op_line {
	const char *name; /* borrowed from the json */
	UM_VEC(struct um_use) uses; /* id.v is the number in the file; tensor NULL */
	UM_VEC(struct um_tensor_id) relaunch; /* likewise */
	UM_VEC(struct um_workspace) ws;
	struct um_cost cost;
	int32_t stream;
	int relaunchable;
	char phase;
	int collective;
	struct um_id_map seen; /* private: id -> how it is used */
	UM_VEC(uint32_t) table; /* private: uses by range, index + 1 */
};

/* All zero is a valid start. */
void um_op_line_fini(struct um_op_line *op);

/* Fills `op`, strings borrowed from `j`. 0, -EINVAL (refused, with a diag) or -ENOMEM. */
int um_op_line_read(struct um_op_line *op, const struct um_json *j, const struct um_op_names *names);

/* One element of `r` or `w`: an id, or [id, offset, bytes]. */
int um_op_range_read(const struct um_json *j, const json_t *v, const char *list, const struct um_op_names *names,
		     struct um_use *out);

#endif
