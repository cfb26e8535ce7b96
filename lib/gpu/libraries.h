/* SPDX-License-Identifier: Apache-2.0
 *
 * libraries.h - the shared libraries of CUDA that are opened by name, and which of them a machine has
 *
 * in    the names, in the order in which device_driver.c, device_runtime.c and counters.c try them
 * out   for each: is it found, where, in which version, or why not
 * owns  nothing: what was opened to be looked at stays loaded
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
	const char *soname; /* NULL: this build opens none */
	int found;
	int version; /* 13000 is 13.0; 0: not known */
	char path[256]; /* found */
	char why[200]; /* not */
};

#define UM_LIBRARIES 4

/* Loads each of them, where it is not loaded yet: after a device was opened, since a runtime that is loaded is one that
 * the process has. Not thread-safe with opening a device. */
void um_libraries_find(struct um_library out[UM_LIBRARIES]);

#endif
