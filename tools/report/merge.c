/* SPDX-License-Identifier: Apache-2.0 */
#include "report/merge.h"

#include <stdio.h>

/* The process's number in the report, from 1; 0: no memory. */
static uint64_t number_of(struct um_merge *m, uint64_t process)
{
	if (m->last >= m->file.n || m->file.at[m->last] != process) {
		m->last = 0;
		while (m->last < m->file.n && m->file.at[m->last] != process)
			m->last++;
		if (m->last == m->file.n) {
			if (um_vec_push(&m->file, process))
				return 0;
			if (m->found)
				um_iteration_spans_renumber(m->found, process, m->before + m->last + 1);
		}
	}
	return m->before + m->last + 1;
}

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct um_merge *m = (struct um_merge *)sink;
	struct um_activity numbered = *a;

	numbered.process = number_of(m, a->process);
	return numbered.process ? um_activity_feed(&m->report->sink, &numbered) : -ENOMEM;
}

void um_merge_init(struct um_merge *m, struct um_report *report, struct um_capture *into)
{
	*m = (struct um_merge){.sink = {feed}, .report = report, .into = into};
}

void um_merge_fini(struct um_merge *m)
{
	um_vec_fini(&m->file);
}

void um_merge_reset(struct um_merge *m)
{
	um_report_reset(m->report);
	um_capture_fini(m->into);
	um_capture_init(m->into);
	um_vec_clear(&m->file);
	m->before = m->files = 0;
}

int um_merge_begin(struct um_merge *m)
{
	return m->files ? um_report_next_file(m->report) : 0;
}

/* --- what files say of themselves --------------------------------------------------------------------------------- */

/* What a run log says of its process. */
static void describe(struct um_capture_process *p, const struct um_capture_library *l)
{
	uint64_t n = l->iterations ? l->iterations : 1;

	p->rank = l->rank;
	p->prefetch_bytes = l->counts[UM_LIBRARY_PREFETCH] / n;
	p->evict_bytes = l->counts[UM_LIBRARY_EVICT] / n;
	p->in_core_ns = l->levels[UM_LIBRARY_IN_CORE_NS];
}

static int processes(struct um_merge *m, const struct um_capture *of, const char *file)
{
	for (size_t i = 0; i < m->file.n; i++) {
		const struct um_capture_process *known = NULL;
		uint64_t id = m->file.at[i];

		for (size_t k = 0; k < of->processes.n && !known; k++)
			known = of->processes.at[k].process == id ? &of->processes.at[k] : NULL;
		if (um_capture_process(m->into, m->before + i + 1, known ? known->pid : um_capture_pid(id),
				       known ? known->name : ""))
			return -ENOMEM;
		m->into->processes.at[m->into->processes.n - 1].file = file;
		describe(&m->into->processes.at[m->into->processes.n - 1], &of->library);
	}
	return 0;
}

static int devices(struct um_merge *m, const struct um_capture *of, const char *file)
{
	for (size_t i = 0; i < of->devices.n; i++) {
		const struct um_capture_device *d = &of->devices.at[i];

		if (um_capture_device(m->into, d->device, d->name, d->memory_bytes))
			return -ENOMEM;
		m->into->devices.at[m->into->devices.n - 1].file = file;
		memcpy(m->into->devices.at[m->into->devices.n - 1].driver, d->driver, sizeof d->driver);
	}
	return 0;
}

static int absences(struct um_merge *m, const struct um_capture *of, const char *file)
{
	for (size_t i = 0; i < of->missing.n; i++) {
		struct um_absence a = of->missing.at[i];

		a.file = file;
		if (um_vec_push(&m->into->missing, a))
			return -ENOMEM;
	}
	return 0;
}

static int alike(const struct um_absence *a, const struct um_absence *b)
{
	return a->state == b->state && strcmp(a->table, b->table) == 0;
}

void um_merge_finish(struct um_merge *m)
{
	struct um_capture *c = m->into;
	size_t left = 0;

	for (size_t i = 0; i < c->missing.n; i++) {
		struct um_absence a = c->missing.at[i];
		unsigned n = 0, before = 0;

		for (size_t k = 0; k < left; k++)
			before |= !c->missing.at[k].file && alike(&c->missing.at[k], &a);
		for (size_t k = i; k < c->missing.n; k++)
			n += alike(&c->missing.at[k], &a);
		if (n == c->files)
			a.file = NULL;
		if (!before)
			c->missing.at[left++] = a;
	}
	c->missing.n = left;
}

static int notes(struct um_merge *m, const struct um_capture *of, const char *file)
{
	char line[1024];
	int err = 0;

	for (size_t i = 0; i < of->notes.n && !err; i++) {
		snprintf(line, sizeof line, "%s: %s", file, of->notes.at[i]);
		err = um_capture_note(m->into, line);
	}
	return err;
}

/* The same in all files, or nothing. */
static void text(char *to, size_t size, const char *from, int first)
{
	if (first)
		snprintf(to, size, "%s", from);
	else if (strcmp(to, from) != 0)
		*to = '\0';
}

static void library(struct um_capture_library *to, const struct um_capture_library *of, int first)
{
	text(to->version, sizeof to->version, of->version, first);
	text(to->device, sizeof to->device, of->device, first);
	text(to->why, sizeof to->why, of->why, first);
	text(to->strategy, sizeof to->strategy, of->strategy, first);
	to->is = of->is;
	to->simulated = of->simulated;
	to->counters |= of->counters;
	to->capacity_bytes += of->capacity_bytes;
	to->budget_bytes += of->budget_bytes;
	to->iterations += of->iterations;
	to->kept += of->kept;
	to->left_out += of->left_out;
	for (int i = 0; i < UM_LIBRARY_COUNTS; i++)
		to->counts[i] += of->counts[i];
	for (int i = 0; i < UM_LIBRARY_LEVELS; i++) {
		if (i == UM_LIBRARY_PLAN_NS || i == UM_LIBRARY_IN_CORE_NS)
			to->levels[i] = of->levels[i] > to->levels[i] ? of->levels[i] : to->levels[i];
		else
			to->levels[i] += of->levels[i];
	}
}

int um_merge_end(struct um_merge *m, const struct um_capture *of, const char *file)
{
	struct um_capture *c = m->into;
	int first = !m->files;

	if (!first && c->library.is != of->library.is)
		return -EINVAL;
	if (processes(m, of, file) || devices(m, of, file) || absences(m, of, file) || notes(m, of, file))
		return -ENOMEM;
	text(c->product, sizeof c->product, of->product, first);
	text(c->schema, sizeof c->schema, of->schema, first);
	if (of->library.is)
		library(&c->library, &of->library, first);
	c->rows += of->rows;
	c->marks_damaged += of->marks_damaged;
	c->has_cuda |= of->has_cuda;
	c->end_ns = of->end_ns > c->end_ns ? of->end_ns : c->end_ns;
	m->before += m->file.n;
	um_vec_clear(&m->file);
	c->files = ++m->files;
	return 0;
}
