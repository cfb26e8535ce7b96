/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor_match.c - matches the latest op with an earlier one
 */
#include "replay/predictor_state.h"

#define MOST_ALIKE 8 /* ops that are compared with one op, at most */
#define MOST_STRAYS 4 /* ops in a row that belong to no place where they are expected */

/* Are the `n` kinds up to op `a` those up to op `b`? */
static int same_kinds(const struct um_predictor *p, uint64_t a, uint64_t b, int n)
{
	for (int i = 0; i < n; i++, a--, b--)
		if (!um_predictor_keeps(p, a) || !um_predictor_keeps(p, b) ||
		    um_predictor_op_at(p, a)->kind != um_predictor_op_at(p, b)->kind ||
		    um_predictor_op_at(p, a)->n_uses != um_predictor_op_at(p, b)->n_uses)
			return 0;
	return 1;
}

/* The op after the match, if the latest op is of its kind; otherwise 0. */
static uint64_t next_of_kind(const struct um_predictor *p)
{
	return p->match && p->match + 1 < p->n_ops && same_kinds(p, p->match + 1, p->n_ops, 1) ? p->match + 1 : 0;
}

/* Where ops are listed that had the same kinds up to them: `n` kinds. */
static uint64_t *bucket_of(const struct um_predictor *p, int n)
{
	uint64_t h = (uint64_t)n;

	for (uint64_t i = p->n_ops; i >= p->first && p->n_ops - i < (uint64_t)n; i--)
		h = um_hash_u64(h, um_predictor_op_at(p, i)->kind);
	return &p->bucket[n - 1][h % UM_PREDICTOR_BUCKETS];
}

/* Where ops are listed that had this prefix, in iterations after one like the one before this. */
static uint64_t *turned_at(const struct um_predictor *p)
{
	return &p->turned[um_hash_u64(p->before, p->prefix) % UM_PREDICTOR_BUCKETS];
}

static int has_prefix(const struct um_predictor *p, uint64_t at, uint64_t prefix)
{
	return um_predictor_keeps(p, at) && um_predictor_op_at(p, at)->prefix == prefix;
}

/* Did the iteration before begin as this one has so far? */
static int is_alike_before(const struct um_predictor *p, uint64_t prefix)
{
	return has_prefix(p, p->n_ended[1] + um_predictor_so_far(p), prefix);
}

/* An earlier iteration may have begun as this one did, while that of the op after the match had other sizes. Within a
 * phase the latest such iteration counts. At its beginning one counts that came after the same phase, as what follows
 * differs from the end of a phase. The latest op's counterpart there; 0: there is none. */
static uint64_t find_begun(const struct um_predictor *p, uint64_t next)
{
	uint64_t prefix = um_predictor_op_at(p, p->n_ops)->prefix, at;

	if (!prefix || (next && um_predictor_op_at(p, next)->prefix == prefix))
		return 0;
	at = *turned_at(p);
	if (!is_alike_before(p, prefix) && has_prefix(p, at, prefix))
		return at;
	at = p->begun[prefix % UM_PREDICTOR_BUCKETS];
	return has_prefix(p, at, prefix) ? at : 0;
}

/* What speaks for the latest op's being the repetition of another, and what against it: the number of its uses that are
 * of the expected tensor, and of another one. Those that are not sure do not speak against it, nor do new tensors,
 * which no op expects. */
struct evidence {
	uint32_t right, wrong;
};

static struct evidence compare(const struct um_predictor *p, uint64_t match)
{
	const struct um_predictor_op *now = um_predictor_op_at(p, p->n_ops), *then = um_predictor_op_at(p, match);
	struct evidence e = {0, 0};

	for (uint32_t k = 0; k < now->n_uses; k++) {
		const struct um_predictor_use *was = um_predictor_use_at(p, then->first_use + k),
					      *is = um_predictor_use_at(p, now->first_use + k);
		const struct um_tensor *t = um_predictor_expected(p, &p->tensors.at[was->tensor]);
		int same = t == p->tensors.at[is->tensor].tensor;

		e.right += t && same;
		e.wrong += t && !same && is->again && was->score >= UM_SCORE_SURE;
	}
	return e;
}

