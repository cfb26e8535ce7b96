/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor.c - matches the latest op with the past
 */
#include "replay/predictor.h"

#include <string.h>

#define NOBODY UINT32_MAX

#define SCORE_BEGIN 2 /* of a use that was never expected: it is trusted once */
#define SCORE_SURE 2
#define SCORE_MOST 3

#define REACH_OPS 1024 /* in which the reach decays to a third */

int um_predictor_init(struct um_predictor *p)
{
	int err = 0;

	memset(p, 0, sizeof *p);
	p->ops = calloc(UM_PREDICTOR_OPS, sizeof *p->ops);
	p->uses = calloc(UM_PREDICTOR_USES, sizeof *p->uses);
	for (int i = 0; i < UM_PREDICTOR_CONTEXTS; i++) {
		p->bucket[i] = calloc(UM_PREDICTOR_BUCKETS, sizeof *p->bucket[i]);
		err |= !p->bucket[i];
	}
	p->begun = calloc(UM_PREDICTOR_BUCKETS, sizeof *p->begun);
	p->next_bytes = calloc(UM_PREDICTOR_OPS, sizeof *p->next_bytes);
	p->spare = NOBODY;
	p->first = 1;
	err |= um_live_curve_init(&p->live);
	return err || !p->begun || !p->next_bytes || !p->ops || !p->uses ? -ENOMEM : 0;
}

void um_predictor_fini(struct um_predictor *p)
{
	free(p->ops);
	free(p->uses);
	for (int i = 0; i < UM_PREDICTOR_CONTEXTS; i++)
		free(p->bucket[i]);
	free(p->begun);
	free(p->next_bytes);
	um_live_curve_fini(&p->live);
	um_vec_fini(&p->tensors);
	memset(p, 0, sizeof *p);
}

static struct um_predictor_op *op_at(const struct um_predictor *p, uint64_t number)
{
	return &p->ops[number % UM_PREDICTOR_OPS];
}

static struct um_predictor_use *use_at(const struct um_predictor *p, uint64_t number)
{
	return &p->uses[number % UM_PREDICTOR_USES];
}

static int is_kept(const struct um_predictor *p, uint64_t op)
{
	return op >= p->first && op <= p->n_ops;
}

/* --- the past ----------------------------------------------------------------------------------------------------- */

/* The oldest op is forgotten, and with it the tensors that no kept op uses. */
static void drop_oldest(struct um_predictor *p)
{
	const struct um_predictor_op *op = op_at(p, p->first++);

	for (uint64_t i = op->first_use; i < op->first_use + op->n_uses; i++) {
		uint32_t t = use_at(p, i)->tensor;
		struct um_predictor_tensor *node = &p->tensors.at[t];

		if (node->last != i)
			continue;
		node->id.v = 0;
		node->spare = p->spare;
		p->spare = t;
	}
	if (p->match < p->first)
		p->match = 0;
}

static void forget(struct um_predictor *p)
{
	while (p->first <= p->n_ops)
		drop_oldest(p);
}

/* The entry of a live tensor, if it has one. */
static uint32_t known_entry(const struct um_predictor *p, const struct um_tensor *t)
{
	return t && t->predicted < p->tensors.n && p->tensors.at[t->predicted].id.v == t->id.v ? t->predicted : NOBODY;
}

/* The entry of a tensor (NULL: of one that was freed), NOBODY: out of memory. */
static uint32_t entry_of(struct um_predictor *p, struct um_tensor *t)
{
	uint32_t i = known_entry(p, t);

	if (i != NOBODY)
		return i;
	i = p->spare;
	if (i != NOBODY)
		p->spare = p->tensors.at[i].spare;
	else if (um_vec_push(&p->tensors, (struct um_predictor_tensor){0}))
		return NOBODY;
	else
		i = (uint32_t)p->tensors.n - 1;
	p->tensors.at[i] = (struct um_predictor_tensor){.tensor = t};
	if (t) {
		p->tensors.at[i].id = t->id;
		t->predicted = i;
	}
	return i;
}

/* When the ops before this one end. */
static uint64_t ends_before(const struct um_predictor *p, uint64_t number)
{
	const struct um_predictor_op *before = op_at(p, number - 1);

	return number > p->first ? before->begins + before->ns : 0;
}

