/* SPDX-License-Identifier: Apache-2.0
 *
 * counters.c - the driver's unified-memory counters by CUPTI
 *
 * CUPTI requests buffers, and returns them full, on threads of its own: the records are copied under a lock of this
 * file, which is never held during a call that may wait for such a thread. No other module is called from those
 * threads.
 */
#include "gpu/counters.h"

#include "base/vec.h"

#include <cupti.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define MAJOR (CUPTI_API_VERSION / 10000) /* records have the layout of this version */
#define BUFFER_BYTES (256u << 10)
#define BUFFERS_MOST 32u
#define RECORDS_MOST 65536u /* between two collections; further ones are summed */

#define CALLS(X)                                                                                                       \
	X(cuptiGetVersion)                                                                                             \
	X(cuptiGetTimestamp)                                                                                           \
	X(cuptiActivityRegisterCallbacks)                                                                              \
	X(cuptiActivityConfigureUnifiedMemoryCounter)                                                                  \
	X(cuptiActivityEnable)                                                                                         \
	X(cuptiActivityDisable)                                                                                        \
	X(cuptiActivityFlushAll)                                                                                       \
	X(cuptiActivityGetNextRecord)                                                                                  \
	X(cuptiActivityGetNumDroppedRecords)

#define FIELD(name) __typeof__(&(name)) name;

enum what { H2D, D2H, GPU_FAULT, CPU_FAULT, WHATS };

#define WHYS UM_CAUSES /* causes of migrations, and kinds of access, which are fewer */

struct record {
	enum what what;
	unsigned why; /* enum um_activity_cause or enum um_activity_access */
	int64_t begin, end;
	uint64_t address, n; /* n: bytes, or faults */
};

struct sum {
	uint64_t records, n;
};

struct buffer {
	struct buffer *next; /* in the free list */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
	int loaded;
	char why[160]; /* reason if unavailable */
	CALLS(FIELD)
} cupti;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t owner; /* the process that opened them: a forked child has none and must not take the lock */
static struct { /* guarded by the lock */
	int taken; /* in use by a context */
	int64_t ahead; /* our clock minus CUPTI's */
	UM_VEC(struct record) records;
	struct sum sums[WHATS][WHYS];
	uint64_t lost;
	struct buffer *free;
	unsigned buffers; /* allocated */
} counters;

/* --- the library -------------------------------------------------------------------------------------------------- */

const char *um_counters_soname(void)
{
	static char soname[32];

	if (!*soname)
		snprintf(soname, sizeof soname, "libcupti.so.%d", MAJOR);
	return soname;
}

static void load(void)
{
	const char *soname = um_counters_soname();
	uint32_t version = 0;
	const char *missing = NULL;
	void *lib, *fn;

	lib = dlopen(soname, RTLD_NOW);
	if (!lib) {
		snprintf(cupti.why, sizeof cupti.why,
			 "%s is not found: LD_LIBRARY_PATH must name its folder, lib64 or extras/CUPTI/lib64 of the "
			 "CUDA toolkit",
			 soname);
		return;
	}
#define FIND(name)                                                                                                     \
	fn = dlsym(lib, #name);                                                                                        \
	memcpy(&cupti.name, &fn, sizeof fn);                                                                           \
	missing = fn ? missing : #name;
	CALLS(FIND)
	if (missing)
		snprintf(cupti.why, sizeof cupti.why, "%s has no %s", soname, missing);
	else if (cupti.cuptiGetVersion(&version) || version / 10000 != MAJOR)
		snprintf(cupti.why, sizeof cupti.why, "%s has version %u, whose records this library cannot read",
			 soname, version);
	else
		cupti.loaded = 1;
}

static const char *reason(int code)
{
	static const struct {
		int code;
		const char *text;
	} reasons[] = {
		{CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED, "this platform has no counters"},
		{CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE, "the device has no counters"},
		{CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES,
		 "the devices have no peer access: set CUDA_VISIBLE_DEVICES to one of them"},
		{CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS, "not supported under MPS"},
		{CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "not supported on a virtual GPU"},
		{CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "the driver lets administrators profile alone "
						      "(NVreg_RestrictProfilingToAdminUsers)"},
		{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "a profiler is attached already"},
		{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "not supported with confidential computing"},
		{CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "not supported under WSL"},
	};

	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].code == code)
			return reasons[i].text;
	return "CUPTI does not start";
}

/* --- on CUPTI's threads ------------------------------------------------------------------------------------------- */

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
	struct buffer *b;

	pthread_mutex_lock(&lock);
	b = counters.free;
	if (b) {
		counters.free = b->next;
	} else if (counters.buffers < BUFFERS_MOST && (b = malloc(BUFFER_BYTES))) {
		counters.buffers++;
	}
	pthread_mutex_unlock(&lock);
	*buffer = (uint8_t *)b;
	*size = b ? BUFFER_BYTES : 0;
	*most = 0; /* as many as fit */
}

static void add(const struct record *r)
{
	struct sum *s = &counters.sums[r->what][r->why];

	if (counters.records.n < RECORDS_MOST && !um_vec_push(&counters.records, *r))
		return;
	s->records++;
	s->n += r->n;
}

