/* SPDX-License-Identifier: Apache-2.0
 *
 * deepum_tables.h - successions of kernels, and of faults in a kernel (DeepUM)
 *
 * in    kernels in order of execution, by id; faults, by block
 * out   the kernel expected next; the blocks expected after a block
 * owns  the tables
 *
 * Execution table: for an id and the three before it, the next id. Block tables, one per id: 2048 rows of two blocks,
 * each with the last four different successors; a row keeps the most recently used ones. Without memory nothing is
 * learned. All operations O(log entries).
 */
#ifndef UM_SCHEMES_DEEPUM_TABLES_H
#define UM_SCHEMES_DEEPUM_TABLES_H

#include "base/tree.h"

#define UM_DEEPUM_BEFORE 3 /* preceding ids */
#define UM_DEEPUM_ROWS 2048
#define UM_DEEPUM_WAYS 2
#define UM_DEEPUM_SUCCESSORS 4
#define UM_DEEPUM_NONE UINT64_MAX

/* A kernel and its predecessors, latest first. */
struct um_deepum_context {
	uint64_t id, before[UM_DEEPUM_BEFORE];
};

/* Of one kernel: first and last block of its latest faults, UM_DEEPUM_NONE if none. */
struct um_deepum_exec {
	struct um_tree_node node; /* a: the id */
	uint64_t start, end; /* blocks */
};

struct um_deepum_tables {
	struct um_tree execs, records, rows;
};

void um_deepum_tables_fini(struct um_deepum_tables *t); /* all 0 at first */

/* An entry of its own for each id; NULL without memory. */
struct um_deepum_exec *um_deepum_exec(struct um_deepum_tables *t, uint64_t id);

/* A kernel begins: the context moves on to it. */
void um_deepum_shift(struct um_deepum_context *c, uint64_t id);
void um_deepum_followed(struct um_deepum_tables *t, const struct um_deepum_context *c, uint64_t next);
uint64_t um_deepum_next(const struct um_deepum_tables *t, const struct um_deepum_context *c); /* or UM_DEEPUM_NONE */

/* In kernel `id` a fault on `next` followed that on `block`. */
void um_deepum_relate(struct um_deepum_tables *t, uint64_t id, uint64_t block, uint64_t next);
/* The latest first. Returns how many. */
unsigned um_deepum_successors(const struct um_deepum_tables *t, uint64_t id, uint64_t block,
			      uint64_t out[UM_DEEPUM_SUCCESSORS]);

#endif
