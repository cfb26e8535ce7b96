/* SPDX-License-Identifier: Apache-2.0
 *
 * learn.h - turns finished iterations into a schedule
 *
 * in    finished iterations, one after the other
 * out   the schedule that the next iteration is expected to follow
 * owns  facts of the previous iteration; what two like ones in a row have shown, for eight kinds of them
 *
 * Slots: a tensor is identified by its first appearance: born in this iteration (birth order), born in the previous one
 * (birth order there), or older. A tensor born in one iteration and freed in the next is one slot (birth >= 0, death <=
 * birth) if its two lives do not overlap, otherwise two. `carry` and `bound` say which slot each tensor has when the
 * next iteration begins; buffers that swap roles every iteration are learned from two iterations (the tensor bound to
 * slot a now was bound to slot b before: carry[a] = b). After one iteration the schedule is a guess (UM_SLOT_GUESSED
 * for births that were not freed). A schedule is built on demand. Iteration path: linear.
 */
#ifndef UM_LEARN_LEARN_H
#define UM_LEARN_LEARN_H

#include "model/iteration.h"
#include "model/schedule.h"

struct um_learner {
	void *impl;
	double other; /* share of the latest iteration's bytes in older tensors that the one before did not have */
	int observed; /* the one before did the same, or two did before: which tensor takes which slot next was seen */
	uint64_t key; /* see um_learner_know_key */
};

int um_learner_init(struct um_learner *l); /* 0 or -ENOMEM */
void um_learner_fini(struct um_learner *l);

/* Takes a finished iteration. 0, -ENOMEM, -ENODATA (the iteration is incomplete or has no ops). */
int um_learner_feed(struct um_learner *l, const struct um_iteration *it);

/* Both functions get the iteration that was fed last, unchanged. 0 or -ENOMEM. */

/* Sets l->key to the key of the schedule that iteration it->n + 1 is expected to follow: a plan holds for each schedule
 * of its key. It covers the signature and the slots' births, deaths, carry and flags, but not the tensors bound to
 * them. Builds the schedule only if the facts of the iteration are new. */
int um_learner_know_key(struct um_learner *l, const struct um_iteration *it);
/* Builds that schedule, and sets l->key. `out` is initialised and empty. */
int um_learner_build(struct um_learner *l, const struct um_iteration *it, struct um_schedule *out);

#endif
