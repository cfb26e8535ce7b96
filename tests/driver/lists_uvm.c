/* SPDX-License-Identifier: Apache-2.0
 *
 * lists_uvm.c - the driver's list functions and its discard, and around them the calls that reach them
 *
 * uvm_lists_cut.c has the functions, cut out by `run`. Each call here does with residency and mappings what
 * uvm_va_block.c and uvm_migrate.c do, by whole 64 KiB pages, and calls the list functions where they do: an allocation
 * pins the chunk, the end of the block's operation unpins it.
 */
#include <uvm_va_block.h>

#include "uvm.h"

#define UVM_CHUNK_SIZE_MAX (2ull << 20)

typedef enum {
	UVM_PMM_GPU_CHUNK_STATE_PMA_OWNED,
	UVM_PMM_GPU_CHUNK_STATE_FREE,
	UVM_PMM_GPU_CHUNK_STATE_IS_SPLIT,
	UVM_PMM_GPU_CHUNK_STATE_TEMP_PINNED,
	UVM_PMM_GPU_CHUNK_STATE_ALLOCATED
} uvm_pmm_gpu_chunk_state_t;

typedef enum { UVM_PMM_GPU_MEMORY_TYPE_USER } uvm_pmm_gpu_memory_type_t;
typedef enum { UVM_PMM_LIST_ZERO, UVM_PMM_LIST_NO_ZERO, UVM_PMM_LIST_ZERO_COUNT } uvm_pmm_list_zero_t;
typedef size_t uvm_chunk_size_t;

#ifdef UVM_OLD_LISTS /* up to 580 the lists have names; oldest victims first */
typedef enum {
	UVM_PMM_ALLOC_LIST_UNUSED,
	UVM_PMM_ALLOC_LIST_DISCARDED,
	UVM_PMM_ALLOC_LIST_USED,
	UVM_PMM_ALLOC_LIST_COUNT
} uvm_pmm_alloc_list_t;
#else
#include <uvm_lists_enum.h> /* cut out of uvm_pmm_gpu.h */
#endif

typedef struct uvm_gpu_chunk_struct {
	NvU64 address;
	uvm_pmm_gpu_chunk_state_t state;
	bool in_eviction, is_zero, is_referenced;
	struct list_head list;
	struct {
		unsigned pinned_leaf_chunks;
	} * suballoc;
	void *va_block;
	unsigned va_block_page_index, type; /* up to 580 */
	struct uvm_gpu_chunk_struct *parent;
} uvm_gpu_chunk_t;

typedef struct {
	uvm_gpu_chunk_t chunk;
} uvm_gpu_root_chunk_t;

typedef struct {
	uvm_spinlock_t list_lock;
	struct {
		union {
			struct list_head alloc_list[UVM_PMM_ALLOC_LIST_COUNT];
			struct {
				struct list_head va_block_unused, va_block_discarded, va_block_used;
			};
		};
		int pinned_count, in_eviction_count;
		uvm_gpu_root_chunk_t *array;
	} root_chunks;
	struct list_head free_list[UVM_PMM_LIST_ZERO_COUNT];
} uvm_pmm_gpu_t;

typedef struct {
	uvm_gpu_chunk_t *chunks[1];
} uvm_va_block_gpu_state_t;

struct list_gpu {
	uvm_pmm_gpu_t pmm;
	void *parent; /* up to 580 */
	uvm_processor_id_t id;
};

static struct list_gpu only_gpu;

#define uvm_gpu_chunk_is_user(chunk) true
#define uvm_pmm_gpu_memory_type_is_user(type) true
#define uvm_parent_gpu_supports_eviction(parent) true
#define uvm_gpu_chunk_get_size(chunk) UVM_CHUNK_SIZE_MAX
#define uvm_gpu_chunk_set_in_eviction(chunk, value) ((chunk)->in_eviction = (value))
#define chunk_is_root_chunk(chunk) true
#define root_chunk_from_chunk(pmm, c) (&(pmm)->root_chunks.array[(c)->address / UVM_CHUNK_SIZE_MAX])
#define find_free_list(pmm, type, size, zero) (&(pmm)->free_list[zero])
#define find_free_list_chunk(pmm, chunk) (&(pmm)->free_list[UVM_PMM_LIST_NO_ZERO])
#define uvm_pmm_gpu_chunk_state_string(state) ""
#undef uvm_gpu_get
#undef uvm_va_space_get_gpu
#define uvm_gpu_get(id) (&only_gpu)
#define uvm_va_space_get_gpu(space, id) (&only_gpu)
#define block_get_gpu(block, id) (&only_gpu)
#define uvm_gpu_t struct list_gpu

