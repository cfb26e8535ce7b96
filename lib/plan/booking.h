/* SPDX-License-Identifier: Apache-2.0
 *
 * booking.h - swaps that delay nobody
 *
 * in    swaps in the order of rank
 * out   those whose copies fit between the others' and into their own absence, and what the load comes down to
 */
#ifndef UM_PLAN_BOOKING_H
#define UM_PLAN_BOOKING_H

#include "plan/swaps.h"

/* Takes swaps where the load is above `limit`, in order, each copied out as early and back as late as the link is
 * free, from op to op in the time that ops take by themselves; passes over what does not fit. A swap frees its room
 * only between its copies. Sets not_before. `*most`: the highest load then. 0 or -ENOMEM. */
int um_booking_choose(const struct um_swaps *w, const struct um_scheme_case *s, const uint32_t *order, int32_t limit,
                      struct um_scheme_answer *a, int32_t *most);

#endif
