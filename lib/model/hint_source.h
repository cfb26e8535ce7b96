/* SPDX-License-Identifier: Apache-2.0
 *
 * hint_source.h - what hints follow from, and counts of hints by it
 */
#ifndef UM_MODEL_HINT_SOURCE_H
#define UM_MODEL_HINT_SOURCE_H

#include <stdint.h>

/* What a hint follows from. */
enum um_hint_source {
	UM_HINT_SCHEDULED, /* the plan */
	UM_HINT_PREDICTED, /* an op that is predicted, without a plan */
	UM_HINT_ANNOUNCED, /* the op at hand */
	UM_HINT_SOURCES
};

struct um_hints_by_source {
	uint64_t hints[UM_HINT_SOURCES], prefetch_bytes[UM_HINT_SOURCES];
};

#endif
