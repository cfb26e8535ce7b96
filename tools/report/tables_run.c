/* SPDX-License-Identifier: Apache-2.0
 *
 * tables_run.c - report tables of the whole run: sums, iterations, kernels, ranges and processes
 *
 * Processes may be recorded by different clocks, so that only durations of their iterations are compared.
 */
#include "report/tables_rows.h"

/* --- summary ------------------------------------------------------------------------------------------------------ */

static struct um_value iterations_by(const struct um_table_row *row)
{
	return um_table_text(um_report_iterations_by(row->at));
}

static struct um_value duration(const struct um_table_row *row)
{
	return um_table_number(um_report_longest(row->at));
}

#define R struct um_report
static const struct um_column summary_columns[] = {
	{"gpu_page_faults", "GPU page faults", UM_COLUMN_COUNT, UM_RECORDED_GPU_FAULTS, MEMBER(R, all.work.faults)},
	{"cpu_page_faults", "CPU page faults", UM_COLUMN_COUNT, UM_RECORDED_CPU_FAULTS, MEMBER(R, all.cpu_faults)},
	{"um_h2d_bytes", "migrated to the device", UM_COLUMN_BYTES, UM_RECORDED_MIGRATIONS,
	 MOVES(R, all, UM_DIR_H2D, 0, UM_CAUSES)},
	{"um_d2h_bytes", "migrated to the host", UM_COLUMN_BYTES, UM_RECORDED_MIGRATIONS,
	 MOVES(R, all, UM_DIR_D2H, 0, UM_CAUSES)},
	{"um_d2d_bytes", "migrated between devices", UM_COLUMN_BYTES, UM_RECORDED_MIGRATIONS,
	 MOVES(R, all, UM_DIR_D2D, 0, UM_CAUSES)},
	{"gpu_fault_groups", "groups of GPU page faults", UM_COLUMN_COUNT, UM_RECORDED_GPU_FAULTS,
	 MEMBER(R, all.fault_groups)},
	{"fault_ns", "kernel time while faults were served", UM_COLUMN_NS, UM_RECORDED_SERVING,
	 MEMBER(R, all.work.fault_ns)},
	{"kernels", "kernels", UM_COLUMN_COUNT, UM_RECORDED_KERNELS, MEMBER(R, all.work.launches)},
	{"kernel_ns", "kernels took", UM_COLUMN_NS, UM_RECORDED_KERNELS, MEMBER(R, all.work.ns)},
	{"copy_h2d_bytes", "copied to the device by the program", UM_COLUMN_BYTES, UM_RECORDED_COPIES,
	 MEMBER(R, copies[UM_DIR_H2D])},
	{"copy_d2h_bytes", "copied to the host by the program", UM_COLUMN_BYTES, UM_RECORDED_COPIES,
	 MEMBER(R, copies[UM_DIR_D2H])},
	{"copy_d2d_bytes", "copied on devices by the program", UM_COLUMN_BYTES, UM_RECORDED_COPIES,
	 MEMBER(R, copies[UM_DIR_D2D])},
	{"iterations", "iterations", UM_COLUMN_COUNT, 0, MEMBER(R, iterations.n)},
	{"iterations_by", "iterations found by", UM_COLUMN_TEXT, .value = iterations_by},
	{"iteration_median_ns", "an iteration (median)", UM_COLUMN_NS, 0, MEMBER(R, median_ns), WHERE(R, iterations.n)},
	{"iteration_mad_ns", "their spread (MAD)", UM_COLUMN_NS, 0, MEMBER(R, mad_ns), WHERE(R, iterations.n)},
	{"processes", "processes", UM_COLUMN_COUNT, 0, MEMBER(R, processes.n)},
	{"duration_ns", "from first to last activity", UM_COLUMN_NS, .value = duration},
	{"prefetch_wait_ns", "devices idle for a prefetch", UM_COLUMN_NS, UM_RECORDED_WAITS,
	 MEMBER(R, all.work.wait_ns)},
};
#undef R

static size_t one_row(const struct um_findings *f)
{
	return f->report != NULL;
}

static void find_summary(struct um_table_row *row)
{
	row->at = row->f->report;
}

const struct um_table um_table_summary = {TABLE("summary", "sums over the file", summary_columns), .single = 1,
					  .count = one_row, .find = find_summary};

/* --- causes: a row for each way and cause that something moved for ------------------------------------------------ */

static size_t cause_of(const struct um_table_row *row)
{
	return (size_t)((const struct um_report_moves *)row->at - row->f->report->all.moves[0]);
}

static struct um_value direction(const struct um_table_row *row)
{
	static const char *const names[] = {"other", "to device", "to host", "between devices"};

