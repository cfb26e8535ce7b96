/* SPDX-License-Identifier: Apache-2.0
 *
 * horizon_ahead.c - the ops to come: which blocks they miss, which are prefetched, and which are evicted in time
 *
 * Whether there is room follows from the live bytes: of the blocks that are live now, as many will have to be off the
 * device at an op as the live bytes have outgrown the budget by then. Blocks that are off the device before they have
 * to be leave room for prefetches; blocks that still have to leave do so while the link is idle.
 */
#include "replay/horizon_state.h"

#include "replay/paged_op.h"

#define EARLY_BLOCKS 4 /* the backlog of the link that is kept at the end of the op at hand, */
#define BIRTH_OPS 8 /* among which one that bears a tensor makes that less for prefetches */
#define AWAY_BLOCKS 8 /* that of evictions before a peak that is predicted well */
#define PEAK_ERROR 0.03 /* share of the budget by which such a peak may be another, in the mean */
#define PEAKS 8 /* in that mean */
#define SPARE_BLOCKS 16 /* that are evicted for the next op, */
#define SPARE_SHARE 32 /* and at most this share of the budget */
#define NEXT_OPS 2 /* for whose births live blocks are evicted, whatever the backlog */
#define CREDIT_LOOK 2 /* ops that are looked at for the peak, up to three times, cost as much as one that is scanned */
#define SCANS 4 /* of each op; more follow what became known since, and cost more */

/* --- room --------------------------------------------------------------------------------------------------------- */

static uint64_t later_by(const struct um_horizon *h, uint64_t op)
{
	return op - um_horizon_current(h);
}

/* By how many bytes will the live blocks have outgrown the budget at op number `op`? <= 0: they fit. */
static int64_t excess_at(const struct um_horizon *h, uint64_t op)
{
	int64_t blocks = (int64_t)um_horizon_blocks_live(&h->blocks) - (int64_t)um_horizon_capacity(h);

	return blocks * (int64_t)UM_BLOCK_BYTES + um_predictor_growth(h->host.predictor, later_by(h, op));
}

/* Likewise, at the op of most live bytes until then. */
static int64_t excess_until(const struct um_horizon *h, uint64_t op)
{
	uint64_t ops = um_predictor_peak(h->host.predictor, later_by(h, op));

	return excess_at(h, um_horizon_current(h) + ops);
}

/* --- scan --------------------------------------------------------------------------------------------------------- */

/* Does the op overwrite all of this block? */
static int overwrites(const struct um_predicted_use *u, uint64_t addr)
{
	uint64_t begin = u->tensor->addr + u->off;

	return u->overwrites && addr >= begin && addr + UM_BLOCK_BYTES <= begin + u->bytes;
}

/* Op number `scanned` uses this block. A block that it overwrites is not prefetched ahead: once the op is announced,
 * the content can be discarded, and is not copied. */
static void scan_block(struct um_horizon *h, uint64_t addr, int overwritten)
{
	struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, addr);

	if (um_horizon_plan_brings(h, addr, h->scanned))
		return;
	if (!b) {
		if (um_horizon_stays(h, addr))
			return;
		if (overwritten)
			h->unbrought++;
		else
			um_horizon_blocks_miss(&h->blocks, addr, h->scanned);
		return;
	}
	if (b->state == UM_BLOCK_MISSED || !um_horizon_block_live(b))
		return;
	um_horizon_blocks_set_near(&h->blocks, b, 1);
	if (h->scanned < b->next || b->dies)
		um_horizon_blocks_set_next(&h->blocks, b, h->scanned);
	if (h->scanned == b->next) {
		b->overwritten = overwritten;
		b->guess = 0;
	}
}

static void scan_op(struct um_horizon *h, const struct um_predictor_op *op)
{
	h->scanned++;
	h->credit--;
	for (uint32_t k = 0; k < op->n_uses; k++) {
		struct um_predicted_use u;
		uint64_t begin;

		if (!um_predictor_use_of(h->host.predictor, op, k, &u) || !u.sure ||
		    um_range_is_sparse(u.touched, u.bytes) || u.tensor->flags & UM_TENSOR_UNMANAGED)
			continue;
		um_predictor_note_next(h->host.predictor, u.tensor, h->scanned);
		begin = u.tensor->addr + u.off;
		h->credit -= (int64_t)(u.bytes / UM_BLOCK_BYTES) + 1;
		for (uint64_t a = um_block_of(begin); a < begin + u.bytes; a += UM_BLOCK_BYTES)
			scan_block(h, a, overwrites(&u, a));
	}
}

