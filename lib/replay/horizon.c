/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/horizon_state.h"

#include "replay/paged_op.h"

#include <limits.h>
#include <string.h>

#define LONGEST_NS (1ull << 36) /* of an op, whatever the program says: times stay within 64 bits */
#define FITS_SHARE 32 /* tensors fit as long as they leave this share of the budget free */
#define CREDIT 8 /* blocks of other ops that are scanned for each block of an op, on average: predictions may jump */
#define CREDIT_OPS 8 /* scanning an op costs as much as scanning 8 blocks */
#define CREDIT_MOST (1 << 18)
#define NEAR_OPS 8 /* maximum distance of a use from the op for which it was predicted, of a correct prediction */
#define LEAD_BEGIN 6 /* tenths of the budget */
#define OVERDUE_OPS 256 /* between two searches for blocks that were not used when they should have been */

int um_horizon_init(struct um_horizon *h, const struct um_horizon_host *host)
{
	memset(h, 0, sizeof *h);
	h->host = *host;
	h->credit = CREDIT_MOST;
	h->fits = 1;
	h->trust[0] = UM_HORIZON_TRUST;
	h->trust[1] = UM_HORIZON_TRUST_FORK;
	h->lead = (int64_t)host->capacity * LEAD_BEGIN / 10;
	h->copied.at = calloc(host->capacity + 1, sizeof *h->copied.at);
	h->dropped.at = calloc(host->capacity + 1, sizeof *h->dropped.at);
	h->n_gone = UM_HORIZON_GONE_LEAST;
	while (h->n_gone < 4 * host->capacity && h->n_gone < UM_HORIZON_GONE_MOST)
		h->n_gone *= 2;
	h->gone = calloc(h->n_gone, sizeof *h->gone);
	if (um_horizon_blocks_init(&h->blocks, host->capacity) || !h->copied.at || !h->dropped.at || !h->gone)
		return -ENOMEM;
	return 0;
}

void um_horizon_fini(struct um_horizon *h)
{
	um_horizon_blocks_fini(&h->blocks);
	free(h->copied.at);
	free(h->dropped.at);
	free(h->gone);
	memset(h, 0, sizeof *h);
}

void um_horizon_forget(struct um_horizon *h)
{
	struct um_horizon_blocks *t = &h->blocks;
	struct um_horizon_block *b;

	um_horizon_blocks_begin(t, 0);
	while ((b = um_horizon_blocks_victim(t)) || (b = um_horizon_blocks_dead(t)))
		um_horizon_blocks_drop(t, b);
	h->n_in = h->copied.n = h->copied.taken = h->dropped.n = h->dropped.taken = 0;
	h->scanned = h->peak = 0;
	memset(h->marked, 0, sizeof h->marked);
	h->epoch = um_executor_epoch(h->host.executor);
	h->before = h->overwritten = um_executor_room_now(h->host.executor);
}

/* A plan that was followed until now will probably be followed again. What it begins with is not used before the next
 * repetition, unless ops say otherwise; of the rest nothing is known. */
static uint64_t next_of_recalled(const struct um_horizon *h, uint64_t addr)
{
	if (h->host.plan_begins(h->host.user, addr) == UM_RESIDENT)
		return um_horizon_current(h) + h->host.predictor->reach + 1;
	return UM_HORIZON_UNKNOWN;
}

static void recall_block(void *user, uint64_t addr)
{
	struct um_horizon *h = user;
	struct um_horizon_blocks *t = &h->blocks;
	struct um_horizon_block *b;

	if (um_horizon_blocks_live(t) == h->host.capacity || um_horizon_blocks_find(t, addr))
		return;
	b = um_horizon_blocks_come(t, addr, next_of_recalled(h, addr), um_horizon_has_host(h, addr));
	b->in = um_executor_in_queued(h->host.executor);
	b->streams = UINT_MAX;
	b->early = 0;
	if (h->host.dead(h->host.user, addr))
		um_horizon_blocks_die(t, b);
	h->n_in++;
}

