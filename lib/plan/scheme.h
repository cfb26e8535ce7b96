/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme.h - published offloading schemes, as alternatives to lookahead
 *
 * in    blocks, a plan without hints (schedule, budget, rates), a profile
 * out   the plan's hints, sound by um_plan_check, and predicted_ns
 *
 * A scheme decides in which gaps blocks are off the device and the earliest return; each is one file, scheme_<name>.c,
 * whose head names its source and the points that the source leaves open. Places, the room that returns need, arrivals,
 * hints and the proof are common (lower.h). So all of them have the common optimisations that their papers lack: dead
 * content is dropped without a copy, and content that the host still has is not copied again.
 */
#ifndef UM_PLAN_SCHEME_H
#define UM_PLAN_SCHEME_H

#include "model/plan.h"
#include "model/profile.h"
#include "plan/bayes.h"
#include "plan/drops.h"
#include "plan/lower.h"

/* The input of a scheme. */
struct um_scheme_input {
	const struct um_blocks *b;
	const struct um_schedule *sched;
	const uint64_t *clock; /* by op, its start if nothing waits; n_ops + 1 */
	struct um_lowering carry; /* rates, and the capacity in blocks */
	uint64_t fixed_ns; /* of a copy of any size */
	double weight[UM_BAYES_DIMS]; /* for a tuned scheme */
	double value; /* minimised by tuning; negative (initially): use the time of the proved plan */
	char *why; /* one line on failure with -E2BIG */
	size_t why_size;
};

/* The output of a scheme. */
struct um_scheme_result {
	struct um_choice choice; /* `evicted` is set, and subtracted from `load`; not in `keep_resident` gaps */
	int32_t *not_before; /* by visit, see um_returns_build; 0 at first */
};

struct um_scheme {
	const char *name;
	int mode; /* the scheme's own */
	int tuned; /* run with many weights (bayes.h), first with each one alone; the best result is used */
	int (*choose)(struct um_scheme_input *s, int mode, struct um_scheme_result *a); /* 0, -ENOMEM, -E2BIG */
	/* Content that is made again instead of moved; NULL: none. `plan`: the schedule of `v` with places, the budget
	 * and the rates. 0 or -ENOMEM. */
	int (*drops)(const struct um_versions *v, const struct um_plan *plan, const struct um_profile *profile,
		     struct um_drops *d);
};

/* Adds schemes after our own: for a program that compares, once, before any planning. Borrowed. */
void um_scheme_add(const struct um_scheme *more, unsigned n);

/* By name or by number; NULL if there is none. */
const struct um_scheme *um_scheme_find(const char *name);
const struct um_scheme *um_scheme_at(unsigned i);

/* 0; -ENOMEM; -E2BIG (no plan within the budget) or -EINVAL (no sound plan) with one line in `why`. */
int um_scheme_run(const struct um_scheme *scheme, const struct um_blocks *b, const struct um_profile *profile,
		  struct um_plan *out, char *why, size_t size);

/* --- scheme_result.c ---------------------------------------------------------------------------------------------- */

/* Is an op of this name a convolution or another matrix product? */
int um_scheme_is_product(const char *name);

int um_scheme_result_init(struct um_scheme_result *a, const struct um_blocks *b,
			  uint8_t *keep_resident); /* 0 or -ENOMEM */
void um_scheme_result_fini(struct um_scheme_result *a);

/* The schemes of the library. */
enum um_autoswap_mode {
	UM_AUTOSWAP_DOA,
	UM_AUTOSWAP_AOA,
	UM_AUTOSWAP_WDOA,
	UM_AUTOSWAP_SWDOA,
	UM_AUTOSWAP_COMBINED,
	UM_AUTOSWAP_NO_OVERHEAD /* combined */
};
int um_scheme_autoswap(struct um_scheme_input *s, int mode, struct um_scheme_result *a);
int um_scheme_superneurons(struct um_scheme_input *s, int mode, struct um_scheme_result *a);
int um_superneurons_drops(const struct um_versions *v, const struct um_plan *plan, const struct um_profile *profile,
			  struct um_drops *d);
int um_scheme_appobmem(struct um_scheme_input *s, int mode, struct um_scheme_result *a);

#endif
