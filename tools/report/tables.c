/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables_rows.h"

#include <string.h>

/* --- rows --------------------------------------------------------------------------------------------------------- */

typedef UM_VEC(const char) list; /* of structs of any size: `n` of them */
typedef UM_VEC(const uint32_t) order;

static list list_of(const struct um_table *t, const struct um_findings *f)
{
	list l;

	memcpy(&l, (t->captured ? (const char *)f->capture : (const char *)f->report) + t->list, sizeof l);
	return l;
}

static order order_of(const struct um_table *t, const struct um_findings *f)
{
	order o;

	memcpy(&o, (const char *)f->report + t->order, sizeof o);
	return o;
}

size_t um_table_rows(const struct um_table *t, const struct um_findings *f)
{
	if (t->count)
		return t->count(f);
	return t->order ? order_of(t, f).n : list_of(t, f).n;
}

static void find_row(const struct um_table *t, struct um_table_row *row)
{
	const struct um_report *r = row->f->report;
	uint32_t iteration = UM_REPORT_NONE;
	size_t i = row->i;

	if (t->order)
		i = order_of(t, row->f).at[i];
	if (t->row_size)
		row->at = list_of(t, row->f).at + i * t->row_size;
	if (t->iteration)
		memcpy(&iteration, (const char *)row->at + t->iteration - 1, sizeof iteration);
	if (iteration != UM_REPORT_NONE)
		row->iteration = &r->iterations.at[iteration];
	if (t->find)
		t->find(row);
	if (row->iteration)
		row->process = &r->processes.at[row->iteration->process];
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static uint64_t number(const char *at)
{
	uint64_t n;

	memcpy(&n, at, sizeof n);
	return n;
}

static uint64_t sum(const struct um_column *c, const char *at)
{
	uint64_t all = number(at);

	for (unsigned k = 1; k < c->terms; k++)
		all += number(at + k * c->step);
	return all;
}

static const char *name(const struct um_column *c, const struct um_report *r, const char *at)
{
	uint32_t row;

	memcpy(&row, at, sizeof row);
	if (row == UM_REPORT_NONE)
		return NULL;
	return c->refers == UM_REFERS_OP ? r->ops.at[row].name : um_report_tensor_name(r, row);
}

static const char *text(const struct um_column *c, const struct um_report *r, const char *at)
{
	const char *s;

	if (c->refers)
		return name(c, r, at);
	if (c->size != sizeof s)
		return *at ? at : NULL;
	memcpy(&s, at, sizeof s);
	return s;
}

struct um_value um_table_cell(const struct um_table *t, const struct um_findings *f, size_t i, unsigned column)
{
	const struct um_column *c = &t->columns[column];
	struct um_table_row row = {.f = f, .i = i};
	const char *at;

	find_row(t, &row);
	at = row.at;
	if ((c->where && !number(at + c->where - 1)) || (c->applies && !c->applies(&row)))
		return um_table_none();
	if (c->value)
		return c->value(&row);
	if (c->kind == UM_COLUMN_TEXT)
		return um_table_text(text(c, f->report, at + c->at));
	return um_table_if(f, c->counts, um_table_row_file(&row), sum(c, at + c->at));
}

int um_column_shown(const struct um_findings *f, const struct um_column *column)
{
	return f->capture->files || strcmp(column->key, "file") != 0;
}

/* --- processes and iterations ------------------------------------------------------------------------------------- */

const struct um_capture_process *um_table_process(const struct um_findings *f, uint64_t process)
{
	for (size_t i = 0; i < f->capture->processes.n; i++)
		if (f->capture->processes.at[i].process == process)
			return &f->capture->processes.at[i];
	return NULL;
}

struct um_value um_table_pid(const struct um_findings *f, uint64_t process)
{
	const struct um_capture_process *p = um_table_process(f, process);

	return um_table_number(p ? p->pid : um_capture_pid(process));
}

struct um_value um_table_file(const struct um_findings *f, uint64_t process)
{
	const struct um_capture_process *p = um_table_process(f, process);

	return um_table_text(p ? p->file : NULL);
}

struct um_value um_table_row_file(const struct um_table_row *row)
{
	return row->process ? um_table_file(row->f, row->process->process) : um_table_none();
}

struct um_value um_table_row_pid(const struct um_table_row *row)
{
	return row->process ? um_table_pid(row->f, row->process->process) : um_table_none();
}

struct um_value um_table_row_iteration(const struct um_table_row *row)
{
	return row->iteration ? um_table_number(row->iteration->n) : um_table_none();
}