/* Does what the scanned ops use fit, with all that is born until then? */
static int window_fits(const struct um_horizon *h)
{
	const struct um_predictor *p = h->host.predictor;
	uint64_t most = um_horizon_capacity(h), ops = um_predictor_peak(p, later_by(h, h->scanned + 1));
	int64_t growth = um_predictor_growth(p, ops);
	uint64_t used = h->blocks.n_near + h->blocks.n[UM_BLOCK_MISSED] + h->unbrought;

	return used + (growth > 0 ? (uint64_t)growth / UM_BLOCK_BYTES : 0) < most - most / 16;
}

/* The program has gone on elsewhere than was expected, or a plan was left: when tensors are used next follows from
 * there. */
static void rematch(struct um_horizon *h, uint64_t until)
{
	struct um_predictor *p = h->host.predictor;
	uint64_t at_hand = p->n_ops;

	h->credit -= (int64_t)p->tensors.n;
	for (uint32_t i = 0; i < p->tensors.n && h->credit > 0; i++) {
		struct um_predicted_next next = um_predictor_rematch(p, i, until);
		const struct um_tensor *t = p->tensors.at[i].tensor;

		if (!next.op)
			continue;
		h->credit -= (int64_t)(t->bytes / UM_BLOCK_BYTES);
		for (uint64_t a = um_block_of(t->addr + UM_BLOCK_BYTES - 1); a + UM_BLOCK_BYTES <= t->addr + t->bytes;
		     a += UM_BLOCK_BYTES) {
			struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, a);

			if (!um_horizon_block_resident(b) || !um_horizon_block_live(b) || b->last >= at_hand)
				continue;
			um_horizon_blocks_set_next(&h->blocks, b, next.op);
			b->dies = next.freed;
		}
	}
}

/* Scans ops as long as what they use fits. The scan begins anew where the prediction has changed, and now and then:
 * tensors were born, and others were matched. */
static void scan(struct um_horizon *h)
{
	const struct um_predictor *p = h->host.predictor;
	const struct um_predictor_op *op;

	if (h->scanned < p->n_ops || p->jumped || h->scan_again <= p->n_ops) {
		if ((p->far || h->recalled) && p->match && h->credit > (int64_t)p->tensors.n) {
			rematch(h, h->recalled ? UM_PREDICTOR_UNKNOWN : h->scanned);
			h->recalled = 0;
		}
		um_horizon_blocks_begin(&h->blocks, p->n_ops + 1);
		h->scanned = p->n_ops;
		h->scan_again = h->unbrought = 0;
	}
	um_horizon_blocks_pass(&h->blocks, p->n_ops + 1);
	while (h->credit > 0 && h->blocks.n[UM_BLOCK_MISSED] < UM_HORIZON_MISSED / 2 &&
	       later_by(h, h->scanned) < UM_HORIZON_OPS - 1 &&
	       (op = um_predictor_ahead(p, later_by(h, h->scanned) + 1)) && window_fits(h))
		scan_op(h, op);
	if (!h->scan_again)
		h->scan_again = p->n_ops + 16 + later_by(h, h->scanned) / SCANS;
}

/* --- prefetches --------------------------------------------------------------------------------------------------- */

/* Is there room for one more block from now on until op number `op`? Or would that op have to displace a block in any
 * case? */
static int may_bring(const struct um_horizon *h, uint64_t op)
{
	const int64_t one = UM_BLOCK_BYTES;

	if (excess_at(h, op) + one > 0)
		return 1;
	return um_horizon_blocks_live(&h->blocks) < um_horizon_capacity(h) && excess_until(h, op) + one <= 0;
}

/* The backlog of prefetches at the end of the op at hand. Blocks of a tensor to be born queue after it. */
static int64_t early_ns(const struct um_horizon *h)
{
	const struct um_predictor *p = h->host.predictor;
	const int64_t most = EARLY_BLOCKS * h->host.in_ns;
	const struct um_predictor_op *op;

	for (uint64_t i = 1; i <= BIRTH_OPS && (op = um_predictor_ahead(p, i)); i++) {
		int64_t until = (int64_t)um_predictor_until(p, i);

		if (until >= most)
			break;
		if (um_predictor_unborn(p, op) >= UM_BLOCK_BYTES)
			return until;
	}
	return most;
}

