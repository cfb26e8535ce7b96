/* SPDX-License-Identifier: Apache-2.0 */
#include "report/findings.h"
#include "report/findings_plan.h"
#include "report/findings_waits.h"

#include "report/report.h"

const char *um_severity_name(enum um_severity severity)
{
	static const char *const names[] = {"low", "medium", "high"};

	return names[severity];
}

void um_findings_fini(struct um_finding_list *f)
{
	for (size_t i = 0; i < f->list.n; i++) {
		free(f->list.at[i].evidence);
		free(f->list.at[i].estimate);
		free(f->list.at[i].advice);
	}
	um_vec_fini(&f->list);
	*f = (struct um_finding_list){0};
}

/* --- the steady part ---------------------------------------------------------------------------------------------- */

struct found_in {
	uint64_t steady; /* iterations */
	uint32_t group, reason; /* last of its units, numbered as in iterations */
	uint64_t cost; /* of that group: no unit */
};

struct builder {
	const struct um_report *r;
	struct um_finding_list *out;
	char *steady; /* by iteration */
	uint32_t *met, *met_reason; /* by iteration: its last group, and its last reason + 1 */
	uint32_t group;
	struct found_in *in_process; /* by process */
	uint64_t reason_iterations; /* iterations with this reason, for any tensor */
	uint64_t reason_of; /* iterations of the affected processes */
	struct um_cause_row *rows; /* of the steady part, by reason, tensor, op */
	size_t n;
	double to_device, to_host; /* ns a byte */
	int named; /* the program declares tensors */
};

static void find_steady(struct builder *b)
{
	const struct um_report *r = b->r;
	uint64_t ns = 0;

	for (size_t p = 0; p < r->processes.n; p++) {
		const struct um_report_process *q = &r->processes.at[p];
		size_t n = 0, from;

		for (size_t i = 0; i < q->iterations.n; i++)
			n += r->iterations.at[q->iterations.at[i]].mark != UM_MARK_UNFINISHED;
		from = n > 1 ? (n + 1) / 2 : 0;
		n = 0;
		for (size_t i = 0; i < q->iterations.n; i++) {
			const struct um_report_iteration *it = &r->iterations.at[q->iterations.at[i]];

			if (it->mark == UM_MARK_UNFINISHED || n++ < from)
				continue;
			b->steady[q->iterations.at[i]] = 1;
			b->in_process[p].steady++;
			b->out->iterations++;
			ns += it->ns;
		}
	}
	b->out->iteration_ns = b->out->iterations ? ns / b->out->iterations : um_report_together(r);
}

/* A prefetch is late if its kernel faults or its device is idle for it. */
static enum um_reason kind_of(const struct um_cause_row *row)
{
	return row->reason == UM_REASON_WAITED ? UM_REASON_LATE : row->reason;
}

static int order(const void *x, const void *y)
{
	const struct um_cause_row *a = x, *b = y;

	if (kind_of(a) != kind_of(b))
		return kind_of(a) < kind_of(b) ? -1 : 1;
	if (a->tensor != b->tensor)
		return a->tensor < b->tensor ? -1 : 1;
	if (a->by_cpu != b->by_cpu)
		return a->by_cpu - b->by_cpu;
	if (a->op != b->op)
		return a->op < b->op ? -1 : 1;
	return a->reason < b->reason ? -1 : a->reason > b->reason;
}

static int is_bad(enum um_reason reason)
{
	return reason != UM_REASON_PREFETCH && reason != UM_REASON_EVICTION && reason != UM_REASON_SENT &&
	       reason != UM_REASON_REFUSED;
}

