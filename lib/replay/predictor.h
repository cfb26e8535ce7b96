/* SPDX-License-Identifier: Apache-2.0
 *
 * predictor.h - which ops usually come next, and when a tensor is used again, in programs that follow no plan
 *
 * in    ops with live tensors, in program order
 * out   the next ops, with the tensors that they probably use; the op that probably uses a tensor next; by how much the
 *       live tensors will grow
 * owns  the latest ops (at most UM_PREDICTOR_OPS, with UM_PREDICTOR_USES uses)
 *
 * The latest op is matched with an earlier one of the same kind, and what followed then is expected to follow now. The
 * kind of an op is its name, stream and number of uses; sizes are not part of it, so that iterations of other sizes
 * match, too. But an iteration that began with the same sizes is preferred, so that of several that take turns each is
 * matched with itself. Where the iteration before it began otherwise, one that came after such an iteration is
 * preferred: a phase of several iterations is matched from its beginning. The match is the op after the match before,
 * unless its tensors are others than expected; or one near it, whose tensors are the right ones, since ops are dropped,
 * inserted and exchanged. An op that is neither is matched with none, and changes nothing in what is expected; but when
 * two in a row are in order elsewhere, the match moves there.
 *
 * Iterations of several kinds often begin alike. When the match moves far, what was expected of tensors on the way that
 * the program has not taken is replaced by what followed at the new match.
 *
 * An op that was followed by another one than expected, lately, is a fork: what is expected after it is one of several
 * possibilities.
 *
 * The predictor sees no op while a plan is followed, and expects none after such a gap. Where the plan is left, it
 * expects each tensor at its first use after the match.
 *
 * A tensor that is still alive is expected itself; one that was freed is expected as the tensor that takes its part in
 * the current match. Each use keeps a score of how often its expected tensor was right (expert weights are not
 * interchangeable: routing decides anew). When a tensor is used next follows from its own past, near the match; if it
 * has none, from that of the tensor whose part it takes. Where that one was freed, it is expected to be freed.
 *
 * Memory is bounded whatever the program does. O(uses) per op. Not thread-safe: the caller holds the context's lock.
 */
#ifndef UM_REPLAY_PREDICTOR_H
#define UM_REPLAY_PREDICTOR_H

#include "base/hash.h"
#include "base/vec.h"
#include "model/tensor.h"
#include "replay/live_curve.h"

#define UM_PREDICTOR_OPS UM_LIVE_CURVE_OPS /* powers of two */
#define UM_PREDICTOR_USES (1u << 17)
#define UM_PREDICTOR_CONTEXTS 3
#define UM_PREDICTOR_BUCKETS (1u << 14)
#define UM_PREDICTOR_PREFIX 32u /* ops at the beginning of an iteration that tell it from others */

#define UM_PREDICTOR_UNKNOWN UINT64_MAX /* instead of the number of an op: greater than all of them */

/* What probably happens to a tensor next. */
struct um_predicted_next {
	uint64_t op; /* number of the op that uses it, or UM_PREDICTOR_UNKNOWN */
	int freed; /* it is freed after that op, and not used until then */
	int overwritten; /* by that op, as a whole */
	int guess; /* the op is guessed from the mean number of ops between two uses: none that is expected uses it */
};

struct um_predictor_use {
	uint64_t off, bytes, touched;
	uint64_t next, before; /* numbers of the next and the previous use of the same tensor; 0: none */
	uint64_t op; /* number of the op */
	uint32_t tensor; /* index into tensors */
	uint8_t score;
	uint8_t again; /* not its tensor's first use */
	uint8_t overwrites; /* the whole range, and does not read it */
};

struct um_predictor_op {
	uint64_t kind;
	uint64_t prefix; /* hash of the kinds and sizes of its iteration's ops so far; 0: not one of the first ops */
	uint64_t first_use; /* number; uses of an op are numbered one after the other */
	uint64_t begins; /* ns, with everything resident: the sum of the ops before it */
	uint64_t ns; /* duration with everything resident */
	uint32_t n_uses;
	uint32_t iteration; /* serial */
	uint32_t segment; /* serial: there are gaps between segments */
	uint8_t follower; /* score: after it came the op that was expected */
	uint64_t fork; /* number of the latest op up to this one that is a fork; 0: none */
};

struct um_predictor_tensor {
	struct um_tensor_id id;
	const struct um_tensor *tensor; /* alive as long as its id is `id` */
	uint64_t bytes;
	uint64_t last; /* number of its latest use */
	struct um_predicted_next next;
	uint64_t freed; /* number of the op after which it was freed; 0: it was not */
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
	uint32_t strays; /* latest ops in a row that are matched with none, while the match stays */
	uint32_t doubted; /* those of them, a bit each, that were of the kind of the expected op */
	uint64_t elsewhere; /* number of the op that the last of them may repeat, 0: none */
	int jumped; /* the match does not follow the match before, */
	int far; /* nor is it near that */
	uint64_t pass; /* op since which the matches are of one repetition: parts taken before do not count */
	uint64_t *bucket[UM_PREDICTOR_CONTEXTS]; /* by hash of the latest kinds: number of an op */
	uint64_t *begun, *turned; /* by prefix, and by prefix and `before`: likewise */
	uint64_t prefix; /* of the latest op */
	uint64_t before; /* the last prefix of the iteration before this one; 0: none */
	uint64_t n_ended[2]; /* ops before this iteration, and before the one before it */
	uint32_t iteration; /* serial of this one */
	uint32_t segment; /* likewise */
	uint32_t n_prefix; /* ops of this iteration so far, at most UM_PREDICTOR_PREFIX */
	uint64_t
		reach; /* ops until the furthest next use that is predicted, a decaying maximum: about one repetition */
	struct um_live_curve live;
	uint64_t *next_bytes; /* um_predictor_furthest: by ops between the peak and the next use; zeros between calls */
};

