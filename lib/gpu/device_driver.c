/* SPDX-License-Identifier: Apache-2.0
 *
 * device_driver.c - libcuda.so.1: its functions, the device and the context
 *
 * The driver is loaded when the first device is opened and never unloaded (it has threads of its own). Every function
 * comes from cuGetProcAddress with the version of the wanted form; for a missing one it returns success and NULL, so
 * the pointer decides. A driver before 12.2 answers a request for the new form of a hint with the old one, so its
 * version is read first.
 */
#include "gpu/device_state.h"
#include "gpu/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct row {
	size_t at; /* offset in its struct */
	const char *name;
	int version;
};

#define IN_CALLS(field, rt, cu, version, args) {offsetof(struct um_calls, field), #cu, version},
#define IN_DRIVER(field, name, version, args) {offsetof(struct um_driver_calls, field), #name, version},

static const struct row both_rows[] = {UM_CALLS_BOTH(IN_CALLS){0}};
static const struct row new_rows[] = {UM_CALLS_NEW(IN_CALLS){0}};
static const struct row old_rows[] = {UM_CALLS_OLD(IN_CALLS){0}};
static const struct row batch_rows[] = {UM_CALLS_BATCH(IN_CALLS){0}};
static const struct row only_rows[] = {UM_DRIVER_ONLY(IN_DRIVER){0}};
static const struct row optional_rows[] = {UM_DRIVER_OPTIONAL(IN_DRIVER){0}};

/* Fills `calls`. Returns the name of the first missing function, or NULL. */
static const char *fill(struct um_device *d, void *calls, const struct row *rows)
{
	const char *missing = NULL;

	for (; rows->name; rows++) {
		void *fn = NULL;
		int status = 0;

		if (d->find(rows->name, &fn, rows->version, 0, &status) || !fn) {
			fn = NULL;
			missing = missing ? missing : rows->name;
		}
		memcpy((char *)calls + rows->at, &fn, sizeof fn);
	}
	return missing;
}

/* Error codes of cuInit and cuDevicePrimaryCtxRetain in words. */
static const char *reason(int err)
{
	static const struct {
		int code;
		const char *text;
	} reasons[] = {
		{2, "the CUDA driver is out of memory"},
		{3, "the CUDA driver was in use when this process was forked, and does not work in a child"},
		{34, UM_LIBRARY_DRIVER " is the toolkit's stub library, not a driver"},
		{46, "the device is busy: another process uses it exclusively"},
		{100, "no CUDA device is visible (no GPU, or none in CUDA_VISIBLE_DEVICES)"},
		{101, "CUDA_VISIBLE_DEVICES names a device that does not exist"},
		{304, "the operating system refused access to the CUDA driver (do the device files exist?)"},
		{802, "the system is not ready: the fabric manager is not running yet"},
		{803, "the kernel's driver and " UM_LIBRARY_DRIVER " differ in version: restart, or reinstall the "
		      "driver"},
		{804, "the forward compatibility package does not support this GPU"},
		{805, "the MPS server cannot be reached"},
	};

	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].code == err)
			return reasons[i].text;
	return NULL;
}

int um_device_refuse(struct um_device *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->gpu.caps.why, sizeof d->gpu.caps.why, fmt, ap);
	va_end(ap);
	return -ENODEV;
}

static int refuse(struct um_device *d, const char *call, int err)
{
	const char *text = reason(err);

	return text ? um_device_refuse(d, "%s", text) : um_device_refuse(d, "%s failed: CUDA error %d", call, err);
}

static int load(struct um_device *d)
{
	void *lib = dlopen(UM_LIBRARY_DRIVER, RTLD_NOW | RTLD_NOLOAD), *fn;
	const char *text;

	if (!lib)
		lib = dlopen(UM_LIBRARY_DRIVER, RTLD_NOW);
	if (!lib) {
		text = dlerror();
		return um_device_refuse(d, "no CUDA driver on this machine (%s)", text ? text : UM_LIBRARY_DRIVER);
	}
	fn = dlsym(lib, UM_PROC_ADDRESS);
	if (!fn)
		return um_device_refuse(d, "the CUDA driver is too old: 12.0 is needed (" UM_LIBRARY_DRIVER
					   " has no " UM_PROC_ADDRESS ")");
	memcpy(&d->find, &fn, sizeof fn);
	return 0;
}

