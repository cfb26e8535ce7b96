/* SPDX-License-Identifier: Apache-2.0
 *
 * A sum of 0 over events that were not recorded is shown as missing.
 */
#include "report/tables.h"

#define MOVES_TABLE "CUPTI_ACTIVITY_KIND_MEMCPY"
#define KERNELS_TABLE "CUPTI_ACTIVITY_KIND_KERNEL"
#define FAULTS_TABLE "CUDA_UM_GPU_PAGE_FAULT_EVENTS"

/* Source tables of a value in an export. */
static const char *const made_of[UM_RECORDED_KINDS][2] = {
	[UM_RECORDED_GPU_FAULTS] = {FAULTS_TABLE, NULL},
	[UM_RECORDED_SERVING] = {FAULTS_TABLE, KERNELS_TABLE},
	[UM_RECORDED_CPU_FAULTS] = {"CUDA_UM_CPU_PAGE_FAULT_EVENTS", NULL},
	[UM_RECORDED_MIGRATIONS] = {MOVES_TABLE, UM_ABSENCE_MIGRATIONS},
	[UM_RECORDED_WAITS] = {KERNELS_TABLE, UM_ABSENCE_MIGRATIONS},
	[UM_RECORDED_COPIES] = {MOVES_TABLE, NULL},
	[UM_RECORDED_KERNELS] = {KERNELS_TABLE, NULL},
	[UM_RECORDED_ALLOCATIONS] = {"CUDA_GPU_MEMORY_USAGE_EVENTS", NULL},
};

static int absent(const struct um_capture *c, const char *table, const char *file)
{
	for (size_t i = 0; table && i < c->missing.n; i++) {
		const struct um_absence *a = &c->missing.at[i];

		if (a->state != UM_ABSENT_NONE && strcmp(a->table, table) == 0 &&
		    (!a->file || (file && strcmp(a->file, file) == 0)))
			return 1;
	}
	return 0;
}

int um_table_recorded(const struct um_findings *f, enum um_recorded what, const char *file)
{
	const struct um_capture *c = f->capture;

	if (c->library.is)
		return what == UM_RECORDED_ALWAYS || what == UM_RECORDED_ALLOCATIONS ||
		       (c->library.counters && (what == UM_RECORDED_GPU_FAULTS || what == UM_RECORDED_CPU_FAULTS ||
						what == UM_RECORDED_MIGRATIONS));
	return !absent(c, made_of[what][0], file) && !absent(c, made_of[what][1], file);
}

struct um_value um_table_if(const struct um_findings *f, enum um_recorded what, struct um_value file, uint64_t n)
{
	struct um_value v = {.number = n < INT64_MAX ? (int64_t)n : INT64_MAX};

	if (!um_table_recorded(f, what, file.none ? NULL : file.text))
		v.none = UM_VALUE_NOT_RECORDED;
	return v;
}
