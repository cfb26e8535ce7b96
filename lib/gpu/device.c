/* SPDX-License-Identifier: Apache-2.0
 *
 * device.c - opens and closes the CUDA device of the process
 *
 * Opening: the driver always (the runtime needs it too, and only it has contexts and stream memory operations), then
 * the runtime that the process has loaded, then device and context, then the capabilities.
 */
#include "gpu/device_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int only_driver;

void um_device_only_driver(void)
{
	atomic_store(&only_driver, 1);
}

int um_device_is_only_driver(void)
{
	return atomic_load(&only_driver);
}

/* Nothing is unloaded: the driver has threads of its own, and the runtime is the program's. */
static void device_close(struct um_gpu *gpu)
{
	struct um_device *d = um_device_of(gpu);

	if (!um_device_gone(d))
		um_driver_leave(d);
	if (d->uvm >= 0)
		close(d->uvm);
	free(d);
}

static int wants_threads(const struct um_device_options *options)
{
	const char *env = secure_getenv("UMADVISE_DRYRUN_THREADS");

	return options->real_threads || (env && !strcmp(env, "real"));
}

static int open_device(struct um_device *d, const struct um_device_options *options)
{
	int managed = 0, err;

	if (um_process_gone())
		return um_device_refuse(d, "this process was forked from one that used CUDA, or is exiting");
	d->info.via = UM_VIA_DRIVER;
	d->uvm = -1;
	d->info.host = um_on_host();
	err = um_driver_open(d);
	if (err)
		return err;
	um_process_watch();
	if (options->via == UM_VIA_RUNTIME || (options->via == UM_VIA_ANY && !atomic_load(&only_driver)))
		err = um_runtime_open(d, options->via == UM_VIA_RUNTIME);
	if (!err)
		err = um_driver_use(d, options->ordinal);
	if (err)
		return err;
	if (d->cu.device_attribute(&managed, UM_AT_MANAGED_MEMORY, d->device) || !managed) {
		um_driver_leave(d);
		return um_device_refuse(d, "device %d has no managed memory", d->gpu.caps.device);
	}
	d->gpu.caps.virtual_time = d->standin && !wants_threads(options);
	d->api.close = device_close;
	um_device_table(d);
	d->gpu.api = &d->api;
	um_device_probe(d, options);
	return 0;
}

int um_device_open(struct um_gpu **out, const struct um_device_options *options, char *why, size_t size)
{
	static const struct um_device_options defaults = {.via = UM_VIA_ANY, .ordinal = -1};
	struct um_device *d = calloc(1, sizeof *d);
	int err;

	if (!d) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	err = open_device(d, options ? options : &defaults);
	if (err) {
		snprintf(why, size, "%s", err == -ENOMEM ? "the device is out of memory" : d->gpu.caps.why);
		free(d);
		return err;
	}
	*out = &d->gpu;
	return 0;
}

int um_device_lost(const struct um_gpu *gpu)
{
	return atomic_load_explicit(&((const struct um_device *)gpu)->lost, memory_order_relaxed);
}

void um_device_info(const struct um_gpu *gpu, struct um_device_info *out)
{
	*out = ((const struct um_device *)gpu)->info;
}

int um_device_standin_profile(struct um_gpu *gpu, struct um_profile *out)
{
	const struct um_standin_table *t = um_device_of(gpu)->standin;
	const struct um_profile *p;
	struct um_visit v;

	if (!t || um_visit_begin(&v, gpu, UM_VISIT_PLAIN))
		return -ENODEV;
	p = t->profile();
	if (p)
		*out = *p;
	um_visit_end(&v, UM_CUDA_OK);
	return p ? 0 : -ENODEV;
}

int um_device_standin_tally(struct um_gpu *gpu, struct um_tally *out)
{
	const struct um_standin_table *t = um_device_of(gpu)->standin;

	struct um_visit v;

	if (!t || um_visit_begin(&v, gpu, UM_VISIT_PLAIN))
		return -ENODEV;
	t->tally(out);
	um_visit_end(&v, UM_CUDA_OK);
	return 0;
}

void um_device_standin_name(struct um_gpu *gpu, const void *at, const char *name)
{
	const struct um_standin_table *t = um_device_of(gpu)->standin;

	struct um_visit v;

	if (!t || um_visit_begin(&v, gpu, UM_VISIT_PLAIN))
		return;
	t->name_memory(at, name);
	um_visit_end(&v, UM_CUDA_OK);
}