static int add_use(struct um_predictor *p, const struct um_use *u)
{
	uint32_t t = entry_of(p, u->tensor);
	uint64_t number = p->n_uses + 1;
	struct um_predictor_tensor *node;

	if (t == NOBODY)
		return -ENOMEM;
	node = &p->tensors.at[t];
	node->bytes = u->tensor ? u->tensor->bytes : 0;
	if (node->last) {
		struct um_predictor_use *before = use_at(p, node->last);
		uint64_t gap = p->n_ops - before->op;

		before->next = number;
		if (gap)
			node->gap = node->gap ? (3 * node->gap + gap + 3) / 4 : gap;
	}
	*use_at(p, number) = (struct um_predictor_use){.off = u->off,
						       .bytes = u->bytes,
						       .touched = u->touched,
						       .again = node->last != 0,
						       .op = p->n_ops,
						       .tensor = t,
						       .score = SCORE_BEGIN};
	node->last = number;
	p->n_uses = number;
	return 0;
}

/* --- the match ---------------------------------------------------------------------------------------------------- */

/* Are the `n` kinds up to op `a` those up to op `b`? */
static int same_kinds(const struct um_predictor *p, uint64_t a, uint64_t b, int n)
{
	for (int i = 0; i < n; i++, a--, b--)
		if (!is_kept(p, a) || !is_kept(p, b) || op_at(p, a)->kind != op_at(p, b)->kind ||
		    op_at(p, a)->n_uses != op_at(p, b)->n_uses)
			return 0;
	return 1;
}

/* Where ops are listed that had the same kinds up to them: `n` kinds. */
static uint64_t *bucket_of(const struct um_predictor *p, int n)
{
	uint64_t h = (uint64_t)n;

	for (uint64_t i = p->n_ops; i >= p->first && p->n_ops - i < (uint64_t)n; i--)
		h = um_hash_u64(h, op_at(p, i)->kind);
	return &p->bucket[n - 1][h % UM_PREDICTOR_BUCKETS];
}

/* An earlier iteration may have begun as this one did, while that of the op after the match had other sizes. The latest
 * op's counterpart there; 0: there is none. */
static uint64_t find_begun(const struct um_predictor *p, uint64_t next)
{
	uint64_t prefix = op_at(p, p->n_ops)->prefix, at = p->begun[prefix % UM_PREDICTOR_BUCKETS];

	if (!prefix || (next && op_at(p, next)->prefix == prefix) || !is_kept(p, at) || op_at(p, at)->prefix != prefix)
		return 0;
	return at;
}

static const struct um_tensor *live(struct um_tensor_id id, const struct um_tensor *t)
{
	return t && id.v && t->id.v == id.v ? t : NULL;
}

/* The tensor that probably takes the part of this entry in the ops after the match. */
static const struct um_tensor *expected(const struct um_predictor *p, const struct um_predictor_tensor *node)
{
	const struct um_tensor *t = NULL;

	if (node->part_op && node->part_op > p->match && node->part_op >= p->pass)
		t = live(node->part_id, node->part);
	return t ? t : live(node->id, node->tensor);
}

/* How many of the latest op's uses are of another tensor than expected if it is matched with this op? Those that are
 * not sure do not count, nor do new tensors, which no op expects. */
static uint32_t wrong_tensors(const struct um_predictor *p, uint64_t match)
{
	const struct um_predictor_op *now = op_at(p, p->n_ops), *then = op_at(p, match);
	uint32_t n = 0;

	for (uint32_t k = 0; k < now->n_uses; k++) {
		const struct um_predictor_use *was = use_at(p, then->first_use + k),
					      *is = use_at(p, now->first_use + k);
		const struct um_tensor *t = expected(p, &p->tensors.at[was->tensor]);

		n += t && is->again && was->score >= SCORE_SURE && t != p->tensors.at[is->tensor].tensor;
	}
	return n;
}

/* `alike`: an op of the same kind that used one of the tensors, 0: none. */
static uint64_t find_match(const struct um_predictor *p, uint64_t alike)
{
	uint64_t next =
		p->match && p->match + 1 < p->n_ops && same_kinds(p, p->match + 1, p->n_ops, 1) ? p->match + 1 : 0;
	uint64_t begun = find_begun(p, next);

	if (begun)
		return begun;
	if (next && (alike <= next || !wrong_tensors(p, next) || wrong_tensors(p, alike)))
		return next;
	if (alike)
		return alike;
	for (int n = UM_PREDICTOR_CONTEXTS; n > 0 && !next; n--) {
		uint64_t at = *bucket_of(p, n);

		if (at < p->n_ops && same_kinds(p, at, p->n_ops, n))
			return at;
	}
	return next;
}

