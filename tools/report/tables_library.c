/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of libumadvise's own figures, of announced operations, and of the recording.
 */
#include "report/tables_rows.h"

/* --- library ------------------------------------------------------------------------------------------------------ */

static struct um_value rank_number(const struct um_table_row *row, uint64_t n)
{
	const struct um_capture_library *l = row->at;

	return l->rank.is ? um_table_number(n) : um_table_none();
}

static struct um_value rank_of(const struct um_table_row *row)
{
	return rank_number(row, ((const struct um_capture_library *)row->at)->rank.rank);
}

static struct um_value local_rank_of(const struct um_table_row *row)
{
	return rank_number(row, ((const struct um_capture_library *)row->at)->rank.local_rank);
}

static struct um_value clock_name(const struct um_table_row *row)
{
	const struct um_capture_library *l = row->at;

	return um_table_text(l->simulated ? "simulated" : "monotonic");
}

#define L struct um_capture_library
#define COUNTED(key, title, what, kind, count)                                                                         \
	{                                                                                                              \
		key, title, kind, what, MEMBER(L, counts[count])                                                       \
	}
#define COUNT(key, title, count) COUNTED(key, title, 0, UM_COLUMN_COUNT, count)
#define LEVEL(key, title, kind, level)                                                                                 \
	{                                                                                                              \
		key, title, kind, 0, MEMBER(L, levels[level])                                                          \
	}
#define PLAN(key, title, kind, level)                                                                                  \
	{                                                                                                              \
		key, title, kind, 0, MEMBER(L, levels[level]), WHERE(L, levels[level])                                 \
	}

static const struct um_column library_columns[] = {
	{"version", "written by", UM_COLUMN_TEXT, 0, MEMBER(L, version)},
	{"device", "device", UM_COLUMN_TEXT, 0, MEMBER(L, device)},
	{"why_no_hints", "hints have no effect because", UM_COLUMN_TEXT, 0, MEMBER(L, why)},
	{"rank", "rank", UM_COLUMN_COUNT, .value = rank_of},
	{"ranks", "ranks", UM_COLUMN_COUNT, 0, MEMBER(L, rank.ranks), WHERE(L, rank.ranks)},
	{"local_rank", "rank of the node", UM_COLUMN_COUNT, .value = local_rank_of},
	{"local_ranks", "ranks of the node", UM_COLUMN_COUNT, 0, MEMBER(L, rank.local_ranks),
	 WHERE(L, rank.local_ranks)},
	{"host", "node", UM_COLUMN_TEXT, 0, MEMBER(L, rank.host)},
	{"strategy", "strategy", UM_COLUMN_TEXT, 0, MEMBER(L, strategy)},
	{"clock", "clock", UM_COLUMN_TEXT, .value = clock_name},
	{"budget_bytes", "budget", UM_COLUMN_BYTES, 0, MEMBER(L, budget_bytes)},
	PLAN("shared_budget_bytes", "at the end, shared with other processes", UM_COLUMN_BYTES, UM_LIBRARY_BUDGET),
	{"iterations", "iterations", UM_COLUMN_COUNT, 0, MEMBER(L, iterations)},
	{"iterations_kept", "iterations with events", UM_COLUMN_COUNT, 0, MEMBER(L, kept)},
	COUNT("ops", "operations", UM_LIBRARY_OPS),
	COUNT("hints_issued", "hints issued", UM_LIBRARY_ISSUED),
	COUNT("hints_refused", "hints refused", UM_LIBRARY_REFUSED),
	COUNT("hints_dropped", "hints dropped", UM_LIBRARY_DROPPED),
	COUNTED("prefetch_bytes", "prefetched", 0, UM_COLUMN_BYTES, UM_LIBRARY_PREFETCH),
	COUNTED("evict_bytes", "evicted", 0, UM_COLUMN_BYTES, UM_LIBRARY_EVICT),
	COUNTED("discard_bytes", "discarded", 0, UM_COLUMN_BYTES, UM_LIBRARY_DISCARD),
	COUNTED("kept_bytes", "copied instead of discarded", 0, UM_COLUMN_BYTES, UM_LIBRARY_KEPT),
	COUNT("plans_adopted", "plans adopted", UM_LIBRARY_PLANS),
	COUNT("left_schedule", "iterations off the schedule", UM_LIBRARY_LEFT),
	COUNT("limited_iterations", "iterations with fewer hints, as others did not pay", UM_LIBRARY_LIMITED),
	COUNT("unknown_uses", "uses of unknown tensors", UM_LIBRARY_UNKNOWN),
	COUNT("captured_ops", "operations under stream capture", UM_LIBRARY_CAPTURED),
	COUNT("errors", "internal errors", UM_LIBRARY_ERRORS),
	COUNTED("counted_h2d_bytes", "counted to the device", UM_RECORDED_MIGRATIONS, UM_COLUMN_BYTES, UM_LIBRARY_H2D),
	COUNTED("counted_d2h_bytes", "counted to the host", UM_RECORDED_MIGRATIONS, UM_COLUMN_BYTES, UM_LIBRARY_D2H),
	COUNTED("counted_gpu_faults", "counted faults of the device", UM_RECORDED_GPU_FAULTS, UM_COLUMN_COUNT,
		UM_LIBRARY_GPU_FAULTS),
	COUNTED("counted_cpu_faults", "counted faults of the CPU", UM_RECORDED_CPU_FAULTS, UM_COLUMN_COUNT,
		UM_LIBRARY_CPU_FAULTS),
	COUNTED("counters_summed", "counted, of unknown tensors", UM_RECORDED_MIGRATIONS, UM_COLUMN_COUNT,
		UM_LIBRARY_SUMMED),
	COUNTED("counters_lost", "records dropped by CUPTI", UM_RECORDED_MIGRATIONS, UM_COLUMN_COUNT, UM_LIBRARY_LOST),
	PLAN("plan_ns", "planned iteration", UM_COLUMN_NS, UM_LIBRARY_PLAN_NS),
	PLAN("played_ns", "measured iteration", UM_COLUMN_NS, UM_LIBRARY_PLAYED_NS),
	PLAN("in_core_ns", "the same, all resident", UM_COLUMN_NS, UM_LIBRARY_IN_CORE_NS),
	PLAN("plan_peak_bytes", "planned resident", UM_COLUMN_BYTES, UM_LIBRARY_PLAN_PEAK),
	LEVEL("tensors_live", "tensors alive", UM_COLUMN_COUNT, UM_LIBRARY_TENSORS),
	LEVEL("live_bytes", "alive", UM_COLUMN_BYTES, UM_LIBRARY_LIVE),
	LEVEL("live_peak_bytes", "alive at most", UM_COLUMN_BYTES, UM_LIBRARY_LIVE_PEAK),
	LEVEL("measured_ops", "operations measured", UM_COLUMN_COUNT, UM_LIBRARY_MEASURED),
};

