/* SPDX-License-Identifier: Apache-2.0 */
#include "report_form.h"

#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 20 /* of a table in a terminal */
#define PAGE_ROWS 200 /* of a table in a page */

static int bad(const char *option, const char *value, const char *expected)
{
	tool_say("report", "%s '%s': expected %s", option, value, expected);
	return TOOL_USAGE;
}

static const struct {
	const char *name;
	double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

/* "3", "1.5s"; an empty text leaves the value alone. */
static int read_time(const char *text, size_t n, int64_t *out)
{
	double x, ns = 0;
	char *end;

	if (!n)
		return 0;
	x = strtod(text, &end);
	if (end == text)
		return -EINVAL;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strlen(units[i].name) == (size_t)(text + n - end) &&
		    strncmp(units[i].name, end, strlen(units[i].name)) == 0)
			ns = units[i].ns;
	if (end == text + n)
		ns = 1;
	if (ns == 0 || !(x * ns > -9e18 && x * ns < 9e18))
		return -EINVAL;
	*out = (int64_t)(x * ns);
	return 0;
}

static const char *read_window(void *args, const char *text)
{
	struct report_args *a = args;
	const char *slash = strchr(text, '/');

	a->o.from = INT64_MIN;
	a->o.to = INT64_MAX;
	return !slash || read_time(text, (size_t)(slash - text), &a->o.from) ||
			       read_time(slash + 1, strlen(slash + 1), &a->o.to)
		       ? text
		       : NULL;
}

/* "ops:rows=10" */
static int read_table(struct report_args *a, char *word)
{
	struct report_choice choice = {NULL, a->format == REPORT_TABLE ? ROWS : 0};
	char *colon = strchr(word, ':'), *end;

	if (colon)
		*colon = '\0';
	for (int i = 0; i < UM_TABLES; i++)
		if (strcmp(um_tables[i]->name, word) == 0)
			choice.table = um_tables[i];
	if (!choice.table)
		return bad("--report", word, "a table of --help-reports");
	if (colon) {
		int digit = strncmp(colon + 1, "rows=", 5) == 0 && colon[6] >= '0' && colon[6] <= '9';

		choice.rows = digit ? strtoull(colon + 6, &end, 10) : 0;
		if (!digit || *end)
			return bad("--report", colon + 1, "rows=N, where 0 is all");
	}
	for (unsigned i = 0; i < a->n_tables; i++)
		if (a->tables[i].table == choice.table)
			return bad("--report", word, "each table once");
	a->tables[a->n_tables++] = choice;
	return ARGS_GO_ON;
}

static void every_table(struct report_args *a)
{
	for (int i = 0; i < UM_TABLES; i++)
		a->tables[a->n_tables++] = (struct report_choice){um_tables[i], PAGE_ROWS};
}

static int one_page(const struct report_args *a)
{
	if (a->format != REPORT_HTML || a->n_files == 1 || a->merge)
		return ARGS_GO_ON;
	tool_say("report", "--format html: expected one FILE, or --merge");
	return TOOL_USAGE;
}

/* Read after the format, which decides the default number of rows. */
static int read_tables(struct report_args *a, const char *list)
{
	static const char *const defaults[] = {
		"findings,summary,library,causes,processes,ranks,side-by-side,iterations,tensors,ops,announced,hints,"
		"missing",
		"summary",
		"findings,summary,library,causes,iterations,ranks,side-by-side,tensors,ops,announced,hints,ranges,"
		"processes,devices",
		NULL, "summary"};
	char *copy, *rest, *word;
	int code;

	a->chosen = list != NULL;
	a->o.views = a->format == REPORT_HTML;
	if (!list && !defaults[a->format])
		return every_table(a), one_page(a);
	rest = copy = strdup(list ? list : defaults[a->format]);
	code = copy ? ARGS_GO_ON : TOOL_INTERNAL;
	while (code == ARGS_GO_ON && (word = strsep(&rest, ",")))
		code = read_table(a, word);
	free(copy);
	if (code == ARGS_GO_ON && a->format == REPORT_CSV && (a->n_tables > 1 || (a->n_files > 1 && !a->merge))) {
		tool_say("report", "--format csv: expected one FILE, or --merge, and one --report");
		code = TOOL_USAGE;
	}
	if (code == ARGS_GO_ON && a->format == REPORT_PERFETTO && (list || a->n_files > 1 || a->merge || !a->output)) {
		tool_say("report", "--format perfetto: expected one FILE, -o FILE, no --report and no --merge");
		code = TOOL_USAGE;
	}
	return code == ARGS_GO_ON ? one_page(a) : code;
}

static void list_tables(int json)
{
	if (json)
		fputs("{\"schema\": \"umtables/1\", \"tables\": [", stdout);
	for (int i = 0; i < UM_TABLES; i++)
		if (json)
			printf("%s\"%s\"", i ? ", " : "", um_tables[i]->name);
		else
			printf("%-17s %s\n", um_tables[i]->name, um_tables[i]->about);
	if (json)
		puts("]}");
}

static const char *table_name(unsigned i)
{
	return i < UM_TABLES ? um_tables[i]->name : NULL;
}

