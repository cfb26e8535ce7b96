/* SPDX-License-Identifier: Apache-2.0
 *
 * simulation.h - functions of a simulated device besides the table of gpu.h, and how it is opened
 *
 * in    kernels with host code, a description of the device
 * out   CUDA error codes, or -errno from open
 * owns  nothing: a simulator fills a struct um_gpu_simulation, which its table points to, and a struct um_simulator,
 *       which lib/devices lists
 */
#ifndef UM_GPU_SIMULATION_H
#define UM_GPU_SIMULATION_H

#include "gpu/gpu.h"

struct um_profile;

/* System pages that a kernel's host code touched outside its declared ranges, or wrote in a range declared read. */
struct um_sim_stray {
	uint64_t addr, bytes;
	int declared; /* declared for reading */
	int written;
};

struct um_sim_kernel {
	const char *name; /* copied into the log only; may be NULL */
	uint64_t ns; /* compute time with everything resident */
	const struct um_touch *access; /* copied */
	uint32_t n_access;
	enum um_pattern pattern;
	int announced; /* an announcement on the stream takes precedence over ns, access and a pattern of 0 */
	int timed; /* ns takes precedence over the announcement: the kernel takes longer or shorter than announced */
	void (*fn)(void *arg); /* runs on the host when simulated time reaches the kernel and its faults are served, or
			          NULL. Must not call the simulator */
	void *arg;
	void (*stray)(void *arg, const struct um_sim_stray *s); /* with `check`: called after fn for each violation,
								   finally with NULL; under the same rules as fn. May be
								   NULL */
};

struct um_gpu_simulation {
	/* Enqueues a kernel. CUDA error code. */
	int (*run)(struct um_gpu *gpu, um_stream stream, const struct um_sim_kernel *kernel);
	/* Lets simulated time pass until all enqueued work has finished. CUDA error code. */
	int (*sync)(struct um_gpu *gpu);
	/* Are the accesses of kernels compared with their declared ranges? */
	int (*checks)(struct um_gpu *gpu);
	/* For the watcher, the sink that receives the device's activities (um_sim_options.watch): the time of one more
	 * activity, after which the clock advances by 1 ns; and the address that stands for `addr` there, or 0 outside
	 * the device's memory. */
	uint64_t (*watch_tick)(struct um_gpu *gpu);
	uint64_t (*watch_address)(struct um_gpu *gpu, uint64_t addr);
};

/* Options of a simulated device. */
struct um_simulator_options {
	const struct um_profile *profile; /* copied */
	uint64_t capacity; /* bytes of device memory for managed data; 0: the profile's */
	int check; /* kernels with `stray` are compared with their declared ranges */
	int poison; /* a discard overwrites its range, so that a wrong discard is detected */
};

struct um_simulator {
	const char *name;
	/* Managed memory is real host memory: programs compute on it. 0, -ENOMEM, -EINVAL. Closed through its table. */
	int (*open)(struct um_gpu **out, const struct um_simulator_options *options);
};

#endif
