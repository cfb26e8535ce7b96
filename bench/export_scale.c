/* SPDX-License-Identifier: Apache-2.0
 *
 * export_scale.c - writes a large export of Nsight Systems, to measure `umadvise report` on
 *
 *     export_scale FILE EVENTS
 *
 * The tables and columns are those of schema 3.7.2, and the mix is a training step's: for each launch two calls, a
 * kernel, and now and then a marked range; migrations of all causes, groups of faults, faults of the CPU. EVENTS are
 * those of tables that the report reads; as many lie in OSRT_API, which it does not read and real exports have. Rows
 * lie in order of time, as nsys writes them. The same file each time.
 */
#include "formats/nsys_schema.h"
#include "fixture/random.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCHES_A_STEP 200 /* kernels of an iteration */
#define NAMES 400 /* of kernels */
#define CALLS 40 /* names of calls */
#define OTHERS_A_LAUNCH 10
#define RANK UM_NSYS_GLOBAL(4711, 0)
#define OTHERS_TABLE                                                                                                   \
	"CREATE TABLE OSRT_API (start INTEGER NOT NULL, \"end\" INTEGER NOT NULL, eventClass INTEGER NOT NULL, "       \
	"globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER, "                     \
	"nestingLevel INTEGER, callchainId INTEGER NOT NULL)"

static sqlite3 *db;
static uint64_t seed = 20261122;

static uint64_t draw(uint64_t below)
{
	return test_random64(&seed) % below;
}

