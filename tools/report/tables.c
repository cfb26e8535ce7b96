/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables_causes.h"
#include "report/tables_library.h"
#include "report/tables_sides.h"
#include "report/tables_tensors.h"

#define COUNT_OF(a) ((unsigned)(sizeof(a) / sizeof *(a)))

static struct um_value number(uint64_t n)
{
	return (struct um_value){.number = n < INT64_MAX ? (int64_t)n : INT64_MAX};
}

static struct um_value at(int64_t ns)
{
	return (struct um_value){.number = ns};
}

static struct um_value text(const char *s)
{
	return (struct um_value){.none = s ? UM_VALUE_THERE : UM_VALUE_NONE, .text = s};
}

static struct um_value none(void)
{
	return (struct um_value){.none = UM_VALUE_NONE};
}

/* The columns of iterations from um_h2d_bytes to um_d2h_prefetch_bytes. */
static uint64_t moved_column(const struct um_report_sums *s, unsigned column)
{
	const struct um_report_moves *in = s->moves[UM_DIR_H2D], *out = s->moves[UM_DIR_D2H];
	const uint64_t values[] = {
		um_report_moved(s, UM_DIR_H2D), in[UM_CAUSE_DEMAND].bytes + in[UM_CAUSE_SPECULATIVE].bytes,
		in[UM_CAUSE_PREFETCH].bytes,	um_report_moved(s, UM_DIR_D2H),
		out[UM_CAUSE_EVICTION].bytes,	out[UM_CAUSE_PREFETCH].bytes};

	return values[column];
}

static const struct um_capture_process *process_found(const struct um_findings *f, uint64_t process)
{
	for (size_t i = 0; i < f->capture->processes.n; i++)
		if (f->capture->processes.at[i].process == process)
			return &f->capture->processes.at[i];
	return NULL;
}

struct um_value um_table_pid(const struct um_findings *f, uint64_t process)
{
	const struct um_capture_process *p = process_found(f, process);

	return number(p ? p->pid : um_capture_pid(process));
}

struct um_value um_table_file(const struct um_findings *f, uint64_t process)
{
	const struct um_capture_process *p = process_found(f, process);

	return text(p ? p->file : NULL);
}

static uint64_t process_of(const struct um_findings *f, uint32_t iteration)
{
	return f->report->processes.at[f->report->iterations.at[iteration].process].process;
}

struct um_value um_table_iteration_pid(const struct um_findings *f, uint32_t iteration)
{
	return iteration == UM_REPORT_NONE ? none() : um_table_pid(f, process_of(f, iteration));
}

struct um_value um_table_iteration_file(const struct um_findings *f, uint32_t iteration)
{
	return iteration == UM_REPORT_NONE ? none() : um_table_file(f, process_of(f, iteration));
}

int um_column_shown(const struct um_findings *f, const struct um_column *column)
{
	return f->capture->files || strcmp(column->key, "file") != 0;
}

/* --- summary ------------------------------------------------------------------------------------------------------ */

static const struct um_column summary_columns[] = {
	{"gpu_page_faults", "GPU page faults", UM_COLUMN_COUNT},
	{"cpu_page_faults", "CPU page faults", UM_COLUMN_COUNT},
	{"um_h2d_bytes", "migrated to the device", UM_COLUMN_BYTES},
	{"um_d2h_bytes", "migrated to the host", UM_COLUMN_BYTES},
	{"um_d2d_bytes", "migrated between devices", UM_COLUMN_BYTES},
	{"gpu_fault_groups", "groups of GPU page faults", UM_COLUMN_COUNT},
	{"fault_ns", "kernels while faults were served", UM_COLUMN_NS},
	{"kernels", "kernels", UM_COLUMN_COUNT},
	{"kernel_ns", "kernels took", UM_COLUMN_NS},
	{"copy_h2d_bytes", "copied to the device by the program", UM_COLUMN_BYTES},
	{"copy_d2h_bytes", "copied to the host by the program", UM_COLUMN_BYTES},
	{"copy_d2d_bytes", "copied on devices by the program", UM_COLUMN_BYTES},
	{"iterations", "iterations", UM_COLUMN_COUNT},
	{"iterations_by", "iterations are known by", UM_COLUMN_TEXT},
	{"iteration_median_ns", "an iteration (median)", UM_COLUMN_NS},
	{"iteration_mad_ns", "their spread (MAD)", UM_COLUMN_NS},
	{"processes", "processes", UM_COLUMN_COUNT},
	{"duration_ns", "from the first to the last of it", UM_COLUMN_NS},
	{"prefetch_wait_ns", "devices that stood still for a prefetch", UM_COLUMN_NS},
};