/* The latest op of this kind that used one of these tensors, 0: none. */
static uint64_t find_alike(const struct um_predictor *p, const struct um_predictor_feed *op)
{
	uint64_t best = 0;

	for (uint32_t k = 0; k < op->n_uses; k++) {
		uint32_t t = known_entry(p, op->uses[k].tensor);
		uint64_t at = t == NOBODY ? 0 : use_at(p, p->tensors.at[t].last)->op;

		if (at > best && op_at(p, at)->kind == op->kind && op_at(p, at)->n_uses == op->n_uses)
			best = at;
	}
	return best;
}

void um_predictor_begin(struct um_predictor *p)
{
	p->prefix = 0;
	p->n_prefix = 0;
}

/* The prefix of the iteration with this op; 0: it has become long. */
static uint64_t add_prefix(struct um_predictor *p, const struct um_predictor_feed *op)
{
	if (p->n_prefix == UM_PREDICTOR_PREFIX)
		return 0;
	p->n_prefix++;
	p->prefix = um_hash_u64(p->prefix, op->kind);
	for (uint32_t k = 0; k < op->n_uses; k++)
		p->prefix = um_hash_u64(p->prefix, op->uses[k].bytes);
	return p->prefix;
}

/* The tensors of the latest op take the parts of those of its match. */
static void take_parts(struct um_predictor *p)
{
	const struct um_predictor_op *now = op_at(p, p->n_ops), *then = op_at(p, p->match);

	for (uint32_t k = 0; k < now->n_uses; k++) {
		struct um_predictor_use *u = use_at(p, now->first_use + k);
		const struct um_predictor_use *was = use_at(p, then->first_use + k);
		struct um_predictor_tensor *node = &p->tensors.at[was->tensor];
		const struct um_predictor_tensor *is = &p->tensors.at[u->tensor];
		const struct um_tensor *right = expected(p, node);

		u->score = was->score;
		if (right == is->tensor)
			u->score += was->score < SCORE_MOST;
		else if (right)
			u->score = 0;
		node->part = is->tensor;
		node->part_id = is->id;
		node->part_op = p->n_ops;
	}
}

static uint64_t after_gap(const struct um_predictor *p, const struct um_predictor_tensor *node)
{
	return node->gap ? p->n_ops + node->gap : UM_PREDICTOR_UNKNOWN;
}

/* The op that probably uses the tensor of the latest op's use number k next. */
static uint64_t next_of_use(const struct um_predictor *p, uint32_t k)
{
	const struct um_predictor_use *now = use_at(p, op_at(p, p->n_ops)->first_use + k), *was, *next;
	const struct um_predictor_tensor *node = &p->tensors.at[now->tensor];

	if (!p->match)
		return UM_PREDICTOR_UNKNOWN;
	was = use_at(p, op_at(p, p->match)->first_use + k);
	if (!was->next && now->score < SCORE_SURE)
		return after_gap(p, node);
	if (!was->next)
		return live(p->tensors.at[was->tensor].id, p->tensors.at[was->tensor].tensor) ? UM_PREDICTOR_UNKNOWN
											      : UM_PREDICTOR_NEVER;
	next = use_at(p, was->next);
	if (next->score < SCORE_SURE) /* another tensor may take the part then */
		return after_gap(p, node);
	return p->n_ops + (next->op > was->op ? next->op - was->op : 1);
}

static void expect_next(struct um_predictor *p)
{
	const struct um_predictor_op *now = op_at(p, p->n_ops);
	uint64_t furthest = p->reach - p->reach / REACH_OPS, next;

	for (uint32_t k = 0; k < now->n_uses; k++) {
		next = next_of_use(p, k);
		p->tensors.at[use_at(p, now->first_use + k)->tensor].next = next;
		if (next < UM_PREDICTOR_UNKNOWN && next - p->n_ops > furthest)
			furthest = next - p->n_ops;
	}
	p->reach = furthest;
}

static int is_far(uint64_t a, uint64_t b, uint64_t ops)
{
	return (a > b ? a - b : b - a) > ops;
}

