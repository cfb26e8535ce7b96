/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_dryrun.c - umadvise dryrun: runs a CUDA program on a simulated GPU and reports its memory activity
 */
#include "dryrun.h"

#include "io/file_name.h"
#include "io/out.h"
#include "io/target.h"
#include "sim/sim.h"
#include "program.h"
#include "tool.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(field) offsetof(struct dryrun, field)

static const struct arg options[] = {
	ARG_PROFILE(AT(profile), 0),
	ARG_BUDGET(AT(memory), 0, 2 << 20, "device memory (default: the profile's)"),
	ARG(ARG_COUNT, "devices", 0, AT(devices), "N", .least = 1, .most = UM_SIM_DEVICES_MAX,
	    .help = "number of devices, all alike (default: 1)"),
	ARG(ARG_COUNT, "per-link", 0, AT(per_link), "N", .least = 1, .most = UM_SIM_DEVICES_MAX,
	    .help = "N successive devices share a link (default: the profile's)"),
	ARG(ARG_CHOICE, "cuda", 0, AT(cuda), "VERSION", .words = "12.4 13.0",
	    .help = "the driver's version: 12.4 or 13.0 (default)"),
	ARG(ARG_CHOICE, "cpu", 0, AT(cpu_off), "on|off", .words = "on off",
	    .help = "track accesses of the CPU to managed memory (default: on)"),
	ARG(ARG_TEXT, "log", 0, AT(log), "FILE", .writes = 1,
	    .help = "log the simulated driver's events; %r in the name becomes the rank"),
	ARG_FORMAT(AT(format), 0, "table json csv", "table (default), json or csv"),
	ARG_OUTPUT(AT(output), "write the table to FILE instead of standard error; %r as above"),
	ARG_LAST,
};

/* 0, or an exit code after an error message. */
static int name_file(const char **name)
{
	char *own = *name ? um_file_name(*name) : NULL;

	if (!*name || own) {
		*name = own;
		return 0;
	}
	tool_say("dryrun", "no memory");
	return PROGRAM_FAILED;
}

static int read_args(struct dryrun *d, int argc, char **argv)
{
	struct args_found found;
	int code;

	*d = (struct dryrun){.profile = "v100", .cuda = 1};
	code = args_read(&verb_dryrun, d, argc, argv, &found);
	d->program = found.operands;
	if (code == ARGS_GO_ON && !found.n) {
		tool_say("dryrun", "no program given: expected one, with its arguments");
		return TOOL_USAGE;
	}
	if (code == ARGS_GO_ON && (name_file(&d->log) || name_file(&d->output)))
		return PROGRAM_FAILED;
	return code;
}

/* Copies the finished table to its target as a whole. 0 or an exit code. */
static int deliver(const struct dryrun *d, struct um_out *out, const char *text, size_t n)
{
	struct um_diag diag;
	char line[800];

	if (!out) {
		fwrite(text, 1, n, stderr);
		return 0;
	}
	um_out_write(out, text, n);
	um_diag_init(&diag, d->output);
	if (!um_out_close(out, n > 0, &diag))
		return 0;
	um_diag_line(&diag, line, sizeof line);
	tool_say("dryrun", "%s", line);
	return PROGRAM_FAILED;
}

/* Explains why there is no table. `code`: the program's exit status; 127 if the loader could not start it. */
static void say_nothing(const struct dryrun *d, int opened, int code)
{
	char why[600];

	if (!opened && code == PROGRAM_NOT_FOUND && dryrun_loads(d->path) && dryrun_missing(d, why, sizeof why))
		tool_say("dryrun", "%s needs %s, which is not installed: dryrun has no stand-in for it (doc/dryrun.md)",
			 d->program[0], why);
	else if (opened)
		tool_say("dryrun", "%s opened libcuda.so.1 but never called cuInit", d->program[0]);
	else if (dryrun_cut_off(d->path, why, sizeof why))
		tool_say("dryrun", "%s never opened libcuda.so.1: %s", d->program[0], why);
	else
		tool_say("dryrun", "%s never opened libcuda.so.1", d->program[0]);
}

