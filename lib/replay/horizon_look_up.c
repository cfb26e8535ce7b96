/* SPDX-License-Identifier: Apache-2.0
 *
 * horizon_look_up.c - what stays on the host: tables, of which ops touch a little, and parts of ops above the budget
 *
 * Page faults serve the look-ups in a range as long as they touch so little that a prefetch of all of it takes longer.
 * A range in which ops look up again and again is advised to stay on the host where not all live bytes fit: ops access
 * it there over the link, and its room is for others. An op that uses it as a whole ends the advice; the next look-up
 * renews it.
 *
 * An op above the budget, of those that access each byte about once, moves most of its data by page faults. So what it
 * uses beyond the budget stays on the host, too, as in a plan (plan/spill.h).
 */
#include "replay/horizon_state.h"

#include "replay/paged_op.h"

#define PAGE 4096u /* of those that an op touches here and there, each may lie in a block of its own */
#define RESERVE_SHARE 4 /* at most this share of the budget is left to blocks that faults make resident */
#define LOOK_UP 8 /* an op that touches less than this share of a range looks up in it: by the link that is faster */
#define LOOK_UPS 3 /* in a row, after which the range is advised to stay on the host */
#define MOST_ADVISED 256 /* calls: each waits for the requests in progress */
#define ADVISED_OPS 64 /* ops after which one more call is allowed */

static void count_reserve(struct um_horizon *h)
{
	uint64_t sum = 0, most = h->host.capacity / RESERVE_SHARE;

	for (uint32_t i = 0; i < h->n_tables; i++) {
		const struct um_horizon_table *t = &h->tables[i];

		sum += t->blocks + t->more < t->missing ? t->blocks + t->more : t->missing;
	}
	h->reserve = sum < most ? sum : most;
}

static struct um_horizon_table *find(struct um_horizon *h, uint64_t addr, uint64_t bytes)
{
	for (uint32_t i = 0; i < h->n_tables; i++)
		if (h->tables[i].addr == addr && h->tables[i].bytes == bytes)
			return &h->tables[i];
	return NULL;
}

