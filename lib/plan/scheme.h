/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme.h - published schemes, beside the strategy of our own
 *
 * in    blocks, a plan without hints (schedule, budget, rates), a profile
 * out   the plan's hints, sound by um_plan_check, and predicted_ns
 *
 * A scheme decides which gaps blocks spend away from the device and from when on they may return; each is one file,
 * scheme_<name>.c, whose head says where it comes from and what was left open there. Places, the room that returns
 * need, arrivals, hints and the proof are common (carry.h). So all of them profit from what the common part knows and
 * their papers did not: dead content is dropped and not copied, and what the host still has is not copied out again.
 */
#ifndef UM_PLAN_SCHEME_H
#define UM_PLAN_SCHEME_H

#include "model/plan.h"
#include "model/profile.h"
#include "plan/bayes.h"
#include "plan/lower.h"

/* What a scheme is asked. */
struct um_scheme_case {
	const struct um_blocks *b;
	const struct um_schedule *sched;
	const uint64_t *clock; /* by op, when it starts if nothing waits; n_ops + 1 */
	struct um_lowering carry; /* rates, and the capacity in blocks */
	uint64_t fixed_ns; /* of a copy of any size */
	double weight[UM_BAYES_DIMS]; /* of a scheme that is tuned */
	double value; /* what tuning makes small; negative (as it is at first): the time of the proved plan */
	char *why; /* one line where it fails with -E2BIG */
	size_t why_size;
};

/* What it answers. */
struct um_scheme_answer {
	struct um_choice choice; /* `away` is set, and taken off `load`; what is `keep_resident` must not be away */
	int32_t *not_before; /* by visit, see um_returns_build; 0 at first */
};

struct um_scheme {
	const char *name;
	int mode; /* the scheme's own */
	int tuned; /* it is asked with many weights (bayes.h), first with each one alone, and the best count */
	int (*choose)(struct um_scheme_case *s, int mode, struct um_scheme_answer *a); /* 0, -ENOMEM, -E2BIG */
};

/* More of them, behind our own: for a program that compares, once, before anything is planned. Borrowed. */
void um_scheme_add(const struct um_scheme *more, unsigned n);

/* By name or by number; NULL if there is none. */
const struct um_scheme *um_scheme_find(const char *name);
const struct um_scheme *um_scheme_at(unsigned i);

/* 0; -ENOMEM; -E2BIG (no plan within the budget) or -EINVAL (none that is sound) with one line in `why`. */
int um_scheme_run(const struct um_scheme *scheme, const struct um_blocks *b, const struct um_profile *profile,
		  struct um_plan *out, char *why, size_t size);

/* --- scheme_answer.c ---------------------------------------------------------------------------------------------- */

/* Is an op of this name a convolution, or another product of matrices, which stands in its place in other nets? */
int um_scheme_is_product(const char *name);

int um_scheme_answer_init(struct um_scheme_answer *a, const struct um_blocks *b,
			  uint8_t *keep_resident); /* 0 or -ENOMEM */
void um_scheme_answer_fini(struct um_scheme_answer *a);

/* The schemes of the library. */
enum um_autoswap_mode {
	UM_AUTOSWAP_DOA,
	UM_AUTOSWAP_AOA,
	UM_AUTOSWAP_WDOA,
	UM_AUTOSWAP_SWDOA,
	UM_AUTOSWAP_COMBINED,
	UM_AUTOSWAP_NO_OVERHEAD /* combined */
};
int um_scheme_autoswap(struct um_scheme_case *s, int mode, struct um_scheme_answer *a);
int um_scheme_superneurons(struct um_scheme_case *s, int mode, struct um_scheme_answer *a);
int um_scheme_appobmem(struct um_scheme_case *s, int mode, struct um_scheme_answer *a);

#endif
