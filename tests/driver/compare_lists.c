/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_lists.c - random calls on a small device: which blocks are evicted, in which order?
 *
 * A state is one call. After each the victims so far, and of each block its list and place there, its chunk, resident
 * and discarded pages must agree.
 */
#include "compare.h"

#include <stdio.h>
#include <string.h>

#define CALLS 60 /* of one run */

enum call { PREFETCH, HOME, READ, WRITE, HOST_WRITE, READ_MOSTLY, DISCARD, RENEW, N_CALLS };

static struct run {
	struct um_sim *sim;
	unsigned n, victims[1 << 14], n_victims;
	int writing; /* the kernel that runs */
	int watching; /* its faults are passed on */
} run;

/* The simulation's log: evictions, and the faults that the driver's side must serve, too. */
static void hear(void *user, const char *line)
{
	const char *what = strchr(line, ' '), *at = strchr(line, '+');
	unsigned block, pages, each;

	(void)user;
	if (!what || !at)
		return;
	if (!strncmp(what, " evict m", 8) && sscanf(at, "+%u", &block) == 1)
		run.victims[run.n_victims++ % (sizeof run.victims / sizeof *run.victims)] = block;
	if (run.watching && !strncmp(what, " fault m", 8) && sscanf(at, "+%u %x %x", &block, &pages, &each) == 3) {
		const struct um_sim_block *b = &run.sim->mem_order.at[0]->block[block];

		uvm_lists_visit(block, um_sim_grow_gpu(run.sim, b, pages), run.writing ? pages : 0);
	}
}

static void batch(enum call call, void *at, size_t bytes)
{
	struct um_gpu *gpu = &run.sim->gpu;
	struct um_location here = um_on_device(0);
	um_stream stream;
	size_t zero = 0;

	gpu->api->cudaStreamCreateWithFlags(gpu, &stream, UM_STREAM_NON_BLOCKING);
	if (call == RENEW)
		gpu->api->cudaMemDiscardAndPrefetchBatchAsync(gpu, &at, &bytes, 1, &here, &zero, 1, 0, stream);
	else
		gpu->api->cudaMemDiscardBatchAsync(gpu, &at, &bytes, 1, 0, stream);
	um_sim_sync(gpu);
	gpu->api->cudaStreamDestroy(gpu, stream);
}

static void kernel(void *at, size_t bytes, int writing)
{
	static const enum um_pattern patterns[] = {UM_PATTERN_LIBRARY, UM_PATTERN_NARROW, UM_PATTERN_ONE_BATCH};
	struct um_touch touch = {.ptr = at, .bytes = bytes, .access = writing ? UM_WRITE : UM_READ};

	run.writing = writing;
	run.watching = 1;
	um_sim_run(&run.sim->gpu, NULL,
		   &(struct um_sim_kernel){
			   .ns = 1000, .access = &touch, .n_access = 1, .pattern = patterns[compare_below(3)]});
	um_sim_sync(&run.sim->gpu);
	run.watching = 0;
}

