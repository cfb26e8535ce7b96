/* SPDX-License-Identifier: Apache-2.0
 *
 * play_op.h - time, kind and algorithms of the ops of a recorded workload
 *
 * in    an op, a context
 * out   of several algorithms the one that the library chooses, as the cost of the op, and its workspace
 */
#ifndef UM_PLAY_PLAY_OP_H
#define UM_PLAY_PLAY_OP_H

#include "gpu/gpu.h"
#include "model/event.h"
#include "model/profile.h"
#include "umadvise.h"

struct um_play_workspace {
	void *ptr; /* NULL: none */
	uint64_t bytes;
};

/* The time of an op with everything resident: of several algorithms that of the fastest. */
uint64_t um_play_op_ns(const struct um_profile *profile, const struct um_op *op);

/* Adds the op to the kind of its iteration: its name, and what it does to how many bytes; where they are may change. */
uint64_t um_play_op_kind(uint64_t kind, const struct um_op *op);

/* Before the op is announced: sets its label. Offers its algorithms if it has several, and takes the cost of the
 * chosen one. `infinite`: the fastest, without memory. 0; or as umadv_workspace. */
int um_play_offer(struct umadv *adv, const struct um_op *op, int infinite, struct umadv_op_info *info,
		  struct um_play_workspace *workspace);

#endif