/* Prefetches missed blocks while the link is idle. The op at hand ends at `end`. 0 or -EAGAIN. */
static int prefetch(struct um_horizon *h, int64_t end)
{
	struct um_horizon_run r = {0};
	int err = 0;

	if (!h->blocks.n[UM_BLOCK_MISSED] || !um_horizon_foretells(h))
		return 0;
	end += early_ns(h);
	while (h->blocks.n[UM_BLOCK_MISSED] && !err && h->in_free <= end) {
		const struct um_horizon_block *b = um_horizon_blocks_first_missed(&h->blocks);

		if (h->trust[um_horizon_is_after_fork(h, b->next)] <= 0 || !may_bring(h, b->next))
			break;
		err = um_horizon_bring(h, &r, b->addr, b->next);
	}
	return err == -EAGAIN ? err : um_horizon_request(h, &r);
}

/* --- the next op -------------------------------------------------------------------------------------------------- */

struct next_op {
	int64_t begins; /* ns, estimated */
	uint64_t missed; /* blocks that are not resident, of those that it reads */
	uint64_t overwritten; /* of those that it overwrites */
};

static void add_block(const struct um_horizon *h, uint64_t addr, int overwritten, struct next_op *next)
{
	const struct um_horizon_block *b = um_horizon_blocks_find(&h->blocks, addr);

	if (um_horizon_block_resident(b))
		next->begins = b->arrives > next->begins ? b->arrives : next->begins;
	else if (overwritten)
		next->overwritten++;
	else
		next->missed++;
}

/* The op at hand ends at `end`. */
static struct next_op find_next(const struct um_horizon *h, int64_t end)
{
	const struct um_predictor *p = h->host.predictor;
	const struct um_predictor_op *op = um_predictor_ahead(p, 1);
	struct next_op next = {.begins = end};
	struct um_predicted_use u;
	int64_t arrives;

	for (uint32_t k = 0; op && k < op->n_uses; k++) {
		if (!um_predictor_use_of(p, op, k, &u) || !u.sure)
			continue;
		for (uint64_t a = um_block_of(u.tensor->addr + u.off); a < u.tensor->addr + u.off + u.bytes;
		     a += UM_BLOCK_BYTES)
			add_block(h, a, overwrites(&u, a), &next);
	}
	arrives = h->in_free + (int64_t)next.missed * h->host.in_ns;
	if (next.missed && arrives > next.begins)
		next.begins = arrives;
	return next;
}

/* --- evictions ---------------------------------------------------------------------------------------------------- */

/* Is it known which live tensors the next op uses? */
static int is_next_sure(const struct um_horizon *h)
{
	const struct um_predictor *p = h->host.predictor;
	const struct um_predictor_op *op = um_predictor_ahead(p, 1);
	struct um_predicted_use u;

	for (uint32_t k = 0; op && k < op->n_uses; k++)
		if (um_predictor_use_of(p, op, k, &u) && !u.sure)
			return 0;
	return op != NULL;
}

/* The next op is announced only when the prefetches for this one were submitted: evicts for it now. Blocks without a
 * live tensor in any case; others if it will not fit, or for what it overwrites, or if it is not known what it uses and
 * tensors have needed the whole budget before. */
static int make_spare(struct um_horizon *h, uint64_t n_in, uint64_t overwritten)
{
	struct um_horizon_blocks *t = &h->blocks;
	uint64_t spare = 2 * (h->n_in - n_in), most = um_horizon_capacity(h), used;
	int sure = um_horizon_foretells(h) && is_next_sure(h), err = 0;

	spare = spare < SPARE_BLOCKS ? spare : SPARE_BLOCKS;
	spare = spare < most / SPARE_SHARE ? spare : most / SPARE_SHARE;
	spare = spare > overwritten ? spare : overwritten;
	while (!err && (used = um_horizon_blocks_resident(t)) + spare > most) {
		struct um_horizon_block *b = um_horizon_blocks_dead(t);

		if (!b && (used + overwritten > most || (!sure && !h->fits) ||
			   excess_until(h, um_horizon_current(h) + NEXT_OPS) > 0))
			b = um_horizon_victim(h);
		if (!b || (um_horizon_block_live(b) && um_horizon_is_needed(h, b, h->scanned)))
			break;
		err = um_horizon_evict(h, b, 1);
	}
	return err;
}

