/* SPDX-License-Identifier: Apache-2.0
 *
 * uvm_shim.h - what the driver's files need of the rest of nvidia-uvm: two processors, 0 the CPU and 1 a GPU
 *
 * Names are the driver's. UVM_OLD_* are set by `run` for drivers whose functions have other parameters.
 */
#ifndef UM_TESTS_UVM_SHIM_H
#define UM_TESTS_UVM_SHIM_H

#include "uvm_kernel.h"

typedef int NV_STATUS;
typedef NvU64 NvLength;

enum {
	NV_OK,
	NV_ERR_NO_MEMORY,
	NV_ERR_INVALID_ARGUMENT,
	NV_ERR_INVALID_STATE,
	NV_ERR_OPERATING_SYSTEM,
	NV_ERR_MORE_PROCESSING_REQUIRED
};

#define NV_U8_MAX UINT8_MAX
#define NV_U16_MAX UINT16_MAX
#define UVM_PAGE_SIZE_64K 65536ull
#define UVM_ALIGN_DOWN(x, a) ((x) / (a) * (a))
#define UVM_ALIGN_UP(x, a) (((x) + (a)-1) / (a) * (a))

extern unsigned long uvm_asserts; /* of the driver, that failed */
void uvm_assert_failed(const char *what, const char *file, int line);

#define UVM_ASSERT(x) ((x) ? (void)0 : uvm_assert_failed(#x, __FILE__, __LINE__))
#define UVM_ASSERT_MSG(x, ...) UVM_ASSERT(x)
#define UVM_INFO_PRINT(...) ((void)0)
#define UVM_SEQ_OR_DBG_PRINT(s, ...) ((void)(s))
#define UVM_DEFINE_SINGLE_PROCFS_FILE(name) struct uvm_procfs_##name
#define NV_CREATE_PROC_FILE(a, b, c, d) NULL
#define uvm_procfs_is_debug_enabled() 0
#define uvm_procfs_get_cpu_base_dir() NULL
#define UVM_ENTRY_RET(x) return (x)
#define UVM_ENTRY_VOID(x) x
#define UVM_IS_CONFIG_HMM() 0
#define NV_GETTIME() uvm_now
#define NV_UVM_GFP_FLAGS 0
#define NV_KMEM_CACHE_CREATE(name, type) uvm_cache(sizeof(type))
#define nv_kmem_cache_zalloc(cache, flags) calloc(1, (cache)->bytes)
#define kmem_cache_destroy_safe(cache) ((void)(cache))
#define uvm_kvmalloc_zero(bytes) calloc(1, bytes)
#define uvm_kvfree(p) free(p)

/* --- locks -------------------------------------------------------------------------------------------------------- */

typedef struct {
	int unused;
} uvm_mutex_t, uvm_spinlock_t, uvm_rw_semaphore_t;

enum { UVM_LOCK_ORDER_LEAF };

#define uvm_assert_mutex_locked(l) ((void)(l))
#define uvm_assert_rwsem_locked(l) ((void)(l))
#define uvm_assert_rwsem_locked_write(l) ((void)(l))
#define uvm_assert_spinlock_locked(l) ((void)(l))
#define uvm_spin_lock(l) ((void)(l))
#define uvm_spin_unlock(l) ((void)(l))
#define uvm_spin_lock_init(l, order) ((void)(l))
#define uvm_mutex_lock(l) ((void)(l))
#define uvm_mutex_unlock(l) ((void)(l))
#define uvm_down_read_trylock(l) ((void)(l), 1)
#define uvm_up_read(l) ((void)(l))

/* --- processors --------------------------------------------------------------------------------------------------- */

typedef struct {
	NvU32 val;
} uvm_processor_id_t, uvm_gpu_id_t;

typedef struct {
	NvU64 bits;
} uvm_processor_mask_t;

#define UVM_ID_MAX_PROCESSORS 2
#define UVM_PARENT_ID_MAX_SUB_PROCESSORS 8
#define UVM_ID_CPU ((uvm_processor_id_t){0})
#define UVM_ID_INVALID ((uvm_processor_id_t){63})
#define UVM_ID_IS_CPU(id) ((id).val == 0)
#define UVM_ID_IS_GPU(id) ((id).val == 1)
#define UVM_ID_IS_VALID(id) ((id).val != 63)
#define UVM_ID_IS_INVALID(id) ((id).val == 63)
#define uvm_id_equal(a, b) ((a).val == (b).val)
#define uvm_id_value(id) ((id).val)
#define uvm_id_gpu_index(id) ((id).val - 1)
#define uvm_parent_gpu_id_from_gpu_id(id) (id)
#define uvm_gpu_id_from_sub_processor(id, sub) (id)
#define uvm_processor_has_memory(id) true
#define uvm_va_space_processor_has_memory(space, id) true
#define for_each_id_in_mask(id, mask)                                                                                  \
	for (id = UVM_ID_CPU; id.val < 2; id.val++)                                                                    \
		if (uvm_processor_mask_test(mask, id))

