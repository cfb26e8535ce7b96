/* SPDX-License-Identifier: Apache-2.0
 *
 * libraries.h - the shared CUDA libraries that are loaded by name, and their availability on this machine
 *
 * in    the names, in the order in which device_driver.c, device_runtime.c and counters.c try them
 * out   for each: found or not, its path and version, or the reason
 * owns  nothing: libraries that were loaded for the check stay loaded
 */
#ifndef UM_GPU_LIBRARIES_H
#define UM_GPU_LIBRARIES_H

#include <stddef.h>

#define UM_LIBRARY_DRIVER "libcuda.so.1"
#define UM_LIBRARY_RUNTIME_13 "libcudart.so.13"
#define UM_LIBRARY_RUNTIME_12 "libcudart.so.12"

enum um_library_role { UM_LIBRARY_IS_DRIVER, UM_LIBRARY_IS_RUNTIME, UM_LIBRARY_IS_COUNTERS };

struct um_library {
	enum um_library_role role;
	const char *soname; /* NULL: not used by this build */
	int found;
	int version; /* 13000 is 13.0; 0: unknown */
	char path[256]; /* if found */
	char why[200]; /* if not found */
};

#define UM_LIBRARIES 4

/* Loads each library that is not loaded yet; call it after a device was opened, because a loaded runtime counts as the
 * process's own. Not thread-safe with opening a device. */
void um_libraries_find(struct um_library out[UM_LIBRARIES]);

#endif