void um_horizon_visit(const struct um_horizon *h, void (*visit)(void *user, uint64_t addr, int live), void *user)
{
	const struct um_horizon_blocks *t = &h->blocks;

	if (!um_horizon_knows(h)) /* or not opened: its lists are zeros */
		return;
	for (uint32_t i = 0; i < t->n[UM_BLOCK_KNOWN]; i++)
		visit(user, t->heap[i].block->addr, 1);
	for (int state = 0; state <= UM_BLOCK_DEAD; state++)
		for (uint32_t i = t->list[state].oldest; i != UM_HORIZON_NONE; i = t->at[i].in_state.behind)
			visit(user, t->at[i].addr, state != UM_BLOCK_DEAD);
}

enum um_residency um_horizon_residency(const struct um_horizon *h, uint64_t addr, uint64_t *last)
{
	const struct um_horizon_block *b;

	if (!um_horizon_knows(h) || h->partial)
		return UM_RESIDENCY_UNKNOWN;
	b = um_horizon_blocks_find(&h->blocks, addr);
	if (!um_horizon_block_resident(b))
		return UM_NOT_RESIDENT;
	*last = b->last;
	return UM_RESIDENT;
}

void um_horizon_recall(struct um_horizon *h)
{
	um_executor_visit_resident(h->host.executor, recall_block, h);
	h->recalled = 1;
	h->begun = um_horizon_current(h);
}

int um_horizon_lap(struct um_horizon *h, uint64_t *ns, uint64_t *stall_ns)
{
	int faults = h->lap_faults;

	*ns = (uint64_t)(h->clock - h->lap_clock);
	*stall_ns = (uint64_t)(h->stalled - h->lap_stalled);
	h->lap_clock = h->clock;
	h->lap_stalled = h->stalled;
	h->lap_faults = 0;
	return faults;
}

/* --- the op at hand ----------------------------------------------------------------------------------------------- */

/* Its blocks are not evicted for one another. */
static void pin(struct um_horizon *h, const struct um_use *u)
{
	uint64_t begin = u->tensor->addr + u->off, op = um_horizon_current(h);

	for (uint64_t a = um_block_of(begin); a < begin + u->bytes; a += UM_BLOCK_BYTES) {
		struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

		if (!um_horizon_block_resident(b))
			continue;
		if (b->early && b->next <= op + NEAR_OPS && op <= b->next + NEAR_OPS)
			um_horizon_trust(h, b->after_fork);
		else
			um_horizon_distrust(h, b);
		b->early = b->guess = 0;
		if (b->state == UM_BLOCK_DEAD)
			um_horizon_blocks_revive(&h->blocks, b, op);
		else
			um_horizon_blocks_set_next(&h->blocks, b, op);
		um_horizon_blocks_use(&h->blocks, b);
		b->last = op;
	}
}

/* The op overwrites this block, which was evicted: the old content is discarded, so that a prefetch copies nothing. It
 * may be of a tensor that was freed. 0 or -EAGAIN. */
static int forget_content(struct um_horizon *h, const struct um_use *u, uint64_t addr, unsigned *marked)
{
	uint64_t begin = u->tensor->addr + u->off;
	int err;

	if (u->access & UM_READ || u->touched < u->bytes || addr < begin || addr + UM_BLOCK_BYTES > begin + u->bytes ||
	    !um_horizon_on_host(h, addr))
		return 0;
	err = um_executor_overwrite(h->host.executor, addr, UM_BLOCK_BYTES, marked, &h->overwritten);
	return err < 0 ? err : 0;
}

/* Prefetches the missing part of a resident block into the room that the block has. 0 or -EAGAIN. */
static int mend(struct um_horizon *h, struct um_horizon_block *b)
{
	struct um_horizon_run r = {.addr = b->addr, .op = um_horizon_current(h), .n = 1, .block = {b}};

	b->torn = 0;
	return um_horizon_request(h, &r);
}

/* Requests the missing ones of the blocks that `bytes` from its beginning lie in. What finds no room is left to page
 * faults. 0 or -EAGAIN. */
