/* SPDX-License-Identifier: Apache-2.0 */
#include "report_form.h"

#include "tool.h"

#include "base/size.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 20 /* of a table in a terminal */
#define PAGE_ROWS 200 /* of a table in a page */

static const char usage[] =
	"Usage: umadvise report FILE... [OPTION]...\n\n"
	"Says what unified memory did in a run, from an export of Nsight Systems (nsys export --type sqlite): page\n"
	"faults and migrations by tensor, by kernel, by iteration and by cause. Of the library's own log\n"
	"(UMADVISE_REPORT=FILE) it says what that has: iterations, tensors, operations and hints.\n\n"
	"  --iteration PATTERN   NVTX ranges that are iterations: a shell pattern over NAME or DOMAIN:NAME; or auto\n"
	"                        (default: the ranges of the domain umadvise; without any, the likeliest ranges;\n"
	"                        without those, what repeats in the order of kernels), repetition (of kernels,\n"
	"                        whatever is marked) or none\n"
	"  --report T[:rows=N],...\n"
	"                        the tables to show, and how many rows (--help-reports lists them)\n"
	"  --help-reports        the tables\n"
	"  --merge               all FILEs, as of the processes of one run, as one report: sums over all of them, and\n"
	"                        processes and their iterations beside each other, each with its file\n"
	"  --format F            table (default), csv (one table), json (schema umreport/1), html (a page of its\n"
	"                        own: drawings, findings, tables) or trace (the run over time, for Perfetto and\n"
	"                        chrome://tracing)\n"
	"  -o, --output FILE     write there, gzip if the name ends in .gz; - is standard output\n"
	"  --force-overwrite     even if FILE is there already\n"
	"  --timeunit U          of tables in a terminal and in a page: ns, us, ms (default) or s\n"
	"  --no-header           no titles of columns\n"
	"  --filter-time A/B     only what begins at A or later, and before B: ns, or with us, ms, s; either may be\n"
	"                        left out\n"
	"  --filter-nvtx PATTERN only what begins in such a range\n"
	"  --trace FILE          the workload that ran (umtrace): says how far it is from what no plan can beat, on\n"
	"  --profile NAME|FILE   this device (default: v100), with\n"
	"  --budget BYTES        so much memory; a number with KiB, MiB or GiB (default: the device's)\n"
	"  --fail-on LEVEL       exit with 1 where there is a finding as severe as this or more: low, medium, high\n"
	"  --nsys PROGRAM        exports FILEs that are reports (.nsys-rep) (default: nsys, from PATH)\n"
	"  -q, --quiet           no progress, no notes\n"
	"  -h, --help            this text\n\n"
	"Examples:\n"
	"  umadvise report run.sqlite --iteration 'Train step *'\n"
	"  umadvise report run.sqlite --report ops:rows=50 --format csv -o ops.csv\n"
	"  umadvise report run.sqlite --fail-on medium >/dev/null || echo unified memory costs time\n"
	"  umadvise report --merge rank*.sqlite --iteration 'Train step *'\n"
	"  umadvise report run.sqlite --format html -o report.html\n"
	"  umadvise report run.sqlite --format trace -o run.json.gz\n";

static int bad(const char *option, const char *value, const char *expected)
{
	tool_say("report", "%s '%s': expected %s", option, value, expected);
	return TOOL_USAGE + 1;
}

static const struct {
	const char *name;
	double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

static int unit_of(const char *text, double *ns)
{
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(units[i].name, text) == 0) {
			*ns = units[i].ns;
			return 0;
		}
	return -EINVAL;
}

/* "3", "1.5s"; an empty text leaves the value alone. */
static int read_time(char *text, int64_t *out)
{
	double n, ns = 1;
	char *end;

	if (!*text)
		return 0;
	n = strtod(text, &end);
	if (end == text || (*end && unit_of(end, &ns)) || !(n * ns > -9e18 && n * ns < 9e18))
		return -EINVAL;
	*out = (int64_t)(n * ns);
	return 0;
}

static int read_window(struct report_args *a, const char *text)
{
	char copy[128], *slash;

	snprintf(copy, sizeof copy, "%s", text);
	slash = strchr(copy, '/');
	a->o.from = INT64_MIN;
	a->o.to = INT64_MAX;
	if (slash)
		*slash = '\0';
	if (!slash || strlen(text) >= sizeof copy || read_time(copy, &a->o.from) || read_time(slash + 1, &a->o.to))
		return bad("--filter-time", text, "BEGIN/END, in ns or with us, ms, s");
	return 0;
}

/* "ops:rows=10" */
static int read_table(struct report_args *a, char *word)
{
	struct report_choice choice = {NULL, a->format == REPORT_TABLE ? ROWS : 0};
	char *colon = strchr(word, ':'), *end;

	if (colon)
		*colon = '\0';
	for (int i = 0; i < UM_TABLES; i++)
		if (strcmp(um_tables[i].name, word) == 0)
			choice.table = &um_tables[i];
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
	return 0;
}

static void every_table(struct report_args *a)
{
	for (int i = 0; i < UM_TABLES; i++)
		a->tables[a->n_tables++] = (struct report_choice){&um_tables[i], PAGE_ROWS};
}

static int one_page(const struct report_args *a)
{
	if (a->format != REPORT_HTML || a->n_files == 1 || a->merge)
		return 0;
	tool_say("report", "--format html: expected one FILE, or --merge");
	return TOOL_USAGE + 1;
}

