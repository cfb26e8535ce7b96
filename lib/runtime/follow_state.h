/* SPDX-License-Identifier: Apache-2.0
 *
 * follow_state.h - state machine of the plan: whether it exists, whether its schedule is confirmed, what happens at an
 * iteration's end
 *
 * in    one event at a time
 * out   the action to take
 * owns  nothing
 *
 * A plan is new until the first iteration under it has ended. It is confirmed if its schedule was followed to its end,
 * or if it was loaded. A plan waits for the first op of an iteration that fits, or for one after several that fit; from
 * then on it runs:
 *
 *                       waits                runs
 *     new               GUESS_WAITS          GUESS_RUNS
 *     new, confirmed    RENEWED_WAITS        RENEWED_RUNS
 *     old               UNCONFIRMED_WAITS    UNCONFIRMED_RUNS
 *     old, confirmed    CONFIRMED_WAITS      CONFIRMED_RUNS
 *
 * Events and actions. "kept": GUESS becomes UNCONFIRMED, RENEWED becomes CONFIRMED.
 *
 *     event       the iteration ...                           in state          action      next state
 *     FIRST_OP    begins with the expected op                 *_WAITS           START       the same, *_RUNS
 *     FOLLOWED    was followed; no better plan is known       *_RUNS            CONTINUE    CONFIRMED_RUNS
 *     MISPLACED   was followed; tensors are not at their      GUESS_RUNS        CONTINUE    CONFIRMED_RUNS
 *                 places (under a new plan: since earlier)    RENEWED_RUNS      CONTINUE    CONFIRMED_RUNS
 *                                                             UNCONFIRMED_RUNS  PLAN_AGAIN  RENEWED_WAITS
 *                                                             CONFIRMED_RUNS    PLAN_AGAIN  RENEWED_WAITS
 *     CHANGED     was followed; the schedule is known better  any but NONE      PLAN_AGAIN  RENEWED_WAITS
 *                 or, in *_WAITS, tensors of other
 *                 iterations are in the plan's way
 *     TIMED       was followed; measured times differ         *_RUNS            PLAN        RENEWED_WAITS
 *     IDLE        was followed, but the plan did not run      CONFIRMED_RUNS    RESTART     CONFIRMED_WAITS
 *                                                             *_WAITS           RESTART     CONFIRMED_WAITS
 *     LEFT        left the schedule, for an unknown pattern   NONE              PLAN        GUESS_WAITS
 *                                                             GUESS_*           PLAN        GUESS_WAITS
 *                                                             UNCONFIRMED_*     PLAN        GUESS_WAITS
 *                                                             RENEWED_*         RESTART     CONFIRMED_WAITS
 *                                                             CONFIRMED_*       RESTART     CONFIRMED_WAITS
 *     MISGUESSED  the same, after wrong guesses, or several   NONE              NOTHING     NONE
 *                 times in a row                              any other         DROP        NONE
 *     NEW         left it, for a pattern that occurred twice  any               PLAN        GUESS_WAITS
 *     UNKNOWN     left it, and cannot be learned              NONE              NOTHING     NONE
 *                                                             any other         RESTART     kept, *_WAITS
 *     LOADED      (a plan was loaded)                         any               PLAN        RENEWED_WAITS
 *     FAILED      (the action failed)                         any               DROP        NONE
 *
 * A pair that is not listed cannot occur.
 *
 * A plan may take longer to make than an iteration. Until it is there, an event with the action PLAN or PLAN_AGAIN is
 * replaced; when it is there, the event is that of the iteration that has ended, or if that needs no plan: NEW without
 * a plan, and otherwise the event for which the plan was made, or CHANGED if that cannot occur any more.
 *
 *     event                       until the plan is there
 *     CHANGED, MISPLACED, TIMED   in *_RUNS FOLLOWED, in *_WAITS IDLE: the old plan is followed on
 *     LEFT, NEW                   MISGUESSED: no plan
 */
#ifndef UM_RUNTIME_FOLLOW_STATE_H
#define UM_RUNTIME_FOLLOW_STATE_H

enum um_follow_state {
	UM_FOLLOW_NONE, /* no plan */
	UM_FOLLOW_GUESS_WAITS, /* odd numbers: the plan waits */
	UM_FOLLOW_GUESS_RUNS,
	UM_FOLLOW_RENEWED_WAITS,
	UM_FOLLOW_RENEWED_RUNS,
	UM_FOLLOW_UNCONFIRMED_WAITS,
	UM_FOLLOW_UNCONFIRMED_RUNS,
	UM_FOLLOW_CONFIRMED_WAITS,
	UM_FOLLOW_CONFIRMED_RUNS,
	UM_FOLLOW_STATES
};

enum um_follow_event {
	UM_FOLLOW_ON_FIRST_OP,
	UM_FOLLOW_ON_FOLLOWED,
	UM_FOLLOW_ON_MISPLACED,
	UM_FOLLOW_ON_CHANGED,
	UM_FOLLOW_ON_TIMED,
	UM_FOLLOW_ON_IDLE,
	UM_FOLLOW_ON_LEFT,
	UM_FOLLOW_ON_MISGUESSED,
	UM_FOLLOW_ON_NEW,
	UM_FOLLOW_ON_UNKNOWN,
	UM_FOLLOW_ON_LOADED,
	UM_FOLLOW_ON_FAILED,
	UM_FOLLOW_EVENTS
};

enum um_follow_action {
	UM_FOLLOW_IMPOSSIBLE, /* not in the table: the state is unchanged */
	UM_FOLLOW_NOTHING,
	UM_FOLLOW_START, /* run the compiled plan from this op on */
	UM_FOLLOW_CONTINUE, /* run it for one more iteration */
	UM_FOLLOW_RESTART, /* compile the plan again, for the current addresses of tensors */
	UM_FOLLOW_PLAN, /* plan the learned schedule */
	UM_FOLLOW_PLAN_AGAIN, /* the same; it counts as one more plan of one schedule */
	UM_FOLLOW_DROP /* drop the plan */
};

/* Goes to the next state. Returns the action that the caller takes. */
enum um_follow_action um_follow_step(enum um_follow_state *state, enum um_follow_event event);

/* Is a plan needed for this event? */
int um_follow_needs_plan(enum um_follow_state state, enum um_follow_event event);

/* The event in place of one for which there is no plan yet. */
enum um_follow_event um_follow_without_plan(enum um_follow_state state, enum um_follow_event event);

static inline int um_follow_is_confirmed(enum um_follow_state state)
{
	return (state >= UM_FOLLOW_RENEWED_WAITS && state <= UM_FOLLOW_RENEWED_RUNS) ||
	       state >= UM_FOLLOW_CONFIRMED_WAITS;
}

static inline int um_follow_waits(enum um_follow_state state)
{
	return (int)((unsigned)state & 1u);
}

#endif