static int demand(struct um_horizon *h, const struct um_use *u, uint64_t bytes)
{
	uint64_t begin = u->tensor->addr + u->off;
	struct um_horizon_run r = {0};
	unsigned marked = 0;
	int err = 0;

	for (uint64_t a = um_block_of(begin); a < begin + bytes && !err; a += UM_BLOCK_BYTES) {
		struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

		if (um_horizon_block_resident(b)) {
			err = b->torn ? mend(h, b) : 0;
			continue;
		}
		if (um_horizon_stays(h, a))
			continue;
		um_horizon_judge(h, a);
		err = forget_content(h, u, a, &marked);
		if (!err)
			err = um_horizon_bring(h, &r, a, um_horizon_current(h));
	}
	h->lap_faults |= err == -ENOSPC;
	return err == -EAGAIN ? err : um_horizon_request(h, &r);
}

/* The bytes of a use that have to be on the device. */
static uint64_t bytes_of(const struct um_horizon *h, const struct um_use *u)
{
	uint64_t begin = u->tensor->addr + u->off, bytes = u->bytes;

	if (!um_horizon_is_ours(u))
		return 0;
	for (uint64_t a = um_block_of(begin); um_executor_any_host_resident(h->host.executor) && a < begin + u->bytes;
	     a += UM_BLOCK_BYTES)
		bytes -= um_horizon_stays(h, a) ? UM_BLOCK_BYTES : 0;
	return bytes;
}

/* What the op waits for. */
struct arrival {
	uint32_t in; /* number after the last prefetch */
	int64_t at; /* ns, estimated: its end */
	int any;
};

static void find_arrival(const struct um_horizon *h, const struct um_use *u, struct arrival *last)
{
	uint64_t begin = u->tensor->addr + u->off;

	for (uint64_t a = um_block_of(begin); a < begin + u->bytes; a += UM_BLOCK_BYTES) {
		const struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

		if (!um_horizon_block_resident(b))
			continue;
		if (!last->any || (int32_t)(b->in - last->in) > 0)
			last->in = b->in;
		if (b->arrives > last->at)
			last->at = b->arrives;
		last->any = 1;
	}
}

/* The next use by which the block is chosen as a victim. What the plan begins without had better leave, once no op of
 * this iteration uses it: the plan would evict it first, and prefetch what had left in its place. */
static uint64_t next_of_victim(const struct um_horizon *h, uint64_t addr, struct um_predicted_next next)
{
	if (next.freed || next.op == UM_HORIZON_UNKNOWN || !um_horizon_plan_brings(h, addr, next.op))
		return next.op;
	return next.op + h->host.predictor->reach;
}

/* The op has used the range, its use number k. A block that lies in its tensor as a whole is used next when that is; in
 * others there may be further tensors. */
static void release(struct um_horizon *h, const struct um_use *u, uint32_t k)
{
	const struct um_predictor *p = h->host.predictor;
	const struct um_tensor *t = u->tensor;
	uint64_t begin = t->addr + u->off, op = um_horizon_current(h);
	int only_read = um_horizon_count_use(u);
	struct um_predicted_next own = u->bytes < t->bytes ? um_predictor_next_of_part(p, k) : um_predictor_next(p, t);

	for (uint64_t a = um_block_of(begin); a < begin + u->bytes; a += UM_BLOCK_BYTES) {
		struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);
		int whole = a >= t->addr && a + UM_BLOCK_BYTES <= t->addr + t->bytes;
		struct um_predicted_next next;

		if (!um_horizon_block_resident(b) || !um_horizon_block_live(b))
			continue;
		next = whole ? own : h->host.next(h->host.user, a);
		um_horizon_blocks_set_next(&h->blocks, b, next_of_victim(h, a, next));
		b->dies = next.freed;
		b->guess = next.guess;
		b->overwritten = whole && next.overwritten;
		b->only_read = whole && only_read;
		um_horizon_blocks_set_near(&h->blocks, b, !b->dies && b->next <= h->scanned);
		b->last = op;
		b->streams |= 1u << h->stream;
	}
}

