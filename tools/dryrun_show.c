/* SPDX-License-Identifier: Apache-2.0
 *
 * Each process that loaded the stand-in wrote a file report.PID.json, which is empty if it never called cuInit. They
 * are shown in the order of process ids. A process with several devices has a report for each.
 */
#include "dryrun.h"

#include "output.h"
#include "paint.h"
#include "table.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0

/* From the C++ ABI; the caller frees the result. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

struct reports {
	json_t *at[256]; /* by id */
	int n, opened, left_out;
};

static uint64_t num(const json_t *o, const char *key)
{
	json_int_t x = json_integer_value(json_object_get(o, key));

	return x > 0 ? (uint64_t)x : 0;
}

static const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static double mib(const json_t *o, const char *key)
{
	return (double)num(o, key) / MIB;
}

static double ms(const json_t *o, const char *key)
{
	return (double)num(o, key) / 1e6;
}

static int by_id(const void *a, const void *b)
{
	const json_t *p = *(json_t *const *)a, *q = *(json_t *const *)b;
	uint64_t x = num(p, "pid"), y = num(q, "pid");

	if (x == y) {
		x = num(p, "device");
		y = num(q, "device");
	}
	return (x > y) - (x < y);
}

/* C++ kernels get their source names; the symbol is kept as well. */
static void demangle(json_t *o)
{
	json_t *list = json_object_get(o, "top_kernels"), *k;
	size_t i;

	json_array_foreach(list, i, k)
	{
		const char *symbol = str(k, "name");
		char *name = NULL;

#ifdef UM_DEMANGLE
		name = strncmp(symbol, "_Z", 2) == 0 ? __cxa_demangle(symbol, NULL, NULL, NULL) : NULL;
#endif
		if (name && !json_object_set_new(k, "symbol", json_string(symbol)))
			json_object_set_new(k, "name", json_string(name));
		free(name);
	}
}

static void add(struct reports *r, json_t *o)
{
	if (r->n == (int)(sizeof r->at / sizeof *r->at)) {
		r->left_out++;
		json_decref(o);
		return;
	}
	demangle(o);
	r->at[r->n++] = o;
}

/* The reports of the devices after the first. */
static void add_devices(struct reports *r, json_t *o)
{
	json_t *list = json_incref(json_object_get(o, "more_devices")), *device;
	size_t i;

	json_object_del(o, "more_devices");
	json_array_foreach(list, i, device) add(r, json_incref(device));
	json_decref(list);
}

/* 0, or -1 after an error message */
static int read_one(struct reports *r, const char *folder, const char *name)
{
	char path[512];
	json_error_t why;
	json_t *o;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	o = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	r->opened++;
	if (!o && why.position == 0) /* empty: the stand-in was only loaded */
		return 0;
	if (!o || strcmp(str(o, "schema"), "umdryrun/1") != 0) {
		tool_say("dryrun", "%s: not a report of this version: %s", name, o ? str(o, "schema") : why.text);
		json_decref(o);
		return -1;
	}
	add_devices(r, o);
	add(r, o);
	return 0;
}

static int read_all(struct reports *r, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;
	int err = 0;

	if (!dir) {
		tool_say("dryrun", "%s: %s", folder, strerror(errno));
		return -1;
	}
	while (!err && (e = readdir(dir)))
		if (!strncmp(e->d_name, "report.", 7) && strlen(e->d_name) > 5 &&
		    !strcmp(e->d_name + strlen(e->d_name) - 5, ".json"))
			err = read_one(r, folder, e->d_name);
	closedir(dir);
	qsort(r->at, (size_t)r->n, sizeof *r->at, by_id);
	if (r->left_out)
		tool_say("dryrun", "%d reports more are not shown", r->left_out);
	return err;
}

/* --- table -------------------------------------------------------------------------------------------------------- */

/* A figure with its name. */
#define line(to, what, ...) (fprintf((to), "  %-20s ", (what)), table_wrapf((to), 23, 23, __VA_ARGS__))

#define say(to, ...) (fputs("  ", (to)), table_wrapf((to), 2, 2, __VA_ARGS__))

#define LLU(o, key) ((unsigned long long)num((o), (key)))

/* Warnings about the figures. */
static void warnings(FILE *to, const json_t *o)
{
	uint64_t kernels = num(o, "kernels"), computed = num(o, "kernels_computed");

	if (!json_is_true(json_object_get(o, "ended")))
		table_wrap(to, 0, 2,
			   "  The process ended without a last report: figures date from its last wait for the "
			   "device.");
	if (computed < kernels)
		say(to, "%llu of %llu kernels did not compute: results that depend on them are meaningless.",
		    (unsigned long long)(kernels - computed), (unsigned long long)kernels);
	if (strcmp(str(o, "cpu"), "unknown") == 0)
		say(to, "CPU accesses were not tracked: this system hides page tables from processes.");
}