static const char *read_iteration(void *args, const char *text)
{
	struct um_report_options *o = &((struct report_args *)args)->o;
	static const struct {
		const char *word;
		enum um_report_seek seek;
	} words[] = {{"auto", UM_SEEK_AUTO}, {"repetition", UM_SEEK_REPETITION}, {"none", UM_SEEK_NONE}};

	o->iteration = text;
	o->seek = UM_SEEK_PATTERN;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i].word, text) == 0)
			o->seek = words[i].seek;
	return NULL;
}

#define AT(field) offsetof(struct report_args, field)

const struct arg report_options[] = {
	ARG(ARG_READ, "iteration", 0, 0, "PATTERN", .read = read_iteration,
	    .help = "NVTX ranges that mark iterations: a shell pattern for NAME or DOMAIN:NAME; or auto (default:"
		    " the ranges of the domain umadvise; otherwise the most likely ranges; otherwise repetitions "
		    "of kernels), repetition (of kernels, even if ranges exist) or none"),
	ARG(ARG_TEXT, "report", REPORT_VERB, AT(list), "T[:rows=N],...", .word = table_name,
	    .help = "tables to show, and how many rows (--help-reports lists them)"),
	ARG(ARG_LIST, "help-reports", REPORT_VERB, 0, NULL, .list = list_tables, .help = "the tables"),
	ARG(ARG_FLAG, "merge", REPORT_VERB, AT(merge), NULL,
	    .help = "one report on all FILEs as processes of one run: sums over all of them, and the iterations "
		    "of processes side by side, each with its file"),
	ARG(ARG_REAL, "threshold", REPORT_DIFF, AT(threshold), "PERCENT", .most = 1000000, .expected = "a percentage",
	    .help = "smaller changes count as equal (default: 5)"),
	ARG_FORMAT(AT(format), REPORT_VERB, "table csv json html perfetto",
		   "table (default), csv (one table), json (schema umreport/1), html (a self-contained page: "
		   "drawings, findings, tables) or perfetto (the run over time, for Perfetto and chrome://tracing)"),
	ARG_FORMAT(AT(format), REPORT_DIFF, "table csv json", "table (default), csv or json (schema umdiff/1)"),
	ARG_OUTPUT(AT(output), "write to FILE (gzip if the name ends in .gz; -: standard output)"),
	ARG(ARG_FLAG, "force-overwrite", 0, AT(force), NULL, .help = "no effect; for compatibility with nsys"),
	ARG(ARG_CHOICE, "timeunit", REPORT_VERB, AT(unit_index), "UNIT", .words = "ns us ms s",
	    .help = "unit of times in tables and pages: ns, us, ms (default) or s"),
	ARG(ARG_OFF, "no-header", REPORT_VERB, AT(header), NULL, .help = "no titles of columns"),
	ARG(ARG_READ, "filter-time", REPORT_VERB, 0, "BEGIN/END", .read = read_window,
	    .expected = "BEGIN/END, in ns or with us, ms, s",
	    .help = "only activity that begins at BEGIN or later and before END: ns, or with us, ms, s; either "
		    "may be left out"),
	ARG(ARG_TEXT, "filter-nvtx", REPORT_VERB, AT(o.within), "PATTERN",
	    .help = "only activity that begins in a matching NVTX range"),
	ARG(ARG_TEXT, "workload", REPORT_VERB, AT(workload), "FILE",
	    .help = "the recorded workload of the run (umtrace): compares the run with the lower bound of any "
		    "plan, for --profile and --budget"),
	ARG_PROFILE(AT(profile), REPORT_VERB),
	ARG_BUDGET(AT(budget), REPORT_VERB, 2 << 20, "device memory for --workload (default: the profile's)"),
	ARG(ARG_CHOICE, "fail-on", REPORT_VERB, AT(fail_on), "LEVEL", .words = "low medium high",
	    .help = "exit with 1 if a finding has this severity or a higher one: low, medium or high"),
	ARG(ARG_CHOICE, "fail-on", REPORT_DIFF, AT(fail_on), "worse", .words = "worse",
	    .help = "exit with 1 if B is slower, with 3 if the comparison has no verdict"),
	ARG(ARG_TEXT, "nsys", 0, AT(nsys), "PROGRAM",
	    .help = "program that exports .nsys-rep files (default: nsys, from PATH)"),
	ARG(ARG_FLAG, "quiet", 0, AT(quiet), NULL, .letter = 'q', .help = "no progress, no notes"),
	ARG_LAST,
};

int report_args_read(struct report_args *a, const struct tool_verb *verb, int argc, char **argv)
{
	struct args_found found;
	int code;

	*a = (struct report_args){.unit_index = 2, .header = 1, .profile = "v100", .fail_on = -1, .threshold = 5};
	code = args_read(verb, a, argc, argv, &found);
	if (code != ARGS_GO_ON)
		return code;
	a->unit = units[a->unit_index].name;
	a->unit_ns = units[a->unit_index].ns;
	a->files = found.operands;
	a->n_files = found.n;
	if (verb->modes == REPORT_DIFF && a->n_files != 2) {
		tool_say("diff", "expected two files, not %d", a->n_files);
		return TOOL_USAGE;
	}
	if (!a->n_files) {
		tool_say("report", "no file given: expected an export of 'nsys export --type sqlite'");
		return TOOL_USAGE;
	}
	return verb->modes == REPORT_DIFF ? ARGS_GO_ON : read_tables(a, a->list);
}
