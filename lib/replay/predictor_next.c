/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor_next.c - what happens to tensors next, and the ops to come, as after the match
 */
#include "replay/predictor_state.h"

#include <string.h>

#define MOST_PARTS 64 /* of a tensor that are used one after the other */
#define MOST_USES 256 /* of a tensor in one repetition that are counted */
#define LATE_PASSES 2 /* each costs as much as one over the uses until the peak */
#define REACH_OPS 1024 /* in which the reach decays to a third */

/* --- tensors of the latest op ------------------------------------------------------------------------------------- */

static struct um_predicted_next after_gap(const struct um_predictor *p, const struct um_predictor_tensor *node)
{
	return (struct um_predicted_next){.op = node->gap ? p->n_ops + node->gap : UM_PREDICTOR_UNKNOWN, .guess = 1};
}

/* Are both, of one tensor, of a common part of it? */
static int touches(const struct um_predictor_use *a, const struct um_predictor_use *b)
{
	return a->off < b->off + b->bytes && b->off < a->off + a->bytes;
}

const struct um_predictor_use *um_predictor_next_part(const struct um_predictor *p, const struct um_predictor_use *u)
{
	const struct um_predictor_use *next = u;

	for (int i = 0; i < MOST_PARTS && next->next; i++) {
		next = um_predictor_use_at(p, next->next);
		if (next->op > u->op && touches(next, u))
			return next;
	}
	return NULL;
}

/* The earlier use of the same part of the tensor that this one, of the latest op, probably repeats: the nearest to the
 * match of those after the counterpart of the tensor's previous use. NULL: there is none. */
static const struct um_predictor_use *find_own(const struct um_predictor *p, const struct um_predictor_use *u)
{
	uint64_t oldest = um_predictor_op_at(p, p->first)->first_use, lag = p->n_ops - p->strays - p->match, after;
	const struct um_predictor_use *was = u, *best = NULL;

	if (u->before < oldest)
		return NULL;
	after = um_predictor_use_at(p, u->before)->op;
	for (int i = 0; i < MOST_PARTS && was->before >= oldest; i++) {
		was = um_predictor_use_at(p, was->before);
		if (was->op + lag <= after || was->op + UM_PREDICTOR_NEAR < p->match)
			break;
		if (um_predictor_distance(was->op, p->match) <= UM_PREDICTOR_NEAR && touches(was, u) &&
		    (!best || um_predictor_distance(was->op, p->match) < um_predictor_distance(best->op, p->match)))
			best = was;
	}
	return best;
}

/* What happens to the tensor of a use of the latest op if that repeats an earlier one, of this tensor or another.
 * `next`: the use after that one, NULL: there is none. */
static struct um_predicted_next as_after(const struct um_predictor *p, const struct um_predictor_use *was,
					 const struct um_predictor_use *next)
{
	uint64_t op = next ? next->op : um_predictor_freed_after(p, was);

	if (!op)
		return (struct um_predicted_next){.op = UM_PREDICTOR_UNKNOWN};
	return (struct um_predicted_next){.op = p->n_ops + (op > was->op ? op - was->op : 1),
					  .freed = !next,
					  .overwritten = next && next->overwrites};
}

/* What probably happens next to the part of a tensor that the latest op's use number k is of. */
static struct um_predicted_next next_of_use(const struct um_predictor *p, uint32_t k)
{
	const struct um_predictor_use *now = um_predictor_use_at(p, um_predictor_op_at(p, p->n_ops)->first_use + k),
				      *was, *next;
	const struct um_predictor_tensor *node = &p->tensors.at[now->tensor];

	if (!p->match)
		return (struct um_predicted_next){.op = UM_PREDICTOR_UNKNOWN};
	was = find_own(p, now);
	next = was ? um_predictor_next_part(p, was) : NULL;
	if (next)
		return as_after(p, was, next);
	was = um_predictor_use_at(p, um_predictor_op_at(p, p->match)->first_use + k);
	next = um_predictor_next_part(p, was);
	if (!next && now->score < UM_SCORE_SURE)
		return after_gap(p, node);
	if (next && next->score < UM_SCORE_SURE && node->gap) /* another tensor may take the part then */
		return after_gap(p, node);
	return as_after(p, was, next);
}

void um_predictor_expect(struct um_predictor *p)
{
	const struct um_predictor_op *now = um_predictor_op_at(p, p->n_ops);
	uint64_t furthest = p->reach - p->reach / REACH_OPS;

	for (uint32_t k = 0; k < now->n_uses; k++) {
		struct um_predicted_next next = next_of_use(p, k);

		p->tensors.at[um_predictor_use_at(p, now->first_use + k)->tensor].next = next;
		if (next.op < UM_PREDICTOR_UNKNOWN && !next.freed && next.op - p->n_ops > furthest)
			furthest = next.op - p->n_ops;
	}
	p->reach = furthest;
}

