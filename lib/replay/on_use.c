/* SPDX-License-Identifier: Apache-2.0
 *
 * on_use.c - the strategy prefetch-on-use
 */
#include "replay/on_use.h"

#include "replay/paged_op.h"

#include <errno.h>
#include <string.h>

/* Maximum number of tracked blocks: 256 GiB. */
#define MOST_BLOCKS (1u << 17)

int um_on_use_init(struct um_on_use *p, struct um_gpu *gpu, uint64_t budget_blocks, um_on_use_issue *give, void *user)
{
	memset(p, 0, sizeof *p);
	p->gpu = gpu;
	p->give = give;
	p->user = user;
	if (budget_blocks == UINT64_MAX)
		return 0;
	p->tracks = 1;
	if (um_block_lru_init(&p->resident, budget_blocks) ||
	    gpu->api->cudaEventCreateWithFlags(gpu, &p->given, UM_EVENT_DISABLE_TIMING))
		return -ENOMEM;
	return 0;
}

void um_on_use_limit_host(struct um_on_use *p, struct um_block_lru *on_host)
{
	p->on_host = p->tracks ? on_host : NULL;
}

int um_on_use_skip_resident(struct um_on_use *p, uint64_t device_blocks)
{
	p->skips_resident = 1;
	return um_block_lru_init(&p->resident, device_blocks < MOST_BLOCKS ? device_blocks : MOST_BLOCKS);
}

void um_on_use_forget(struct um_on_use *p)
{
	while (p->skips_resident && p->resident.head)
		um_block_lru_remove(&p->resident, p->resident.head);
	p->full = 0;
}

void um_on_use_add(struct um_on_use *p, uint64_t addr)
{
	if (p->skips_resident && !um_block_lru_find(&p->resident, addr))
		um_block_lru_add(&p->resident, addr);
}

void um_on_use_fini(struct um_on_use *p)
{
	if (p->given)
		p->gpu->api->cudaEventDestroy(p->gpu, p->given);
	um_block_lru_fini(&p->resident);
	memset(p, 0, sizeof *p);
}

void um_on_use_evicted(struct um_on_use *p, const struct um_use *uses, uint32_t n)
{
	for (const struct um_use *u = uses; u < uses + n; u++)
		um_block_lru_remove_range(&p->resident, u->tensor->addr + u->off, u->bytes);
}

static void flush_out(struct um_on_use *p, um_stream stream)
{
	if (p->out_bytes)
		p->give(p->user, UM_ACTION_EVICT, p->out, p->out_bytes, stream);
	p->out_bytes = 0;
}

/* The least recently used block; NULL: the current op uses all of them. If no more blocks may take host memory, one
 * that has it goes first. */
static struct um_lru_block *victim(const struct um_on_use *p)
{
	struct um_lru_block *first = p->resident.head, *b = first;

	if (!first || first->serial == p->resident.serial)
		return NULL;
	if (!p->on_host || p->on_host->by_addr.n < p->on_host->most)
		return first;
	while (b && b->serial != p->resident.serial && !um_block_lru_find(p->on_host, b->node.a))
		b = b->next;
	return b && b->serial != p->resident.serial ? b : first;
}

/* Evicts a block. 0: the current op uses all of them. */
static int evict(struct um_on_use *p, um_stream stream)
{
	struct um_lru_block *b = victim(p);

	if (!b)
		return 0;
	if (p->on_host && !um_block_lru_find(p->on_host, b->node.a))
		p->exceeds |= um_block_lru_add(p->on_host, b->node.a) != 0;
	if (p->out_bytes && p->out + p->out_bytes != b->node.a)
		flush_out(p, stream);
	if (!p->out_bytes)
		p->out = b->node.a;
	p->out_bytes += UM_BLOCK_BYTES;
	um_block_lru_remove(&p->resident, b);
	return 1;
}

/* Makes room for a block. 0: it does not fit. */
static int add(struct um_on_use *p, uint64_t addr, um_stream stream)
{
	struct um_block_lru *r = &p->resident;

	return um_block_lru_find(r, addr) || !um_block_lru_add(r, addr) ||
	       (evict(p, stream) && !um_block_lru_add(r, addr));
}

