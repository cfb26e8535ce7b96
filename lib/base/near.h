/* SPDX-License-Identifier: Apache-2.0
 *
 * near.h - edit distance between two words, for "did you mean" messages
 */
#ifndef UM_BASE_NEAR_H
#define UM_BASE_NEAR_H

#include <stddef.h>

#define UM_NEAR_MOST 63 /* longer words are compared by their first letters */

/* Number of letters to add, remove, replace or swap with a neighbour to turn the first `n` letters of `a` into `b`.
 * Allocates nothing. */
unsigned um_near_distance(const char *a, size_t n, const char *b);

#endif
