/* SPDX-License-Identifier: Apache-2.0
 *
 * allocations.c - allocations of the simulated GPU
 *
 * Managed memory begins at a 2 MiB boundary and has its blocks to itself; if it is not backed, only its addresses are
 * reserved. A tail shorter than a block has fewer pages but counts as a full-size block, since the real runtime's
 * packing of small allocations is not known.
 */
#include "sim/check.h"
#include "sim/state.h"

#include "base/bisect.h"

#include <stdatomic.h>
#include <sys/mman.h>

/* Index of the first allocation that begins after `addr`. */
static size_t mem_after(const struct um_sim *sim, uint64_t addr)
{
	size_t lo = 0;

	UM_BISECT(lo, sim->mem.n, i, sim->mem.at[i]->addr <= addr)
	return lo;
}

struct um_sim_mem *um_sim_mem_find(struct um_sim *sim, uint64_t addr)
{
	size_t i = mem_after(sim, addr);

	if (!i || addr - sim->mem.at[i - 1]->addr >= sim->mem.at[i - 1]->bytes)
		return NULL;
	return sim->mem.at[i - 1];
}

struct um_sim_mem *um_sim_mem_any(struct um_sim **sim, uint64_t addr)
{
	const struct um_sim_node *node = (*sim)->node;
	struct um_sim_mem *m = um_sim_mem_find(*sim, addr);

	if (m && !m->borrowed)
		return m;
	for (unsigned d = 0; d < node->n; d++) {
		m = node->sim[d] ? um_sim_mem_find(node->sim[d], addr) : NULL;
		if (m && !m->borrowed) {
			*sim = node->sim[d];
			return m;
		}
	}
	return NULL;
}

/* Addresses are requested one after the other, far from the addresses that the system chooses: plans depend on the
 * addresses of arenas, and the same program must get the same plan. If an address is in use, or under a sanitizer that
 * forbids it, the system chooses. */
#define ADDRESSES 0x2b6740000000u
#define ADDRESSES_END 0x500000000000u

static void *next_address(size_t bytes)
{
	static _Atomic uint64_t next = ADDRESSES;
	uint64_t at = atomic_fetch_add(&next, bytes);

	if (at + bytes < ADDRESSES_END)
		return (void *)(uintptr_t)at;
	atomic_store(&next, ADDRESSES);
	return NULL;
}

