/* SPDX-License-Identifier: Apache-2.0
 *
 * uvm_block.h - what the driver's files need of a block, a range and a space, after the driver's uvm_va_block_types.h
 *
 * uvm_masks.h is cut out of the driver's uvm_va_block.h by `run`: the helpers of page masks and regions.
 */
#ifndef UM_TESTS_UVM_BLOCK_H
#define UM_TESTS_UVM_BLOCK_H

#include <uvm_perf_module.h>

typedef enum {
	UVM_READ_DUPLICATION_UNSET,
	UVM_READ_DUPLICATION_ENABLED,
	UVM_READ_DUPLICATION_DISABLED
} uvm_read_duplication_policy_t;

typedef struct {
	uvm_processor_id_t preferred_location;
	uvm_processor_mask_t accessed_by;
	uvm_read_duplication_policy_t read_duplication;
} uvm_va_policy_t;

enum { UVM_VA_RANGE_TYPE_MANAGED };

struct uvm_va_range_managed_struct {
	uvm_va_policy_t policy;
	int type;
};

enum { UVM_PTE_BITS_CPU_READ, UVM_PTE_BITS_CPU_WRITE };

struct uvm_va_block_struct {
	NvU64 start, end;
	uvm_mutex_t lock;
	uvm_va_range_managed_t *managed_range, *va_range;
	uvm_processor_mask_t resident, mapped;
	uvm_page_mask_t on[2]; /* resident pages, by processor */
	uvm_page_mask_t map[2]; /* mapped pages */
	uvm_page_mask_t discarded_pages, read_duplicated_pages, maybe_mapped_pages;
	struct {
		uvm_page_mask_t pte_bits[2];
	} cpu;
	void *gpus[1];
	struct {
		uvm_processor_id_t last_migration_proc_id;
		NvU16 fault_migrations_to_last_proc;
	} prefetch_info;
	uvm_perf_module_data_desc_t perf_modules_data[UVM_PERF_MODULE_TYPE_COUNT];
	uvm_tracker_t tracker;
};

struct uvm_va_space_struct {
	uvm_rw_semaphore_t lock;
	struct {
		bool page_prefetch_enabled;
	} test;
	uvm_perf_module_data_desc_t perf_modules_data[UVM_PERF_MODULE_TYPE_COUNT];
	uvm_processor_mask_t registered_gpu_va_spaces;
	uvm_processor_mask_t can_access[64], accessible_from[64], has_fast_link[64], has_nvlink[64];
	uvm_processor_mask_t has_native_atomics[64];
	int perf_events;
};

struct uvm_gpu_struct {
	uvm_processor_id_t id;
	uvm_perf_module_data_desc_t perf_modules_data[UVM_PERF_MODULE_TYPE_COUNT];
	struct {
		void *dir;
	} procfs;
};

struct uvm_global {
	bool conf_computing_enabled;
	int num_simulated_devices;
	struct {
		uvm_rw_semaphore_t lock;
	} pm;
	uvm_mutex_t global_lock;
};

extern uvm_va_space_t uvm_space;
extern uvm_gpu_t uvm_gpu;
extern struct uvm_global g_uvm_global;

static inline uvm_va_space_t *uvm_va_block_get_va_space(uvm_va_block_t *block)
{
	(void)block;
	return &uvm_space;
}

static inline NvU64 uvm_va_block_size(uvm_va_block_t *block)
{
	return block->end - block->start + 1;
}

static inline size_t uvm_va_block_num_cpu_pages(uvm_va_block_t *block)
{
	return uvm_va_block_size(block) / PAGE_SIZE;
}

static inline NvU64 uvm_va_block_cpu_page_address(uvm_va_block_t *block, uvm_page_index_t page)
{
	return block->start + PAGE_SIZE * page;
}

static inline uvm_page_index_t uvm_va_block_cpu_page_index(uvm_va_block_t *block, NvU64 addr)
{
	return (uvm_page_index_t)((addr - block->start) / PAGE_SIZE);
}

static inline uvm_page_mask_t *uvm_va_block_resident_mask_get(uvm_va_block_t *block, uvm_processor_id_t id, int node)
{
	(void)node;
	return &block->on[id.val];
}

