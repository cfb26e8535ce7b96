/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/notices.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

void um_notices_init(struct um_notices *n, const struct umadv_options *options)
{
	*n = (struct um_notices){.log = options->log, .log_user = options->log_user, .level = options->log_level};
}

static void vlog(struct um_notices *n, enum umadv_log_level level, const char *fmt, va_list ap)
{
	char text[512], room[4 * sizeof text];
	const char *line = text;

	if (level > n->level)
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	line = um_text_visible(text, room, sizeof room);
	if (n->log)
		n->log(n->log_user, level, line);
	else
		fprintf(stderr, "umadvise: %s\n", line);
}

void um_notices_log(struct um_notices *n, enum umadv_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(n, level, fmt, ap);
	va_end(ap);
}

void um_notices_warn(struct um_notices *n, enum um_warned cause, const char *fmt, ...)
{
	va_list ap;

	if (n->warned & (unsigned)cause)
		return;
	n->warned |= (unsigned)cause;
	va_start(ap, fmt);
	vlog(n, UMADV_LOG_WARN, fmt, ap);
	va_end(ap);
}