/* The same call on both sides: for `n` blocks, or for pages [from, to) of one. */
static void make(enum call call, unsigned first, unsigned n, unsigned from, unsigned to)
{
	struct um_gpu *gpu = &run.sim->gpu;
	char *at = (char *)(uintptr_t)run.sim->mem_order.at[0]->addr + first * UM_BLOCK_BYTES + from * UM_SIM_PAGE;
	size_t bytes = (n - 1) * UM_BLOCK_BYTES + (to - from) * UM_SIM_PAGE;
	uint32_t pages = UINT32_MAX >> (32 - (to - from)) << from;

	for (unsigned b = first; b < first + n; b++) {
		if (call == DISCARD || call == RENEW)
			uvm_lists_discard(b, pages, call == DISCARD);
		if (call == HOST_WRITE)
			uvm_lists_host_write(b);
		if (call == READ_MOSTLY)
			uvm_lists_read_mostly(b);
	}
	if (call == PREFETCH || call == RENEW)
		uvm_lists_prefetch(first, n, pages);
	if (call == HOME)
		uvm_lists_home(first, n);
	if (call == PREFETCH || call == HOME)
		gpu->api->cudaMemPrefetchAsync(gpu, at, bytes, call == HOME ? um_on_host() : um_on_device(0), 0, NULL);
	if (call == READ || call == WRITE)
		kernel(at, bytes, call == WRITE);
	if (call == DISCARD || call == RENEW)
		batch(call, at, bytes);
	if (call == HOST_WRITE)
		um_sim_host_touch(gpu, at, bytes, UM_WRITE);
	if (call == READ_MOSTLY)
		gpu->api->cudaMemAdvise(gpu, at, bytes, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
	um_sim_sync(gpu);
}

/* 0: the two sides differ; they say where. */
static int same(void)
{
	static const int number[] = {
		[UM_SIM_NONE] = -1, [UM_SIM_UNUSED] = 0, [UM_SIM_DISCARDED] = 1, [UM_SIM_USED] = 2};
	const unsigned *victims;

	if (uvm_lists_victims(&victims) != run.n_victims ||
	    memcmp(victims, run.victims, run.n_victims * sizeof *victims)) {
		printf("# other victims\n");
		return 0;
	}
	for (unsigned i = 0; i < run.n; i++) {
		const struct um_sim_block *b = &run.sim->mem_order.at[0]->block[i];
		struct uvm_list_state s = uvm_lists_state(i);

		unsigned place = 0;

		for (const struct um_sim_block *o = b->prev; o; o = o->prev)
			place++;
		if (s.gpu == b->gpu && s.cpu == b->cpu && s.disc == b->disc && s.chunk == b->chunk &&
		    s.list == number[b->list] && (s.list < 0 || s.place == place))
			continue;
		printf("# block %u: driver list %d (%u) device %08x host %08x discarded %08x, simulated %d (%u) %08x "
		       "%08x %08x\n",
		       i, s.list, s.place, s.gpu, s.cpu, s.disc, number[b->list], place, b->gpu, b->cpu, b->disc);
		return 0;
	}
	return 1;
}

/* Calls for whole blocks; `parts`: also for parts of one, and some blocks prefer the device. */
static void play(struct compare_row *row, uint64_t driver, enum call calls, int parts)
{
	static const char *const names[] = {"prefetch",	 "prefetch to the host", "read",    "write",
					    "CPU write", "read-mostly",		 "discard", "discard and prefetch"};
	unsigned capacity = 4 + compare_below(12);
	int agree = 1;

	run.n = capacity + 1 + compare_below(capacity);
	run.n_victims = 0;
	run.sim = compare_open(driver, capacity, run.n * UM_BLOCK_BYTES, hear);
	uvm_lists_open(capacity);
	for (unsigned i = 0; i < run.n && parts; i++)
		if (compare_below(2)) {
			uvm_lists_prefer(i, 1);
			run.sim->gpu.api->cudaMemAdvise(
				&run.sim->gpu, (char *)(uintptr_t)run.sim->mem_order.at[0]->addr + i * UM_BLOCK_BYTES,
				UM_BLOCK_BYTES, UM_ADV_SET_PREFERRED, um_on_device(0));
		}
	for (unsigned i = 0; i < CALLS && agree; i++) {
		unsigned first = compare_below(run.n), left = run.n - first, n = 1 + compare_below(left < 6 ? left : 6);
		unsigned from = 0, to = UM_SIM_PAGES;
		enum call call = (enum call)compare_below(calls);

		if (call == READ_MOSTLY && compare_below(4))
			call = PREFETCH;
		if (parts && call != HOME && call != HOST_WRITE && call != READ_MOSTLY && compare_below(2)) {
			n = 1;
			from = compare_below(UM_SIM_PAGES);
			to = from + 1 + compare_below(UM_SIM_PAGES - from);
		}
		n = n < capacity ? n : capacity;
		make(call, first, n, from, to);
		agree = compare_judge(row, same());
		if (!agree)
			printf("# after %s of blocks %u to %u, pages %u to %u\n", names[call], first, first + n - 1,
			       from, to);
	}
	compare_close(run.sim);
}

/* Runs of 60 calls. All eight calls: 20,000 of them for 300,000 states. */
unsigned compare_lists(struct compare_row *rows, unsigned long states, uint64_t driver)
{
	static const struct {
		const char *name;
		enum call calls;
		int parts;
	} kinds[] = {{"eviction: prefetches", READ, 0},
		     {"eviction: prefetches, kernels, CPU writes", READ_MOSTLY, 0},
		     {"eviction: the same and read-mostly", DISCARD, 0},
		     {"eviction: parts of blocks, device preferred", DISCARD, 1},
		     {"eviction: all eight calls", N_CALLS, 0},
		     {"eviction: all eight calls, parts of blocks, device preferred", N_CALLS, 1}};
	unsigned n = driver < 580 ? 4 : 6; /* older drivers do not discard */

	for (unsigned k = 0; k < n; k++) {
		rows[k] = (struct compare_row){.name = kinds[k].name};
		while (rows[k].states < (kinds[k].calls == N_CALLS ? 4 * states : states))
			play(&rows[k], driver, kinds[k].calls, kinds[k].parts);
	}
	return n;
}
