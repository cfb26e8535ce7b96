/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda.h - a driver and runtimes that do next to nothing, say what was called and can be told to misbehave
 *
 * tests/device/fake_cuda.c makes libcuda.so.1, libcudart.so.12, libcudart.so.12 as of 12.0, and libcudart.so.13 of
 * it. For what the stand-in driver is too well-behaved for.
 */
#ifndef UM_TESTS_FAKE_CUDA_H
#define UM_TESTS_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_DEVICES 4
#define FAKE_ATTRIBUTES 256

struct fake {
	/* told */
	int version; /* of the driver */
	int proc_error; /* cuGetProcAddress, for any name: the toolkit's stub gives 34 */
	int init_error;
	int devices;
	int attributes[FAKE_DEVICES][FAKE_ATTRIBUTES];
	int nodes; /* of the host; hints to others are refused */
	const char *missing; /* a driver function that is not there */
	const char *fails; /* a function that fails, by its name in its library */
	int code; /* with this */
	uintptr_t capturing; /* a stream that captures, or 0 */
	int implicit; /* the NULL stream must not be asked: another one captures */
	int global_capture; /* unsafe calls fail unless the thread is relaxed */
	/* seen */
	int calls; /* of any function but cuGetProcAddress, both libraries */
	char last[64]; /* the last one's name */
	char log[4096]; /* " name name" of those that are not for the context, the error or the mode */
	int type, id; /* the last hint's location, also of a refused one; in the old form type is -1 */
	unsigned flags;
	void *stream;
	int retained[FAKE_DEVICES], pushes;
	int violations; /* calls without a context, a wrong one, an unbalanced pop */
};

/* What both kinds of library know of a thread. */
struct fake_thread {
	void *stack[8]; /* contexts, innermost last */
	int depth;
	int mode; /* of capture */
	int error; /* the runtime's last one */
	int device; /* the runtime's current one */
};

/* Contexts are addresses in this row: of primary ones by device, then of the program's own. */
#define FAKE_CONTEXT(n) ((void *)(uintptr_t)(0x1000 + 16 * (n)))
#define FAKE_OWN_CONTEXT(device) FAKE_CONTEXT(FAKE_DEVICES + (device))

struct fake *fake_state(void); /* of libcuda.so.1, as the next */
struct fake_thread *fake_thread(void);
int fake_call(const char *name, int context);

#endif
