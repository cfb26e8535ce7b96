/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/horizon.h"

#include "replay/block_lru.h"
#include "replay/paged_op.h"

#include <limits.h>
#include <string.h>

#define PAGE (64u << 10) /* that a fault makes resident at least */
#define RESERVE_SHARE 4 /* at most this share of the budget is left to blocks that faults make resident */

#define RUN 2 /* blocks in a request, as compiled_plan.h */
#define EARLY_BLOCKS 4 /* that prefetches start earlier than they must */
#define SPARE_BLOCKS 16 /* that are evicted for the next op, */
#define SPARE_SHARE 32 /* and at most this share of the budget */
#define LONGEST_NS (1ull << 36) /* of an op, whatever the program says: times stay within 64 bits */
#define CREDIT 8 /* blocks of other ops that are scanned for each block of an op, on average: predictions may jump */
#define CREDIT_OPS 8 /* scanning an op costs as much as scanning 8 blocks */
#define CREDIT_MOST (1 << 18)
#define OVERDUE_OPS 256 /* between two searches for blocks that were not used when they should have been */
#define SCANS 4 /* of each op; more follow what became known since, and cost more */

int um_horizon_init(struct um_horizon *h, const struct um_horizon_host *host)
{
	memset(h, 0, sizeof *h);
	h->host = *host;
	h->credit = CREDIT_MOST;
	h->freed = calloc(host->capacity + 1, sizeof *h->freed);
	h->gone = calloc(UM_HORIZON_GONE, sizeof *h->gone);
	if (um_horizon_blocks_init(&h->blocks, host->capacity, host->in_ns) || !h->freed || !h->gone)
		return -ENOMEM;
	return 0;
}

void um_horizon_fini(struct um_horizon *h)
{
	um_horizon_blocks_fini(&h->blocks);
	free(h->freed);
	free(h->gone);
	memset(h, 0, sizeof *h);
}

void um_horizon_forget(struct um_horizon *h)
{
	struct um_horizon_blocks *t = &h->blocks;

	um_horizon_blocks_begin(t, 0);
	while (t->n_live)
		um_horizon_blocks_drop(t, t->heap[t->n_live - 1].block);
	while (t->n_dead)
		um_horizon_blocks_drop(t, &t->at[t->newest]);
	h->n_in = h->n_out = 0;
	h->scanned = 0;
	memset(h->marked, 0, sizeof h->marked);
	h->epoch = um_executor_epoch(h->host.executor);
	h->before = um_executor_room_now(h->host.executor);
}

/* Number of the op at hand. */
static uint64_t current(const struct um_horizon *h)
{
	return h->host.predictor->n_ops;
}

static void recall_block(void *user, uint64_t addr)
{
	struct um_horizon *h = user;
	struct um_horizon_blocks *t = &h->blocks;
	struct um_horizon_block *b;

	if (t->n_live == h->host.capacity || um_horizon_blocks_find(t, addr))
		return;
	b = um_horizon_blocks_come(t, addr, UM_HORIZON_UNKNOWN + h->host.capacity - t->n_live);
	b->in = um_executor_in_queued(h->host.executor);
	b->streams = UINT_MAX;
	if (h->host.dead(h->host.user, addr))
		um_horizon_blocks_die(t, b);
	h->n_in++;
}

void um_horizon_visit(const struct um_horizon *h, void (*visit)(void *user, uint64_t addr, int live), void *user)
{
	const struct um_horizon_blocks *t = &h->blocks;

	for (uint32_t i = 0; i < t->n_live; i++)
		visit(user, t->heap[i].block->addr, 1);
	for (uint32_t i = t->oldest; t->n_dead && i != UM_HORIZON_NONE; i = t->at[i].behind)
		visit(user, t->at[i].addr, 0);
}

