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
static int frees_wrong, live, records, syncs;
static int sync_code; /* of cudaDeviceSynchronize */

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
	records++;
	return deaf && stream == deaf ? UM_CUDA_CAPTURING : null_api->cudaEventRecord(g, event, stream);
}

static int synchronise(struct um_gpu *g)
{
	syncs++;
	return sync_code ? sync_code : null_api->cudaDeviceSynchronize(g);
}

/* Frees a piece as old as the pool. */
static void give_back(struct um_arena_pool *a, uint64_t addr, uint64_t bytes, unsigned users)
{
	um_arena_pool_free(a, addr, bytes, &(struct um_arena_pool_use){0, users, UM_ARENA_POOL_ANY});
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
	give_back(&a, first, 4 * MIB, 2);
	is_int((int)um_arena_pool_users(&a, first + MIB, MIB), 2, "memory that waits has the users of its tensor");
	is_int((int)um_arena_pool_users(&a, first + 4 * MIB, MIB), 0, "memory beside it has none");
	um_arena_pool_alloc(&a, 4 * MIB, UM_ARENA_POOL_MAIN, NULL, &next);
	ok(next != first, "memory waits while a stream takes no event");
	is_int(um_arena_pool_ends_by_events(&a, first, 4 * MIB), 0, "it is not known then when its use ends");
	um_arena_pool_name_stream(&a, 0);
	um_arena_pool_name_stream(&a, 1);
	um_arena_pool_alloc(&a, 4 * MIB, UM_ARENA_POOL_MAIN, NULL, &next);
	ok(next != first, "naming such a stream is not enough");
	deaf = NULL;
	um_arena_pool_name_stream(&a, 1);
	um_arena_pool_alloc(&a, 4 * MIB, UM_ARENA_POOL_MAIN, NULL, &again);
	is_u64(again, first, "memory is used again when the stream has passed an event");
	is_int((int)um_arena_pool_users(&a, first, MIB), 0, "memory that is used again has no users of before");
	um_arena_pool_fini(&a);
}

/* --- streams that may be destroyed -------------------------------------------------------------------------------- */

static um_stream pair[2]; /* of the pool below, numbers 0 and 1 */

/* A pool with one region of 256 MiB and two streams that have had ops. */
static void open_pair_as(struct um_arena_pool *a, int ends_known)
{
	unsigned number;

	setup(a);
	a->streams.ends_known = ends_known;
	for (int i = 0; i < 2; i++) {
		gpu->api->cudaStreamCreateWithFlags(gpu, &pair[i], 0);
		if (um_arena_pool_add_stream(a, pair[i], &number) || number != (unsigned)i)
			tap_bail("no stream");
	}
	records = syncs = 0;
	sync_code = UM_CUDA_OK;
}

static void open_pair(struct um_arena_pool *a)
{
	open_pair_as(a, 0);
}

static uint64_t piece(struct um_arena_pool *a)
{
	uint64_t addr;

	if (um_arena_pool_alloc(a, 200 * MIB, UM_ARENA_POOL_MAIN, NULL, &addr))
		tap_bail("no memory");
	return addr;
}

/* Allocates and frees a piece that this stream, a bit, has used. */
static uint64_t used_by(struct um_arena_pool *a, unsigned users)
{
	uint64_t addr = piece(a);

	give_back(a, addr, 200 * MIB, users);
	return addr;
}

static void test_named(void)
{
	struct um_arena_pool a;
	uint64_t first;

	open_pair(&a);
	first = used_by(&a, 1);
	is_int(records, 0, "a free records no event on streams that it does not name");
	um_arena_pool_name_stream(&a, 0);
	um_arena_pool_name_stream(&a, 1);
	is_int(records, 2, "it is recorded when the stream is named");
	is_int((int)a.streams.due, 0, "its op after that has nothing to record");
	is_u64(piece(&a), first, "then memory is used again");
	is_int(syncs, 0, "the device is not waited for");
	um_arena_pool_free(&a, first, 200 * MIB, &(struct um_arena_pool_use){0, 1, 1});
	is_int(records, 3, "the stream that a free names has its event at once");
	um_arena_pool_fini(&a);

	open_pair_as(&a, 1);
	used_by(&a, 1);
	is_int(records, 2, "so have all of them where the ends of streams are known");
	is_int((int)a.streams.due, 0, "nothing is left to do for their next ops");
	um_arena_pool_fini(&a);
}

