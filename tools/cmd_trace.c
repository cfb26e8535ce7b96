/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_trace.c - umadvise trace: checks recorded workloads and counts their events
 *
 * A refused file does not stop the others; the exit code is the highest of all.
 */
#include "play_args.h"
#include "table.h"
#include "tool.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "io/id_map.h"
#include "io/out.h"
#include "io/umtrace.h"

/* --- what is counted -------------------------------------------------------------------------------------------- */

struct iteration {
	uint64_t pattern; /* fingerprint of its ops, free of tensor numbers */
	uint64_t kind; /* number of the pattern */
	uint64_t ops;
	double flop, bytes;
};

struct stat {
	const char *file;
	struct um_trace *trace;
	UM_VEC(struct iteration) its;
	char *shape; /* "ABB", "A x 60" */
	uint64_t tensors, params, ops_min, ops_max, largest;
	const char *largest_name; /* NULL: no op */
};

static void stat_fini(struct stat *s)
{
	um_trace_free(s->trace);
	um_vec_fini(&s->its);
	free(s->shape);
}

/* Identity of a tensor in a pattern: its number by first appearance in the iteration, and its size. */
static int add_tensor(struct um_id_map *seen, const struct um_id_map *sizes, uint64_t id, uint64_t *pattern)
{
	const uint64_t *number = um_id_map_find(seen, id);
	uint64_t n = number ? *number : seen->n;

	if (!number && um_id_map_add(seen, id, n))
		return -ENOMEM;
	*pattern = um_hash_u64(um_hash_u64(*pattern, n), *um_id_map_find(sizes, id));
	return 0;
}

static int count_op(struct iteration *it, struct um_id_map *seen, const struct um_id_map *sizes, const struct um_op *op)
{
	it->pattern = um_hash_u64(um_hash_u64(it->pattern, UM_EV_OP), um_hash_str(op->name));
	if (op->stream == UM_STREAM_CPU)
		it->pattern = um_hash_u64(it->pattern, 'h');
	for (uint32_t i = 0; i < op->n_uses; i++) {
		const struct um_use *u = &op->uses[i];

		if (add_tensor(seen, sizes, u->id.v, &it->pattern))
			return -ENOMEM;
		it->pattern = um_hash_u64(um_hash_u64(it->pattern, u->off), u->bytes);
		it->pattern = um_hash_u64(um_hash_u64(it->pattern, u->touched), u->access);
	}
	it->ops++;
	it->flop += op->cost.flops;
	it->bytes += op->cost.bytes;
	return 0;
}

/* Allocations and frees belong to the pattern, too: an iteration may free tensors of another kind of iteration. */
static int count_life(struct stat *s, struct um_id_map *seen, const struct um_id_map *sizes, const struct um_event *ev)
{
	struct iteration *it = s->its.n ? &s->its.at[s->its.n - 1] : NULL;

	if (!it)
		return 0;
	it->pattern = um_hash_u64(it->pattern, ev->kind);
	return add_tensor(seen, sizes, ev->kind == UM_EV_ALLOC ? ev->alloc.id.v : ev->free.id.v, &it->pattern);
}

static int count_event(struct stat *s, struct um_id_map *seen, struct um_id_map *sizes, const struct um_event *ev)
{
	int rc;

	switch (ev->kind) {
	case UM_EV_ALLOC:
		s->tensors++;
		if (ev->alloc.role == UM_ROLE_PARAM)
			s->params += ev->alloc.bytes;
		rc = um_id_map_add(sizes, ev->alloc.id.v, ev->alloc.bytes);
		return rc ? rc : count_life(s, seen, sizes, ev);
	case UM_EV_FREE:
		rc = count_life(s, seen, sizes, ev);
		um_id_map_remove(sizes, ev->free.id.v);
		return rc;
	case UM_EV_ITER:
		um_id_map_fini(seen);
		return um_vec_push(&s->its, (struct iteration){0});
	case UM_EV_OP: /* setup, before the first iter */
		return s->its.n ? count_op(&s->its.at[s->its.n - 1], seen, sizes, &ev->op) : 0;
	case UM_EV_DEAD:
		break;
	}
	return 0;
}

static int count_events(struct stat *s)
{
	struct um_id_map sizes = {0}, seen = {0};
	int rc = 0;

	for (size_t i = 0; !rc && i < um_trace_length(s->trace); i++)
		rc = count_event(s, &seen, &sizes, um_trace_event(s->trace, i));
	um_id_map_fini(&sizes);
	um_id_map_fini(&seen);
	return rc;
}