/* Single CPU migrations of an iteration are part of repeated ones. */
static int join_ping_pong(struct builder *b)
{
	uint32_t most = 0;
	char *has;

	for (size_t i = 0; i < b->n; i++)
		if (b->rows[i].tensor != UM_CAUSES_NONE && b->rows[i].tensor >= most)
			most = b->rows[i].tensor + 1;
	has = calloc((size_t)most + 1, 1); /* the last one has no tensor */
	if (!has)
		return -ENOMEM;
	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < b->n; i++) {
			uint32_t t = b->rows[i].tensor < most ? b->rows[i].tensor : most;

			if (!turn)
				has[t] |= b->rows[i].reason == UM_REASON_PING_PONG;
			else if (has[t] && b->rows[i].reason == UM_REASON_CPU)
				b->rows[i].reason = UM_REASON_PING_PONG;
		}
	free(has);
	return 0;
}

/* A program that declares tensors has none there: the write-back is dead. */
static int is_free_memory(const struct builder *b, uint32_t tensor)
{
	return b->named && tensor != UM_CAUSES_NONE && !b->r->tensors.rows.at[tensor].named;
}

static int gather(struct builder *b)
{
	const struct um_causes *c = &b->r->causes;

	for (size_t i = 0; i < b->r->tensors.rows.n; i++)
		b->named |= b->r->tensors.rows.at[i].named;
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct um_cause_row *row = &c->rows.at[i];

		if (!is_bad(row->reason) || !row->n ||
		    (b->out->iterations && (row->iteration == UM_CAUSES_NONE || !b->steady[row->iteration])))
			continue;
		if (row->reason == UM_REASON_EARLY && is_free_memory(b, row->tensor))
			continue; /* it shares a block with another prefetched tensor */
		b->rows[b->n] = *row;
		if (row->reason == UM_REASON_CLEAN && is_free_memory(b, row->tensor))
			b->rows[b->n].reason = UM_REASON_DEAD;
		b->n++;
	}
	if (join_ping_pong(b))
		return -ENOMEM;
	qsort(b->rows, b->n, sizeof *b->rows, order);
	return 0;
}

/* --- one tensor and reason ---------------------------------------------------------------------------------------- */

/* The key of rows. */
static uint64_t weight(const struct um_cause_row *row)
{
	return row->ns + row->bytes / 1024 + row->faults;
}

static void add_process(struct builder *b, struct um_finding *f, uint32_t process, const struct um_cause_row *row)
{
	struct found_in *p = &b->in_process[process];

	if (p->group != b->group) {
		p->group = b->group;
		p->cost = 0;
		f->processes++;
		f->of += p->steady;
	}
	p->cost += weight(row);
	if (f->process == UM_CAUSES_NONE || p->cost > b->in_process[f->process].cost)
		f->process = process;
	if (p->reason != kind_of(row) + 1u)
		b->reason_of += p->steady;
	p->reason = kind_of(row) + 1u;
}

static void add_row(struct builder *b, struct um_finding *f, const struct um_cause_row *row)
{
	const struct um_report_iteration *it =
		row->iteration == UM_CAUSES_NONE ? NULL : &b->r->iterations.at[row->iteration];

	f->n += row->n;
	if (row->reason == UM_REASON_WAITED) {
		f->waited_ns += row->ns;
		f->waited_bytes += row->bytes;
		f->spare_ns += row->spare_ns;
		f->longest_ns = row->ns > f->longest_ns ? row->ns : f->longest_ns;
		f->earlier = row->earlier > f->earlier ? row->earlier : f->earlier;
		f->full |= row->full;
	} else {
		f->bytes += row->bytes;
		f->faults += row->faults;
		f->ns += row->ns;
	}
	if (!it)
		return;
	add_process(b, f, it->process, row);
	f->first = !f->iterations || it->n < f->first ? it->n : f->first;
	f->last = it->n > f->last ? it->n : f->last;
	f->iterations += b->met[row->iteration] != b->group;
	b->met[row->iteration] = b->group;
	b->reason_iterations += b->met_reason[row->iteration] != kind_of(row) + 1u;
	b->met_reason[row->iteration] = kind_of(row) + 1u;
}