static inline uvm_va_block_gpu_state_t *uvm_va_block_gpu_state_get(uvm_va_block_t *block, uvm_processor_id_t id)
{
	(void)id;
	return block->gpus[0];
}

/* What va_block_discard_locked needs, beside its masks. */
enum { UVM_DISCARD_FLAGS_UNMAP = 1 };

typedef struct {
	int unused;
} uvm_va_block_retry_t;

#define UvmEventMapRemoteCauseInvalid 0
#define NV_WARN_MORE_PROCESSING_REQUIRED NV_ERR_MORE_PROCESSING_REQUIRED
#define uvm_va_policy_is_read_duplicate(policy, ...) ((policy)->read_duplication == UVM_READ_DUPLICATION_ENABLED)
#define uvm_processor_mask_find_first_id(mask) ((uvm_processor_id_t){(NvU32)__builtin_ctzll((mask)->bits)})
#define uvm_processor_mask_cache_alloc() calloc(1, sizeof(uvm_processor_mask_t))
#define uvm_processor_mask_cache_free(mask) free(mask)
#define uvm_va_block_map_mask_get(block, id) (&(block)->map[(id).val])
#define uvm_va_block_migrate_map_mapped_pages(...) NV_OK
#define for_each_possible_uvm_node(nid) for (nid = 0; nid < 1; nid++)
#define for_each_gpu_id(id) for (id = (uvm_processor_id_t){1}; id.val == 1; id.val++)
#define for_each_gpu_id_in_mask(id, mask) for_each_id_in_mask(id, mask)
#define uvm_va_block_cpu_clear_resident_mask(block, nid, mask)                                                         \
	uvm_page_mask_andnot(&(block)->on[0], &(block)->on[0], mask)
#define uvm_va_block_cpu_clear_resident_all_chunks(block, context, mask)                                               \
	uvm_page_mask_andnot(&(block)->on[0], &(block)->on[0], mask)

static NV_STATUS uvm_va_block_unmap_mask(uvm_va_block_t *block, uvm_va_block_context_t *context,
					 const uvm_processor_mask_t *ids, uvm_va_block_region_t region,
					 const uvm_page_mask_t *mask)
{
	(void)context;
	(void)region;
	for (unsigned i = 0; i < 2; i++)
		if (ids->bits >> i & 1)
			uvm_page_mask_andnot(&block->map[i], &block->map[i], mask);
	return NV_OK;
}

static NV_STATUS uvm_va_block_make_resident(uvm_va_block_t *block, uvm_va_block_retry_t *retry,
					    uvm_va_block_context_t *context, uvm_processor_id_t dst,
					    uvm_va_block_region_t region, const uvm_page_mask_t *mask,
					    const uvm_page_mask_t *added, uvm_make_resident_cause_t cause);

#include <uvm_lists_cut.c>

#define PMM (&only_gpu.pmm)
#define ALL UINT32_MAX

static struct block {
	uvm_va_block_t va;
	uvm_va_block_gpu_state_t state;
	uvm_va_range_managed_t range;
	uint32_t gpu, cpu, disc, map, cmap, twice; /* pages; mapped on the GPU, on the CPU; twice: read-duplicated */
	int read_mostly, pinned;
	int preferred; /* processor; -1: none */
} blocks[UVM_LIST_BLOCKS];

static uvm_gpu_root_chunk_t root[UVM_LIST_BLOCKS];
static unsigned n_free, victims[1 << 16], n_victims;

static void mark_discarded(struct block *b)
{
#ifdef UVM_OLD_NO_DISCARD
	(void)b; /* the driver has no such list, and nothing is discarded here */
#else
	uvm_pmm_gpu_mark_root_chunk_discarded(PMM, b->state.chunks[0]);
#endif
}

static void spread(uvm_page_mask_t *to, uint32_t pages)
{
	bitmap_zero(to->bitmap, 512);
	for (; pages; pages &= pages - 1)
		bitmap_set(to->bitmap, (unsigned)__builtin_ctz(pages) * 16, 16);
}

/* Residency changed to the block's masks. */
static void resident(struct block *b)
{
	spread(&b->va.on[0], b->cpu);
	spread(&b->va.on[1], b->gpu);
	if (b->gpu)
		block_set_resident_processor(&b->va, only_gpu.id);
	else
		block_clear_resident_processor(&b->va, only_gpu.id);
	if (b->cpu)
		block_set_resident_processor(&b->va, UVM_ID_CPU);
	else
		block_clear_resident_processor(&b->va, UVM_ID_CPU);
}

