/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor_jump.c - the match moves elsewhere, as the program does not go on as it did there: what was expected of
 * tensors is not
 */
#include "replay/predictor_state.h"

#define MOST_USES 256 /* of a tensor since the match that are looked at */

/* What happens to the tensor next if its latest use, before the match moved, repeats the one that comes as long before
 * the match. Op 0: that is another op, or nothing is known; with `freed`: the tensor should have been freed by now. */
static struct um_predicted_next next_as_there(const struct um_predictor *p, const struct um_predictor_tensor *node)
{
	uint64_t number = um_predictor_use_at(p, node->last)->op, lag = p->n_ops - p->match, there = number - lag;
	const struct um_predictor_op *op = um_predictor_op_at(p, number), *was = um_predictor_op_at(p, there);
	const struct um_predictor_use *use, *next;
	uint64_t then;

	if (number <= lag || !um_predictor_keeps(p, there) || was->kind != op->kind || was->n_uses != op->n_uses)
		return (struct um_predicted_next){.op = 0};
	use = um_predictor_use_at(p, was->first_use + (node->last - op->first_use));
	next = um_predictor_next_part(p, use);
	then = next ? next->op : um_predictor_freed_after(p, use);
	return (struct um_predicted_next){.op = then > p->match ? then + lag : 0, .freed = !next && then};
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

struct um_predicted_next um_predictor_rematch(struct um_predictor *p, uint32_t entry, uint64_t until)
{
	const struct um_predicted_next as_before = {.op = 0};
	struct um_predictor_tensor *node = &p->tensors.at[entry];
	struct um_predicted_next next;

	if (!um_predictor_live(node->id, node->tensor) || node->next.op > until ||
	    um_predictor_use_at(p, node->last)->bytes < node->bytes) /* its parts are used at different times */
		return as_before;
	next = next_as_there(p, node);
	if (!next.op && !next.freed)
		next.op = first_after_match(p, node);
	if (!next.op || (next.op == UM_PREDICTOR_UNKNOWN && until != next.op)) /* no gap: that stands */
		return as_before;
	node->next = next;
	return next;
}
