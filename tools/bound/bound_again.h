/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_again.h - the least time for which content can be computed again
 *
 * in    chains of gaps, which content each op finds, a budget
 * out   for each chain its ms per MiB, or BOUND_NEVER
 *
 * See bound_again.c for why these times are a bound.
 */
#ifndef UM_BOUND_BOUND_AGAIN_H
#define UM_BOUND_BOUND_AGAIN_H

#include "bound/bound_history.h"

/* Needs w->need. 0 or -ENOMEM. At most 64 launches a chain of gaps are found. */
int bound_again_find(struct bound_work *w, const struct bound_history *h, uint64_t budget);

#endif
