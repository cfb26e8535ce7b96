/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels on a CUDA device. A stand-in knows neither their accesses nor their times: it receives them, for its own
 * profile, before each launch.
 */
#include "probe/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/device.h"
#include "probe/ptx.h"

#define OS_PAGE 4096u

struct device_launcher {
	struct um_launcher l; /* first */
	struct um_profile profile; /* entry that describes a kernel to a stand-in */
	void *module, *spin, *touch, *sweep, *fma;
};

/* Walk of the kernels: thread blocks, and bytes per piece of each. */
struct walk {
	unsigned blocks;
	uint64_t chunk;
};

static struct walk walk_of(const struct um_launcher *l, const struct um_kernel *k)
{
	uint64_t chunks;
	struct walk w = {l->units * 8, 16u << 10}; /* as wide as the device */

	if (k->kind != UM_KERNEL_COPY && k->pattern == UM_PATTERN_NARROW)
		w = (struct walk){32, 4u << 10}; /* a front of 128 KiB */
	if (k->kind != UM_KERNEL_COPY && k->pattern == UM_PATTERN_WIDE)
		w = (struct walk){l->units * 8, UM_BLOCK_BYTES};
	chunks = (k->bytes + w.chunk - 1) / w.chunk;
	if (w.blocks > chunks)
		w.blocks = (unsigned)chunks;
	return w;
}

static int tell(struct device_launcher *d, um_stream stream, const struct um_kernel *k)
{
	struct um_gpu *gpu = d->l.gpu;
	struct um_touch touch[UM_ADDRESS_MAP_MAX];
	struct um_announcement announcement;

	if (!gpu->api->announce)
		return UM_CUDA_OK;
	um_kernel_announcement(k, &d->profile, touch, &announcement);
	return gpu->api->announce(gpu, stream, &announcement);
}

static int device_launch(struct um_launcher *l, um_stream stream, const struct um_kernel *k)
{
	struct device_launcher *d = (struct device_launcher *)l;
	uint64_t at = (uintptr_t)k->at, from = (uintptr_t)k->from, stride = k->stride, ns = k->ns, rounds = k->rounds,
		 bytes = k->bytes;
	uint32_t n = k->n, rows = k->rows, write = k->write != 0, serial = k->serial != 0;
	struct walk w;
	int err = tell(d, stream, k);

	if (err)
		return err;
	switch (k->kind) {
	case UM_KERNEL_SPIN:
		return um_device_launch(l->gpu, d->spin, 1, 1, stream, (void *[]){&ns});
	case UM_KERNEL_TOUCH:
		return um_device_launch(l->gpu, d->touch, serial ? 1 : n, 32, stream,
					(void *[]){&at, &stride, &n, &rows, &write, &serial});
	case UM_KERNEL_FMA:
		return um_device_launch(l->gpu, d->fma, n, UM_FMA_THREADS, stream, (void *[]){&rounds});
	default:
		w = walk_of(l, k);
		return um_device_launch(l->gpu, d->sweep, w.blocks, 256, stream,
					(void *[]){&from, &at, &bytes, &w.chunk});
	}
}

static int device_copy(struct um_launcher *l, um_stream stream, void *to, const void *from, size_t bytes, int to_device)
{
	(void)to_device;
	return um_device_copy(l->gpu, to, from, bytes, stream);
}

/* A stand-in notices with the next call, which precedes each reading of the clock. */
static int device_host_touch(struct um_launcher *l, void *at, uint64_t bytes)
{
	size_t left, total;

	for (uint64_t off = 0; off < bytes; off += OS_PAGE)
		*((volatile char *)at + off) = 1;
	return l->gpu->api->announce ? l->gpu->api->cudaMemGetInfo(l->gpu, &left, &total) : UM_CUDA_OK;
}

static void device_close(struct um_launcher *l)
{
	struct device_launcher *d = (struct device_launcher *)l;

	if (d->module)
		um_device_module_unload(l->gpu, d->module);
	free(d);
}

static int load(struct device_launcher *d)
{
	struct um_gpu *gpu = d->l.gpu;
	int err = um_device_module_load(gpu, um_probe_ptx, &d->module);

	err = err ? err : um_device_function(gpu, d->module, "um_spin", &d->spin);
	err = err ? err : um_device_function(gpu, d->module, "um_touch", &d->touch);
	err = err ? err : um_device_function(gpu, d->module, "um_sweep", &d->sweep);
	return err ? err : um_device_function(gpu, d->module, "um_fma", &d->fma);
}

int um_launcher_device(struct um_launcher **out, struct um_gpu *gpu, char *why, size_t size)
{
	struct device_launcher *d = calloc(1, sizeof *d);
	struct um_device_info info;
	int err;

	if (!d) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	um_device_info(gpu, &info);
	d->l = (struct um_launcher){.launch = device_launch,
				    .copy = device_copy,
				    .host_touch = device_host_touch,
				    .close = device_close,
				    .gpu = gpu,
				    .units = info.sms > 0 ? (unsigned)info.sms : 1};
	err = gpu->api->announce && um_device_standin_profile(gpu, &d->profile) ? UM_CUDA_NOT_SUPPORTED : load(d);
	if (err) {
		snprintf(why, size, "the device refuses the kernels of the probes: CUDA error %d", err);
		device_close(&d->l);
		return -ENODEV;
	}
	*out = &d->l;
	return 0;
}
