/* SPDX-License-Identifier: Apache-2.0
 *
 * Each row of the transition table of runtime/follow_state.h, and that there are no others.
 */
#include "runtime/follow_state.h"

#include "tap.h"

#define S(name) UM_FOLLOW_##name

static const char *const states[] = {"NONE",	      "GUESS_WAITS",	   "GUESS_RUNS",       "RENEWED_WAITS",
				     "RENEWED_RUNS",  "UNCONFIRMED_WAITS", "UNCONFIRMED_RUNS", "CONFIRMED_WAITS",
				     "CONFIRMED_RUNS"};
static const char *const events[] = {"FIRST_OP", "FOLLOWED",   "MISPLACED", "CHANGED", "TIMED",	 "IDLE",
				     "LEFT",	 "MISGUESSED", "NEW",	    "UNKNOWN", "LOADED", "FAILED"};

struct row {
	enum um_follow_event event;
	enum um_follow_state from;
	enum um_follow_action action;
	enum um_follow_state to;
};

/* As the header lists them. */
static const struct row table[] = {
	{S(ON_FIRST_OP), S(GUESS_WAITS), S(START), S(GUESS_RUNS)},
	{S(ON_FIRST_OP), S(RENEWED_WAITS), S(START), S(RENEWED_RUNS)},
	{S(ON_FIRST_OP), S(UNCONFIRMED_WAITS), S(START), S(UNCONFIRMED_RUNS)},
	{S(ON_FIRST_OP), S(CONFIRMED_WAITS), S(START), S(CONFIRMED_RUNS)},
	{S(ON_FOLLOWED), S(GUESS_RUNS), S(CONTINUE), S(CONFIRMED_RUNS)},
	{S(ON_FOLLOWED), S(RENEWED_RUNS), S(CONTINUE), S(CONFIRMED_RUNS)},
	{S(ON_FOLLOWED), S(UNCONFIRMED_RUNS), S(CONTINUE), S(CONFIRMED_RUNS)},
	{S(ON_FOLLOWED), S(CONFIRMED_RUNS), S(CONTINUE), S(CONFIRMED_RUNS)},
	{S(ON_MISPLACED), S(GUESS_RUNS), S(CONTINUE), S(CONFIRMED_RUNS)},
	{S(ON_MISPLACED), S(RENEWED_RUNS), S(CONTINUE), S(CONFIRMED_RUNS)},
	{S(ON_MISPLACED), S(UNCONFIRMED_RUNS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_MISPLACED), S(CONFIRMED_RUNS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_CHANGED), S(GUESS_RUNS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_CHANGED), S(RENEWED_RUNS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_CHANGED), S(UNCONFIRMED_RUNS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_CHANGED), S(CONFIRMED_RUNS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_CHANGED), S(GUESS_WAITS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_CHANGED), S(RENEWED_WAITS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_CHANGED), S(UNCONFIRMED_WAITS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_CHANGED), S(CONFIRMED_WAITS), S(PLAN_AGAIN), S(RENEWED_WAITS)},
	{S(ON_TIMED), S(GUESS_RUNS), S(PLAN), S(RENEWED_WAITS)},
	{S(ON_TIMED), S(RENEWED_RUNS), S(PLAN), S(RENEWED_WAITS)},
	{S(ON_TIMED), S(UNCONFIRMED_RUNS), S(PLAN), S(RENEWED_WAITS)},
	{S(ON_TIMED), S(CONFIRMED_RUNS), S(PLAN), S(RENEWED_WAITS)},
	{S(ON_IDLE), S(CONFIRMED_RUNS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_IDLE), S(GUESS_WAITS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_IDLE), S(RENEWED_WAITS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_IDLE), S(UNCONFIRMED_WAITS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_IDLE), S(CONFIRMED_WAITS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_LEFT), S(NONE), S(PLAN), S(GUESS_WAITS)},
	{S(ON_LEFT), S(GUESS_WAITS), S(PLAN), S(GUESS_WAITS)},
	{S(ON_LEFT), S(GUESS_RUNS), S(PLAN), S(GUESS_WAITS)},
	{S(ON_LEFT), S(UNCONFIRMED_WAITS), S(PLAN), S(GUESS_WAITS)},
	{S(ON_LEFT), S(UNCONFIRMED_RUNS), S(PLAN), S(GUESS_WAITS)},
	{S(ON_LEFT), S(RENEWED_WAITS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_LEFT), S(RENEWED_RUNS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_LEFT), S(CONFIRMED_WAITS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_LEFT), S(CONFIRMED_RUNS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_MISGUESSED), S(NONE), S(NOTHING), S(NONE)},
	{S(ON_MISGUESSED), S(GUESS_WAITS), S(DROP), S(NONE)},
	{S(ON_MISGUESSED), S(GUESS_RUNS), S(DROP), S(NONE)},
	{S(ON_MISGUESSED), S(UNCONFIRMED_WAITS), S(DROP), S(NONE)},
	{S(ON_MISGUESSED), S(UNCONFIRMED_RUNS), S(DROP), S(NONE)},
	{S(ON_MISGUESSED), S(RENEWED_WAITS), S(DROP), S(NONE)},
	{S(ON_MISGUESSED), S(RENEWED_RUNS), S(DROP), S(NONE)},
	{S(ON_MISGUESSED), S(CONFIRMED_WAITS), S(DROP), S(NONE)},
	{S(ON_MISGUESSED), S(CONFIRMED_RUNS), S(DROP), S(NONE)},
	{S(ON_UNKNOWN), S(NONE), S(NOTHING), S(NONE)},
	{S(ON_UNKNOWN), S(GUESS_WAITS), S(RESTART), S(UNCONFIRMED_WAITS)},
	{S(ON_UNKNOWN), S(GUESS_RUNS), S(RESTART), S(UNCONFIRMED_WAITS)},
	{S(ON_UNKNOWN), S(UNCONFIRMED_WAITS), S(RESTART), S(UNCONFIRMED_WAITS)},
	{S(ON_UNKNOWN), S(UNCONFIRMED_RUNS), S(RESTART), S(UNCONFIRMED_WAITS)},
	{S(ON_UNKNOWN), S(RENEWED_WAITS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_UNKNOWN), S(RENEWED_RUNS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_UNKNOWN), S(CONFIRMED_WAITS), S(RESTART), S(CONFIRMED_WAITS)},
	{S(ON_UNKNOWN), S(CONFIRMED_RUNS), S(RESTART), S(CONFIRMED_WAITS)},
};