static void read_counter(const CUpti_ActivityUnifiedMemoryCounter3 *c)
{
	struct record r = {.begin = (int64_t)c->start + counters.ahead,
			   .end = (int64_t)c->end + counters.ahead,
			   .address = c->address,
			   .n = c->value,
			   .why = c->flags < WHYS ? c->flags : 0};

	switch (c->counterKind) {
	case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
		r.what = H2D;
		break;
	case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
		r.what = D2H;
		break;
	case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
		r.what = GPU_FAULT;
		break;
	case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT:
		r.what = CPU_FAULT;
		r.n = 1; /* the value is the faulting instruction */
		r.end = r.begin;
		break;
	default:
		return;
	}
	add(&r);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	struct buffer *b = (struct buffer *)(void *)buffer;
	CUpti_Activity *a = NULL;
	size_t dropped = 0;

	(void)size;
	if (!b)
		return;
	if (cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped))
		dropped = 0;
	pthread_mutex_lock(&lock);
	while (counters.taken && valid && !cupti.cuptiActivityGetNextRecord(buffer, valid, &a))
		if (a->kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
			read_counter((const CUpti_ActivityUnifiedMemoryCounter3 *)(const void *)a);
	counters.lost += dropped;
	b->next = counters.free;
	counters.free = b;
	pthread_mutex_unlock(&lock);
}

/* --- for lib/runtime ---------------------------------------------------------------------------------------------- */

static int start(char *why, size_t size)
{
	static const CUpti_ActivityUnifiedMemoryCounterKind kinds[] = {
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT,
		CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT};
	enum { KINDS = sizeof kinds / sizeof *kinds };
	CUpti_ActivityUnifiedMemoryCounterConfig config[KINDS];
	int err;

	pthread_once(&once, load);
	if (!cupti.loaded) {
		snprintf(why, size, "%s", cupti.why);
		return -ENOTSUP;
	}
	memset(config, 0, sizeof config);
	for (int i = 0; i < KINDS; i++) {
		config[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
		config[i].kind = kinds[i];
		config[i].enable = 1;
	}
	err = (int)cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
	if (!err)
		err = (int)cupti.cuptiActivityConfigureUnifiedMemoryCounter(config, KINDS);
	if (!err)
		err = (int)cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
	if (!err)
		return 0;
	snprintf(why, size, "%s (CUPTI error %d)", reason(err), err);
	return -ENOTSUP;
}

/* If a clock cannot be read, the previous offset stays. */
static void look_at_clock(int64_t now)
{
	uint64_t theirs;

	if (cupti.cuptiGetTimestamp(&theirs))
		return;
	pthread_mutex_lock(&lock);
	counters.ahead = now - (int64_t)theirs;
	pthread_mutex_unlock(&lock);
}

int um_counters_open(int64_t now, char *why, size_t size)
{
	pid_t expected = 0;
	int busy, err;

	if (!atomic_compare_exchange_strong(&owner, &expected, getpid()) && expected != getpid()) {
		snprintf(why, size, "this process was forked from one that uses them");
		return -EBUSY;
	}
	pthread_mutex_lock(&lock);
	busy = counters.taken;
	counters.taken = 1;
	pthread_mutex_unlock(&lock);
	if (busy) {
		snprintf(why, size, "another context of this process uses them");
		return -EBUSY;
	}
	err = start(why, size);
	if (!err) {
		look_at_clock(now);
		return 0;
	}
	pthread_mutex_lock(&lock);
	counters.taken = 0;
	pthread_mutex_unlock(&lock);
	return err;
}

static struct um_activity activity(enum what what, unsigned why, uint64_t n)
{
	struct um_activity a = {.kind = what == CPU_FAULT   ? UM_ACT_CPU_FAULT
					: what == GPU_FAULT ? UM_ACT_GPU_FAULT
							    : UM_ACT_MIGRATION,
				.device = -1,
				.stream = -1,
				.op = UM_ACT_NO_OP};

	if (a.kind == UM_ACT_MIGRATION) {
		a.dir = what == H2D ? UM_DIR_H2D : UM_DIR_D2H;
		a.cause = (enum um_activity_cause)why;
		a.bytes = n;
	} else {
		a.access = what == GPU_FAULT ? (enum um_activity_access)why : UM_ACCESS_UNKNOWN;
		a.faults = n;
	}
	return a;
}

static void report_sums(const struct sum *sums, int64_t now, struct um_activity_sink *sink)
{
	for (unsigned i = 0; i < WHATS * WHYS; i++) {
		struct um_activity a = activity((enum what)(i / WHYS), i % WHYS, sums[i].n);

		a.begin = a.end = now;
		a.records = sums[i].records;
		if (a.records)
			um_activity_feed(sink, &a);
	}
}

static void report(const struct record *r, struct um_activity_sink *sink)
{
	struct um_activity a = activity(r->what, r->why, r->n);

	a.begin = r->begin;
	a.end = r->end > r->begin ? r->end : r->begin;
	a.address = r->address;
	a.records = 1;
	um_activity_feed(sink, &a);
}

static void put_down(void)
{
	struct buffer *b;

	pthread_mutex_lock(&lock);
	counters.taken = 0;
	um_vec_fini(&counters.records);
	while ((b = counters.free)) {
		counters.free = b->next;
		counters.buffers--;
		free(b);
	}
	pthread_mutex_unlock(&lock);
}

int um_counters_take(int64_t now, int last, struct um_activity_sink *sink, uint64_t *lost)
{
	struct sum sums[WHATS][WHYS];
	struct record *at;
	size_t n;
	int err;

	*lost = 0;
	if (owner != getpid())
		return 0;
	look_at_clock(now);
	if (last)
		cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
	err = (int)cupti.cuptiActivityFlushAll(last ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
	pthread_mutex_lock(&lock);
	at = counters.records.at;
	n = counters.records.n;
	memset(&counters.records, 0, sizeof counters.records);
	memcpy(sums, counters.sums, sizeof sums);
	memset(counters.sums, 0, sizeof counters.sums);
	*lost = counters.lost;
	counters.lost = 0;
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < n; i++)
		report(&at[i], sink);
	report_sums(&sums[0][0], now, sink);
	free(at);
	if (last)
		put_down();
	return err;
}