static void table_sums(FILE *to, const json_t *o)
{
	line(to, "device time", "%.3f ms, of that %.3f ms kernels waiting for memory", ms(o, "device_ns"),
	     ms(o, "stall_ns"));
	line(to, "work", "%llu kernels, %llu computed by host functions; %llu copies and fills; %llu host functions",
	     LLU(o, "kernels"), LLU(o, "kernels_computed"), LLU(o, "copies"), LLU(o, "host_functions"));
	line(to, "allocated at peak", "%.1f MiB managed, %.1f MiB device, %.1f MiB pinned",
	     mib(o, "managed_peak_bytes"), mib(o, "device_peak_bytes"), mib(o, "pinned_peak_bytes"));
	line(to, "resident at peak", "%.1f MiB of managed memory", mib(o, "resident_peak_bytes"));
	line(to, "GPU faults", "%llu in %llu batches", LLU(o, "faults"), LLU(o, "batches"));
	line(to, "CPU faults", "%llu%s", LLU(o, "cpu_faults"),
	     strcmp(str(o, "cpu"), "off") == 0 ? " (not tracked: --cpu off)" : "");
	line(to, "migrated", "%.1f MiB in, %.1f MiB out, %llu evictions", mib(o, "h2d_bytes"), mib(o, "d2h_bytes"),
	     LLU(o, "evictions"));
	line(to, "copied", "%.1f MiB in, %.1f MiB out", mib(o, "copied_h2d_bytes"), mib(o, "copied_d2h_bytes"));
	line(to, "read over the link", "%.1f MiB", mib(o, "remote_bytes"));
	line(to, "hints", "%llu accepted, %llu refused", LLU(o, "hints"), LLU(o, "hints_refused"));
}

static const struct table_column kernel_columns[] = {
	{"kernel", 1, 1},   {"launches", 0, 1}, {"computed", 0, 1}, {"time ms", 0, 1},
	{"stall ms", 0, 0}, {"faults", 0, 0},	{"in MiB", 0, 0},   {"out MiB", 0, 0},
};
static const struct table_column allocation_columns[] = {
	{"managed allocation", 1, 1},
	{"MiB", 0, 1},
	{"stall ms", 0, 0},
	{"GPU faults", 0, 0},
	{"CPU faults", 0, 0},
	{"in MiB", 0, 0},
	{"out MiB", 0, 0},
	{"evictions", 0, 0},
	{"tensors", 1, 0},
};

static int table_kernels(FILE *to, const json_t *list)
{
	struct table t = {.columns = kernel_columns, .n = 8, .indent = 2};
	const json_t *k;
	size_t i;

	json_array_foreach(list, i, k)
	{
		table_cell(&t, "%s", tool_text(str(k, "name")));
		table_cell(&t, "%llu", LLU(k, "launches"));
		table_cell(&t, "%llu", LLU(k, "computed"));
		table_cell(&t, "%.3f", ms(k, "ns"));
		table_cell(&t, "%.3f", ms(k, "stall_ns"));
		table_cell(&t, "%llu", LLU(k, "faults"));
		table_cell(&t, "%.1f", mib(k, "h2d_bytes"));
		table_cell(&t, "%.1f", mib(k, "d2h_bytes"));
	}
	if (t.cells.n)
		fputc('\n', to);
	return table_write(&t, to);
}

/* The library's tensor names of an allocation. */
static void cell_tensors(struct table *t, const json_t *m)
{
	const json_t *names = json_object_get(m, "tensors"), *name;
	char list[2048] = "";
	size_t i, n = 0;

	json_array_foreach(names, i, name)
	{
		const char *known = json_string_value(name);

		if (n < sizeof list - 1)
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "",
					      tool_text(known ? known : "?"));
	}
	if (json_is_true(json_object_get(m, "more_tensors")) && n < sizeof list - 1)
		snprintf(list + n, sizeof list - n, "%s", n ? ", and others" : "(others)");
	table_cell(t, "%s", list);
}

static int table_allocations(FILE *to, const json_t *list)
{
	struct table t = {.columns = allocation_columns, .n = 9, .indent = 2};
	const json_t *m;
	size_t i;

	json_array_foreach(list, i, m)
	{
		table_cell(&t, "%llu", LLU(m, "number"));
		table_cell(&t, "%.1f", mib(m, "bytes"));
		table_cell(&t, "%.3f", ms(m, "stall_ns"));
		table_cell(&t, "%llu", LLU(m, "faults"));
		table_cell(&t, "%llu", LLU(m, "cpu_faults"));
		table_cell(&t, "%.1f", mib(m, "h2d_bytes"));
		table_cell(&t, "%.1f", mib(m, "d2h_bytes"));
		table_cell(&t, "%llu", LLU(m, "evictions"));
		cell_tensors(&t, m);
	}
	if (t.cells.n)
		fputc('\n', to);
	return table_write(&t, to);
}

