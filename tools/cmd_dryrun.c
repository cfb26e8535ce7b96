/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_dryrun.c - umadvise dryrun: a CUDA program on a simulated GPU, and what its memory did
 */
#include "dryrun.h"

#include "base/size.h"
#include "io/out.h"
#include "io/profile_file.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: umadvise dryrun [OPTION]... [--] PROGRAM [ARGUMENT]...\n\n"
	"Runs a CUDA program without a GPU: its driver calls go to a simulated one. Memory and time behave as on the\n"
	"device of the profile; kernels do not compute, unless the program says how (doc/dryrun.md). At the end, a\n"
	"table of what its memory did, on standard error.\n\n"
	"  --profile NAME|FILE   the device: k40, 1080ti, v100 (default), rtx4090, a100, h100, h200, gh200, or a file\n"
	"  --memory BYTES        device memory; a number with KiB, MiB or GiB (default: the profile's)\n"
	"  --cuda VERSION        the driver's version: 12.4 or 13.0 (default)\n"
	"  --cpu on|off          follow what CPU code does to managed memory (default: on)\n"
	"  --log FILE            write what the driver does, event by event\n"
	"  --format F            table (default), json or csv\n"
	"  -o, --output FILE     write the table there\n"
	"  -h, --help            this text\n\n"
	"Exit status: the program's; 128 + n if signal n ended it; 125 if it could not be run, 126 if it is no\n"
	"program, 127 if it was not found.\n\n"
	"Examples:\n"
	"  umadvise dryrun -- ./conjugateGradientUM\n"
	"  umadvise dryrun --profile a100 --memory 256MiB --format json -o out.json -- ./solver -n 100\n";

static int bad(const char *option, const char *value, const char *expected)
{
	tool_say("dryrun", "%s '%s': expected %s", option, value, expected);
	return TOOL_USAGE + 1;
}

/* One of two words. */
static int read_word(const char **out, const char *option, const char *a, const char *b)
{
	char expected[64];

	if (strcmp(optarg, a) == 0 || strcmp(optarg, b) == 0) {
		*out = optarg;
		return 0;
	}
	snprintf(expected, sizeof expected, "%s or %s", a, b);
	return bad(option, optarg, expected);
}

static int read_format(struct dryrun *d)
{
	static const char *const formats[] = {"table", "json", "csv"};

	for (int i = 0; i < 3; i++)
		if (strcmp(formats[i], optarg) == 0) {
			d->format = (enum play_format)i;
			return 0;
		}
	return bad("--format", optarg, "table, json or csv");
}

static int read_option(struct dryrun *d, int c)
{
	switch (c) {
	case 'p':
		d->profile = optarg;
		return 0;
	case 'm':
		if (um_size_parse(optarg, &d->memory) || d->memory < 2u << 20)
			return bad("--memory", optarg, "bytes, or a number with KiB, MiB or GiB, 2 MiB at least");
		return 0;
	case 'v':
		return read_word(&d->cuda, "--cuda", "12.4", "13.0");
	case 'c':
		return read_word(&d->cpu, "--cpu", "on", "off");
	case 'l':
		d->log = optarg;
		return 0;
	case 'f':
		return read_format(d);
	case 'o':
		d->output = optarg;
		return 0;
	case 'h':
		fputs(usage, stdout);
		return TOOL_DONE + 1;
	default:
		tool_say("dryrun", "'umadvise dryrun --help' tells the options");
		return TOOL_USAGE + 1;
	}
}

static int read_args(struct dryrun *d, int argc, char **argv)
{
	static const struct option options[] = {{"profile", required_argument, NULL, 'p'},
						{"memory", required_argument, NULL, 'm'},
						{"cuda", required_argument, NULL, 'v'},
						{"cpu", required_argument, NULL, 'c'},
						{"log", required_argument, NULL, 'l'},
						{"format", required_argument, NULL, 'f'},
						{"output", required_argument, NULL, 'o'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	int c, code = 0;

	*d = (struct dryrun){.profile = "v100", .cuda = "13.0", .cpu = "on"};
	optind = 1;
	while (!code && (c = getopt_long(argc, argv, "+o:h", options, NULL)) != -1)
		code = read_option(d, c);
	if (code)
		return code;
	d->program = argv + optind;
	if (!*d->program) {
		tool_say("dryrun", "no program given: expected one, with its arguments");
		return TOOL_USAGE + 1;
	}
	return 0;
}

/* What the stand-in would find out late is found out now. */
static int check_profile(const struct dryrun *d)
{
	struct um_profile p;
	struct um_diag diag;
	char line[800];
	int err;

	um_diag_init(&diag, d->profile);
	err = um_profile_get(d->profile, &p, &diag);
	if (!err)
		return 0;
	um_diag_line(&diag, line, sizeof line);
	tool_say("dryrun", "%s", line);
	return tool_exit_of(err);
}

/* The program may change its folder: relative names are made absolute. NULL: not possible. */
static char *absolute(const char *path)
{
	char here[PATH_MAX], *all;

	if (*path == '/')
		return strdup(path);
	if (!getcwd(here, sizeof here) || asprintf(&all, "%s/%s", here, path) < 0)
		return NULL;
	return all;
}

/* What was shown goes where it was asked for, as a whole. 0 or an exit code. */
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
	return DRYRUN_FAILED;
}

/* Nothing to show: why. */
static void say_nothing(const struct dryrun *d, int opened)
{
	char why[600];

	if (opened)
		tool_say("dryrun", "%s opened libcuda.so.1 and never initialised it", d->program[0]);
	else if (dryrun_cut_off(d->path, why, sizeof why))
		tool_say("dryrun", "%s never opened libcuda.so.1: %s", d->program[0], why);
	else
		tool_say("dryrun", "%s never opened libcuda.so.1", d->program[0]);
}

/* The program, then what is to be told of it. */
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
	dryrun_folder_remove(d);
	if (n == 0)
		say_nothing(d, opened);
	failed = deliver(d, out, text, n > 0 ? bytes : 0);
	free(text);
	return n < 0 ? DRYRUN_FAILED : failed ? failed : code;
}

/* Opened before the program runs: what cannot be written is better known then. */
static int open_output(const struct dryrun *d, struct um_out **out)
{
	struct um_diag diag;
	char line[800];

	*out = NULL;
	if (!d->output || !um_out_open(out, d->output, &diag))
		return 0;
	um_diag_line(&diag, line, sizeof line);
	tool_say("dryrun", "%s", line);
	return DRYRUN_FAILED;
}

int cmd_dryrun(int argc, char **argv)
{
	struct dryrun d;
	struct um_out *out;
	char *log, *profile;
	int code = read_args(&d, argc, argv);

	if (code)
		return code - 1;
	code = check_profile(&d);
	if (!code)
		code = dryrun_find_program(&d);
	if (!code)
		code = dryrun_find_driver(&d);
	if (!code)
		code = open_output(&d, &out);
	if (code)
		return code;
	log = d.log ? absolute(d.log) : NULL;
	profile = um_profile_find(d.profile) ? strdup(d.profile) : absolute(d.profile);
	if ((d.log && !log) || !profile) {
		tool_say("dryrun", "no memory");
		if (out)
			um_out_close(out, 0, NULL);
		code = DRYRUN_FAILED;
	} else {
		d.log = log;
		d.profile = profile;
		code = run(&d, out);
	}
	free(log);
	free(profile);
	return code;
}
