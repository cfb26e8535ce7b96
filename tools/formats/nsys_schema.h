/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_schema.h - the tables of an Nsight Systems export that are read and written, by name
 *
 * The schema is 3.7.2, the last one with known tables of unified memory. Private to the nsys_* files.
 */
#ifndef UM_FORMATS_NSYS_SCHEMA_H
#define UM_FORMATS_NSYS_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#define UM_NSYS_VERSION "3.7.2"
#define UM_NSYS_MAJOR 3 /* last known schema; the next one may differ */

enum um_nsys_id {
	UM_NSYS_ALLOC,
	UM_NSYS_RANGE,
	UM_NSYS_CALL,
	UM_NSYS_KERNEL,
	UM_NSYS_FILL,
	UM_NSYS_GPU_FAULT,
	UM_NSYS_CPU_FAULT,
	UM_NSYS_COPY, /* migrations, too */
	UM_NSYS_TABLES
};

struct um_nsys_table {
	const char *name;
	const char *columns; /* of CREATE TABLE */
	const char *set; /* columns that a writer binds, in the order of its parameters */
	const char *fixed, *values; /* constant values of every row; or "" */
};

extern const struct um_nsys_table um_nsys_tables[UM_NSYS_TABLES];

/* Tables that a writer always makes: statements, each with its rows. */
extern const char um_nsys_frame[];

/* NVTX_EVENTS.eventType */
enum {
	UM_NVTX_MARK = 34,
	UM_NVTX_PUSH_POP = 59,
	UM_NVTX_START_END = 60,
	UM_NVTX_TEXT_PUSH_POP = 70,
	UM_NVTX_TEXT_START_END = 71,
	UM_NVTX_DOMAIN = 75
};

/* CUPTI_ACTIVITY_KIND_MEMCPY.copyKind */
enum {
	UM_COPY_H2D = 1,
	UM_COPY_D2H = 2,
	UM_COPY_D2D = 8,
	UM_COPY_H2H = 9,
	UM_COPY_UM_H2D = 11,
	UM_COPY_UM_D2H = 12,
	UM_COPY_UM_D2D = 13
};

enum { UM_MEM_DEVICE = 2, UM_MEM_MANAGED = 4, UM_MEM_MANAGED_STATIC = 6 }; /* memKind */

/* globalPid and globalTid: thread and process in 24 bits each. */
#define UM_NSYS_PROCESS(global) ((uint64_t)(global) >> 24)
#define UM_NSYS_GLOBAL(process, thread) ((uint64_t)1 << 48 | (uint64_t)(process) << 24 | (uint64_t)(thread))

#endif
