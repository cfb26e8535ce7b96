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
	p->spare = NOBODY;
	p->first = 1;
	return err || !p->ops || !p->uses ? -ENOMEM : 0;
}

void um_predictor_fini(struct um_predictor *p)
{
	free(p->ops);
	free(p->uses);
	for (int i = 0; i < UM_PREDICTOR_CONTEXTS; i++)
		free(p->bucket[i]);
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
						       .op = p->n_ops,
						       .tensor = t,
						       .score = SCORE_BEGIN,
						       .first = !node->last};
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

static const struct um_tensor *live(struct um_tensor_id id, const struct um_tensor *t)
{
	return t && id.v && t->id.v == id.v ? t : NULL;
}

/* The tensor that probably takes the part of this entry in the ops after the match. */
static const struct um_tensor *expected(const struct um_predictor *p, const struct um_predictor_tensor *node)
{
	const struct um_tensor *t = NULL;

	if (node->part_op && node->part_op > p->match)
		t = live(node->part_id, node->part);
	return t ? t : live(node->id, node->tensor);
}

/* How many of the latest op's uses are of another tensor than expected if it is matched with this op? Those that are
 * not sure do not count. */
static uint32_t wrong_tensors(const struct um_predictor *p, uint64_t match)
{
	const struct um_predictor_op *now = op_at(p, p->n_ops), *then = op_at(p, match);
	uint32_t n = 0;

	for (uint32_t k = 0; k < now->n_uses; k++) {
		const struct um_predictor_use *was = use_at(p, then->first_use + k);
		const struct um_tensor *t = expected(p, &p->tensors.at[was->tensor]);

		n += t && was->score >= SCORE_SURE && t != p->tensors.at[use_at(p, now->first_use + k)->tensor].tensor;
	}
	return n;
}

/* `alike`: an op of the same kind that used one of the tensors, 0: none. */
static uint64_t find_match(const struct um_predictor *p, uint64_t alike)
{
	uint64_t next =
		p->match && p->match + 1 < p->n_ops && same_kinds(p, p->match + 1, p->n_ops, 1) ? p->match + 1 : 0;

	if (next && (alike <= p->match + 1 || !wrong_tensors(p, next) || wrong_tensors(p, alike)))
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
	*op_at(p, p->n_ops) = (struct um_predictor_op){op->kind, p->n_uses + 1, op->ns, 0};
	for (uint32_t k = 0; k < op->n_uses; k++) {
		if (add_use(p, &op->uses[k])) {
			forget(p);
			return -ENOMEM;
		}
		op_at(p, p->n_ops)->n_uses++;
	}
	match = find_match(p, alike);
	p->jumped = !match || match != p->match + 1;
	p->match = match;
	if (match)
		take_parts(p);
	for (int n = 1; n <= UM_PREDICTOR_CONTEXTS; n++)
		*bucket_of(p, n) = p->n_ops;
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

uint64_t um_predictor_born(const struct um_predictor *p, const struct um_predictor_op *op)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < op->n_uses; k++) {
		const struct um_predictor_use *u = use_at(p, op->first_use + k);
		const struct um_predictor_tensor *node = &p->tensors.at[u->tensor];

		if (u->first && !live(node->id, node->tensor))
			bytes += node->bytes;
	}
	return bytes;
}

uint64_t um_predictor_next_use(const struct um_predictor *p, uint32_t k)
{
	const struct um_predictor_use *now = use_at(p, op_at(p, p->n_ops)->first_use + k), *was, *next;
	const struct um_predictor_tensor *node = &p->tensors.at[now->tensor];

	if (!p->match)
		return UM_PREDICTOR_UNKNOWN;
	was = use_at(p, op_at(p, p->match)->first_use + k);
	if (!was->next && now->score < SCORE_SURE)
		return node->gap ? node->gap : UM_PREDICTOR_UNKNOWN;
	if (!was->next)
		return live(p->tensors.at[was->tensor].id, p->tensors.at[was->tensor].tensor) ? UM_PREDICTOR_UNKNOWN
											      : UM_PREDICTOR_NEVER;
	next = use_at(p, was->next);
	if (next->score < SCORE_SURE) /* another tensor may take the part then */
		return node->gap ? node->gap : UM_PREDICTOR_UNKNOWN;
	return next->op - was->op ? next->op - was->op : 1;
}
