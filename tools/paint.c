/* SPDX-License-Identifier: Apache-2.0 */
#include "paint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int painting;

void paint_init(enum paint_when when, int fd)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
	int plain = (none && *none) || !term || strcmp(term, "dumb") == 0; /* no-color.org */

	painting = when == PAINT_ALWAYS || (when == PAINT_AUTO && !plain && fd >= 0 && isatty(fd));
}

const char *paint(enum paint p)
{
	static const char *const codes[] = {
		[PAINT_OFF] = "\033[0m",       [PAINT_HEADING] = "\033[1m", [PAINT_HIGH] = "\033[1;31m",
		[PAINT_MEDIUM] = "\033[1;33m", [PAINT_LOW] = "\033[1;36m",  [PAINT_GOOD] = "\033[1;32m",
	};

	return painting ? codes[p] : "";
}
