/* SPDX-License-Identifier: Apache-2.0
 *
 * prefetch_uvm.c - asks uvm_perf_prefetch.c which pages a visit serves
 */
#include <uvm_va_block.h>

#include "uvm.h"
#include <uvm_perf_prefetch.h>

static uvm_page_mask_t thrashing;

const uvm_page_mask_t *uvm_perf_thrashing_get_thrashing_pages(uvm_va_block_t *block)
{
	(void)block;
	return bitmap_empty(thrashing.bitmap, 512) ? NULL : &thrashing;
}

static void fill(uvm_page_mask_t *to, const uint64_t from[8])
{
	memcpy(to->bitmap, from, sizeof to->bitmap);
}

void uvm_density(const struct uvm_visit *v, uint64_t served[8])
{
	static uvm_va_block_context_t context;
	static uvm_perf_prefetch_bitmap_tree_t tree;
	static uvm_perf_prefetch_hint_t hint;
	static int ready;
	uvm_va_range_managed_t range = {.policy.preferred_location = UVM_ID_INVALID};
	uvm_processor_id_t to = {v->to_gpu ? 1 : 0};
	uvm_va_block_t block;
	uvm_page_mask_t faulted;

	if (!ready) {
		uvm_perf_prefetch_init();
		uvm_space.test.page_prefetch_enabled = true;
		ready = 1;
	}
	memset(&block, 0, sizeof block);
	block.start = (1ull << 30) + v->first * PAGE_SIZE;
	block.end = block.start + v->pages * PAGE_SIZE - 1;
	block.managed_range = block.va_range = &range;
	block.gpus[0] = &block;
	block.prefetch_info.last_migration_proc_id = UVM_ID_INVALID;
	if (v->preferred >= 0)
		range.policy.preferred_location = (uvm_processor_id_t){(NvU32)v->preferred};
	fill(&block.on[to.val], v->here);
	fill(&block.on[!to.val], v->there);
	fill(&block.cpu.pte_bits[UVM_PTE_BITS_CPU_READ], v->mapped);
	fill(&thrashing, v->hot);
	fill(&faulted, v->faulted);
	for (unsigned i = 0; i < 2; i++)
		if (!bitmap_empty(block.on[i].bitmap, 512))
			uvm_processor_mask_set(&block.resident, (uvm_processor_id_t){i});
	uvm_perf_prefetch_get_hint_va_block(&block, &context, to, &faulted,
					    uvm_va_block_region_from_mask(&block, &faulted), &tree, &hint);
	memcpy(served, faulted.bitmap, sizeof faulted.bitmap);
	if (UVM_ID_IS_VALID(hint.residency))
		bitmap_or(served, served, hint.prefetch_pages_mask.bitmap, 512);
}