/* Numbers the patterns in order of appearance. */
static int number_kinds(struct stat *s)
{
	struct um_id_map kinds = {0};
	int rc = 0;

	for (size_t i = 0; !rc && i < s->its.n; i++) {
		uint64_t pattern = s->its.at[i].pattern >> 1; /* the map reserves its largest key */
		const uint64_t *kind = um_id_map_find(&kinds, pattern);

		s->its.at[i].kind = kind ? *kind : kinds.n;
		if (!kind)
			rc = um_id_map_add(&kinds, pattern, kinds.n);
	}
	um_id_map_fini(&kinds);
	return rc;
}

/* One letter per kind; kinds past 52 share a sign. */
static char letter(uint64_t kind)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	return kind < sizeof letters - 1 ? letters[kind] : '+';
}

/* Long runs are abbreviated: "A x 60". */
static int draw_shape(struct stat *s)
{
	enum { SHORT = 8, PER = 32 };
	size_t room = s->its.n * PER + 1, len = 0;

	s->shape = malloc(room);
	if (!s->shape || number_kinds(s))
		return -ENOMEM;
	s->shape[0] = '\0';
	for (size_t i = 0, run; i < s->its.n; i += run) {
		char c = letter(s->its.at[i].kind);

		for (run = 1; i + run < s->its.n && s->its.at[i + run].kind == s->its.at[i].kind;)
			run++;
		if (run > SHORT)
			len += (size_t)snprintf(s->shape + len, room - len, "%s%c x %zu%s", i ? " " : "", c, run,
						i + run < s->its.n ? " " : "");
		for (size_t k = 0; run <= SHORT && k < run; k++)
			len += (size_t)snprintf(s->shape + len, room - len, "%c", c);
	}
	return 0;
}

static int stat_file(struct stat *s, const char *file, struct um_diag *diag)
{
	int rc = um_trace_load(&s->trace, file, diag);
	size_t at;

	s->file = file;
	if (rc)
		return rc;
	if (count_events(s) || draw_shape(s))
		return um_diag_set(diag, ENOMEM, 0, "out of memory");
	s->ops_min = s->its.n ? UINT64_MAX : 0;
	for (size_t i = 0; i < s->its.n; i++) {
		s->ops_min = s->its.at[i].ops < s->ops_min ? s->its.at[i].ops : s->ops_min;
		s->ops_max = s->its.at[i].ops > s->ops_max ? s->its.at[i].ops : s->ops_max;
	}
	at = um_trace_largest_op(s->trace, &s->largest);
	s->largest_name = at == SIZE_MAX ? NULL : um_trace_event(s->trace, at)->op.name;
	return 0;
}

/* --- how it is shown -------------------------------------------------------------------------------------------- */

enum { COLUMNS = 15 };

struct row {
	char *cell[COLUMNS];
};

static const struct {
	const char *head; /* title in a table; NULL: not shown */
	const char *key; /* key in json and csv; NULL: not written */
	int text; /* left-aligned, quoted in json */
} columns[COLUMNS] = {
	{"trace", "file", 1},
	{"workload", "workload", 1},
	{"events", "events", 0},
	{"iterations", "iterations", 0},
	{"shape", "shape", 1},
	{"ops/iteration", NULL, 0},
	{NULL, "ops_min", 0},
	{NULL, "ops_max", 0},
	{"tensors", "tensors", 0},
	{"peak MiB", "peak_bytes", 0},
	{"params MiB", "params_bytes", 0},
	{"largest op MiB", "largest_op_bytes", 0},
	{"largest op", "largest_op", 1},
	{"GFLOP, last", "last_flop", 0},
	{"GB moved, last", "last_moved_bytes", 0},
};

static char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *format(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : s;
}

