/* SPDX-License-Identifier: Apache-2.0 */
#include "play/play_again.h"

#include "model/plan_unfold.h"
#include "play/plan_player.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Takes the content of the plan, which the player then frees, if it launches ops again. */
static int keep(void *user, struct um_plan *plan)
{
	struct um_plan *to = user;

	if (um_plan_recomputes(plan)) {
		*to = *plan;
		um_plan_init(plan);
	}
	return 0;
}

int um_play_again(const struct um_trace *trace, const struct um_play_options *o, struct um_play_result *out)
{
	struct um_play_options learning = *o;
	struct um_play_result played;
	struct um_plan plan;
	int err;

	um_plan_init(&plan);
	learning.planned = keep;
	learning.planned_user = &plan;
	err = um_play(trace, &learning, out);
	if (err == -ENODATA && out->iterations.n) {
		*out->why = '\0'; /* it was played without a plan */
		err = 0;
	}
	if (!err && plan.hints.n && !out->irregular) {
		err = um_plan_player_run(trace, &plan, o, &played);
		if (!err && played.steady_ns < out->steady_ns) {
			played.first_hinted_iteration = out->first_hinted_iteration;
			played.planned_ns = played.predicted_ns;
			played.played_ns = played.steady_ns;
			played.predicted_ns = 0;
			um_play_result_fini(out);
			*out = played;
		} else {
			um_play_result_fini(&played);
		}
		err = err == -ENODATA ? 0 : err; /* not the plan of the recorded period */
	}
	um_plan_fini(&plan);
	return err;
}