	return um_table_text(names[cause_of(row) / UM_CAUSES]);
}

static struct um_value cause(const struct um_table_row *row)
{
	static const char *const names[] = {"unknown",	   "prefetch", "demand",
					    "speculative", "eviction", "access counters"};

	return um_table_text(names[cause_of(row) % UM_CAUSES]);
}

#define M struct um_report_moves
static const struct um_column cause_columns[] = {
	{"direction", "direction", UM_COLUMN_TEXT, .value = direction},
	{"cause", "cause", UM_COLUMN_TEXT, .value = cause},
	{"bytes", "moved", UM_COLUMN_BYTES, 0, MEMBER(M, bytes)},
	{"migrations", "migrations", UM_COLUMN_COUNT, 0, MEMBER(M, n)},
	{"copy_ns", "copying", UM_COLUMN_NS, 0, MEMBER(M, ns)},
};
#undef M

static size_t cause_rows(const struct um_findings *f)
{
	size_t n = 0;

	for (int k = 0; k < (UM_DIR_D2D + 1) * UM_CAUSES; k++)
		n += f->report->all.moves[k / UM_CAUSES][k % UM_CAUSES].n != 0;
	return n;
}

static void find_cause(struct um_table_row *row)
{
	const struct um_report_moves *m = row->f->report->all.moves[0];
	size_t left = row->i;

	while (!m->n || left--)
		m++;
	row->at = m;
}

const struct um_table um_table_causes = {TABLE("causes", "migrations by direction and cause", cause_columns),
					 .count = cause_rows, .find = find_cause};

/* --- iterations --------------------------------------------------------------------------------------------------- */

static struct um_value mark(const struct um_table_row *row)
{
	static const char *const names[] = {NULL, "cold", "odd", "unfinished"};

	return um_table_text(names[row->iteration->mark]);
}

static struct um_value begin(const struct um_table_row *row)
{
	const struct um_report_iteration *it = row->iteration;

	return (struct um_value){.number = it->has_gpu ? it->gpu_begin : it->begin};
}

#define I struct um_report_iteration
#define MOVED(key, title, ...)                                                                                         \
	{                                                                                                              \
		key, title, UM_COLUMN_BYTES, UM_RECORDED_MIGRATIONS, MOVES(I, sums, __VA_ARGS__)                       \
	}
static const struct um_column iteration_columns[] = {
	FILE_COLUMN("file"),
	PID_COLUMN("pid"),
	ITERATION_COLUMN("n"),
	{"name", "name", UM_COLUMN_TEXT, 0, MEMBER(I, name)},
	{"mark", "mark", UM_COLUMN_TEXT, .value = mark},
	{"ns", "took", UM_COLUMN_NS, 0, MEMBER(I, ns)},
	{"begin_ns", "begin", UM_COLUMN_AT, .value = begin},
	{"kernels", "kernels", UM_COLUMN_COUNT, UM_RECORDED_KERNELS, MEMBER(I, sums.work.launches)},
	{"kernel_ns", "kernels took", UM_COLUMN_NS, UM_RECORDED_KERNELS, MEMBER(I, sums.work.ns)},
	{"gpu_page_faults", "faults", UM_COLUMN_COUNT, UM_RECORDED_GPU_FAULTS, MEMBER(I, sums.work.faults)},
	{"fault_ns", "faulting", UM_COLUMN_NS, UM_RECORDED_SERVING, MEMBER(I, sums.work.fault_ns)},
	{"cpu_page_faults", "CPU faults", UM_COLUMN_COUNT, UM_RECORDED_CPU_FAULTS, MEMBER(I, sums.cpu_faults)},
	MOVED("um_h2d_bytes", "in", UM_DIR_H2D, 0, UM_CAUSES),
	MOVED("um_h2d_demand_bytes", "in, demand", UM_DIR_H2D, UM_CAUSE_DEMAND, 2),
	MOVED("um_h2d_prefetch_bytes", "in, prefetch", UM_DIR_H2D, UM_CAUSE_PREFETCH, 1),
	MOVED("um_d2h_bytes", "out", UM_DIR_D2H, 0, UM_CAUSES),
	MOVED("um_d2h_eviction_bytes", "out, eviction", UM_DIR_D2H, UM_CAUSE_EVICTION, 1),
	MOVED("um_d2h_prefetch_bytes", "out, prefetch", UM_DIR_D2H, UM_CAUSE_PREFETCH, 1),
	{"prefetch_wait_ns", "waiting for prefetches", UM_COLUMN_NS, UM_RECORDED_WAITS, MEMBER(I, sums.work.wait_ns)},
};
#undef MOVED
#undef I

