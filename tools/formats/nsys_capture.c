/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads an export's description. Its lists are cut at a few thousand entries: more indicate damage.
 */
#include "formats/nsys_file.h"

#include <stdio.h>

#define LIST_MAX 8192

/* Relevant settings of the capture. */
struct settings {
	int known; /* the file has settings */
	int cuda, nvtx, cpu_faults, gpu_faults, memory; /* -1 unknown, 0 off, 1 on in any process */
};

static const char *text_of(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return text ? text : "";
}

/* Calls `fn` for each row. 0 or -errno. */
static int each(struct um_nsys_file *f, const char *table, const char *const *columns, const char *tail,
		int (*fn)(struct um_nsys_file *f, sqlite3_stmt *s, void *arg), void *arg)
{
	sqlite3_stmt *s = NULL;
	int got = um_nsys_file_has(f, table);

	if (got <= 0)
		return got;
	got = um_nsys_file_select(f, table, columns, tail, &s);
	for (int n = 0; !got && n < LIST_MAX; n++) {
		got = um_nsys_file_step(f, s);
		if (got <= 0)
			break;
		got = fn(f, s, arg);
	}
	sqlite3_finalize(s);
	return got;
}

static int on_version(struct um_nsys_file *f, sqlite3_stmt *s, void *arg)
{
	struct um_capture *c = arg;
	const char *name = text_of(s, 0), *value = text_of(s, 1);

	(void)f;
	if (strcmp(name, "EXPORT_PRODUCT_VERSION") == 0)
		snprintf(c->product, sizeof c->product, "%s", value);
	if (strcmp(name, "EXPORT_SCHEMA_VERSION") == 0)
		snprintf(c->schema, sizeof c->schema, "%s", value);
	return 0;
}

static int on_end(struct um_nsys_file *f, sqlite3_stmt *s, void *arg)
{
	struct um_capture *c = arg;
	int64_t end = sqlite3_column_int64(s, 0);

	(void)f;
	if (end > c->end_ns)
		c->end_ns = end;
	return 0;
}

static int on_process(struct um_nsys_file *f, sqlite3_stmt *s, void *arg)
{
	uint64_t process = UM_NSYS_PROCESS(sqlite3_column_int64(s, 0));

	(void)f;
	return um_capture_process(arg, process, (uint64_t)sqlite3_column_int64(s, 1), text_of(s, 2));
}

static int on_device(struct um_nsys_file *f, sqlite3_stmt *s, void *arg)
{
	int64_t memory = sqlite3_column_int64(s, 2);
	int ordinal = sqlite3_column_type(s, 3) == SQLITE_NULL ? 0 : 3;

	(void)f;
	return um_capture_device(arg, (int32_t)sqlite3_column_int64(s, ordinal), text_of(s, 1),
				 memory > 0 ? (uint64_t)memory : 0);
}

static int on_system(struct um_nsys_file *f, sqlite3_stmt *s, void *arg)
{
	struct um_capture *c = arg;

	(void)f;
	for (size_t i = 0; i < c->devices.n && strcmp(text_of(s, 0), "NvDriverVersion") == 0; i++)
		snprintf(c->devices.at[i].driver, sizeof c->devices.at[i].driver, "%s", text_of(s, 1));
	return 0;
}

static int on_diagnostic(struct um_nsys_file *f, sqlite3_stmt *s, void *arg)
{
	const char *text = text_of(s, 0);

	(void)f;
	if (strstr(text, "Unified Memory cannot be traced")) {
		const struct um_absence a = {UM_ABSENCE_MIGRATIONS, "migrations of unified memory",
					     "none: this system cannot record them", UM_ABSENT_NOT_RECORDED, NULL};
		struct um_capture *c = arg;

		for (size_t i = 0; i < c->missing.n; i++)
			if (strcmp(c->missing.at[i].table, a.table) == 0)
				return um_capture_note(c, text);
		if (um_vec_push(&c->missing, a))
			return -ENOMEM;
	}
	return strstr(text, "Unified Memory") || strstr(text, "CUDA") ? um_capture_note(arg, text) : 0;
}

