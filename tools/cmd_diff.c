/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_diff.c - umadvise diff: is the second of two runs slower, and what changed
 */
#include "diff.h"
#include "report_form.h"
#include "report_load.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define THRESHOLD 5 /* percent */

static const char usage[] =
	"Usage: umadvise diff A B [OPTION]...\n\n"
	"Compares two runs: whether iterations of B are slower than those of A, beyond their noise and a threshold,\n"
	"and what changed, by kernel, cause and tensor. A and B are whatever 'umadvise report' reads, or what it\n"
	"wrote with --format json.\n\n"
	"  --threshold PERCENT   what changes by no more is the same (default: 5)\n"
	"  --fail-on worse       exit with 1 where B is slower, with 3 where that cannot be said\n"
	"  --iteration PATTERN   NVTX ranges that are iterations, as for 'umadvise report'\n"
	"  --nsys PROGRAM        exports files that are reports (.nsys-rep) (default: nsys, from PATH)\n"
	"  --format F            table (default), csv or json (schema umdiff/1)\n"
	"  -o, --output FILE     write there; - is standard output\n"
	"  --force-overwrite     even if FILE is there already\n"
	"  -q, --quiet           no progress\n"
	"  -h, --help            this text\n\n"
	"Example:\n"
	"  umadvise diff before.sqlite after.sqlite --iteration 'Train step *' --fail-on worse\n";

struct diff_args {
	struct um_report_options o;
	double threshold;
	enum report_format format;
	const char *output, *nsys;
	int force, quiet, fail;
};

static int bad(const char *option, const char *value, const char *expected)
{
	tool_say("diff", "%s '%s': expected %s", option, value, expected);
	return TOOL_USAGE + 1;
}

static int read_option(struct diff_args *a, int c)
{
	char *end;

	switch (c) {
	case 't':
		a->threshold = strtod(optarg, &end);
		return end == optarg || *end || !(a->threshold >= 0 && a->threshold <= 1e6)
		               ? bad("--threshold", optarg, "percent, 0 or more")
		               : 0;
	case 'l':
		a->fail = strcmp(optarg, "worse") == 0;
		return a->fail ? 0 : bad("--fail-on", optarg, "worse");
	case 'i':
		report_iteration_read(&a->o, optarg);
		return 0;
	case 'e':
		a->nsys = optarg;
		return 0;
	case 'f':
		a->format = strcmp(optarg, "csv") == 0    ? REPORT_CSV
		            : strcmp(optarg, "json") == 0 ? REPORT_JSON
		                                          : REPORT_TABLE;
		return a->format == REPORT_TABLE && strcmp(optarg, "table") != 0
		               ? bad("--format", optarg, "table, csv or json")
		               : 0;
	case 'o':
		a->output = optarg;
		return 0;
	case 'F':
		a->force = 1;
		return 0;
	case 'q':
		a->quiet = 1;
		return 0;
	case 'h':
		fputs(usage, stdout);
		return TOOL_DONE + 1;
	default:
		tool_say("diff", "'umadvise diff --help' tells the options");
		return TOOL_USAGE + 1;
	}
}

