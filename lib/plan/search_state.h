/* SPDX-License-Identifier: Apache-2.0
 *
 * search_state.h - state of the search, private to the search*.c files
 */
#ifndef UM_PLAN_SEARCH_STATE_H
#define UM_PLAN_SEARCH_STATE_H

#include "plan/search.h"

#define UM_SEARCH_KNOWN 256
#define UM_SEARCH_ROUNDS 4 /* maximum rounds of one configuration, each without the gaps that turned out too short */

/* Parameters of one configuration. */
struct um_search_config {
	int reserve; /* blocks in 1,000 kept free */
	int begin, clean; /* struct um_choose_rule */
	uint32_t merge; /* maximum number of blocks in a hint */
	int eager; /* struct um_timing */
	int late; /* returns just in time (return_deadlines.h); otherwise as early as there is room */
};

/* Recreates a plan, or nearly. */
struct um_search_seed {
	struct um_search_config config;
	int64_t *penalty; /* by visit; NULL: no seed */
};

/* A sound plan. */
struct um_search_kept {
	UM_VEC(struct um_hint) hints;
	uint64_t plan_ns, ns; /* predicted (0: none), rehearsed */
	uint64_t proved_ns; /* predicted, without copies of content that ops overwrite */
	struct um_search_seed seed; /* of rehearsed plans */
	int spent; /* variations were tried */
};

/* The best by prediction, and several from UM_SEARCH_REHEARSED on. */
enum { UM_SEARCH_PREDICTED, UM_SEARCH_REHEARSED, UM_SEARCH_KEPT = UM_SEARCH_REHEARSED + 4 };

struct um_search {
	const struct um_blocks *b;
	const struct um_plan_effort *effort;
	const struct um_plan_rehearsal *rehearsal; /* NULL: only the prediction counts */
	struct um_plan *out;
	int copies; /* content that ops overwrite is copied when it leaves */
	int32_t capacity, most, mean; /* blocks: in the budget; maximum and mean (by time) touched by one op */
	uint64_t *clock; /* by op: its start if nothing waits; one more entry */
	uint32_t *group, *rank; /* by visit: the use that it belongs to, and its index among the visits of this use */
	uint32_t *size; /* by use: visits */
	int64_t *penalty; /* by visit, for the next choice */
	int64_t *stall, *total_stall; /* by use: ns waited for in the last round, in all rounds */
	uint8_t *keep_resident; /* by visit: turned out too short */
	uint64_t work, work_most; /* touches */
	uint64_t until; /* work limit until another method is tried; 0: only work_most */
	struct um_search_kept kept[UM_SEARCH_KEPT];
	uint64_t known[UM_SEARCH_KNOWN]; /* hashes of rehearsed plans */
	unsigned n_known;
	int learning_rounds; /* rounds of learning */
	int compared; /* number of plans rehearsed with advice (advice.h) and without */
	uint64_t advised_ns, bare_ns; /* the least times with and without advice */
	uint8_t *host; /* by block: it leaves the device, under the last choice, or has left it before the plan */
	uint8_t *on_host; /* by block: it has left before the plan */
	uint32_t host_blocks; /* their number */
	uint32_t free_host; /* struct um_choose_rule */
	int exceeds; /* the plan that was judged last exceeds the host budget */
	struct um_search_kept least; /* of the plans that exceed the host budget, the one with the least host memory */
	uint64_t least_host; /* its host memory; UINT64_MAX: none */
	int no_hints; /* only estimates are made */
	int no_rehearsal; /* the following plans are not rehearsed */
	double score; /* of the last rehearsal */
	uint64_t best_ns; /* predicted; 0: no sound plan yet */
	uint64_t own_ns; /* likewise, of plans that a configuration and a penalty recreate */
	struct um_search_seed own; /* of that */
	struct um_search_config roomy; /* with a reserve that helped; reserve 0: none did */
	uint64_t random;
	uint8_t *evicted; /* by visit: chosen in the last round */
	uint64_t estimate; /* of the last configuration */
	uint64_t *start; /* by op: its start, under the last configuration; one more entry */
	int32_t *not_before; /* by visit */
	int started; /* `start` is filled */
	char why[200]; /* the last violation */
};

/* --- search_evaluate.c ---------------------------------------------------------------------- */

#define UM_SEARCH_CONFIGS 7
/* The first is the one that others begin with. */
extern const struct um_search_config um_search_configs[UM_SEARCH_CONFIGS];

/* Hints of one configuration, into s->out. 0, -ENOMEM, -E2BIG (it finds no place). */
int um_search_apply(struct um_search *s, const struct um_search_config *w);

/* The same, and proves the plan unless its estimate is clearly worse. */
int um_search_try(struct um_search *s, const struct um_search_config *w);

/* Cost of one round in units of s->work. */
uint64_t um_search_round(const struct um_search *s);

/* Proves what um_search_apply, by configuration w, or a scheme (NULL) made, and keeps it if it is good. Not sound: not
 * kept, no error. 0 or -ENOMEM. */
int um_search_judge(struct um_search *s, const struct um_search_config *w);

/* Rehearses the plan that was judged last, unless an equal one was rehearsed, and keeps it if it is good. 0 or
 * -ENOMEM. */
int um_search_rehearse(struct um_search *s, const struct um_search_config *w, uint64_t plan_ns);

/* Is the plan near the bound, or the work limit reached? */
int um_search_enough(const struct um_search *s);
int um_search_has_time(const struct um_search *s); /* does the caller request more effort? */

/* May a plan with this prediction be chosen if its rehearsal is good? */
int um_search_is_near(const struct um_search *s, uint64_t plan_ns);

/* Score of a rehearsed plan: less is better. */
double um_search_score(const struct um_search_kept *k);

/* --- strategies --------------------------------------------------------------------------------------------------- */

/* search_seeds.c: plans that begin with what published schemes choose, and continue with the first configuration. 0 or
 * -ENOMEM. */
int um_search_seeds(struct um_search *s);

/* search_perturb.c: varies one plan towards a better prediction, or, if `score` is not 0, towards a rehearsal better
 * than `score`. Ends when the search has enough, or after many steps without improvement. Returns as
 * um_search_apply. */
int um_search_perturb(struct um_search *s, const struct um_search_seed *from, double score);

#endif
