/* SPDX-License-Identifier: Apache-2.0
 *
 * calibrate_child.h - one probe in a process of its own
 *
 * in    the name of a probe; an empty name: only look at the device
 * out   what it observed, or why it did not
 *
 * The process is this program, started again before it has touched CUDA. One that takes too long is killed.
 */
#ifndef UM_CALIBRATE_CHILD_H
#define UM_CALIBRATE_CHILD_H

#include "probe/probe.h"

struct calibrate_device {
	char name[64];
	uint64_t capacity; /* bytes that managed data may use */
	uint64_t allowance; /* bytes of managed memory that probes may use now */
	int driver_version, standin;
};

struct calibrate_job {
	const char *probe; /* "": the device only */
	int device; /* ordinal */
	uint64_t budget; /* bytes; 0: not given */
	double seconds; /* limit */
};

/* Runs it. 0; -ENODEV, -EPERM: there is nothing to run it on, or not enough memory; -ETIMEDOUT; -EIO: it failed or
 * died; -EBUSY: it was killed and does not die, so that no other should be started. `why`: one line. */
int calibrate_child_run(const struct calibrate_job *job, struct calibrate_device *device, struct um_observed *seen,
			char *why, size_t size);

/* The process itself: says on standard output what calibrate_child_run reads. Returns its exit status. */
int calibrate_child_main(int argc, char **argv);

#endif
