/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor.h - a live tensor
 *
 * Owned by record/registry, which creates and destroys it. Guarded by the context's lock.
 */
#ifndef UM_MODEL_TENSOR_H
#define UM_MODEL_TENSOR_H

#include "base/tree.h"
#include "model/event.h"

enum um_tensor_flag {
	UM_TENSOR_ADOPTED = 1, /* memory of the program: its place is not chosen by the plan */
	UM_TENSOR_TRANSIENT = 2, /* in each iteration written before it is read */
	UM_TENSOR_UNMANAGED = 4, /* role comm: not managed memory, no hints */
	UM_TENSOR_DEAD = 8, /* declared dead, and not used by an op since */
	UM_TENSOR_JOINT = 64, /* contexts of other devices use it, too: unmanaged in this one */
	UM_TENSOR_WORKSPACE = 32, /* of umadv_workspace: one op uses it, and no iteration records it */
	UM_TENSOR_AGAIN = 16 /* an op that is launched again will write its content anew: it may be discarded */
};

struct um_tensor {
	struct um_tree_node node; /* registry: ordered by addr */
	struct um_tensor *parent; /* the live tensor that contains this one, or NULL */
	struct um_tensor_id id;
	uint64_t addr;
	uint64_t bytes;
	char *name; /* owned; may be NULL */
	enum um_role role;
	unsigned flags; /* enum um_tensor_flag */
	uint64_t born_iter; /* the iteration of its birth; 0: before the first umadv_iter */
	uint32_t born_ord; /* its index among the births of that iteration, from 0 */
	uint32_t n_children; /* live sub-ranges */
	uint64_t seen_generation; /* recorder: the generation in which `seen_at` is valid; UINT64_MAX: none */
	uint32_t seen_at; /* recorder: its index in that iteration's tensors */
	uint64_t born_op; /* runtime: number of ops announced before its birth */
	uint64_t used_op; /* runtime: serial number of the last op that used it (any stream), 0: none */
	unsigned streams; /* runtime: a bit for each stream of the program whose ops used it or a sub-range */
	int absent; /* runtime: a plan that runs counts on it, but it is not on the device: it was born beside its
		       planned place, or the CPU used it beside the plan; no op has used it since */
	uint32_t predicted; /* replay: its entry in the predictor, if that has its id */
	uint32_t reads; /* replay: its uses since it was written, by ops without a plan */
	uint32_t most_reads; /* replay: the most between two writes */
};

#endif
