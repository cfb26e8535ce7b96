/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/executor.h"

#include "replay/lanes.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

struct um_executor {
	struct um_gpu *gpu;
	struct um_executor_host host;
	struct um_lanes lanes;

	const struct um_program *program; /* NULL: none */
	um_stream streams[UM_LANES_STREAMS]; /* the app's, in order of appearance */
	unsigned n_streams;
	int crowded; /* there are more streams than are told apart: no hints */
	uint32_t in_base, out_base; /* numbers at the beginning of this iteration */
	int first; /* the iteration that took the program up */
	size_t start_next; /* first: start blocks whose op has been passed */
	uint32_t *start_seq; /* first: ins that have arrived when each start block has */
};

/* How many workers keep the link to the host full. A call's work and its copy do not overlap where it is for one block:
 * while one worker's block is copied, the others must be through with theirs. */
static unsigned out_workers(const struct um_executor_host *host)
{
	return 1 + (unsigned)(host->link_ns ? (host->evict_ns + host->link_ns - 1) / host->link_ns : 0);
}

int um_executor_open(struct um_executor **out, struct um_gpu *gpu, const struct um_executor_host *host)
{
	struct um_executor *ex;
	int err;

	if (!gpu->caps.concurrent_managed || !gpu->api->cudaMemPrefetchAsync)
		return -ENOTSUP;
	ex = calloc(1, sizeof *ex);
	if (!ex)
		return -ENOMEM;
	ex->gpu = gpu;
	ex->host = *host;
	err = um_lanes_open(&ex->lanes, gpu, out_workers(host));
	if (err) {
		free(ex);
		return err;
	}
	*out = ex;
	return 0;
}

void um_executor_close(struct um_executor *ex)
{
	if (!ex)
		return;
	um_executor_leave(ex);
	um_lanes_close(&ex->lanes);
	free(ex->start_seq);
	free(ex);
}

/* --- ops -------------------------------------------------------------------------------------------------------- */

void um_executor_see(struct um_executor *ex, um_stream stream)
{
	for (unsigned i = 0; i < ex->n_streams; i++)
		if (ex->streams[i] == stream)
			return;
	if (ex->n_streams == UM_LANES_STREAMS)
		ex->crowded = 1;
	else
		ex->streams[ex->n_streams++] = stream;
}

static void clip(struct um_executor *ex, uint64_t *addr, uint64_t *bytes)
{
	if (*bytes && ex->host.clip)
		ex->host.clip(ex->host.user, addr, bytes);
}

static void put_in(struct um_executor *ex, uint64_t addr, uint64_t bytes, uint32_t wait)
{
	clip(ex, &addr, &bytes);
	um_lanes_in(&ex->lanes, addr, bytes, wait);
}

/* What may not be thrown away leaves with a copy. */
static void put_out(struct um_executor *ex, enum um_action_kind kind, uint64_t addr, uint64_t bytes, uint32_t wait)
{
	clip(ex, &addr, &bytes);
	if (bytes && kind == UM_ACTION_DISCARD &&
	    (!ex->gpu->caps.discard || !ex->host.may_discard(ex->host.user, addr, bytes)))
		kind = UM_ACTION_OUT;
	um_lanes_out(&ex->lanes, kind, addr, bytes, wait);
}

/* Where the action's blocks are now: as planned, or, where the slot's tensor lies elsewhere, the blocks under the same
 * part of it: all of them for an in, only whole ones for an out. 0 bytes: nothing to do. */