int um_predictor_op(struct um_predictor *p, const struct um_predictor_feed *op)
{
	uint64_t match, alike;

	if (op->n_uses > UM_PREDICTOR_USES / 2) {
		forget(p);
		return 0;
	}
	if (p->n_ops + 1 - p->first >= UM_PREDICTOR_OPS)
		drop_oldest(p);
	while (p->first <= p->n_ops && p->n_uses + op->n_uses - op_at(p, p->first)->first_use >= UM_PREDICTOR_USES)
		drop_oldest(p);
	alike = find_alike(p, op);
	p->n_ops++;
	*op_at(p, p->n_ops) = (struct um_predictor_op){.kind = op->kind,
						       .prefix = add_prefix(p, op),
						       .first_use = p->n_uses + 1,
						       .begins = ends_before(p, p->n_ops),
						       .ns = op->ns};
	um_live_curve_add(&p->live, p->n_ops, op->live);
	for (uint32_t k = 0; k < op->n_uses; k++) {
		if (add_use(p, &op->uses[k])) {
			forget(p);
			return -ENOMEM;
		}
		op_at(p, p->n_ops)->n_uses++;
	}
	match = find_match(p, alike);
	p->jumped = !match || match != p->match + 1;
	if (p->jumped && is_far(match, p->match + 1, p->reach / 2))
		p->pass = p->n_ops;
	p->match = match;
	if (match)
		take_parts(p);
	expect_next(p);
	for (int n = 1; n <= UM_PREDICTOR_CONTEXTS; n++)
		*bucket_of(p, n) = p->n_ops;
	if (op_at(p, p->n_ops)->prefix)
		p->begun[p->prefix % UM_PREDICTOR_BUCKETS] = p->n_ops;
	return 0;
}

/* --- the future --------------------------------------------------------------------------------------------------- */

const struct um_predictor_op *um_predictor_ahead(const struct um_predictor *p, uint64_t i)
{
	return p->match && i <= p->n_ops - p->match ? op_at(p, p->match + i) : NULL;
}

int um_predictor_use_of(const struct um_predictor *p, const struct um_predictor_op *op, uint32_t k,
			struct um_predicted_use *out)
{
	const struct um_predictor_use *u = use_at(p, op->first_use + k);
	const struct um_predictor_tensor *node = &p->tensors.at[u->tensor];
	const struct um_tensor *t = expected(p, node);

	if (!t)
		return 0;
	*out = (struct um_predicted_use){t, u->off, u->bytes, u->touched, u->score >= SCORE_SURE};
	if (!u->off && u->bytes == node->bytes && u->touched >= u->bytes)
		out->bytes = out->touched = t->bytes; /* the whole tensor, whatever its size is now */
	if (out->off >= t->bytes)
		return 0;
	if (out->bytes > t->bytes - out->off)
		out->bytes = t->bytes - out->off;
	return 1;
}

uint64_t um_predictor_next(const struct um_predictor *p, const struct um_tensor *t)
{
	uint32_t i = known_entry(p, t);

	return i == NOBODY || p->tensors.at[i].next <= p->n_ops ? UM_PREDICTOR_UNKNOWN : p->tensors.at[i].next;
}

void um_predictor_note_next(struct um_predictor *p, const struct um_tensor *t, uint64_t op)
{
	uint32_t i = known_entry(p, t);

	if (i != NOBODY && (op < p->tensors.at[i].next || p->tensors.at[i].next <= p->n_ops))
		p->tensors.at[i].next = op;
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
	return ops ? op_at(p, p->match + ops)->begins - op_at(p, p->match + 1)->begins : 0;
}

/* Adds the bytes that this op used before the peak and that are used again after it, by the distance of that use. */
static void add_next_bytes(struct um_predictor *p, uint64_t op, uint64_t peak, uint64_t most)
{
	const struct um_predictor_op *o = op_at(p, op);

	for (uint64_t i = o->first_use; i < o->first_use + o->n_uses; i++) {
		const struct um_predictor_use *u = use_at(p, i);
		uint64_t next = u->next ? use_at(p, u->next)->op : 0;

		if (next <= peak)
			continue;
		p->next_bytes[next - peak < most ? next - peak : most] += u->bytes;
	}
}

uint64_t um_predictor_furthest(struct um_predictor *p, uint64_t ops, uint64_t bytes)
{
	uint64_t at = p->match + ops, length = p->reach, sum = 0, i;
	uint64_t from = at > p->first + length ? at - length : p->first;
	uint64_t most = length < UM_PREDICTOR_OPS ? length : UM_PREDICTOR_OPS - 1;

	for (i = from; i <= at; i++)
		add_next_bytes(p, i, at, most);
	for (i = most; i > 0 && sum < bytes; i--)
		sum += p->next_bytes[i];
	memset(p->next_bytes, 0, (most + 1) * sizeof *p->next_bytes);
	return p->n_ops + ops + i + 1;
}
