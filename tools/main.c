/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - umadvise VERB ...
 */
#include "args.h"
#include "output.h"
#include "tool.h"

#include "umadvise.h"

#include "io/json_in.h"
#include "schemes/deepum.h"
#include "schemes/schemes.h"
#include "play/player.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct tool_verb *const verbs[] = {
	&verb_simulate, &verb_plan,   &verb_pool,   &verb_report, &verb_diff, &verb_calibrate,
	&verb_run,	&verb_dryrun, &verb_doctor, &verb_trace,  NULL,
};

static void help(FILE *to)
{
	fputs("Usage: umadvise VERB [OPTION]... [FILE]...\n\n"
	      "Lets iterative CUDA programs outgrow GPU memory: plans, simulates and reports.\n\n",
	      to);
	for (const struct tool_verb *const *v = verbs; *v; v++)
		fprintf(to, "  %-10s %s\n", (*v)->name, (*v)->what);
	fputs("\nSee 'umadvise VERB --help' and umadvise(1).\n", to);
}

static int unknown_verb(const char *name)
{
	const char *near = args_near_verb(name);

	if (near) {
		fprintf(stderr, "umadvise: unknown verb '%s': did you mean '%s'?\n", tool_text(name), near);
		return TOOL_USAGE;
	}
	fprintf(stderr, "umadvise: unknown verb '%s': expected", tool_text(name));
	for (const struct tool_verb *const *v = verbs; *v; v++)
		fprintf(stderr, "%s %s", v == verbs ? "" : ",", (*v)->name);
	fputc('\n', stderr);
	return TOOL_USAGE;
}

int main(int argc, char **argv)
{
	um_json_watch_memory();
	tool_output_signals();
	um_schemes_add();
	um_play_drivers(&um_deepum_driver, 1);
	args_verbs = verbs;
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
	for (const struct tool_verb *const *v = verbs; *v; v++) {
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
