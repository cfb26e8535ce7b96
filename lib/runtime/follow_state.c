/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/follow_state.h"

struct rule {
	enum um_follow_action action;
	enum um_follow_state next;
};

#define S(name) UM_FOLLOW_##name
#define ON(event, state) [UM_FOLLOW_ON_##event][UM_FOLLOW_##state]
/* The same in each of these states. */
#define IN_WAITING(event, does, then)                                                                                  \
	ON(event, GUESS_WAITS) = {S(does), S(then)}, ON(event, RENEWED_WAITS) = {S(does), S(then)},                    \
		  ON(event, UNSURE_WAITS) = {S(does), S(then)}, ON(event, PROVED_WAITS) = {S(does), S(then)}
#define IN_RUNNING(event, does, then)                                                                                  \
	ON(event, GUESS_RUNS) = {S(does), S(then)}, ON(event, RENEWED_RUNS) = {S(does), S(then)},                      \
		  ON(event, UNSURE_RUNS) = {S(does), S(then)}, ON(event, PROVED_RUNS) = {S(does), S(then)}
#define IN_ANY(event, does, then)                                                                                      \
	ON(event, NONE) = {S(does), S(then)}, IN_WAITING(event, does, then), IN_RUNNING(event, does, then)

static const struct rule rules[UM_FOLLOW_EVENTS][UM_FOLLOW_STATES] = {
	ON(FIRST_OP, GUESS_WAITS) = {S(TAKE_UP), S(GUESS_RUNS)},
	ON(FIRST_OP, RENEWED_WAITS) = {S(TAKE_UP), S(RENEWED_RUNS)},
	ON(FIRST_OP, UNSURE_WAITS) = {S(TAKE_UP), S(UNSURE_RUNS)},
	ON(FIRST_OP, PROVED_WAITS) = {S(TAKE_UP), S(PROVED_RUNS)},
	IN_RUNNING(AS_IS, GO_ON, PROVED_RUNS),
	ON(STRAYED, GUESS_RUNS) = {S(GO_ON), S(PROVED_RUNS)},
	ON(STRAYED, RENEWED_RUNS) = {S(GO_ON), S(PROVED_RUNS)},
	ON(STRAYED, UNSURE_RUNS) = {S(PLAN_AGAIN), S(RENEWED_WAITS)},
	ON(STRAYED, PROVED_RUNS) = {S(PLAN_AGAIN), S(RENEWED_WAITS)},
	IN_RUNNING(CHANGED, PLAN_AGAIN, RENEWED_WAITS),
	IN_RUNNING(TIMED, PLAN, RENEWED_WAITS),
	ON(IDLE, PROVED_RUNS) = {S(RESTART), S(PROVED_WAITS)},
	ON(LEFT, NONE) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, GUESS_WAITS) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, GUESS_RUNS) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, UNSURE_WAITS) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, UNSURE_RUNS) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, RENEWED_WAITS) = {S(RESTART), S(PROVED_WAITS)},
	ON(LEFT, RENEWED_RUNS) = {S(RESTART), S(PROVED_WAITS)},
	ON(LEFT, PROVED_WAITS) = {S(RESTART), S(PROVED_WAITS)},
	ON(LEFT, PROVED_RUNS) = {S(RESTART), S(PROVED_WAITS)},
	ON(DOUBT, NONE) = {S(NOTHING), S(NONE)},
	ON(DOUBT, GUESS_WAITS) = {S(DROP), S(NONE)},
	ON(DOUBT, GUESS_RUNS) = {S(DROP), S(NONE)},
	ON(DOUBT, UNSURE_WAITS) = {S(DROP), S(NONE)},
	ON(DOUBT, UNSURE_RUNS) = {S(DROP), S(NONE)},
	IN_ANY(NEW, PLAN, GUESS_WAITS),
	ON(UNKNOWN, NONE) = {S(NOTHING), S(NONE)},
	ON(UNKNOWN, GUESS_WAITS) = {S(RESTART), S(UNSURE_WAITS)},
	ON(UNKNOWN, GUESS_RUNS) = {S(RESTART), S(UNSURE_WAITS)},
	ON(UNKNOWN, UNSURE_WAITS) = {S(RESTART), S(UNSURE_WAITS)},
	ON(UNKNOWN, UNSURE_RUNS) = {S(RESTART), S(UNSURE_WAITS)},
	ON(UNKNOWN, RENEWED_WAITS) = {S(RESTART), S(PROVED_WAITS)},
	ON(UNKNOWN, RENEWED_RUNS) = {S(RESTART), S(PROVED_WAITS)},
	ON(UNKNOWN, PROVED_WAITS) = {S(RESTART), S(PROVED_WAITS)},
	ON(UNKNOWN, PROVED_RUNS) = {S(RESTART), S(PROVED_WAITS)},
	IN_ANY(LOADED, PLAN, RENEWED_WAITS),
	IN_ANY(FAILED, DROP, NONE),
};

enum um_follow_action um_follow_step(enum um_follow_state *state, enum um_follow_event event)
{
	const struct rule *r = &rules[event][*state];

	if (r->action != UM_FOLLOW_IMPOSSIBLE)
		*state = r->next;
	return r->action;
}
