/* SPDX-License-Identifier: Apache-2.0
 *
 * thrash_uvm.c - uvm_perf_thrashing.c, as it is, with a block of its own
 *
 * A bus without coherence: the GPU reaches host memory, the CPU reaches no device memory. The first 4 KiB page of each
 * 64 KiB stands for all.
 */
#include <uvm_perf_thrashing.c>

#include "uvm.h"

static uvm_va_block_t block;
static uvm_va_range_managed_t range;
static uvm_va_block_context_t context;
static uvm_perf_event_callback_t callback[UVM_PERF_EVENT_COUNT];

#ifdef UVM_OLD_EVENT /* without the space */
#define CALL(event, data) callback[event](event, data)
#else
#define CALL(event, data) callback[event](&uvm_space, event, data)
#endif

void uvm_perf_module_init(const char *name, uvm_perf_module_type_t type, uvm_perf_module_event_callback_desc_t *c,
			  size_t n, uvm_perf_module_t *module)
{
	(void)name;
	(void)type;
	(void)module;
	while (n--)
		callback[c[n].event_id] = c[n].callback;
}

NV_STATUS uvm_perf_module_load(uvm_perf_module_t *module, uvm_va_space_t *space)
{
	(void)module;
	(void)space;
	return NV_OK;
}

void uvm_perf_module_unload(uvm_perf_module_t *module, uvm_va_space_t *space)
{
	(void)module;
	(void)space;
}

void uvm_perf_module_type_set_data(uvm_perf_module_data_desc_t *d, void *data, uvm_perf_module_type_t type)
{
	d[type].data = data;
}

void uvm_perf_module_type_unset_data(uvm_perf_module_data_desc_t *d, uvm_perf_module_type_t type)
{
	d[type].data = NULL;
}

void uvm_tools_record_throttling_start(uvm_va_space_t *space, NvU64 addr, uvm_processor_id_t id)
{
	(void)space;
	(void)addr;
	(void)id;
}

void uvm_tools_record_throttling_end(uvm_va_space_t *space, NvU64 addr, uvm_processor_id_t id)
{
	(void)space;
	(void)addr;
	(void)id;
}

void uvm_tools_record_thrashing(uvm_va_space_t *space, NvU64 addr, size_t bytes, uvm_processor_mask_t *ids)
{
	(void)space;
	(void)addr;
	(void)bytes;
	(void)ids;
}

void uvm_va_block_page_resident_processors(uvm_va_block_t *b, uvm_page_index_t page, uvm_processor_mask_t *out)
{
	uvm_processor_mask_zero(out);
	for (unsigned i = 0; i < 2; i++)
		if (uvm_page_mask_test(&b->on[i], page))
			uvm_processor_mask_set(out, (uvm_processor_id_t){i});
}

uvm_processor_id_t uvm_va_block_page_get_closest_resident(uvm_va_block_t *b, uvm_va_block_context_t *c,
							  uvm_page_index_t page, uvm_processor_id_t id)
{
	(void)c;
	if (uvm_page_mask_test(&b->on[id.val], page))
		return id;
	return uvm_page_mask_test(&b->on[!id.val], page) ? (uvm_processor_id_t){!id.val} : UVM_ID_INVALID;
}

uvm_processor_id_t uvm_processor_mask_find_closest_id(uvm_va_space_t *space, const uvm_processor_mask_t *mask,
						      uvm_processor_id_t id)
{
	(void)space;
	return uvm_processor_mask_test(mask, id) ? id : (uvm_processor_id_t){(NvU32)__builtin_ctzll(mask->bits)};
}

NV_STATUS uvm_va_block_unmap(uvm_va_block_t *b, uvm_va_block_context_t *c, uvm_processor_id_t id,
			     uvm_va_block_region_t region, const uvm_page_mask_t *mask, uvm_tracker_t *tracker)
{
	(void)b;
	(void)c;
	(void)id;
	(void)region;
	(void)mask;
	(void)tracker;
	return NV_OK;
}

