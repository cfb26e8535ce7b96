/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of an export of Nsight Systems: tables and values of any type, in a file that SQLite itself finds sound.
 *
 * The first two bytes say which tables there are and what the file says of itself. Then each row is a byte that chooses
 * its table and, for each column, a byte that chooses what the value is, with the bytes of the value behind it.
 */
#include "fuzz.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/nsys_schema.h"

const char fuzz_name[] = "rows";

#define COLUMNS 14

/* As tools/formats/nsys_read.c and tools/formats/nsys_capture.c ask for them, without types: any value fits. */
static const struct {
	const char *name, *columns;
	int n;
} tables[] = {
	{"CUDA_GPU_MEMORY_USAGE_EVENTS", "start,globalPid,deviceId,address,bytes,memKind,memoryOperationType,name", 8},
	{"NVTX_EVENTS", "start,\"end\",globalTid,eventType,text,textId,domainId", 7},
	{"CUPTI_ACTIVITY_KIND_RUNTIME", "start,\"end\",globalTid,correlationId,nameId,returnValue", 6},
	{"CUPTI_ACTIVITY_KIND_KERNEL",
	 "start,\"end\",globalPid,deviceId,streamId,correlationId,shortName,"
	 "demangledName,gridX,gridY,gridZ,blockX,blockY,blockZ",
	 14},
	{"CUPTI_ACTIVITY_KIND_MEMSET", "start,\"end\",globalPid,deviceId,streamId,correlationId,bytes", 7},
	{"CUDA_UM_GPU_PAGE_FAULT_EVENTS", "start,\"end\",globalPid,deviceId,address,numberOfPageFaults,faultAccessType",
	 7},
	{"CUDA_UM_CPU_PAGE_FAULT_EVENTS", "start,globalPid,address,CpuInstruction,module", 5},
	{"CUPTI_ACTIVITY_KIND_MEMCPY",
	 "start,\"end\",globalPid,deviceId,streamId,correlationId,bytes,copyKind,"
	 "migrationCause,virtualAddress",
	 10},
	{"StringIds", "id,value", 2},
	{"META_DATA_EXPORT", "name,value", 2},
	{"META_DATA_CAPTURE", "name,value", 2},
	{"ANALYSIS_DETAILS", "duration", 1},
	{"PROCESSES", "globalPid,pid,name", 3},
	{"TARGET_INFO_GPU", "id,name,totalMemory,cuDevice", 4},
	{"DIAGNOSTIC_EVENT", "text,severity", 2},
	{"EXPORT_META_DATA", "name,value", 2},
};

#define TABLES ((int)(sizeof tables / sizeof *tables))

struct input {
	const uint8_t *at;
	size_t left;
	int64_t now; /* ns */
};

static uint8_t byte(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static int64_t integer(struct input *in, int bytes)
{
	uint64_t x = 0;

	while (bytes--)
		x = x << 8 | byte(in);
	return (int64_t)x;
}

static void value(struct input *in, sqlite3_stmt *s, int column)
{
	static const char *const words[] = {"umadvise",
					    "step 1",
					    "tensor 65536 65536 x",
					    "op 1 mul",
					    "3.7.2",
					    "true",
					    "EXPORT_SCHEMA_VERSION",
					    "COLLECT_UVM_GPU_PAGE_FAULTS",
					    "tensor-end 65536",
					    "use 1 r 65536 65536",
					    "hint - prefetch 65536 65536 0",
					    "cudaLaunchKernel"};
	size_t n;

	switch (byte(in) % 9) {
	case 0:
		sqlite3_bind_null(s, column);
		break;
	case 1: /* small */
		sqlite3_bind_int64(s, column, byte(in));
		break;
	case 2: /* any */
		sqlite3_bind_int64(s, column, integer(in, 8));
		break;
	case 3: /* a time, in order */
		sqlite3_bind_int64(s, column, in->now += 100 * byte(in));
		break;
	case 4: /* a process and a thread */
		sqlite3_bind_int64(s, column, (int64_t)UM_NSYS_GLOBAL(1 + byte(in) % 4, 1));
		break;
	case 5: /* an address, or a size */
		sqlite3_bind_int64(s, column, (int64_t)byte(in) << 16);
		break;
	case 6:
		sqlite3_bind_double(s, column, (double)integer(in, 4) / 7);
		break;
	case 7:
		sqlite3_bind_text(s, column, words[byte(in) % (sizeof words / sizeof *words)], -1, SQLITE_STATIC);
		break;
	default:
		n = byte(in);
		n = n < in->left ? n : in->left;
		if (n % 2)
			sqlite3_bind_text(s, column, (const char *)in->at, (int)n, SQLITE_TRANSIENT);
		else
			sqlite3_bind_blob(s, column, in->at, (int)n, SQLITE_TRANSIENT);
		in->at += n;
		in->left -= n;
	}
}

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		abort();
}

static sqlite3_stmt *table_make(sqlite3 *db, int t)
{
	char sql[512], room[2 * COLUMNS + 1] = "?";
	sqlite3_stmt *s = NULL;

	snprintf(sql, sizeof sql, "CREATE TABLE %s(%s)", tables[t].name, tables[t].columns);
	run(db, sql);
	for (int c = 1; c < tables[t].n; c++)
		strcat(room, ",?");
	snprintf(sql, sizeof sql, "INSERT INTO %s VALUES(%s)", tables[t].name, room);
	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
		abort();
	return s;
}

static void fill(sqlite3 *db, struct input *in)
{
	unsigned there = (unsigned)integer(in, 2);
	sqlite3_stmt *insert[TABLES] = {0};

	run(db, "PRAGMA page_size=512; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
	for (int t = 0; t < TABLES; t++)
		if (there >> t & 1)
			insert[t] = table_make(db, t);
	while (in->left) {
		int t = byte(in) % TABLES;

		for (int c = 0; insert[t] && c < tables[t].n; c++)
			value(in, insert[t], c + 1);
		if (insert[t]) {
			sqlite3_step(insert[t]);
			sqlite3_reset(insert[t]);
		}
	}
	for (int t = 0; t < TABLES; t++)
		sqlite3_finalize(insert[t]);
	run(db, "COMMIT");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.at = data, .left = size};
	const char *path = fuzz_file(NULL, 0);
	sqlite3 *db = NULL;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		abort();
	fill(db, &in);
	sqlite3_close(db);
	fuzz_report(path, size % 4 == 0);
	return 0;
}