static void find_iteration(struct um_table_row *row)
{
	row->iteration = row->at;
}

const struct um_table um_table_iterations = {
	TABLE("iterations", "time, faults and migrations of each iteration", iteration_columns), LIST(iterations),
	.find = find_iteration};

/* --- ops, and ops in iterations ----------------------------------------------------------------------------------- */

#define WORK(type, key, title, kind, counts, member)                                                                   \
	{                                                                                                              \
		key, title, kind, counts, MEMBER(type, work.member)                                                    \
	}
#define WORK_COLUMNS(type)                                                                                             \
	WORK(type, "launches", "launches", UM_COLUMN_COUNT, UM_RECORDED_KERNELS, launches),                            \
		WORK(type, "ns", "took", UM_COLUMN_NS, UM_RECORDED_KERNELS, ns),                                       \
		WORK(type, "gpu_page_faults", "faults", UM_COLUMN_COUNT, UM_RECORDED_GPU_FAULTS, faults),              \
		WORK(type, "fault_ns", "faulting", UM_COLUMN_NS, UM_RECORDED_SERVING, fault_ns),                       \
		WORK(type, "um_h2d_bytes", "migrated by its faults", UM_COLUMN_BYTES, UM_RECORDED_MIGRATIONS,          \
		     h2d_bytes),                                                                                       \
		WORK(type, "um_d2h_bytes", "evicted for them", UM_COLUMN_BYTES, UM_RECORDED_SERVING, d2h_bytes),       \
		WORK(type, "prefetch_wait_ns", "waiting for prefetches", UM_COLUMN_NS, UM_RECORDED_WAITS, wait_ns)

static const struct um_column op_columns[] = {
	{"name", "name", UM_COLUMN_TEXT, 0, MEMBER(struct um_report_op, name)},
	WORK_COLUMNS(struct um_report_op),
};
static const struct um_column cell_columns[] = {
	FILE_COLUMN("file"),
	{"name", "name", UM_COLUMN_TEXT, 0, OP(struct um_report_cell, op)},
	PID_COLUMN("pid"),
	ITERATION_COLUMN("n"),
	WORK_COLUMNS(struct um_report_cell),
};

const struct um_table um_table_ops = {TABLE("ops", "kernels by name, longest fault time first", op_columns), LIST(ops),
				      ORDER(by_cost)};
const struct um_table um_table_op_iterations = {TABLE("op-iterations", "kernels by name and iteration", cell_columns),
						LIST(cells), ITERATION(struct um_report_cell, iteration)};

/* --- iterations of several processes, side by side ---------------------------------------------------------------- */

static struct um_value faulting(const struct um_findings *f, const struct um_report_iteration *it)
{
	return it ? um_table_if(f, UM_RECORDED_SERVING, um_table_file(f, f->report->processes.at[it->process].process),
				it->sums.work.fault_ns)
		  : um_table_none();
}

static struct um_value slowest_faulting(const struct um_table_row *row)
{
	return faulting(row->f, row->side.slowest);
}

static struct um_value fastest_faulting(const struct um_table_row *row)
{
	return faulting(row->f, row->side.fastest);
}

static const struct um_column side_columns[] = {
	FILE_COLUMN("slowest in"),
	PID_COLUMN("slowest pid"),
	{"n", "n", UM_COLUMN_COUNT, 0, MEMBER(struct um_table_row, i)},
	{"processes", "processes", UM_COLUMN_COUNT, 0, MEMBER(struct um_table_row, side.n)},
	{"slowest_ns", "slowest", UM_COLUMN_NS, 0, MEMBER(struct um_table_row, side.slowest_ns),
	 WHERE(struct um_table_row, side.n)},
	{"fastest_ns", "fastest", UM_COLUMN_NS, 0, MEMBER(struct um_table_row, side.fastest_ns),
	 WHERE(struct um_table_row, side.n)},
	{"apart_ns", "apart", UM_COLUMN_NS, 0, MEMBER(struct um_table_row, side.apart_ns),
	 WHERE(struct um_table_row, side.n)},
	{"slowest_fault_ns", "slowest, faulting", UM_COLUMN_NS, .value = slowest_faulting},
	{"fastest_fault_ns", "fastest, faulting", UM_COLUMN_NS, .value = fastest_faulting},
};

/* The largest number of iterations of a process; 0 if only one process has any. */
static size_t side_rows(const struct um_findings *f)
{
	const struct um_report *r = f->report;
	size_t most = 0, n = 0;

	for (size_t p = 0; p < r->processes.n; p++) {
		size_t has = r->processes.at[p].iterations.n;

		n += has > 0;
		most = has > most ? has : most;
	}
	return n > 1 ? most : 0;
}

