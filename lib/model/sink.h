/* SPDX-License-Identifier: Apache-2.0
 *
 * sink.h - interface of event receivers
 *
 * Put a struct um_sink first in the receiver's struct. feed() returns 0 or -errno; a source stops at the first error.
 */
#ifndef UM_MODEL_SINK_H
#define UM_MODEL_SINK_H

#include "model/event.h"

struct um_sink {
	int (*feed)(struct um_sink *sink, const struct um_event *event);
};

static inline int um_sink_feed(struct um_sink *sink, const struct um_event *event)
{
	return sink->feed(sink, event);
}

#endif
