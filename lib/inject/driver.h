/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.h - the real driver behind the hooks
 *
 * in    libcuda.so.1 of the process
 * out   its functions (um_real), and which hook stands for a pointer to one of them
 * owns  a reference to the library
 *
 * The driver is searched when a hook is called or a program looks one of its functions up, never earlier. Thread-safe.
 */
#ifndef UM_INJECT_DRIVER_H
#define UM_INJECT_DRIVER_H

#include "inject/hooks.h"

#include <stdatomic.h>

#define UM_CUDA_SYMBOL_MISSING 500

#define UM_REAL_HOOK(symbol, base, since, per_thread, params) int(*symbol) params;
#define UM_REAL_CALL(name, since, params) int(*name) params;
/* NULL: the driver lacks it. */
extern struct um_real {
	UM_HOOKS(UM_REAL_HOOK)
	UM_DRIVER_CALLS(UM_REAL_CALL)
} um_real;

#define UM_HOOK __attribute__((visibility("default")))
#define UM_DECLARE_HOOK(symbol, base, since, per_thread, params) UM_HOOK int symbol params;
UM_HOOKS(UM_DECLARE_HOOK)

/* Finds the driver, once. 0: there is none, or it lacks what the library needs; hooks then only pass calls on. */
int um_driver_search(void);
extern atomic_int um_driver_state; /* 0: not opened yet; 1: as um_driver_search says; 2: ready */

static inline int um_driver_ready(void)
{
	int state = atomic_load_explicit(&um_driver_state, memory_order_acquire);

	return state ? state == 2 : um_driver_search();
}

/* The real function, or an error for a caller that got past the resolver. */
#define UM_PASS(symbol, args) (um_driver_ready(), um_real.symbol ? um_real.symbol args : UM_CUDA_SYMBOL_MISSING)

/* Number of the hook that stands for a function of the real driver, in the order of UM_HOOKS; -1: none. */
int um_driver_find(const void *fn);

/* Is it the symbol or the name of a hook? */
int um_driver_knows(const char *name);

/* Does the driver export a form of it that a hook stands for? */
int um_driver_has(const char *name);

/* A function that runs before a sanitizer of the program has begun, as the sanitizer itself calls dlsym. */
#if defined __clang__
#define UM_EARLY __attribute__((no_sanitize("thread", "address", "undefined")))
#else
#define UM_EARLY __attribute__((no_sanitize_thread, no_sanitize_address, no_sanitize_undefined))
#endif

/* The C library's own dlsym. NULL: not found. */
typedef void *(*um_dlsym_fn)(void *handle, const char *name);
um_dlsym_fn um_real_dlsym(void);

#endif
