/* SPDX-License-Identifier: Apache-2.0 */
#include "report/resident.h"

#include "base/hash.h"

#define BLOCKS_MAX (1u << 20) /* 2 TiB */
#define PAGES 65536u /* least bytes that an access makes resident */

static int same(const void *user, uint32_t row)
{
	const struct um_resident_block *const *k = user;

	return k[1][row].block == k[0]->block && k[1][row].lane == k[0]->lane;
}

static struct um_resident_block *find(const struct um_resident *r, uint32_t lane, uint64_t block)
{
	const struct um_resident_block key = {block, lane, 0};
	const struct um_resident_block *k[] = {&key, r->blocks.at};
	uint32_t row = um_index_find(&r->index, um_hash_u64(block, lane), same, k);

	return row == UM_INDEX_NONE ? NULL : &r->blocks.at[row];
}

void um_resident_fini(struct um_resident *r)
{
	um_vec_fini(&r->blocks);
	um_vec_fini(&r->used);
	um_index_fini(&r->index);
}

static int come(struct um_resident *r, uint32_t lane, uint64_t block, uint32_t bytes)
{
	struct um_resident_block *b = find(r, lane, block), fresh = {block, lane, 0};

	if (!b && r->blocks.n >= BLOCKS_MAX) {
		r->lost = 1;
		return 0;
	}
	if (!b) {
		if (um_vec_reserve(&r->blocks, 1) ||
		    um_index_add(&r->index, um_hash_u64(block, lane), (uint32_t)r->blocks.n))
			return -ENOMEM;
		b = &r->blocks.at[r->blocks.n++];
		*b = fresh;
	}
	r->used.at[lane] += !b->bytes;
	b->bytes = UM_RESIDENT_BLOCK - b->bytes > bytes ? b->bytes + bytes : UM_RESIDENT_BLOCK;
	return 0;
}

static void go(struct um_resident *r, struct um_resident_block *b, uint32_t bytes)
{
	if (!b || !b->bytes)
		return;
	b->bytes -= bytes < b->bytes ? bytes : b->bytes;
	r->used.at[b->lane] -= !b->bytes;
}

/* Adds or removes the bytes of a range by block; `all`: whole blocks. */
static int walk(struct um_resident *r, uint32_t lane, uint64_t address, uint64_t bytes, int comes, int all)
{
	uint64_t end = bytes < UINT64_MAX - address ? address + bytes : UINT64_MAX;
	int err = 0;

	/* An impossible size must not take forever. */
	if (bytes / UM_RESIDENT_BLOCK > BLOCKS_MAX) {
		r->lost = 1;
		return 0;
	}
	while (address < end && !err) {
		uint64_t next = (address / UM_RESIDENT_BLOCK + 1) * UM_RESIDENT_BLOCK;
		uint64_t part = (next < end ? next : end) - address;

		if (comes)
			err = come(r, lane, address / UM_RESIDENT_BLOCK, (uint32_t)part);
		else
			go(r, find(r, lane, address / UM_RESIDENT_BLOCK), all ? UM_RESIDENT_BLOCK : (uint32_t)part);
		if (next < address)
			break;
		address = next;
	}
	return err;
}

static int lane_at(struct um_resident *r, uint32_t lane)
{
	while (r->used.n <= lane)
		if (um_vec_push(&r->used, 0))
			return -ENOMEM;
	return 0;
}

int um_resident_use(struct um_resident *r, uint32_t lane, uint64_t address, uint64_t bytes)
{
	return r->lost ? 0 : lane_at(r, lane) ? -ENOMEM : walk(r, lane, address, bytes, 1, 0);
}

int um_resident_feed(struct um_resident *r, uint32_t lane, const struct um_activity *a)
{
	struct um_resident_block *b;

	if (lane_at(r, lane))
		return -ENOMEM;
	if (!a->address)
		r->lost = 1;
	if (r->lost)
		return 0;
	if (a->kind == UM_ACT_GPU_FAULT) {
		b = find(r, lane, a->address / UM_RESIDENT_BLOCK);
		return b && b->bytes ? 0 : come(r, lane, a->address / UM_RESIDENT_BLOCK, PAGES);
	}
	return walk(r, lane, a->address, a->bytes, a->dir != UM_DIR_D2H, a->cause == UM_CAUSE_EVICTION);
}

void um_resident_remove(struct um_resident *r, uint32_t lane, const struct um_activity *a)
{
	if (lane < r->used.n && !r->lost)
		walk(r, lane, a->address, a->bytes, 0, a->kind == UM_ACT_FREE);
}

uint64_t um_resident_bytes(const struct um_resident *r, uint32_t lane)
{
	return lane < r->used.n ? r->used.at[lane] * UM_RESIDENT_BLOCK : 0;
}
