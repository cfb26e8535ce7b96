/* SPDX-License-Identifier: Apache-2.0
 *
 * diag.c - formats and keeps the first error of a reader
 */
#include "base/diag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void um_diag_init(struct um_diag *d, const char *file)
{
	snprintf(d->file, sizeof d->file, "%s", file ? file : "-");
	d->line = 0;
	d->text[0] = '\0';
}

int um_diag_set(struct um_diag *d, int err, uint64_t line, const char *fmt, ...)
{
	if (d && !d->text[0]) {
		va_list ap;

		va_start(ap, fmt);
		vsnprintf(d->text, sizeof d->text, fmt, ap);
		va_end(ap);
		d->line = line;
		/* The text may quote the input: keep it on one line. */
		for (char *c = d->text; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				*c = '?';
	}
	return -err;
}

void um_diag_line(const struct um_diag *d, char *buf, unsigned long size)
{
	if (d->line)
		snprintf(buf, size, "%s:%" PRIu64 ": %s", d->file, d->line, d->text);
	else
		snprintf(buf, size, "%s: %s", d->file, d->text);
}

int um_refuse(char *why, unsigned long size, const char *fmt, ...)
{
	va_list ap;

	if (why && size) {
		va_start(ap, fmt);
		vsnprintf(why, size, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}
