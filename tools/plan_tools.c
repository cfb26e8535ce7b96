/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_tools.c - umadvise plan --show and --diff: shows and compares plan files
 */
#include "plan_view.h"

#include "io/out.h"
#include "play_args.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/* A drawing on standard output excludes other output. */
static int is_output(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* Copies the finished text to --output as a whole. */
static int deliver(const struct play_args *a, const char *text, size_t n)
{
	struct um_diag diag;
	struct um_out *out;
	char line[800];
	int err = um_out_open(&out, a->output ? a->output : "-", &diag);

	if (!err) {
		um_out_write(out, text, n);
		err = um_out_close(out, 1, &diag);
	}
	if (!err)
		return TOOL_DONE;
	um_diag_line(&diag, line, sizeof line);
	tool_say("plan", "%s", line);
	return TOOL_INTERNAL;
}

static int show(const struct play_args *a)
{
	int json = a->format == FORMAT_JSON, code = TOOL_DONE, drawn = is_output(a->svg) || is_output(a->timeline);
	struct plan_view v[2];
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return TOOL_INTERNAL;
	for (int i = 0; i < a->n_traces; i++) {
		int one = plan_view_open(&v[i], a->traces[i]);

		code = one > code ? one : code;
	}
	if (!code && a->diff)
		code = plan_diff(&v[0], &v[1], json, to);
	else if (!code && (json ? plan_show_json(&v[0], to) : plan_show(&v[0], to)))
		code = TOOL_INTERNAL;
	if (fclose(to) && !code)
		code = TOOL_INTERNAL;
	if (!code && !(drawn && !a->output))
		code = deliver(a, text, bytes);
	if (!code && a->svg)
		code = plan_svg_write(&v[0], a->svg);
	if (!code && a->timeline)
		code = plan_timeline_write(&v[0], a->timeline);
	for (int i = 0; i < a->n_traces; i++)
		plan_view_close(&v[i]);
	free(text);
	return code;
}

int plan_tools_main(const struct play_args *a)
{
	if (a->n_traces != (a->diff ? 2 : 1)) {
		tool_say("plan", "expected --show FILE [--svg FILE] [--timeline FILE], or --diff FILE FILE");
		return TOOL_USAGE;
	}
	if (a->format == FORMAT_CSV) {
		tool_say("plan", "--format csv: plans are shown as table or json");
		return TOOL_USAGE;
	}
	return show(a);
}
