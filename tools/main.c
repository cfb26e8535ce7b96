/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - umadvise VERB ...
 */
#include "args.h"
#include "output.h"
#include "tool.h"

#include "umadvise.h"

#include "base/text.h"
#include "io/json_in.h"
#include "schemes/deepum.h"
#include "schemes/schemes.h"
#include "play/player.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct tool_verb *const tool_verbs[] = {
	&verb_simulate, &verb_plan,   &verb_report, &verb_diff, &verb_calibrate,
	&verb_dryrun,	&verb_doctor, &verb_trace,  NULL,
};

void tool_say(const char *verb, const char *fmt, ...)
{
	char text[4096], line[4 * sizeof text];
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "umadvise %s: %s\n", verb, um_text_visible(text, line, sizeof line));
}

const char *tool_text(const char *s)
{
	static char room[8][1024];
	static unsigned turn;

	turn = (turn + 1) % 8;
	return um_text_visible(s, room[turn], sizeof room[turn]);
}

int tool_exit_of(int err)
{
	switch (-err) {
	case 0:
		return TOOL_DONE;
	case E2BIG:
	case ENODATA:
		return TOOL_FAILED;
	case ENOMEM:
	case ENOSPC:
	case EFBIG:
		return TOOL_INTERNAL;
	default:
		return TOOL_REFUSED;
	}
}

static void help(FILE *to)
{
	fputs("Usage: umadvise VERB [OPTION]... [FILE]...\n\n"
	      "Lets iterative CUDA programs outgrow GPU memory: plans, simulates and reports.\n\n",
	      to);
	for (const struct tool_verb *const *v = tool_verbs; *v; v++)
		fprintf(to, "  %-10s %s\n", (*v)->name, (*v)->what);
	fputs("\n'umadvise VERB --help' tells more; so does umadvise(1).\n", to);
}

static int unknown_verb(const char *name)
{
	const char *near = args_near_verb(name);

	if (near) {
		fprintf(stderr, "umadvise: unknown verb '%s': did you mean '%s'?\n", tool_text(name), near);
		return TOOL_USAGE;
	}
	fprintf(stderr, "umadvise: unknown verb '%s': expected", tool_text(name));
	for (const struct tool_verb *const *v = tool_verbs; *v; v++)
		fprintf(stderr, "%s %s", v == tool_verbs ? "" : ",", (*v)->name);
	fputc('\n', stderr);
	return TOOL_USAGE;
}

int main(int argc, char **argv)
{
	um_json_watch_memory();
	tool_output_signals();
	um_schemes_add();
	um_play_drivers(&um_deepum_driver, 1);
	if (argc < 2) {
		help(stderr);
		return TOOL_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		help(stdout);
		return fflush(stdout) ? TOOL_INTERNAL : TOOL_DONE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("umadvise %s\n", umadv_version());
		return fflush(stdout) ? TOOL_INTERNAL : TOOL_DONE;
	}
	if (strcmp(argv[1], "--complete") == 0)
		return args_complete(argv[2]);
	for (const struct tool_verb *const *v = tool_verbs; *v; v++) {
		if (strcmp(argv[1], (*v)->name) != 0)
			continue;
		int code = (*v)->run(argc - 1, argv + 1);

		if (fflush(stdout) || ferror(stdout)) {
			tool_say((*v)->name, "standard output: %s", strerror(errno));
			return TOOL_INTERNAL;
		}
		return code;
	}
	return unknown_verb(argv[1]);
}