/* The op near the one after the match before for which most speaks, since ops were dropped, inserted, or exchanged. 0:
 * there is none. */
static uint64_t find_near(const struct um_predictor *p)
{
	uint64_t next = p->match + 1, from = next > UM_PREDICTOR_NEAR ? next - UM_PREDICTOR_NEAR : 1, best = 0;
	uint32_t most = 0;

	for (uint64_t at = from; p->match && at <= next + UM_PREDICTOR_NEAR && at < p->n_ops; at++) {
		struct evidence e;

		if (!same_kinds(p, at, p->n_ops, 1))
			continue;
		e = compare(p, at);
		if (e.wrong || !e.right || e.right < most ||
		    (e.right == most && um_predictor_distance(at, next) >= um_predictor_distance(best, next)))
			continue;
		most = e.right;
		best = at;
	}
	return best;
}

/* An op elsewhere in the past of which the latest one may be a repetition. `alike`: an op of the same kind that used
 * one of the tensors. 0: there is none. */
static uint64_t find_elsewhere(const struct um_predictor *p, uint64_t alike)
{
	for (int n = UM_PREDICTOR_CONTEXTS; n > 0 && !alike; n--) {
		uint64_t at = *bucket_of(p, n);

		if (at < p->n_ops && same_kinds(p, at, p->n_ops, n))
			return at;
	}
	return alike;
}

/* The latest op's match among those where it is expected; 0: there is none. `alike` as above. */
static uint64_t find_match(const struct um_predictor *p, uint64_t alike)
{
	uint64_t next = next_of_kind(p), match = find_begun(p, next);

	if (!match && next) {
		struct evidence e = compare(p, next);

		match = !e.wrong && (e.right || !alike) ? next : 0;
	}
	if (!match)
		match = find_near(p);
	return match || alike ? match : next;
}

/* The uses of op number `at` that are of the same tensor as those of `op`. */
static uint32_t shared_uses(const struct um_predictor *p, uint64_t at, const struct um_predictor_feed *op)
{
	uint64_t first = um_predictor_op_at(p, at)->first_use;
	uint32_t n = 0;

	for (uint32_t k = 0; k < op->n_uses; k++)
		n += um_predictor_use_at(p, first + k)->tensor == um_predictor_entry(p, op->uses[k].tensor);
	return n;
}

uint64_t um_predictor_find_alike(const struct um_predictor *p, const struct um_predictor_feed *op)
{
	uint64_t best = 0;
	uint32_t most = 0, looked = 0;

	for (uint32_t k = 0; k < op->n_uses && looked < MOST_ALIKE; k++) {
		uint32_t t = um_predictor_entry(p, op->uses[k].tensor), n;
		uint64_t at = t == UM_PREDICTOR_NOBODY ? 0 : um_predictor_use_at(p, p->tensors.at[t].last)->op;

		if (!at || at == best || um_predictor_op_at(p, at)->kind != op->kind ||
		    um_predictor_op_at(p, at)->n_uses != op->n_uses)
			continue;
		looked++;
		n = shared_uses(p, at, op);
		if (!best || n > most || (n == most && at > best)) {
			best = at;
			most = n;
		}
	}
	return best;
}

/* The tensors of the latest op take the parts of those of its match. `foretold`: the op that was expected, if it is of
 * the same kind, otherwise the match. */
static void take_parts(struct um_predictor *p, uint64_t foretold)
{
	const struct um_predictor_op *now = um_predictor_op_at(p, p->n_ops), *then = um_predictor_op_at(p, p->match),
				     *due = um_predictor_op_at(p, foretold);

	for (uint32_t k = 0; k < now->n_uses; k++) {
		struct um_predictor_use *u = um_predictor_use_at(p, now->first_use + k);
		const struct um_predictor_use *was = um_predictor_use_at(p, then->first_use + k);
		struct um_predictor_tensor *node = &p->tensors.at[was->tensor];
		const struct um_predictor_tensor *is = &p->tensors.at[u->tensor];
		const struct um_tensor *right =
			um_predictor_expected(p, &p->tensors.at[um_predictor_use_at(p, due->first_use + k)->tensor]);

		u->score = was->score;
		if (right == is->tensor)
			u->score += was->score < UM_SCORE_MOST;
		else if (right)
			u->score = 0;
		node->part = is->tensor;
		node->part_id = is->id;
		node->part_op = p->n_ops;
	}
}

