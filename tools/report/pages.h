/* SPDX-License-Identifier: Apache-2.0
 *
 * pages.h - what a recording says of each page of managed memory: where it is, how it came, what became of it
 *
 * in    what report/causes.h makes of migrations, faults, uses and hints
 * out   the state of a block of 2 MiB, as masks over its pages of 64 KiB
 * owns  the blocks: those that something was recorded of, and no more than UM_PAGES_BLOCKS of them
 *
 * A recording shows moves, not places: a page that never moved or faulted may be anywhere. So a bit that is not set
 * means "not seen".
 */
#ifndef UM_REPORT_PAGES_H
#define UM_REPORT_PAGES_H

#include "base/vec.h"
#include "report/index.h"

#define UM_PAGES_BLOCK (2ull << 20) /* bytes */
#define UM_PAGES_PAGE 65536ull
#define UM_PAGES_OF_BLOCK 32u
#define UM_PAGES_BLOCKS (1u << 19) /* 1 TiB; what is beyond is counted as left out */

struct um_page_block {
	uint64_t number; /* address / UM_PAGES_BLOCK */
	uint32_t process;
	uint32_t lane; /* on whose device some of it is (report/causes.h), + 1; 0: it is on none */
	/* masks */
	uint32_t gpu; /* the GPU has had or used them since they were allocated */
	uint32_t on; /* on a device */
	/* of those, since they came: */
	uint32_t asked; /* a prefetch brought them */
	uint32_t extra; /* faults of a kernel brought them that does not use them */
	uint32_t alien; /* of those, pages of a tensor that it does not use at all */
	uint32_t used, written; /* by kernels whose uses are known; faults count, too */
	/* of those that left: */
	uint32_t wasted; /* a prefetch had brought them, and nothing used them before they left */
	uint32_t for_cpu; /* the CPU touched them */
	uint32_t dragged; /* the CPU touched another tensor in their block */
	uint32_t evicted; /* the driver wrote them back while faults were served, and nobody has read them since */
	uint32_t fresh; /* allocated in an iteration, and not met since */
	uint32_t dropped; /* discarded, and not met since */
	int64_t came_begin_ns, came_ns; /* the last of them was on its way from, and to */
	uint64_t left_idle; /* when some of them left, the link had been idle for so many ns */
	uint64_t came_kernel; /* kernels that had begun then */
	int came_quiet; /* none of them was running */
	uint64_t use_kernel; /* the last kernel to use the block, and what of it */
	uint32_t use, use_write;
	uint64_t fault_kernel, fault_op; /* the last to fault on it, and the op that it is of */
	uint32_t fault_pages, fault_tensor; /* where it did */
	uint32_t fault_row; /* where that was counted, and how much */
	uint64_t fault_n, fault_faults, fault_ns, fault_bytes;
	uint32_t cpu_tensor; /* that the CPU touched last */
	uint32_t iteration; /* that `trips` are counted in */
	uint8_t trips[UM_PAGES_OF_BLOCK]; /* times that a page left because the CPU touched it */
	uint32_t hint, hint_pages; /* prefetch that is not judged yet (report/hints.h) */
};

#define UM_PAGES_NONE UINT32_MAX

struct um_pages {
	UM_VEC(struct um_page_block) blocks;
	struct um_index index;
	uint32_t last; /* looked up */
	uint64_t left_out; /* look-ups of blocks past the most */
};

void um_pages_fini(struct um_pages *p); /* one of zeroes is empty */

/* The block that has an address, or NULL: nothing was seen of it. */
struct um_page_block *um_pages_find(struct um_pages *p, uint32_t process, uint64_t address);

/* The same, made where it is not there; NULL with 0: there are too many. Valid until the next one is made. 0 or
 * -ENOMEM. */
int um_pages_at(struct um_pages *p, uint32_t process, uint64_t address, struct um_page_block **out);

/* The pages of its block that a range touches, which does not go beyond it. */
static inline uint32_t um_pages_mask(uint64_t address, uint64_t bytes)
{
	uint64_t first = address % UM_PAGES_BLOCK / UM_PAGES_PAGE;
	uint64_t last = (address % UM_PAGES_BLOCK + (bytes ? bytes - 1 : 0)) / UM_PAGES_PAGE;
	uint32_t upto = last >= UM_PAGES_OF_BLOCK - 1 ? UINT32_MAX : (1u << (last + 1)) - 1;

	return upto & ~((1u << first) - 1);
}

/* How much of a range lies in its block. */
static inline uint64_t um_pages_in_block(uint64_t address, uint64_t bytes)
{
	uint64_t room = UM_PAGES_BLOCK - address % UM_PAGES_BLOCK;

	return bytes < room ? bytes : room;
}

#endif
