/* SPDX-License-Identifier: Apache-2.0
 *
 * sharing.h - the part of the device that a context uses, while other contexts use it, too
 *
 * in    options, the device, live bytes; the table of all contexts on the device (arbiter/arbiter.h)
 * out   blocks that this context may use
 * owns  a slot of that table, an event
 *
 * A context declares all that it may have until an iteration has ended, and then an eighth more than the most bytes
 * that were alive at once: places between tensors take room, too. The declared need only grows.
 *
 * A real device is named by its UUID. A simulated one exists in its process alone, unless UMADVISE_SHARE_DEVICE names
 * it. Iteration path: one load while the context is alone. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_RUNTIME_SHARING_H
#define UM_RUNTIME_SHARING_H

#include "arbiter/arbiter.h"
#include "replay/executor.h"
#include "runtime/chosen_device.h"

struct um_sharing {
	struct um_arbiter arbiter; /* takes no part if the context is not to share */
	struct um_arbiter_claim claim;
	uint64_t in_use; /* blocks that hints keep to; <= arbiter.held */
	uint64_t hinted; /* bytes, of managed memory alone: the device's budget as hints know it */
	int passive; /* ops may not be announced for long: the need is known without an iteration */
	int failed; /* evictions could not be requested */
	int evicts; /* what is above `in_use` is being evicted: */
	struct um_executor_room room; /* the last of these evictions, by the executor; */
	uint32_t epoch; /* and the executor's epoch then */
	um_event_handle evicted; /* or the event after them; NULL: none yet */
};

/* Takes part if the options allow and the device is one that several processes can use: sets the device's budget. */
void um_sharing_open(struct um_sharing *s, struct um_chosen_device *d, const struct um_options *o,
		     struct um_notices *notices);
void um_sharing_close(struct um_sharing *s, struct um_gpu *gpu);

/* Is um_context_share to be called? */
static inline int um_sharing_has_news(struct um_sharing *s)
{
	return s->arbiter.table && (s->arbiter.others || um_arbiter_has_news(&s->arbiter));
}

/* Declares what the context needs, with `live` bytes alive at most (0: not known yet), and finds what it may use: 1, in
 * blocks, if that differs from what it uses. */
int um_sharing_look(struct um_sharing *s, const struct um_chosen_device *d, uint64_t live, uint64_t *blocks);
/* It uses so many blocks from now on. */
void um_sharing_use(struct um_sharing *s, struct um_chosen_device *d, uint64_t blocks);

#endif