void um_predictor_expect_stray(struct um_predictor *p)
{
	const struct um_predictor_op *now = um_predictor_op_at(p, p->n_ops);

	for (uint32_t k = 0; k < now->n_uses; k++) {
		const struct um_predictor_use *u = um_predictor_use_at(p, now->first_use + k), *was = find_own(p, u);
		const struct um_predictor_use *next = was ? um_predictor_next_part(p, was) : NULL;
		struct um_predictor_tensor *node = &p->tensors.at[u->tensor];

		if (next)
			node->next = as_after(p, was, next);
		else if (node->next.op <= p->n_ops || node->next.op >= UM_PREDICTOR_UNKNOWN)
			node->next = after_gap(p, node);
	}
}

/* --- the future --------------------------------------------------------------------------------------------------- */

int um_predictor_is_later(const struct um_predictor *p, uint64_t op)
{
	uint64_t then = p->match + (op - p->n_ops);

	return p->match && !p->strays && um_predictor_keeps(p, then) &&
	       um_predictor_op_at(p, then)->iteration != um_predictor_op_at(p, p->match)->iteration;
}

int um_predictor_is_unseen(const struct um_predictor *p, uint64_t op)
{
	return !p->match || p->match + (op - p->n_ops) > p->n_ops;
}

const struct um_predictor_op *um_predictor_ahead(const struct um_predictor *p, uint64_t i)
{
	const struct um_predictor_op *op = um_predictor_op_at(p, p->match + i);

	if (!p->match || i > p->n_ops - p->match || op->segment != um_predictor_op_at(p, p->match)->segment)
		return NULL;
	return op;
}

int um_predictor_is_after_fork(const struct um_predictor *p, uint64_t i)
{
	return um_predictor_op_at(p, p->match + i - 1)->fork >= p->match;
}

int um_predictor_use_of(const struct um_predictor *p, const struct um_predictor_op *op, uint32_t k,
			struct um_predicted_use *out)
{
	const struct um_predictor_use *u = um_predictor_use_at(p, op->first_use + k);
	const struct um_predictor_tensor *node = &p->tensors.at[u->tensor];
	const struct um_tensor *t = um_predictor_expected(p, node);

	if (!t)
		return 0;
	*out = (struct um_predicted_use){t, u->off, u->bytes, u->touched, u->score >= UM_SCORE_SURE, u->overwrites};
	if (!u->off && u->bytes == node->bytes && u->touched >= u->bytes)
		out->bytes = out->touched = t->bytes; /* the whole tensor, whatever its size is now */
	if (out->off >= t->bytes)
		return 0;
	if (out->bytes > t->bytes - out->off)
		out->bytes = t->bytes - out->off;
	return 1;
}

uint64_t um_predictor_unborn(const struct um_predictor *p, const struct um_predictor_op *op)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < op->n_uses; k++) {
		const struct um_predictor_use *u = um_predictor_use_at(p, op->first_use + k);

		if (!um_predictor_expected(p, &p->tensors.at[u->tensor]))
			bytes += u->bytes;
	}
	return bytes;
}

/* What was expected of an op that is past is not known any more. */
static struct um_predicted_next still(const struct um_predictor *p, struct um_predicted_next next)
{
	return next.op > p->n_ops ? next : (struct um_predicted_next){.op = UM_PREDICTOR_UNKNOWN};
}

struct um_predicted_next um_predictor_next(const struct um_predictor *p, const struct um_tensor *t)
{
	uint32_t i = um_predictor_entry(p, t);

	return still(p, i == UM_PREDICTOR_NOBODY ? (struct um_predicted_next){0} : p->tensors.at[i].next);
}

double um_predictor_touched(const struct um_predictor *p, const struct um_tensor *t)
{
	uint64_t oldest = um_predictor_op_at(p, p->first)->first_use, at;
	uint32_t i = um_predictor_entry(p, t);
	double sum = 0;

	if (i == UM_PREDICTOR_NOBODY)
		return 0;
	at = p->tensors.at[i].last;
	for (int n = 0; n < MOST_USES && at >= oldest && um_predictor_use_at(p, at)->op > p->match; n++) {
		sum += (double)um_predictor_use_at(p, at)->touched;
		at = um_predictor_use_at(p, at)->before;
	}
	return sum;
}

struct um_predicted_next um_predictor_next_of_part(const struct um_predictor *p, uint32_t k)
{
	return still(p, next_of_use(p, k));
}

