/* SPDX-License-Identifier: Apache-2.0
 *
 * iteration.h - the recorded events between two iteration marks
 *
 * Tensors are numbered in order of first appearance (birth, or first use in an op), so that two iterations that do the
 * same have the same numbers whatever the addresses. Everything but id, addr, born_iter and facts of earlier iterations
 * is compared. Positions are op indices: position i is "before op i", n_ops is "after the last".
 */
#ifndef UM_MODEL_ITERATION_H
#define UM_MODEL_ITERATION_H

#include "base/hash.h"
#include "base/vec.h"
#include "model/event.h"

#define UM_NOWHERE (-1)

struct um_iter_tensor {
	struct um_tensor_id id;
	uint64_t addr;
	uint64_t bytes;
	const char *name; /* borrowed from the recorder or from the iteration's strings; may be NULL */
	enum um_role role;
	unsigned flags; /* enum um_tensor_flag */
	uint64_t born_iter; /* == the iteration's n if born here */
	uint32_t born_ord;
	int32_t birth; /* position of its birth, UM_NOWHERE if older */
	int32_t death; /* position of its free, UM_NOWHERE if alive at the end */
};

struct um_iter_use {
	uint32_t tensor; /* index into tensors */
	uint32_t access; /* enum um_access */
	uint64_t off, bytes, touched;
	int dead_after; /* umadv_dead was called for the tensor between this use and the next one */
};

struct um_iter_op {
	const char *name; /* borrowed, as above */
	uint64_t hash; /* of name, stream, uses and sizes: address-free */
	uint32_t first_use, n_uses;
	struct um_cost cost;
	int32_t stream;
	char phase;
	uint8_t relaunchable;
	uint8_t collective; /* declared or by its name */
	uint32_t first_relaunch, n_relaunch; /* into relaunch[] */
	uint32_t first_ws, n_ws; /* into ws[] */
};

/* A tensor born in the previous iteration (not in set-up) and freed in this one, used in it or not. */
struct um_iter_free {
	uint32_t born_ord;
	uint64_t bytes;
	int32_t pos;
};

/* An older tensor that was freed in this iteration without a use in it: a variable of the program held it until then.
 * One of less than a block is left out. */
struct um_iter_idle {
	struct um_tensor_id id;
	uint64_t bytes;
	int32_t pos;
};

/* A tensor of this iteration lies inside another live tensor (one entry for each enclosing tensor, innermost first). */
struct um_iter_nest {
	uint32_t inner; /* index into tensors */
	struct um_tensor_id outer; /* may be a tensor that this iteration does not use */
	uint64_t off; /* of the inner tensor, from the start of the outer one */
};

struct um_iteration {
	uint64_t n; /* number of the iteration, from 1 (0 is set-up) */
	uint64_t signature; /* over births (bytes) and ops, in order */
	UM_VEC(struct um_iter_tensor) tensors;
	UM_VEC(struct um_iter_op) ops;
	UM_VEC(struct um_iter_use) uses;
	UM_VEC(uint32_t) relaunch; /* tensor indices */
	UM_VEC(struct um_workspace) ws; /* offered by ops */
	UM_VEC(uint32_t) births; /* tensor indices in birth order */
	UM_VEC(struct um_iter_free) late_frees; /* in order of the frees */
	UM_VEC(struct um_iter_idle) idle_frees; /* of tensors that are not in `tensors` */
	UM_VEC(struct um_iter_nest) nests;
	UM_VEC(char *) strings; /* owned; empty in iterations from the recorder */
	int incomplete; /* an allocation failed while recording: do not learn from it */
};

void um_iteration_init(struct um_iteration *it);
void um_iteration_clear(struct um_iteration *it); /* empties it, keeps its memory */
void um_iteration_fini(struct um_iteration *it);

/* Fingerprints, folded step by step. Of an op: its name (um_hash_str) and stream, then each use, with `tensor` being
 * the tensor's number in the iteration; um_op_hash_end last. Of an iteration, from 0: each birth and each op, in order,
 * distinguished by a tag word. Frees are not included. Op path: inline. */
static inline uint64_t um_op_hash(uint64_t name_hash, int32_t stream)
{
	return um_hash_fold(name_hash, (uint32_t)stream);
}

static inline uint64_t um_op_hash_use(uint64_t h, uint32_t tensor, uint64_t tensor_bytes, const struct um_use *use)
{
	h = um_hash_fold(h, (uint64_t)tensor << 8 | use->access);
	h = um_hash_fold(h, tensor_bytes);
	h = um_hash_fold(h, use->off);
	return um_hash_fold(h, use->bytes);
}

/* Of what an op offers, after its uses. Times vary. */
static inline uint64_t um_op_hash_ws(uint64_t h, const struct um_workspace *ws, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		h = um_hash_fold(h, ws[i].bytes);
	return h;
}

static inline uint64_t um_op_hash_end(uint64_t h, uint32_t n_uses)
{
	return um_hash_u64(h, n_uses);
}

static inline uint64_t um_signature_birth(uint64_t signature, uint64_t bytes)
{
	return um_hash_u64(um_hash_fold(signature, 'b'), bytes);
}

static inline uint64_t um_signature_op(uint64_t signature, uint64_t op_hash)
{
	return um_hash_u64(um_hash_fold(signature, 'o'), op_hash);
}

#endif
