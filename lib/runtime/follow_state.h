/* SPDX-License-Identifier: Apache-2.0
 *
 * follow_state.h - is there a plan, how sure is it, and what happens to it when an iteration ends
 *
 * in    one event at a time
 * out   what to do
 * owns  nothing
 *
 * A plan is NEW until the first iteration under it has ended. It is sure where its schedule was followed to its end, or
 * comes from an earlier run. Before the first op of an iteration that fits, a plan waits; then its program runs:
 *
 *                 waits               runs
 *     new         GUESS_WAITS         GUESS_RUNS
 *     new, sure   RENEWED_WAITS       RENEWED_RUNS
 *     old         UNSURE_WAITS        UNSURE_RUNS
 *     old, sure   PROVED_WAITS        PROVED_RUNS
 *
 * Events and what follows. "kept": GUESS and UNSURE become UNSURE, RENEWED and PROVED become PROVED.
 *
 *     event     the iteration ...                               in state      action      next state
 *     FIRST_OP  begins with the op that is expected             *_WAITS       TAKE_UP     the same, *_RUNS
 *     AS_IS     was followed; nothing to do better              *_RUNS        GO_ON       PROVED_RUNS
 *     STRAYED   was followed; tensors lie elsewhere than        GUESS_RUNS    GO_ON       PROVED_RUNS
 *               planned (under a new plan: since before it)     RENEWED_RUNS  GO_ON       PROVED_RUNS
 *                                                               UNSURE_RUNS   PLAN_AGAIN  RENEWED_WAITS
 *                                                               PROVED_RUNS   PLAN_AGAIN  RENEWED_WAITS
 *     CHANGED   was followed; more is known of the schedule     *_RUNS        PLAN_AGAIN  RENEWED_WAITS
 *     TIMED     was followed; measured times differ             *_RUNS        PLAN        RENEWED_WAITS
 *     IDLE      was followed, but its program could not run     PROVED_RUNS   RESTART     PROVED_WAITS
 *     LEFT      left the schedule, for a pattern never seen     NONE          PLAN        GUESS_WAITS
 *                                                               GUESS_*       PLAN        GUESS_WAITS
 *                                                               UNSURE_*      PLAN        GUESS_WAITS
 *                                                               RENEWED_*     RESTART     PROVED_WAITS
 *                                                               PROVED_*      RESTART     PROVED_WAITS
 *     DOUBT     the same, after guesses that were wrong         NONE          NOTHING     NONE
 *                                                               GUESS_*       DROP        NONE
 *                                                               UNSURE_*      DROP        NONE
 *     NEW       left it, for a pattern that came twice          any           PLAN        GUESS_WAITS
 *     UNKNOWN   left it, and cannot be learned                  NONE          NOTHING     NONE
 *                                                               any other     RESTART     kept, *_WAITS
 *     LOADED    (a plan was loaded)                             any           PLAN        RENEWED_WAITS
 *     FAILED    (the action failed)                             any           DROP        NONE
 *
 * A pair that is not listed cannot occur.
 */
#ifndef UM_RUNTIME_FOLLOW_STATE_H
#define UM_RUNTIME_FOLLOW_STATE_H

enum um_follow_state {
	UM_FOLLOW_NONE, /* no plan */
	UM_FOLLOW_GUESS_WAITS, /* odd numbers wait */
	UM_FOLLOW_GUESS_RUNS,
	UM_FOLLOW_RENEWED_WAITS,
	UM_FOLLOW_RENEWED_RUNS,
	UM_FOLLOW_UNSURE_WAITS,
	UM_FOLLOW_UNSURE_RUNS,
	UM_FOLLOW_PROVED_WAITS,
	UM_FOLLOW_PROVED_RUNS,
	UM_FOLLOW_STATES
};

enum um_follow_event {
	UM_FOLLOW_ON_FIRST_OP,
	UM_FOLLOW_ON_AS_IS,
	UM_FOLLOW_ON_STRAYED,
	UM_FOLLOW_ON_CHANGED,
	UM_FOLLOW_ON_TIMED,
	UM_FOLLOW_ON_IDLE,
	UM_FOLLOW_ON_LEFT,
	UM_FOLLOW_ON_DOUBT,
	UM_FOLLOW_ON_NEW,
	UM_FOLLOW_ON_UNKNOWN,
	UM_FOLLOW_ON_LOADED,
	UM_FOLLOW_ON_FAILED,
	UM_FOLLOW_EVENTS
};

enum um_follow_action {
	UM_FOLLOW_IMPOSSIBLE, /* not in the table: the state stays */
	UM_FOLLOW_NOTHING,
	UM_FOLLOW_TAKE_UP, /* run the program from this op on */
	UM_FOLLOW_GO_ON, /* run it for one more iteration */
	UM_FOLLOW_RESTART, /* compile the program anew, for tensors where they lie now */
	UM_FOLLOW_PLAN, /* plan what was learned */
	UM_FOLLOW_PLAN_AGAIN, /* the same; it counts as one more plan of one schedule */
	UM_FOLLOW_DROP /* the plan is gone */
};

/* Goes to the next state. The caller does what is returned. */
enum um_follow_action um_follow_step(enum um_follow_state *state, enum um_follow_event event);

static inline int um_follow_is_sure(enum um_follow_state state)
{
	return (state >= UM_FOLLOW_RENEWED_WAITS && state <= UM_FOLLOW_RENEWED_RUNS) || state >= UM_FOLLOW_PROVED_WAITS;
}

static inline int um_follow_waits(enum um_follow_state state)
{
	return (int)((unsigned)state & 1u);
}

#endif