/* Names must neither break lines nor control the terminal. */
static int make_printable(char **s)
{
	char *shown = strdup(tool_text(*s));

	free(*s);
	*s = shown;
	return shown ? 0 : -ENOMEM;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

/* `plain`: bytes and FLOP as integers, for programs; else scaled units. */
static int fill_row(struct row *r, const struct stat *s, int plain)
{
	const struct um_umtrace_header *h = um_trace_header(s->trace);
	struct iteration none = {0};
	const struct iteration *last = s->its.n ? &s->its.at[s->its.n - 1] : &none;
	char **c = r->cell;

	*c++ = format("%s", s->file);
	*c++ = format("%s", h->workload ? h->workload : "");
	*c++ = format("%zu", um_trace_length(s->trace));
	*c++ = format("%zu", s->its.n);
	*c++ = format("%s", s->shape);
	if (s->ops_min == s->ops_max)
		*c++ = format("%" PRIu64, s->ops_min);
	else
		*c++ = format("%" PRIu64 "-%" PRIu64, s->ops_min, s->ops_max);
	*c++ = format("%" PRIu64, s->ops_min);
	*c++ = format("%" PRIu64, s->ops_max);
	*c++ = format("%" PRIu64, s->tensors);
	if (plain) {
		*c++ = format("%" PRIu64, um_trace_peak_bytes(s->trace));
		*c++ = format("%" PRIu64, s->params);
		*c++ = format("%" PRIu64, s->largest);
		*c++ = format("%s", s->largest_name ? s->largest_name : "");
		*c++ = format("%.0f", fmin(last->flop, DBL_MAX));
		*c++ = format("%.0f", fmin(last->bytes, DBL_MAX));
	} else {
		*c++ = format("%.0f", mib(um_trace_peak_bytes(s->trace)));
		*c++ = format("%.0f", mib(s->params));
		*c++ = format("%.0f", mib(s->largest));
		*c++ = format("%s", s->largest_name ? s->largest_name : "-");
		*c++ = format("%.0f", last->flop / 1e9);
		*c++ = format("%.1f", last->bytes / 1e9);
	}
	for (size_t i = 0; i < COLUMNS; i++) {
		if (!r->cell[i])
			return -ENOMEM;
		if (!plain && make_printable(&r->cell[i]))
			return -ENOMEM;
	}
	return 0;
}

static void write_table(struct um_out *o, const struct row *rows, size_t n)
{
	struct table_column shown[COLUMNS];
	struct table t = {.columns = shown};
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);
	int err = to ? 0 : -ENOMEM;

	for (size_t i = 0; i < COLUMNS; i++)
		if (columns[i].head)
			shown[t.n++] = (struct table_column){columns[i].head, columns[i].text, i < 2};
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < COLUMNS; i++)
			if (columns[i].head)
				table_cell(&t, "%s", rows[k].cell[i]);
	if (to)
		err = table_write(&t, to);
	if ((to && fclose(to)) || err)
		um_out_fail(o, -ENOMEM);
	else
		um_out_write(o, text, bytes);
	free(text);
}

static void write_csv(struct um_out *o, const struct row *rows, size_t n)
{
	const char *comma = "";

	for (size_t i = 0; i < COLUMNS; i++) {
		if (!columns[i].key)
			continue;
		um_out_str(o, comma);
		um_out_str(o, columns[i].key);
		comma = ",";
	}
	um_out_str(o, "\r\n"); /* RFC 4180 */
	for (size_t k = 0; k < n; k++) {
		comma = "";
		for (size_t i = 0; i < COLUMNS; i++) {
			if (!columns[i].key)
				continue;
			um_out_str(o, comma);
			if (columns[i].text)
				um_out_csv(o, rows[k].cell[i], 0);
			else
				um_out_str(o, rows[k].cell[i]);
			comma = ",";
		}
		um_out_str(o, "\r\n");
	}
}

static void write_json(struct um_out *o, const struct row *rows, size_t n)
{
	um_out_str(o, "{\"schema\":\"umtrace-stat/1\",\"traces\":[");
	for (size_t k = 0; k < n; k++) {
		um_out_str(o, k ? ",\n{" : "\n{");
		for (size_t i = 0; i < COLUMNS; i++) {
			if (!columns[i].key)
				continue;
			um_out_str(o, i ? "," : "");
			um_out_json_str(o, columns[i].key);
			um_out_str(o, ":");
			if (columns[i].text)
				um_out_json_str(o, rows[k].cell[i]);
			else
				um_out_str(o, rows[k].cell[i]);
		}
		um_out_str(o, "}");
	}
	um_out_str(o, "\n]}\n");
}

/* --- the verbs -------------------------------------------------------------------------------------------------- */

static int complain(int rc, const struct um_diag *diag)
{
	char line[sizeof diag->file + sizeof diag->text + 32];

	fflush(stdout);
	um_diag_line(diag, line, sizeof line);
	fprintf(stderr, "%s\n", tool_text(line));
	return tool_exit_of(rc) == TOOL_INTERNAL ? TOOL_INTERNAL : TOOL_REFUSED;
}

static int worse(int a, int b)
{
	return a > b ? a : b;
}