/* Number of rows from `i` on with the same reason and tensor. */
static size_t read_group(struct builder *b, size_t i, struct um_finding *f)
{
	const struct um_cause_row *first = &b->rows[i];
	uint64_t most = 0, here = 0;
	size_t n = 0;

	*f = (struct um_finding){.reason = kind_of(first),
				 .tensor = first->tensor,
				 .op = UM_CAUSES_NONE,
				 .caller = UM_CAUSES_NONE,
				 .process = UM_CAUSES_NONE,
				 .tensors = 1};
	for (; i + n < b->n && kind_of(&b->rows[i + n]) == f->reason && b->rows[i + n].tensor == first->tensor; n++) {
		const struct um_cause_row *row = &b->rows[i + n];

		here = n && b->rows[i + n - 1].op == row->op ? here : 0;
		here += weight(row);
		if (row->op != UM_CAUSES_NONE && row->by_cpu) {
			f->caller = row->op;
		} else if (row->op != UM_CAUSES_NONE && here >= most) {
			most = here;
			f->op = row->op;
		}
		add_row(b, f, row);
	}
	return n;
}

/* ns per iteration, from the sum over all of them. */
static uint64_t saving(const struct builder *b, const struct um_finding *f)
{
	double ns = (double)f->ns, bytes = (double)f->bytes;

	switch (f->reason) {
	case UM_REASON_DEMAND:
	case UM_REASON_LATE:
	case UM_REASON_DISCARDED:
	case UM_REASON_FRESH:
	case UM_REASON_COLLAPSE:
		ns -= b->r->causes.saw_faults ? bytes * b->to_device : 0;
		break;
	case UM_REASON_EARLY:
		bytes *= b->to_device + b->to_host;
		ns = ns > bytes ? ns : bytes;
		break;
	case UM_REASON_OVERSHOOT:
		ns += bytes * b->to_device;
		break;
	case UM_REASON_DEAD:
		ns = bytes * b->to_host;
		break;
	default:
		break;
	}
	ns = ns > 0 ? ns : 0;
	ns += (double)f->spare_ns;
	ns /= f->of ? (double)f->of : 1;
	return (uint64_t)ns;
}

/* `to->of`: the iterations of all processes with the reason. */
static void add_group(struct um_finding *to, const struct um_finding *f)
{
	if (!to->tensors++) { /* the most expensive comes first */
		to->op = f->op;
		to->process = f->process;
	}
	to->processes = f->processes > to->processes ? f->processes : to->processes;
	to->reason = f->reason;
	to->bytes += f->bytes;
	to->faults += f->faults;
	to->ns += f->ns;
	to->n += f->n;
	to->waited_ns += f->waited_ns;
	to->waited_bytes += f->waited_bytes;
	to->spare_ns += f->spare_ns;
	to->longest_ns = f->longest_ns > to->longest_ns ? f->longest_ns : to->longest_ns;
	to->earlier = f->earlier > to->earlier ? f->earlier : to->earlier;
	to->full |= f->full;
	to->saving_ns +=
		f->of == to->of ? f->saving_ns : (uint64_t)((double)f->saving_ns * (double)f->of / (double)to->of);
	if (!f->iterations)
		return;
	to->first = !to->iterations || f->first < to->first ? f->first : to->first;
	to->last = f->last > to->last ? f->last : to->last;
	to->iterations = f->iterations > to->iterations ? f->iterations : to->iterations;
}

