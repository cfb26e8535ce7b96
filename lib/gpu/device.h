/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h - the CUDA device of the process: the device table filled from the CUDA runtime or driver
 *
 * in    a shared runtime (libcudart.so.13 or .12) that the process has loaded, otherwise libcuda.so.1
 * out   the table of gpu.h, and the capabilities of the device
 * owns  handles of the libraries, a reference to the device's primary context
 *
 * No link-time dependency and no CUDA header: everything is looked up when a context is opened, never earlier. Every
 * call leaves the calling thread's current device or context, and the program's last error, as it found them. After a
 * call has returned a sticky error, after a fork (in the child) and while the process exits, every call returns
 * UM_CUDA_LOST at once and calls no library.
 *
 * Where the host has several NUMA nodes, hints to the host go to one of them (host_node), which is tried at opening.
 *
 * Under the stand-in driver (standin_table.h) the table's announce, now and worker_* are the stand-in's, and time is
 * virtual.
 *
 * Thread-safe, as gpu.h says.
 */
#ifndef UM_GPU_DEVICE_H
#define UM_GPU_DEVICE_H

#include "gpu/gpu.h"
#include "model/profile.h"
#include "model/tally.h"

enum um_device_via {
	UM_VIA_ANY, /* the runtime if the process has a shared one, otherwise the driver */
	UM_VIA_RUNTIME,
	UM_VIA_DRIVER
};

struct um_device_options {
	enum um_device_via via;
	int ordinal; /* -1: the current device of this thread, or 0 */
	int real_threads; /* workers are real threads under the stand-in, too, as on a real device */
	int prefetches_evict; /* um_gpu_api.evict is not looked for */
	int host_node; /* for hints the host is node host_node - 1; 0: the device's, if there are several; -1: any */
	const char *root; /* where sys is; NULL but for tests */
};

/* From now on UM_VIA_ANY means the driver: the shared runtime of this process calls a driver that is replaced. */
void um_device_only_driver(void);
int um_device_is_only_driver(void);

/* 0; -ENODEV: no usable device, with the reason in `why`; -ENOMEM. The caller closes it through its table. A device
 * without concurrent managed access opens, with the reason in caps.why. */
int um_device_open(struct um_gpu **out, const struct um_device_options *options, char *why, size_t size);

/* The sticky error that occurred, or 0. */
int um_device_lost(const struct um_gpu *gpu);

struct um_device_info {
	enum um_device_via via;
	int driver_version, runtime_version; /* 13000 is 13.0; 0: none */
	int standin; /* the driver is the stand-in */
	int sms; /* multiprocessors */
	int cc_major, cc_minor;
	struct um_location host; /* what the host is for hints: any node, or one */
	int node_refused; /* the node that the driver refused, plus 1; 0: none */
};
void um_device_info(const struct um_gpu *gpu, struct um_device_info *out);

/* The stand-in's profile. 0, or -ENODEV on a real device. */
int um_device_standin_profile(struct um_gpu *gpu, struct um_profile *out);

/* The stand-in's tally so far. 0, or -ENODEV. */
int um_device_standin_tally(struct um_gpu *gpu, struct um_tally *out);

/* Names managed memory in the stand-in's report; does nothing on a real device. */
void um_device_standin_name(struct um_gpu *gpu, const void *at, const char *name);

/* --- kernels of our own, by the driver API: for probes; CUDA error codes ------------------------------------------ */

int um_device_module_load(struct um_gpu *gpu, const char *ptx, void **module);
int um_device_module_unload(struct um_gpu *gpu, void *module);
int um_device_function(struct um_gpu *gpu, void *module, const char *name, void **function);
int um_device_launch(struct um_gpu *gpu, void *function, unsigned blocks, unsigned threads, um_stream stream,
		     void **args);
/* An async copy by the driver API between any two addresses. */
int um_device_copy(struct um_gpu *gpu, void *to, const void *from, size_t bytes, um_stream stream);

#endif
