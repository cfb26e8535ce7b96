/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder.h - a sink that keeps the events of the current iteration
 *
 * in    events (with live tensors)
 * out   one struct um_iteration per iteration
 * owns  the iteration being recorded
 *
 * Op path: O(uses), no allocation once an iteration of this length was recorded before. What is recorded goes where the
 * iteration before the last one was: ops that are known to be the same are only counted, and looked at when something
 * else happens. When an allocation fails the iteration is marked incomplete and the host program goes on. Names are
 * interned once. Not thread-safe.
 *
 * Set-up (before the first iter) is not kept, only who was born in it. An iteration that exceeds a cap (struct
 * um_record_caps) is too long: its memory is freed, nothing more of it is kept, and the next iter starts anew. So a
 * program that stops marking iterations does not fill the memory. Incomplete is also one in which a tensor is born
 * around live ones.
 * Writes into live tensors: born_iter and born_ord at birth; seen_iter and seen_at.
 */
#ifndef UM_RECORD_RECORDER_H
#define UM_RECORD_RECORDER_H

#include "model/iteration.h"
#include "model/sink.h"
#include "record/names.h"

#define UM_RECORD_OPS (1u << 20)
#define UM_RECORD_USES (8u << 20)
#define UM_RECORD_TENSORS (2u << 20)

/* The most that is kept of an iteration. */
struct um_record_caps {
	uint32_t ops, uses, tensors;
};

struct um_recorder {
	struct um_sink sink;
	struct um_record_caps caps;
	int too_long; /* the current iteration exceeded them */
	struct um_iteration it; /* the current one; n == 0: set-up, before the first iter */
	struct um_names names; /* alive as long as the recorder */
	UM_VEC(uint32_t) last_use; /* by tensor of `it`: index of its last use, UINT32_MAX none */
	uint64_t turn; /* how often `it` was emptied: a tensor's seen_at holds until the next time */
	size_t old_ops, old_tensors; /* so many are in the memory of `it` since it was emptied last */
	const struct um_use *passed; /* uses of the ops that were only counted, */
	uint32_t n_passed, n_passed_uses; /* and how many these are */
	uint32_t n_births; /* in this iteration, counted even where they could not be kept */
};

int um_recorder_init(struct um_recorder *r); /* 0 or -ENOMEM */
void um_recorder_fini(struct um_recorder *r);

/* An op comes that was recorded before: with this hash, and uses that stay what they are until the next event. Where it
 * would be written is returned; what the hash does not cover (cost, phase, relaunchable) is to be filled in. NULL: it
 * is an event like others. */
struct um_iter_op *um_recorder_pass(struct um_recorder *r, uint64_t hash, const struct um_use *uses, uint32_t n_uses);

/* Uses that were passed, and flags of their tensors, may change from now on. */
void um_recorder_settle(struct um_recorder *r);

/* At an iter event, before feeding it: hands the finished iteration over. Its strings stay valid while the recorder
 * lives. The memory of `*out` (initialised, or an earlier iteration of this recorder) is taken in exchange and used
 * again. */
void um_recorder_take(struct um_recorder *r, struct um_iteration *out);

#endif
