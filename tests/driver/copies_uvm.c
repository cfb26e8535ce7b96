/* SPDX-License-Identifier: Apache-2.0
 *
 * copies_uvm.c - which copies does the driver make of a migration?
 *
 * uvm_copies_cut.c has block_copy_resident_pages_between, cut out by `run`. Its pushes do nothing; each copy is
 * reported as a migration event, which is recorded. Both sides of the block are one piece of 2 MiB.
 */
#include <uvm_va_block.h>

#include "uvm.h"

typedef struct {
	uvm_processor_id_t id;
	int nid;
	bool is_block_contig;
	NvU64 gpu_address;
} copy_end_t;

typedef struct {
	copy_end_t src, dst;
} block_copy_state_t;

typedef struct {
	int unused;
} uvm_va_block_gpu_state_t;

static struct uvm_copy *copies;
static unsigned n_copies, n_methods;

static void record(NvU64 addr, NvU64 bytes, uvm_make_resident_cause_t cause)
{
	copies[n_copies++] = (struct uvm_copy){(unsigned)(addr / PAGE_SIZE), (unsigned)(bytes / PAGE_SIZE),
					       cause == UVM_MAKE_RESIDENT_CAUSE_PREFETCH};
}

#define is_block_phys_contig(block, id, nid) true
#define zero_destination_mem_if_needed(block, region, mask, src, dst) NV_OK
#define uvm_range_group_range_iter_first(space, start, end) NULL
#define uvm_range_group_range_iter_next(space, range, end) NULL
#define block_check_resident_proximity(block, context, page, id) true
#define block_processor_page_is_populated(block, id, page) true
#define block_page_is_clean(block, dst, dst_nid, src, src_nid, page) false
#define block_update_page_dirty_state(block, dst, dst_nid, src, src_nid, page) ((void)0)
#define uvm_va_policy_preferred_location_equal(policy, id, nid) false
#define block_copy_should_use_push(block, state) true
#define block_copy_begin_push(...) NV_OK
#define block_copy_end_push(block, state, tracker, status, push) (status)
#define uvm_push_get_gpu(push) (&uvm_gpu)
#define uvm_va_block_gpu_state_get_alloc(block, gpu) ((uvm_va_block_gpu_state_t *)(block))
#define block_gpu_state_get_alloc(block, gpu) ((uvm_va_block_gpu_state_t *)(block))
#define uvm_tools_record_migration_begin(...) ((void)0)
#define uvm_tools_record_block_migration_begin(...) ((void)0)
#define block_phys_page(id, nid, page) 0
#define block_phys_page_copy_address(block, page, gpu) 0
#define block_copy_pages(block, state, region, push) (n_methods++, NV_OK)
#ifdef UVM_OLD_EVENT
#define uvm_perf_event_notify_migration(events, push, block, dst, src, addr, bytes, mode, cause, context)              \
	record(addr, bytes, cause)
#define uvm_perf_event_notify_migration_cpu(...) ((void)0)
#else
#define uvm_perf_event_notify_migration(events, push, block, dst, src, addr, bytes, mode, index, cause, context)       \
	record(addr, bytes, cause)
#define uvm_perf_event_notify_migration_cpu(...) ((void)0)
#endif

#include <uvm_copies_cut.c>

unsigned uvm_copies(int to_gpu, int by_fault, const uint64_t pages[8], const uint64_t added[8], const uint64_t there[8],
		    struct uvm_copy out[512])
{
	static uvm_va_block_context_t context;
	uvm_va_range_managed_t range = {.policy.preferred_location = UVM_ID_INVALID};
	uvm_processor_id_t dst = {to_gpu ? 1 : 0}, src = {!dst.val};
	uvm_page_mask_t copy, extra;
	uvm_va_block_t block;
	uvm_tracker_t tracker;
	NvU32 copied;

	uvm_gpu.id = (uvm_processor_id_t){1};
	memset(&block, 0, sizeof block);
	block.end = UVM_VA_BLOCK_SIZE - 1;
	block.managed_range = block.va_range = &range;
	memcpy(block.on[dst.val].bitmap, there, sizeof block.on[0].bitmap);
	memcpy(copy.bitmap, pages, sizeof copy.bitmap);
	memcpy(extra.bitmap, added, sizeof extra.bitmap);
	context.make_resident.cause =
		by_fault ? UVM_MAKE_RESIDENT_CAUSE_REPLAYABLE_FAULT : UVM_MAKE_RESIDENT_CAUSE_API_MIGRATE;
	copies = out;
	n_copies = n_methods = 0;
	block_copy_resident_pages_between(&block, &context, dst, 0, src, 0, uvm_va_block_region(0, 512), &copy, &extra,
					  UVM_VA_BLOCK_TRANSFER_MODE_MOVE, NULL, &copied, &tracker);
	UVM_ASSERT(n_copies == n_methods); /* one copy method each */
	return n_copies;
}