/* An address range that begins at a block boundary, with or without memory. */
static int span_map(struct um_sim_mem *m, size_t bytes, int backed, int shared)
{
	uint64_t at;
	void *p;

	if (bytes > SIZE_MAX - 2 * UM_BLOCK_BYTES)
		return -ENOMEM;
	m->span_bytes = (bytes + 2 * UM_BLOCK_BYTES - 1) & ~(size_t)(UM_BLOCK_BYTES - 1);
	p = mmap(next_address(m->span_bytes), m->span_bytes, backed ? PROT_READ | PROT_WRITE : PROT_NONE,
		 (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	m->span = p;
	at = (uint64_t)(uintptr_t)p;
	m->addr = (at + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
	return 0;
}

/* A root chunk that small allocations of device memory share. */
struct um_sim_shared_chunk {
	uint32_t users, used; /* allocations, bytes; what is freed is not used again */
};

/* Also frees a partly initialised allocation. */
void um_sim_mem_free(struct um_sim_mem *m)
{
	if (m->shared_chunk && !--m->shared_chunk->users)
		free(m->shared_chunk);
	if (m->span && !m->borrowed)
		munmap(m->span, m->span_bytes);
	free(m->block);
	if (!m->borrowed)
		free(m->seen);
	free(m->odd);
	free(m);
}

/* All blocks at once: they are linked by pointers, so they must not move. */
int um_sim_mem_blocks(struct um_sim_mem *m)
{
	m->n = (uint32_t)((m->bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES);
	m->block = calloc(m->n, sizeof *m->block);
	m->odd = calloc((m->n + 63) / 64, sizeof *m->odd);
	if (!m->block || !m->odd)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n; i++) {
		m->block[i].mem = m;
		m->block[i].all = um_sim_pages_out(m, i, 0, m->bytes);
		um_sim_block_changed(&m->block[i]);
	}
	return 0;
}

/* Allocations are sorted by address, for look-ups by pointer. */
int um_sim_mem_add(struct um_sim *sim, struct um_sim_mem *m)
{
	size_t i = mem_after(sim, m->addr);

	if (um_vec_reserve(&sim->mem, 1) || um_vec_reserve(&sim->mem_order, 1))
		return -ENOMEM;
	if (!m->borrowed)
		m->serial = ++sim->node->mem_serial;
	sim->mem_order.at[sim->mem_order.n++] = m;
	memmove(sim->mem.at + i + 1, sim->mem.at + i, (sim->mem.n - i) * sizeof *sim->mem.at);
	sim->mem.at[i] = m;
	sim->mem.n++;
	um_sim_ledger_born(sim, m);
	return 0;
}

/* Adds memory that all devices of the process use, or none. */
static int shared_add(struct um_sim *sim, struct um_sim_mem *m)
{
	int err = um_sim_mem_add(sim, m);

	if (!err && um_sim_share_make(sim, m)) {
		um_sim_mem_remove(sim, m);
		return -ENOMEM;
	}
	if (err)
		um_sim_mem_free(m);
	return err;
}

/* The page tables show accesses to shared memory. */
static int observe(const struct um_sim *sim, struct um_sim_mem *m)
{
	if (sim->follow)
		um_sim_cpu_access_prepare(m->span, m->span_bytes);
	return sim->check ? um_sim_check_begin(m) : 0;
}

static int mem_new(struct um_sim *sim, enum um_sim_kind kind, uint64_t bytes, struct um_sim_mem **out)
{
	struct um_sim_mem *m = calloc(1, sizeof *m);
	int managed = kind == UM_SIM_MANAGED;

	if (!m)
		return UM_CUDA_NO_MEMORY;
	m->kind = kind;
	m->bytes = m->used = bytes;
	if (bytes > (1ull << 52) ||
	    span_map(m, bytes, kind == UM_SIM_PINNED || sim->opt.backed, managed && (sim->follow || sim->check)) ||
	    (managed && (um_sim_mem_blocks(m) || observe(sim, m)))) {
		um_sim_mem_free(m);
		return UM_CUDA_NO_MEMORY;
	}
	if (kind == UM_SIM_DEVICE && um_sim_mem_add(sim, m)) {
		um_sim_mem_free(m);
		return UM_CUDA_NO_MEMORY;
	}
	if (kind != UM_SIM_DEVICE && shared_add(sim, m))
		return UM_CUDA_NO_MEMORY;
	*out = m;
	return UM_CUDA_OK;
}

/* Serials only grow. */
static size_t order_of(const struct um_sim *sim, const struct um_sim_mem *m)
{
	size_t lo = 1;

	UM_BISECT(lo, sim->mem_order.n, i, sim->mem_order.at[i]->serial <= m->serial)
	return lo - 1;
}

void um_sim_mem_remove(struct um_sim *sim, struct um_sim_mem *m)
{
	size_t i = mem_after(sim, m->addr) - 1, k = order_of(sim, m);

	for (uint32_t j = 0; j < m->n; j++)
		um_sim_block_drop(sim, &m->block[j]);
	um_sim_ledger_gone(sim, m);
	sim->chunks_free += m->chunks;
	if (m->shared_chunk && m->shared_chunk->users == 1) { /* the last one in it */
		sim->chunks_free++;
		sim->filling = sim->filling == m->shared_chunk ? NULL : sim->filling;
	}
	sim->mem.n--;
	memmove(sim->mem.at + i, sim->mem.at + i + 1, (sim->mem.n - i) * sizeof *sim->mem.at);
	sim->mem_order.n--;
	memmove(sim->mem_order.at + k, sim->mem_order.at + k + 1, (sim->mem_order.n - k) * sizeof *sim->mem_order.at);
	um_sim_mem_free(m);
}

/* Kernels that still use it continue without it. */
static void forget_in_kernels(struct um_sim *sim, const struct um_sim_mem *m)
{
	for (struct um_sim_stream *s = sim->streams; s; s = s->next)
		for (size_t i = s->first; i < s->queue.n; i++)
			if (s->queue.at[i].running)
				um_sim_walk_forget(s->queue.at[i].kernel, m);
}

/* The memory itself goes last: its twins may lie in it. */
void um_sim_mem_release(struct um_sim *sim, struct um_sim_mem *m)
{
	struct um_sim_share *share = m->share;

	for (unsigned d = 0; share && d < sim->node->n; d++)
		if (share->twin[d]) {
			forget_in_kernels(sim->node->sim[d], share->twin[d]);
			if (!share->twin[d]->borrowed) {
				m = share->twin[d];
				sim = sim->node->sim[d];
			}
		}
	if (share)
		um_sim_share_end(sim->node, share, m);
	um_sim_mem_remove(sim, m);
}

uint32_t um_sim_pages_out(const struct um_sim_mem *m, uint32_t i, uint64_t off, uint64_t bytes)
{
	uint64_t start = (uint64_t)i * UM_BLOCK_BYTES, from, to;

	if (off >= m->bytes || !bytes)
		return 0;
	if (bytes > m->bytes - off)
		bytes = m->bytes - off;
	if (off + bytes <= start || off >= start + UM_BLOCK_BYTES)
		return 0;
	from = off > start ? (off - start) / UM_SIM_PAGE : 0;
	to = (off + bytes - start + UM_SIM_PAGE - 1) / UM_SIM_PAGE;
	if (to > UM_SIM_PAGES)
		to = UM_SIM_PAGES;
	return (UINT32_MAX >> (UM_SIM_PAGES - (to - from))) << from;
}

uint32_t um_sim_pages_in(const struct um_sim_mem *m, uint32_t i, uint64_t off, uint64_t bytes)
{
	uint64_t end = off + bytes, first = (off + UM_SIM_PAGE - 1) / UM_SIM_PAGE * UM_SIM_PAGE;

	if (end < m->bytes) /* the allocation's own end counts as a boundary */
		end = end / UM_SIM_PAGE * UM_SIM_PAGE;
	return end > first ? um_sim_pages_out(m, i, first, end - first) : 0;
}

int um_sim_malloc_managed(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_mem *m;
	int err;

	if (!ptr || !bytes || flags > 2)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "cudaMallocManaged");
	err = mem_new(sim, UM_SIM_MANAGED, bytes, &m);
	if (!err) {
		*um_sim_clock(sim) += sim->profile.c_api;
		um_sim_log(sim, *um_sim_clock(sim), "alloc m%u %llu", m->serial, (unsigned long long)bytes);
		um_sim_watch_call(sim, "cudaMallocManaged_v6000", *um_sim_clock(sim) - sim->profile.c_api);
		um_sim_watch_memory(sim, m, 1, *um_sim_clock(sim));
		*ptr = (void *)(uintptr_t)m->addr;
	}
	return um_sim_leave(sim, err);
}

/* The runtime packs device memory of less than 1 MiB into pages of 2 MiB. */
#define PACKED_BYTES (UM_BLOCK_BYTES / 2)
#define PACKED_ALIGN 512u

/* Waits for the chunks: when the call returns, copies of their old content to the host are complete. */
static int take_chunks(struct um_sim *sim, struct um_sim_mem *m, uint64_t n, uint64_t *t)
{
	uint64_t ready;
	int err, clean;

	for (; m->chunks < n; m->chunks++) {
		err = um_sim_chunk_take(sim, t, &ready, &clean);
		*t = um_sim_later(*t, ready);
		if (err)
			return err;
	}
	return UM_CUDA_OK;
}

static int pack(struct um_sim *sim, struct um_sim_mem *m, uint64_t *t)
{
	uint32_t bytes = (uint32_t)((m->bytes + PACKED_ALIGN - 1) / PACKED_ALIGN * PACKED_ALIGN);
	struct um_sim_shared_chunk *c = sim->filling;
	int err;

	if (!c || c->used + bytes > UM_BLOCK_BYTES) {
		c = calloc(1, sizeof *c);
		if (!c)
			return UM_CUDA_NO_MEMORY;
		err = take_chunks(sim, m, 1, t);
		if (err) {
			free(c);
			return err;
		}
		m->chunks = 0; /* it is all users' */
		sim->filling = c;
	}
	c->users++;
	c->used += bytes;
	m->shared_chunk = c;
	return UM_CUDA_OK;
}

int um_sim_malloc(struct um_gpu *gpu, void **ptr, size_t bytes)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_mem *m = NULL;
	uint64_t need = (bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES, begin, t;
	int err;

	if (!ptr || !bytes)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "cudaMalloc");
	begin = *um_sim_clock(sim);
	t = um_sim_later(begin, sim->writer_until) + sim->profile.c_api;
	err = mem_new(sim, UM_SIM_DEVICE, bytes, &m);
	if (!err)
		err = bytes < PACKED_BYTES ? pack(sim, m, &t) : take_chunks(sim, m, need, &t);
	if (err && m)
		um_sim_mem_release(sim, m);
	*um_sim_clock(sim) = t;
	if (!err) {
		um_sim_log(sim, t, "device-alloc m%u %llu", m->serial, (unsigned long long)bytes);
		um_sim_watch_call(sim, "cudaMalloc_v3020", begin);
		um_sim_watch_memory(sim, m, 1, t);
		*ptr = (void *)(uintptr_t)m->addr;
	}
	return um_sim_leave(sim, err);
}

static int is_host(const struct um_sim_mem *m)
{
	return m->kind == UM_SIM_PINNED || m->kind == UM_SIM_REGISTERED;
}

/* Freeing waits for all work of the devices that may still use it. */
static int finish_users(struct um_sim *sim, struct um_sim *of, const struct um_sim_mem *m)
{
	int shared = m->share && !sim->program.turns; /* programs that take turns have memory each for itself */
	int err = UM_CUDA_OK;

	for (unsigned d = 0; d < sim->node->n && !err; d++) {
		struct um_sim *o = sim->node->sim[d];

		if (!o || (o != of && !shared))
			continue;
		err = um_sim_finish_locked(o);
		if (!sim->node->lane)
			sim->app = um_sim_later(sim->app, o->app);
	}
	return err;
}

/* Frees the allocation that begins at `ptr`: pinned memory, or any other except the program's own. */
static int release(struct um_sim *sim, void *ptr, int pinned)
{
	struct um_sim *of = sim; /* the memory is of that device */
	struct um_sim_mem *m;
	int err;

	if (!ptr)
		return UM_CUDA_OK;
	um_sim_enter_call(sim, pinned ? "cudaFreeHost" : "cudaFree");
	m = um_sim_mem_any(&of, (uint64_t)(uintptr_t)ptr);
	if (!m || m->addr != (uint64_t)(uintptr_t)ptr || is_host(m) != pinned || !m->span)
		return um_sim_leave(sim, UM_CUDA_INVALID_VALUE);
	err = finish_users(sim, of, m);
	if (!err) {
		*um_sim_clock(sim) += sim->profile.c_api;
		um_sim_log(sim, *um_sim_clock(sim), "free m%u", m->serial);
		um_sim_watch_call(sim, pinned ? "cudaFreeHost_v3020" : "cudaFree_v3020",
				  *um_sim_clock(sim) - sim->profile.c_api);
		um_sim_watch_memory(sim, m, 0, *um_sim_clock(sim));
		um_sim_mem_release(of, m);
	}
	return um_sim_leave(sim, err);
}

int um_sim_free(struct um_gpu *gpu, void *ptr)
{
	return release(um_sim_of(gpu), ptr, 0);
}

int um_sim_host_free(struct um_gpu *gpu, void *ptr)
{
	return release(um_sim_of(gpu), ptr, 1);
}

/* Frees device or managed memory that begins at `addr`. */
void um_sim_free_now(struct um_sim *sim, uint64_t addr)
{
	struct um_sim_mem *m = um_sim_mem_find(sim, addr);

	if (!m || m->addr != addr || is_host(m))
		return;
	forget_in_kernels(sim, m);
	um_sim_log(sim, sim->now, "free m%u", m->serial);
	um_sim_watch_memory(sim, m, 0, sim->now);
	um_sim_mem_release(sim, m);
}

int um_sim_free_async(struct um_gpu *gpu, um_stream stream, void *ptr)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_stream *s;
	struct um_sim_mem *m;
	int err = UM_CUDA_INVALID_VALUE;

	um_sim_enter_call(sim, "cudaFreeAsync");
	s = um_sim_stream_of(sim, stream);
	m = um_sim_mem_find(sim, (uint64_t)(uintptr_t)ptr);
	if (s && m && m->addr == (uint64_t)(uintptr_t)ptr && !is_host(m))
		err = um_sim_stream_push(sim, s, &(struct um_sim_cmd){.kind = UM_SIM_CMD_FREE, .addr = m->addr});
	return um_sim_leave(sim, err);
}

