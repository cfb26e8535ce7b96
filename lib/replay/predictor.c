/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor.c - keeps the latest ops and their uses
 */
#include "replay/predictor_state.h"

#include <string.h>

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
	p->turned = calloc(UM_PREDICTOR_BUCKETS, sizeof *p->turned);
	p->next_bytes = calloc(UM_PREDICTOR_OPS, sizeof *p->next_bytes);
	p->spare = UM_PREDICTOR_NOBODY;
	p->first = 1;
	err |= um_live_curve_init(&p->live);
	return err || !p->begun || !p->turned || !p->next_bytes || !p->ops || !p->uses ? -ENOMEM : 0;
}

void um_predictor_fini(struct um_predictor *p)
{
	free(p->ops);
	free(p->uses);
	for (int i = 0; i < UM_PREDICTOR_CONTEXTS; i++)
		free(p->bucket[i]);
	free(p->begun);
	free(p->turned);
	free(p->next_bytes);
	um_live_curve_fini(&p->live);
	um_vec_fini(&p->tensors);
	memset(p, 0, sizeof *p);
}

/* The oldest op is forgotten, and with it the tensors that no kept op uses. */
static void drop_oldest(struct um_predictor *p)
{
	const struct um_predictor_op *op = um_predictor_op_at(p, p->first++);

	for (uint64_t i = op->first_use; i < op->first_use + op->n_uses; i++) {
		uint32_t t = um_predictor_use_at(p, i)->tensor;
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
	p->strays = 0;
}

/* The entry of a tensor (NULL: of one that was freed), UM_PREDICTOR_NOBODY: out of memory. */
static uint32_t entry_of(struct um_predictor *p, struct um_tensor *t)
{
	uint32_t i = um_predictor_entry(p, t);

	if (i != UM_PREDICTOR_NOBODY)
		return i;
	i = p->spare;
	if (i != UM_PREDICTOR_NOBODY)
		p->spare = p->tensors.at[i].spare;
	else if (um_vec_push(&p->tensors, (struct um_predictor_tensor){0}))
		return UM_PREDICTOR_NOBODY;
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
	const struct um_predictor_op *before = um_predictor_op_at(p, number - 1);

	return number > p->first ? before->begins + before->ns : 0;
}

static int add_use(struct um_predictor *p, const struct um_use *u)
{
	uint32_t t = entry_of(p, u->tensor);
	uint64_t number = p->n_uses + 1;
	struct um_predictor_tensor *node;

	if (t == UM_PREDICTOR_NOBODY)
		return -ENOMEM;
	node = &p->tensors.at[t];
	node->bytes = u->tensor ? u->tensor->bytes : 0;
	if (node->last) {
		struct um_predictor_use *before = um_predictor_use_at(p, node->last);
		uint64_t gap = p->n_ops - before->op;

		before->next = number;
		if (gap)
			node->gap = node->gap ? (3 * node->gap + gap + 3) / 4 : gap;
	}
	*um_predictor_use_at(p, number) =
		(struct um_predictor_use){.off = u->off,
					  .bytes = u->bytes,
					  .touched = u->touched,
					  .before = node->last,
					  .again = node->last != 0,
					  .overwrites = !(u->access & UM_READ) && u->touched >= u->bytes,
					  .op = p->n_ops,
					  .tensor = t,
					  .score = UM_SCORE_BEGIN};
	node->last = number;
	p->n_uses = number;
	return 0;
}

void um_predictor_begin(struct um_predictor *p)
{
	p->iteration++;
	p->n_ended[1] = p->n_ended[0];
	p->n_ended[0] = p->n_ops;
	p->before = p->prefix;
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

int um_predictor_op(struct um_predictor *p, const struct um_predictor_feed *op)
{
	uint64_t alike;

	if (op->n_uses > UM_PREDICTOR_USES / 2) {
		forget(p);
		return 0;
	}
	if (p->n_ops + 1 - p->first >= UM_PREDICTOR_OPS)
		drop_oldest(p);
	while (p->first <= p->n_ops &&
	       p->n_uses + op->n_uses - um_predictor_op_at(p, p->first)->first_use >= UM_PREDICTOR_USES)
		drop_oldest(p);
	alike = um_predictor_find_alike(p, op);
	p->n_ops++;
	*um_predictor_op_at(p, p->n_ops) = (struct um_predictor_op){.kind = op->kind,
								    .prefix = add_prefix(p, op),
								    .first_use = p->n_uses + 1,
								    .begins = ends_before(p, p->n_ops),
								    .ns = op->ns,
								    .iteration = p->iteration,
								    .segment = p->segment,
								    .follower = UM_SCORE_BEGIN};
	um_live_curve_add(&p->live, p->n_ops, op->live);
	for (uint32_t k = 0; k < op->n_uses; k++) {
		if (add_use(p, &op->uses[k])) {
			forget(p);
			return -ENOMEM;
		}
		um_predictor_op_at(p, p->n_ops)->n_uses++;
	}
	um_predictor_match(p, alike);
	return 0;
}
