/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/iteration_facts.h"

/* Born in set-up, in the previous iteration, in this one, or otherwise. */
static uint64_t age_of(const struct um_iter_tensor *t, const struct um_iteration *it)
{
	return !t->born_iter ? 1 : t->born_iter + 1 == it->n ? 2 : t->born_iter == it->n ? 3 : 0;
}

/* Do both number their tensors alike? */
static int is_like(const struct um_iteration *it, const struct um_previous_iteration *past)
{
	return past->known && past->n + 1 == it->n && past->signature == it->signature;
}

static uint64_t fold_tensors(uint64_t h, const struct um_iteration *it, const struct um_previous_iteration *past)
{
	int like = is_like(it, past);

	for (size_t i = 0; i < it->tensors.n; i++) {
		const struct um_iter_tensor *t = &it->tensors.at[i];

		h = um_hash_fold(h, t->bytes);
		h = um_hash_fold(h, (uint64_t)(uint32_t)t->birth << 32 | (uint32_t)t->death);
		h = um_hash_fold(h, (uint64_t)t->flags << 40 | age_of(t, it) << 32 | t->born_ord);
		if (t->birth == UM_NOWHERE)
			h = um_hash_fold(h, like ? um_previous_iteration_find(past, t->id) : UM_NO_NUMBER);
	}
	return um_hash_fold(h, it->tensors.n);
}

static uint64_t fold_ops(uint64_t h, const struct um_iteration *it)
{
	for (size_t i = 0; i < it->uses.n; i++)
		h = um_hash_fold(h, it->uses.at[i].touched << 1 | (it->uses.at[i].dead_after != 0));
	for (size_t i = 0; i < it->ops.n; i++)
		h = um_hash_fold(h, (uint64_t)it->ops.at[i].relaunchable << 32 | it->ops.at[i].n_relaunch);
	for (size_t i = 0; i < it->relaunch.n; i++)
		h = um_hash_fold(h, it->relaunch.at[i]);
	return um_hash_fold(h, it->ops.n);
}

uint64_t um_iteration_facts(const struct um_iteration *it, const struct um_previous_iteration *past,
			    const struct um_previous_iteration *now)
{
	uint64_t h = fold_ops(fold_tensors(it->signature, it, past), it);

	for (size_t i = 0; i < it->late_frees.n; i++) {
		const struct um_iter_free *f = &it->late_frees.at[i];

		h = um_hash_fold(h, (uint64_t)f->born_ord << 32 | (uint32_t)f->pos);
		h = um_hash_fold(h, f->bytes);
	}
	for (size_t i = 0; i < it->idle_frees.n; i++) {
		const struct um_iter_idle *f = &it->idle_frees.at[i];
		uint32_t was = is_like(it, past) ? um_previous_iteration_find(past, f->id) : UM_NO_NUMBER;

		if (was == UM_NO_NUMBER)
			continue; /* the schedule has no slot for it */
		h = um_hash_fold(h, (uint64_t)was << 32 | (uint32_t)f->pos);
		h = um_hash_fold(h, f->bytes);
	}
	for (size_t i = 0; i < it->nests.n; i++) {
		const struct um_iter_nest *nest = &it->nests.at[i];

		h = um_hash_fold(h, (uint64_t)nest->inner << 32 | um_previous_iteration_find(now, nest->outer));
		h = um_hash_fold(h, nest->off);
	}
	return um_hash_u64(h, it->late_frees.n << 32 | it->nests.n);
}
