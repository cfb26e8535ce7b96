/* SPDX-License-Identifier: Apache-2.0 */
#include "model/iteration.h"

#include "base/hash.h"

void um_iteration_init(struct um_iteration *it)
{
	memset(it, 0, sizeof *it);
}

static void strings_free(struct um_iteration *it)
{
	for (size_t i = 0; i < it->strings.n; i++)
		free(it->strings.at[i]);
	um_vec_clear(&it->strings);
}

void um_iteration_clear(struct um_iteration *it)
{
	strings_free(it);
	um_vec_clear(&it->tensors);
	um_vec_clear(&it->ops);
	um_vec_clear(&it->uses);
	um_vec_clear(&it->relaunch);
	um_vec_clear(&it->births);
	um_vec_clear(&it->late_frees);
	um_vec_clear(&it->nests);
	it->n = 0;
	it->signature = 0;
	it->incomplete = 0;
}

void um_iteration_fini(struct um_iteration *it)
{
	strings_free(it);
	um_vec_fini(&it->strings);
	um_vec_fini(&it->tensors);
	um_vec_fini(&it->ops);
	um_vec_fini(&it->uses);
	um_vec_fini(&it->relaunch);
	um_vec_fini(&it->births);
	um_vec_fini(&it->late_frees);
	um_vec_fini(&it->nests);
	um_iteration_init(it);
}

uint64_t um_op_hash(uint64_t name_hash, int32_t stream)
{
	return um_hash_u64(name_hash, (uint32_t)stream);
}

uint64_t um_op_hash_use(uint64_t h, uint32_t tensor, uint64_t tensor_bytes, const struct um_use *use)
{
	h = um_hash_u64(h, tensor);
	h = um_hash_u64(h, tensor_bytes);
	h = um_hash_u64(h, use->off);
	h = um_hash_u64(h, use->bytes);
	return um_hash_u64(h, use->access);
}

/* A birth and an op are told apart by the word that goes first. */
uint64_t um_signature_birth(uint64_t signature, uint64_t bytes)
{
	return um_hash_u64(um_hash_u64(signature, 'b'), bytes);
}

uint64_t um_signature_op(uint64_t signature, uint64_t op_hash)
{
	return um_hash_u64(um_hash_u64(signature, 'o'), op_hash);
}
