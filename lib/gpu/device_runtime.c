/* SPDX-License-Identifier: Apache-2.0
 *
 * device_runtime.c - the shared CUDA runtime of the process
 *
 * Found by soname among the loaded libraries, never loaded. The soname gives the major version and thereby the form of
 * the hints: the plain names changed it from 12 to 13.
 */
#include "gpu/device_state.h"
#include "gpu/libraries.h"

#include <dlfcn.h>
#include <string.h>

struct row {
	size_t at; /* offset in its struct */
	const char *name;
};

#define IN_CALLS(field, rt, cu, version, args) {offsetof(struct um_calls, field), #rt},
#define IN_CALLS_V2(field, rt, cu, version, args) {offsetof(struct um_calls, field), #rt "_v2"},
#define IN_RUNTIME(field, name, args) {offsetof(struct um_runtime_calls, field), #name},

static const struct row both_rows[] = {UM_CALLS_BOTH(IN_CALLS){0}};
static const struct row new_rows[] = {UM_CALLS_NEW(IN_CALLS){0}};
static const struct row new_rows_of_12[] = {UM_CALLS_NEW(IN_CALLS_V2){0}};
static const struct row old_rows[] = {UM_CALLS_OLD(IN_CALLS){0}};
static const struct row batch_rows[] = {UM_CALLS_BATCH(IN_CALLS){0}};
static const struct row only_rows[] = {UM_RUNTIME_ONLY(IN_RUNTIME){0}};

/* Fills `calls`. Returns the name of the first missing function, or NULL. */
static const char *fill(void *lib, void *calls, const struct row *rows)
{
	const char *missing = NULL;

	for (; rows->name; rows++) {
		void *fn = dlsym(lib, rows->name);

		missing = fn || missing ? missing : rows->name;
		memcpy((char *)calls + rows->at, &fn, sizeof fn);
	}
	return missing;
}

static void fill_hints(struct um_device *d, void *lib, int major)
{
	fill(lib, &d->runtime, major >= 13 ? new_rows : new_rows_of_12);
	if (major == 12)
		fill(lib, &d->runtime, old_rows);
	else
		fill(lib, &d->runtime, batch_rows);
	/* a newer driver still has them; without the driver's functions the runtime's would fail */
	if (major == 12 || !d->driver.prefetch_batch)
		d->runtime.prefetch_batch = d->driver.prefetch_batch;
	if (major == 12 || !d->driver.discard_batch)
		d->runtime.discard_batch = d->driver.discard_batch;
	if (major == 12 || !d->driver.renew_batch)
		d->runtime.renew_batch = d->driver.renew_batch;
}

static int open_as(struct um_device *d, void *lib, const char *soname, int major)
{
	const char *missing = fill(lib, &d->rt, only_rows);

	missing = missing ? missing : fill(lib, &d->runtime, both_rows);
	if (missing)
		return um_device_refuse(d, "%s of this process has no %s", soname, missing);
	fill_hints(d, lib, major);
	if (!(d->runtime.prefetch || d->runtime.prefetch_old) || !(d->runtime.advise || d->runtime.advise_old))
		return um_device_refuse(d, "%s of this process has no prefetch", soname);
	if (d->rt.version(&d->info.runtime_version))
		d->info.runtime_version = major * 1000;
	/* Within a major version any runtime works on any driver; error 35 of the runtime is predicted from the version
	 * numbers, without a call that leaves an error. */
	if (d->info.driver_version / 1000 < major)
		return um_device_refuse(d, "the driver (CUDA %d.%d) is older than this program's CUDA runtime (%d.%d)",
					d->info.driver_version / 1000, d->info.driver_version % 1000 / 10,
					d->info.runtime_version / 1000, d->info.runtime_version % 1000 / 10);
	d->info.via = UM_VIA_RUNTIME;
	return 0;
}

int um_runtime_open(struct um_device *d, int asked)
{
	static const struct {
		const char *soname;
		int major;
	} known[] = {{UM_LIBRARY_RUNTIME_13, 13}, {UM_LIBRARY_RUNTIME_12, 12}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		void *lib = dlopen(known[i].soname, RTLD_NOW | RTLD_NOLOAD);

		if (lib)
			return open_as(d, lib, known[i].soname, known[i].major);
	}
	return asked ? um_device_refuse(d, "this process has no shared CUDA runtime (libcudart.so.13 or .12)") : 0;
}
