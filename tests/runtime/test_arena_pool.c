/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory in pieces, on devices that are not as obliging as one hopes: memory that does not begin at a block
 * boundary, little of it, streams that take no event for a while.
 */
#include "runtime/tensors.h"

#include "gpu/null.h"
#include "model/event.h"

#include "tap.h"

#define MIB (1ull << 20)

static struct um_gpu *gpu;
static const struct um_gpu_api *null_api;
static struct um_gpu_api api;
static uint64_t shift, most; /* of what is given out */
static um_stream deaf; /* takes no event */
static int frees_wrong, live;

static int get(struct um_gpu *g, void **ptr, size_t bytes, unsigned flags)
{
	char *p;
	int err = bytes > most ? UM_CUDA_NO_MEMORY : null_api->cudaMallocManaged(g, (void **)&p, bytes + shift, flags);

	if (err)
		return err;
	live++;
	*ptr = p + shift;
	return UM_CUDA_OK;
}

static int give(struct um_gpu *g, void *ptr)
{
	frees_wrong += (uintptr_t)ptr % UM_BLOCK_BYTES != shift;
	live--;
	return null_api->cudaFree(g, (char *)ptr - shift);
}

static int record(struct um_gpu *g, um_event_handle event, um_stream stream)
{
	return deaf && stream == deaf ? UM_CUDA_CAPTURING : null_api->cudaEventRecord(g, event, stream);
}

static void setup(struct um_arena_pool *a)
{
	shift = 0;
	deaf = NULL;
	most = UINT64_MAX;
	um_arena_pool_init(a, gpu);
}

static void test_alignment(void)
{
	struct um_arena_pool a;
	uint64_t addr = 0;

	setup(&a);
	shift = 4096;
	is_int(um_arena_pool_alloc(&a, 3 * MIB, UM_ARENA_POOL_MAIN, NULL, &addr), 0,
	       "memory that begins anywhere is good enough");
	is_u64(a.regions.at[0].addr % UM_BLOCK_BYTES, 0, "what is used of it begins at a block");
	is_u64(a.regions.at[0].bytes % UM_BLOCK_BYTES, 0, "a region is whole blocks");
	ok(addr >= a.regions.at[0].addr && addr + 3 * MIB <= a.regions.at[0].addr + a.regions.at[0].bytes,
	   "the piece lies inside");
	memset((void *)(uintptr_t)a.regions.at[0].addr, 1, a.regions.at[0].bytes);
	um_arena_pool_fini(&a);
	is_int(live + frees_wrong, 0, "what was given is given back, as it was given");
}

static void test_little(void)
{
	struct um_arena_pool a;
	uint64_t addr;

	setup(&a);
	most = 20 * MIB;
	is_int(um_arena_pool_alloc(&a, 3 * MIB, UM_ARENA_POOL_MAIN, NULL, &addr), 0,
	       "with little memory arenas are smaller");
	ok(a.regions.at[0].bytes <= most, "no more than there is");
	is_int(um_arena_pool_alloc(&a, 30 * MIB, UM_ARENA_POOL_MAIN, NULL, &addr), -ENOMEM,
	       "more than there is: said so");
	um_arena_pool_fini(&a);
	is_int(live + frees_wrong, 0, "all is given back");
}

static void test_waiting(void)
{
	struct um_arena_pool a;
	um_stream s[2];
	uint64_t first, next, again;
	unsigned number;

	setup(&a);
	gpu->api->cudaStreamCreateWithFlags(gpu, &s[0], 0);
	gpu->api->cudaStreamCreateWithFlags(gpu, &s[1], 0);
	um_arena_pool_add_stream(&a, s[0], &number);
	um_arena_pool_add_stream(&a, s[1], &number);
	um_arena_pool_alloc(&a, 4 * MIB, UM_ARENA_POOL_MAIN, NULL, &first);
	deaf = s[1];
	um_arena_pool_free(&a, first, 4 * MIB, 2, UM_ARENA_POOL_ANY);
	is_int((int)um_arena_pool_users(&a, first + MIB, MIB), 2, "memory that waits has the users of its tensor");
	is_int((int)um_arena_pool_users(&a, first + 4 * MIB, MIB), 0, "memory beside it has none");
	um_arena_pool_alloc(&a, 4 * MIB, UM_ARENA_POOL_MAIN, NULL, &next);
	ok(next != first, "memory waits while a stream takes no event");
	deaf = NULL;
	um_arena_pool_alloc(&a, 4 * MIB, UM_ARENA_POOL_MAIN, NULL, &again);
	is_u64(again, first, "memory is used again when the stream has passed an event");
	is_int((int)um_arena_pool_users(&a, first, MIB), 0, "memory that is used again has no users of before");
	um_arena_pool_fini(&a);
}

static uint64_t resident; /* the address of the first of 4 MiB; 0: none */

static uint64_t missing_blocks(void *user, uint64_t addr, uint64_t bytes)
{
	uint64_t n = 0;

	(void)user;
	for (uint64_t a = addr; a < addr + bytes; a += UM_BLOCK_BYTES)
		n += a < resident || a >= resident + 4 * MIB;
	return n;
}

