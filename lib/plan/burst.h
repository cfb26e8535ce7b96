/* SPDX-License-Identifier: Apache-2.0
 *
 * burst.h - the relaunches before one op that bring dropped content back
 *
 * in    the position, the slots to bring back, which slots are dropped there
 * out   the ops to launch again, and the memory that each of them uses: own memory of dropped slots, scratch memory for
 *       what was freed or has changed since, and slots that are there
 * owns  the arrays; kept from burst to burst
 *
 * Relaunches are in the order of the program, so that a version that is overwritten in place is there for its readers.
 * Other dropped slots that are read are brought back as well. Plan path: linear in the relaunches' uses, times the log
 * of touches.
 */
#ifndef UM_PLAN_BURST_H
#define UM_PLAN_BURST_H

#include "plan/versions.h"

/* A slot in a burst. */
enum um_burst_role {
	UM_BURST_READ = 1, /* its memory holds what a relaunch reads */
	UM_BURST_OWN = 2, /* its content returns to its memory */
	UM_BURST_SCRATCH = 4, /* scratch memory replaces it, in some relaunches */
	UM_BURST_AGAIN = 8 /* a relaunch writes the content that it has */
};

struct um_burst {
	const struct um_versions *v; /* borrowed */
	const uint8_t *dropped; /* by slot: its content is gone, its version before `at` would be next. Borrowed */
	uint64_t scratch_from; /* bytes from which on content that is there is not overwritten with the same */
	uint32_t most; /* relaunches */
	int32_t at;
	uint8_t *role, *in; /* by slot: bits of enum um_burst_role; by op: launched again */
	UM_VEC(uint32_t) slots; /* with a role */
	UM_VEC(int32_t) ops; /* ascending once built */
	UM_VEC(uint32_t) queue; /* pairs: slot, version */
};

int um_burst_init(struct um_burst *b, const struct um_versions *v); /* 0 or -ENOMEM */
void um_burst_fini(struct um_burst *b);

/* Before op `at`, brings back `n` slots that are dropped and alive. 0, -ENOMEM, or -EINVAL: it cannot be done. */
int um_burst_build(struct um_burst *b, int32_t at, const uint32_t *slots, uint32_t n);

/* Does relaunch `op` of the burst use scratch memory for a slot? */
int um_burst_is_scratch(const struct um_burst *b, int32_t op, uint32_t slot);

#endif