static int is_idle(const json_t *o)
{
	static const char *const figures[] = {
		"kernels",	     "copies", "host_functions", "managed_peak_bytes", "device_peak_bytes",
		"pinned_peak_bytes", "hints",  "hints_refused",
	};

	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		if (num(o, figures[i]))
			return 0;
	return 1;
}

/* ", device 1" of a process with several devices, else nothing. */
static const char *device_of(const json_t *o, char *text, size_t size)
{
	*text = 0;
	if (json_object_get(o, "device"))
		snprintf(text, size, ", device %llu", LLU(o, "device"));
	return text;
}

/* Profilers and launchers call cuInit in processes of their own; a program may leave devices alone. */
static void table_idle(FILE *to, const struct reports *r, int n_idle)
{
	char list[2048] = "", device[32];
	int devices = 0;
	size_t n = 0;

	for (int i = 0; i < r->n && n < sizeof list - 1; i++) {
		int ended = json_is_true(json_object_get(r->at[i], "ended"));

		devices |= json_object_get(r->at[i], "device") != NULL;
		if (is_idle(r->at[i]))
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%s%s%s", n ? ", " : "",
					      tool_text(str(r->at[i], "program")),
					      device_of(r->at[i], device, sizeof device),
					      ended ? "" : " (no last report)");
	}
	fputc('\n', to);
	if (devices)
		table_wrapf(to, 0, 2, "%d device%s did no work: %s", n_idle, n_idle == 1 ? "" : "s", list);
	else
		table_wrapf(to, 0, 2, "%d other process%s did no work on the device: %s", n_idle,
			    n_idle == 1 ? "" : "es", list);
}

static int table(FILE *to, const struct reports *r)
{
	int err = 0, idle = 0, all;

	for (int i = 0; i < r->n; i++)
		idle += is_idle(r->at[i]);
	all = idle == r->n;
	for (int i = 0, shown = 0; i < r->n && !err; i++) {
		const json_t *o = r->at[i];
		char device[32];

		if (!all && is_idle(o))
			continue;
		fprintf(to, "%s%s", shown++ ? "\n" : "", paint(PAINT_HEADING));
		table_wrapf(to, 0, 2, "%s on %s (simulated)%s, %.1f MiB of device memory, CUDA %s:%s",
			    tool_text(str(o, "program")), tool_text(str(o, "profile")),
			    device_of(o, device, sizeof device), mib(o, "memory_bytes"), tool_text(str(o, "cuda")),
			    paint(PAINT_OFF));
		warnings(to, o);
		table_sums(to, o);
		err = table_kernels(to, json_object_get(o, "top_kernels"));
		if (!err)
			err = table_allocations(to, json_object_get(o, "top_allocations"));
	}
	if (idle && !all)
		table_idle(to, r, idle);
	return err;
}

/* --- JSON, CSV --------------------------------------------------------------------------------------------------- */

static int write_json(FILE *to, const struct reports *r)
{
	json_t *list = json_array(), *doc;
	int err = !list;

	for (int i = 0; i < r->n && !err; i++) {
		json_object_del(r->at[i], "schema");
		err = json_array_append(list, r->at[i]);
	}
	doc = err ? NULL : json_pack("{s:s,s:O}", "schema", "umdryrun/1", "processes", list);
	err = tool_json(to, doc, 0);
	json_decref(doc);
	json_decref(list);
	return err ? -1 : 0;
}

/* The values that are no lists, in the order of the report. */
static void write_csv(FILE *to, const struct reports *r)
{
	for (int i = -1; i < r->n; i++) { /* the heading, from the first report */
		const char *key, *comma = "";
		json_t *v;

		json_object_foreach(r->at[i < 0 ? 0 : i], key, v)
		{
			if (json_is_array(v) || strcmp(key, "schema") == 0)
				continue;
			fputs(comma, to);
			comma = ",";
			if (i < 0)
				fputs(key, to);
			else if (json_is_string(v))
				tool_csv(to, json_string_value(v));
			else if (json_is_boolean(v))
				fputs(json_is_true(v) ? "1" : "0", to);
			else
				fprintf(to, "%lld", (long long)json_integer_value(v));
		}
		fputs("\r\n", to);
	}
}

int dryrun_show(const struct dryrun *d, FILE *to, int *opened)
{
	struct reports r = {.n = 0};
	int err = read_all(&r, d->folder);

	*opened = r.opened;
	if (!err && r.n && d->format == FORMAT_JSON)
		err = write_json(to, &r);
	else if (!err && r.n && d->format == FORMAT_CSV)
		write_csv(to, &r);
	else if (!err)
		err = table(to, &r);
	for (int i = 0; i < r.n; i++)
		json_decref(r.at[i]);
	return err ? -1 : r.n;
}
