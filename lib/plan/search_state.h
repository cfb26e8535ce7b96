/* SPDX-License-Identifier: Apache-2.0
 *
 * search_state.h - the search while it goes on: private to the search*.c files
 */
#ifndef UM_PLAN_SEARCH_STATE_H
#define UM_PLAN_SEARCH_STATE_H

#include "plan/search.h"

#define UM_SEARCH_KNOWN 256
#define UM_SEARCH_ROUNDS 4 /* one way is gone so often at most, each time without the gaps that turned out too short */

/* One way to go. */
struct um_search_config {
	int reserve; /* blocks of 1,000 kept free */
	int begin, clean; /* struct um_choose_rule */
	uint32_t merge; /* blocks in one hint, at most */
	int eager; /* struct um_timing */
	int late; /* returns just in time (late.h); else as early as there is room */
};

/* What makes a plan again, or nearly. */
struct um_search_seed {
	const struct um_search_config *way; /* NULL: none */
	int64_t *penalty; /* by visit */
};

/* A plan that is sound. */
struct um_search_kept {
	UM_VEC(struct um_hint) hints;
	uint64_t plan_ns, ns; /* predicted (0: there is none), rehearsed */
	struct um_search_seed seed; /* of those that were rehearsed */
	int spent; /* wandered from */
};

/* The best by prediction, and several from UM_SEARCH_REHEARSED on. */
enum { UM_SEARCH_PREDICTED, UM_SEARCH_REHEARSED, UM_SEARCH_KEPT = UM_SEARCH_REHEARSED + 4 };

struct um_search {
	const struct um_blocks *b;
	const struct um_plan_effort *effort;
	const struct um_plan_rehearsal *rehearsal; /* NULL: what the plan predicts is what counts */
	struct um_plan *out;
	int32_t capacity, most; /* blocks: in the budget; touched by one op */
	uint64_t *clock; /* by op: when it starts if nothing waits; one more */
	uint32_t *group, *rank; /* by visit: the use that it belongs to, its number among those of this use */
	uint32_t *size; /* by use: visits */
	int64_t *penalty; /* by visit, for the next choice */
	int64_t *stall, *total_stall; /* by use: ns waited for in the last round, in all rounds */
	uint8_t *keep_resident; /* by visit: turned out too short */
	uint64_t work, work_most; /* touches */
	uint64_t until; /* so much work, then something else is tried; 0: no limit but work_most */
	struct um_search_kept kept[UM_SEARCH_KEPT];
	uint64_t known[UM_SEARCH_KNOWN]; /* hashes of plans that were rehearsed */
	unsigned n_known;
	int taught; /* lessons */
	int compared; /* plans rehearsed with advice (advice.h) and without it */
	uint64_t advised_ns, bare_ns; /* the least of them, so and so */
	int unheard; /* what comes now is not rehearsed */
	double score; /* of the last rehearsal */
	uint64_t best_ns; /* predicted; 0: nothing sound yet */
	uint64_t own_ns; /* likewise, of plans that a way and a penalty make again */
	struct um_search_seed own; /* of that */
	uint64_t random;
	uint8_t *away; /* by visit: chosen in the last round */
	uint64_t estimate; /* of the last way */
	uint64_t *start; /* by op: when it starts, under the last way; one more */
	int32_t *not_before; /* by visit */
	int started; /* `start` is filled */
	char why[200]; /* the last unsoundness */
};

/* --- search_evaluate.c: what a plan is worth ---------------------------------------------------------------------- */

#define UM_SEARCH_WAYS 7
extern const struct um_search_config um_search_ways[UM_SEARCH_WAYS]; /* the first is the one that others begin with */

/* Hints of one way, into s->out. 0, -ENOMEM, -E2BIG (it finds no place). */
int um_search_go(struct um_search *s, const struct um_search_config *w);

/* The same, proved if the estimate is not clearly behind. */
int um_search_try(struct um_search *s, const struct um_search_config *w);

/* What one round costs, of any kind, in units of s->work. */
uint64_t um_search_round(const struct um_search *s);

/* Proves what um_search_go, by way w, or a scheme (NULL) made, and keeps it if it is good. Not sound: not kept, no
 * error. 0 or -ENOMEM. */
int um_search_judge(struct um_search *s, const struct um_search_config *w);

/* Rehearses the plan that was judged last, unless that was done, and keeps it if it goes well. 0 or -ENOMEM. */
int um_search_rehearse(struct um_search *s, const struct um_search_config *w, uint64_t plan_ns);

/* Nothing could be better by much, or there has been enough work. */
int um_search_enough(const struct um_search *s);
int um_search_has_time(const struct um_search *s); /* the caller asks for more effort */

/* May a plan be taken that predicts so much, if its rehearsal goes well? */
int um_search_is_near(const struct um_search *s, uint64_t plan_ns);

/* Of a plan that was rehearsed: less is better. */
double um_search_score(const struct um_search_kept *k);

/* --- strategies --------------------------------------------------------------------------------------------------- */

/* search_seeds.c: plans that begin with what published schemes choose, and go on by the first way. 0 or -ENOMEM. */
int um_search_seeds(struct um_search *s);

/* search_perturb.c: from one plan on, to what is predicted to be better, or, where `score` is not 0, to what does
 * better than that in the rehearsal. Until there is enough, or nothing comes of it. As um_search_go. */
int um_search_perturb(struct um_search *s, const struct um_search_seed *from, double score);

#endif