static size_t one_row(const struct um_findings *f)
{
	(void)f;
	return 1;
}

static struct um_value summary_cell(const struct um_findings *f, size_t row, unsigned column)
{
	static const enum um_recorded made_of[COUNT_OF(summary_columns)] = {
		UM_RECORDED_GPU_FAULTS,	 UM_RECORDED_CPU_FAULTS, UM_RECORDED_MIGRATIONS, UM_RECORDED_MIGRATIONS,
		UM_RECORDED_MIGRATIONS,	 UM_RECORDED_GPU_FAULTS, UM_RECORDED_SERVING,	 UM_RECORDED_KERNELS,
		UM_RECORDED_KERNELS,	 UM_RECORDED_COPIES,	 UM_RECORDED_COPIES,	 UM_RECORDED_COPIES,
		[18] = UM_RECORDED_WAITS};
	const struct um_report *r = f->report;
	const uint64_t values[COUNT_OF(summary_columns)] = {
		r->all.work.faults,
		r->all.cpu_faults,
		um_report_moved(&r->all, UM_DIR_H2D),
		um_report_moved(&r->all, UM_DIR_D2H),
		um_report_moved(&r->all, UM_DIR_D2D),
		r->all.fault_groups,
		r->all.work.fault_ns,
		r->all.work.launches,
		r->all.work.ns,
		r->copies[UM_DIR_H2D],
		r->copies[UM_DIR_D2H],
		r->copies[UM_DIR_D2D],
		r->iterations.n,
		0,
		r->median_ns,
		r->mad_ns,
		r->processes.n,
		um_report_longest(r),
		r->all.work.wait_ns,
	};

	(void)row;
	if (column == 13)
		return text(um_report_iterations_by(r));
	if ((column == 14 || column == 15) && !r->iterations.n)
		return none();
	return um_table_if(f, made_of[column], none(), values[column]);
}

/* --- causes: a row for each way and cause that something moved for ------------------------------------------------ */

static const char *const way_names[] = {"other", "to device", "to host", "between devices"};
static const char *const cause_names[] = {"unknown",	 "prefetch", "demand",
					  "speculative", "eviction", "access counters"};

static const struct um_column cause_columns[] = {
	{"direction", "direction", UM_COLUMN_TEXT}, {"cause", "cause", UM_COLUMN_TEXT},
	{"bytes", "moved", UM_COLUMN_BYTES},	    {"migrations", "migrations", UM_COLUMN_COUNT},
	{"copy_ns", "copying", UM_COLUMN_NS},
};

static size_t cause_rows(const struct um_findings *f)
{
	size_t n = 0;

	for (int k = 0; k < (UM_DIR_D2D + 1) * UM_CAUSES; k++)
		n += f->report->all.moves[k / UM_CAUSES][k % UM_CAUSES].n != 0;
	return n;
}

static struct um_value cause_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report_moves *m = NULL;
	int k = -1;

	do {
		k++;
		m = &f->report->all.moves[k / UM_CAUSES][k % UM_CAUSES];
	} while (!m->n || row--);
	switch (column) {
	case 0:
		return text(way_names[k / UM_CAUSES]);
	case 1:
		return text(cause_names[k % UM_CAUSES]);
	case 2:
		return number(m->bytes);
	case 3:
		return number(m->n);
	default:
		return number(m->ns);
	}
}

/* --- iterations --------------------------------------------------------------------------------------------------- */

static const char *const mark_names[] = {NULL, "cold", "odd", "unfinished"};