static int read_args(struct diff_args *a, int argc, char **argv)
{
	static const struct option options[] = {{"threshold", required_argument, NULL, 't'},
	                                        {"fail-on", required_argument, NULL, 'l'},
	                                        {"iteration", required_argument, NULL, 'i'},
	                                        {"nsys", required_argument, NULL, 'e'},
	                                        {"format", required_argument, NULL, 'f'},
	                                        {"output", required_argument, NULL, 'o'},
	                                        {"force-overwrite", no_argument, NULL, 'F'},
	                                        {"quiet", no_argument, NULL, 'q'},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {NULL, 0, NULL, 0}};
	int c, code = 0;

	*a = (struct diff_args){.threshold = THRESHOLD};
	optind = 1;
	while (!code && (c = getopt_long(argc, argv, "o:qh", options, NULL)) != -1)
		code = read_option(a, c);
	if (code)
		return code;
	if (argc - optind != 2) {
		tool_say("diff", "expected two files, not %d", argc - optind);
		return TOOL_USAGE + 1;
	}
	return 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static int say_why(struct um_diag *diag, int err)
{
	char line[800];

	if (err == -ENOMEM)
		um_diag_set(diag, ENOMEM, 0, "no memory");
	um_diag_line(diag, line, sizeof line);
	tool_say("diff", "%s", line);
	return tool_exit_of(err);
}

/* A finished report, by way of the document that it would be: one way of comparing for both. */
static int sheets_of(const struct report_loaded *l, const char *file, struct um_sheets *out)
{
	struct report_view v = {.file = file, .findings = {&l->report, &l->capture, NULL}};
	struct report_args *a = calloc(1, sizeof *a);
	struct um_diag diag;
	struct um_out *json;
	void *text = NULL;
	size_t bytes = 0;
	int err = a ? um_out_open_mem(&json, 0) : -ENOMEM;

	um_diag_init(&diag, file);
	if (!err) {
		for (int i = 0; i < UM_TABLES; i++) {
			int wanted = strcmp(um_tables[i].name, "iterations") == 0;

			for (unsigned k = 0; k < diff_n_tables; k++)
				wanted |= strcmp(um_tables[i].name, diff_tables[k].name) == 0;
			if (wanted)
				a->tables[a->n_tables++].table = &um_tables[i];
		}
		report_json(json, a, &v);
		err = um_out_take(json, &text, &bytes);
	}
	if (!err)
		err = um_sheets_parse(out, text, bytes, &diag);
	free(text);
	free(a);
	return err ? say_why(&diag, err) : 0;
}

static int read_side(const struct diff_args *a, const char *file, struct um_sheets *out)
{
	const struct report_source source = {.verb = "diff", .file = file, .nsys = a->nsys, .quiet = a->quiet};
	struct report_loaded l;
	struct um_diag diag;
	int code, err;

	if (um_sheets_is(file)) {
		err = um_sheets_read(out, file, &diag);
		return err ? say_why(&diag, err) : 0;
	}
	report_load_init(&l, &a->o);
	code = report_load(&l, &source);
	if (!code)
		code = sheets_of(&l, file, out);
	report_unload(&l);
	return code;
}

static int show(const struct diff_args *a, const struct diff *d)
{
	struct um_diag diag;
	struct um_out *out;
	int err = um_out_open(&out, a->output ? a->output : "-", &diag);

	if (!err) {
		if (a->format == REPORT_JSON)
			diff_json(out, d);
		else if (a->format == REPORT_CSV)
			diff_csv(out, d);
		else
			diff_text(out, d);
		err = um_out_close(out, 1, &diag);
	}
	return err ? (say_why(&diag, err), TOOL_INTERNAL) : TOOL_DONE;
}

int cmd_diff(int argc, char **argv)
{
	struct diff d = {0};
	struct diff_args a;
	struct um_diag diag;
	struct stat st;
	int code = read_args(&a, argc, argv), err;

	if (code)
		return code - 1;
	if (a.output && strcmp(a.output, "-") != 0 && !a.force && !stat(a.output, &st) && S_ISREG(st.st_mode)) {
		tool_say("diff", "%s is there already: --force-overwrite writes over it", a.output);
		return TOOL_USAGE;
	}
	d.threshold = a.threshold;
	for (int s = 0; s < 2 && !code; s++) {
		d.file[s] = argv[optind + s];
		code = read_side(&a, d.file[s], &d.sheets[s]);
	}
	err = code ? 0 : diff_compare(&d);
	um_diag_init(&diag, "");
	if (err)
		code = say_why(&diag, err);
	if (!code)
		code = show(&a, &d);
	if (!code && a.fail && d.verdict == DIFF_UNKNOWN) {
		tool_say("diff", "%s and %s cannot be compared: no iterations, and no kernels, in both", d.file[0],
		         d.file[1]);
		code = TOOL_REFUSED;
	}
	if (!code && a.fail && d.verdict == DIFF_MORE)
		code = TOOL_FAILED;
	diff_fini(&d);
	return code;
}
