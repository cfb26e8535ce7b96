/* SPDX-License-Identifier: Apache-2.0
 *
 * player.h - plays a trace through the public API on a simulated GPU, like an application
 *
 * in    a trace, a device profile, a budget, a strategy, how many iterations
 * out   the cost of each iteration
 * owns  the context and the simulated device while it plays
 *
 * The library has to find iterations that are not marked in the file (trace_marks.h). A trace that does not repeat is
 * one iteration, played once. After the recorded iterations their shortest repeating tail is repeated; tensors
 * correspond by their order in the iteration, not by number. Deterministic.
 */
#ifndef UM_PLAY_PLAYER_H
#define UM_PLAY_PLAYER_H

#include "umadvise.h"
#include "io/umtrace.h"
#include "play/jitter.h"
#include "model/activity.h"
#include "model/hint_source.h"
#include "model/plan.h"
#include "model/profile.h"
#include "model/tally.h"

#define UM_PLAY_DOMAIN "umadvise"
#define UM_PLAY_RANGE "iteration %llu"

struct um_gpu;

/* From UM_PLAYS on: published schemes by number (plan/planner.h), then drivers (um_play_drivers). */
enum um_play_strategy { UM_PLAY_INFINITE, UM_PLAY_ON_DEMAND, UM_PLAY_PREFETCH_ON_USE, UM_PLAY_LOOKAHEAD, UM_PLAYS };

const char *um_play_strategy_name(enum um_play_strategy s);
int um_play_strategy_parse(const char *name); /* or -EINVAL */
int um_play_strategy_plans(enum um_play_strategy s); /* does it learn and plan? */

/* Adds drivers for comparison, once, at the start of the program. Borrowed. */
struct um_sim_driver;
void um_play_drivers(const struct um_sim_driver *list, unsigned n);

struct um_play_options {
	const struct um_profile *profile;
	uint64_t budget; /* bytes */
	uint64_t host_bytes; /* host memory for evicted data, of plans; 0: no limit */
	uint64_t device_bytes; /* memory of the device; 0: the budget */
	enum um_play_strategy strategy;
	uint64_t iterations; /* number of played ones, at least 1 */
	unsigned plan_ms; /* struct umadv_options */
	enum umadv_evict evict; /* likewise */
	int pattern; /* enum um_pattern, of all kernels */
	struct um_jitter jitter; /* deviation of kernel times from the announced ones; 0: none */
	int means; /* figures are means over the second half of the iterations instead of the last one's */
	/* Called after each event batch; may be NULL. */
	void (*progress)(void *user, uint64_t iteration, uint64_t iterations);
	void (*log)(void *user, const char *line); /* receives log lines of the library; may be NULL */
	void *user;
	int recompute; /* the last plan may launch ops again: once it is saved, or with um_play_again */
	const char *save_plan; /* write the last plan here, or NULL */
	/* Called with the last plan before it is saved; may be NULL. 0 or -errno. */
	int (*planned)(void *user, struct um_plan *plan);
	void *planned_user;
	/* Receives a profiler's activities, each iteration as a range UM_PLAY_RANGE of the domain UM_PLAY_DOMAIN, and
	 * tensors, ops and hints; out of order. May be NULL. */
	struct um_activity_sink *watch;
	/* Called with the simulated device, which then keeps a ledger, before the first event; may be NULL. */
	void (*opened)(void *user, struct um_gpu *gpu);
	void *opened_user;
	struct um_gpu *gpu; /* an open device, which is taken, instead of one of its own; NULL */
};

struct um_play_iteration {
	uint64_t first_op; /* ops before it, set-up included */
	uint64_t ns; /* device time from its begin to the next one's */
	uint64_t faults;
	uint64_t stall_ns; /* ns beyond the time of its ops with everything resident */
	uint64_t h2d_bytes, d2h_bytes;
	uint64_t hints; /* issued prefetches, evictions and discards */
	uint64_t peak_resident_bytes, peak_prefetched_bytes; /* see um_tally */
	int hinted; /* by a plan */
	uint64_t elsewhere; /* births under a plan that are not at its addresses */
	struct um_hints_by_source by; /* `hints` and prefetched bytes; without bytes where a plan is played */
	uint64_t in_core_ns; /* time of its ops with everything resident */
	uint64_t kind; /* the same for iterations of like ops; 0: a plan is played */
	const char *name; /* as marked, of the trace; may be NULL */
};

struct um_play_result {
	UM_VEC(struct um_play_iteration) iterations;
	int irregular; /* the iterations from the third on are not all alike */
	uint64_t sum_ns; /* of the iterations from the third on; of all, where there are no more than two */
	/* Of the last iteration, or means; irregular: means over the iterations from the third on */
	uint64_t steady_ns, in_core_ns, faults, stall_ns, h2d_bytes, d2h_bytes, hints, peak_resident_bytes;
	uint64_t host_bytes; /* host memory that the driver has taken by the end */
	int64_t first_hinted_iteration; /* -1: none */
	uint64_t planned_ns; /* predicted iteration of the last followed plan; 0: none */
	uint64_t played_ns; /* measured steady iteration under that plan; 0: none */
	struct um_plan_figures plan; /* of the plan that was saved */
	uint64_t predicted_ns; /* predicted iteration of the played plan (plan_player.h); else 0 */
	uint64_t relaunches; /* of an iteration under that plan */
	char why[256]; /* why it could not be played: one line */
};

void um_play_result_fini(struct um_play_result *r);

/* Sums the iterations (at least one) up; `in_core_ns` is known of the last one. */
void um_play_result_settle(struct um_play_result *r, int means);

/* Plays. 0; -E2BIG: the budget is less than a block (`why` says so); -ENODATA: a plan was to be saved and there is
 * none; -ENOMEM and others. */
int um_play(const struct um_trace *trace, const struct um_play_options *o, struct um_play_result *out);

#endif