/* Its blocks become resident by page faults. */
static void note_faults(struct um_horizon *h, struct um_horizon_table *t, uint64_t bytes)
{
	uint64_t touched = (bytes + PAGE - 1) / PAGE, most = (t->bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;

	h->partial = 1;
	t->blocks = t->blocks + touched < most ? t->blocks + touched : most;
	t->more = t->blocks + touched < most ? touched : most - t->blocks;
	t->missing = um_horizon_missing(h, t->addr, t->bytes);
	count_reserve(h);
}

/* The whole blocks of the range stay on the host from now on. What page faults made resident of it stays where it is,
 * and in the reserve: to evict all of the range would copy more, and make memory on the host for what was never
 * touched. */
static void advise(struct um_horizon *h, struct um_horizon_table *t)
{
	uint64_t lo = um_block_of(t->addr + UM_BLOCK_BYTES - 1), hi = um_block_of(t->addr + t->bytes);

	t->settled = 1;
	if (lo >= hi || !h->host.remote || h->n_advised >= MOST_ADVISED + um_horizon_current(h) / ADVISED_OPS ||
	    um_live_curve_at(&h->host.predictor->live, um_horizon_current(h)) <= h->host.capacity * UM_BLOCK_BYTES)
		return;
	h->n_advised++;
	um_executor_keep_on_host(h->host.executor, lo, hi - lo);
}

void um_horizon_note_look_up(struct um_horizon *h, const struct um_use *u)
{
	uint64_t addr = u->tensor->addr + u->off;
	struct um_horizon_table *t;

	if (u->touched >= u->bytes / LOOK_UP) {
		for (uint32_t i = 0; u->touched >= u->bytes && i < h->n_tables; i++)
			if (h->tables[i].addr < addr + u->bytes && h->tables[i].addr + h->tables[i].bytes > addr)
				h->tables[i].settled = 0; /* its advice ends, until the next look-up */
		return;
	}
	t = find(h, addr, u->bytes);
	if (!t && h->n_tables < UM_HORIZON_TABLES) {
		t = &h->tables[h->n_tables++];
		*t = (struct um_horizon_table){.addr = addr, .bytes = u->bytes};
	}
	if (t && !t->settled && ++t->look_ups > LOOK_UPS)
		advise(h, t);
	if (um_horizon_stays(h, um_block_of(addr + UM_BLOCK_BYTES - 1)))
		return;
	if (um_range_is_sparse(u->touched, u->bytes)) {
		h->partial = h->lap_faults = 1;
		if (t)
			note_faults(h, t, u->touched);
	}
}

void um_horizon_forget_look_ups(struct um_horizon *h, uint64_t addr, uint64_t bytes)
{
	for (uint32_t i = 0; i < h->n_tables; i++)
		if (h->tables[i].addr < addr + bytes && h->tables[i].addr + h->tables[i].bytes > addr)
			h->tables[i--] = h->tables[--h->n_tables];
}

/* --- ops above the budget ----------------------------------------------------------------------------------------- */

#define LARGE_OPS 2 /* ops above the budget that page faults serve, before data are moved for further ones */

/* The end of the last whole blocks of a use that are not on the host; `*lo`: the begin of its whole blocks. */
static uint64_t end_of_run(const struct um_horizon *h, const struct um_use *u, uint64_t *lo)
{
	uint64_t begin = u->tensor->addr + u->off, end = um_block_of(begin + u->bytes);

	*lo = um_block_of(begin + UM_BLOCK_BYTES - 1);
	while (end > *lo && um_horizon_stays(h, end - UM_BLOCK_BYTES))
		end -= UM_BLOCK_BYTES;
	return end;
}

/* The use whose tensor is touched least for its size, of those with whole blocks that are not on the host. NULL: none.
 */
static const struct um_use *find_seldom(const struct um_horizon *h, const struct um_use *uses, uint32_t n)
{
	const struct um_use *best = NULL;
	double least = 0;
	uint64_t lo;

	for (const struct um_use *u = uses; u < uses + n; u++) {
		double rate = um_predictor_touched(h->host.predictor, u->tensor) / (double)u->tensor->bytes;

		if (u->tensor->flags & (UM_TENSOR_UNMANAGED | UM_TENSOR_TRANSIENT) || u->touched < u->bytes ||
		    (best && rate >= least) || end_of_run(h, u, &lo) <= lo)
			continue;
		best = u;
		least = rate;
	}
	return best;
}

/* Evicts blocks and advises them to stay on the host. 0 or an error. */
static int move_to_host(struct um_horizon *h, uint64_t lo, uint64_t hi)
{
	const struct um_executor_range range = {lo, hi - lo};
	struct um_executor_room room;

	for (uint64_t a = lo; a < hi; a += UM_BLOCK_BYTES)
		if (um_horizon_block_resident(um_horizon_blocks_find(&h->blocks, a)))
			um_horizon_gone(h, a);
	if (um_executor_evict_all(h->host.executor, &range, 1, &room))
		return -EAGAIN;
	return um_executor_keep_on_host(h->host.executor, lo, hi - lo);
}

/* The blocks that the uses have to have on the device. One that ranges share counts for each of them. */
static uint64_t count_blocks(const struct um_horizon *h, const struct um_use *uses, uint32_t n)
{
	uint64_t blocks = 0;

	for (const struct um_use *u = uses; u < uses + n; u++) {
		uint64_t begin = u->tensor->addr + u->off;

		for (uint64_t a = um_block_of(begin); um_horizon_is_ours(u) && a < begin + u->bytes;
		     a += UM_BLOCK_BYTES)
			blocks += !um_horizon_stays(h, a);
	}
	return blocks;
}

uint64_t um_horizon_spill(struct um_horizon *h, const struct um_use *uses, uint32_t n, uint64_t bytes)
{
	uint64_t most = um_horizon_capacity(h), edges = 2ull * n, blocks, left, lo, hi;
	const struct um_use *u;

	if (bytes / UM_BLOCK_BYTES + edges <= most)
		return 0;
	left = blocks = count_blocks(h, uses, n);
	if (blocks <= most || !h->host.remote || h->n_large++ < LARGE_OPS)
		return 0;
	while (left > most && h->n_advised < MOST_ADVISED && (u = find_seldom(h, uses, n))) {
		uint64_t want = (left - most) * UM_BLOCK_BYTES;

		hi = end_of_run(h, u, &lo);
		lo = hi - lo > want ? hi - want : lo;
		h->n_advised++;
		if (move_to_host(h, lo, hi))
			break;
		left -= (hi - lo) / UM_BLOCK_BYTES;
	}
	return (blocks - left) * UM_BLOCK_BYTES;
}