static int check(char **files)
{
	int status = TOOL_DONE;

	for (; *files; files++) {
		struct um_trace *t;
		struct um_diag diag;
		int rc = um_trace_load(&t, *files, &diag);

		if (rc) {
			status = worse(status, complain(rc, &diag));
			continue;
		}
		printf("%s: ok (%zu events, %" PRIu64 " iterations)\n", tool_text(*files), um_trace_length(t),
		       um_trace_iterations(t));
		um_trace_free(t);
	}
	return status;
}

static int write_rows(const struct row *rows, size_t n,
		      void (*write)(struct um_out *o, const struct row *rows, size_t n))
{
	struct um_diag diag;
	struct um_out *o;
	int rc = um_out_open(&o, "-", &diag);

	if (!rc) {
		write(o, rows, n);
		rc = um_out_close(o, 1, &diag);
	}
	if (rc)
		complain(rc, &diag);
	return rc ? TOOL_INTERNAL : TOOL_DONE;
}

static int stat_files(char **files, size_t n_files, int format)
{
	int plain = format != FORMAT_TABLE, status = TOOL_DONE;
	struct row *rows = calloc(n_files, sizeof *rows);
	size_t n = 0;

	if (!rows) {
		tool_say("trace", "out of memory");
		return TOOL_INTERNAL;
	}
	for (size_t i = 0; i < n_files; i++) {
		struct stat s = {0};
		struct um_diag diag;
		int rc = stat_file(&s, files[i], &diag);

		if (!rc)
			rc = fill_row(&rows[n++], &s, plain) ? um_diag_set(&diag, ENOMEM, 0, "out of memory") : 0;
		stat_fini(&s);
		if (rc)
			status = worse(status, complain(rc, &diag));
	}
	if (status != TOOL_INTERNAL)
		status = worse(status, write_rows(rows, n,
						  !plain		  ? write_table
						  : format == FORMAT_JSON ? write_json
									  : write_csv));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < COLUMNS; k++)
			free(rows[i].cell[k]);
	free(rows);
	return status;
}

struct trace_args {
	int format;
};

enum { TRACE_CHECK = 1, TRACE_STAT = 2 };

static const struct arg options[] = {
	ARG_FORMAT(offsetof(struct trace_args, format), TRACE_STAT, "table json csv",
		   "of stat: table (default), json or csv"),
	ARG_LAST,
};

static int run(int argc, char **argv)
{
	struct trace_args a = {FORMAT_TABLE};
	struct args_found found;
	int code = args_read(&verb_trace, &a, argc, argv, &found), stat;

	if (code != ARGS_GO_ON)
		return code;
	stat = found.n && strcmp(found.operands[0], "stat") == 0;
	if (!stat && (!found.n || strcmp(found.operands[0], "check") != 0)) {
		tool_say("trace", "%s%s%s: expected check or stat, then files", found.n ? "'" : "",
			 found.n ? found.operands[0] : "no verb given", found.n ? "'" : "");
		return TOOL_USAGE;
	}
	if (found.n == 1) {
		tool_say("trace", "no file given: expected umtrace files");
		return TOOL_USAGE;
	}
	if (stat)
		return stat_files(found.operands + 1, (size_t)found.n - 1, a.format);
	return args_only(&verb_trace, &found, TRACE_CHECK, "check") ? check(found.operands + 1) : TOOL_USAGE;
}

const struct tool_verb verb_trace = {
	.name = "trace",
	.run = run,
	.what = "check recorded workloads (umtrace), or count their events",
	.synopsis = "trace check FILE...\ntrace stat [--format table|json|csv] FILE...",
	.about = "check reads each umtrace and prints ok, or its first error with the line. stat prints the size, "
		 "iterations and memory of each. Files are plain or gzip; - is standard input.",
	.options = options,
	.modes = TRACE_CHECK | TRACE_STAT,
	.tail = "Shape has a letter per iteration: equal letters have the same ops, allocations and frees,\n"
		"on the same sizes in the same pattern. Peak is the most bytes of live tensors at once, largest op\n"
		"the most bytes that one op uses: of a tensor only the ranges that ops use, of a table the 2 MiB\n"
		"blocks that are looked up. GFLOP and GB moved are sums over the ops of the last iteration.\n\n"
		"Exit status: 0 done, 2 usage, 3 a file was refused.\n\n"
		"Examples:\n"
		"  umadvise trace check *.umtrace.gz\n"
		"  umadvise trace stat resnet50.umtrace.gz\n"
		"  umadvise trace stat --format json - < resnet50.umtrace\n",
};