/* Did the op before this one, paged as well, use most of the same memory? Then the device is full of it, and each
 * prefetch would evict another part. From now on this is the latest such op. */
static int page_again(struct um_horizon *h, const struct um_use *uses, uint32_t n)
{
	uint64_t op = um_horizon_current(h), bytes = 0, same = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint64_t lo = uses[k].tensor->addr + uses[k].off, hi = lo + uses[k].bytes;

		bytes += um_horizon_is_ours(&uses[k]) ? uses[k].bytes : 0;
		for (uint32_t i = 0; um_horizon_is_ours(&uses[k]) && i < h->n_paged; i++) {
			const struct um_horizon_paged *p = &h->paged[i];
			uint64_t from = lo > p->addr ? lo : p->addr, to = p->addr + p->bytes;

			to = hi < to ? hi : to;
			same += from < to ? to - from : 0;
		}
	}
	same = h->paged_op && h->paged_op + 1 == op ? same : 0;
	h->paged_op = op;
	h->n_paged = 0;
	for (uint32_t k = 0; k < n && h->n_paged < UM_HORIZON_PAGED; k++)
		if (um_horizon_is_ours(&uses[k]))
			h->paged[h->n_paged++] =
				(struct um_horizon_paged){uses[k].tensor->addr + uses[k].off, uses[k].bytes};
	return same > bytes / 2;
}

static int request_all(struct um_horizon *h, unsigned stream, const struct um_use *uses, uint32_t n, uint64_t ns,
		       int streams)
{
	uint64_t bytes = 0;
	double share;
	struct arrival last = {0};
	uint64_t n_in = h->n_in;
	int err = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (!(uses[k].tensor->flags & UM_TENSOR_UNMANAGED))
			um_horizon_note_look_up(h, &uses[k]);
		bytes += bytes_of(h, &uses[k]);
		if (um_horizon_is_ours(&uses[k]))
			pin(h, &uses[k]);
	}
	if (streams)
		bytes -= um_horizon_spill(h, uses, n, bytes);
	share = um_paged_share(bytes, um_horizon_capacity(h) * UM_BLOCK_BYTES);
	if (share < 1 && page_again(h, uses, n))
		share = 0;
	for (uint32_t k = 0; k < n && !err; k++)
		if (um_horizon_is_ours(&uses[k]))
			err = demand(h, &uses[k], um_paged_part(uses[k].bytes, share));
	if (err)
		return err;
	for (uint32_t k = 0; k < n; k++)
		if (um_horizon_is_ours(&uses[k]))
			find_arrival(h, &uses[k], &last);
	if (last.any)
		um_executor_await(h->host.executor, last.in, stream);
	if (last.at > h->clock) {
		h->stalled += last.at - h->clock;
		h->clock = last.at;
	}
	if (share < 1) {
		h->partial = h->lap_faults = 1;
		h->paging |= 1u << stream;
		um_horizon_forget(h); /* its page faults evict blocks that are not known here */
		return 0;
	}
	h->used += bytes / UM_BLOCK_BYTES;
	h->credit += CREDIT * (int64_t)(CREDIT_OPS + bytes / UM_BLOCK_BYTES);
	if (h->credit > CREDIT_MOST)
		h->credit = CREDIT_MOST;
	return um_horizon_look_ahead(h, ns, n_in);
}

/* Now and then all blocks that were not used when they should have been. Where ops are few and large, predictions of
 * several iterations can fail until then. So those are also looked for, once ops have used as many blocks as the search
 * passes, that have been overdue for a repetition, or mostly before this iteration: they would be the last victims.
 * What the end of an iteration should have used is often only late where the next one begins with other ops. */
static void doubt_overdue(struct um_horizon *h)
{
	int now = um_horizon_current(h) % OVERDUE_OPS == 0;
	uint64_t late = 2 * um_predictor_so_far(h->host.predictor);

	if (!now && h->used < h->blocks.n[UM_BLOCK_KNOWN])
		return;
	if (late > h->host.predictor->reach)
		late = h->host.predictor->reach;
	um_horizon_doubt_overdue(h, now ? 0 : late, 0);
	h->used = 0;
}

