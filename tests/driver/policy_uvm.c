/* SPDX-License-Identifier: Apache-2.0
 *
 * policy_uvm.c - where does the driver put a faulting page?
 *
 * uvm_policy_cut.c has block_select_processor_residency and what it calls, cut out by `run`.
 */
#include <uvm_va_block.h>

#include "uvm.h"
#include <uvm_perf_thrashing.h>

typedef enum {
	UVM_FAULT_ACCESS_TYPE_PREFETCH,
	UVM_FAULT_ACCESS_TYPE_READ,
	UVM_FAULT_ACCESS_TYPE_WRITE,
	UVM_FAULT_ACCESS_TYPE_ATOMIC_WEAK
} uvm_fault_access_type_t;

static struct {
	struct mm_struct *mm;
} task;

#define current (&task)
#define is_uvm_fault_force_sysmem_set() false
#define uvm_hmm_must_use_sysmem(block, vma) false
#define uvm_va_policy_is_read_duplicate(policy, ...) ((policy)->read_duplication == UVM_READ_DUPLICATION_ENABLED)
#define uvm_fault_access_type_mask_highest(mask) (31 - __builtin_clz(mask))
#define uvm_fault_access_type_mask_lowest(mask) __builtin_ctz(mask)

extern unsigned uvm_perf_map_remote_on_native_atomics_fault;

#include <uvm_policy_cut.c>

int uvm_residency(const struct uvm_fault *f, int *duplicate)
{
	static uvm_va_block_context_t context;
	uvm_va_range_managed_t range = {.policy.preferred_location = UVM_ID_INVALID};
	uvm_perf_thrashing_hint_t hint = {.type = UVM_PERF_THRASHING_HINT_TYPE_NONE};
	uvm_va_block_t block;
	bool read_duplicate;
	uvm_processor_id_t to;

	uvm_space.can_access[0].bits = 1;
	uvm_space.can_access[1].bits = 3;
	uvm_space.accessible_from[0].bits = 3;
	uvm_space.accessible_from[1].bits = 2;
	memset(&block, 0, sizeof block);
	block.end = UVM_VA_BLOCK_SIZE - 1;
	block.managed_range = block.va_range = &range;
	if (f->on_cpu)
		uvm_page_mask_set(&block.on[0], 0);
	if (f->on_gpu)
		uvm_page_mask_set(&block.on[1], 0);
	if (f->on_cpu && f->on_gpu)
		uvm_page_mask_set(&block.read_duplicated_pages, 0);
	if (f->preferred >= 0)
		range.policy.preferred_location = (uvm_processor_id_t){(NvU32)f->preferred};
	range.policy.accessed_by.bits = (NvU64)(f->accessed_by_gpu != 0) << 1;
	if (f->read_mostly)
		range.policy.read_duplication = UVM_READ_DUPLICATION_ENABLED;
	if (f->pinned >= 0) {
		hint.type = UVM_PERF_THRASHING_HINT_TYPE_PIN;
		hint.pin.residency = (uvm_processor_id_t){(NvU32)f->pinned};
	}
	to = block_select_processor_residency(
		&block, &context, 0, (uvm_processor_id_t){(NvU32)f->by},
		1u << (f->writes ? UVM_FAULT_ACCESS_TYPE_WRITE : UVM_FAULT_ACCESS_TYPE_READ), &range.policy, &hint,
		UVM_SERVICE_OPERATION_REPLAYABLE_FAULTS, true, &read_duplicate);
	*duplicate = read_duplicate;
	return (int)to.val;
}
