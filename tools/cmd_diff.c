/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_diff.c - umadvise diff: is the second of two runs slower, and what changed
 */
#include "diff.h"
#include "report_form.h"
#include "report_load.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading ------------------------------------------------------------------------------------------------------ */

static int report_reason(struct um_diag *diag, int err)
{
	char line[800];

	if (err == -ENOMEM)
		um_diag_set(diag, ENOMEM, 0, "no memory");
	um_diag_line(diag, line, sizeof line);
	tool_say("diff", "%s", line);
	return tool_exit_of(err);
}

/* Converts a finished report to its JSON document, so that both kinds of input are compared alike. */
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
			int wanted = i == UM_TABLE_ITERATIONS || i == UM_TABLE_DEVICES || i == UM_TABLE_PROCESSES;

			for (unsigned k = 0; k < diff_n_tables; k++)
				wanted |= strcmp(um_tables[i]->name, diff_tables[k].name) == 0;
			if (wanted)
				a->tables[a->n_tables++].table = um_tables[i];
		}
		report_json(json, a, &v);
		err = um_out_take(json, &text, &bytes);
	}
	if (!err)
		err = um_sheets_parse(out, text, bytes, &diag);
	free(text);
	free(a);
	return err ? report_reason(&diag, err) : 0;
}

static int read_side(const struct report_args *a, const char *file, struct um_sheets *out)
{
	const struct report_source source = {.verb = "diff", .file = file, .nsys = a->nsys, .quiet = a->quiet};
	struct report_loaded l;
	struct um_diag diag;
	int code, err;

	if (um_sheets_is(file)) {
		err = um_sheets_read(out, file, &diag);
		return err ? report_reason(&diag, err) : 0;
	}
	report_load_init(&l, &a->o);
	code = report_load(&l, &source);
	if (!code)
		code = sheets_of(&l, file, out);
	report_unload(&l);
	return code;
}

static int show(const struct report_args *a, const struct diff *d)
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
	return err ? (report_reason(&diag, err), TOOL_INTERNAL) : TOOL_DONE;
}

static int run(int argc, char **argv)
{
	struct diff d = {0};
	struct report_args a;
	struct um_diag diag;
	int code = report_args_read(&a, &verb_diff, argc, argv), err;

	if (code != ARGS_GO_ON)
		return code;
	code = TOOL_DONE;
	d.threshold = a.threshold;
	for (int s = 0; s < 2 && !code; s++) {
		d.file[s] = a.files[s];
		code = read_side(&a, d.file[s], &d.sheets[s]);
	}
	err = code ? 0 : diff_compare(&d);
	um_diag_init(&diag, "");
	if (err)
		code = report_reason(&diag, err);
	if (!code)
		code = show(&a, &d);
	if (!code && a.fail_on == 0 && d.verdict == DIFF_UNKNOWN) {
		tool_say("diff", "cannot compare %s and %s: they share neither iterations nor kernels", d.file[0],
			 d.file[1]);
		code = TOOL_REFUSED;
	}
	if (!code && a.fail_on == 0 && d.verdict == DIFF_MORE)
		code = TOOL_FAILED;
	diff_fini(&d);
	return code;
}

const struct tool_verb verb_diff = {
	.name = "diff",
	.run = run,
	.what = "compare two recorded runs: is the second slower, and what changed",
	.synopsis = "diff A B [OPTION]...",
	.about = "Compares two runs: whether iterations of B are slower than those of A, beyond noise and a "
		 "threshold, and which kernels, causes and tensors changed. A and B are inputs of 'umadvise "
		 "report', or its documents (--format json).",
	.options = report_options,
	.modes = REPORT_DIFF,
	.tail = "Example:\n"
		"  umadvise diff before.sqlite after.sqlite --iteration 'Train step *' --fail-on worse\n",
};
