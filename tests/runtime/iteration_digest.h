/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration_digest.h - a hash of all that is recorded of an iteration, but for addresses
 */
#ifndef UM_TESTS_ITERATION_DIGEST_H
#define UM_TESTS_ITERATION_DIGEST_H

#include "model/iteration.h"

static inline uint64_t iteration_digest(uint64_t h, const struct um_iteration *it)
{
	h = um_hash_fold(h, it->signature);
	h = um_hash_fold(h, (uint64_t)it->incomplete);
	for (size_t i = 0; i < it->tensors.n; i++) {
		const struct um_iter_tensor *t = &it->tensors.at[i];

		h = um_hash_fold(h, t->id.v);
		h = um_hash_fold(h, t->bytes);
		h = um_hash_fold(h, t->flags);
		h = um_hash_fold(h, (uint32_t)t->birth);
		h = um_hash_fold(h, (uint32_t)t->death);
	}
	for (size_t i = 0; i < it->ops.n; i++) {
		const struct um_iter_op *o = &it->ops.at[i];

		h = um_hash_fold(h, um_hash_str(o->name));
		h = um_hash_fold(h, o->hash);
		h = um_hash_fold(h, (uint64_t)o->first_use << 32 | o->n_uses);
		h = um_hash_fold(h, o->cost.ns);
		h = um_hash_fold(h, (uint32_t)o->stream);
		h = um_hash_fold(h, (uint64_t)o->phase << 8 | o->relaunchable);
		h = um_hash_fold(h, (uint64_t)o->first_relaunch << 32 | o->n_relaunch);
	}
	for (size_t i = 0; i < it->uses.n; i++) {
		const struct um_iter_use *u = &it->uses.at[i];

		h = um_hash_fold(h, (uint64_t)u->tensor << 8 | u->access);
		h = um_hash_fold(h, u->off);
		h = um_hash_fold(h, u->bytes);
		h = um_hash_fold(h, u->touched);
		h = um_hash_fold(h, (uint64_t)u->dead_after);
	}
	for (size_t i = 0; i < it->relaunch.n; i++)
		h = um_hash_fold(h, it->relaunch.at[i]);
	for (size_t i = 0; i < it->births.n; i++)
		h = um_hash_fold(h, it->births.at[i]);
	return h;
}

#endif