/* Read when the format is known: it says how many rows are shown where nothing else is said. */
static int read_tables(struct report_args *a, const char *list)
{
	static const char *const defaults[] = {
		"findings,summary,library,causes,processes,side-by-side,iterations,tensors,ops,announced,hints,missing",
		"summary",
		"findings,summary,library,causes,iterations,side-by-side,tensors,ops,announced,hints,ranges,"
		"processes,devices", NULL, "summary"};
	char *copy, *rest, *word;
	int code;

	a->chosen = list != NULL;
	a->o.views = a->format == REPORT_HTML;
	if (!list && !defaults[a->format])
		return every_table(a), one_page(a);
	rest = copy = strdup(list ? list : defaults[a->format]);
	code = copy ? 0 : TOOL_INTERNAL + 1;
	while (!code && (word = strsep(&rest, ",")))
		code = read_table(a, word);
	free(copy);
	if (!code && a->format == REPORT_CSV && (a->n_tables > 1 || (a->n_files > 1 && !a->merge))) {
		tool_say("report", "--format csv: expected one FILE, or --merge, and one --report");
		code = TOOL_USAGE + 1;
	}
	if (!code && a->format == REPORT_TRACE && (list || a->n_files > 1 || a->merge || !a->output)) {
		tool_say("report", "--format trace: expected one FILE, -o FILE, no --report and no --merge");
		code = TOOL_USAGE + 1;
	}
	return code ? code : one_page(a);
}

static int read_format(struct report_args *a, const char *text)
{
	static const char *const formats[] = {"table", "csv", "json", "html", "trace"};

	for (int i = 0; i < 5; i++)
		if (strcmp(formats[i], text) == 0) {
			a->format = (enum report_format)i;
			return 0;
		}
	return bad("--format", text, "table, csv, json, html or trace");
}

static int read_level(struct report_args *a, const char *text)
{
	for (int i = 0; i < UM_SEVERITIES; i++)
		if (strcmp(um_severity_name((enum um_severity)i), text) == 0) {
			a->fail_on = i;
			return 0;
		}
	return bad("--fail-on", text, "low, medium or high");
}

static int list_tables(void)
{
	for (int i = 0; i < UM_TABLES; i++)
		printf("%-17s %s\n", um_tables[i].name, um_tables[i].about);
	return TOOL_DONE + 1;
}

static int read_option(struct report_args *a, int c)
{
	switch (c) {
	case 'i':
		report_iteration_read(&a->o, optarg);
		return 0;
	case 'H':
		return list_tables();
	case 'f':
		return read_format(a, optarg);
	case 'o':
		a->output = optarg;
		return 0;
	case 'F':
		a->force = 1;
		return 0;
	case 'u':
		a->unit = optarg;
		return unit_of(optarg, &a->unit_ns) ? bad("--timeunit", optarg, "ns, us, ms or s") : 0;
	case 'N':
		a->header = 0;
		return 0;
	case 'm':
		a->merge = 1;
		return 0;
	case 't':
		return read_window(a, optarg);
	case 'n':
		a->o.within = optarg;
		return 0;
	case 'T':
		a->trace = optarg;
		return 0;
	case 'p':
		a->profile = optarg;
		return 0;
	case 'b':
		if (um_size_parse(optarg, &a->budget) || !a->budget)
			return bad("--budget", optarg, "bytes: a number with KiB, MiB or GiB");
		return 0;
	case 'l':
		return read_level(a, optarg);
	case 'e':
		a->nsys = optarg;
		return 0;
	case 'q':
		a->quiet = 1;
		return 0;
	case 'h':
		fputs(usage, stdout);
		return TOOL_DONE + 1;
	default:
		tool_say("report", "'umadvise report --help' tells the options");
		return TOOL_USAGE + 1;
	}
}

void report_iteration_read(struct um_report_options *o, const char *text)
{
	static const struct {
		const char *word;
		enum um_report_seek seek;
	} words[] = {{"auto", UM_SEEK_AUTO}, {"repetition", UM_SEEK_REPETITION}, {"none", UM_SEEK_NONE}};

	o->iteration = text;
	o->seek = UM_SEEK_PATTERN;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i].word, text) == 0)
			o->seek = words[i].seek;
}

int report_args_read(struct report_args *a, int argc, char **argv)
{
	static const struct option options[] = {{"iteration", required_argument, NULL, 'i'},
	                                        {"report", required_argument, NULL, 'r'},
	                                        {"help-reports", no_argument, NULL, 'H'},
	                                        {"format", required_argument, NULL, 'f'},
	                                        {"output", required_argument, NULL, 'o'},
	                                        {"force-overwrite", no_argument, NULL, 'F'},
	                                        {"timeunit", required_argument, NULL, 'u'},
	                                        {"no-header", no_argument, NULL, 'N'},
	                                        {"merge", no_argument, NULL, 'm'},
	                                        {"filter-time", required_argument, NULL, 't'},
	                                        {"filter-nvtx", required_argument, NULL, 'n'},
	                                        {"trace", required_argument, NULL, 'T'},
	                                        {"profile", required_argument, NULL, 'p'},
	                                        {"budget", required_argument, NULL, 'b'},
	                                        {"fail-on", required_argument, NULL, 'l'},
	                                        {"nsys", required_argument, NULL, 'e'},
	                                        {"quiet", no_argument, NULL, 'q'},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {NULL, 0, NULL, 0}};
	const char *tables = NULL;
	int c, code = 0;

	*a = (struct report_args){.unit = "ms", .unit_ns = 1e6, .header = 1, .profile = "v100", .fail_on = -1};
	optind = 1;
	while (!code && (c = getopt_long(argc, argv, "o:qh", options, NULL)) != -1) {
		if (c == 'r')
			tables = optarg;
		else
			code = read_option(a, c);
	}
	if (code)
		return code;
	a->files = argv + optind;
	a->n_files = argc - optind;
	if (!a->n_files) {
		tool_say("report", "no file given: expected what 'nsys export --type sqlite' writes");
		return TOOL_USAGE + 1;
	}
	return read_tables(a, tables);
}