/* Runs the program, then shows its reports. */
static int run(struct dryrun *d, struct um_out *out)
{
	int code, opened = 0, n = -1, failed;
	size_t bytes = 0;
	char *text = NULL;
	FILE *to;

	code = dryrun_folder_make(d);
	if (code) {
		if (out)
			um_out_close(out, 0, NULL);
		return code;
	}
	code = dryrun_run(d);
	to = open_memstream(&text, &bytes);
	if (to) {
		n = dryrun_show(d, to, &opened);
		if (fclose(to))
			n = -1;
	}
	if (n == 0)
		say_nothing(d, opened, code);
	dryrun_folder_remove(d);
	failed = deliver(d, out, text, n > 0 ? bytes : 0);
	free(text);
	return n < 0 ? PROGRAM_FAILED : failed ? failed : code;
}

/* Opened before the program runs, so that an error comes early. */
static int open_output(const struct dryrun *d, struct um_out **out)
{
	struct um_diag diag;
	char line[800];

	*out = NULL;
	if (!d->output || !um_out_open(out, d->output, &diag))
		return 0;
	um_diag_line(&diag, line, sizeof line);
	tool_say("dryrun", "%s", line);
	return PROGRAM_FAILED;
}

/* The driver writes to the tool's open file, so that the log replaces a file as a whole (io/target.h). */
static int open_log(struct dryrun *d, struct um_target *t, char *path, size_t size)
{
	int err;

	if (!d->log)
		return 0;
	err = um_target_open(t, d->log);
	if (err) {
		tool_say("dryrun", "%s: cannot write: %s", d->log, strerror(-err));
		return PROGRAM_FAILED;
	}
	snprintf(path, size, "/proc/%ld/fd/%d", (long)getpid(), t->fd);
	return 0;
}

static int close_log(const struct dryrun *d, struct um_target *t, int keep)
{
	int err = 0, code;

	if (!d->log)
		return 0;
	if (keep)
		err = um_target_commit(t);
	code = um_target_close(t);
	err = err ? err : code;
	if (err)
		tool_say("dryrun", "%s: cannot write: %s", d->log, strerror(-err));
	return err ? PROGRAM_FAILED : 0;
}

static int dryrun(int argc, char **argv)
{
	static struct dryrun d; /* keeps its names until the end */
	struct um_profile known;
	struct um_out *out;
	struct um_target log = {.fd = -1};
	char *profile, place[64];
	int code = read_args(&d, argc, argv), failed;

	if (code != ARGS_GO_ON)
		return code;
	code = tool_profile("dryrun", d.profile, &known); /* the stand-in would report it late */
	if (!code)
		code = program_find("dryrun", "LD_LIBRARY_PATH", d.program[0], d.path, sizeof d.path);
	if (!code)
		code = dryrun_find_driver(&d);
	if (!code)
		code = open_log(&d, &log, place, sizeof place);
	if (code)
		return code;
	if (open_output(&d, &out)) {
		close_log(&d, &log, 0);
		return PROGRAM_FAILED;
	}
	profile = um_profile_find(d.profile) ? strdup(d.profile) : program_absolute(d.profile);
	if (!profile) {
		tool_say("dryrun", "no memory");
		if (out)
			um_out_close(out, 0, NULL);
		close_log(&d, &log, 0);
		return PROGRAM_FAILED;
	}
	d.profile = profile;
	d.log_place = d.log ? place : NULL;
	code = run(&d, out);
	failed = close_log(&d, &log, 1);
	free(profile);
	return failed ? failed : code;
}

const struct tool_verb verb_dryrun = {
	.name = "dryrun",
	.run = dryrun,
	.what = "run a CUDA program on a simulated GPU and report its memory activity",
	.synopsis = "dryrun [OPTION]... [--] PROGRAM [ARGUMENT]...",
	.about = "Runs a CUDA program without a GPU: its driver calls go to a simulated one. Memory and time behave "
		 "as on the device of the profile; kernels do not compute unless the program registers host code "
		 "(doc/dryrun.md). At the end a table of its memory activity goes to standard error.",
	.options = options,
	.tail = "Exit status: the program's; 128 + n if signal n ended it; 125 if it could not be run, 126 if it is "
		"not\n"
		"executable, 127 if it was not found.\n"
		"\n"
		"Examples:\n"
		"  umadvise dryrun -- ./conjugateGradientUM\n"
		"  umadvise dryrun --profile a100 --budget 256MiB --format json -o out.json -- ./solver -n 100\n",
	.runs_program = 1,
	.table_fd = STDERR_FILENO,
};
