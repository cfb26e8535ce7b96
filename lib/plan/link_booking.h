/* SPDX-License-Identifier: Apache-2.0
 *
 * link_booking.h - chooses swaps whose copies fit into idle time of the link (scheme autoswap-no-overhead)
 *
 * in    swaps in the order of rank
 * out   swaps that delay no op, and the resulting load
 */
#ifndef UM_PLAN_LINK_BOOKING_H
#define UM_PLAN_LINK_BOOKING_H

#include "plan/swaps.h"

/* The idle time of the link in one direction, within the ops' own times. */
struct um_link_booking {
	uint64_t *left; /* by op: ns not booked */
	int32_t *skip; /* by op: number of ops to skip if nothing is left */
	int32_t n;
};

int um_link_booking_init(struct um_link_booking *t, const struct um_scheme_input *s); /* 0 or -ENOMEM */
void um_link_booking_fini(struct um_link_booking *t);

/* The op in which a copy of `ns` ends if it uses the idle time from position `from` on, forwards (`step` 1) or
 * backwards (-1); `to` if the time before `to` does not suffice. Books the time if `book`. */
int64_t um_link_booking_add(struct um_link_booking *t, int64_t from, int64_t to, int step, uint64_t ns, int book);

/* Takes swaps where the load is above `limit`, in order, each copied out as early and back as late as the link is free,
 * within the ops' own times; skips those that do not fit. A swap frees its room only between its copies. Sets
 * not_before. `*most`: the highest load then. 0 or -ENOMEM. */
int um_link_booking_choose(const struct um_swaps *w, const struct um_scheme_input *s, const uint32_t *order,
			   int32_t limit, struct um_scheme_result *a, int32_t *most);

#endif
