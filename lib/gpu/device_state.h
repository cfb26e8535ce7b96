/* SPDX-License-Identifier: Apache-2.0
 *
 * device_state.h - a CUDA device of the process: what the device_*.c files share
 *
 * in    a table call of any thread
 * out   a visit: the context is current, the program's last error is safe, or the device is lost
 * owns  the looked up functions, and the rules of device.h about what a call leaves behind
 *
 *     device.c          opening, closing, information about the device
 *     device_driver.c   libcuda.so.1, its functions, the context; why a device was refused
 *     device_runtime.c  the shared runtime, its functions
 *     device_visit.c    code around every call; fork, exit, sticky errors
 *     device_table.c    the table
 *     device_probe.c    the device's capabilities, and one reason for a missing one
 *     device_kernel.c   kernels of our own
 */
#ifndef UM_GPU_DEVICE_STATE_H
#define UM_GPU_DEVICE_STATE_H

#include "gpu/device.h"
#include "gpu/device_calls.h"
#include "gpu/standin_table.h"

#include <stdatomic.h>

struct um_device {
	struct um_gpu gpu; /* first */
	struct um_gpu_api api; /* our table, without the functions that this device lacks */
	struct um_driver_calls cu;
	struct um_calls driver; /* always whole */
	struct um_calls runtime; /* where info.via is UM_VIA_RUNTIME */
	struct um_runtime_calls rt; /* the same */
	const struct um_standin_table *standin; /* NULL: a real driver */
	um_proc_address find;
	int device; /* CUdevice */
	void *context;
	int uvm; /* kernel_evict.h; -1: none */
	int retained; /* the context is the primary one, and we hold a reference */
	atomic_int lost; /* the first sticky error, or 0 */
	struct um_device_info info;
};

static inline struct um_device *um_device_of(struct um_gpu *gpu)
{
	return (struct um_device *)gpu;
}

/* Writes caps.why. Returns -ENODEV. */
int um_device_refuse(struct um_device *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* 0, -ENODEV (caps.why), -ENOMEM. */
int um_driver_open(struct um_device *d); /* functions and versions; cuInit */
int um_driver_use(struct um_device *d, int ordinal); /* device and context; ordinal -1: the current one */
void um_driver_leave(struct um_device *d); /* the context */
int um_runtime_open(struct um_device *d, int asked); /* 0 also without a runtime, unless one was requested */

void um_device_probe(struct um_device *d, const struct um_device_options *options); /* caps, info.host, uvm */
void um_device_table(struct um_device *d); /* fills api */
int um_device_evict(struct um_gpu *gpu, const void *ptr, size_t bytes); /* of the table, with d->uvm */

static inline int um_device_node(const struct um_device *d) /* of the host; -1: any */
{
	return d->info.host.type == UM_LOC_HOST_NUMA ? d->info.host.id : -1;
}

/* --- visits ------------------------------------------------------------------------------------------------------- */

enum um_visit_kind {
	UM_VISIT_PLAIN, /* calls that a stream orders, or queries */
	UM_VISIT_UNSAFE /* calls that CUDA forbids to every thread while a thread captures, unless the calling thread
			   relaxes its capture mode */
};

struct um_visit {
	struct um_device *device;
	const struct um_calls *calls; /* the functions to call */
	int pushed, capture_mode; /* -1: unchanged */
};

/* Begins a visit. 0; otherwise the error to return, and no visit has begun. Op path: at most three cheap calls. */
int um_visit_begin(struct um_visit *v, struct um_gpu *gpu, enum um_visit_kind kind);

/* The same for a call that enqueues on `stream`: UM_CUDA_CAPTURING if the stream captures. */
int um_visit_stream(struct um_visit *v, struct um_gpu *gpu, um_stream stream, enum um_visit_kind kind);

/* The result of a call on a stream: where it says that the context was destroyed, and it was not, the stream was. */
int um_visit_stream_code(struct um_visit *v, int err);

/* Ends a visit. Returns `err`, the result of the call. */
int um_visit_end(struct um_visit *v, int err);

/* True after a fork (in the child) and while the process exits: no library may be called. */
int um_process_gone(void);
void um_process_watch(void); /* once cuInit has succeeded */

/* UM_CUDA_LOST if no library may be called any more, otherwise 0. */
int um_device_gone(struct um_device *d);

#endif