void um_predictor_note_next(struct um_predictor *p, const struct um_tensor *t, uint64_t op)
{
	uint32_t i = um_predictor_entry(p, t);
	struct um_predicted_next *next = i == UM_PREDICTOR_NOBODY ? NULL : &p->tensors.at[i].next;

	if (next && (op < next->op || next->op <= p->n_ops || next->freed))
		*next = (struct um_predicted_next){.op = op};
}

void um_predictor_free(struct um_predictor *p, const struct um_tensor *t)
{
	uint32_t i = um_predictor_entry(p, t);

	if (i != UM_PREDICTOR_NOBODY)
		p->tensors.at[i].freed = p->n_ops;
}

uint64_t um_predictor_peak(const struct um_predictor *p, uint64_t ops)
{
	uint64_t most = p->match ? p->n_ops - p->match : 0; /* predicted */

	if (ops > most)
		ops = most;
	return ops ? um_live_curve_peak(&p->live, p->match + 1, p->match + ops) - p->match : 0;
}

int64_t um_predictor_growth(const struct um_predictor *p, uint64_t ops)
{
	return (int64_t)(um_live_curve_at(&p->live, p->match + ops) - um_live_curve_at(&p->live, p->match));
}

uint64_t um_predictor_until(const struct um_predictor *p, uint64_t ops)
{
	return ops ? um_predictor_op_at(p, p->match + ops)->begins - um_predictor_op_at(p, p->match + 1)->begins : 0;
}

/* Number of the op that uses this again, or after which it is freed; 0: none. */
static uint64_t next_number(const struct um_predictor *p, const struct um_predictor_use *u)
{
	const struct um_predictor_use *after = um_predictor_next_part(p, u);

	return after ? after->op : um_predictor_freed_after(p, u);
}

/* Adds the bytes that this op used before the peak and that are used again, or freed, after it, by the distance of
 * that. */
static void add_next_bytes(struct um_predictor *p, uint64_t op, uint64_t peak, uint64_t most)
{
	const struct um_predictor_op *o = um_predictor_op_at(p, op);

	for (uint64_t i = o->first_use; i < o->first_use + o->n_uses; i++) {
		const struct um_predictor_use *u = um_predictor_use_at(p, i);
		uint64_t next = next_number(p, u);

		if (next > peak)
			p->next_bytes[next - peak < most ? next - peak : most] += u->bytes;
	}
}

/* Of the bytes with a next use at least this far after the peak, those that ops before the peak use so late that the
 * link cannot carry them until then. */
static uint64_t late_bytes(const struct um_predictor *p, uint64_t peak, uint64_t distance, double bytes_per_ns)
{
	double late = 0, most = 0, begins = (double)um_predictor_op_at(p, peak)->begins;

	for (uint64_t op = peak; op > p->match; op--) {
		const struct um_predictor_op *o = um_predictor_op_at(p, op);
		double left = op < peak ? begins - (double)(o->begins + o->ns) : 0, over;

		for (uint64_t i = o->first_use; i < o->first_use + o->n_uses; i++) {
			const struct um_predictor_use *u = um_predictor_use_at(p, i);

			late += next_number(p, u) >= peak + distance ? (double)u->bytes : 0;
		}
		over = late - left * bytes_per_ns;
		most = over > most ? over : most;
	}
	return (uint64_t)most;
}

/* The least distance after the peak such that the next uses from there on have this many bytes. */
static uint64_t distance_of(const struct um_predictor *p, uint64_t most, uint64_t bytes)
{
	uint64_t sum = 0, i = most;

	while (i > 0 && sum < bytes)
		sum += p->next_bytes[i--];
	return i + 1;
}

uint64_t um_predictor_furthest(struct um_predictor *p, uint64_t ops, uint64_t bytes, double bytes_per_ns)
{
	uint64_t at = p->match + ops, length = p->reach, distance, more, most_late = 0;
	uint64_t from = at > p->first + length ? at - length : p->first;
	uint64_t most = length < UM_PREDICTOR_OPS ? length : UM_PREDICTOR_OPS - 1;

	for (uint64_t i = from; i <= at; i++)
		add_next_bytes(p, i, at, most);
	distance = distance_of(p, most, bytes);
	for (int k = 0; k < LATE_PASSES && (more = late_bytes(p, at, distance, bytes_per_ns)) > most_late; k++) {
		most_late = more;
		distance = distance_of(p, most, bytes + more);
	}
	memset(p->next_bytes, 0, (most + 1) * sizeof *p->next_bytes);
	return p->n_ops + ops + distance;
}
