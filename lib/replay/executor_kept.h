/* SPDX-License-Identifier: Apache-2.0
 *
 * executor_kept.h - the blocks that stay on the device as a plan begins (private to the executor)
 *
 * in    a compiled plan, what is resident
 * out   sets of blocks: their addresses, ascending
 *
 * Iteration path: O(n log n). Not thread-safe.
 */
#ifndef UM_REPLAY_EXECUTOR_KEPT_H
#define UM_REPLAY_EXECUTOR_KEPT_H

#include "replay/executor_state.h"

#include "base/bisect.h"

struct um_kept {
	uint64_t *at;
	size_t n, cap;
};

static inline int um_kept_has(const uint64_t *sorted, size_t n, uint64_t addr)
{
	return um_bisect_find(sorted, n, addr) < n;
}

int um_kept_compare(const void *a, const void *b); /* of addresses, or of structs that begin with one */
void um_kept_sort(struct um_kept *k); /* ascending, each one once */

/* Where the host knows of a block that was read mostly, and the plan does not advise it, its copy was dropped.
 * `*last`: number of the latest op that used it; 0: not known. */
enum um_residency um_executor_residency(struct um_executor *ex, uint64_t addr, uint64_t *last);

/* Where the blocks of an action are now, or will be as planned if its tensor is not born yet. */
struct um_executor_range um_executor_locate_born(const struct um_action *a, const struct um_cursor *c);

/* All of these: 0 or -ENOMEM. */

/* Blocks that the first iteration needs at once, and others that may stay. Not those of supplied tensors: they are not
 * known. */
int um_kept_find(const struct um_compiled_plan *p, const struct um_cursor *c, struct um_kept *kept);
/* All blocks that it prefetches, but those. */
int um_kept_find_prefetched(const struct um_compiled_plan *p, const struct um_cursor *c, struct um_kept *all);
/* Adds resident ones of these, in the order of the prefetches, as long as the plan leaves room for them until then: to
 * evict or discard them and to prefetch them again would delay its ops. At most `dead` of them are of dead memory. */
int um_kept_add_in_turn(struct um_executor *ex, const struct um_compiled_plan *p, uint64_t capacity, uint64_t dead,
			const struct um_cursor *c, struct um_kept *kept);

#endif
