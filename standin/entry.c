/* SPDX-License-Identifier: Apache-2.0
 *
 * entry.c - the driver's functions by name and version (cuGetProcAddress)
 *
 * A function that a real driver may have and the stand-in lacks is represented by one of a pool of small functions,
 * bound to the name when it is looked up: a program that only looks names up starts, and a call reports the missing
 * function.
 */
#include "standin/standin.h"

#include "gpu/standin_table.h"
#include "sim/ledger.h"

#include <stdio.h>

#define POOL 512

enum found { FOUND, NO_SUCH_NAME, TOO_OLD }; /* CUdriverProcAddressQueryResult */

UM_EXPORT int cuGetProcAddress(const char *name, void **fn, int version, unsigned long long flags);
UM_EXPORT int cuGetProcAddress_v2(const char *name, void **fn, int version, unsigned long long flags, int *status);

/* Generic type of the functions; cast back before a call. */
typedef int (*any_fn)(void);

/* --- what is not there -------------------------------------------------------------------------------------------- */

static char *pool_name[POOL];
static unsigned pool_used;

static int pool_called(unsigned i)
{
	return um_standin_unsupported(pool_name[i]);
}

/* clang-format off */
#define FN(P, Q, R) static int pool_##P##Q##R(void) { return pool_called(0x##P##Q##R); }
#define FNS(P, Q) \
	FN(P, Q, 0) FN(P, Q, 1) FN(P, Q, 2) FN(P, Q, 3) FN(P, Q, 4) FN(P, Q, 5) FN(P, Q, 6) FN(P, Q, 7) \
	FN(P, Q, 8) FN(P, Q, 9) FN(P, Q, a) FN(P, Q, b) FN(P, Q, c) FN(P, Q, d) FN(P, Q, e) FN(P, Q, f)
#define REF(P, Q, R) pool_##P##Q##R,
#define REFS(P, Q) \
	REF(P, Q, 0) REF(P, Q, 1) REF(P, Q, 2) REF(P, Q, 3) REF(P, Q, 4) REF(P, Q, 5) REF(P, Q, 6) REF(P, Q, 7) \
	REF(P, Q, 8) REF(P, Q, 9) REF(P, Q, a) REF(P, Q, b) REF(P, Q, c) REF(P, Q, d) REF(P, Q, e) REF(P, Q, f)
#define ALL(DO, P) \
	DO(P, 0) DO(P, 1) DO(P, 2) DO(P, 3) DO(P, 4) DO(P, 5) DO(P, 6) DO(P, 7) DO(P, 8) DO(P, 9) DO(P, a) \
	DO(P, b) DO(P, c) DO(P, d) DO(P, e) DO(P, f)
ALL(FNS, 0)
ALL(FNS, 1)
static const any_fn pool[POOL] = {ALL(REFS, 0) ALL(REFS, 1)};
/* clang-format on */

/* A function that stands for `name`, or NULL: the pool is exhausted. */
static void *pool_get(const char *name)
{
	void *fn = NULL;
	unsigned i;

	um_standin_lock();
	for (i = 0; i < pool_used && strcmp(pool_name[i], name); i++)
		;
	if (i == pool_used && i < POOL && (pool_name[i] = strdup(name)))
		pool_used++;
	if (i < pool_used)
		fn = (void *)pool[i];
	um_standin_unlock();
	return fn;
}

/* --- the table for the library's own door ------------------------------------------------------------------------- */

static const struct um_profile *table_profile(void)
{
	um_standin_on(NULL);
	return um_standin() ? &um_standin()->profile : NULL;
}

static void table_tally(struct um_tally *out)
{
	um_standin_on(NULL);
	if (um_standin())
		um_sim_tally(um_standin()->gpu, out);
}

static uint64_t table_now(void)
{
	um_standin_on(NULL);
	return um_standin() ? um_sim_now(um_standin()->gpu) : 0;
}

static int table_announce(um_stream stream, const struct um_announcement *next)
{
	um_stream s;
	int ok = 0;

	um_standin_on(NULL);
	if (!um_standin())
		return UM_CU_NOT_INITIALIZED;
	s = um_standin_stream(stream, &ok);
	if (!ok)
		return UM_CU_INVALID_HANDLE;
	return um_standin()->gpu->api->announce(um_standin()->gpu, s, next);
}

static int table_worker_wait(int (*done)(void *arg), void *arg)
{
	um_standin_on(NULL);
	return um_standin()->gpu->api->worker_wait(um_standin()->gpu, done, arg);
}

static int table_register(void *function, void (*host)(void **args, const unsigned grid[3], const unsigned block[3]))
{
	if (!function)
		return UM_CU_INVALID_HANDLE;
	um_standin_lock();
	((struct um_function *)function)->host = host;
	um_standin_unlock();
	return UM_CUDA_OK;
}