/* The row of a pair; those of NEW, LOADED and FAILED are the same in every state. */
static struct row row_of(enum um_follow_event event, enum um_follow_state from)
{
	if (event == S(ON_NEW))
		return (struct row){event, from, S(PLAN), S(GUESS_WAITS)};
	if (event == S(ON_LOADED))
		return (struct row){event, from, S(PLAN), S(RENEWED_WAITS)};
	if (event == S(ON_FAILED))
		return (struct row){event, from, S(DROP), S(NONE)};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].event == event && table[i].from == from)
			return table[i];
	return (struct row){event, from, S(IMPOSSIBLE), from};
}

static void steps(enum um_follow_event event, enum um_follow_state from)
{
	struct row row = row_of(event, from);
	enum um_follow_state state = from;
	enum um_follow_action action = um_follow_step(&state, event);

	if (row.action == S(IMPOSSIBLE))
		ok(action == row.action && state == from, "%s cannot occur in %s: the state stays", events[event],
		   states[from]);
	else
		ok(action == row.action && state == row.to, "%s in %s: action %d, then %s", events[event], states[from],
		   (int)row.action, states[row.to]);
}

static void waits_before_the_first_op(void)
{
	for (unsigned s = 0; s < UM_FOLLOW_STATES; s++)
		is_int(um_follow_waits((enum um_follow_state)s), strstr(states[s], "_WAITS") != NULL,
		       "%s: whether it waits for the first op", states[s]);
}

int main(void)
{
	for (unsigned e = 0; e < UM_FOLLOW_EVENTS; e++)
		for (unsigned s = 0; s < UM_FOLLOW_STATES; s++)
			steps((enum um_follow_event)e, (enum um_follow_state)s);
	waits_before_the_first_op();
	return tap_done();
}