static void find_standin(struct um_device *d)
{
	void *table = NULL;
	int status = 0;

	if (d->find(UM_STANDIN_NAME, &table, d->info.driver_version, 0, &status) || !table)
		return;
	d->standin = table;
	if (d->standin->version != UM_STANDIN_VERSION || d->standin->size != sizeof *d->standin)
		d->standin = NULL;
	d->info.standin = d->standin != NULL;
}

int um_driver_open(struct um_device *d)
{
	const char *missing;
	void *nothing;
	int err = load(d), status = 0;

	if (err)
		return err;
	missing = fill(d, &d->cu, only_rows);
	if (d->cu.init)
		err = d->cu.init(0);
	else
		err = d->find("cuInit", &nothing, 2000, 0, &status); /* the toolkit's stub library reports itself */
	if (err)
		return refuse(d, "cuInit", err);
	if (missing)
		return um_device_refuse(d, "the CUDA driver has no %s", missing);
	err = d->cu.version(&d->info.driver_version);
	if (err)
		return refuse(d, "cuDriverGetVersion", err);
	fill(d, &d->cu, optional_rows);
	missing = fill(d, &d->driver, both_rows);
	if (!missing && d->info.driver_version >= 12020)
		fill(d, &d->driver, new_rows);
	fill(d, &d->driver, old_rows);
	if (d->info.driver_version >= 13000)
		fill(d, &d->driver, batch_rows);
	if (!missing && !d->driver.prefetch && !d->driver.prefetch_old)
		missing = "cuMemPrefetchAsync";
	if (!missing && !d->driver.advise && !d->driver.advise_old)
		missing = "cuMemAdvise";
	if (missing)
		return um_device_refuse(d, "the CUDA driver has no %s", missing);
	find_standin(d);
	return 0;
}

/* The requested ordinal, or that of the device in use on this thread. */
static int choose(struct um_device *d, int ordinal, void *current)
{
	if (ordinal >= 0)
		return ordinal;
	if (current && !d->cu.ctx_device(&ordinal))
		return ordinal;
	/* a runtime with a selected device that has not been used yet */
	if (d->info.via == UM_VIA_RUNTIME && !d->rt.peek_error()) {
		if (!d->rt.get_device(&ordinal))
			return ordinal;
		d->rt.last_error();
	}
	return 0;
}

/* If the program made a context of its own for this device, its streams are there: that context is used, and stays the
 * program's. Otherwise the device's primary context is used, with a reference of ours. */
static int use_context(struct um_device *d, void *current)
{
	int err, on = -1, active = 1;
	unsigned flags = 0;

	if (current && (d->cu.ctx_device(&on) || on != d->device))
		current = NULL;
	if (current && d->cu.primary_state(d->device, &flags, &active))
		active = 1;
	if (current && !active) {
		d->context = current;
		return 0;
	}
	err = d->cu.primary_retain(&d->context, d->device);
	if (err)
		return err == UM_CUDA_NO_MEMORY ? -ENOMEM : refuse(d, "cuDevicePrimaryCtxRetain", err);
	d->retained = 1;
	if (current && current != d->context) {
		um_driver_leave(d);
		d->context = current;
	}
	return 0;
}

int um_driver_use(struct um_device *d, int ordinal)
{
	void *current = NULL;
	int err, n = 0;

	if (d->cu.ctx_current(&current))
		current = NULL;
	ordinal = choose(d, ordinal, current);
	err = d->cu.device_count(&n);
	if (!err && ordinal >= n)
		return um_device_refuse(d, "device %d does not exist: %d visible", ordinal, n);
	err = err ? err : d->cu.device_get(&d->device, ordinal);
	if (err)
		return refuse(d, "cuDeviceGet", err);
	d->gpu.caps.device = ordinal;
	if (d->cu.device_name(d->gpu.caps.name, sizeof d->gpu.caps.name, d->device))
		snprintf(d->gpu.caps.name, sizeof d->gpu.caps.name, "device %d", ordinal);
	return use_context(d, current);
}

void um_driver_leave(struct um_device *d)
{
	if (d->retained)
		d->cu.primary_release(d->device);
	d->retained = 0;
}