void uvm_lists_open(unsigned chunks)
{
	memset(&only_gpu, 0, sizeof only_gpu);
	memset(blocks, 0, sizeof blocks);
	memset(root, 0, sizeof root);
	only_gpu.id = (uvm_processor_id_t){1};
	for (int i = 0; i < UVM_PMM_ALLOC_LIST_COUNT; i++)
		INIT_LIST_HEAD(&PMM->root_chunks.alloc_list[i]);
	for (int i = 0; i < UVM_PMM_LIST_ZERO_COUNT; i++)
		INIT_LIST_HEAD(&PMM->free_list[i]);
	PMM->root_chunks.array = root;
	for (unsigned i = 0; i < UVM_LIST_BLOCKS; i++) {
		struct block *b = &blocks[i];

		root[i].chunk.address = i * UVM_CHUNK_SIZE_MAX;
		INIT_LIST_HEAD(&root[i].chunk.list);
		b->va.start = i * UVM_VA_BLOCK_SIZE;
		b->va.end = b->va.start + UVM_VA_BLOCK_SIZE - 1;
		b->va.gpus[0] = &b->state;
		b->preferred = -1;
		b->va.managed_range = b->va.va_range = &b->range;
	}
	n_free = chunks;
	n_victims = 0;
}

/* uvm_va_block_evict_chunks: what is resident or discarded becomes resident on the host; the chunk goes. */
static void evict(struct block *b)
{
	uint32_t place = b->gpu | b->disc;

	victims[n_victims++ % (sizeof victims / sizeof *victims)] = (unsigned)(b - blocks);
	b->cpu |= place;
	b->gpu = 0;
	b->twice &= ~place;
	b->map &= ~place;
	resident(b);
	b->state.chunks[0] = NULL;
}

static int allocate(struct block *b)
{
	uvm_gpu_root_chunk_t *r;
	uvm_gpu_chunk_t *chunk;

	if (b->state.chunks[0])
		return 1;
	if (n_free) {
		chunk = &root[--n_free].chunk;
	} else {
		r = pick_root_chunk_to_evict(PMM);
		if (!r)
			return 0;
		chunk = &r->chunk;
		evict((struct block *)((char *)chunk->va_block - offsetof(struct block, va)));
		chunk->in_eviction = false;
		PMM->root_chunks.in_eviction_count--;
	}
	chunk->state = UVM_PMM_GPU_CHUNK_STATE_FREE;
	chunk_pin(PMM, chunk);
#ifdef UVM_OLD_UNPIN /* sets it */
	chunk->va_block = NULL;
#else
	chunk->va_block = &b->va;
#endif
	b->state.chunks[0] = chunk;
	b->pinned = 1;
	return 1;
}

static void finish(struct block *b)
{
	if (b->pinned)
		uvm_pmm_gpu_unpin_allocated(PMM, b->state.chunks[0], &b->va);
	b->pinned = 0;
}

/* uvm_va_block_make_resident(_read_duplicate), with the GPU as destination. */
static void make_resident(struct block *b, uint32_t pages, int twice)
{
	uint32_t come = pages & ~b->gpu, copied = come & b->cpu;

	b->gpu |= come;
	b->twice = twice ? b->twice | copied : b->twice & ~pages;
	b->cpu &= twice ? ~(come & ~copied) : ~pages;
	b->cmap &= b->cpu;
	resident(b);
	if (b->gpu)
		block_mark_memory_used(&b->va, only_gpu.id);
}

/* block_map_gpu_to */
static void map(struct block *b, uint32_t pages)
{
	uint32_t fresh = pages & ~b->map;

	b->map |= pages;
	if (b->disc & fresh && b->state.chunks[0])
		mark_discarded(b);
}

int uvm_lists_visit(unsigned block, uint32_t served, uint32_t written)
{
	struct block *b = &blocks[block];

	if (!allocate(b))
		return 0;
	if (b->read_mostly) {
		make_resident(b, served & ~written, 1);
		if (written)
			make_resident(b, written, 0);
	} else {
		make_resident(b, served, 0);
	}
	b->map &= ~(written & b->disc); /* a write of what is mapped read-only maps it again */
	map(b, served);
	b->disc &= ~written;
	if (b->disc == ALL)
		mark_discarded(b);
	finish(b);
	return 1;
}

/* uvm_migrate: two passes over a range of several blocks. */
int uvm_lists_prefetch(unsigned first, unsigned n, uint32_t pages)
{
	for (int pass = 1; pass <= (n > 1 ? 2 : 1); pass++)
		for (unsigned i = first; i < first + n; i++) {
			struct block *b = &blocks[i];

			if (!allocate(b))
				return 0;
			b->disc &= ~pages;
			make_resident(b, pages, b->read_mostly);
			if (pass == 2 || n == 1)
				map(b, pages);
			finish(b);
		}
	return 1;
}

