/* SPDX-License-Identifier: Apache-2.0
 *
 * Each hook has two addresses of the real function: the exported symbol, and what cuGetProcAddress answers for exactly
 * its version. A driver older than the version answers with an older form, which is not asked for.
 */
#include "inject/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct um_real um_real;

typedef int (*resolver)(const char *name, void **fn, int version, uint64_t flags, int *status);

static const struct row {
	const char *symbol, *base;
	int since, per_thread;
	size_t at; /* in um_real */
} rows[] = {
#define ROW(symbol, base, since, per_thread, params)                                                                   \
	{#symbol, #base, since, per_thread, offsetof(struct um_real, symbol)},
	UM_HOOKS(ROW)};

#define ROWS (sizeof rows / sizeof *rows)

static void *resolved[ROWS]; /* by cuGetProcAddress */

static const struct {
	const char *name;
	int since;
	size_t at;
} calls[] = {
#define CALL(name, since, params) {#name, since, offsetof(struct um_real, name)},
	UM_DRIVER_CALLS(CALL)};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int ready;
atomic_int um_driver_state;

UM_EARLY um_dlsym_fn um_real_dlsym(void)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
	static _Atomic(um_dlsym_fn) known;
	um_dlsym_fn fn = atomic_load_explicit(&known, memory_order_acquire);

	for (size_t i = 0; i < sizeof versions / sizeof *versions && !fn; i++) {
		void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);

		memcpy(&fn, &found, sizeof fn);
	}
	atomic_store_explicit(&known, fn, memory_order_release);
	return fn;
}

static void *get(size_t at)
{
	void *fn;

	memcpy(&fn, (const char *)&um_real + at, sizeof fn);
	return fn;
}

static void put(size_t at, void *fn)
{
	memcpy((char *)&um_real + at, &fn, sizeof fn);
}

static void *ask(resolver find, const char *name, int version, uint64_t flags)
{
	void *fn = NULL;
	int status = 0;

	return find(name, &fn, version, flags, &status) ? NULL : fn;
}

static void open_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *found;
	um_dlsym_fn real = um_real_dlsym();
	int version = 0;
	resolver find;

	lib = lib ? lib : dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib || !real)
		return;
	for (size_t i = 0; i < ROWS; i++)
		put(rows[i].at, real(lib, rows[i].symbol));
	found = real(lib, "cuGetProcAddress_v2");
	memcpy(&find, &found, sizeof find);
	if (!find)
		return;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		put(calls[i].at, ask(find, calls[i].name, calls[i].since, 0));
	if (!um_real.cuDriverGetVersion || um_real.cuDriverGetVersion(&version))
		return;
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].since <= version)
			resolved[i] = ask(find, rows[i].base, rows[i].since, rows[i].per_thread ? 2 : 0);
	ready = um_real.cuCtxGetDevice && um_real.cuMemAllocManaged && um_real.cuStreamIsCapturing;
}

int um_driver_search(void)
{
	static _Thread_local int inside; /* a library that the driver loads looks its functions up */

	if (inside)
		return 0;
	inside = 1;
	pthread_once(&once, open_driver);
	inside = 0;
	atomic_store(&um_driver_state, ready ? 2 : 1);
	return ready;
}

static int is_of(const struct row *r, const char *name)
{
	return !strcmp(r->symbol, name) || !strcmp(r->base, name);
}

int um_driver_knows(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (is_of(&rows[i], name))
			return 1;
	return 0;
}

int um_driver_has(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (is_of(&rows[i], name) && get(rows[i].at))
			return 1;
	return 0;
}

int um_driver_find(const void *fn)
{
	for (size_t i = 0; i < ROWS; i++)
		if (get(rows[i].at) == fn)
			return (int)i;
	for (size_t i = 0; i < ROWS; i++)
		if (resolved[i] == fn && get(rows[i].at))
			return (int)i;
	return -1;
}