static void test_device(void)
{
	struct um_arena_pool a;
	uint64_t first;

	open_pair(&a);
	first = used_by(&a, 1);
	is_u64(piece(&a), first, "memory is used again after a wait for the device when it is short");
	is_int(records, 0, "no stream is touched");
	is_int(syncs, 1, "the wait is one call");
	is_int((int)a.regions.n, 1, "the pool does not grow");
	give_back(&a, first, 200 * MIB, 0);
	um_arena_pool_name_stream(&a, 1);
	for (int i = 0; i < 5; i++)
		is_u64(used_by(&a, 2), first,
		       "a stream that had no op since does not keep memory from being used again");
	is_int(syncs, 1, "it costs no further wait for the device");
	piece(&a);
	give_back(&a, first, 200 * MIB, 1);
	um_arena_pool_name_stream(&a, 1);
	piece(&a);
	is_int(syncs, 2, "memory that it has used waits for it, as its op may not have been launched before the wait");
	um_arena_pool_fini(&a);

	open_pair(&a);
	first = used_by(&a, 1);
	sync_code = UM_CUDA_CAPTURING;
	ok(piece(&a) != first, "where the device cannot be waited for, other memory is taken");
	is_int(syncs, 1, "after one try");
	is_int((int)a.regions.n, 2, "the pool grows");
	sync_code = UM_CUDA_LOST;
	is_u64(piece(&a), first, "a lost device has no work");
	um_arena_pool_fini(&a);

	open_pair(&a);
	first = used_by(&a, 1);
	a.captured = 1;
	ok(piece(&a) != first && !syncs, "a program that captures is not waited for: that could end its capture");
	um_arena_pool_fini(&a);
}

/* One stream, then others. */
static void test_one(void)
{
	struct um_arena_pool a;
	um_stream other;
	unsigned number;
	uint64_t first;

	open_pair(&a);
	um_arena_pool_forget_stream(&a, 1);
	first = used_by(&a, 1);
	is_u64(used_by(&a, 1), first, "with one stream memory is used again at once");
	is_int(records + syncs, 0, "without a call");
	is_int((int)um_arena_pool_users(&a, first, MIB), 1, "the stream counts as a user of all memory");
	um_arena_pool_name_stream(&a, 0);
	is_int(records, 1, "the stream's next op comes after an event");
	is_int((int)um_arena_pool_users(&a, first, MIB), 0, "which is complete");
	used_by(&a, 1);
	gpu->api->cudaStreamCreateWithFlags(gpu, &other, 0);
	is_int(um_arena_pool_add_stream(&a, other, &number), 0, "another stream appears");
	is_int(syncs, 1, "it waits for the device if the event is missing");
	is_int(records, 1, "the first stream is not touched");
	is_u64(used_by(&a, 1u << number), first, "the first stream is idle: memory of the other is used again at once");
	um_arena_pool_name_stream(&a, 0);
	is_int(syncs, 2, "before the first stream's next op the device is waited for");
	is_int((int)a.streams.idle, 1 << number, "it is not idle any more");
	used_by(&a, 1);
	sync_code = UM_CUDA_INVALID_VALUE;
	um_arena_pool_forget_stream(&a, number);
	gpu->api->cudaStreamCreateWithFlags(gpu, &other, 0);
	is_int(um_arena_pool_add_stream(&a, other, &number), -EIO, "an order that the device refuses is an error");
	is_int(a.streams.overflow, 1, "then no memory is used again");
	um_arena_pool_fini(&a);
}

/* The event after one stream's pieces is not replaced by that of another one. */
static void test_one_each(void)
{
	struct um_arena_pool a;

	open_pair(&a);
	used_by(&a, 1);
	piece(&a);
	is_int((int)a.streams.idle, 3, "both streams are idle");
	um_arena_pool_alloc(&a, 4 * MIB, UM_ARENA_POOL_MAIN, NULL, &(uint64_t){0});
	give_back(&a, a.regions.at[0].addr, 200 * MIB, 1);
	is_int((int)a.waiting.n, 0, "memory of an idle stream is used again at once after its work");
	give_back(&a, a.regions.at[0].addr + 200 * MIB, 4 * MIB, 2);
	is_int((int)a.waiting.n, 1, "memory of another one waits meanwhile");
	um_arena_pool_fini(&a);
}

/* A stream without ops in a piece's lifetime. */
static void test_lifetime(void)
{
	struct um_arena_pool a;
	uint64_t first;

	open_pair(&a);
	a.streams.named[0] = 10;
	a.streams.named[1] = 4;
	first = piece(&a);
	um_arena_pool_free(&a, first, 200 * MIB, &(struct um_arena_pool_use){5, 1, UM_ARENA_POOL_ANY});
	um_arena_pool_name_stream(&a, 0);
	is_u64(piece(&a), first, "memory does not wait for a stream that had no op in its lifetime");
	um_arena_pool_free(&a, first, 200 * MIB, &(struct um_arena_pool_use){4, 1, UM_ARENA_POOL_ANY});
	um_arena_pool_name_stream(&a, 0);
	is_int((int)a.waiting.at[0].missing, 2, "it waits for one that had");
	um_arena_pool_name_stream(&a, 1);
	piece(&a);
	um_arena_pool_free(&a, first, 200 * MIB, &(struct um_arena_pool_use){5, 3, UM_ARENA_POOL_ANY});
	um_arena_pool_name_stream(&a, 0);
	is_int((int)a.waiting.at[0].missing, 2, "and for one that has used it");
	is_int(syncs, 0, "the device is not waited for");
	um_arena_pool_fini(&a);

	open_pair_as(&a, 1);
	first = piece(&a);
	um_arena_pool_free(&a, first, 200 * MIB, &(struct um_arena_pool_use){5, 1, UM_ARENA_POOL_ANY});
	is_int(records, 2, "where the ends of streams are known, an event on each costs no wait");
	um_arena_pool_fini(&a);
}