int um_sim_host_register(struct um_gpu *gpu, void *ptr, uint64_t bytes)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	struct um_sim_mem *m;
	size_t i;

	if (!ptr || !bytes || bytes > UINT64_MAX - addr)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "cudaHostRegister");
	i = mem_after(sim, addr);
	if (um_sim_mem_find(sim, addr) || (i < sim->mem.n && sim->mem.at[i]->addr < addr + bytes))
		return um_sim_leave(sim, UM_CUDA_ALREADY_REGISTERED);
	m = calloc(1, sizeof *m);
	if (!m)
		return um_sim_leave(sim, UM_CUDA_NO_MEMORY);
	m->kind = UM_SIM_REGISTERED;
	m->addr = addr;
	m->bytes = m->used = bytes;
	return um_sim_leave(sim, shared_add(sim, m) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK);
}

int um_sim_host_unregister(struct um_gpu *gpu, void *ptr)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_mem *m;
	int err;

	um_sim_enter_call(sim, "cudaHostUnregister");
	m = um_sim_mem_find(sim, (uint64_t)(uintptr_t)ptr);
	if (!m || m->addr != (uint64_t)(uintptr_t)ptr || m->kind != UM_SIM_REGISTERED)
		return um_sim_leave(sim, UM_CUDA_NOT_REGISTERED);
	err = um_sim_finish_locked(sim);
	if (!err)
		um_sim_mem_release(sim, m);
	return um_sim_leave(sim, err);
}