static int on_setting(struct um_nsys_file *f, sqlite3_stmt *s, void *arg)
{
	const char *name = text_of(s, 0), *value = text_of(s, 1), *colon = strchr(name, ':');
	struct settings *to = arg;
	const struct {
		const char *name;
		int *at;
	} keys[] = {{"COLLECT_NVTX_TRACE", &to->nvtx},
		    {"COLLECT_UVM_CPU_PAGE_FAULTS", &to->cpu_faults},
		    {"COLLECT_UVM_GPU_PAGE_FAULTS", &to->gpu_faults},
		    {"COLLECT_GPU_MEMORY_USAGE", &to->memory}};

	(void)f;
	to->known = 1;
	name = colon && strncmp(name, "PROCESS_", 8) == 0 ? colon + 1 : name;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strcmp(name, keys[i].name) == 0 && *keys[i].at != 1)
			*keys[i].at = strcmp(value, "true") == 0;
	if (strcmp(name, "CAPTURE_EVENT_TYPE") == 0 && strcmp(value, "Cuda") == 0)
		to->cuda = 1;
	return 0;
}

static int versions(struct um_nsys_file *f, struct um_capture *c)
{
	static const char *const columns[] = {"!name", "!value", NULL};
	int err = each(f, "EXPORT_META_DATA", columns, "", on_version, c);

	if (!err)
		err = each(f, "META_DATA_EXPORT", columns, "", on_version, c);
	if (!err && atoi(c->schema) > UM_NSYS_MAJOR)
		err = um_diag_set(f->diag, EINVAL, 0, "has schema %s, newer than the known ones (%d.x)", c->schema,
				  UM_NSYS_MAJOR);
	return err;
}

static enum um_absence_state state_of(int setting)
{
	return setting < 0 ? UM_ABSENT_UNKNOWN : setting ? UM_ABSENT_NONE : UM_ABSENT_NOT_RECORDED;
}

static int absences(struct um_nsys_file *f, struct um_capture *c, const struct settings *s)
{
	/* Without a GPU, CUDA has no tables either: only another table of CUDA proves that tracing was on. */
	int cuda = c->has_cuda ? 1 : s->cuda == 1 ? -1 : s->known ? 0 : -1;
	const struct {
		enum um_nsys_id id;
		const char *what, *option;
		int setting;
	} list[] = {
		{UM_NSYS_KERNEL, "kernels", "--trace=cuda", cuda},
		{UM_NSYS_CALL, "CUDA calls", "--trace=cuda", cuda},
		{UM_NSYS_COPY, "copies and migrations", "--trace=cuda", cuda},
		{UM_NSYS_GPU_FAULT, "page faults of the GPU", "--cuda-um-gpu-page-faults=true", s->gpu_faults},
		{UM_NSYS_CPU_FAULT, "page faults of the CPU", "--cuda-um-cpu-page-faults=true", s->cpu_faults},
		{UM_NSYS_RANGE, "marked ranges (NVTX)", "--trace=nvtx", s->nvtx},
		{UM_NSYS_ALLOC, "allocations", "--cuda-memory-usage=true", s->memory},
	};

	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (!f->has[list[i].id] &&
		    um_vec_push(&c->missing, ((struct um_absence){um_nsys_tables[list[i].id].name, list[i].what,
								  list[i].option, state_of(list[i].setting), NULL})))
			return um_diag_set(f->diag, ENOMEM, 0, "no memory");
	return 0;
}

int um_nsys_file_capture(struct um_nsys_file *f, struct um_capture *c)
{
	struct settings settings = {0, -1, -1, -1, -1, -1};
	int err = versions(f, c);

	c->has_cuda = f->has[UM_NSYS_KERNEL] || f->has[UM_NSYS_CALL] || f->has[UM_NSYS_COPY] || f->has[UM_NSYS_FILL] ||
		      f->has[UM_NSYS_GPU_FAULT] || f->has[UM_NSYS_CPU_FAULT];
	if (!err)
		err = each(f, "META_DATA_CAPTURE", (const char *const[]){"!name", "!value", NULL}, "", on_setting,
			   &settings);
	if (!err)
		err = each(f, "ANALYSIS_DETAILS", (const char *const[]){"duration", NULL}, "", on_end, c);
	if (!err)
		err = each(f, "PROCESSES", (const char *const[]){"!globalPid", "pid", "name", NULL}, "", on_process, c);
	if (!err)
		err = each(f, "TARGET_INFO_GPU", (const char *const[]){"!id", "name", "totalMemory", "cuDevice", NULL},
			   "", on_device, c);
	if (!err)
		err = each(f, "TARGET_INFO_SYSTEM_ENV", (const char *const[]){"!name", "!value", NULL}, "", on_system,
			   c);
	if (!err)
		err = each(f, "DIAGNOSTIC_EVENT", (const char *const[]){"text", "!severity", NULL},
			   "WHERE severity IN (2, 3)", on_diagnostic, c);
	if (err == -ENOMEM)
		um_diag_set(f->diag, ENOMEM, 0, "no memory");
	return err ? err : absences(f, c, &settings);
}
