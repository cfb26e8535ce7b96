/* SPDX-License-Identifier: Apache-2.0
 *
 * checking.h - UMADVISE_CHECK: kernels on the simulated GPU against the ops that announce them
 *
 * in    ops as they are announced, kernels with host code, live tensors
 * out   a log line for each op and tensor that the kernel touches and the op does not declare, or writes and the op
 *       declares read
 * owns  a record of each kernel until it has run and its lines are logged
 *
 * A kernel runs when simulated time reaches it, on any thread and perhaps after its tensors were freed: its record has
 * the tensors that lived when it was launched, and what it touched, until it is logged, with the context's lock held.
 * Off, nothing is kept.
 */
#ifndef UM_RUNTIME_CHECKING_H
#define UM_RUNTIME_CHECKING_H

#include "base/vec.h"
#include "gpu/simulation.h"
#include "record/registry.h"
#include "runtime/notices.h"

struct um_checked_run;
struct um_checked_tensors;

struct um_checked_op {
	um_stream stream;
	char *name; /* owned; of the op announced last */
};

struct um_checking {
	int on;
	UM_VEC(struct um_checked_op) ops; /* by stream */
	struct um_checked_tensors *tensors; /* live ones, as of the last launch; counted; NULL: none yet */
	UM_VEC(struct um_checked_run *) runs; /* in order of launch */
	UM_VEC(uint64_t) said; /* hashes of lines: each is logged once */
};

void um_checking_open(struct um_checking *c, struct um_gpu *gpu,
		      struct um_notices *notices); /* says so where the system does not let it check */
void um_checking_fini(struct um_checking *c, struct um_notices *notices); /* after the device is closed */

void um_checking_op(struct um_checking *c, um_stream stream, const char *name);
/* The kernel about to be launched is checked, if there is memory for it and an op was announced on the stream. */
struct um_checked_run *um_checking_launch(struct um_checking *c, const struct um_registry *r, um_stream stream,
					  struct um_sim_kernel *k);
void um_checking_cancel(struct um_checking *c, struct um_checked_run *run); /* it was not launched. NULL is allowed */
void um_checking_report(struct um_checking *c, struct um_notices *notices); /* logs accesses of finished kernels */

#endif
