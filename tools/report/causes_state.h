/* SPDX-License-Identifier: Apache-2.0
 *
 * causes_state.h - private to causes.c, causes_host.c and causes_move.c
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

/* Part of a range that has one tensor and lies in one block. */
struct um_cause_part {
	uint64_t address, bytes;
	uint32_t tensor, pages;
	struct um_page_block *block;
};

/* The first part of [address, address + bytes); its block is NULL where there are too many. 0 or -ENOMEM. */
int um_causes_part(struct um_causes *c, const struct um_cause_site *site, uint64_t address, uint64_t bytes,
		   struct um_cause_part *out);

/* Of a part's bytes, those on some of its pages. */
uint64_t um_causes_bytes_on(const struct um_cause_part *part, uint32_t pages);

/* What another kernel than this has faulted on or used is its device's. */
void um_causes_look(struct um_page_block *b, uint64_t kernel);

/* What was counted for faults of the running kernel on a block has another reason. 0 or -ENOMEM. */
int um_causes_turn(struct um_causes *c, struct um_page_block *b, enum um_reason reason);

/* A prefetch that covers some pages of the block is judged late, or evicted early. */
void um_causes_hint_late(struct um_causes *c, struct um_page_block *b, uint32_t pages, uint64_t kernel);
void um_causes_hint_early(struct um_causes *c, struct um_page_block *b, uint32_t pages);

/* Another prefetch takes its place on the block. */
void um_causes_hint_over(struct um_causes *c, struct um_page_block *b);

/* causes_wait.c: waiting without a fault. 0 or -ENOMEM. */
int um_causes_wait_moved(struct um_causes *c, const struct um_cause_site *site, const struct um_activity *a);
int um_causes_waits(struct um_causes *c, const struct um_cause_site *site, const struct um_kernel_span *span,
		    uint64_t *ns);
void um_causes_waits_fini(struct um_causes *c);

/* Some of the block is on a lane's device, or none of it is anywhere any more. */
void um_causes_resident(struct um_causes *c, struct um_page_block *b, uint32_t lane);
void um_causes_gone(struct um_causes *c, struct um_page_block *b);

static inline void um_causes_left(struct um_causes *c, struct um_page_block *b)
{
	if (!(b->on | b->use | b->fault_pages | b->hint_pages))
		um_causes_gone(c, b);
}

/* A process's only lane; UM_CAUSES_NONE: it has several, or none yet. */
uint32_t um_causes_lane_of(const struct um_causes *c, uint32_t process);

/* So long the link of a lane has been idle so far. */
uint64_t um_causes_link_idle(const struct um_causes *c, uint32_t lane);

#endif