static const struct um_column iteration_columns[] = {
	{"file", "file", UM_COLUMN_TEXT},
	{"pid", "pid", UM_COLUMN_COUNT},
	{"n", "n", UM_COLUMN_COUNT},
	{"name", "name", UM_COLUMN_TEXT},
	{"mark", "mark", UM_COLUMN_TEXT},
	{"ns", "took", UM_COLUMN_NS},
	{"begin_ns", "begin", UM_COLUMN_AT},
	{"kernels", "kernels", UM_COLUMN_COUNT},
	{"kernel_ns", "kernels took", UM_COLUMN_NS},
	{"gpu_page_faults", "faults", UM_COLUMN_COUNT},
	{"fault_ns", "faulting", UM_COLUMN_NS},
	{"cpu_page_faults", "CPU faults", UM_COLUMN_COUNT},
	{"um_h2d_bytes", "in", UM_COLUMN_BYTES},
	{"um_h2d_demand_bytes", "in, demand", UM_COLUMN_BYTES},
	{"um_h2d_prefetch_bytes", "in, prefetch", UM_COLUMN_BYTES},
	{"um_d2h_bytes", "out", UM_COLUMN_BYTES},
	{"um_d2h_eviction_bytes", "out, eviction", UM_COLUMN_BYTES},
	{"um_d2h_prefetch_bytes", "out, prefetch", UM_COLUMN_BYTES},
	{"prefetch_wait_ns", "waiting for prefetches", UM_COLUMN_NS},
};

static size_t iteration_rows(const struct um_findings *f)
{
	return f->report->iterations.n;
}

static struct um_value iteration_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report_iteration *it = &f->report->iterations.at[row];
	const struct um_report_sums *s = &it->sums;
	struct um_value file = um_table_iteration_file(f, (uint32_t)row);

	switch (column) {
	case 0:
		return file;
	case 1:
		return um_table_iteration_pid(f, (uint32_t)row);
	case 2:
		return number(it->n);
	case 3:
		return text(it->name);
	case 4:
		return text(mark_names[it->mark]);
	case 5:
		return number(it->ns);
	case 6:
		return at(it->has_gpu ? it->gpu_begin : it->begin);
	case 7:
		return um_table_if(f, UM_RECORDED_KERNELS, file, s->work.launches);
	case 8:
		return um_table_if(f, UM_RECORDED_KERNELS, file, s->work.ns);
	case 9:
		return um_table_if(f, UM_RECORDED_GPU_FAULTS, file, s->work.faults);
	case 10:
		return um_table_if(f, UM_RECORDED_SERVING, file, s->work.fault_ns);
	case 11:
		return um_table_if(f, UM_RECORDED_CPU_FAULTS, file, s->cpu_faults);
	case 18:
		return um_table_if(f, UM_RECORDED_WAITS, file, s->work.wait_ns);
	default:
		return um_table_if(f, UM_RECORDED_MIGRATIONS, file, moved_column(s, column - 12));
	}
}

/* --- ops, and ops in iterations ----------------------------------------------------------------------------------- */

#define WORK_COLUMNS                                                                                                   \
	{"launches", "launches", UM_COLUMN_COUNT}, {"ns", "took", UM_COLUMN_NS},                                       \
		{"gpu_page_faults", "faults", UM_COLUMN_COUNT}, {"fault_ns", "faulting", UM_COLUMN_NS},                \
		{"um_h2d_bytes", "brought by its faults", UM_COLUMN_BYTES},                                            \
		{"um_d2h_bytes", "evicted for them", UM_COLUMN_BYTES},                                                 \
	{                                                                                                              \
		"prefetch_wait_ns", "waiting for prefetches", UM_COLUMN_NS                                             \
	}

static const struct um_column op_columns[] = {{"name", "name", UM_COLUMN_TEXT}, WORK_COLUMNS};
static const struct um_column cell_columns[] = {{"file", "file", UM_COLUMN_TEXT},
						{"name", "name", UM_COLUMN_TEXT},
						{"pid", "pid", UM_COLUMN_COUNT},
						{"n", "n", UM_COLUMN_COUNT},
						WORK_COLUMNS};

static struct um_value work_cell(const struct um_findings *f, const struct um_report_work *w, struct um_value file,
				 unsigned column)
{
	static const enum um_recorded made_of[] = {UM_RECORDED_KERNELS, UM_RECORDED_KERNELS,	UM_RECORDED_GPU_FAULTS,
						   UM_RECORDED_SERVING, UM_RECORDED_MIGRATIONS, UM_RECORDED_SERVING,
						   UM_RECORDED_WAITS};
	const uint64_t values[] = {w->launches, w->ns, w->faults, w->fault_ns, w->h2d_bytes, w->d2h_bytes, w->wait_ns};

	return um_table_if(f, made_of[column], file, values[column]);
}

