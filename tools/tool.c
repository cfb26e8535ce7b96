/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

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
