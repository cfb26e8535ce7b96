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
		  ON(event, UNCONFIRMED_WAITS) = {S(does), S(then)}, ON(event, CONFIRMED_WAITS) = {S(does), S(then)}
#define IN_RUNNING(event, does, then)                                                                                  \
	ON(event, GUESS_RUNS) = {S(does), S(then)}, ON(event, RENEWED_RUNS) = {S(does), S(then)},                      \
		  ON(event, UNCONFIRMED_RUNS) = {S(does), S(then)}, ON(event, CONFIRMED_RUNS) = {S(does), S(then)}
#define IN_ANY(event, does, then)                                                                                      \
	ON(event, NONE) = {S(does), S(then)}, IN_WAITING(event, does, then), IN_RUNNING(event, does, then)

static const struct rule rules[UM_FOLLOW_EVENTS][UM_FOLLOW_STATES] = {
	ON(FIRST_OP, GUESS_WAITS) = {S(START), S(GUESS_RUNS)},
	ON(FIRST_OP, RENEWED_WAITS) = {S(START), S(RENEWED_RUNS)},
	ON(FIRST_OP, UNCONFIRMED_WAITS) = {S(START), S(UNCONFIRMED_RUNS)},
	ON(FIRST_OP, CONFIRMED_WAITS) = {S(START), S(CONFIRMED_RUNS)},
	IN_RUNNING(FOLLOWED, CONTINUE, CONFIRMED_RUNS),
	ON(MISPLACED, GUESS_RUNS) = {S(CONTINUE), S(CONFIRMED_RUNS)},
	ON(MISPLACED, RENEWED_RUNS) = {S(CONTINUE), S(CONFIRMED_RUNS)},
	ON(MISPLACED, UNCONFIRMED_RUNS) = {S(PLAN_AGAIN), S(RENEWED_WAITS)},
	ON(MISPLACED, CONFIRMED_RUNS) = {S(PLAN_AGAIN), S(RENEWED_WAITS)},
	IN_RUNNING(CHANGED, PLAN_AGAIN, RENEWED_WAITS),
	IN_WAITING(CHANGED, PLAN_AGAIN, RENEWED_WAITS),
	IN_RUNNING(TIMED, PLAN, RENEWED_WAITS),
	ON(IDLE, CONFIRMED_RUNS) = {S(RESTART), S(CONFIRMED_WAITS)},
	IN_WAITING(IDLE, RESTART, CONFIRMED_WAITS),
	ON(LEFT, NONE) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, GUESS_WAITS) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, GUESS_RUNS) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, UNCONFIRMED_WAITS) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, UNCONFIRMED_RUNS) = {S(PLAN), S(GUESS_WAITS)},
	ON(LEFT, RENEWED_WAITS) = {S(RESTART), S(CONFIRMED_WAITS)},
	ON(LEFT, RENEWED_RUNS) = {S(RESTART), S(CONFIRMED_WAITS)},
	ON(LEFT, CONFIRMED_WAITS) = {S(RESTART), S(CONFIRMED_WAITS)},
	ON(LEFT, CONFIRMED_RUNS) = {S(RESTART), S(CONFIRMED_WAITS)},
	ON(MISGUESSED, NONE) = {S(NOTHING), S(NONE)},
	IN_WAITING(MISGUESSED, DROP, NONE),
	IN_RUNNING(MISGUESSED, DROP, NONE),
	IN_ANY(NEW, PLAN, GUESS_WAITS),
	ON(UNKNOWN, NONE) = {S(NOTHING), S(NONE)},
	ON(UNKNOWN, GUESS_WAITS) = {S(RESTART), S(UNCONFIRMED_WAITS)},
	ON(UNKNOWN, GUESS_RUNS) = {S(RESTART), S(UNCONFIRMED_WAITS)},
	ON(UNKNOWN, UNCONFIRMED_WAITS) = {S(RESTART), S(UNCONFIRMED_WAITS)},
	ON(UNKNOWN, UNCONFIRMED_RUNS) = {S(RESTART), S(UNCONFIRMED_WAITS)},
	ON(UNKNOWN, RENEWED_WAITS) = {S(RESTART), S(CONFIRMED_WAITS)},
	ON(UNKNOWN, RENEWED_RUNS) = {S(RESTART), S(CONFIRMED_WAITS)},
	ON(UNKNOWN, CONFIRMED_WAITS) = {S(RESTART), S(CONFIRMED_WAITS)},
	ON(UNKNOWN, CONFIRMED_RUNS) = {S(RESTART), S(CONFIRMED_WAITS)},
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

int um_follow_needs_plan(enum um_follow_state state, enum um_follow_event event)
{
	enum um_follow_action action = rules[event][state].action;

	return action == UM_FOLLOW_PLAN || action == UM_FOLLOW_PLAN_AGAIN;
}

enum um_follow_event um_follow_without_plan(enum um_follow_state state, enum um_follow_event event)
{
	if (event == UM_FOLLOW_ON_LEFT || event == UM_FOLLOW_ON_NEW)
		return UM_FOLLOW_ON_MISGUESSED;
	return um_follow_waits(state) ? UM_FOLLOW_ON_IDLE : UM_FOLLOW_ON_FOLLOWED;
}
