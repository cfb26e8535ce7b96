/* SPDX-License-Identifier: Apache-2.0
 *
 * cupti.c - a libcupti.so.13 for the stand-in driver: records of unified memory, and nothing else
 *
 * in    migrations and faults of the simulated device
 * out   the same as records of CUPTI's own layout, in buffers from its client, on a thread of this library
 * owns  the records that are not yet delivered
 *
 * Delivers when the client flushes, which waits for the thread. Memory is bounded: records beyond it are counted as
 * dropped; likewise if a client provides no buffer. UMADVISE_DRYRUN_FAIL applies to its calls, too.
 */
#include "gpu/standin_table.h"

#include "base/vec.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>

#define UM_EXPORT __attribute__((visibility("default")))
#define KEPT_MOST (1u << 20) /* records */

typedef CUpti_ActivityUnifiedMemoryCounter3 record;
typedef int find_fn(const char *name, void **fn, int version, unsigned long long flags, int *status);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct um_standin_table *driver; /* NULL: there is none */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* not held during calls of the client or the driver */
static UM_VEC(record) delivered;
static size_t dropped;
static int kinds; /* enabled, a bit each */
static CUpti_BuffersCallbackRequestFunc wants_buffer;
static CUpti_BuffersCallbackCompleteFunc has_buffer;

static void find(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *symbol = lib ? dlsym(lib, "cuGetProcAddress_v2") : NULL;
	void *table = NULL;
	find_fn *get;

	memcpy(&get, &symbol, sizeof get); /* an object pointer becomes one to a function */
	if (symbol && !get(UM_STANDIN_NAME, &table, 12000, 0, NULL))
		driver = table;
	if (driver && (driver->version != UM_STANDIN_VERSION || driver->size != sizeof *driver))
		driver = NULL;
}

static CUptiResult enter(const char *name)
{
	pthread_once(&once, find);
	return driver ? (CUptiResult)driver->fail(name) : CUPTI_ERROR_UNKNOWN;
}

/* --- what the device tells ---------------------------------------------------------------------------------------- */

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	CUpti_ActivityUnifiedMemoryCounterKind kind;
	record r;

	(void)sink;
	memset(&r, 0, sizeof r);
	switch (a->kind) {
	case UM_ACT_MIGRATION:
		kind = a->dir == UM_DIR_H2D ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD
					    : CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH;
		r.value = a->bytes;
		r.flags = a->cause;
		break;
	case UM_ACT_GPU_FAULT:
		kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT;
		r.value = a->faults;
		r.flags = a->access;
		break;
	default:
		kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT;
		r.value = (uint64_t)(uintptr_t)feed; /* the program's context at the call */
	}
	r.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
	r.counterKind = kind;
	r.start = (uint64_t)a->begin;
	r.end = kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT ? 0 : (uint64_t)a->end;
	r.address = a->address;
	pthread_mutex_lock(&lock);
	if (kinds & 1 << kind && (delivered.n == KEPT_MOST || um_vec_push(&delivered, r)))
		dropped++;
	pthread_mutex_unlock(&lock);
	return 0;
}

static struct um_activity_sink sink = {feed};

/* --- deliveries --------------------------------------------------------------------------------------------------- */

/* Runs on a separate thread, as in CUPTI. */
static void *deliver(void *unused)
{
	UM_VEC(record) now;
	size_t i = 0;

	(void)unused;
	pthread_mutex_lock(&lock);
	memcpy(&now, &delivered, sizeof now);
	memset(&delivered, 0, sizeof delivered);
	pthread_mutex_unlock(&lock);
	while (i < now.n) {
		size_t size = 0, most = 0, n;
		uint8_t *buffer = NULL;

		wants_buffer(&buffer, &size, &most);
		n = buffer ? size / sizeof(record) : 0;
		n = most && most < n ? most : n;
		n = n < now.n - i ? n : now.n - i;
		if (!n) {
			pthread_mutex_lock(&lock);
			dropped += now.n - i;
			pthread_mutex_unlock(&lock);
			break;
		}
		memcpy(buffer, now.at + i, n * sizeof(record));
		has_buffer(NULL, 0, buffer, size, n * sizeof(record));
		i += n;
	}
	um_vec_fini(&now);
	return NULL;
}

UM_EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
	CUptiResult err = enter("cuptiActivityFlushAll");
	pthread_t thread;

	(void)flag;
	if (err)
		return err;
	if (!has_buffer)
		return CUPTI_ERROR_INVALID_OPERATION;
	if (pthread_create(&thread, NULL, deliver, NULL))
		return CUPTI_ERROR_OUT_OF_MEMORY;
	pthread_join(thread, NULL);
	return CUPTI_SUCCESS;
}

UM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **at)
{
	uint8_t *next = *at ? (uint8_t *)*at + sizeof(record) : buffer;

	if (next + sizeof(record) > buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*at = (CUpti_Activity *)(void *)next;
	return CUPTI_SUCCESS;
}

UM_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *n)
{
	(void)context;
	(void)stream;
	pthread_mutex_lock(&lock);
	*n = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

/* --- what is counted ---------------------------------------------------------------------------------------------- */

UM_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
							      CUpti_BuffersCallbackCompleteFunc complete)
{
	CUptiResult err = enter("cuptiActivityRegisterCallbacks");

	if (err)
		return err;
	if (!request || !complete)
		return CUPTI_ERROR_INVALID_PARAMETER;
	wants_buffer = request;
	has_buffer = complete;
	return CUPTI_SUCCESS;
}

UM_EXPORT CUptiResult CUPTIAPI
cuptiActivityConfigureUnifiedMemoryCounter(CUpti_ActivityUnifiedMemoryCounterConfig *config, uint32_t count)
{
	CUptiResult err = enter("cuptiActivityConfigureUnifiedMemoryCounter");

	if (err)
		return err;
	if (!config || !count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < count; i++) {
		int bit = 1 << config[i].kind;

		kinds = config[i].enable ? kinds | bit : kinds & ~bit;
	}
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

static CUptiResult count(const char *name, CUpti_ActivityKind kind, struct um_activity_sink *to)
{
	CUptiResult err = enter(name);

	if (err)
		return err;
	if (kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
		return CUPTI_ERROR_NOT_COMPATIBLE;
	return driver->count_moves(to) ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_SUCCESS;
}

UM_EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
	return count("cuptiActivityEnable", kind, &sink);
}

UM_EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
	return count("cuptiActivityDisable", kind, NULL);
}

UM_EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
	CUptiResult err = enter("cuptiGetTimestamp");

	if (!err)
		*timestamp = driver->now();
	return err;
}

UM_EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
	CUptiResult err = enter("cuptiGetVersion");

	*version = err ? 0 : CUPTI_API_VERSION;
	return err;
}

/* A client prints the text without a look at the code returned. */
UM_EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text)
{
	if (!text)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*text = result == CUPTI_SUCCESS		      ? "CUPTI_SUCCESS"
		: result == CUPTI_ERROR_NOT_SUPPORTED ? "CUPTI_ERROR_NOT_SUPPORTED"
						      : "CUPTI_ERROR_UNKNOWN";
	return CUPTI_SUCCESS;
}
