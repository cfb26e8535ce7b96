/* SPDX-License-Identifier: Apache-2.0
 *
 * libraries.c - finds the shared CUDA libraries, for `umadvise doctor`
 */
#include "gpu/libraries.h"

#include "gpu/counters.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

static void look(struct um_library *l, const char *version_call)
{
	void *lib = dlopen(l->soname, RTLD_NOW), *call;
	struct link_map *map;
	const char *text;
	int (*version)(int *);

	if (!lib) {
		text = dlerror();
		snprintf(l->why, sizeof l->why, "%s", text ? text : "not found");
		return;
	}
	l->found = 1;
	if (!dlinfo(lib, RTLD_DI_LINKMAP, &map))
		snprintf(l->path, sizeof l->path, "%s", map->l_name);
	call = version_call ? dlsym(lib, version_call) : NULL;
	memcpy(&version, &call, sizeof version);
	if (!version || version(&l->version))
		l->version = 0;
}

void um_libraries_find(struct um_library out[UM_LIBRARIES])
{
	const struct {
		enum um_library_role role;
		const char *soname, *version_call;
	} known[UM_LIBRARIES] = {
		{UM_LIBRARY_IS_DRIVER, UM_LIBRARY_DRIVER, "cuDriverGetVersion"},
		{UM_LIBRARY_IS_RUNTIME, UM_LIBRARY_RUNTIME_13, "cudaRuntimeGetVersion"},
		{UM_LIBRARY_IS_RUNTIME, UM_LIBRARY_RUNTIME_12, "cudaRuntimeGetVersion"},
		{UM_LIBRARY_IS_COUNTERS, um_counters_soname(), NULL},
	};

	for (int i = 0; i < UM_LIBRARIES; i++) {
		out[i] = (struct um_library){.role = known[i].role, .soname = known[i].soname};
		if (known[i].soname)
			look(&out[i], known[i].version_call);
		else
			snprintf(out[i].why, sizeof out[i].why, "this library was built without its headers");
	}
}
