/* SPDX-License-Identifier: Apache-2.0
 *
 * near.h - how far apart two words are, for "did you mean"
 */
#ifndef UM_BASE_NEAR_H
#define UM_BASE_NEAR_H

#include <stddef.h>

#define UM_NEAR_MOST 63 /* longer words are compared by their first letters */

/* How many letters must be added, removed, replaced or swapped with their neighbour to make `b` of the first `n`
 * letters of `a`. Allocates nothing. */
unsigned um_near_distance(const char *a, size_t n, const char *b);

#endif
