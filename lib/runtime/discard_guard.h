/* SPDX-License-Identifier: Apache-2.0
 *
 * discard_guard.h - decides whether a range of memory may be discarded now
 *
 * in    live tensors, the library's own memory, the op that is being announced
 * out   yes or no for a range of addresses
 * owns  nothing
 *
 * Promise 1 of the library rests on these rules: a hint never changes a result. A discard is allowed only if no live
 * tensor needs any byte of the range. The plan predicts which content is dead; the guard decides at the time of issue,
 * from the tensors that are alive then. It allows a discard exactly if
 *
 *     1. the range lies in one region of the library's own memory (adopted memory is never discarded), and
 *     2. each live tensor that overlaps the range is in a state marked "yes", in the column of the ops that wait for
 *        the discard:
 *
 *                                        no op   later ops   the current op, too
 *     declared dead, not used since       no       yes         yes
 *     made anew by a relaunch             no       yes         yes
 *     transient, unused so far            no       yes         yes
 *     transient, used this iteration      no       no          no, unless overwritten
 *     overwritten by the current op       no       no          yes
 *     any other                           no       no          no
 *
 * The next op may write a dead tensor, and the discard must be complete by then. So if no op waits for the discard,
 * only memory without a live tensor may be discarded. An iteration writes a transient tensor before it reads it; once
 * used, a later op of the iteration may read it. "Overwritten" means that the op writes every byte of the tensor in the
 * range and reads none of them. A tensor that contains another counts by itself: both must be in a state marked "yes".
 * A freed tensor is not live. The caller holds the context's lock. Cost: O(log tensors + overlapping tensors x uses of
 * the op).
 */
#ifndef UM_RUNTIME_DISCARD_GUARD_H
#define UM_RUNTIME_DISCARD_GUARD_H

#include "record/registry.h"
#include "replay/executor.h"
#include "runtime/arena_pool.h"

struct um_discard_guard {
	const struct um_registry *registry;
	struct um_arena_pool *pool;
	const struct um_use *uses; /* of the op that is being announced */
	uint32_t n_uses;
	uint64_t before_iteration; /* number of ops announced before this iteration began */
};

/* Does one tensor fill [addr, end), which the current op overwrites? The usual case, without a search. */
static inline int um_discard_overwrites(const struct um_discard_guard *g, uint64_t addr, uint64_t end)
{
	int found = 0;

	for (const struct um_use *u = g->uses, *last = u + g->n_uses; u < last; u++) {
		const struct um_tensor *t = u->tensor;
		uint64_t from = t->addr + u->off, to = from + u->bytes;

		if (from >= end || to <= addr)
			continue;
		if (u->access & UM_READ || from > addr || to < end || t->parent || t->n_children)
			return 0;
		found = 1;
	}
	return found;
}

/* The same as um_discard_allowed, from all live tensors in the range; it lies in a region. */
int um_discard_search(const struct um_discard_guard *g, uint64_t addr, uint64_t bytes, enum um_executor_waits waits);

/* May the content of [addr, addr + bytes) be discarded, if these ops wait for the discard? 0: no; 1: yes, no live
 * tensor overlaps it; 2: yes, and live tensors overlap it, so that an op that writes them must wait. */
static inline int um_discard_allowed(const struct um_discard_guard *g, uint64_t addr, uint64_t bytes,
				     enum um_executor_waits waits)
{
	if (!um_arena_pool_region_at(g->pool, addr, bytes))
		return 0;
	return waits == UM_OP_WAITS && um_discard_overwrites(g, addr, addr + bytes)
		       ? 2
		       : um_discard_search(g, addr, bytes, waits);
}

/* The streams whose ops have used live tensors of the range, or freed ones that may still be in use: a bit each. Cost:
 * as above, and O(pieces that wait). */
unsigned um_discard_users(const struct um_discard_guard *g, uint64_t addr, uint64_t bytes);

#endif
