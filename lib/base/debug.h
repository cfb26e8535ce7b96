/* SPDX-License-Identifier: Apache-2.0
 *
 * debug.h - invariants that debug builds check, by level
 *
 * UM_DEBUG (configure --enable-debug=LEVEL) is the level: 0, a release, checks nothing; 1 checks conditions that cost a
 * comparison; 2 also checks that visit many objects, outside the op path; 3 also such checks on the op path.
 */
#ifndef UM_BASE_DEBUG_H
#define UM_BASE_DEBUG_H

#include <assert.h>

#ifndef UM_DEBUG
#define UM_DEBUG 0
#endif

/* The condition is compiled at every level, so that it does not rot; below its level it is never evaluated. */
#define UM_ASSERT_AT(level, condition)                                                                                 \
	do {                                                                                                           \
		if (UM_DEBUG >= (level))                                                                               \
			assert(condition);                                                                             \
	} while (0)

#define um_assert(condition) UM_ASSERT_AT(1, condition)
#define um_assert_thorough(condition) UM_ASSERT_AT(2, condition)
#define um_assert_op_path(condition) UM_ASSERT_AT(3, condition)

#endif
