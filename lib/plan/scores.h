/* SPDX-License-Identifier: Apache-2.0
 *
 * scores.h - scores that rank swaps (Zhang et al. 2019)
 *
 * in    swaps, the load before any swap
 * out   four scores for each; larger is better
 *
 *     DOA    the absence less the time of both copies, in ns
 *     AOA    bytes x DOA; where that is negative, DOA / bytes
 *     WDOA   the area under the load during the absence, in blocks x ns
 *     SWDOA  the same under the load that remains after all better ones have been taken
 */
#ifndef UM_PLAN_SCORES_H
#define UM_PLAN_SCORES_H

#include "plan/swaps.h"

enum um_score { UM_SCORE_DOA, UM_SCORE_AOA, UM_SCORE_WDOA, UM_SCORE_SWDOA, UM_SCORES };

#define UM_SCORES_ALL ((1u << UM_SCORES) - 1)

struct um_scores {
	double *of[UM_SCORES]; /* by swap */
	unsigned wanted; /* bits by enum um_score; the others are undefined, but finite */
};

/* 0 or -ENOMEM. O((swaps + ops) log), and more for SWDOA if many absences cover each other. */
int um_scores_build(struct um_scores *c, unsigned wanted, const struct um_swaps *w, const struct um_scheme_input *s,
		    const struct um_load *load);
void um_scores_fini(struct um_scores *c);

/* Standardises each wanted score to mean 0 and deviation 1; all 0 if they are equal. */
void um_scores_standardise(struct um_scores *c, uint32_t n);

#endif
