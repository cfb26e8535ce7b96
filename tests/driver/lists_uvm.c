/* SPDX-License-Identifier: Apache-2.0
 *
 * lists_uvm.c - the driver's list functions, and around them the calls that reach them
 *
 * uvm_lists_cut.c has the functions, cut out by `run`. Each call here does with residency, mappings and discards what
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

#include <uvm_lists_cut.c>

#define PMM (&only_gpu.pmm)
#define ALL UINT32_MAX

static struct block {
	uvm_va_block_t va;
	uvm_va_block_gpu_state_t state;
	uvm_va_range_managed_t range;
	uint32_t gpu, cpu, disc, map, twice; /* pages; twice: read-duplicated */
	int read_mostly, pinned;
} blocks[UVM_LIST_BLOCKS];

static uvm_gpu_root_chunk_t root[UVM_LIST_BLOCKS];
static unsigned n_free, victims[1 << 16], n_victims;

static void mark_discarded(struct block *b)
{
#ifdef UVM_OLD_NO_DISCARD
	(void)b; /* the driver has no such list, and nobody discards */
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
int uvm_lists_prefetch(unsigned first, unsigned n)
{
	for (int pass = 1; pass <= (n > 1 ? 2 : 1); pass++)
		for (unsigned i = first; i < first + n; i++) {
			struct block *b = &blocks[i];

			if (!allocate(b))
				return 0;
			b->disc = 0;
			make_resident(b, ALL, b->read_mostly);
			if (pass == 2 || n == 1)
				map(b, ALL);
			finish(b);
		}
	return 1;
}

void uvm_lists_home(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		struct block *b = &blocks[i];

		b->disc = 0;
		b->cpu = ALL;
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

	b->cpu = ALL;
	b->gpu = b->map = b->twice = b->disc = 0;
	resident(b);
}

/* va_block_discard_locked; the driver has no block before its first page. */
void uvm_lists_discard(unsigned block, int unmap)
{
	struct block *b = &blocks[block];
	uint32_t changed = ~b->disc | (unmap ? b->map : b->disc & ~b->map), twice = b->twice & changed;

	if (!(b->gpu | b->cpu | b->disc || b->state.chunks[0]) || !changed)
		return;
	b->disc = ALL;
	if (twice) { /* the first resident processor is the CPU */
		b->gpu &= ~twice;
		b->map &= ~twice;
		b->twice &= ~twice;
		resident(b);
	}
	if (unmap) {
		b->map &= ~changed;
		b->gpu &= ~changed;
		b->cpu &= ~changed;
		spread(&b->va.on[0], b->cpu);
		spread(&b->va.on[1], b->gpu);
		b->va.resident.bits = (b->cpu != 0) | (b->gpu != 0) << 1;
	}
	if (!b->state.chunks[0])
		return;
	if (uvm_processor_mask_empty(&b->va.resident))
		uvm_pmm_gpu_mark_root_chunk_unused(PMM, b->state.chunks[0]);
	else
		mark_discarded(b);
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
	struct uvm_list_state s = {b->gpu, b->disc, b->state.chunks[0] != NULL, -1};
	uvm_gpu_chunk_t *chunk;

	for (int i = 0; i < UVM_PMM_ALLOC_LIST_COUNT; i++)
		list_for_each_entry(chunk, &PMM->root_chunks.alloc_list[i], list) if (chunk == b->state.chunks[0])
			s.list = i;
	return s;
}

unsigned uvm_lists_victims(const unsigned **out)
{
	*out = victims;
	return n_victims;
}
