/* SPDX-License-Identifier: Apache-2.0
 *
 * horizon_look_up.c - ranges of which ops touch a little: tables
 *
 * Page faults serve the look-ups in a range as long as they touch so little that a prefetch of all of it takes longer.
 * A range in which ops look up again and again, and which they never use as a whole, is advised to stay on the host
 * where not all live bytes fit: ops access it there over the link, and its room is for others.
 */
#include "replay/horizon_state.h"

#include "replay/paged_op.h"

#define PAGE 4096u /* of those that an op touches here and there, each may lie in a block of its own */
#define RESERVE_SHARE 4 /* at most this share of the budget is left to blocks that faults make resident */
#define LOOK_UP 8 /* an op that touches less than this share of a range looks up in it: by the link that is faster */
#define LOOK_UPS 3 /* in a row, after which the range is advised to stay on the host */
#define MOST_ADVISED 256 /* calls: each waits for the requests in progress */

static void count_reserve(struct um_horizon *h)
{
	uint64_t sum = 0, most = h->host.capacity / RESERVE_SHARE;

	for (uint32_t i = 0; i < h->n_tables; i++)
		sum += h->tables[i].blocks + h->tables[i].more;
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
	count_reserve(h);
}

/* The whole blocks of the range stay on the host from now on. */
static void advise(struct um_horizon *h, struct um_horizon_table *t)
{
	uint64_t lo = um_block_of(t->addr + UM_BLOCK_BYTES - 1), hi = um_block_of(t->addr + t->bytes);

	t->settled = 1;
	if (lo >= hi || !h->host.remote || h->n_advised >= MOST_ADVISED ||
	    um_live_curve_at(&h->host.predictor->live, um_horizon_current(h)) <= h->host.capacity * UM_BLOCK_BYTES)
		return;
	h->n_advised++;
	if (um_executor_keep_on_host(h->host.executor, lo, hi - lo))
		return;
	t->blocks = t->more = 0;
	count_reserve(h);
}

void um_horizon_note_look_up(struct um_horizon *h, const struct um_use *u)
{
	uint64_t addr = u->tensor->addr + u->off;
	struct um_horizon_table *t;

	if (u->touched >= u->bytes / LOOK_UP) {
		for (uint32_t i = 0; u->touched >= u->bytes && i < h->n_tables; i++)
			if (h->tables[i].addr < addr + u->bytes && h->tables[i].addr + h->tables[i].bytes > addr)
				h->tables[i].settled = 1; /* used as a whole, too */
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
		h->partial = 1;
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
