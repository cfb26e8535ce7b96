/* SPDX-License-Identifier: Apache-2.0
 *
 * tables_ranks.c - processes of one run compared: how much slower each is than the fastest, and why
 *
 * Figures are means over the finished iterations of a process, without those of its cold start. Processes that wait for
 * each other in collectives take equally long: they are compared by their own time, without what only collectives took.
 */
#include "report/tables_rows.h"

#define LEAST_SHARE 100 /* less than this part of an iteration slower is not explained */

static const struct um_report_process *fastest(const struct um_table_row *row)
{
	const struct um_report *r = row->f->report;

	return &r->processes.at[r->by_pace.at[r->by_pace.n - 1]];
}

static uint64_t mean(const struct um_report_process *p, uint64_t sum)
{
	return sum / p->steady;
}

static const struct um_capture_process *known(const struct um_table_row *row, const struct um_report_process *p)
{
	return um_table_process(row->f, p->process);
}

static struct um_value rank(const struct um_table_row *row)
{
	const struct um_capture_process *p = known(row, row->process);

	return p && p->rank.is ? um_table_number(p->rank.rank) : um_table_none();
}

static struct um_value local_rank(const struct um_table_row *row)
{
	const struct um_capture_process *p = known(row, row->process);

	return p && p->rank.is ? um_table_number(p->rank.local_rank) : um_table_none();
}

static struct um_value host(const struct um_table_row *row)
{
	const struct um_capture_process *p = known(row, row->process);

	return um_table_text(p && *p->rank.host ? p->rank.host : NULL);
}

static uint64_t mean_ns(const struct um_report_process *p)
{
	return mean(p, p->steady_ns);
}

static struct um_value iteration(const struct um_table_row *row)
{
	return um_table_number(mean_ns(row->process));
}

static uint64_t own_ns(const struct um_report_process *p)
{
	return mean(p, p->steady_ns - p->collectives.alone_ns);
}

/* Compared time. */
static uint64_t pace_ns(const struct um_table_row *row, const struct um_report_process *p)
{
	return row->f->report->by_own ? own_ns(p) : mean_ns(p);
}

static struct um_value own(const struct um_table_row *row)
{
	return row->process->collectives.ns ? um_table_number(own_ns(row->process)) : um_table_none();
}

static struct um_value collectives(const struct um_table_row *row)
{
	const struct um_report_process *p = row->process;

	return p->collectives.ns ? um_table_number(mean(p, p->collectives.alone_ns)) : um_table_none();
}

static uint64_t slower_by(const struct um_table_row *row)
{
	return pace_ns(row, row->process) - pace_ns(row, fastest(row));
}

static struct um_value slower(const struct um_table_row *row)
{
	return um_table_number(slower_by(row));
}

/* Negative: it is faster than the mean of all. */
static struct um_value above_mean(const struct um_table_row *row)
{
	const struct um_report *r = row->f->report;
	double all = 0;

	for (size_t i = 0; i < r->by_pace.n; i++)
		all += (double)pace_ns(row, &r->processes.at[r->by_pace.at[i]]);
	return (struct um_value){.number = (int64_t)((double)pace_ns(row, row->process) - all / (double)r->by_pace.n)};
}

static struct um_value percent(const struct um_table_row *row)
{
	uint64_t least = pace_ns(row, fastest(row));

	return least ? um_table_number((uint64_t)(100 * (double)slower_by(row) / (double)least + 0.5))
		     : um_table_none();
}

/* A mean over kernels, if their kind was recorded. */
static struct um_value of_work(const struct um_table_row *row, enum um_recorded what, uint64_t sum)
{
	return um_table_if(row->f, what, um_table_file(row->f, row->process->process), mean(row->process, sum));
}

static struct um_value kernels(const struct um_table_row *row)
{
	return of_work(row, UM_RECORDED_KERNELS, row->process->work.ns);
}

static struct um_value faulting(const struct um_table_row *row)
{
	return of_work(row, UM_RECORDED_SERVING, row->process->work.fault_ns);
}

static struct um_value faults(const struct um_table_row *row)
{
	return of_work(row, UM_RECORDED_GPU_FAULTS, row->process->work.faults);
}

static struct um_value waiting(const struct um_table_row *row)
{
	return of_work(row, UM_RECORDED_WAITS, row->process->work.wait_ns);
}