/* Marks the blocks of a use, so that they are not evicted for this op. */
static void touch(struct um_on_use *p, const struct um_use *u)
{
	uint64_t addr = u->tensor->addr + u->off;

	for (uint64_t a = um_block_of(addr); a < addr + u->bytes; a += UM_BLOCK_BYTES) {
		struct um_lru_block *b = um_block_lru_find(&p->resident, a);

		if (b)
			um_block_lru_use(&p->resident, b);
	}
}

/* Makes room for a use. Returns the number of bytes that fit. */
static uint64_t fit(struct um_on_use *p, const struct um_use *u, um_stream stream)
{
	uint64_t addr = u->tensor->addr + u->off;

	for (uint64_t a = um_block_of(addr); a < addr + u->bytes; a += UM_BLOCK_BYTES)
		if (!add(p, a, stream))
			return a > addr ? a - addr : 0;
	return u->bytes;
}

/* Orders this stream after prefetches and evictions on another one, so that memory is not counted twice. */
static void order(struct um_on_use *p, um_stream stream)
{
	if (p->any && p->stream != stream)
		p->gpu->api->cudaStreamWaitEvent(p->gpu, stream, p->given, 0);
}

/* Is a block of the range not known to be resident? From now on all of them are. */
static int is_new(struct um_on_use *p, uint64_t addr, uint64_t bytes)
{
	int new = p->full;

	for (uint64_t a = um_block_of(addr); a < addr + bytes && !p->full; a += UM_BLOCK_BYTES)
		if (!um_block_lru_find(&p->resident, a)) {
			p->full = um_block_lru_add(&p->resident, a) != 0;
			new = 1;
		}
	return new;
}

static void prefetch(struct um_on_use *p, const struct um_use *u, um_stream stream)
{
	uint64_t addr = u->tensor->addr + u->off, end = addr + u->bytes;

	if (p->skips_resident && !is_new(p, addr, u->bytes))
		return;
	if (p->skips_resident && !p->full) {
		addr = um_block_of(addr);
		end = um_block_of(end + UM_BLOCK_BYTES - 1);
	}
	p->give(p->user, UM_ACTION_PREFETCH, addr, end - addr, stream);
}

static int wanted(const struct um_on_use *p, const struct um_use *u)
{
	return !(u->tensor->flags & UM_TENSOR_UNMANAGED) &&
	       !(p->skips_resident && um_range_is_sparse(u->touched, u->bytes));
}

static double share_of(struct um_on_use *p, const struct um_use *uses, uint32_t n)
{
	uint64_t bytes = 0, most = p->resident.most * UM_BLOCK_BYTES;

	for (uint32_t i = 0; p->skips_resident && i < n; i++)
		bytes += wanted(p, &uses[i]) ? uses[i].bytes : 0;
	p->full |= p->skips_resident && bytes > most;
	return p->skips_resident ? um_paged_share(bytes, most) : 1;
}

void um_on_use_op(struct um_on_use *p, um_stream stream, const struct um_use *uses, uint32_t n)
{
	double share = share_of(p, uses, n);

	p->resident.serial++;
	if (p->tracks)
		order(p, stream);
	for (uint32_t i = 0; i < n && p->tracks; i++)
		if (wanted(p, &uses[i]))
			touch(p, &uses[i]);
	for (uint32_t i = 0; i < n; i++) {
		const struct um_use *u = &uses[i];
		uint64_t bytes;

		if (!wanted(p, u))
			continue;
		if (!p->tracks) {
			bytes = um_paged_part(u->bytes, share);
			if (bytes)
				prefetch(p, &(struct um_use){.tensor = u->tensor, .off = u->off, .bytes = bytes},
					 stream);
			continue;
		}
		bytes = fit(p, u, stream);
		flush_out(p, stream);
		if (bytes)
			p->give(p->user, UM_ACTION_PREFETCH, u->tensor->addr + u->off, bytes, stream);
	}
	if (p->tracks && n) {
		p->gpu->api->cudaEventRecord(p->gpu, p->given, stream);
		p->stream = stream;
		p->any = 1;
	}
}
