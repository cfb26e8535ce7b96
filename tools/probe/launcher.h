/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.h - the few kernels that probes need, on a real, an imitated or a simulated device
 *
 * in    what a kernel shall do, as a value
 * out   it is on a stream; a simulated device was told beforehand what it touches and how long it computes
 * owns  the module with the kernels
 *
 * Calls return CUDA error codes.
 */
#ifndef UM_PROBE_LAUNCHER_H
#define UM_PROBE_LAUNCHER_H

#include "gpu/gpu.h"
#include "model/profile.h"

#define UM_PLACE_BYTES 65536u /* what a driver brings for one fault */
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
	int serial; /* TOUCH: one place after the other, not all at once */
	int write; /* TOUCH: written, not only read */
	enum um_pattern pattern; /* READ, WRITE: in which order */
};

#define UM_FMA_THREADS 256u /* in a thread block */

/* What UM_KERNEL_FMA computes. */
double um_kernel_flops(const struct um_kernel *k);

/* What a simulated device with profile `p` is told of it. `touch` has room for UM_ADDRESS_MAP_MAX and lives as long as
 * `out`. */
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