static int table_count_moves(struct um_activity_sink *sink)
{
	um_standin_on(NULL);
	if (!um_standin())
		return UM_CU_NOT_INITIALIZED;
	um_sim_count_moves(um_standin()->gpu, sink);
	return UM_CUDA_OK;
}

static void table_use_memory(const void *at, uint64_t bytes)
{
	um_standin_on(NULL);
	if (um_standin())
		um_sim_use_memory(um_standin()->gpu, at, bytes);
}

static void table_name_memory(const void *at, const char *name)
{
	um_standin_on(NULL);
	if (um_standin())
		um_sim_ledger_name(um_standin()->gpu, at, name);
}

static const struct um_standin_table standin_table = {
	.version = UM_STANDIN_VERSION,
	.size = sizeof standin_table,
	.profile = table_profile,
	.tally = table_tally,
	.now = table_now,
	.announce = table_announce,
	.worker_start = um_standin_worker_start,
	.worker_stop = um_standin_worker_stop,
	.worker_poke = um_standin_worker_poke,
	.worker_wait = table_worker_wait,
	.register_kernel = table_register,
	.launch_host = um_launch_host,
	.count_moves = table_count_moves,
	.fail = um_standin_fail,
	.name_memory = table_name_memory,
	.use_memory = table_use_memory,
};

/* --- looking up --------------------------------------------------------------------------------------------------- */

static const struct um_entry entry_entries[] = {
	UM_ENTRY(cuGetProcAddress, 11030, cuGetProcAddress),
	UM_ENTRY(cuGetProcAddress, 12000, cuGetProcAddress_v2),
	{NULL, 0, NULL, NULL},
};

static const struct um_entry *const tables[] = {
	entry_entries,	    um_device_entries,	 um_context_entries, um_export_entries,
	um_module_entries,  um_function_entries, um_launch_entries,  um_memory_entries,
	um_copy_entries,    um_hint_entries,	 um_stream_entries,  um_event_entries,
	um_capture_entries, um_graph_entries,	 um_exec_entries,    um_change_entries};

/* Names newer than 12.4 that are not in the tables: a driver of 12.4 lacks them. */
static const char *const newer[] = {
	"cuMemcpyBatchAsync",
	"cuMemcpy3DBatchAsync",
	"cuStreamGetDevice",
	"cuMemGetDefaultMemPool",
	"cuMemGetMemPool",
	"cuMemSetMemPool",
	"cuLogsRegisterCallback",
	"cuLogsUnregisterCallback",
	"cuLogsDumpToFile",
	"cuLogsDumpToMemory",
	"cuLogsCurrent",
	"cuDeviceGetHostAtomicCapabilities",
	"cuDeviceGetP2PAtomicCapabilities",
	"cuMemPrefetchBatchAsync",
	"cuMemDiscardBatchAsync",
	"cuMemDiscardAndPrefetchBatchAsync",
};

static int is_newer(const char *name)
{
	for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++)
		if (!strcmp(newer[i], name))
			return 1;
	return 0;
}

static enum found find(const char *name, int version, int ptsz, void **fn)
{
	int driver = um_standin_version(), best = -1, known = 0;
	const char *missing = secure_getenv("UMADVISE_DRYRUN_MISSING");

	*fn = NULL;
	if (missing && um_item_find(missing, name))
		return NO_SUCH_NAME;
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		for (const struct um_entry *e = tables[i]; e->name; e++) {
			if (strcmp(e->name, name) || e->since > driver)
				continue;
			known = 1;
			if (e->since <= version && e->since > best) {
				best = e->since;
				*fn = ptsz && e->ptsz ? e->ptsz : e->fn;
			}
		}
	if (*fn)
		return FOUND;
	if (known)
		return TOO_OLD;
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		for (const struct um_entry *e = tables[i]; e->name; e++)
			if (!strcmp(e->name, name))
				return NO_SUCH_NAME;
	if (strncmp(name, "cu", 2) || version > driver || (driver < 13000 && is_newer(name)))
		return NO_SUCH_NAME;
	*fn = pool_get(name);
	return *fn ? FOUND : NO_SUCH_NAME;
}

int cuGetProcAddress_v2(const char *name, void **fn, int version, unsigned long long flags, int *status)
{
	enum found found = FOUND;

	if (!name || !fn || flags > 2)
		return UM_CUDA_INVALID_VALUE;
	if (!strcmp(name, UM_STANDIN_NAME))
		*fn = (void *)&standin_table;
	else if (!strcmp(name, UM_STANDIN_KERNEL))
		*fn = (void *)table_register;
	else
		found = find(name, version, flags == 2, fn);
	if (status)
		*status = (int)found;
	return UM_CUDA_OK;
}

int cuGetProcAddress(const char *name, void **fn, int version, unsigned long long flags)
{
	int err = cuGetProcAddress_v2(name, fn, version, flags, NULL);

	return err || *fn ? err : UM_CU_NOT_FOUND;
}
