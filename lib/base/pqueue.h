/* SPDX-License-Identifier: Apache-2.0
 *
 * pqueue.h - priority queues: binary heaps in arrays of the caller's
 *
 * UM_PQUEUE(NAME, type, before) defines NAME_rise and NAME_sink. `before(const type *a, const type *b)`: is a nearer to
 * the top, at[0]? To add: append, then rise. To remove the top: move the last one there and sink. UM_PQUEUE_TRACKED
 * also calls `moved(type *x, size_t i)` for each element that is moved to i. O(log n).
 */
#ifndef UM_BASE_PQUEUE_H
#define UM_BASE_PQUEUE_H

#include <stddef.h>

#define UM_PQUEUE_UNTRACKED(x, i) (void)0
#define UM_PQUEUE(name, type, before) UM_PQUEUE_TRACKED(name, type, before, UM_PQUEUE_UNTRACKED)

#define UM_PQUEUE_TRACKED(name, type, before, moved)                                                                   \
	/* at[i] has come nearer to the top than it was, or is new. */                                                 \
	static inline __attribute__((unused)) void name##_rise(type *at, size_t i)                                     \
	{                                                                                                              \
		type x = at[i];                                                                                        \
                                                                                                                       \
		for (; i > 0 && before(&x, &at[(i - 1) / 2]); i = (i - 1) / 2) {                                       \
			at[i] = at[(i - 1) / 2];                                                                       \
			moved(&at[i], i);                                                                              \
		}                                                                                                      \
		at[i] = x;                                                                                             \
		moved(&at[i], i);                                                                                      \
	}                                                                                                              \
	/* at[i] is further from the top of n than it was. */                                                          \
	static inline __attribute__((unused)) void name##_sink(type *at, size_t n, size_t i)                           \
	{                                                                                                              \
		type x = at[i];                                                                                        \
                                                                                                                       \
		for (size_t k; (k = 2 * i + 1) < n; i = k) {                                                           \
			if (k + 1 < n && before(&at[k + 1], &at[k]))                                                   \
				k++;                                                                                   \
			if (!before(&at[k], &x))                                                                       \
				break;                                                                                 \
			at[i] = at[k];                                                                                 \
			moved(&at[i], i);                                                                              \
		}                                                                                                      \
		at[i] = x;                                                                                             \
		moved(&at[i], i);                                                                                      \
	}

#endif