static int push(struct builder *b, struct um_finding *f, const struct um_hint_refusal *refusal)
{
	uint64_t n = f->of ? f->of : 1;

	if (f->reason != UM_REASON_WAITED && f->reason != UM_REASON_UNPLANNED)
		f->share = b->out->iteration_ns ? (double)f->saving_ns / (double)b->out->iteration_ns : 0;
	if (f->share < UM_FINDING_LOW && !refusal)
		return 0;
	f->severity = f->share >= UM_FINDING_HIGH     ? UM_SEVERITY_HIGH
		      : f->share >= UM_FINDING_MEDIUM ? UM_SEVERITY_MEDIUM
						      : UM_SEVERITY_LOW;
	if (refusal)
		f->severity = UM_SEVERITY_MEDIUM;
	else if (f->reason == UM_REASON_CLEAN && b->r->causes.doubtful)
		f->severity = UM_SEVERITY_LOW;
	f->bytes /= n;
	f->faults /= n;
	f->ns /= n;
	f->waited_ns /= n;
	f->waited_bytes /= n;
	f->spare_ns /= n;
	f->n = (f->n + n - 1) / n;
	if (um_vec_reserve(&b->out->list, 1) || um_finding_describe(f, b->r, refusal))
		return -ENOMEM;
	b->out->list.at[b->out->list.n++] = *f;
	return 0;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static int dearer(const void *x, const void *y)
{
	const struct um_finding *a = x, *b = y;

	uint64_t x_ns = a->reason == UM_REASON_WAITED ? a->waited_ns : a->saving_ns;
	uint64_t y_ns = b->reason == UM_REASON_WAITED ? b->waited_ns : b->saving_ns;

	if (x_ns != y_ns)
		return x_ns < y_ns ? 1 : -1;
	if (a->reason != b->reason)
		return a->reason < b->reason ? -1 : 1;
	return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* The reason's findings: one for each of the most expensive tensors, one for all others. */
static int add_reason(struct builder *b, struct um_finding *all, size_t n)
{
	struct um_finding rest = {.tensor = UM_CAUSES_NONE,
				  .op = UM_CAUSES_NONE,
				  .caller = UM_CAUSES_NONE,
				  .process = UM_CAUSES_NONE,
				  .of = b->reason_of};
	unsigned own = 0;
	uint32_t last = UM_CAUSES_NONE;
	int err = 0;

	qsort(all, n, sizeof *all, dearer);
	for (size_t i = 0; i < n && !err; i++) {
		double share = b->out->iteration_ns ? (double)all[i].saving_ns / (double)b->out->iteration_ns : 0;

		if (own < UM_FINDINGS_EACH && share >= UM_FINDING_LOW && 2 * all[i].iterations >= all[i].of) {
			err = push(b, &all[i], NULL);
			own++;
		} else if (all[i].saving_ns) {
			add_group(&rest, &all[i]);
			last = all[i].tensor;
		}
	}
	if (err || !rest.tensors || 2 * b->reason_iterations < b->reason_of)
		return err;
	if (rest.tensors == 1)
		rest.tensor = last;
	return push(b, &rest, NULL);
}

static int find(struct builder *b)
{
	struct um_finding *all = malloc((b->n + 1) * sizeof *all);
	size_t n = 0;
	int err = all ? 0 : -ENOMEM;

	for (size_t i = 0; i < b->n && !err;) {
		b->group++;
		i += read_group(b, i, &all[n]);
		all[n].saving_ns = saving(b, &all[n]);
		n++;
		if (i < b->n && kind_of(&b->rows[i]) == all[0].reason)
			continue;
		err = add_reason(b, all, n);
		b->reason_iterations = b->reason_of = 0;
		n = 0;
	}
	free(all);
	return err;
}

/* ns from one steady iteration of a process to the next, including time between their kernels. */
static double period_of(const struct builder *b, uint32_t process, double waited)
{
	const struct um_report_process *p = process == UM_CAUSES_NONE ? NULL : &b->r->processes.at[process];
	const struct um_report_iteration *first = NULL, *last = NULL;
	uint64_t n = 0;

	for (size_t i = 0; p && i < p->iterations.n; i++) {
		const struct um_report_iteration *it = &b->r->iterations.at[p->iterations.at[i]];

		if (!b->steady[p->iterations.at[i]] || !it->has_gpu)
			continue;
		first = first ? first : it;
		last = it;
		n++;
	}
	if (n > 1 && last->gpu_begin > first->gpu_begin)
		return (double)((uint64_t)last->gpu_begin - (uint64_t)first->gpu_begin) / (double)(n - 1);
	return (double)b->out->iteration_ns + (p ? waited : 0);
}

/* Sum of the devices' stalls for prefetches of all tensors. */
static int find_waits(struct builder *b)
{
	struct um_finding f = {.reason = UM_REASON_WAITED,
			       .tensor = UM_CAUSES_NONE,
			       .op = UM_CAUSES_NONE,
			       .caller = UM_CAUSES_NONE,
			       .process = UM_CAUSES_NONE};
	uint64_t unavoided, n;
	double period;

	b->group++;
	for (size_t i = 0; i < b->n; i++)
		if (b->rows[i].reason == UM_REASON_WAITED)
			add_row(b, &f, &b->rows[i]);
	n = f.of ? f.of : 1;
	unavoided = f.waited_ns - (f.spare_ns < f.waited_ns ? f.spare_ns : f.waited_ns);
	if (!unavoided || 2 * f.iterations < f.of)
		return 0;
	um_finding_waits(&f, b->rows, b->n, n);
	period = period_of(b, f.process, (double)f.waited_ns / (double)n);
	f.share = period > 0 ? (double)unavoided / (double)n / period : 0;
	return push(b, &f, NULL);
}

/* A run log has no kernels, but the followed plan has its stalls. */
static int find_planned_waits(struct builder *b)
{
	struct um_finding f = {.reason = UM_REASON_WAITED,
			       .tensor = UM_CAUSES_NONE,
			       .op = UM_CAUSES_NONE,
			       .caller = UM_CAUSES_NONE,
			       .process = UM_CAUSES_NONE};

	return um_finding_planned_waits(&f, b->r) ? push(b, &f, NULL) : 0;
}

static int find_unplanned(struct builder *b)
{
	struct um_finding f = {.reason = UM_REASON_UNPLANNED,
			       .tensor = UM_CAUSES_NONE,
			       .op = UM_CAUSES_NONE,
			       .caller = UM_CAUSES_NONE,
			       .process = UM_CAUSES_NONE};

	return um_finding_plan(&f, b->r) ? push(b, &f, NULL) : 0;
}

int um_findings_build(struct um_finding_list *f, const struct um_report *r)
{
	struct builder b = {.r = r, .out = f};
	int err = -ENOMEM;

	b.steady = calloc(r->iterations.n + 1, 1);
	b.met = calloc(r->iterations.n + 1, sizeof *b.met);
	b.met_reason = calloc(r->iterations.n + 1, sizeof *b.met_reason);
	b.in_process = calloc(r->processes.n + 1, sizeof *b.in_process);
	b.rows = malloc((r->causes.rows.n + 1) * sizeof *b.rows);
	if (!b.in_process || !b.steady || !b.met || !b.met_reason || !b.rows)
		goto out;
	b.to_device = um_report_ns_per_byte(r, UM_DIR_H2D);
	b.to_host = um_report_ns_per_byte(r, UM_DIR_D2H);
	find_steady(&b);
	err = gather(&b);
	err = err ? err : find(&b);
	err = err ? err : find_waits(&b);
	err = err ? err : find_planned_waits(&b);
	err = err ? err : find_unplanned(&b);
	for (size_t i = 0; i < r->causes.hints.refusals.n && !err; i++) {
		const struct um_hint_refusal *refusal = &r->causes.hints.refusals.at[i];
		struct um_finding one = {.reason = UM_REASON_REFUSED,
					 .tensor = refusal->tensor,
					 .op = UM_CAUSES_NONE,
					 .caller = UM_CAUSES_NONE,
					 .process = UM_CAUSES_NONE,
					 .tensors = 1,
					 .n = refusal->n};

		err = push(&b, &one, refusal);
	}
	if (f->list.n)
		qsort(f->list.at, f->list.n, sizeof *f->list.at, dearer);
out:
	free(b.steady);
	free(b.met);
	free(b.met_reason);
	free(b.in_process);
	free(b.rows);
	return err;
}