static uint64_t take(struct um_arena_pool *a, uint64_t bytes, const struct um_arena_pool_missing *missing)
{
	uint64_t addr;

	if (um_arena_pool_alloc(a, bytes, UM_ARENA_POOL_MAIN, missing, &addr))
		tap_bail("no memory");
	return addr;
}

static void test_missing(void)
{
	const struct um_arena_pool_missing missing = {missing_blocks, NULL};
	uint64_t small, large, used, addr;
	struct um_arena_pool a;

	setup(&a);
	small = take(&a, 4 * MIB, NULL);
	take(&a, 2 * MIB, NULL);
	large = take(&a, 8 * MIB, NULL);
	take(&a, 2 * MIB, NULL);
	um_arena_pool_free(&a, small, 4 * MIB, 0, UM_ARENA_POOL_ANY);
	um_arena_pool_free(&a, large, 8 * MIB, 0, UM_ARENA_POOL_ANY);
	resident = large + 4 * MIB;
	addr = take(&a, 4 * MIB, &missing);
	is_u64(addr, resident, "a piece lies where blocks are resident");
	um_arena_pool_free(&a, addr, 4 * MIB, 0, UM_ARENA_POOL_ANY);
	resident = 0;
	addr = take(&a, 4 * MIB, &missing);
	is_u64(addr, small, "a piece lies where it fits best if nothing is resident");
	used = take(&a, 236 * MIB, NULL);
	take(&a, 2 * MIB, NULL);
	um_arena_pool_free(&a, used, 236 * MIB, 0, UM_ARENA_POOL_ANY);
	is_u64(take(&a, 2 * MIB, &missing), large, "a piece does not lie in memory that was never used");
	um_arena_pool_fini(&a);
}

/* Blocks of memory in use, for a plan on a device of `capacity` blocks. */
static uint64_t used_blocks(const struct um_arena_pool *a, uint64_t capacity)
{
	const struct um_tensors t = {.pool = *a};
	struct um_executor_range *used;
	uint64_t sum = 0;

	for (size_t n = um_tensors_used(&t, capacity, &used); n--;)
		sum += used[n].bytes / UM_BLOCK_BYTES;
	free(used);
	return sum;
}

static void test_used(void)
{
	struct um_arena_pool a;
	uint64_t addr;

	setup(&a);
	take(&a, 3 * MIB, NULL);
	um_arena_pool_alloc(&a, 10 * MIB, UM_ARENA_POOL_UNPLANNED, NULL, &addr);
	is_u64(used_blocks(&a, 6), 7, "all memory that was allocated is used, in whole blocks");
	is_u64(used_blocks(&a, 7), 2, "where all fits, memory of tensors that no plan contains is left alone");
	um_arena_pool_fini(&a);
}

static void test_new_memory(void)
{
	struct um_arena_pool a;
	uint64_t first, second, from;

	setup(&a);
	first = take(&a, 3 * MIB, NULL);
	is_u64(um_arena_pool_new_memory(&a, first, &from), 4 * MIB,
	       "memory that was allocated is new, in whole blocks");
	is_u64(from, first, "it begins with the region");
	is_u64(um_arena_pool_new_memory(&a, first, &from), 0, "it is returned once");
	second = take(&a, MIB, NULL);
	is_u64(um_arena_pool_new_memory(&a, second, &from), 0, "a piece in a block that was returned is not new");
	take(&a, 2 * MIB, NULL);
	second = take(&a, 2 * MIB, NULL);
	is_u64(um_arena_pool_new_memory(&a, second, &from), 4 * MIB, "all pieces since the last call are new");
	is_u64(from, first + 4 * MIB, "they begin where the last call ended");
	um_arena_pool_free(&a, second, 2 * MIB, 0, UM_ARENA_POOL_ANY);
	is_u64(take(&a, 2 * MIB, NULL), second, "the last piece is reused");
	is_u64(um_arena_pool_new_memory(&a, second, &from), 0, "memory that is reused is not new");
	if (um_arena_pool_alloc(&a, 2 * MIB, UM_ARENA_POOL_UNPLANNED, NULL, &second))
		tap_bail("no memory");
	is_u64(um_arena_pool_new_memory(&a, first, &from), 0, "memory of another region is not returned");
	is_u64(um_arena_pool_new_memory(&a, second + MIB, &from), 2 * MIB, "a region has its own new memory");
	is_u64(from, second, "it begins with that region");
	um_arena_pool_fini(&a);
}

int main(void)
{
	if (um_null_open(&gpu, 1ull << 40, 0))
		tap_bail("no device");
	null_api = gpu->api;
	api = *null_api;
	api.cudaMallocManaged = get;
	api.cudaFree = give;
	api.cudaEventRecord = record;
	gpu->api = &api;
	test_alignment();
	test_little();
	test_waiting();
	test_missing();
	test_used();
	test_new_memory();
	null_api->close(gpu);
	return tap_done();
}
