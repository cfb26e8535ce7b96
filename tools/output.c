/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include "base/text.h"
#include "io/target.h"
#include "tool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- files -------------------------------------------------------------------------------------------------------- */

static ssize_t write_part(void *cookie, const char *data, size_t n)
{
	um_out_write(cookie, data, n);
	return um_out_error(cookie) ? 0 : (ssize_t)n;
}

static int report_reason(const struct tool_output *o, const struct um_diag *diag)
{
	char line[800];

	um_diag_line(diag, line, sizeof line);
	tool_say(o->verb, "%s", line);
	return TOOL_INTERNAL;
}

int tool_output_open(struct tool_output *o, const char *verb, const char *path)
{
	static const cookie_io_functions_t calls = {.write = write_part};
	struct um_diag diag;

	*o = (struct tool_output){.verb = verb, .path = path, .to = stdout};
	if (!path || strcmp(path, "-") == 0)
		return 0;
	if (um_out_open(&o->out, path, &diag))
		return report_reason(o, &diag);
	o->to = fopencookie(o->out, "w", calls);
	if (o->to)
		return 0;
	um_out_close(o->out, 0, NULL);
	tool_say(verb, "%s: no memory", path);
	return TOOL_INTERNAL;
}

int tool_output_close(struct tool_output *o, int keep)
{
	struct um_diag diag;

	if (!o->out)
		return 0;
	if (fclose(o->to))
		um_out_fail(o->out, ENOMEM); /* if the file itself has no error */
	um_diag_init(&diag, o->path);
	if (um_out_error(o->out))
		keep = 1; /* so that the error is reported */
	return um_out_close(o->out, keep, &diag) ? report_reason(o, &diag) : 0;
}

void tool_csv(FILE *to, const char *s)
{
	char *cell = um_text_csv(s, 0);

	fputs(cell ? cell : "", to);
	free(cell);
}

/* jansson does not escape DEL. */
static int write_json(const char *text, size_t n, void *to)
{
	for (size_t i = 0; i < n; i++)
		if ((text[i] == 0x7f ? fputs("\\u007f", to) : fputc(text[i], to)) == EOF)
			return -1;
	return 0;
}

int tool_json(FILE *to, const json_t *doc, size_t flags)
{
	int bad = !doc || json_dump_callback(doc, write_json, to, flags | JSON_INDENT(1) | JSON_ENSURE_ASCII);

	return bad || fputc('\n', to) == EOF ? -1 : 0;
}

int tool_output_check(const char *verb, const char *output, char *const *others, int n)
{
	struct stat out, in;

	if (stat(output, &out) || !S_ISREG(out.st_mode))
		return 0;
	for (int i = 0; i < n; i++)
		if (others[i] && !stat(others[i], &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
			tool_say(verb, "output %s is the same file as %s: name another file for the output", output,
				 others[i]);
			return TOOL_USAGE;
		}
	return 0;
}

/* --- signals ------------------------------------------------------------------------------------------------------ */

static void end(int sig)
{
	um_target_remove_named();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void go_on(int sig)
{
	(void)sig; /* the write fails with EFBIG; unlike SIG_IGN a handler is not passed on to programs that are run */
}

void tool_output_signals(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction before, act = {.sa_handler = end};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (!sigaction(ends[i], NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(ends[i], &act, NULL);
	act = (struct sigaction){.sa_handler = go_on, .sa_flags = SA_RESTART};
	if (!sigaction(SIGXFSZ, NULL, &before) && before.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &act, NULL);
}