void uvm_lists_home(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		struct block *b = &blocks[i];

		b->disc = 0;
		b->cpu = b->cmap = ALL;
		b->twice = b->read_mostly ? b->twice | b->gpu : 0;
		b->gpu &= b->read_mostly ? ALL : 0;
		b->map &= b->gpu;
		resident(b);
	}
}

/* A write of the whole block by the CPU. */
void uvm_lists_host_write(unsigned block)
{
	struct block *b = &blocks[block];

	b->cpu = b->cmap = ALL;
	b->gpu = b->map = b->twice = b->disc = 0;
	resident(b);
}

#ifndef UVM_OLD_NO_DISCARD

/* Of pages that are resident on both: nothing is copied, the other copy and its mapping go. */
static NV_STATUS uvm_va_block_make_resident(uvm_va_block_t *block, uvm_va_block_retry_t *retry,
					    uvm_va_block_context_t *context, uvm_processor_id_t dst,
					    uvm_va_block_region_t region, const uvm_page_mask_t *mask,
					    const uvm_page_mask_t *added, uvm_make_resident_cause_t cause)
{
	(void)retry;
	(void)added;
	(void)cause;
	context->make_resident.dest_nid = NUMA_NO_NODE;
	break_read_duplication_in_region(block, context, dst, region, mask);
	uvm_page_mask_andnot(&block->map[!dst.val], &block->map[!dst.val], mask);
	if (uvm_processor_mask_test(&block->resident, dst))
		block_mark_memory_used(block, dst);
	return NV_OK;
}

static uint32_t gather(const uvm_page_mask_t *from)
{
	uint32_t pages = 0;

	for (unsigned i = 0; i < 32; i++)
		pages |= (uint32_t)test_bit(i * 16, from->bitmap) << i;
	return pages;
}

static void discard(struct block *b, uint32_t pages, int unmap)
{
	static uvm_va_block_context_t context;
	uvm_va_block_t *va = &b->va;
	uvm_tracker_t tracker;

	b->range.policy.preferred_location =
		b->preferred < 0 ? UVM_ID_INVALID : (uvm_processor_id_t){(NvU32)b->preferred};
	b->range.policy.read_duplication = b->read_mostly ? UVM_READ_DUPLICATION_ENABLED : UVM_READ_DUPLICATION_UNSET;
	spread(&va->map[0], b->cmap);
	spread(&va->map[1], b->map);
	va->mapped.bits = (b->cmap != 0) | (NvU64)(b->map != 0) << 1;
	spread(&va->maybe_mapped_pages, b->map | b->cmap);
	spread(&va->discarded_pages, b->disc);
	spread(&va->read_duplicated_pages, b->twice);
	spread(&context.discard.discarded_pages, pages);
	va_block_discard_locked(va, NULL, &context, unmap ? UVM_DISCARD_FLAGS_UNMAP : 0, &tracker);
	b->cpu = gather(&va->on[0]);
	b->gpu = gather(&va->on[1]);
	b->cmap = gather(&va->map[0]) & b->cpu;
	b->map = gather(&va->map[1]) & b->gpu;
	b->disc = gather(&va->discarded_pages);
	b->twice = gather(&va->read_duplicated_pages);
}

#endif

/* The driver has no block before its first page. */
void uvm_lists_discard(unsigned block, uint32_t pages, int unmap)
{
#ifdef UVM_OLD_NO_DISCARD
	(void)block;
	(void)pages;
	(void)unmap;
#else
	struct block *b = &blocks[block];

	if (b->gpu | b->cpu | b->disc || b->state.chunks[0])
		discard(b, pages, unmap);
#endif
}

void uvm_lists_prefer(unsigned block, int processor)
{
	blocks[block].preferred = processor;
}

/* va_block_set_read_duplication_locked */
void uvm_lists_read_mostly(unsigned block)
{
	struct block *b = &blocks[block];

	if (!b->read_mostly && b->gpu)
		block_mark_memory_used(&b->va, only_gpu.id);
	b->read_mostly = 1;
}

struct uvm_list_state uvm_lists_state(unsigned block)
{
	struct block *b = &blocks[block];
	struct uvm_list_state s = {b->gpu, b->cpu, b->disc, b->state.chunks[0] != NULL, -1, 0};

	for (int i = 0; i < UVM_PMM_ALLOC_LIST_COUNT && s.list < 0; i++) {
		uvm_gpu_chunk_t *chunk;

		s.place = 0;
		list_for_each_entry(chunk, &PMM->root_chunks.alloc_list[i], list)
		{
			if (chunk == b->state.chunks[0]) {
				s.list = i;
				break;
			}
			s.place++;
		}
	}
	return s;
}

unsigned uvm_lists_victims(const unsigned **out)
{
	*out = victims;
	return n_victims;
}