static size_t op_rows(const struct um_findings *f)
{
	return f->report->by_cost.n;
}

static struct um_value op_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report_op *op = &f->report->ops.at[f->report->by_cost.at[row]];

	return column ? work_cell(f, &op->work, none(), column - 1) : text(op->name);
}

static size_t cell_rows(const struct um_findings *f)
{
	return f->report->cells.n;
}

static struct um_value cell_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report_cell *c = &f->report->cells.at[row];
	const struct um_report_iteration *it =
		c->iteration == UM_REPORT_NONE ? NULL : &f->report->iterations.at[c->iteration];

	switch (column) {
	case 0:
		return um_table_iteration_file(f, c->iteration);
	case 1:
		return text(f->report->ops.at[c->op].name);
	case 2:
		return um_table_iteration_pid(f, c->iteration);
	case 3:
		return it ? number(it->n) : none();
	default:
		return work_cell(f, &c->work, um_table_iteration_file(f, c->iteration), column - 4);
	}
}

/* --- the others --------------------------------------------------------------------------------------------------- */

static const struct um_column range_columns[] = {
	{"name", "name", UM_COLUMN_TEXT},
	{"domain", "domain", UM_COLUMN_TEXT},
	{"ranges", "ranges", UM_COLUMN_COUNT},
	{"total_ns", "together", UM_COLUMN_NS},
	{"unfinished", "unfinished", UM_COLUMN_COUNT},
};

static size_t range_rows(const struct um_findings *f)
{
	return f->report->ranges.n;
}

static struct um_value range_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report_range *x = &f->report->ranges.at[row];

	switch (column) {
	case 0:
		return text(x->name);
	case 1:
		return text(x->domain);
	case 2:
		return number(x->n);
	case 3:
		return number(x->ns);
	default:
		return number(x->unfinished);
	}
}

static const struct um_column process_columns[] = {
	{"file", "file", UM_COLUMN_TEXT},
	{"pid", "pid", UM_COLUMN_COUNT},
	{"name", "name", UM_COLUMN_TEXT},
	{"kernels", "kernels", UM_COLUMN_COUNT},
	{"iterations", "iterations", UM_COLUMN_COUNT},
	{"iteration_median_ns", "median", UM_COLUMN_NS},
	{"iteration_mad_ns", "MAD", UM_COLUMN_NS},
	{"managed_allocations", "managed allocations", UM_COLUMN_COUNT},
	{"managed_peak_bytes", "managed at most", UM_COLUMN_BYTES},
	{"iterations_by", "known by", UM_COLUMN_TEXT},
	{"repetition_kernels", "repeats after kernels", UM_COLUMN_COUNT},
	{"repetition_percent", "% of kernel time", UM_COLUMN_COUNT},
	{"repetition_confidence", "confidence", UM_COLUMN_TEXT},
};

static size_t process_rows(const struct um_findings *f)
{
	return f->report->processes.n;
}

static struct um_value process_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_report_process *p = &f->report->processes.at[row];
	const struct um_capture_process *known = process_found(f, p->process);
	const struct um_iteration_spans_process *found = p->iterations.n ? p->found : NULL;

	switch (column) {
	case 0:
		return um_table_file(f, p->process);
	case 1:
		return um_table_pid(f, p->process);
	case 2:
		return text(known ? known->name : NULL);
	case 3:
		return um_table_if(f, UM_RECORDED_KERNELS, um_table_file(f, p->process), p->kernels);
	case 4:
		return number(p->iterations.n);
	case 5:
		return p->iterations.n ? number(p->median_ns) : none();
	case 6:
		return p->iterations.n ? number(p->mad_ns) : none();
	case 7:
		return um_table_if(f, UM_RECORDED_ALLOCATIONS, um_table_file(f, p->process), p->managed_allocs);
	case 8:
		return um_table_if(f, UM_RECORDED_ALLOCATIONS, um_table_file(f, p->process), p->managed_peak_bytes);
	case 9:
		return text(p->iterations_by);
	case 10:
		return found ? number(found->kernels) : none();
	case 11:
		return found ? number((uint64_t)(100 * found->covered)) : none();
	default:
		return text(found ? um_period_trust_name(found->trust) : NULL);
	}
}

