/* SPDX-License-Identifier: Apache-2.0
 *
 * calibrate_child.h - one probe in a process of its own
 *
 * in    the name of a probe; an empty name: query the device only
 * out   its observations, or the reason for a failure
 *
 * The process is this program, started again before it has used CUDA. It is killed after a time limit.
 */
#ifndef UM_CALIBRATE_CHILD_H
#define UM_CALIBRATE_CHILD_H

#include "probe/probe.h"

struct calibrate_device {
	char name[64];
	uint64_t capacity; /* device memory for managed data */
	uint64_t allowance; /* managed memory that probes may use now, bytes */
	int driver_version, standin;
};

struct calibrate_job {
	const char *probe; /* "": the device only */
	int device; /* ordinal */
	uint64_t budget; /* bytes; 0: not given */
	double seconds; /* limit */
};

/* Runs it. 0; -ENODEV, -EPERM: no device, or not enough memory; -ETIMEDOUT; -EIO: it failed or died; -EBUSY: it does
 * not end after SIGKILL, so no other probe should be started. `why`: one line. */
int calibrate_child_run(const struct calibrate_job *job, struct calibrate_device *device, struct um_observed *seen,
			char *why, size_t size);

/* The process itself: prints the lines that calibrate_child_run reads. Returns its exit status. */
int calibrate_child_main(int argc, char **argv);

#endif
