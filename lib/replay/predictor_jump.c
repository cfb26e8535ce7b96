/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor_jump.c - the match moves elsewhere, as the program does not go on as it did there: what was expected of
 * tensors is not
 */
#include "replay/predictor_state.h"

#define MOST_USES 256 /* of a tensor since the match that are looked at */

/* When the tensor is used next if its latest use, before the match moved, repeats the one that comes as long before the
 * match. 0: that is another op, or nothing is known. */
static uint64_t next_as_there(const struct um_predictor *p, const struct um_predictor_tensor *node)
{
	uint64_t number = um_predictor_use_at(p, node->last)->op, lag = p->n_ops - p->match, there = number - lag;
	const struct um_predictor_op *op = um_predictor_op_at(p, number), *was = um_predictor_op_at(p, there);
	const struct um_predictor_use *next;

	if (number <= lag || !um_predictor_keeps(p, there) || was->kind != op->kind || was->n_uses != op->n_uses)
		return 0;
	next = um_predictor_next_part(p, um_predictor_use_at(p, was->first_use + (node->last - op->first_use)));
	return next && next->op > p->match ? next->op + lag : 0;
}

/* When the tensor is used next if ops go on as they did after the match: its first use there. 0: not known. */
static uint64_t first_after_match(const struct um_predictor *p, const struct um_predictor_tensor *node)
{
	uint64_t oldest = um_predictor_op_at(p, p->first)->first_use, at = node->last, op = 0;

	for (int i = 0; at >= oldest && um_predictor_use_at(p, at)->op > p->match; i++) {
		if (i == MOST_USES)
			return 0;
		if (um_predictor_use_at(p, at)->op < p->n_ops)
			op = um_predictor_use_at(p, at)->op;
		at = um_predictor_use_at(p, at)->before;
	}
	return op ? op + (p->n_ops - p->match) : UM_PREDICTOR_UNKNOWN;
}

uint64_t um_predictor_rematch(struct um_predictor *p, uint32_t entry, uint64_t until)
{
	struct um_predictor_tensor *node = &p->tensors.at[entry];
	uint64_t op;

	if (!um_predictor_live(node->id, node->tensor) || node->next.op > until ||
	    um_predictor_use_at(p, node->last)->bytes < node->bytes) /* its parts are used at different times */
		return 0;
	op = next_as_there(p, node);
	if (!op)
		op = first_after_match(p, node);
	if (op == UM_PREDICTOR_UNKNOWN && until != op) /* without a gap, the expectation stands */
		return 0;
	if (op)
		node->next = (struct um_predicted_next){.op = op};
	return op;
}