static void test_retire(void)
{
	struct um_arena_pool a;

	open_pair(&a);
	a.streams.named[0] = 5;
	a.streams.named[1] = 20;
	is_int((int)um_arena_pool_retire_streams(&a, 10), 1, "a stream without ops for long is retired");
	is_int(syncs, 1, "after a wait for the device");
	is_int(records, 0, "and no event");
	sync_code = UM_CUDA_NOT_SUPPORTED;
	is_int((int)um_arena_pool_retire_streams(&a, 30), 2, "an idle stream is retired at once");
	um_arena_pool_fini(&a);

	open_pair(&a);
	sync_code = UM_CUDA_NOT_SUPPORTED;
	is_int((int)um_arena_pool_retire_streams(&a, 10), 0, "without the wait none is retired");
	um_arena_pool_fini(&a);
}

/* --- places ------------------------------------------------------------------------------------------------------- */

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
	give_back(&a, small, 4 * MIB, 0);
	give_back(&a, large, 8 * MIB, 0);
	resident = large + 4 * MIB;
	addr = take(&a, 4 * MIB, &missing);
	is_u64(addr, resident, "a piece lies where blocks are resident");
	give_back(&a, addr, 4 * MIB, 0);
	resident = 0;
	addr = take(&a, 4 * MIB, &missing);
	is_u64(addr, small, "a piece lies where it fits best if nothing is resident");
	used = take(&a, 236 * MIB, NULL);
	take(&a, 2 * MIB, NULL);
	give_back(&a, used, 236 * MIB, 0);
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

/* A tensor of the kind dies, which stayed through an iteration or not. */
static void dies(struct um_tensors *t, uint64_t bytes, enum um_role role, int stayed)
{
	const struct um_tensor tensor = {.bytes = bytes, .role = role};

	um_tensors_note_life(t, &tensor, stayed);
}

static void test_staying(void)
{
	struct um_tensors t;
	struct um_schedule s;
	struct um_slot slot = {.bytes = MIB, .birth = 0, .death = 1, .carry = UM_NO_SLOT, .role = UM_ROLE_GRAD};

	um_tensors_init(&t, gpu);
	ok(!um_tensors_will_stay(&t, MIB, UM_ROLE_GRAD), "a tensor of an unknown kind will not stay");
	dies(&t, MIB, UM_ROLE_GRAD, 1);
	ok(um_tensors_will_stay(&t, MIB, UM_ROLE_GRAD), "a tensor stays as the last one of its kind");
	ok(!um_tensors_will_stay(&t, MIB, UM_ROLE_ACT), "one of another role does not");
	ok(!um_tensors_will_stay(&t, MIB + 1, UM_ROLE_GRAD), "one of another size does not");
	dies(&t, MIB, UM_ROLE_GRAD, 0);
	ok(!um_tensors_will_stay(&t, MIB, UM_ROLE_GRAD), "no tensor stays after one of its kind that did not");
	dies(&t, MIB, UM_ROLE_GRAD, 1);
	slot.place = take(&t.pool, MIB, NULL);
	give_back(&t.pool, slot.place, MIB, 0);
	um_schedule_init(&s);
	if (um_vec_push(&s.slots, slot) || um_tensors_claim(&t, &s))
		tap_bail("no memory");
	ok(!um_tensors_will_stay(&t, MIB, UM_ROLE_GRAD), "a tensor that takes a planned place does not stay beside it");
	um_arena_pool_unclaim(&t.pool);
	um_schedule_fini(&s);
	um_tensors_fini(&t);
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
	give_back(&a, second, 2 * MIB, 0);
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
	api.cudaDeviceSynchronize = synchronise;
	gpu->api = &api;
	test_alignment();
	test_little();
	test_waiting();
	test_named();
	test_device();
	test_one();
	test_one_each();
	test_lifetime();
	test_retire();
	test_missing();
	test_used();
	test_staying();
	test_new_memory();
	null_api->close(gpu);
	return tap_done();
}