static size_t library_rows(const struct um_findings *f)
{
	return f->capture->library.is != 0;
}

static void find_library(struct um_table_row *row)
{
	row->at = &row->f->capture->library;
}

const struct um_table um_table_library = {TABLE("library", "figures of the library's own log", library_columns),
					  .single = 1, .count = library_rows, .find = find_library};

/* --- announced ---------------------------------------------------------------------------------------------------- */

#define O struct um_declared_op
static const struct um_column announced_columns[] = {
	{"name", "name", UM_COLUMN_TEXT, 0, MEMBER(O, name)},
	{"announced", "announced", UM_COLUMN_COUNT, 0, MEMBER(O, n)},
	{"uses", "uses", UM_COLUMN_COUNT, 0, MEMBER(O, uses)},
	{"read_bytes", "read", UM_COLUMN_BYTES, 0, MEMBER(O, read_bytes)},
	{"written_bytes", "written", UM_COLUMN_BYTES, 0, MEMBER(O, written_bytes)},
};

const struct um_table um_table_announced = {
	TABLE("announced", "operations, as the program announced them", announced_columns), LIST(announced.rows)};

/* --- devices ------------------------------------------------------------------------------------------------------ */

static struct um_value device_number(const struct um_table_row *row)
{
	return (struct um_value){.number = ((const struct um_capture_device *)row->at)->device};
}

#define D struct um_capture_device
static const struct um_column device_columns[] = {
	{"file", "file", UM_COLUMN_TEXT, 0, MEMBER(D, file)},
	{"device", "device", UM_COLUMN_COUNT, .value = device_number},
	{"name", "name", UM_COLUMN_TEXT, 0, MEMBER(D, name)},
	{"memory_bytes", "memory", UM_COLUMN_BYTES, 0, MEMBER(D, memory_bytes), WHERE(D, memory_bytes)},
	{"driver", "driver", UM_COLUMN_TEXT, 0, MEMBER(D, driver)},
};

const struct um_table um_table_devices = {TABLE("devices", "devices", device_columns), CAPTURED(devices)};

/* --- missing ------------------------------------------------------------------------------------------------------ */

const char *um_absence_word(enum um_absence_state state)
{
	static const char *const words[] = {"unknown", "not recorded", "none happened"};

	return words[state];
}

static struct um_value absence_state(const struct um_table_row *row)
{
	return um_table_text(um_absence_word(((const struct um_absence *)row->at)->state));
}

#define A struct um_absence
static const struct um_column missing_columns[] = {
	{"file", "file", UM_COLUMN_TEXT, 0, MEMBER(A, file)},
	{"table", "table", UM_COLUMN_TEXT, 0, MEMBER(A, table)},
	{"what", "content", UM_COLUMN_TEXT, 0, MEMBER(A, what)},
	{"state", "because", UM_COLUMN_TEXT, .value = absence_state},
	{"option", "nsys profile", UM_COLUMN_TEXT, 0, MEMBER(A, option)},
};

const struct um_table um_table_missing = {
	TABLE("missing", "data missing from the file (-: not recorded), and how to record them", missing_columns),
	CAPTURED(missing)};
