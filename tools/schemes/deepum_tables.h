/* SPDX-License-Identifier: Apache-2.0
 *
 * deepum_tables.h - which kernel follows which, and which fault follows which in a kernel (DeepUM)
 *
 * in    kernels in the order in which they run, by id; faults, by block
 * out   the kernel expected next; the blocks expected behind a block
 * owns  the tables
 *
 * Execution table: for an id and the three before it, the id that came next. Block tables, one per id: 2048 rows of two
 * blocks, each with the last four different ones that came next; a row keeps what was used last. What there is no
 * memory for is not learned. All operations O(log entries).
 */
#ifndef UM_SCHEMES_DEEPUM_TABLES_H
#define UM_SCHEMES_DEEPUM_TABLES_H

#include "base/tree.h"

#define UM_DEEPUM_BEFORE 3 /* preceding ids */
#define UM_DEEPUM_ROWS 2048
#define UM_DEEPUM_WAYS 2
#define UM_DEEPUM_SUCCESSORS 4
#define UM_DEEPUM_NONE UINT64_MAX

/* A kernel and what ran before it, the latest first. */
struct um_deepum_context {
	uint64_t id, before[UM_DEEPUM_BEFORE];
};

/* Of one kernel: where its faults began and ended the last time, UM_DEEPUM_NONE if never. */
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

/* One kernel more has begun: the context moves on to it. */
void um_deepum_shift(struct um_deepum_context *c, uint64_t id);
void um_deepum_followed(struct um_deepum_tables *t, const struct um_deepum_context *c, uint64_t next);
uint64_t um_deepum_next(const struct um_deepum_tables *t, const struct um_deepum_context *c); /* or UM_DEEPUM_NONE */

/* In kernel `id` the fault on `block` was followed by that on `next`. */
void um_deepum_relate(struct um_deepum_tables *t, uint64_t id, uint64_t block, uint64_t next);
/* The latest first. Returns how many. */
unsigned um_deepum_successors(const struct um_deepum_tables *t, uint64_t id, uint64_t block,
			      uint64_t out[UM_DEEPUM_SUCCESSORS]);

#endif
