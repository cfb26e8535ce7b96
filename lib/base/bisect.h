/* SPDX-License-Identifier: Apache-2.0
 *
 * bisect.h - binary search
 */
#ifndef UM_BASE_BISECT_H
#define UM_BASE_BISECT_H

#include <stddef.h>
#include <stdint.h>

/* Raises `lo`, a variable, to the first `i` in [lo, hi) for which `is_before`, an expression of `i`, is 0; to `hi`
 * where it never is. Once 0 it must stay 0. O(log n). */
#define UM_BISECT(lo, hi, i, is_before)                                                                                \
	for (__typeof__(lo) um_end_ = (hi), i; lo < um_end_;) {                                                        \
		i = lo + (um_end_ - lo) / 2;                                                                           \
		if (is_before)                                                                                         \
			lo = i + 1;                                                                                    \
		else                                                                                                   \
			um_end_ = i;                                                                                   \
	}

/* The index of `x` among `n` ascending numbers; `n`: it is not there. */
static inline size_t um_bisect_find(const uint64_t *ascending, size_t n, uint64_t x)
{
	size_t lo = 0;

	UM_BISECT(lo, n, i, ascending[i] < x)
	return lo < n && ascending[lo] == x ? lo : n;
}

#endif
