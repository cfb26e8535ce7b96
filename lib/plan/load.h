/* SPDX-License-Identifier: Apache-2.0
 *
 * load.h - number of resident blocks at each op, as a segment tree
 *
 * Adding to a range, the maximum of a range, and the last position that reaches a limit, each O(log ops). Ranges go
 * around the iteration's end: [from, to) with to - from of any length, positions modulo n.
 */
#ifndef UM_PLAN_LOAD_H
#define UM_PLAN_LOAD_H

#include <stdint.h>

struct um_load {
	int32_t n; /* ops */
	int32_t size; /* leaves: a power of two */
	int32_t *max; /* by node: the maximum below it, without additions above it */
	int32_t *add; /* by node: added to all below it, included in its max */
};

int um_load_init(struct um_load *l, int32_t n); /* all 0; 0 or -ENOMEM */
void um_load_fini(struct um_load *l);

/* Once the leaves (max[size + op]) are set by hand: the nodes above them. */
void um_load_fill(struct um_load *l);

void um_load_add(struct um_load *l, int64_t from, int64_t to, int32_t delta);
int32_t um_load_at(const struct um_load *l, int32_t op);
int32_t um_load_max(const struct um_load *l, int64_t from, int64_t to); /* INT32_MIN of an empty range */

/* The last position in [from, to) with at least `limit`; from - 1 if there is none. to - from <= n. */
int64_t um_load_last(const struct um_load *l, int64_t from, int64_t to, int32_t limit);

#endif
