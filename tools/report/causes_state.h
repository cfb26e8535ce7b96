/* SPDX-License-Identifier: Apache-2.0
 *
 * causes_state.h - sums and the state of blocks: private to the causes*.c files
 */
#ifndef UM_REPORT_CAUSES_STATE_H
#define UM_REPORT_CAUSES_STATE_H

#include "report/causes.h"

struct um_cause_pending {
	uint32_t lane;
	struct um_cause_row row;
};

/* Adds to a row of sums, `row->iteration` being the site's. The row's number, or UM_CAUSES_NONE, goes to `*at` (may be
 * NULL). 0 or -ENOMEM. */
int um_causes_add(struct um_causes *c, const struct um_cause_site *site, struct um_cause_row row, uint32_t *at);

/* Adds rows without an iteration. 0 or -ENOMEM. */
int um_causes_settle_all(struct um_causes *c);

/* Part of a range with one tensor in one block. */
struct um_cause_part {
	uint64_t address, bytes;
	uint32_t tensor, pages;
	struct um_page_block *block;
};

/* The first part of [address, address + bytes); its block is NULL if there are too many. 0 or -ENOMEM. */
int um_causes_part(struct um_causes *c, const struct um_cause_site *site, uint64_t address, uint64_t bytes,
		   struct um_cause_part *out);

/* Bytes of a part on some of its pages. */
uint64_t um_causes_bytes_on(const struct um_cause_part *part, uint32_t pages);

/* Pages that another kernel has faulted on or used belong to its device. */
void um_causes_settle_block(struct um_page_block *b, uint64_t kernel);

/* Moves the counts of the running kernel's faults on a block to another reason. 0 or -ENOMEM. */
int um_causes_reclassify(struct um_causes *c, struct um_page_block *b, enum um_reason reason);

/* Marks a prefetch of some pages of the block as late, or as evicted early. */
void um_causes_hint_late(struct um_causes *c, struct um_page_block *b, uint32_t pages, uint64_t kernel);
void um_causes_hint_early(struct um_causes *c, struct um_page_block *b, uint32_t pages);

/* Replaces the prefetch of the block. */
void um_causes_hint_end(struct um_causes *c, struct um_page_block *b);

/* causes_wait.c: stalls without a fault. 0 or -ENOMEM. */
int um_causes_wait_moved(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a);
int um_causes_waits(struct um_causes *c, const struct um_cause_site *site, const struct um_kernel_span *span,
		    uint64_t *ns);
void um_causes_waits_fini(struct um_causes *c);

/* Sets the lane whose device has some of the block, or none. */
void um_causes_resident(struct um_causes *c, struct um_page_block *b, uint32_t lane);
void um_causes_not_resident(struct um_causes *c, struct um_page_block *b);

static inline void um_causes_left(struct um_causes *c, struct um_page_block *b)
{
	if (!(b->on | b->use | b->fault_pages | b->hint_pages))
		um_causes_not_resident(c, b);
}

/* The only lane of a process; UM_CAUSES_NONE: it has several, or none yet. */
uint32_t um_causes_lane_of(const struct um_causes *c, uint32_t process);

/* Idle time of a lane's link so far. */
uint64_t um_causes_link_idle(const struct um_causes *c, uint32_t lane);

#endif
