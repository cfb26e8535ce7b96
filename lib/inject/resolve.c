/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/resolve.h"

#include "inject/standin.h"
#include "inject/summary.h"

static void *const hooks[] = {
#define ADDRESS(symbol, base, since, per_thread, params) (void *)symbol,
	UM_HOOKS(ADDRESS)};

void *um_resolve_hook(void *fn, const char *name)
{
	int i = um_driver_find(fn);

	if (i >= 0)
		return hooks[i];
	for (size_t k = 0; k < sizeof hooks / sizeof *hooks; k++)
		if (hooks[k] == fn)
			return fn;
	if (um_driver_has(name)) /* a driver that exports no form answers for a function that it lacks */
		um_summary_unhooked(name);
	return fn;
}

static int resolve(int err, const char *name, void **fn)
{
	if (!err && name && fn && *fn)
		*fn = um_standin_is(name) ? um_standin_wrap(*fn) : um_resolve_hook(*fn, name);
	return err;
}

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
	return resolve(UM_PASS(cuGetProcAddress, (name, fn, version, flags)), name, fn);
}

int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	return resolve(UM_PASS(cuGetProcAddress_v2, (name, fn, version, flags, status)), name, fn);
}

int cuGetProcAddress_v2_ptsz(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	return resolve(UM_PASS(cuGetProcAddress_v2_ptsz, (name, fn, version, flags, status)), name, fn);
}
