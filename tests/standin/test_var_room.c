/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory for the variables of modules: modules share blocks, the last one frees its block, and allocations fail.
 */
#include "standin/var_room.h"

#include "model/event.h"

#include "tap.h"

#include <pthread.h>

#define MODULES 1000
#define KIB 1024u
#define THREADS 4

/* --- a device that counts ----------------------------------------------------------------------------------------- */

static struct {
	unsigned allocations, frees;
	uint64_t bytes; /* of the latest one */
	unsigned refused; /* allocation of the device's memory that fails, from 1; 0: none */
} count;

static int allocate(struct um_gpu *gpu, void **ptr, size_t bytes)
{
	(void)gpu;
	if (++count.allocations == count.refused)
		return UM_CUDA_NO_MEMORY;
	count.bytes = bytes;
	*ptr = malloc(bytes);
	return *ptr ? UM_CUDA_OK : UM_CUDA_NO_MEMORY;
}

static int release(struct um_gpu *gpu, void *ptr)
{
	(void)gpu;
	count.frees++;
	free(ptr);
	return UM_CUDA_OK;
}

static const struct um_gpu_api api = {.cudaMalloc = allocate, .cudaFree = release};
static struct um_gpu gpu = {.api = &api}, other = {.api = &api};

static int no_calloc;

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

void *__wrap_calloc(size_t n, size_t bytes)
{
	return no_calloc ? NULL : __real_calloc(n, bytes);
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

static struct um_var_room room[MODULES];

/* Takes that much for modules `from` to `to`. Number of those that got none. */
static int take(int from, int to, uint64_t bytes)
{
	int refused = 0;

	for (int i = from; i < to; i++) {
		refused += um_var_room_take(&room[i], &gpu, bytes) != UM_CUDA_OK;
		if (room[i].at)
			memset(room[i].at, i, bytes);
	}
	return refused;
}

static int is_kept(int i, uint64_t bytes)
{
	for (uint64_t k = 0; k < bytes; k++)
		if (room[i].at[k] != (char)i)
			return 0;
	return 1;
}

static void give(int from, int to)
{
	for (int i = from; i < to; i++)
		um_var_room_give(&room[i]);
	memset(&room[from], 0, (size_t)(to - from) * sizeof *room);
}

static void test_shared(void)
{
	int kept = 1;

	memset(&count, 0, sizeof count);
	is_int(take(0, MODULES, 4 * KIB), 0, "1000 modules get memory");
	is_int((int)count.allocations, 2, "they share two allocations");
	is_u64(count.bytes, UM_BLOCK_BYTES, "these are blocks of 2 MiB");
	for (int i = 0; i < MODULES; i++)
		kept &= is_kept(i, 4 * KIB);
	ok(kept, "no module has another's memory");
	give(0, 511);
	is_int((int)count.frees, 0, "a block stays while a module has memory in it");
	give(511, 512);
	is_int((int)count.frees, 1, "the last module frees it");
	ok(is_kept(512, 4 * KIB), "the other block stays");
	is_int(take(0, 24, 4 * KIB), 0, "further modules get memory");
	is_int((int)count.allocations, 2, "they fill the block that is there");
	is_int(take(24, 25, 4 * KIB), 0, "one more does, too");
	is_int((int)count.allocations, 3, "it gets a new one once that is full");
	give(0, 25);
	give(512, MODULES);
	is_int((int)count.frees, 3, "at the end all are freed");
	um_var_room_give(&room[0]);
	is_int((int)count.frees, 3, "a module without memory frees nothing");
}

static void test_sizes(void)
{
	struct um_var_room there = {0};

	memset(&count, 0, sizeof count);
	take(0, 1, 3 * UM_BLOCK_BYTES);
	is_u64(count.bytes, 3 * UM_BLOCK_BYTES, "variables larger than a block get an allocation of their size");
	take(1, 2, KIB);
	is_int((int)count.allocations, 2, "no other module has memory in it");
	take(2, 3, UM_BLOCK_BYTES);
	is_int((int)count.allocations, 3, "variables that do not fit in the rest of a block get another");
	take(3, 4, KIB);
	is_int((int)count.allocations, 3, "the rest of the first is used later");
	um_var_room_take(&there, &other, KIB);
	is_int((int)count.allocations, 4, "each device has blocks of its own");
	um_var_room_give(&there);
	give(0, 4);
	is_int((int)count.frees, 4, "all are freed");
}

static void test_refused(void)
{
	memset(&count, 0, sizeof count);
	for (count.refused = 1; count.refused <= 2; count.refused++) {
		count.allocations = count.frees = 0;
		memset(room, 0, sizeof room);
		is_int(take(0, MODULES, 4 * KIB), 1, "allocation %u fails: one module gets no memory", count.refused);
		ok(!room[count.refused == 1 ? 0 : 512].block, "it has no block");
		give(0, MODULES);
		is_int((int)count.frees, 2, "the memory of the others is freed");
	}
	count.refused = 0;
	no_calloc = 1;
	is_int(um_var_room_take(&room[0], &gpu, KIB), UM_CUDA_NO_MEMORY, "without memory of the host it is refused");
	no_calloc = 0;
	is_int(um_var_room_take(&room[0], &gpu, KIB), UM_CUDA_OK, "then it is given");
	give(0, 1);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static void *take_and_give(void *unused)
{
	struct um_var_room mine[8] = {{0}};

	(void)unused;
	for (int i = 0; i < 20000; i++) {
		struct um_var_room *r = &mine[i % 8];

		um_var_room_give(r);
		if (um_var_room_take(r, &gpu, 64 * KIB))
			return &gpu;
		memset(r->at, i, 64);
	}
	for (int i = 0; i < 8; i++)
		um_var_room_give(&mine[i]);
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread[THREADS];
	int refused = 0;
	void *end;

	memset(&count, 0, sizeof count);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, take_and_give, NULL))
			tap_bail("no thread");
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &end);
		refused += end != NULL;
	}
	is_int(refused, 0, "%d threads get memory at the same time", THREADS);
	is_int((int)(count.allocations - count.frees), 0, "all of it is freed");
}

int main(void)
{
	test_shared();
	test_sizes();
	test_refused();
	test_threads();
	return tap_done();
}
