/* SPDX-License-Identifier: Apache-2.0
 *
 * A report of the stand-in driver, the input of `umadvise dryrun`: each accepted one is shown in all three formats.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "dryrun.h"
#include "tool.h"

const char fuzz_name[] = "umdryrun";

static struct dryrun d;
static pid_t owner;
static int said;

/* In place of the tool's: a target is quiet. */
void tool_say(const char *verb, const char *fmt, ...)
{
	(void)verb;
	(void)fmt;
	said++;
}

const char *tool_text(const char *s)
{
	static char room[8][1024];
	static unsigned turn;

	turn = (turn + 1) % 8;
	return um_text_visible(s, room[turn], sizeof room[turn]);
}

static void forget(void)
{
	char link[sizeof d.folder + 32];

	if (getpid() != owner)
		return;
	snprintf(link, sizeof link, "%s/report.1.json", d.folder);
	unlink(link);
	rmdir(d.folder);
}

/* A folder in which the file of fuzz_file is the report of process 1. */
static void make_folder(const char *file)
{
	char link[sizeof d.folder + 32];

	snprintf(d.folder, sizeof d.folder, "/tmp/um-fuzz-dryrun-XXXXXX");
	owner = getpid();
	if (!mkdtemp(d.folder))
		abort();
	atexit(forget);
	snprintf(link, sizeof link, "%s/report.1.json", d.folder);
	if (symlink(file, link))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum play_format formats[] = {FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV};
	const char *file = fuzz_file(data, size);

	if (!owner)
		make_folder(file);
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		char *text = NULL;
		size_t bytes = 0;
		FILE *to = open_memstream(&text, &bytes);
		int opened = 0, before = said, n;

		if (!to)
			return 0;
		d.format = formats[i];
		n = dryrun_show(&d, to, &opened);
		if (fclose(to) || opened != 1 || n > 1 || (n < 0 && said == before) || (n == 1 && !bytes))
			abort();
		free(text);
	}
	return 0;
}
