/* SPDX-License-Identifier: Apache-2.0
 *
 * DeepUM (Jung, Kim, Lee: DeepUM: Tensor Migration and Prefetching in Unified Memory, ASPLOS 2023): no plan, but a
 * driver that learns from its faults.
 *
 *   correlation    deepum_tables.h; a kernel's id stands for its name and arguments
 *   chaining       after a fault all successors are prefetched, and theirs; after the last one of a kernel, the chain
 *                  continues in the expected next kernel, at the block of its first fault, up to 32 kernels ahead. A
 *                  new fault restarts the chain
 *   pre-eviction   without free memory: the blocks with the oldest migration that neither this kernel nor those ahead
 *                  are expected to use
 *   invalidation   of such blocks, those without a tensor are discarded without a copy; the allocator reports tensors
 *
 * One worker migrates, at the simulated driver's costs of prefetches and evictions, with two copies under way so that
 * the link has no gaps; the fault handler does not wait for it. Walking the tables costs nothing here.
 *
 * Ours: tensors reuse their addresses of the previous iteration (play/caching_alloc.h), because the ids and all
 * learned data are of addresses. A fault counts once per kernel and block, because the driver visits a block several
 * times until it is whole. The paper does not state the amount of pre-eviction: RESERVE blocks are kept free. If all
 * resident blocks are expected, prefetching waits for the next kernel. A chain that the device has overtaken continues
 * with the running kernel. The block of a kernel's first fault is fixed once it is known, and a first fault on another
 * one counts as its successor: otherwise a late block would hide those in time. */
#include "schemes/deepum.h"

#include "schemes/deepum_tables.h"

#include "base/vec.h"
#include "sim/sim.h"

#define AHEAD 32 /* kernels */
#define RESERVE 4 /* blocks; the fault handler serves three at a time */
#define UNDER_WAY 2 /* copies */
#define NONE UM_DEEPUM_NONE

struct block {
	struct um_tree_node node; /* a: its address / 2 MiB */
	uint64_t number; /* in order of appearance, so that learning does not depend on addresses */
	uint64_t expected; /* last kernel that is expected to use it; 0: none */
	uint64_t faulted; /* the last kernel that faulted on it; 0: none */
	uint64_t seen; /* walk of the chain that visited it */
	int32_t tensors; /* in it */
};

/* An allocator's report, which takes effect after some kernels. */
struct life {
	uint64_t kernels, first, last; /* blocks by address */
	int32_t more;
};

struct deepum {
	struct um_gpu *gpu;
	struct um_sim_listener listener;
	struct um_worker worker;
	struct um_deepum_tables tables;
	struct um_tree blocks;
	UM_VEC(struct block *) by_number;
	UM_VEC(struct life) lives;
	size_t lived;
	uint64_t kernel; /* begun kernels; the last one runs */
	struct um_deepum_context now;
	uint64_t last; /* its last faulting block, or NONE */
	/* The chain. */
	uint64_t at; /* kernel that the chain has reached; 0: none */
	struct um_deepum_context then;
	uint64_t walk;
	UM_VEC(uint64_t) frontier;
	size_t next;
	uint64_t waiting; /* block without memory, or NONE */
	uint64_t there[UNDER_WAY]; /* ns: copies end */
	unsigned turn;
};

/* By address / 2 MiB; NULL: no memory. */
static struct block *block_of(struct deepum *d, uint64_t at)
{
	struct um_tree_node *n = um_tree_floor(&d->blocks, at, 0);
	struct block *b;

	if (n && n->a == at)
		return um_tree_entry(n, struct block, node);
	b = calloc(1, sizeof *b);
	if (!b || um_vec_push(&d->by_number, b)) {
		free(b);
		return NULL;
	}
	b->number = d->by_number.n - 1;
	b->node.a = at;
	um_tree_add(&d->blocks, &b->node);
	return b;
}

/* --- the chain ---------------------------------------------------------------------------------------------------- */

static void expect(struct deepum *d, uint64_t number)
{
	struct block *b = d->by_number.at[number];

	if (b->seen == d->walk || um_vec_push(&d->frontier, number))
		return;
	b->seen = d->walk;
	b->expected = d->at > b->expected ? d->at : b->expected;
}

/* Starts the chain at a kernel, from a block on. */
static void begin(struct deepum *d, uint64_t kernel, uint64_t number)
{
	d->at = kernel;
	d->walk++;
	d->next = 0;
	um_vec_clear(&d->frontier);
	if (number != NONE)
		expect(d, number);
}

static uint64_t start_of(struct deepum *d, uint64_t id)
{
	const struct um_deepum_exec *e = um_deepum_exec(&d->tables, id);

	return e ? e->start : NONE;
}

/* The next block to prefetch; NONE at the end of the chain or of the distance. */
static uint64_t follow(struct deepum *d)
{
	uint64_t next, successor[UM_DEEPUM_SUCCESSORS];

	while (d->at && d->next == d->frontier.n) {
		if (d->at >= d->kernel + AHEAD)
			return NONE;
		next = um_deepum_next(&d->tables, &d->then);
		if (next == NONE) {
			d->at = 0;
			return NONE;
		}
		um_deepum_shift(&d->then, next);
		begin(d, d->at + 1, start_of(d, next));
	}
	if (!d->at)
		return NONE;
	next = d->frontier.at[d->next++];
	for (unsigned i = um_deepum_successors(&d->tables, d->then.id, next, successor), k = 0; k < i; k++)
		expect(d, successor[k]);
	return next;
}