/* What an op probably uses. */
struct um_predicted_use {
	const struct um_tensor *tensor;
	uint64_t off, bytes, touched;
	int sure; /* the tensor was right more than once */
	int overwrites;
};

/* An op that is about to be launched. The uses are of live tensors, whose field `predicted` it writes, or NULL for
 * tensors that were freed since. */
struct um_predictor_feed {
	uint64_t kind, ns;
	uint64_t live; /* bytes of live tensors, those born for the op included */
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

/* The next op begins an iteration. */
void um_predictor_begin(struct um_predictor *p);
/* Ops of this iteration so far. */
static inline uint64_t um_predictor_so_far(const struct um_predictor *p)
{
	return p->n_ops - p->n_ended[0];
}

/* A gap: the predictor has not seen the ops that follow the latest one, and does not know them. */
static inline void um_predictor_skip(struct um_predictor *p)
{
	p->segment++;
}

/* The op that probably comes `i` ops after the latest one, i >= 1; NULL: not known. */
const struct um_predictor_op *um_predictor_ahead(const struct um_predictor *p, uint64_t i);
/* Is op number `op`, which probably comes, one of a later iteration? */
int um_predictor_is_later(const struct um_predictor *p, uint64_t op);
/* Does it come after all ops that may be repeated, so that nothing is known of it? */
int um_predictor_is_unseen(const struct um_predictor *p, uint64_t op);
/* Its use number k (< n_uses). 0: the tensor is not known, or not born yet. */
int um_predictor_use_of(const struct um_predictor *p, const struct um_predictor_op *op, uint32_t k,
			struct um_predicted_use *out);
/* Is there a fork between the latest op and the one that probably comes `i` ops after it? */
int um_predictor_is_after_fork(const struct um_predictor *p, uint64_t i);
/* Bytes that it uses of tensors that are not known, or not born yet. */
uint64_t um_predictor_unborn(const struct um_predictor *p, const struct um_predictor_op *op);

/* The program frees the tensor. */
void um_predictor_free(struct um_predictor *p, const struct um_tensor *t);

/* What probably happens to a live tensor next. */
struct um_predicted_next um_predictor_next(const struct um_predictor *p, const struct um_tensor *t);
/* Bytes of the tensor that ops have touched since the one that the latest op repeats: in one repetition. */
double um_predictor_touched(const struct um_predictor *p, const struct um_tensor *t);
/* What probably happens next to the part of a tensor that the latest op's use number k is of. */
struct um_predicted_next um_predictor_next_of_part(const struct um_predictor *p, uint32_t k);
/* The match is far from the one before: when the tensor of this entry (< tensors.n), which was expected up to op number
 * `until`, is used next, or freed. That is as after the op to which its latest use corresponds, or at its first use
 * after the match. Op 0: it is not known better than before, or the tensor should have been freed by now, and what was
 * expected stands. `until` UM_PREDICTOR_UNKNOWN: after a gap no other earlier expectation counts, and a tensor that no
 * op used after the match is not expected. */
struct um_predicted_next um_predictor_rematch(struct um_predictor *p, uint32_t entry, uint64_t until);
/* A predicted op, of this number, uses the tensor: if that is sooner than was known. */
void um_predictor_note_next(struct um_predictor *p, const struct um_tensor *t, uint64_t op);

/* The ops until the next peak of live bytes: the first one of the next `ops` ops, as far as they are predicted, at
 * which most bytes are live. 0: none is predicted. O(log). */
uint64_t um_predictor_peak(const struct um_predictor *p, uint64_t ops);
/* The live tensors grow by this many bytes over the next `ops` ops, which are predicted. Negative: they shrink. */
int64_t um_predictor_growth(const struct um_predictor *p, uint64_t ops);
/* The op that is `ops` after the latest one begins this many ns after the latest one ends, with everything resident. */
uint64_t um_predictor_until(const struct um_predictor *p, uint64_t ops);

/* The peak is `ops` after the latest op. `bytes` of the tensors that are live there have the furthest next uses after
 * it: the number of the first op among these uses. Those that ops until the peak use so late that the link, with this
 * bandwidth, cannot carry them until then do not count. O(reach). */
uint64_t um_predictor_furthest(struct um_predictor *p, uint64_t ops, uint64_t bytes, double bytes_per_ns);

#endif
