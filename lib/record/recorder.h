/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder.h - a sink that records the events of the current iteration
 *
 * in    events (with live tensors)
 * out   one struct um_iteration per iteration
 * owns  the iteration being recorded
 *
 * Op path: O(uses), no allocation once an iteration of this length was recorded. The recorder reuses the memory of the
 * iteration before the last one: ops that are known to be equal are only counted, and copied when a different event
 * follows. If an allocation fails the iteration is marked incomplete and the host program continues. Names are
 * interned. Not thread-safe.
 *
 * Of the set-up (before the first iter) only births are counted, unless `setup` is set. An iteration that exceeds a cap
 * (struct um_record_caps) is too long: its memory is freed, the rest of it is not recorded, and recording continues at
 * the next iter. So a program that stops marking iterations does not fill the memory. An iteration in which a tensor is
 * born around live ones is incomplete, too. Writes into live tensors: born_iter and born_ord at birth; seen_iter and
 * seen_at.
 */
#ifndef UM_RECORD_RECORDER_H
#define UM_RECORD_RECORDER_H

#include "model/iteration.h"
#include "model/sink.h"
#include "record/names.h"

#define UM_RECORD_OPS (1u << 20)
#define UM_RECORD_USES (8u << 20)
#define UM_RECORD_TENSORS (2u << 20)

/* Limits of a recorded iteration. */
struct um_record_caps {
	uint32_t ops, uses, tensors;
};

struct um_recorder {
	struct um_sink sink;
	struct um_record_caps caps;
	int setup; /* what comes before the first iter is recorded, too */
	int too_long; /* the current iteration exceeded a cap */
	struct um_iteration it; /* the current one; n == 0: set-up, before the first iter */
	struct um_names names; /* alive as long as the recorder */
	UM_VEC(uint32_t) last_use; /* by tensor of `it`: index of its last use, UINT32_MAX none */
	uint64_t generation; /* number of times that `it` was emptied: until the next one a tensor's seen_at is valid */
	size_t old_ops, old_tensors; /* entries in the memory of `it` from the iteration that it held before */
	const struct um_use *repeated; /* uses of the ops that were only counted */
	uint32_t n_repeated, n_repeated_uses; /* numbers of these ops and uses */
	uint32_t n_births; /* in this iteration, counted even if not kept */
};

int um_recorder_init(struct um_recorder *r); /* 0 or -ENOMEM */
void um_recorder_fini(struct um_recorder *r);

/* Records an op that equals a recorded one: same hash, and uses that stay unchanged until the next event. Returns the
 * entry; the caller fills in the fields that the hash does not cover (cost, phase, relaunchable), but `collective`,
 * which stays. NULL: feed it as an ordinary event. */
static inline struct um_iter_op *um_recorder_repeat(struct um_recorder *r, uint64_t hash, const struct um_use *uses,
						    uint32_t n_uses)
{
	struct um_iteration *it = &r->it;
	size_t at = it->ops.n + r->n_repeated;
	struct um_iter_op *kept = &it->ops.at[at];

	/* if all ops before it had the same number of uses, its old entry was not overwritten */
	if (at >= r->old_ops || kept->hash != hash || kept->first_use != it->uses.n + r->n_repeated_uses ||
	    kept->n_uses != n_uses || kept->n_relaunch || kept->n_ws)
		return NULL;
	if (!r->n_repeated)
		r->repeated = uses;
	else if (uses != r->repeated + r->n_repeated_uses)
		return NULL;
	r->n_repeated++;
	r->n_repeated_uses += n_uses;
	return kept;
}

/* Copies the uses that were only counted: they, and the flags of their tensors, may change from now on. */
void um_recorder_flush(struct um_recorder *r);

/* Forgets what was recorded of the current iteration: it begins here. Its births are counted on. */
void um_recorder_restart(struct um_recorder *r);

/* Called at an iter event, before feeding it: hands over the finished iteration. Its strings stay valid while the
 * recorder lives. The memory of `*out` (initialised, or an earlier iteration of this recorder) is taken in exchange and
 * reused. */
void um_recorder_take(struct um_recorder *r, struct um_iteration *out);

#endif
