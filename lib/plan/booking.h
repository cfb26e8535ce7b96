/* SPDX-License-Identifier: Apache-2.0
 *
 * booking.h - chooses swaps whose copies delay no op (scheme autoswap-no-overhead)
 *
 * in    swaps in the order of rank
 * out   swaps whose copies fit between the others' and into their own absence, and the resulting load
 */
#ifndef UM_PLAN_BOOKING_H
#define UM_PLAN_BOOKING_H

#include "plan/swaps.h"

/* One direction of the link. */
struct um_track {
	uint64_t *left; /* by op: ns not booked */
	int32_t *skip; /* by op: number of ops to skip if nothing is left */
	int32_t n;
};

int um_track_init(struct um_track *t, const struct um_scheme_input *s); /* 0 or -ENOMEM */
void um_track_fini(struct um_track *t);

/* The op in which a copy ends that begins at position `from` and proceeds by `step` (1 or -1), `to` if it does not end
 * before that. Books it if `book`. */
int64_t um_track_book(struct um_track *t, int64_t from, int64_t to, int step, uint64_t ns, int book);

/* Takes swaps where the load is above `limit`, in order, each copied out as early and back as late as the link is free,
 * within the ops' own times; skips those that do not fit. A swap frees its room only between its copies. Sets
 * not_before. `*most`: the highest load then. 0 or -ENOMEM. */
int um_booking_choose(const struct um_swaps *w, const struct um_scheme_input *s, const uint32_t *order, int32_t limit,
		      struct um_scheme_result *a, int32_t *most);

#endif