void uvm_fight_open(void)
{
	static int loaded;

	if (loaded) {
		CALL(UVM_PERF_EVENT_BLOCK_DESTROY, &(uvm_perf_event_data_t){.block_destroy = {&block}});
		uvm_perf_thrashing_unload(&uvm_space);
	} else {
		uvm_perf_thrashing_init();
	}
	loaded = 1;
	memset(&uvm_space, 0, sizeof uvm_space);
	memset(&block, 0, sizeof block);
	uvm_space.can_access[0].bits = 1;
	uvm_space.can_access[1].bits = 3;
	uvm_space.accessible_from[0].bits = 3;
	uvm_space.accessible_from[1].bits = 2;
	uvm_perf_thrashing_load(&uvm_space);
	range.policy.preferred_location = UVM_ID_INVALID;
	block.managed_range = block.va_range = &range;
	block.start = 1ull << 30;
	block.end = block.start + UVM_VA_BLOCK_SIZE - 1;
	block.mapped.bits = 3;
}

void uvm_fight_prefer(int processor)
{
	range.policy.preferred_location = processor < 0 ? UVM_ID_INVALID : (uvm_processor_id_t){(NvU32)processor};
}

void uvm_fight_place(unsigned page, int processor)
{
	for (int i = 0; i < 2; i++) {
		if (i == processor)
			uvm_page_mask_set(&block.on[i], page * 16);
		else
			uvm_page_mask_clear(&block.on[i], page * 16);
		if (uvm_page_mask_empty(&block.on[i]))
			uvm_processor_mask_clear(&block.resident, (uvm_processor_id_t){(NvU32)i});
		else
			uvm_processor_mask_set(&block.resident, (uvm_processor_id_t){(NvU32)i});
	}
}

enum uvm_hint uvm_fight_hint(unsigned page, int processor, uint64_t ns, int *where, uint64_t *until)
{
	uvm_perf_thrashing_hint_t hint;

	uvm_now = ns;
	hint = uvm_perf_thrashing_get_hint(&block, &context, block.start + page * 16 * PAGE_SIZE,
					   (uvm_processor_id_t){(NvU32)processor});
	if (hint.type == UVM_PERF_THRASHING_HINT_TYPE_PIN) {
		*where = (int)hint.pin.residency.val;
		return UVM_HINT_PIN;
	}
	if (hint.type == UVM_PERF_THRASHING_HINT_TYPE_THROTTLE) {
		*until = hint.throttle.end_time_stamp;
		return UVM_HINT_THROTTLE;
	}
	return UVM_HINT_NONE;
}

void uvm_fight_moved(unsigned page, int processor, enum uvm_moved cause, uint64_t ns)
{
	static const uvm_make_resident_cause_t causes[] = {UVM_MAKE_RESIDENT_CAUSE_REPLAYABLE_FAULT,
							   UVM_MAKE_RESIDENT_CAUSE_PREFETCH,
							   UVM_MAKE_RESIDENT_CAUSE_API_MIGRATE};
	uvm_perf_event_data_t data;

	uvm_now = ns;
	memset(&data, 0, sizeof data);
	context.make_resident.dest_id = (uvm_processor_id_t){(NvU32)processor};
	data.migration.block = &block;
	data.migration.dst = context.make_resident.dest_id;
	data.migration.src = (uvm_processor_id_t){!processor};
	data.migration.address = block.start + page * 16 * PAGE_SIZE;
	data.migration.bytes = PAGE_SIZE;
	data.migration.transfer_mode = UVM_VA_BLOCK_TRANSFER_MODE_MOVE;
	data.migration.cause = causes[cause];
	data.migration.make_resident_context = (void *)&context.make_resident;
	CALL(UVM_PERF_EVENT_MIGRATION, &data);
}

void uvm_fight_timer(uint64_t ns)
{
	while (uvm_work && uvm_work->armed && uvm_work->at <= ns) {
		uvm_now = uvm_work->at;
		uvm_work->armed = 0;
		uvm_work->fn(&uvm_work->work);
	}
}

uint32_t uvm_fight_thrashing(void)
{
	const uvm_page_mask_t *mask = uvm_perf_thrashing_get_thrashing_pages(&block);
	uint32_t out = 0;

	for (unsigned i = 0; mask && i < 32; i++)
		out |= (uint32_t)uvm_page_mask_test(mask, i * 16) << i;
	return out;
}

uint64_t uvm_fight_lapse(void)
{
	return va_space_thrashing_info_get(&uvm_space)->params.lapse_ns;
}
