/* SPDX-License-Identifier: Apache-2.0
 *
 * checking.h - UMADVISE_CHECK: compares accesses of simulated kernels with the uses that ops declare
 *
 * in    announced ops, kernels with host code, live tensors
 * out   a log line for each op and tensor with an undeclared access, or with a write that is declared as a read
 * owns  a record of each kernel until it has run and its lines are logged
 *
 * A kernel runs when simulated time reaches it, on any thread, perhaps after its tensors were freed. Its record holds
 * the tensors that were alive at the launch and the accesses of the kernel, until both are logged under the context's
 * lock. While checking is off nothing is recorded.
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
	struct um_checked_tensors *tensors; /* live ones, as of the last launch; reference counted; NULL: none yet */
	UM_VEC(struct um_checked_run *) runs; /* in order of launch */
	UM_VEC(uint64_t) logged; /* hashes of lines: each is logged once */
};

void um_checking_open(struct um_checking *c, struct um_gpu *gpu,
		      struct um_notices *notices); /* logs if this system cannot check */
void um_checking_fini(struct um_checking *c, struct um_notices *notices); /* after the device is closed */

void um_checking_op(struct um_checking *c, um_stream stream, const char *name);
/* Checks the kernel that is about to be launched. NULL: not checked, since memory is short or no op was announced on
 * the stream. */
struct um_checked_run *um_checking_launch(struct um_checking *c, const struct um_registry *r, um_stream stream,
					  struct um_sim_kernel *k);
void um_checking_cancel(struct um_checking *c, struct um_checked_run *run); /* it was not launched. NULL is allowed */
void um_checking_report(struct um_checking *c, struct um_notices *notices); /* logs accesses of finished kernels */

#endif
