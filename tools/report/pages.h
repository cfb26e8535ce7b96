/* SPDX-License-Identifier: Apache-2.0
 *
 * pages.h - recorded state of each page of managed memory: its place, the cause of its migration, its uses
 *
 * in    migrations, faults, uses and hints, from report/causes.h
 * out   the state of a block of 2 MiB, as masks over its pages of 64 KiB
 * owns  the blocks with recorded events, at most UM_PAGES_BLOCKS
 *
 * A recording shows migrations, not residency: the place of a page without migrations and faults is unknown. A clear
 * bit means "not recorded".
 */
#ifndef UM_REPORT_PAGES_H
#define UM_REPORT_PAGES_H

#include "base/vec.h"
#include "report/index.h"

#define UM_PAGES_BLOCK (2ull << 20) /* bytes */
#define UM_PAGES_PAGE 65536ull
#define UM_PAGES_OF_BLOCK 32u
#define UM_PAGES_BLOCKS (1u << 19) /* 1 TiB; blocks beyond it are counted as left out */

struct um_page_block {
	uint64_t number; /* address / UM_PAGES_BLOCK */
	uint32_t process;
	uint32_t lane; /* lane whose device has some of it (report/causes.h), + 1; 0: none */
	/* masks */
	uint32_t gpu; /* resident on or used by the GPU since their allocation */
	uint32_t on; /* on a device */
	/* of those, since their migration: */
	uint32_t asked; /* migrated by a prefetch */
	uint32_t extra; /* migrated by faults of a kernel that does not use them */
	uint32_t foreign; /* of those, pages of a tensor that the kernel does not use */
	uint32_t used, written; /* by kernels with declared uses; faults count, too */
	/* of those that were evicted: */
	uint32_t wasted; /* prefetched, and not used before the eviction */
	uint32_t for_cpu; /* accessed by the CPU */
	uint32_t dragged; /* the CPU accessed another tensor in their block */
	uint32_t evicted; /* written back by the driver while faults were served, and not read since */
	uint32_t fresh; /* allocated in an iteration, and without an event since */
	uint32_t dropped; /* discarded, and without an event since */
	int64_t came_begin_ns, came_ns; /* begin and end of the last copy of them */
	uint64_t left_idle; /* idle time of the link at their eviction, ns */
	uint64_t came_kernel; /* begun kernels at that time */
	int came_idle; /* no kernel was running then */
	uint64_t came_until; /* end of that copy; the driver may add the rest of its last page as another copy */
	unsigned came_reason; /* of the last page of that copy, if it was a fault's */
	uint64_t use_kernel; /* the last kernel to use the block, and its pages */
	uint32_t use, use_write;
	uint64_t fault_kernel, fault_op; /* the last kernel to fault on it, and its op */
	uint32_t fault_pages, fault_tensor; /* the faulting pages */
	uint32_t fault_row; /* row and amount of that count */
	uint64_t fault_n, fault_faults, fault_ns, fault_bytes;
	uint32_t cpu_tensor; /* pages of the CPU's last access */
	uint32_t iteration; /* iteration of `trips` */
	uint8_t trips[UM_PAGES_OF_BLOCK]; /* migrations to the host by CPU accesses */
	uint32_t hint, hint_pages; /* prefetch with a pending outcome (report/hints.h) */
};

#define UM_PAGES_NONE UINT32_MAX

struct um_pages {
	UM_VEC(struct um_page_block) blocks;
	struct um_index index;
	uint32_t last; /* looked up */
	uint64_t left_out; /* look-ups of blocks beyond the limit */
};

void um_pages_fini(struct um_pages *p); /* zeroed: empty */

/* The block of an address, or NULL: no recorded events. */
struct um_page_block *um_pages_find(struct um_pages *p, uint32_t process, uint64_t address);

/* The same, added if missing; NULL with 0: too many. Valid until the next one is added. 0 or -ENOMEM. */
int um_pages_at(struct um_pages *p, uint32_t process, uint64_t address, struct um_page_block **out);

/* The pages of a range within one block. */
static inline uint32_t um_pages_mask(uint64_t address, uint64_t bytes)
{
	uint64_t first = address % UM_PAGES_BLOCK / UM_PAGES_PAGE;
	uint64_t last = (address % UM_PAGES_BLOCK + (bytes ? bytes - 1 : 0)) / UM_PAGES_PAGE;
	uint32_t upto = last >= UM_PAGES_OF_BLOCK - 1 ? UINT32_MAX : (1u << (last + 1)) - 1;

	return upto & ~((1u << first) - 1);
}

/* Bytes of a range in its first block. */
static inline uint64_t um_pages_in_block(uint64_t address, uint64_t bytes)
{
	uint64_t room = UM_PAGES_BLOCK - address % UM_PAGES_BLOCK;

	return bytes < room ? bytes : room;
}

#endif
