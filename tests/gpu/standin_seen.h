/* SPDX-License-Identifier: Apache-2.0
 *
 * standin_seen.h - is the driver below the stand-in, and what did its memory do?
 */
#ifndef STANDIN_SEEN_H
#define STANDIN_SEEN_H

extern "C" {
#include "gpu/standin_table.h"
}

#include <dlfcn.h>

/* NULL on a real driver, or without one. */
static inline const struct um_standin_table *standin_table(void)
{
	typedef int (*find_fn)(const char *, void **, int, uint64_t, int *);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	find_fn find = driver ? (find_fn)dlsym(driver, "cuGetProcAddress_v2") : NULL;
	const struct um_standin_table *table;
	void *found = NULL;
	int status;

	if (!find || find(UM_STANDIN_NAME, &found, 13000, 0, &status) || !found)
		return NULL;
	table = (const struct um_standin_table *)found;
	return table->version == UM_STANDIN_VERSION && table->size == sizeof(*table) ? table : NULL;
}

#endif