/* From which next use on are blocks best off the device at the peak at op number `peak`? */
static uint64_t furthest_at(struct um_horizon *h, uint64_t peak)
{
	struct um_predictor *p = h->host.predictor;
	uint64_t ops = later_by(h, peak);
	int64_t need;

	if (h->peak == peak && !p->jumped && h->peak_again > p->n_ops)
		return h->furthest;
	if (h->credit <= 0)
		return UM_PREDICTOR_UNKNOWN;
	h->peak = peak;
	h->peak_again = p->n_ops + 16 + ops / SCANS;
	h->furthest = UM_PREDICTOR_UNKNOWN;
	h->credit -= (int64_t)p->reach / CREDIT_LOOK + 1;
	need = (int64_t)um_live_curve_at(&p->live, p->n_ops) + um_predictor_growth(p, ops) -
	       (int64_t)(um_horizon_capacity(h) * UM_BLOCK_BYTES);
	if (need > 0)
		h->furthest =
			um_predictor_furthest(p, ops, (uint64_t)need, (double)UM_BLOCK_BYTES / (double)h->host.out_ns);
	return h->furthest;
}

/* Should this block, whose next use is unknown or the furthest, be evicted now? At the coming peak, in `ops` ops, not
 * all blocks can be resident. It should if it is one of those that are best off the device then, or if it is not used
 * before the peak and the link needs all the time until then. That ops until its next use were scanned does not keep
 * it: they fitted before blocks came back and tensors were born. The op at hand ends at `end`. */
static int is_due(struct um_horizon *h, const struct um_horizon_block *b, uint64_t ops, int64_t end)
{
	const struct um_predictor *p = h->host.predictor;
	uint64_t peak = p->n_ops + ops, furthest;
	int64_t excess = excess_at(h, peak);

	if (excess <= 0 || b->next <= peak)
		return 0;
	if (h->out_free + excess / (int64_t)UM_BLOCK_BYTES * h->host.out_ns > end + (int64_t)um_predictor_until(p, ops))
		return 1;
	furthest = furthest_at(h, peak);
	return furthest != UM_HORIZON_UNKNOWN && b->next >= furthest;
}

/* The coming peak is in `ops` ops: notes what is predicted of it, and how far that was off at the one before. */
static void judge_peak(struct um_horizon *h, uint64_t ops)
{
	const struct um_predictor *p = h->host.predictor;

	if (h->foreseen && h->foreseen <= p->n_ops) {
		double off = (double)um_live_curve_at(&p->live, h->foreseen) - (double)h->foreseen_bytes;
		double budget = (double)(um_horizon_capacity(h) * UM_BLOCK_BYTES);

		h->peak_error += ((off < 0 ? -off : off) / budget - h->peak_error) / PEAKS;
		h->foreseen = 0;
	}
	if (!h->foreseen && ops) {
		h->foreseen = p->n_ops + ops;
		h->foreseen_bytes = um_live_curve_at(&p->live, p->n_ops) + (uint64_t)um_predictor_growth(p, ops);
	}
}

/* Evicts what cannot be resident at the coming peak, of one repetition, while the link is idle. A peak above all so far
 * is a guess: it does not count while all tensors have fitted. The next op begins at `end`. 0 or -EAGAIN. */
static int evict_early(struct um_horizon *h, int64_t end)
{
	const struct um_predictor *p = h->host.predictor;
	uint64_t ops = um_horizon_foretells(h) && !h->fits ? um_predictor_peak(p, p->reach) : 0;
	int64_t most = AWAY_BLOCKS;
	int err = 0;

	judge_peak(h, ops);
	if (h->peak_error > PEAK_ERROR || (ops && um_predictor_is_after_fork(p, ops)))
		most = EARLY_BLOCKS;
	while (!err && ops && h->out_free <= end + most * h->host.out_ns) {
		struct um_horizon_block *b = um_horizon_victim(h);

		if (!b || b->next <= um_horizon_current(h) || !is_due(h, b, ops, end))
			break;
		err = um_horizon_evict(h, b, 1);
	}
	return err;
}

int um_horizon_look_ahead(struct um_horizon *h, uint64_t ns, uint64_t n_in)
{
	int64_t end = h->clock + (int64_t)ns;
	struct next_op next;
	int err;

	scan(h);
	err = prefetch(h, end);
	next = find_next(h, end);
	if (!err)
		err = make_spare(h, n_in, next.overwritten);
	return err ? err : evict_early(h, next.begins);
}