static void fail(void)
{
	fprintf(stderr, "export_scale: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static void run(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail();
}

/* A statement that fills `columns` of `table`, as many as `n`. */
static sqlite3_stmt *insert(const char *table, const char *columns, int n)
{
	char sql[2048], marks[256] = "?";
	sqlite3_stmt *s;

	for (int i = 1; i < n; i++)
		strcat(marks, ", ?");
	snprintf(sql, sizeof sql, "INSERT INTO %s (%s) VALUES (%s)", table, columns, marks);
	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		fail();
	return s;
}

static void put(sqlite3_stmt *s, const int64_t *values, int n)
{
	for (int i = 0; i < n; i++)
		sqlite3_bind_int64(s, i + 1, values[i]);
	if (sqlite3_step(s) != SQLITE_DONE)
		fail();
	sqlite3_reset(s);
}

#define PUT(s, ...)                                                                                                    \
	do {                                                                                                           \
		const int64_t values_[] = {__VA_ARGS__};                                                               \
		put((s), values_, (int)(sizeof values_ / sizeof *values_));                                            \
	} while (0)

static struct {
	sqlite3_stmt *range, *call, *kernel, *fault, *touch, *copy, *other;
} to;

static void tables(void)
{
	char sql[2048];

	run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; BEGIN");
	run(um_nsys_frame);
	run(OTHERS_TABLE);
	for (int i = 0; i < UM_NSYS_TABLES; i++) {
		if (i == UM_NSYS_ALLOC || i == UM_NSYS_FILL)
			continue;
		snprintf(sql, sizeof sql, "CREATE TABLE %s (%s)", um_nsys_tables[i].name, um_nsys_tables[i].columns);
		run(sql);
	}
	to.range = insert("NVTX_EVENTS", "start, \"end\", eventType, globalTid, domainId, text", 6);
	to.call = insert("CUPTI_ACTIVITY_KIND_RUNTIME",
			 "start, \"end\", eventClass, globalTid, correlationId, nameId, "
			 "returnValue, callchainId",
			 8);
	to.kernel = insert("CUPTI_ACTIVITY_KIND_KERNEL",
			   "start, \"end\", deviceId, contextId, greenContextId, "
			   "streamId, correlationId, globalPid, demangledName, shortName, mangledName, launchType, "
			   "cacheConfig, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, "
			   "staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId, "
			   "sharedMemoryExecuted, sharedMemoryLimitConfig",
			   27);
	to.copy = insert("CUPTI_ACTIVITY_KIND_MEMCPY",
			 "start, \"end\", deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind, "
			 "srcKind, dstKind, migrationCause, virtualAddress",
			 13);
	to.fault = insert("CUDA_UM_GPU_PAGE_FAULT_EVENTS",
			  "start, \"end\", globalPid, deviceId, address, "
			  "numberOfPageFaults, faultAccessType",
			  7);
	to.touch = insert("CUDA_UM_CPU_PAGE_FAULT_EVENTS",
			  "start, globalPid, address, originalFaultPc, CpuInstruction, module", 6);
	to.other = insert("OSRT_API",
			  "start, \"end\", eventClass, globalTid, correlationId, nameId, returnValue, "
			  "nestingLevel, callchainId",
			  9);
}

static void strings(void)
{
	sqlite3_stmt *s = insert("StringIds", "id, value", 2);
	char text[160];

	for (int i = 0; i < 2 * NAMES + CALLS; i++) {
		if (i < NAMES)
			snprintf(text, sizeof text, "kernel_%d", i);
		else if (i < 2 * NAMES)
			snprintf(text, sizeof text, "void kernel_%d<float, %d>(float const*, float*, unsigned long)",
				 i - NAMES, 32 << i % 4);
		else
			snprintf(text, sizeof text, "cudaCall%d_v7000", i);
		sqlite3_bind_int64(s, 1, i + 1);
		sqlite3_bind_text(s, 2, text, -1, SQLITE_STATIC);
		if (sqlite3_step(s) != SQLITE_DONE)
			fail();
		sqlite3_reset(s);
	}
	sqlite3_finalize(s);
}

/* One that moves pages: `cause` and `way` as nsys numbers them. */
static void move(int64_t t, int way, int cause)
{
	uint64_t address = 0x7f0000000000 + draw(1 << 18) * 4096;

	PUT(to.copy, t, t + 300 + (int64_t)draw(5000), 0, 1, 0, 0, (int64_t)RANK, 4096 << draw(9), way, 7, 7, cause,
	    (int64_t)address);
}

/* A launch and what follows from it: about ten events. */
static uint64_t launch(int64_t cpu, int64_t gpu, uint64_t n)
{
	int64_t name = 1 + (int64_t)(n * 7 % NAMES), tid = (int64_t)RANK + 4711, end = gpu + 40000;
	uint64_t events = 3;

	PUT(to.call, cpu, cpu + 2000, 0, tid, (int64_t)(2 * n + 1), 2 * NAMES + 1 + (int64_t)draw(CALLS), 0, 100000);
	PUT(to.call, cpu + 2500, cpu + 4800, 0, tid, (int64_t)(2 * n + 2), 2 * NAMES + 1, 0, 100000);
	PUT(to.kernel, gpu, end, 0, 1, 0, 7, (int64_t)(2 * n + 2), (int64_t)RANK, NAMES + name, name, NAMES + name, 1,
	    0, 32, 4096, 1, 1, 256, 1, 1, 1024, 16384, 0, 90000000, (int64_t)n, 32768, 0);
	for (int i = 0; i < OTHERS_A_LAUNCH; i++)
		PUT(to.other, cpu + 200 * i, cpu + 200 * i + 150, 27, tid, (int64_t)n, 2 * NAMES + 2, 0, 0, 100000 + i);
	for (int i = 0; i < 2; i++, events++)
		PUT(to.fault, gpu + 1000 + 9000 * i, gpu + 8000 + 9000 * i, (int64_t)RANK, 0,
		    0x7f0000000000 + (int64_t)draw(1 << 18) * 4096, 1 + (int64_t)draw(200), 1 + (int64_t)draw(2));
	for (int i = 0; i < 4; i++, events++)
		move(gpu + 2000 + 4000 * i, i == 3 ? UM_COPY_UM_D2H : UM_COPY_UM_H2D, i == 3 ? 4 : i == 2 ? 1 : 2 + i);
	if (n % 4 == 0) {
		PUT(to.touch, cpu + 5000, (int64_t)RANK, 0x7f0000000000 + (int64_t)draw(1 << 18) * 4096, 0x55aa00001234,
		    2 * NAMES + 2, 2 * NAMES + 3);
		events++;
	}
	return events;
}

static void range(int64_t begin, int64_t end, const char *text)
{
	sqlite3_bind_text(to.range, 6, text, -1, SQLITE_STATIC);
	PUT(to.range, begin, end, UM_NVTX_PUSH_POP, (int64_t)RANK + 4711, 0);
}

static void fill(uint64_t wanted)
{
	int64_t t = 1000000000;
	uint64_t events = 0;
	char text[64];

	for (uint64_t n = 0; events < wanted; n++, t += 50000) {
		if (n % LAUNCHES_A_STEP == 0) {
			snprintf(text, sizeof text, "Train step %" PRIu64, n / LAUNCHES_A_STEP);
			range(t - 100, t + LAUNCHES_A_STEP * 50000 - 200, text);
			events++;
		}
		if (n % 2 == 0) {
			snprintf(text, sizeof text, "Layer %" PRIu64, n % LAUNCHES_A_STEP / 2);
			range(t, t + 90000, text);
			events++;
		}
		events += launch(t, t + 20000, n);
	}
	fprintf(stderr, "%" PRIu64 " events\n", events);
}

int main(int argc, char **argv)
{
	if (argc != 3 || sqlite3_open(argv[1], &db) != SQLITE_OK) {
		fprintf(stderr, "usage: export_scale FILE EVENTS\n");
		return 2;
	}
	tables();
	strings();
	fill(strtoull(argv[2], NULL, 10));
	run("COMMIT");
	for (size_t i = 0; i < sizeof to / sizeof(sqlite3_stmt *); i++)
		sqlite3_finalize(((sqlite3_stmt **)&to)[i]);
	return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
}