/* --- what the driver hears ---------------------------------------------------------------------------------------- */

static void live(struct deepum *d)
{
	for (; d->lived < d->lives.n && d->lives.at[d->lived].kernels < d->kernel; d->lived++) {
		const struct life *l = &d->lives.at[d->lived];

		for (uint64_t i = l->first; i <= l->last; i++) {
			struct block *b = block_of(d, i);

			if (b)
				b->tensors += l->more;
		}
	}
	if (d->lived == d->lives.n) {
		d->lived = 0;
		um_vec_clear(&d->lives);
	}
}

static void on_kernel(void *user, uint64_t id)
{
	struct deepum *d = user;
	struct um_deepum_exec *e = d->last == NONE ? NULL : um_deepum_exec(&d->tables, d->now.id);

	if (e)
		e->end = d->last;
	d->kernel++;
	d->last = NONE;
	live(d);
	um_deepum_followed(&d->tables, &d->now, id);
	um_deepum_shift(&d->now, id);
	if (d->at && d->at < d->kernel) {
		d->then = d->now;
		begin(d, d->kernel, start_of(d, id));
	}
	d->gpu->api->worker_poke(d->gpu, &d->worker);
}

static void on_fault(void *user, uint64_t addr)
{
	struct deepum *d = user;
	struct block *b = block_of(d, addr / UM_BLOCK_BYTES);
	struct um_deepum_exec *e = um_deepum_exec(&d->tables, d->now.id);

	if (!b || !e || b->faulted == d->kernel)
		return;
	b->faulted = b->expected = d->kernel;
	if (d->last != NONE)
		um_deepum_relate(&d->tables, d->now.id, d->last, b->number);
	else if (e->start == NONE)
		e->start = b->number;
	else if (e->start != b->number)
		um_deepum_relate(&d->tables, d->now.id, e->start, b->number);
	d->last = b->number;
	d->then = d->now;
	begin(d, d->kernel, b->number);
	d->gpu->api->worker_poke(d->gpu, &d->worker);
}

/* --- the worker --------------------------------------------------------------------------------------------------- */

static enum um_sim_verdict may_go(void *user, uint64_t addr)
{
	struct deepum *d = user;
	const struct block *b = block_of(d, addr / UM_BLOCK_BYTES);

	if (!b || b->expected >= d->kernel)
		return UM_SIM_STAYS;
	return b->tensors > 0 ? UM_SIM_GOES : UM_SIM_IS_DEAD;
}

static struct um_step migrate(void *arg)
{
	struct deepum *d = arg;
	uint64_t room = um_sim_room(d->gpu), end;
	int err = -EALREADY;

	if (room < RESERVE && !um_sim_evict(d->gpu, may_go, d))
		return (struct um_step){UM_STEP_AGAIN, NULL};
	while (err == -EALREADY || err == -ENOENT) {
		if (d->waiting == NONE)
			d->waiting = follow(d);
		if (d->waiting == NONE || !room)
			return (struct um_step){UM_STEP_IDLE, NULL};
		err = um_sim_pull(d->gpu, d->by_number.at[d->waiting]->node.a * UM_BLOCK_BYTES, d->there[d->turn],
				  &end);
		d->waiting = NONE;
	}
	if (!err) {
		d->there[d->turn] = end;
		d->turn = (d->turn + 1) % UNDER_WAY;
	}
	return (struct um_step){UM_STEP_AGAIN, NULL};
}

/* --- a driver ----------------------------------------------------------------------------------------------------- */

static void deepum_close(void *driver)
{
	struct deepum *d = driver;

	um_sim_listen(d->gpu, NULL);
	d->gpu->api->worker_stop(d->gpu, &d->worker);
	um_deepum_tables_fini(&d->tables);
	for (size_t i = 0; i < d->by_number.n; i++)
		free(d->by_number.at[i]);
	um_vec_fini(&d->by_number);
	um_vec_fini(&d->lives);
	um_vec_fini(&d->frontier);
	free(d);
}

static int deepum_open(void **driver, struct um_gpu *gpu)
{
	struct deepum *d = calloc(1, sizeof *d);

	if (!d)
		return -ENOMEM;
	d->gpu = gpu;
	d->last = d->waiting = NONE;
	d->listener = (struct um_sim_listener){on_kernel, on_fault, d};
	d->worker = (struct um_worker){.step = migrate, .arg = d, .name = "deepum"};
	if (gpu->api->worker_start(gpu, &d->worker)) {
		free(d);
		return -ENOMEM;
	}
	um_sim_listen(gpu, &d->listener);
	*driver = d;
	return 0;
}

static int deepum_tensor(void *driver, uint64_t kernels, const void *ptr, uint64_t bytes, int there)
{
	struct deepum *d = driver;
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	struct life l = {kernels, addr / UM_BLOCK_BYTES, (addr + (bytes ? bytes - 1 : 0)) / UM_BLOCK_BYTES,
			 there ? 1 : -1};

	return um_vec_push(&d->lives, l);
}

const struct um_sim_driver um_deepum_driver = {"deepum", deepum_open, deepum_tensor, deepum_close};
