/* SPDX-License-Identifier: Apache-2.0 */
#include "report_html.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NARROW "\xe2\x80\xaf" /* narrow no-break space */

void html_f(const struct html *h, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	um_out_str(h->out, line);
}

/* Number of characters; each invalid byte counts as one. */
static size_t length(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* Offset of the last n characters. */
static const char *tail(const char *s, size_t n)
{
	const char *p = s + strlen(s);

	while (p > s && n) {
		p--;
		n -= ((unsigned char)*p & 0xc0) != 0x80;
	}
	return p;
}

void html_name(const struct html *h, const char *name, size_t most)
{
	/* Stray continuation bytes lengthen a name. */
	if (length(name) <= most && strlen(name) <= 4 * most) {
		um_out_str(h->out, "<bdi>");
		um_out_html(h->out, name, SIZE_MAX);
	} else {
		um_out_str(h->out, "<bdi title=\"");
		um_out_html(h->out, name, SIZE_MAX);
		um_out_str(h->out, "\">");
		um_out_html(h->out, name, most - most / 3 - 1);
		um_out_str(h->out, "&hellip;");
		um_out_html(h->out, tail(name, most / 3), most / 3);
	}
	um_out_str(h->out, "</bdi>");
}

void html_process(const struct html *h, uint32_t process)
{
	uint64_t id = h->v->findings.report->processes.at[process].process;
	struct um_value file = um_table_file(&h->v->findings, id);

	html_f(h, "pid %lld", (long long)um_table_pid(&h->v->findings, id).number);
	if (file.none)
		return;
	um_out_str(h->out, " of ");
	html_name(h, file.text, 40);
}

const char *html_scaled(char *to, double x, const char *unit)
{
	snprintf(to, HTML_ROOM,
		 x < 9.995   ? "%.2f" NARROW "%s"
		 : x < 99.95 ? "%.1f" NARROW "%s"
			     : "%.0f" NARROW "%s",
		 x, unit);
	return to;
}

const char *html_bytes(char *to, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double x = (double)bytes / 1024;
	int unit = 0;

	if (bytes < 1024) {
		snprintf(to, HTML_ROOM, "%u" NARROW "B", (unsigned)bytes);
		return to;
	}
	for (; x >= 999.5 && unit < 5; unit++)
		x /= 1024;
	return html_scaled(to, x, units[unit]);
}

const char *html_ns(char *to, uint64_t ns)
{
	static const char *const units[] = {"\xc2\xb5s", "ms", "s"};
	double x = (double)ns / 1000;
	int unit = 0;

	if (ns < 1000) {
		snprintf(to, HTML_ROOM, "%u" NARROW "ns", (unsigned)ns);
		return to;
	}
	for (; x >= 999.5 && unit < 2; unit++)
		x /= 1000;
	return html_scaled(to, x, units[unit]);
}

const char *html_count(char *to, uint64_t n)
{
	char digits[24];
	size_t len = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0 && len > 4) {
			memcpy(to + at, NARROW, 3);
			at += 3;
		}
		to[at++] = digits[i];
	}
	to[at] = '\0';
	return to;
}

double html_round_up(double x)
{
	double unit = x > 0 ? pow(10, floor(log10(x))) : 1;

	for (int k = 0; k < 3; k++) {
		double m = unit * (k == 0 ? 1 : k == 1 ? 2 : 5);

		if (m >= x * (1 - 1e-9))
			return m;
	}
	return 10 * unit;
}

void html_heading(const struct html *h, const char *title, const char *about)
{
	html_f(h, "<h2>%s</h2>\n", title);
	if (about)
		html_f(h, "<p class=\"about\">%s</p>\n", about);
}