static const struct um_column device_columns[] = {
	{"file", "file", UM_COLUMN_TEXT},     {"device", "device", UM_COLUMN_COUNT},
	{"name", "name", UM_COLUMN_TEXT},     {"memory_bytes", "memory", UM_COLUMN_BYTES},
	{"driver", "driver", UM_COLUMN_TEXT},
};

static size_t device_rows(const struct um_findings *f)
{
	return f->capture->devices.n;
}

static struct um_value device_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_capture_device *d = &f->capture->devices.at[row];

	switch (column) {
	case 0:
		return text(d->file);
	case 1:
		return at(d->device);
	case 2:
		return text(d->name);
	case 4:
		return text(*d->driver ? d->driver : NULL);
	default:
		return d->memory_bytes ? number(d->memory_bytes) : none();
	}
}

static const struct um_column missing_columns[] = {
	{"file", "file", UM_COLUMN_TEXT},	    {"table", "table", UM_COLUMN_TEXT},
	{"what", "what it has", UM_COLUMN_TEXT},    {"state", "because", UM_COLUMN_TEXT},
	{"option", "nsys profile", UM_COLUMN_TEXT},
};

const char *um_absence_word(enum um_absence_state state)
{
	static const char *const words[] = {"unknown", "not recorded", "none happened"};

	return words[state];
}

static size_t missing_rows(const struct um_findings *f)
{
	return f->capture->missing.n;
}

static struct um_value missing_cell(const struct um_findings *f, size_t row, unsigned column)
{
	const struct um_absence *a = &f->capture->missing.at[row];
	const char *const texts[] = {a->file, a->table, a->what, um_absence_word(a->state), a->option};

	return text(texts[column]);
}

#define TABLE(name, about, columns, single, rows, cell)                                                                \
	{                                                                                                              \
		name, about, columns, COUNT_OF(columns), single, rows, cell                                            \
	}

const struct um_table um_tables[UM_TABLES] = {
	TABLE("findings", "what costs time, and what to do", um_finding_columns, 0, um_finding_rows, um_finding_cell),
	TABLE("verdict", "how far an iteration is from what no plan can beat: with --workload", um_verdict_columns, 1,
	      um_verdict_rows, um_verdict_cell),
	TABLE("summary", "sums over the file", summary_columns, 1, one_row, summary_cell),
	TABLE("causes", "migrations by direction and cause", cause_columns, 0, cause_rows, cause_cell),
	TABLE("iterations", "what each iteration took, faulted and moved", iteration_columns, 0, iteration_rows,
	      iteration_cell),
	TABLE("side-by-side", "iterations of several processes by number: the slowest and the fastest", um_side_columns,
	      0, um_side_rows, um_side_cell),
	TABLE("ops", "kernels by name, those that faulted longest first", op_columns, 0, op_rows, op_cell),
	TABLE("op-iterations", "kernels by name and iteration", cell_columns, 0, cell_rows, cell_cell),
	TABLE("tensors", "tensors, those whose faults took longest first", um_tensor_columns, 0, um_tensor_rows,
	      um_tensor_cell),
	TABLE("tensor-iterations", "tensors by iteration", um_tensor_iteration_columns, 0, um_tensor_iteration_rows,
	      um_tensor_iteration_cell),
	TABLE("reasons", "why pages moved and kernels faulted, by tensor, kernel and iteration", um_reason_columns, 0,
	      um_reason_rows, um_reason_cell),
	TABLE("hints", "what became of hints, by kind and tensor", um_hint_columns, 0, um_hint_rows, um_hint_cell),
	TABLE("announced", "operations, as the program announced them", um_declared_ops_columns, 0,
	      um_declared_ops_rows, um_declared_ops_cell),
	TABLE("library", "what the library counted: in its own log", um_library_columns, 1, um_library_rows,
	      um_library_cell),
	TABLE("ranges", "names of NVTX ranges: what --iteration can be given", range_columns, 0, range_rows,
	      range_cell),
	TABLE("processes", "processes", process_columns, 0, process_rows, process_cell),
	TABLE("devices", "devices", device_columns, 0, device_rows, device_cell),
	TABLE("missing", "what the file does not have (-: not recorded), and what would have recorded it",
	      missing_columns, 0, missing_rows, missing_cell),
};