static inline void uvm_processor_mask_zero(uvm_processor_mask_t *mask)
{
	mask->bits = 0;
}

static inline bool uvm_processor_mask_empty(const uvm_processor_mask_t *mask)
{
	return !mask->bits;
}

static inline bool uvm_processor_mask_test(const uvm_processor_mask_t *mask, uvm_processor_id_t id)
{
	return mask->bits >> id.val & 1;
}

static inline void uvm_processor_mask_set(uvm_processor_mask_t *mask, uvm_processor_id_t id)
{
	mask->bits |= 1ull << id.val;
}

static inline void uvm_processor_mask_clear(uvm_processor_mask_t *mask, uvm_processor_id_t id)
{
	mask->bits &= ~(1ull << id.val);
}

static inline bool uvm_processor_mask_test_and_set(uvm_processor_mask_t *mask, uvm_processor_id_t id)
{
	bool was = uvm_processor_mask_test(mask, id);

	uvm_processor_mask_set(mask, id);
	return was;
}

static inline bool uvm_processor_mask_test_and_clear(uvm_processor_mask_t *mask, uvm_processor_id_t id)
{
	bool was = uvm_processor_mask_test(mask, id);

	uvm_processor_mask_clear(mask, id);
	return was;
}

static inline void uvm_processor_mask_range_fill(uvm_processor_mask_t *mask, uvm_processor_id_t first, int n)
{
	(void)n; /* there is one GPU */
	uvm_processor_mask_set(mask, first);
}

static inline void uvm_processor_mask_copy(uvm_processor_mask_t *to, const uvm_processor_mask_t *from)
{
	*to = *from;
}

static inline bool uvm_processor_mask_and(uvm_processor_mask_t *to, const uvm_processor_mask_t *a,
					  const uvm_processor_mask_t *b)
{
	to->bits = a->bits & b->bits;
	return to->bits;
}

static inline bool uvm_processor_mask_andnot(uvm_processor_mask_t *to, const uvm_processor_mask_t *a,
					     const uvm_processor_mask_t *b)
{
	to->bits = a->bits & ~b->bits;
	return to->bits;
}

static inline bool uvm_processor_mask_subset(const uvm_processor_mask_t *a, const uvm_processor_mask_t *b)
{
	return !(a->bits & ~b->bits);
}

/* --- types that are only passed on -------------------------------------------------------------------------------- */

typedef struct {
	int unused;
} nodemask_t, uvm_pte_batch_t, uvm_tlb_batch_t, uvm_push_t, uvm_tracker_t;

typedef struct uvm_va_block_struct uvm_va_block_t;
typedef struct uvm_va_space_struct uvm_va_space_t;
typedef struct uvm_gpu_struct uvm_gpu_t;
typedef struct uvm_perf_module_struct uvm_perf_module_t;
typedef struct uvm_va_range_managed_struct uvm_va_range_managed_t;
typedef struct uvm_va_range_managed_struct uvm_va_range_t; /* up to 550 */
typedef struct uvm_make_resident_context_struct uvm_make_resident_context_t;
typedef struct uvm_fault_buffer_entry_struct uvm_fault_buffer_entry_t;
typedef int UvmEventMapRemoteCause;
typedef int uvm_prot_t;

#define UVM_PROT_MAX 4
#define UVM_TRACKER_INIT()                                                                                             \
	{                                                                                                              \
		0                                                                                                      \
	}
#define uvm_tracker_add_tracker_safe(to, from) ((void)(to), (void)(from), NV_OK)
#define uvm_tracker_deinit(t) ((void)(t))
#define UVM_VA_BLOCK_RETRY_LOCKED(block, retry, call) ((void)(block), (call))

typedef struct {
	int policy, nap_ns, pin_ns, map_remote_on_native_atomics_fault;
} UVM_TEST_GET_PAGE_THRASHING_POLICY_PARAMS, UVM_TEST_SET_PAGE_THRASHING_POLICY_PARAMS,
	UVM_TEST_SET_PAGE_PREFETCH_POLICY_PARAMS;

enum {
	UVM_TEST_PAGE_THRASHING_POLICY_DISABLE,
	UVM_TEST_PAGE_THRASHING_POLICY_ENABLE,
	UVM_TEST_PAGE_THRASHING_POLICY_MAX,
	UVM_TEST_PAGE_PREFETCH_POLICY_ENABLE = 1,
	UVM_TEST_PAGE_PREFETCH_POLICY_MAX
};

#endif