#define uvm_va_policy_get(block, addr) (&(block)->managed_range->policy)
#define uvm_va_policy_get_region(block, region) (&(block)->managed_range->policy)
#define uvm_va_range_get_policy(range) (&(range)->policy)
#define uvm_va_block_is_hmm(block) ((void)(block), false)
#define uvm_hmm_get_prefetch_region(a, b, c, d) uvm_va_block_region(0, 0)
#define uvm_hmm_check_context_vma_is_valid(a, b, c) true
#define uvm_hmm_migrate_begin_wait(block) ((void)(block))
#define uvm_hmm_migrate_finish(block) ((void)(block))
#define uvm_hmm_clear_thrashing_policy(space) NV_OK

struct uvm_range_group {
	uvm_spinlock_t migrated_ranges_lock;
	struct list_head migrated_ranges;
};

typedef struct {
	struct {
		NvU64 start, end;
	} node;
	struct uvm_range_group *range_group;
	struct list_head range_group_migrated_list_node;
} uvm_range_group_range_t;

#define uvm_range_group_for_each_range_in(r, space, start, end) for (r = NULL; r;)
#define uvm_va_space_get(file) ((void)(file), &uvm_space)
#define uvm_va_space_down_write(space) ((void)(space))
#define uvm_va_space_up_write(space) ((void)(space))
#define uvm_va_space_down_read(space) ((void)(space))
#define uvm_va_space_up_read(space) ((void)(space))
#define uvm_va_space_block_context(space, mm) NULL
#define uvm_va_block_context_alloc(mm) calloc(1, sizeof(uvm_va_block_context_t))
#define uvm_va_block_context_free(context) free(context)
#define uvm_va_block_context_init(context, mm) ((void)(context))
#define uvm_for_each_va_range(r, space) for (r = NULL; r;)
#define uvm_for_each_va_range_managed(r, space) for (r = NULL; r;)
#define for_each_va_block_in_va_range(r, block) for (block = NULL; block;)
#define uvm_gpu_get(id) (&uvm_gpu)
#define uvm_va_space_get_gpu(space, id) (&uvm_gpu)

typedef struct {
	uvm_va_block_t *va_block;
	uvm_va_block_region_t region;
} uvm_reverse_map_t; /* up to 575 */

#include <uvm_masks.h>

const uvm_page_mask_t *uvm_perf_thrashing_get_thrashing_pages(uvm_va_block_t *block);
void uvm_tools_record_throttling_start(uvm_va_space_t *space, NvU64 addr, uvm_processor_id_t id);
void uvm_tools_record_throttling_end(uvm_va_space_t *space, NvU64 addr, uvm_processor_id_t id);
void uvm_tools_record_thrashing(uvm_va_space_t *space, NvU64 addr, size_t bytes, uvm_processor_mask_t *ids);
void uvm_va_block_page_resident_processors(uvm_va_block_t *block, uvm_page_index_t page, uvm_processor_mask_t *out);
uvm_processor_id_t uvm_va_block_page_get_closest_resident(uvm_va_block_t *block, uvm_va_block_context_t *context,
							  uvm_page_index_t page, uvm_processor_id_t id);
uvm_processor_id_t uvm_processor_mask_find_closest_id(uvm_va_space_t *space, const uvm_processor_mask_t *mask,
						      uvm_processor_id_t id);
NV_STATUS uvm_va_block_unmap(uvm_va_block_t *block, uvm_va_block_context_t *context, uvm_processor_id_t id,
			     uvm_va_block_region_t region, const uvm_page_mask_t *mask, uvm_tracker_t *tracker);
#ifdef UVM_OLD_BIG_PAGE /* the type of the additional parameter */
uvm_va_block_region_t uvm_va_block_big_page_region_subset(uvm_va_block_t *block, uvm_va_block_region_t region,
							  UVM_OLD_BIG_PAGE bytes);
#define uvm_va_space_largest_big_page_size(...) 65536
#define uvm_va_block_gpu_big_page_size(block, gpu) 65536
#define uvm_va_block_get_gpu_va_space(...) NULL
#else
uvm_va_block_region_t uvm_va_block_big_page_region_subset(uvm_va_block_t *block, uvm_va_block_region_t region);
#endif

#endif