static void find_side(struct um_table_row *row)
{
	const struct um_report *r = row->f->report;
	struct um_table_side *s = &row->side;

	for (size_t p = 0; p < r->processes.n; p++) {
		const struct um_report_process *process = &r->processes.at[p];
		const struct um_report_iteration *it;

		if (row->i >= process->iterations.n)
			continue;
		it = &r->iterations.at[process->iterations.at[row->i]];
		if (it->mark == UM_MARK_UNFINISHED)
			continue;
		s->n++;
		if (!s->slowest || it->ns > s->slowest->ns)
			s->slowest = it;
		if (!s->fastest || it->ns < s->fastest->ns)
			s->fastest = it;
	}
	row->at = row;
	row->iteration = s->slowest;
	if (!s->n)
		return;
	s->slowest_ns = s->slowest->ns;
	s->fastest_ns = s->fastest->ns;
	s->apart_ns = s->slowest_ns - s->fastest_ns;
}

const struct um_table um_table_sides = {
	TABLE("side-by-side", "iterations of several processes by number: slowest and fastest", side_columns),
	.count = side_rows, .find = find_side};

/* --- ranges ------------------------------------------------------------------------------------------------------- */

#define R struct um_report_range
static const struct um_column range_columns[] = {
	{"name", "name", UM_COLUMN_TEXT, 0, MEMBER(R, name)},
	{"domain", "domain", UM_COLUMN_TEXT, 0, MEMBER(R, domain)},
	{"ranges", "ranges", UM_COLUMN_COUNT, 0, MEMBER(R, n)},
	{"total_ns", "together", UM_COLUMN_NS, 0, MEMBER(R, ns)},
	{"unfinished", "unfinished", UM_COLUMN_COUNT, 0, MEMBER(R, unfinished)},
};
#undef R

const struct um_table um_table_ranges = {TABLE("ranges", "names of NVTX ranges, for --iteration", range_columns),
					 LIST(ranges)};

/* --- processes ---------------------------------------------------------------------------------------------------- */

static struct um_value process_name(const struct um_table_row *row)
{
	const struct um_capture_process *known = um_table_process(row->f, row->process->process);

	return um_table_text(known ? known->name : NULL);
}

static int repeats(const struct um_table_row *row)
{
	return row->process->iterations.n && row->process->found;
}

static struct um_value repetition_kernels(const struct um_table_row *row)
{
	return um_table_number(row->process->found->kernels);
}

static struct um_value repetition_percent(const struct um_table_row *row)
{
	return um_table_number((uint64_t)(100 * row->process->found->covered));
}

static struct um_value repetition_confidence(const struct um_table_row *row)
{
	return um_table_text(um_period_trust_name(row->process->found->trust));
}

#define P struct um_report_process
static const struct um_column process_columns[] = {
	FILE_COLUMN("file"),
	PID_COLUMN("pid"),
	{"name", "name", UM_COLUMN_TEXT, .value = process_name},
	{"kernels", "kernels", UM_COLUMN_COUNT, UM_RECORDED_KERNELS, MEMBER(P, kernels)},
	{"iterations", "iterations", UM_COLUMN_COUNT, 0, MEMBER(P, iterations.n)},
	{"iteration_median_ns", "median", UM_COLUMN_NS, 0, MEMBER(P, median_ns), WHERE(P, iterations.n)},
	{"iteration_mad_ns", "MAD", UM_COLUMN_NS, 0, MEMBER(P, mad_ns), WHERE(P, iterations.n)},
	{"managed_allocations", "managed allocations", UM_COLUMN_COUNT, UM_RECORDED_ALLOCATIONS,
	 MEMBER(P, managed_allocs)},
	{"managed_peak_bytes", "managed at most", UM_COLUMN_BYTES, UM_RECORDED_ALLOCATIONS,
	 MEMBER(P, managed_peak_bytes)},
	{"iterations_by", "known by", UM_COLUMN_TEXT, 0, MEMBER(P, iterations_by)},
	{"repetition_kernels", "kernels per repetition", UM_COLUMN_COUNT, .applies = repeats,
	 .value = repetition_kernels},
	{"repetition_percent", "% of kernel time", UM_COLUMN_COUNT, .applies = repeats, .value = repetition_percent},
	{"repetition_confidence", "confidence", UM_COLUMN_TEXT, .applies = repeats, .value = repetition_confidence},
};
#undef P

static void find_process(struct um_table_row *row)
{
	row->process = row->at;
}

const struct um_table um_table_processes = {TABLE("processes", "processes", process_columns), LIST(processes),
					    .find = find_process};
