/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.h - the kernels of probes, on a real device, a stand-in or a simulated device
 *
 * in    the task of a kernel, as a value
 * out   the kernel on a stream; a simulated device first receives its accesses and time
 * owns  the module with the kernels
 *
 * Calls return CUDA error codes.
 */
#ifndef UM_PROBE_LAUNCHER_H
#define UM_PROBE_LAUNCHER_H

#include "gpu/gpu.h"
#include "model/profile.h"

#define UM_PLACE_BYTES 65536u /* bytes that a driver migrates for one fault */
#define UM_ADDRESS_MAP_MAX 64u

enum um_kernel_kind {
	UM_KERNEL_SPIN, /* for `ns`; 0: ends at once */
	UM_KERNEL_TOUCH, /* `n` places from `at` on, `stride` bytes apart; at each, `rows` pages of 4 KiB */
	UM_KERNEL_READ, /* `bytes` from `from` */
	UM_KERNEL_WRITE, /* `bytes` at `at` */
	UM_KERNEL_COPY, /* `bytes` from `from` to `at` */
	UM_KERNEL_FMA /* `rounds` of multiply and add, in registers, by `n` thread blocks */
};

struct um_kernel {
	enum um_kernel_kind kind;
	const void *from;
	void *at;
	uint64_t bytes, stride, ns, rounds;
	unsigned n, rows; /* TOUCH: n <= UM_ADDRESS_MAP_MAX, rows <= 16 */
	int serial; /* TOUCH: places in sequence, not concurrently */
	int write; /* TOUCH: writes */
	enum um_pattern pattern; /* READ, WRITE: order */
};

#define UM_FMA_THREADS 256u /* in a thread block */

/* Operations of UM_KERNEL_FMA. */
double um_kernel_flops(const struct um_kernel *k);

/* The description of a kernel for a simulated device with profile `p`. `touch` has UM_ADDRESS_MAP_MAX elements and
 * lives as long as `out`. */
void um_kernel_announcement(const struct um_kernel *k, const struct um_profile *p, struct um_touch *touch,
			    struct um_announcement *out);

struct um_launcher {
	int (*launch)(struct um_launcher *l, um_stream stream, const struct um_kernel *k);
	/* Between device memory and pinned host memory. */
	int (*copy)(struct um_launcher *l, um_stream stream, void *to, const void *from, size_t bytes, int to_device);
	/* The CPU writes to each page of 4 KiB. */
	int (*host_touch)(struct um_launcher *l, void *at, uint64_t bytes);
	void (*close)(struct um_launcher *l);
	struct um_gpu *gpu; /* borrowed */
	unsigned units; /* multiprocessors */
};

/* Over a device from um_sim_open; `p` is its profile. 0 or -ENOMEM. */
int um_launcher_sim(struct um_launcher **out, struct um_gpu *gpu, const struct um_profile *p);

/* Over a device from um_device_open: kernels in PTX. 0, -ENOMEM; -ENODEV: the device does not take them (`why`). */
int um_launcher_device(struct um_launcher **out, struct um_gpu *gpu, char *why, size_t size);

#endif