static void locate(const struct um_action *a, const struct um_cursor *c, uint64_t *addr, uint64_t *bytes)
{
	*addr = a->addr;
	*bytes = a->bytes;
	if (a->slot == UM_NO_SLOT)
		return;

	const struct um_slot *s = &c->sched->slots.at[a->slot];
	uint64_t now = c->slots[a->slot].addr;

	if (now == s->place)
		return;
	if (now != UINT64_MAX && (now - s->place) % UM_BLOCK_BYTES == 0) {
		*addr += now - s->place; /* two places of one layout */
		return;
	}
	*bytes = 0;
	if (now == UINT64_MAX)
		return;
	uint64_t lo = a->addr > s->place ? a->addr - s->place : 0;
	uint64_t hi = a->addr + a->bytes - s->place;

	if (hi > s->bytes)
		hi = s->bytes;
	if (lo >= hi)
		return;
	lo += now;
	hi += now;
	if (a->kind == UM_ACTION_IN) {
		lo &= ~(UM_BLOCK_BYTES - 1);
		hi = (hi + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
	} else {
		lo = (lo + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
		hi &= ~(UM_BLOCK_BYTES - 1);
	}
	if (lo < hi) {
		*addr = lo;
		*bytes = hi - lo;
	}
}

/* How many ins must have arrived before the op; 0 in *any: none. */
static uint32_t gate_of(struct um_executor *ex, uint32_t op, int *any)
{
	int32_t g = ex->program->gate[op];
	uint32_t seq = ex->in_base + (uint32_t)g;

	*any = g != INT32_MIN && (g > 0 || !ex->first);
	if (!ex->first)
		return seq;
	while (ex->start_next < ex->program->start.n && ex->program->start.at[ex->start_next].first_op <= op)
		ex->start_next++;
	if (ex->start_next) {
		uint32_t started = ex->start_seq[ex->start_next - 1];

		if (!*any || (int32_t)(started - seq) > 0)
			seq = started;
		*any = 1;
	}
	return seq;
}

/* The number that a program's count stands for; what reaches back further than the program itself is over. */
static uint32_t number(const struct um_executor *ex, int32_t count, uint32_t base, uint32_t per_iteration)
{
	if (count >= 0)
		return base + (uint32_t)count;
	if (ex->first)
		return base; /* the iteration before is what taking up has put */
	return base - ((uint64_t) - (int64_t)count < per_iteration ? (uint32_t)-count : per_iteration);
}

int um_executor_op(struct um_executor *ex, uint32_t op, um_stream stream, const struct um_cursor *cursor)
{
	const struct um_program *p = ex->program;
	struct um_lanes *l = &ex->lanes;
	int marked = 0, any;

	if (!p)
		return 0;
	um_executor_see(ex, stream);
	if (ex->crowded)
		goto full;
	for (uint32_t i = p->first[op]; i < p->actions.n && p->actions.at[i].at == op; i++) {
		const struct um_action *a = &p->actions.at[i];
		uint64_t addr, bytes;

		if (!um_lanes_room(l))
			goto full;
		locate(a, cursor, &addr, &bytes);
		if (a->kind == UM_ACTION_IN) {
			put_in(ex, addr, bytes, number(ex, a->room, ex->out_base, p->n_out));
			continue;
		}
		if (!marked && um_lanes_mark(l, ex->streams, ex->n_streams))
			goto full;
		marked = 1;
		put_out(ex, a->kind, addr, bytes, number(ex, a->room, ex->in_base, p->n_in));
	}
	um_lanes_poke(l);
	uint32_t seq = gate_of(ex, op, &any);

	if (any)
		um_lanes_gate(l, seq, stream);
	return 0;
full:
	um_executor_leave(ex);
	return -EAGAIN;
}

/* --- taking a program up ---------------------------------------------------------------------------------------- */

static int cmp_addr(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void clear_run(struct um_executor *ex, enum um_action_kind kind, uint64_t addr, uint64_t bytes)
{
	if (bytes && um_lanes_room(&ex->lanes))
		put_out(ex, kind, addr, bytes, um_lanes_in_put(&ex->lanes));
}

/* Sends away every block in use that is not to stay, in runs of one kind; only what is dead, if there is room for the
 * rest. */
static void clear_out(struct um_executor *ex, const uint64_t *keep, size_t n_keep, const struct um_executor_range *used,
		      int only_dead)
{
	uint64_t run = 0, bytes = 0;
	enum um_action_kind run_kind = UM_ACTION_OUT;

	for (uint64_t a = used->addr; a < used->addr + used->bytes; a += UM_BLOCK_BYTES) {
		int dead = ex->host.may_discard(ex->host.user, a, UM_BLOCK_BYTES);
		int stays = (only_dead && !dead) || (n_keep && bsearch(&a, keep, n_keep, sizeof *keep, cmp_addr));
		enum um_action_kind kind = dead ? UM_ACTION_DISCARD : UM_ACTION_OUT;

		if (stays || kind != run_kind || bytes == UM_RUN_OUT * UM_BLOCK_BYTES) {
			clear_run(ex, run_kind, run, bytes);
			bytes = 0;
		}
		if (stays)
			continue;
		if (!bytes)
			run = a;
		run_kind = kind;
		bytes += UM_BLOCK_BYTES;
	}
	clear_run(ex, run_kind, run, bytes);
}

/* Brings what it does begin with, in order of need. What is on the device now is not known, so that nothing comes
 * before everything else has left: a block that came too early would push out one that is to stay, and be missed ever
 * after. */
static void bring_in(struct um_executor *ex, const struct um_program *p)
{
	struct um_lanes *l = &ex->lanes;
	uint32_t outs = um_lanes_out_put(l);

	for (size_t i = 0; i < p->start.n;) {
		size_t n = 1;

		while (n < UM_RUN_IN && i + n < p->start.n &&
		       p->start.at[i + n].addr == p->start.at[i].addr + n * UM_BLOCK_BYTES)
			n++;
		if (um_lanes_room(l))
			put_in(ex, p->start.at[i].addr, n * UM_BLOCK_BYTES, outs);
		for (size_t k = 0; k < n; k++)
			ex->start_seq[i + k] = um_lanes_in_put(l);
		i += n;
	}
}

int um_executor_adopt(struct um_executor *ex, const struct um_program *p, uint64_t capacity_blocks,
		      const struct um_executor_range *used, size_t n_used)
{
	size_t n = p->start.n;
	uint64_t *keep = malloc((n ? n : 1) * sizeof *keep);
	uint32_t *seq = malloc((n ? n : 1) * sizeof *seq);
	uint64_t in_use = 0;

	if (ex->crowded || !keep || !seq) {
		free(keep);
		free(seq);
		return ex->crowded ? -EAGAIN : -ENOMEM;
	}
	um_executor_leave(ex);
	free(ex->start_seq);
	ex->start_seq = seq;
	ex->start_next = 0;
	ex->first = 1;
	ex->program = p;
	um_lanes_wake(&ex->lanes);
	for (size_t i = 0; i < n; i++)
		keep[i] = p->start.at[i].addr;
	if (n)
		qsort(keep, n, sizeof *keep, cmp_addr);
	for (size_t i = 0; i < n_used; i++)
		in_use += used[i].bytes / UM_BLOCK_BYTES;
	for (size_t i = 0; i < n_used && (i || !um_lanes_mark(&ex->lanes, ex->streams, ex->n_streams)); i++) {
		if (in_use > capacity_blocks)
			clear_out(ex, keep, n, &used[i], 0);
		else
			clear_out(ex, p->blocks.at, p->blocks.n, &used[i], 1);
	}
	bring_in(ex, p);
	free(keep);
	ex->in_base = um_lanes_in_put(&ex->lanes);
	ex->out_base = um_lanes_out_put(&ex->lanes);
	return 0;
}

void um_executor_begin(struct um_executor *ex, const struct um_executor_range *used, size_t n_used)
{
	const struct um_program *p = ex->program;
	size_t n = ex->first ? n_used : 0;

	ex->in_base = um_lanes_in_put(&ex->lanes);
	for (size_t i = 0; i < n && (i || !um_lanes_mark(&ex->lanes, ex->streams, ex->n_streams)); i++)
		clear_out(ex, p->blocks.at, p->blocks.n, &used[i], 1);
	ex->first = 0;
	ex->out_base = um_lanes_out_put(&ex->lanes);
}

void um_executor_end(struct um_executor *ex)
{
	ex->program = NULL;
}

void um_executor_claim(struct um_executor *ex, uint64_t addr, uint64_t bytes)
{
	um_lanes_claim(&ex->lanes, addr & ~(UM_BLOCK_BYTES - 1),
		       (addr + bytes + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1));
}

void um_executor_leave(struct um_executor *ex)
{
	if (!ex->program)
		return;
	ex->program = NULL;
	um_lanes_drop(&ex->lanes);
}

int um_executor_active(const struct um_executor *ex)
{
	return ex->program != NULL;
}

int um_executor_stuck(const struct um_executor *ex)
{
	return atomic_load_explicit(&ex->lanes.stuck, memory_order_relaxed) >= UM_LANES_STUCK_MOST;
}

uint64_t um_executor_queued(const struct um_executor *ex)
{
	return ex->lanes.queued;
}

void um_executor_counts(const struct um_executor *ex, struct um_executor_counts *out)
{
	const struct um_lanes *l = &ex->lanes;

	out->issued = atomic_load_explicit(&l->issued, memory_order_relaxed);
	out->refused = atomic_load_explicit(&l->refused, memory_order_relaxed);
	out->prefetch_bytes = atomic_load_explicit(&l->prefetch_bytes, memory_order_relaxed);
	out->evict_bytes = atomic_load_explicit(&l->evict_bytes, memory_order_relaxed);
	out->discard_bytes = atomic_load_explicit(&l->discard_bytes, memory_order_relaxed);
	out->dropped = l->dropped;
}
