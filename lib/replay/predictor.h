/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor.h - which ops usually come next, and when a tensor is used again, in programs that follow no plan
 *
 * in    ops with live tensors, in program order
 * out   the next ops, with the tensors that they probably use, and how much is born for them; the number of ops until a
 *       tensor is used again
 * owns  the latest ops (at most UM_PREDICTOR_OPS, with UM_PREDICTOR_USES uses)
 *
 * The latest op is matched with an earlier one of the same kind: the op after the match before, otherwise the latest
 * one with the same three, two, or one kinds up to it. What followed then is expected to follow now. The kind of an op
 * is its name, stream and number of uses; sizes are not part of it, so that iterations of other sizes match, too. A
 * tensor that is still alive is expected itself; one that was freed is expected as the tensor that takes its part in
 * the current match. Each use keeps a score of how often its expected tensor was right (expert weights are not
 * interchangeable: routing decides anew).
 *
 * Memory is bounded whatever the program does. O(uses) per op. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_REPLAY_PREDICTOR_H
#define UM_REPLAY_PREDICTOR_H

#include "base/hash.h"
#include "base/vec.h"
#include "model/tensor.h"

#define UM_PREDICTOR_OPS (1u << 15) /* powers of two */
#define UM_PREDICTOR_USES (1u << 17)
#define UM_PREDICTOR_CONTEXTS 3
#define UM_PREDICTOR_BUCKETS (1u << 14)

#define UM_PREDICTOR_UNKNOWN UINT64_MAX /* nothing is known of the tensor's next use */
#define UM_PREDICTOR_NEVER (UINT64_MAX - 1) /* so far the tensors in this part were not used again */

struct um_predictor_use {
	uint64_t off, bytes, touched;
	uint64_t next; /* number of the next use of the same tensor; 0: none yet */
	uint64_t op; /* number of the op */
	uint32_t tensor; /* index into tensors */
	uint8_t score;
	uint8_t first; /* of its tensor */
};

struct um_predictor_op {
	uint64_t kind;
	uint64_t first_use; /* number; uses of an op are numbered one after the other */
	uint64_t ns; /* duration with everything resident */
	uint32_t n_uses;
};

struct um_predictor_tensor {
	struct um_tensor_id id;
	const struct um_tensor *tensor; /* alive as long as its id is `id` */
	uint64_t bytes;
	uint64_t last; /* number of its latest use */
	struct um_tensor_id part_id; /* the tensor that takes its part, as of op number `part_op` */
	const struct um_tensor *part;
	uint64_t part_op;
	uint64_t gap; /* ops between two uses, a running mean; 0: used once */
	uint32_t spare; /* next unused entry */
};

struct um_predictor {
	struct um_predictor_op *ops; /* by number % UM_PREDICTOR_OPS; numbers begin at 1 */
	struct um_predictor_use *uses; /* by number % UM_PREDICTOR_USES */
	UM_VEC(struct um_predictor_tensor) tensors;
	uint32_t spare; /* the first unused entry of tensors, UINT32_MAX: none */
	uint64_t n_ops, n_uses, first; /* numbers of the latest op and use, and of the oldest op that is kept */
	uint64_t match; /* number of the op that the latest one was matched with; 0: none */
	int jumped; /* the match does not follow the match before */
	uint64_t *bucket[UM_PREDICTOR_CONTEXTS]; /* by hash of the latest kinds: number of an op */
};

/* What an op probably uses. */
struct um_predicted_use {
	const struct um_tensor *tensor;
	uint64_t off, bytes, touched;
	int sure; /* the tensor was right more than once */
};

/* An op that is about to be launched. The uses are of live tensors, whose field `predicted` it writes, or NULL for
 * tensors that were freed since. */
struct um_predictor_feed {
	uint64_t kind, ns;
	const struct um_use *uses;
	uint32_t n_uses;
};

static inline uint64_t um_predictor_kind(const char *name, int32_t stream, uint32_t n_uses)
{
	return um_hash_u64(um_hash_str(name), (uint64_t)(uint32_t)stream << 32 | n_uses);
}

int um_predictor_init(struct um_predictor *p); /* 0 or -ENOMEM; um_predictor_fini in any case */
void um_predictor_fini(struct um_predictor *p);

/* 0, or -ENOMEM: everything is forgotten. */
int um_predictor_op(struct um_predictor *p, const struct um_predictor_feed *op);

/* The op that probably comes `i` ops after the latest one, i >= 1; NULL: not known. */
const struct um_predictor_op *um_predictor_ahead(const struct um_predictor *p, uint64_t i);
/* Its use number k (< n_uses). 0: the tensor is not known, or not born yet. */
int um_predictor_use_of(const struct um_predictor *p, const struct um_predictor_op *op, uint32_t k,
			struct um_predicted_use *out);

/* Bytes of the tensors that this op, of um_predictor_ahead, probably uses first: they are born until then. */
uint64_t um_predictor_born(const struct um_predictor *p, const struct um_predictor_op *op);

/* After how many ops the tensor of the latest op's use number k is probably used again, or one of the constants. */
uint64_t um_predictor_next_use(const struct um_predictor *p, uint32_t k);

#endif
