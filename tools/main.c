/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - umadvise VERB ...
 */
#include "tool.h"

#include "umadvise.h"

#include "io/json_in.h"
#include "peers/deepum.h"
#include "peers/peers.h"
#include "player.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} verbs[] = {
	{"simulate", cmd_simulate, "play recorded workloads on a simulated GPU under strategies, and compare"},
	{"plan", cmd_plan, "learn a recorded workload and write the plan for it (umplan)"},
	{"report", cmd_report, "say what unified memory did in a recorded run (an export of Nsight Systems)"},
	{"diff", cmd_diff, "compare two recorded runs: is the second slower, and what changed"},
	{"calibrate", cmd_calibrate, "measure this machine's GPU and its link, and write a profile"},
	{"dryrun", cmd_dryrun, "run a CUDA program on a simulated GPU, and tell what its memory did"},
	{"trace", cmd_trace, "check recorded workloads (umtrace), or tell what is in them"},
};

#define N_VERBS (sizeof verbs / sizeof *verbs)

void tool_say(const char *verb, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "umadvise %s: ", verb);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
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
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(to, "  %-10s %s\n", verbs[i].name, verbs[i].what);
	fputs("\n'umadvise VERB --help' tells more; so does umadvise(1).\n", to);
}

int main(int argc, char **argv)
{
	um_json_watch_memory();
	um_peers_add();
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
	for (size_t i = 0; i < N_VERBS; i++) {
		if (strcmp(argv[1], verbs[i].name) != 0)
			continue;
		int code = verbs[i].run(argc - 1, argv + 1);

		if (fflush(stdout) || ferror(stdout)) {
			tool_say(verbs[i].name, "standard output: %s", strerror(errno));
			return TOOL_INTERNAL;
		}
		return code;
	}
	fprintf(stderr, "umadvise: unknown verb '%s': expected", argv[1]);
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", verbs[i].name);
	fputc('\n', stderr);
	return TOOL_USAGE;
}