int um_sim_memory(struct um_gpu *gpu, const void *ptr, struct um_sim_memory *out)
{
	struct um_sim *sim = um_sim_of(gpu);
	const struct um_sim_mem *m;

	um_sim_enter(sim);
	m = um_sim_mem_any(&sim, (uint64_t)(uintptr_t)ptr);
	if (m)
		*out = (struct um_sim_memory){m->kind, m->serial, m->addr, m->bytes, sim->gpu.caps.device, m->used};
	return um_sim_leave(sim, m ? 0 : -ENOENT);
}

void um_sim_use_memory(struct um_gpu *gpu, const void *ptr, uint64_t bytes)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_mem *m;

	um_sim_enter(sim);
	m = um_sim_mem_any(&sim, (uint64_t)(uintptr_t)ptr);
	if (m && bytes && bytes < m->bytes)
		m->used = bytes;
	um_sim_leave(sim, 0);
}

int um_sim_host_alloc(struct um_gpu *gpu, void **ptr, size_t bytes, unsigned flags)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_mem *m;
	int err;

	(void)flags;
	if (!ptr || !bytes)
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "cudaHostAlloc");
	err = mem_new(sim, UM_SIM_PINNED, bytes, &m);
	if (!err)
		*ptr = (void *)(uintptr_t)m->addr;
	return um_sim_leave(sim, err);
}

int um_sim_mem_info(struct um_gpu *gpu, size_t *free_bytes, size_t *total_bytes)
{
	struct um_sim *sim = um_sim_of(gpu);

	um_sim_enter(sim);
	*free_bytes = sim->chunks_free * UM_BLOCK_BYTES;
	*total_bytes = sim->chunks * UM_BLOCK_BYTES;
	return um_sim_leave(sim, UM_CUDA_OK);
}
