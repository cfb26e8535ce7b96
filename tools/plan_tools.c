/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_tools.c - umadvise plan --show, --diff: look at plans that were written
 */
#include "plan_view.h"
#include "tool.h"

#include <getopt.h>
#include <string.h>

static int finish(int code)
{
	if ((fflush(stdout) || ferror(stdout)) && code < TOOL_INTERNAL) {
		tool_say("plan", "standard output: could not be written");
		code = TOOL_INTERNAL;
	}
	return code;
}

/* Where the drawing goes to standard output, the text does not. */
static int is_output(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

static int show(const char *path, const char *svg, const char *timeline)
{
	struct plan_view v;
	int code = plan_view_open(&v, path);

	if (!code && !is_output(svg) && !is_output(timeline) && plan_show(&v, stdout))
		code = TOOL_INTERNAL;
	if (!code && svg)
		code = plan_svg_write(&v, svg);
	if (!code && timeline)
		code = plan_timeline_write(&v, timeline);
	plan_view_close(&v);
	return code;
}

static int diff(const char *a, const char *b)
{
	struct plan_view v[2];
	int code = plan_view_open(&v[0], a), other = plan_view_open(&v[1], b);

	if (other > code)
		code = other;
	if (!code)
		code = plan_diff(&v[0], &v[1], stdout);
	plan_view_close(&v[0]);
	plan_view_close(&v[1]);
	return code;
}

int plan_tools_main(int argc, char **argv, const char *usage)
{
	static const struct option options[] = {{"show", no_argument, NULL, 's'},
	                                        {"diff", no_argument, NULL, 'd'},
	                                        {"svg", required_argument, NULL, 'v'},
	                                        {"timeline", required_argument, NULL, 't'},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {NULL, 0, NULL, 0}};
	const char *svg = NULL, *timeline = NULL;
	int c, showing = 0, diffing = 0, n;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return TOOL_DONE;
		}
		if (c == '?') {
			tool_say("plan", "'umadvise plan --help' tells the options");
			return TOOL_USAGE;
		}
		if (c == 'v')
			svg = optarg;
		if (c == 't')
			timeline = optarg;
		showing |= c == 's';
		diffing |= c == 'd';
	}
	n = argc - optind;
	if (showing == diffing || n != (diffing ? 2 : 1) || (diffing && (svg || timeline))) {
		tool_say("plan", "expected --show FILE [--svg FILE] [--timeline FILE], or --diff FILE FILE");
		return TOOL_USAGE;
	}
	return finish(diffing ? diff(argv[optind], argv[optind + 1]) : show(argv[optind], svg, timeline));
}