/* Makes prefetches wait for ops above the budget that may still run: their page faults would evict prefetched blocks. 0
 * or -EAGAIN. */
static int await_paging(struct um_horizon *h)
{
	unsigned streams = h->paging;

	h->paging = 0;
	if (!streams)
		return 0;
	if (um_executor_fence(h->host.executor, streams))
		return -EAGAIN;
	h->before = um_executor_room_now(h->host.executor);
	return 0;
}

void um_horizon_op(struct um_horizon *h, unsigned stream, const struct um_use *uses, uint32_t n, uint64_t ns,
		   int streams)
{
	if (ns > LONGEST_NS)
		ns = LONGEST_NS;
	h->stream = stream;
	h->held = h->n_held != um_executor_held(h->host.executor);
	h->n_held = um_executor_held(h->host.executor);
	if (h->epoch != um_executor_epoch(h->host.executor)) {
		um_horizon_forget(h);
		um_horizon_recall(h);
	}
	if (um_live_curve_at(&h->host.predictor->live, um_horizon_current(h)) >
	    (h->host.capacity - h->host.capacity / FITS_SHARE) * UM_BLOCK_BYTES)
		h->fits = 0;
	doubt_overdue(h);
	if (await_paging(h) || request_all(h, stream, uses, n, ns, streams)) { /* the queues are full */
		um_executor_cancel(h->host.executor);
		um_horizon_forget(h);
	}
	for (uint32_t k = 0; k < n; k++)
		if (!(uses[k].tensor->flags & UM_TENSOR_UNMANAGED))
			release(h, &uses[k], k);
	h->clock += (int64_t)ns;
}

void um_horizon_born(struct um_horizon *h, uint64_t addr, uint64_t bytes)
{
	for (uint64_t a = um_block_of(addr); um_horizon_knows(h) && a < addr + bytes; a += UM_BLOCK_BYTES) {
		struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

		if (b && b->state == UM_BLOCK_DEAD)
			um_horizon_blocks_revive(&h->blocks, b, um_horizon_current(h) + 1);
	}
}

void um_horizon_free(struct um_horizon *h, uint64_t addr, uint64_t bytes)
{
	um_horizon_forget_look_ups(h, addr, bytes);
	for (uint64_t a = um_block_of(addr); a < addr + bytes; a += UM_BLOCK_BYTES) {
		struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

		if (!b || b->state == UM_BLOCK_DEAD || !h->host.dead(h->host.user, a))
			continue;
		if (um_horizon_block_live(b))
			um_horizon_blocks_die(&h->blocks, b);
		else
			um_horizon_blocks_drop(&h->blocks, b); /* missed for the tensor that was there */
	}
}

void um_horizon_evicted(struct um_horizon *h, const struct um_use *uses, uint32_t n)
{
	for (const struct um_use *u = uses; u < uses + n; u++) {
		uint64_t begin = u->tensor->addr + u->off;

		um_horizon_count_use(u);
		for (uint64_t a = um_block_of(begin); a < begin + u->bytes; a += UM_BLOCK_BYTES) {
			struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

			if (!um_horizon_block_resident(b))
				continue;
			b->torn = a < begin || a + UM_BLOCK_BYTES > begin + u->bytes;
			if (!b->torn)
				um_horizon_gone(h, a);
		}
	}
}

void um_horizon_written(struct um_horizon *h, const struct um_use *uses, uint32_t n)
{
	struct um_executor *ex = h->host.executor;

	for (const struct um_use *u = uses; um_executor_any_read_mostly(ex) && u < uses + n; u++) {
		uint64_t begin = u->tensor->addr + u->off;

		if (!(u->access & UM_WRITE))
			continue;
		for (uint64_t a = um_block_of(begin); a < begin + u->bytes; a += UM_BLOCK_BYTES)
			if (um_executor_is_read_mostly(ex, a) &&
			    um_horizon_block_resident(um_horizon_blocks_find(&h->blocks, a)))
				um_horizon_gone(h, a);
	}
}
