/* SPDX-License-Identifier: Apache-2.0
 *
 * Each process that loaded the stand-in left a file, report.PID.json, empty where it went no further. They are shown in
 * the order of their ids.
 */
#include "dryrun.h"

#include "output.h"
#include "paint.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0

/* Of the C++ ABI. The result is the caller's to free. */
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
	uint64_t x = num(*(json_t *const *)a, "pid"), y = num(*(json_t *const *)b, "pid");

	return (x > y) - (x < y);
}

/* Kernels of C++ get the names that the program's source has; the symbol stays beside it. */
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

/* 0; -1: said. */
static int read_one(struct reports *r, const char *folder, const char *name)
{
	char path[512];
	json_error_t why;
	json_t *o;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	o = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	r->opened++;
	if (!o && why.position == 0) /* empty: loaded, no more */
		return 0;
	if (!o || strcmp(str(o, "schema"), "umdryrun/1") != 0) {
		tool_say("dryrun", "%s: no report of this version: %s", name, o ? str(o, "schema") : why.text);
		json_decref(o);
		return -1;
	}
	if (r->n == (int)(sizeof r->at / sizeof *r->at)) {
		r->left_out++;
		json_decref(o);
		return 0;
	}
	demangle(o);
	r->at[r->n++] = o;
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
		tool_say("dryrun", "%d processes more are not shown", r->left_out);
	return err;
}

/* --- table -------------------------------------------------------------------------------------------------------- */

static void line(FILE *to, const char *what, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void line(FILE *to, const char *what, const char *fmt, ...)
{
	va_list ap;

	fprintf(to, "  %-20s ", what);
	va_start(ap, fmt);
	vfprintf(to, fmt, ap);
	va_end(ap);
	fputc('\n', to);
}

#define LLU(o, key) ((unsigned long long)num((o), (key)))

/* What is not as it seems. */
static void warnings(FILE *to, const json_t *o)
{
	uint64_t kernels = num(o, "kernels"), computed = num(o, "kernels_computed");

	if (!json_is_true(json_object_get(o, "ended")))
		fputs("  The process was ended before it could tell: figures are those of when it last waited for the "
		      "device.\n",
		      to);
	if (computed < kernels)
		fprintf(to, "  %llu of %llu kernels did not compute: results that depend on them are not real.\n",
			(unsigned long long)(kernels - computed), (unsigned long long)kernels);
	if (strcmp(str(o, "cpu"), "unknown") == 0)
		fputs("  Accesses of the CPU were not followed: this system does not show a process its page tables.\n",
		      to);
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
	     strcmp(str(o, "cpu"), "off") == 0 ? " (not followed: --cpu off)" : "");
	line(to, "migrated", "%.1f MiB in, %.1f MiB out, %llu evictions", mib(o, "h2d_bytes"), mib(o, "d2h_bytes"),
	     LLU(o, "evictions"));
	line(to, "copied", "%.1f MiB in, %.1f MiB out", mib(o, "copied_h2d_bytes"), mib(o, "copied_d2h_bytes"));
	line(to, "read over the link", "%.1f MiB", mib(o, "remote_bytes"));
	line(to, "hints", "%llu accepted, %llu refused", LLU(o, "hints"), LLU(o, "hints_refused"));
}

/* Names are of any length: they come last. */
static void table_kernels(FILE *to, const json_t *list)
{
	const json_t *k;
	size_t i;

	if (json_array_size(list))
		fprintf(to, "\n  %8s %8s %10s %10s %8s %8s %8s  %s\n", "launches", "computed", "time ms", "stall ms",
			"faults", "in MiB", "out MiB", "kernel");
	json_array_foreach(list, i, k)
		fprintf(to, "  %8llu %8llu %10.3f %10.3f %8llu %8.1f %8.1f  %s\n", LLU(k, "launches"),
			LLU(k, "computed"), ms(k, "ns"), ms(k, "stall_ns"), LLU(k, "faults"), mib(k, "h2d_bytes"),
			mib(k, "d2h_bytes"), tool_text(str(k, "name")));
}

/* A program with the library names its memory. */
static int has_tensors(const json_t *list)
{
	const json_t *m;
	size_t i;

	json_array_foreach(list, i, m) if (json_object_get(m, "tensors")) return 1;
	return 0;
}

static void show_tensors(FILE *to, const json_t *m)
{
	const json_t *names = json_object_get(m, "tensors"), *name;
	size_t i;

	json_array_foreach(names, i, name)
	{
		fputs(i ? ", " : "  ", to);
		fputs(tool_text(json_string_value(name)), to);
	}
	if (json_is_true(json_object_get(m, "more_tensors")))
		fputs(i ? ", and others" : "  (others)", to);
}

static void table_allocations(FILE *to, const json_t *list)
{
	const json_t *m;
	size_t i;

	if (json_array_size(list))
		fprintf(to, "\n  %-18s %10s %10s %10s %10s %8s %8s %9s%s\n", "managed allocation", "MiB", "stall ms",
			"GPU faults", "CPU faults", "in MiB", "out MiB", "evictions",
			has_tensors(list) ? "  tensors" : "");
	json_array_foreach(list, i, m)
	{
		fprintf(to, "  %-18llu %10.1f %10.3f %10llu %10llu %8.1f %8.1f %9llu", LLU(m, "number"),
			mib(m, "bytes"), ms(m, "stall_ns"), LLU(m, "faults"), LLU(m, "cpu_faults"), mib(m, "h2d_bytes"),
			mib(m, "d2h_bytes"), LLU(m, "evictions"));
		show_tensors(to, m);
		fputc('\n', to);
	}
}

static void table(FILE *to, const struct reports *r)
{
	for (int i = 0; i < r->n; i++) {
		const json_t *o = r->at[i];

		fprintf(to, "%s%s%s on %s (simulated), %.1f MiB of device memory, CUDA %s:%s\n", i ? "\n" : "",
			paint(PAINT_HEADING), tool_text(str(o, "program")), tool_text(str(o, "profile")),
			mib(o, "memory_bytes"), tool_text(str(o, "cuda")), paint(PAINT_OFF));
		warnings(to, o);
		table_sums(to, o);
		table_kernels(to, json_object_get(o, "top_kernels"));
		table_allocations(to, json_object_get(o, "top_allocations"));
	}
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

/* All that is not a list, in the order of the report. */
static void write_csv(FILE *to, const struct reports *r)
{
	for (int i = -1; i < r->n; i++) { /* first the heading, from the first report */
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
		table(to, &r);
	for (int i = 0; i < r.n; i++)
		json_decref(r.at[i]);
	return err ? -1 : r.n;
}
