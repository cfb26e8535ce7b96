/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_job.h - makes a plan and compiles it, from values alone
 *
 * in    a schedule; the budget, costs and memory of a device
 * out   a proved plan and its compiled program, or an error with its reason
 * owns  all of these
 *
 * Any thread may run a job: it calls no device, takes no lock and refers to nothing of a context. It has two stages.
 * Search makes a plan; its tensors may need more memory (`grow`), which the caller adds, and moves the plan there.
 * Compile proves the plan and compiles it. While a stage runs, only `cancelled` may be written. Plan path.
 */
#ifndef UM_RUNTIME_PLAN_JOB_H
#define UM_RUNTIME_PLAN_JOB_H

#include "model/plan.h"
#include "model/profile.h"
#include "plan/planner.h"
#include "replay/compiled_plan.h"
#include "replay/evict_policy.h"
#include "runtime/relaunches.h"

#include <stdatomic.h>

/* What a plan depends on besides its schedule. */
struct um_plan_device {
	struct um_profile profile;
	uint64_t budget, host_budget; /* bytes; no limit of host memory: 0 */
	int larger; /* the device has more memory than that */
	int fits; /* all memory that tensors use or have used fits in the budget, and is hardly more than they needed */
	int can_discard; /* the device can */
	enum um_evict_policy evict;
	UM_VEC(struct um_plan_room) rooms; /* where tensors may be placed, ascending */
	UM_VEC(uint64_t) on_host; /* blocks that have host memory, ascending, where that is limited */
	UM_VEC(struct um_plan_room) own; /* all memory of the arenas: nothing else is discarded */
};

void um_plan_device_fini(struct um_plan_device *d);

struct um_plan_job {
	/* in */
	struct um_plan_device device;
	struct um_schedule sched; /* its ops have times; live tensors that no op uses have slots, too */
	const char *strategy; /* static */
	int relaunches; /* the plan may launch ops again */
	unsigned plan_ms; /* to search for a better plan; 0: a fixed effort */
	unsigned most_ms; /* the search fails after so much more; 0: no limit */
	uint64_t (*wall_ms)(void); /* the clock of both limits */
	atomic_int cancelled; /* the search ends when it sees this */
	/* out */
	struct um_plan plan; /* of all launches */
	struct um_plan recomputes; /* the same with recompute hints; no ops: it launches nothing again */
	struct um_relaunches again;
	struct um_compiled_plan program;
	struct um_plan_figures figures;
	uint64_t grow; /* bytes that the plan needs beyond the rooms */
	int err; /* of the latest stage; -ETIMEDOUT: no plan was found in time; -ECANCELED */
	char why[256]; /* its reason, in words; may be empty */
};

void um_plan_job_init(struct um_plan_job *j);
void um_plan_job_fini(struct um_plan_job *j); /* frees the content; the job may be filled in again */

/* The stages return `err`: 0, -ENOMEM, or another -errno. */
int um_plan_job_search(struct um_plan_job *j);
int um_plan_job_compile(struct um_plan_job *j);

/* The memory that `grow` asked for begins at `addr`. 0 or -ENOMEM. */
int um_plan_job_move(struct um_plan_job *j, uint64_t addr);

/* Compiles the plan once more, for other current addresses of its tensors (bound_addr): `program` keeps its policies.
 * 0, or -ENOMEM and it is unchanged. */
int um_plan_compile_again(const struct um_plan_device *d, const struct um_plan *plan, struct um_compiled_plan *program);

#endif