void um_horizon_recall(struct um_horizon *h)
{
	um_executor_visit_resident(h->host.executor, recall_block, h);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* What a prefetch of the block waits for, so that it does not come before the block's own eviction. */
static struct um_executor_room *gone_of(const struct um_horizon *h, uint64_t addr)
{
	return &h->gone[(addr / UM_BLOCK_BYTES * 0x9e3779b97f4a7c15ull >> 32) % UM_HORIZON_GONE];
}

/* Numbers wrap around: one that is not behind `room` and up to `now`, the latest, is from long ago. */
static void wait_for(struct um_executor_room *room, const struct um_executor_room *now,
		     const struct um_executor_room *too)
{
	if (too->outs - room->outs <= now->outs - room->outs)
		room->outs = too->outs;
	if (too->drops - room->drops <= now->drops - room->drops)
		room->drops = too->drops;
}

/* The streams that may use the block and have no mark after that: they are marked now. */
static unsigned unmarked(struct um_horizon *h, const struct um_horizon_block *b)
{
	unsigned which = 0;

	for (unsigned i = 0; i < UM_EXECUTOR_STREAMS; i++) {
		if (!(b->streams >> i & 1) || (b->last < h->marked[i] && (!h->shared || h->marked[i] == current(h))))
			continue;
		which |= 1u << i;
		h->marked[i] = current(h);
	}
	return which;
}

/* Evicts the block; `ahead`: for an op to come. 0 or -EAGAIN. */
static int evict(struct um_horizon *h, struct um_horizon_block *b, int ahead)
{
	struct um_executor_room *room = &h->freed[h->n_out++ % h->host.capacity];
	uint64_t addr = b->addr, next = b->state == UM_BLOCK_LIVE ? b->next : 0;
	unsigned which = unmarked(h, b);

	if (which && um_executor_mark(h->host.executor, which))
		return -EAGAIN;
	if (um_executor_away(h->host.executor, addr, UM_BLOCK_BYTES, b->in, b->streams, ahead, room))
		return -EAGAIN;
	*gone_of(h, addr) = *room;
	um_horizon_blocks_drop(&h->blocks, b);
	if (next > current(h) && next <= h->scanned)
		um_horizon_blocks_miss(&h->blocks, addr, next);
	return 0;
}

/* Blocks that were not used when they should have been: nothing is known of them. */
static void doubt_overdue(struct um_horizon *h)
{
	struct um_horizon_blocks *t = &h->blocks;

	for (uint32_t i = 0; i < t->n_live; i++)
		if (t->heap[i].next < current(h))
			um_horizon_blocks_set_next(t, t->heap[i].block, UM_HORIZON_UNKNOWN - t->heap[i].block->last);
}

static uint64_t capacity(const struct um_horizon *h)
{
	return h->host.capacity - h->reserve;
}

/* Makes room for one more block, by evicting one that is used after op number `op`. 0; -ENOSPC: there is none; -EAGAIN.
 */
static int make_room(struct um_horizon *h, uint64_t op)
{
	struct um_horizon_blocks *t = &h->blocks;

	int err = 0;

	while (t->n_dead && t->n_live + t->n_dead >= capacity(h) && !err)
		err = evict(h, &t->at[t->oldest], op > current(h));
	if (err || t->n_live < capacity(h))
		return err;
	if (t->heap->next <= op && op == current(h))
		doubt_overdue(h);
	return t->heap->next <= op ? -ENOSPC : evict(h, t->heap->block, op > current(h));
}

/* Blocks that are requested together. */
struct run {
	uint64_t addr, op;
	uint32_t n;
	struct um_horizon_block *block[RUN];
};

/* Requests the blocks that were collected. 0 or -EAGAIN. */
static int request(struct um_horizon *h, struct run *r)
{
	struct um_executor_room room, now = um_executor_room_now(h->host.executor);
	uint32_t number;

	if (!r->n)
		return 0;
	room = um_executor_room_done(h->host.executor);
	wait_for(&room, &now, &h->before);
	if (h->n_out && h->n_in > capacity(h))
		wait_for(&room, &now, &h->freed[(h->n_in - capacity(h) - 1) % h->host.capacity]);
	for (uint32_t i = 0; i < r->n; i++)
		wait_for(&room, &now, gone_of(h, r->addr + i * UM_BLOCK_BYTES));
	if (um_executor_bring(h->host.executor, r->addr, r->n * UM_BLOCK_BYTES, r->op > current(h), &room, &number))
		return -EAGAIN;
	if (h->in_free < h->clock)
		h->in_free = h->clock;
	for (uint32_t i = 0; i < r->n; i++) {
		h->in_free += h->host.in_ns;
		r->block[i]->in = number;
		r->block[i]->arrives = h->in_free;
	}
	r->n = 0;
	return 0;
}

/* Requests a block that is not resident, for op number `op`. 0, -ENOSPC, -EAGAIN. */
static int bring(struct um_horizon *h, struct run *r, uint64_t addr, uint64_t op)
{
	int err = 0, ahead = op > current(h);

	if (r->n && (r->n == RUN || r->addr + r->n * UM_BLOCK_BYTES != addr || r->op != op))
		err = request(h, r);
	if (!err)
		err = make_room(h, ahead ? h->scanned : op);
	if (err)
		return err;
	if (!r->n)
		*r = (struct run){.addr = addr, .op = op};
	r->block[r->n] = um_horizon_blocks_come(&h->blocks, addr, op);
	if (ahead)
		um_horizon_blocks_set_near(&h->blocks, r->block[r->n], 1);
	r->block[r->n]->came = current(h);
	r->n++;
	h->n_in++;
	return 0;
}

/* --- the op at hand ----------------------------------------------------------------------------------------------- */

static void count_reserve(struct um_horizon *h)
{
	uint64_t sum = 0, most = h->host.capacity / RESERVE_SHARE;

	for (uint32_t i = 0; i < h->n_sparse; i++)
		sum += h->sparse[i].blocks;
	h->reserve = sum < most ? sum : most;
}

/* The op touches a little of this range, by page faults. */
static void note_sparse(struct um_horizon *h, const struct um_use *u)
{
	uint64_t addr = u->tensor->addr + u->off;
	struct um_horizon_sparse *s = h->sparse, *end = s + h->n_sparse;

	h->partial = 1;
	while (s < end && (s->addr != addr || s->bytes != u->bytes))
		s++;
	if (s == end && h->n_sparse == UM_HORIZON_SPARSE)
		return;
	if (s == end)
		h->sparse[h->n_sparse++] = (struct um_horizon_sparse){addr, u->bytes, 0};
	s->blocks += (u->touched + PAGE - 1) / PAGE;
	if (s->blocks > (u->bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES)
		s->blocks = (u->bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;
	count_reserve(h);
}

/* The reserve stays: the next iteration probably bears such memory again. */
static void forget_sparse(struct um_horizon *h, uint64_t addr, uint64_t bytes)
{
	for (uint32_t i = 0; i < h->n_sparse; i++)
		if (h->sparse[i].addr < addr + bytes && h->sparse[i].addr + h->sparse[i].bytes > addr)
			h->sparse[i--] = h->sparse[--h->n_sparse];
}

static int is_ours(const struct um_use *u)
{
	return !(u->tensor->flags & UM_TENSOR_UNMANAGED) && !um_range_is_sparse(u->touched, u->bytes);
}

/* Its blocks are not evicted for one another. */
static void pin(struct um_horizon *h, const struct um_use *u)
{
	uint64_t begin = u->tensor->addr + u->off, op = current(h);

	for (uint64_t a = um_block_of(begin); a < begin + u->bytes; a += UM_BLOCK_BYTES) {
		struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

		if (!um_horizon_block_resident(b))
			continue;
		if (b->state == UM_BLOCK_DEAD)
			um_horizon_blocks_revive(&h->blocks, b, op);
		if (b->next > op && b->next < UM_HORIZON_NO_OP && (b->later <= op || b->next < b->later))
			b->later = b->next;
		um_horizon_blocks_set_next(&h->blocks, b, op);
	}
}

/* Requests the missing ones of the blocks that `bytes` from its beginning lie in. What finds no room is left to page
 * faults. 0 or -EAGAIN. */
static int demand(struct um_horizon *h, const struct um_use *u, uint64_t bytes)
{
	uint64_t begin = u->tensor->addr + u->off;
	struct run r = {0};
	int err = 0;

	for (uint64_t a = um_block_of(begin); a < begin + bytes && !err; a += UM_BLOCK_BYTES)
		if (!um_horizon_block_resident(um_horizon_blocks_find(&h->blocks, a)))
			err = bring(h, &r, a, current(h));
	return err == -EAGAIN ? err : request(h, &r);
}

static uint64_t bytes_of(const struct um_use *uses, uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < n; k++)
		bytes += is_ours(&uses[k]) ? uses[k].bytes : 0;
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

/* The op has used the range; its tensor is used again at `next`, another tensor of the block perhaps earlier. */
static void release(struct um_horizon *h, const struct um_use *u, uint64_t next)
{
	uint64_t begin = u->tensor->addr + u->off, op = current(h);

	for (uint64_t a = um_block_of(begin); a < begin + u->bytes; a += UM_BLOCK_BYTES) {
		struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

		if (!um_horizon_block_resident(b))
			continue;
		if (b->next <= op || next < b->next)
			um_horizon_blocks_set_next(&h->blocks, b, b->later > op && b->later < next ? b->later : next);
		b->last = op;
		b->streams |= 1u << h->stream;
		um_horizon_blocks_set_near(&h->blocks, b, b->next <= h->scanned);
	}
}

static uint64_t next_use(const struct um_horizon *h, uint32_t k)
{
	uint64_t ops = um_predictor_next_use(h->host.predictor, k);

	return ops == UM_PREDICTOR_UNKNOWN ? UM_HORIZON_UNKNOWN - current(h)
	       : ops == UM_PREDICTOR_NEVER ? UM_HORIZON_NEVER - current(h)
					   : current(h) + ops;
}

/* --- ops to come -------------------------------------------------------------------------------------------------- */

/* Op number `scanned` uses this block. */
static void scan_block(struct um_horizon *h, uint64_t addr)
{
	struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, addr);

	if (!b) {
		um_horizon_blocks_miss(&h->blocks, addr, h->scanned);
		return;
	}
	if (b->state == UM_BLOCK_LIVE)
		um_horizon_blocks_set_near(&h->blocks, b, 1);
	if (b->state == UM_BLOCK_LIVE && h->scanned < b->next)
		um_horizon_blocks_set_next(&h->blocks, b, h->scanned);
	else if (h->scanned > b->next && (b->later <= b->next || h->scanned < b->later))
		b->later = h->scanned;
}

/* Blocks that tensors need which are born until this op, and after the op before. */
static uint32_t *births_of(struct um_horizon *h, uint64_t op)
{
	return &h->blocks.misses[op % UM_HORIZON_OPS].births;
}

static void scan_op(struct um_horizon *h, const struct um_predictor_op *op)
{
	h->scanned++;
	h->credit--;
	*births_of(h, h->scanned) = (uint32_t)(um_predictor_born(h->host.predictor, op) / UM_BLOCK_BYTES);
	h->n_births += *births_of(h, h->scanned);
	h->blocks.misses[h->scanned % UM_HORIZON_OPS].begins = h->scan_clock;
	h->scan_clock += (int64_t)(op->ns < LONGEST_NS ? op->ns : LONGEST_NS);
	for (uint32_t k = 0; k < op->n_uses; k++) {
		struct um_predicted_use u;
		uint64_t begin;

		if (!um_predictor_use_of(h->host.predictor, op, k, &u) || !u.sure ||
		    um_range_is_sparse(u.touched, u.bytes) || u.tensor->flags & UM_TENSOR_UNMANAGED)
			continue;
		begin = u.tensor->addr + u.off;
		h->credit -= (int64_t)(u.bytes / UM_BLOCK_BYTES) + 1;
		for (uint64_t a = um_block_of(begin); a < begin + u.bytes; a += UM_BLOCK_BYTES)
			scan_block(h, a);
	}
}

/* Scans ops as long as what they use fits. The scan begins anew where the prediction has changed, and now and then:
 * tensors were born, and others were matched. The op at hand takes `ns`. */
static void scan(struct um_horizon *h, uint64_t ns)
{
	const struct um_predictor *p = h->host.predictor;
	uint64_t most = capacity(h) - capacity(h) / 16;
	const struct um_predictor_op *op;

	if (h->scanned >= p->n_ops)
		h->n_births -= *births_of(h, p->n_ops);
	if (h->scanned < p->n_ops || p->jumped || h->scan_again <= p->n_ops) {
		um_horizon_blocks_begin(&h->blocks, p->n_ops + 1);
		h->scanned = p->n_ops;
		h->scan_again = h->n_births = 0;
		h->scan_clock = h->clock + (int64_t)ns;
	}
	um_horizon_blocks_pass(&h->blocks, p->n_ops + 1);
	if (h->scanned > p->n_ops)
		h->slip = h->clock + (int64_t)ns - h->blocks.misses[(p->n_ops + 1) % UM_HORIZON_OPS].begins;
	else
		h->slip = 0;
	while (h->credit > 0 && h->blocks.n_near + h->blocks.n_missed + h->n_births < most &&
	       h->blocks.n_missed < UM_HORIZON_MISSED / 2 && h->scanned - p->n_ops < UM_HORIZON_OPS - 1 &&
	       (op = um_predictor_ahead(p, h->scanned - p->n_ops + 1)))
		scan_op(h, op);
	if (!h->scan_again)
		h->scan_again = p->n_ops + 16 + (h->scanned - p->n_ops) / SCANS;
}

/* Requests missed blocks whose prefetch must start before the next op does. 0 or -EAGAIN. */
static int prefetch(struct um_horizon *h, uint64_t ns)
{
	int64_t end = h->clock + (int64_t)ns, early = EARLY_BLOCKS * h->host.in_ns;
	struct run r = {0};
	int err = 0;

	while (h->blocks.n_missed && !err && h->in_free <= end + early) {
		int64_t from = h->in_free > end ? h->in_free : end;
		const struct um_horizon_block *b;

		if (um_horizon_blocks_must_start(&h->blocks, current(h) + 1) + h->slip > from + early)
			break;
		b = um_horizon_blocks_first_missed(&h->blocks);
		err = bring(h, &r, b->addr, b->next);
	}
	return err == -EAGAIN ? err : request(h, &r);
}

/* The next op is announced only when the prefetches for this one were submitted: evicts some blocks for it now. */
static int evict_ahead(struct um_horizon *h, uint64_t n_in)
{
	struct um_horizon_blocks *t = &h->blocks;
	uint64_t spare = 2 * (h->n_in - n_in);
	int err = 0;

	spare = spare < SPARE_BLOCKS ? spare : SPARE_BLOCKS;
	spare = spare < capacity(h) / SPARE_SHARE ? spare : capacity(h) / SPARE_SHARE;
	while (!err && t->n_live + t->n_dead + spare > capacity(h)) {
		if (t->n_dead)
			err = evict(h, &t->at[t->oldest], 1);
		else if (t->n_live && t->heap->next > h->scanned)
			err = evict(h, t->heap->block, 1);
		else
			break;
	}
	return err;
}

static int request_all(struct um_horizon *h, unsigned stream, const struct um_use *uses, uint32_t n, uint64_t ns)
{
	uint64_t bytes = bytes_of(uses, n);
	double share = um_paged_share(bytes, capacity(h) * UM_BLOCK_BYTES);
	struct arrival last = {0};
	uint64_t n_in = h->n_in;
	int err = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (is_ours(&uses[k]))
			pin(h, &uses[k]);
		else if (!(uses[k].tensor->flags & UM_TENSOR_UNMANAGED))
			note_sparse(h, &uses[k]);
	}
	for (uint32_t k = 0; k < n && !err; k++)
		if (is_ours(&uses[k]))
			err = demand(h, &uses[k], um_paged_part(uses[k].bytes, share));
	if (err)
		return err;
	for (uint32_t k = 0; k < n; k++)
		if (is_ours(&uses[k]))
			find_arrival(h, &uses[k], &last);
	if (last.any)
		um_executor_await(h->host.executor, last.in, stream);
	if (last.at > h->clock)
		h->clock = last.at;
	if (share < 1) {
		h->partial = 1;
		um_horizon_forget(h); /* its page faults evict blocks that are not known here */
		return 0;
	}
	h->credit += CREDIT * (int64_t)(CREDIT_OPS + bytes / UM_BLOCK_BYTES);
	if (h->credit > CREDIT_MOST)
		h->credit = CREDIT_MOST;
	scan(h, ns);
	err = prefetch(h, ns);
	return err ? err : evict_ahead(h, n_in);
}

void um_horizon_op(struct um_horizon *h, unsigned stream, const struct um_use *uses, uint32_t n, uint64_t ns)
{
	if (ns > LONGEST_NS)
		ns = LONGEST_NS;
	h->stream = stream;
	if (h->epoch != um_executor_epoch(h->host.executor)) {
		um_horizon_forget(h);
		um_horizon_recall(h);
	}
	if (current(h) % OVERDUE_OPS == 0)
		doubt_overdue(h);
	if (request_all(h, stream, uses, n, ns)) { /* the queues are full */
		um_executor_cancel(h->host.executor);
		um_horizon_forget(h);
	}
	for (uint32_t k = 0; k < n; k++)
		if (is_ours(&uses[k]))
			release(h, &uses[k], next_use(h, k));
	h->clock += (int64_t)ns;
}

void um_horizon_free(struct um_horizon *h, uint64_t addr, uint64_t bytes)
{
	forget_sparse(h, addr, bytes);
	for (uint64_t a = um_block_of(addr); a < addr + bytes; a += UM_BLOCK_BYTES) {
		struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

		if (!b || b->state == UM_BLOCK_DEAD || !h->host.dead(h->host.user, a))
			continue;
		if (b->state == UM_BLOCK_LIVE)
			um_horizon_blocks_die(&h->blocks, b);
		else
			um_horizon_blocks_drop(&h->blocks, b); /* missed for the tensor that was there */
	}
}

void um_horizon_gone(struct um_horizon *h, uint64_t addr)
{
	struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, addr);

	if (!b)
		return;
	if (b->state != UM_BLOCK_MISSED)
		h->freed[h->n_out++ % h->host.capacity] = h->before;
	um_horizon_blocks_drop(&h->blocks, b);
}

void um_horizon_evicted(struct um_horizon *h, const struct um_use *uses, uint32_t n)
{
	for (const struct um_use *u = uses; u < uses + n; u++) {
		uint64_t begin = u->tensor->addr + u->off;

		for (uint64_t a = um_block_of(begin); a < begin + u->bytes; a += UM_BLOCK_BYTES)
			if (um_horizon_block_resident(um_horizon_blocks_find(&h->blocks, a)))
				um_horizon_gone(h, a);
	}
}
