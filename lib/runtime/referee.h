/* SPDX-License-Identifier: Apache-2.0
 *
 * referee.h - compares measured iterations with hints and without, and stops hints that do not pay
 *
 * in    iterations: their signature, the hints that they had, and later their time on the device
 * out   the hints that the next iteration may have; changes, for the log
 * owns  nothing
 *
 * Iterations are compared with those of the same signature; those met for the first time with others of as many ops,
 * where the bound on their page faults says how much longer one should take than another. Three kinds of hints: of a
 * plan, of predicted ops, none.
 * An iteration may always have fewer hints than it is allowed. Samples without a plan come for free, as a plan begins
 * after some iterations; others are the result of a trial: a few iterations with another kind of hints. A trial costs
 * the time that its iterations, and those after it, take beyond the usual one. All trials together may cost 0.8 % of
 * the time that has passed: before one begins, its cost is estimated from samples, from the trial before, or by a bound
 * on an iteration without hints. After a trial that changes nothing the next one of that kind waits for twice as many
 * iterations.
 *
 * Hints stop if fewer are certainly more than 5 % faster (time_samples.h); they are resumed if that does not appear so
 * any more, after some iterations without them or after a trial. If the time of iterations changes by more than a
 * quarter, samples of other kinds are forgotten, and trials need not wait.
 *
 * A value; bounded memory. Iteration path: O(keys).
 */
#ifndef UM_RUNTIME_REFEREE_H
#define UM_RUNTIME_REFEREE_H

#include "runtime/time_samples.h"

#include <stddef.h>

#define UM_REFEREE_KEYS 16 /* signatures; the one not met for longest gives way */
#define UM_REFEREE_MARGIN 20 /* fewer hints must be faster by this part */
#define UM_REFEREE_PART 125 /* of the time that passes, for trials: hints stopped by mistake cost time, too */
#define UM_REFEREE_PAUSE 64 /* iterations between the first trials of a kind of hints, */
#define UM_REFEREE_PAUSE_MOST 4096 /* and at most */

enum um_referee_hints {
	UM_REFEREE_NONE,
	UM_REFEREE_PREDICTED,
	UM_REFEREE_PLANNED,
	UM_REFEREE_KINDS /* an iteration that had several kinds */
};

/* What the referee needs to know of an iteration when it is measured. */
struct um_referee_mark {
	uint64_t key;
	enum um_referee_hints had;
	int settled; /* so had the iterations before: it is a sample */
	int trial; /* it is part of a trial, or follows one */
	double scale; /* its time times this one is compared */
};

struct um_referee_arm {
	struct um_time_samples samples;
	int fresh; /* the latest one has not been judged: chance would decide if the same ones were judged often */
	uint64_t level_ns; /* the median at the latest change by more than a quarter; 0: not known */
	int tried;
	uint64_t cost_ns; /* of its latest trial */
	uint32_t pause, wait; /* iterations: after its next trial, until its next trial */
};

struct um_referee_key {
	uint64_t key; /* 0: free */
	uint64_t met; /* number of the latest iteration with this key */
	int doubted; /* hints were stopped, and that is to be judged once more */
	int hopeful; /* the latest trial of one iteration without hints did not take too long */
	uint64_t fault_ns; /* bound on the page faults of an iteration without hints; 0: met for the first time */
	enum um_referee_hints allowed;
	enum um_referee_hints has; /* of the latest iterations outside trials */
	struct um_referee_arm arms[UM_REFEREE_KINDS];
};

struct um_referee_trial {
	uint64_t key; /* 0: none */
	enum um_referee_hints allowed;
	uint32_t left, after; /* iterations of the trial that have not ended; then of those after it */
	uint32_t unmeasured; /* of both; */
	uint32_t late; /* iterations since the last one */
	int probes; /* it is one iteration, to see how long it takes */
	uint64_t base_ns; /* the usual time */
	uint64_t first_ns; /* of its first iteration, 0: not measured */
	int64_t cost_ns; /* so far */
};

struct um_referee {
	int on;
	enum um_referee_hints allowed; /* in the iteration that begins */
	enum um_referee_hints had; /* latest iteration */
	uint32_t in_a_row; /* iterations before it with the same kind */
	uint64_t n; /* iterations */
	uint64_t total_ns; /* measured */
	int64_t spent_ns; /* on trials */
	uint32_t trials;
	struct um_referee_trial trial;
	struct um_referee_key keys[UM_REFEREE_KEYS];
};

/* Hints were stopped, or resumed. */
struct um_referee_change {
	enum um_referee_hints from, to;
	uint64_t from_ns, to_ns; /* medians */
};

void um_referee_init(struct um_referee *r, int on);

/* The entry of an iteration that has ended. If it has no bound yet, um_referee_add comes next. */
struct um_referee_key *um_referee_meet(struct um_referee *r, uint64_t signature);

/* Sets the bound of an entry met for the first time. Returns the entry that such iterations of `n_ops` ops share;
 * `*scale` is that of their mark. */
struct um_referee_key *um_referee_add(struct um_referee *r, struct um_referee_key *k, uint64_t fault_ns, size_t n_ops,
				      double *scale);

/* The iteration had these hints. Its mark; `r->allowed` is set for the next one. */
struct um_referee_mark um_referee_end(struct um_referee *r, struct um_referee_key *k, double scale,
				      enum um_referee_hints had);

/* Such an iteration was measured. 1: the hints of its key have changed, from its next iteration on. */
int um_referee_measure(struct um_referee *r, const struct um_referee_mark *m, uint64_t ns,
		       struct um_referee_change *change);

/* The samples of iterations of the signature with these hints; NULL: it was not met lately. */
const struct um_time_samples *um_referee_samples(const struct um_referee *r, uint64_t signature,
						 enum um_referee_hints had);

/* Another plan is followed: samples of the one before do not count. */
void um_referee_forget_plan(struct um_referee *r);

#endif