static uint64_t above(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

static uint64_t computing_ns(const struct um_report_process *p)
{
	return mean(p, p->work.ns - p->collectives.ns);
}

/* Time in which no kernel ran: waits for other ranks, for prefetches, for the CPU. */
static uint64_t idle_ns(const struct um_report_process *p)
{
	return above(own_ns(p), computing_ns(p));
}

static struct um_value between(const struct um_table_row *row)
{
	return um_table_if(row->f, UM_RECORDED_KERNELS, um_table_file(row->f, row->process->process),
			   idle_ns(row->process));
}

/* Of a run log: what the iteration takes longer than its operations with unlimited memory. */
static struct um_value stalled(const struct um_table_row *row)
{
	const struct um_capture_process *p = known(row, row->process);

	return p && p->in_core_ns ? um_table_number(above(mean_ns(row->process), p->in_core_ns)) : um_table_none();
}

static struct um_value prefetched(const struct um_table_row *row)
{
	const struct um_capture_process *p = known(row, row->process);

	return row->f->capture->library.is && p ? um_table_number(p->prefetch_bytes) : um_table_none();
}

static struct um_value evicted(const struct um_table_row *row)
{
	const struct um_capture_process *p = known(row, row->process);

	return row->f->capture->library.is && p ? um_table_number(p->evict_bytes) : um_table_none();
}

/* By how much each kind of time is more than that of the fastest process: the largest one is the reason. */
struct part {
	const char *reason;
	uint64_t ns;
};

static const char *largest(const struct part *part, size_t n)
{
	const struct part *most = part;

	for (size_t i = 1; i < n; i++)
		most = part[i].ns > most->ns ? &part[i] : most;
	return most->ns ? most->reason : NULL;
}

static const char *by_kernels(const struct um_report_process *p, const struct um_report_process *q)
{
	uint64_t wait = mean(p, p->work.wait_ns), least_wait = mean(q, q->work.wait_ns);
	const struct part parts[] = {
		{"page faults", above(mean(p, p->work.fault_ns), mean(q, q->work.fault_ns))},
		{"longer kernels", above(above(computing_ns(p), mean(p, p->work.fault_ns)),
					 above(computing_ns(q), mean(q, q->work.fault_ns)))},
		{"waits for prefetches", above(wait, least_wait)},
		{"waits between kernels", above(above(idle_ns(p), wait), above(idle_ns(q), least_wait))},
	};

	return largest(parts, sizeof parts / sizeof *parts);
}

static const char *by_plan(const struct um_table_row *row, const struct um_report_process *q)
{
	const struct um_capture_process *a = known(row, row->process), *b = known(row, q);
	const struct part parts[] = {
		{"longer operations", a && b ? above(a->in_core_ns, b->in_core_ns) : 0},
		{"longer stalls",
		 a && b ? above(above(mean_ns(row->process), a->in_core_ns), above(mean_ns(q), b->in_core_ns)) : 0},
	};

	return a && b && a->in_core_ns && b->in_core_ns ? largest(parts, sizeof parts / sizeof *parts) : NULL;
}

static struct um_value reason(const struct um_table_row *row)
{
	const struct um_report_process *q = fastest(row);

	if (slower_by(row) <= mean_ns(q) / LEAST_SHARE)
		return um_table_none();
	return um_table_text(q->work.launches ? by_kernels(row->process, q) : by_plan(row, q));
}

static const struct um_column columns[] = {
	FILE_COLUMN("file"),
	{"rank", "rank", UM_COLUMN_COUNT, .value = rank},
	{"host", "host", UM_COLUMN_TEXT, .value = host},
	{"local_rank", "local", UM_COLUMN_COUNT, .value = local_rank},
	PID_COLUMN("pid"),
	{"iterations", "iterations", UM_COLUMN_COUNT, 0, MEMBER(struct um_report_process, steady)},
	{"iteration_ns", "iteration", UM_COLUMN_NS, .value = iteration},
	{"collective_ns", "in collectives", UM_COLUMN_NS, .value = collectives},
	{"own_ns", "own", UM_COLUMN_NS, .value = own},
	{"slower_ns", "slower", UM_COLUMN_NS, .value = slower},
	{"above_mean_ns", "above mean", UM_COLUMN_NS, .value = above_mean},
	{"slower_percent", "%", UM_COLUMN_COUNT, .value = percent},
	{"reason", "mostly by", UM_COLUMN_TEXT, .value = reason},
	{"kernel_ns", "kernels", UM_COLUMN_NS, UM_RECORDED_KERNELS, .value = kernels},
	{"fault_ns", "faulting", UM_COLUMN_NS, UM_RECORDED_SERVING, .value = faulting},
	{"gpu_page_faults", "faults", UM_COLUMN_COUNT, UM_RECORDED_GPU_FAULTS, .value = faults},
	{"prefetch_wait_ns", "waiting for prefetches", UM_COLUMN_NS, UM_RECORDED_WAITS, .value = waiting},
	{"idle_ns", "between kernels", UM_COLUMN_NS, UM_RECORDED_KERNELS, .value = between},
	{"stall_ns", "stalled", UM_COLUMN_NS, .value = stalled},
	{"prefetch_bytes", "prefetched", UM_COLUMN_BYTES, .value = prefetched},
	{"evict_bytes", "evicted", UM_COLUMN_BYTES, .value = evicted},
};

static size_t count(const struct um_findings *f)
{
	return f->report->by_pace.n > 1 ? f->report->by_pace.n : 0;
}

static void find(struct um_table_row *row)
{
	const struct um_report *r = row->f->report;

	row->at = row->process = &r->processes.at[r->by_pace.at[row->i]];
}

const struct um_table um_table_ranks = {
	TABLE("ranks",
	      "processes compared by the mean time of an iteration, its own if all have collectives, the slowest first",
	      columns),
	.count = count, .find = find};
