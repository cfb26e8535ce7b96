/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor_state.h - declarations shared by the files of predictor.h (private to them)
 *
 *     predictor.c        ops as they come: what is kept of them
 *     predictor_match.c  the earlier op that the latest one repeats
 *     predictor_next.c   what happens to tensors next; the coming ops
 *     predictor_jump.c   when tensors are used next as the match moves elsewhere
 */
#ifndef UM_REPLAY_PREDICTOR_STATE_H
#define UM_REPLAY_PREDICTOR_STATE_H

#include "replay/predictor.h"

#define UM_PREDICTOR_NOBODY UINT32_MAX /* instead of an entry */

#define UM_SCORE_BEGIN 2 /* of a use that was never expected: it is trusted once */
#define UM_SCORE_SURE 2
#define UM_SCORE_MOST 3

#define UM_PREDICTOR_NEAR 16 /* ops within which some are dropped, inserted or exchanged */

static inline struct um_predictor_op *um_predictor_op_at(const struct um_predictor *p, uint64_t number)
{
	return &p->ops[number % UM_PREDICTOR_OPS];
}

static inline struct um_predictor_use *um_predictor_use_at(const struct um_predictor *p, uint64_t number)
{
	return &p->uses[number % UM_PREDICTOR_USES];
}

static inline int um_predictor_keeps(const struct um_predictor *p, uint64_t op)
{
	return op >= p->first && op <= p->n_ops;
}

/* The entry of a live tensor, if it has one. */
static inline uint32_t um_predictor_entry(const struct um_predictor *p, const struct um_tensor *t)
{
	return t && t->predicted < p->tensors.n && p->tensors.at[t->predicted].id.v == t->id.v ? t->predicted
											       : UM_PREDICTOR_NOBODY;
}

static inline const struct um_tensor *um_predictor_live(struct um_tensor_id id, const struct um_tensor *t)
{
	return t && id.v && t->id.v == id.v ? t : NULL;
}

/* The tensor that probably takes the part of this entry in the ops after the match. */
static inline const struct um_tensor *um_predictor_expected(const struct um_predictor *p,
							    const struct um_predictor_tensor *node)
{
	const struct um_tensor *t = NULL;

	if (node->part_op && node->part_op > p->match && node->part_op >= p->pass)
		t = um_predictor_live(node->part_id, node->part);
	return t ? t : um_predictor_live(node->id, node->tensor);
}

/* The op after which the tensor of this use was freed; 0: it was not. */
static inline uint64_t um_predictor_freed_after(const struct um_predictor *p, const struct um_predictor_use *u)
{
	const struct um_predictor_tensor *node = &p->tensors.at[u->tensor];

	return um_predictor_live(node->id, node->tensor) ? 0 : node->freed;
}

static inline uint64_t um_predictor_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Of the ops of this kind that were the last to use one of its tensors, the one that used most of them; of several, the
 * latest. 0: none. Called before the op is added. */
uint64_t um_predictor_find_alike(const struct um_predictor *p, const struct um_predictor_feed *op);
/* Matches the op that was just added. `alike` as above. */
void um_predictor_match(struct um_predictor *p, uint64_t alike);

/* Sets what happens next to the tensors of the latest op: it was matched, or not. */
void um_predictor_expect(struct um_predictor *p);
void um_predictor_expect_stray(struct um_predictor *p);

/* The use of the same tensor after this one, of those that touch the same part; NULL: there is none yet. */
const struct um_predictor_use *um_predictor_next_part(const struct um_predictor *p, const struct um_predictor_use *u);

#endif