/* Does the latest op belong to no place where it is expected, and may the next one be there again? Not if both are in
 * order at another place. */
static int is_stray(struct um_predictor *p, uint64_t elsewhere)
{
	uint64_t before = p->elsewhere;

	p->elsewhere = elsewhere;
	return p->match && p->strays < MOST_STRAYS && !(p->strays && elsewhere && elsewhere == before + 1);
}

/* The ops before the latest one that were matched with none are not in order anywhere: where others of their kind were
 * expected, the choice of their tensors is not. */
static void distrust_strays(struct um_predictor *p)
{
	for (uint32_t i = 0; i < p->strays; i++) {
		uint64_t number = p->n_ops - p->strays + i;
		const struct um_predictor_op *op = um_predictor_op_at(p, number);

		if (!(p->doubted >> i & 1) || !um_predictor_keeps(p, number))
			continue;
		for (uint32_t k = 0; k < op->n_uses; k++)
			um_predictor_use_at(p, op->first_use + k)->score = 0;
	}
}

/* The latest op is matched with this one, 0: with none. */
static void set_match(struct um_predictor *p, uint64_t match)
{
	uint64_t next = next_of_kind(p), before = p->match;

	if (match != p->elsewhere)
		distrust_strays(p);
	p->strays = 0;
	p->jumped = !match || match != p->match + 1;
	if (p->jumped && um_predictor_distance(match, p->match + 1) > p->reach / 2)
		p->pass = p->n_ops;
	p->far = match && before && um_predictor_distance(match, before + 1) > UM_PREDICTOR_NEAR;
	p->match = match;
	if (match)
		take_parts(p, next ? next : match);
	um_predictor_expect(p);
}

/* The latest op is matched with none: the next one is expected where it was. */
static void set_stray(struct um_predictor *p)
{
	p->doubted = (p->strays ? p->doubted : 0) | (uint32_t)(next_of_kind(p) != 0) << p->strays;
	p->strays++;
	p->jumped = p->far = 0;
	um_predictor_expect_stray(p);
}

/* Before the latest op came `strays` ops that are matched with none. The one before them was matched with `was` (0:
 * with none): does the match follow that? */
static void score_follower(struct um_predictor *p, uint64_t was, uint32_t strays)
{
	uint64_t number = p->n_ops - 1 - strays;
	struct um_predictor_op *op = um_predictor_op_at(p, number);

	if (!um_predictor_keeps(p, number))
		return;
	if (was)
		op->follower = p->jumped ? 0 : um_predictor_op_at(p, was)->follower;
	if (was && !p->jumped && !p->strays && !strays)
		op->follower += op->follower < UM_SCORE_MOST;
	for (; number < p->n_ops; number++) {
		op = um_predictor_op_at(p, number);
		op->fork = op->follower < UM_SCORE_SURE ? number : um_predictor_op_at(p, number - 1)->fork;
	}
}

void um_predictor_match(struct um_predictor *p, uint64_t alike)
{
	uint64_t match = find_match(p, alike), was = p->match;
	uint32_t strays = p->strays;

	if (match || !is_stray(p, find_elsewhere(p, alike)))
		set_match(p, match ? match : p->elsewhere);
	else
		set_stray(p);
	score_follower(p, was, strays);
	for (int n = 1; n <= UM_PREDICTOR_CONTEXTS; n++)
		*bucket_of(p, n) = p->n_ops;
	if (um_predictor_op_at(p, p->n_ops)->prefix) {
		p->begun[p->prefix % UM_PREDICTOR_BUCKETS] = p->n_ops;
		*turned_at(p) = p->n_ops;
	}
}
