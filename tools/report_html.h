/* SPDX-License-Identifier: Apache-2.0
 *
 * report_html.h - the report as a page of its own: what its parts share
 *
 *     report_html.c        the page, from its head to its foot
 *     report_html_time.c   the course of the run and of three iterations
 *     report_html_chart.c  iterations side by side, the heat map, causes
 *     report_html_findings.c  findings
 *     report_html_table.c  tables
 *     report_html_text.c   names and numbers as people read them
 *     html/                style and script, which the build makes into C
 *
 * Drawings are SVG whose width is what there is, and what is written beside them is text of the page: it stays as large
 * as it is, however narrow the page. Nothing is fetched from anywhere, and no script is needed to see anything.
 */
#ifndef UM_TOOLS_REPORT_HTML_H
#define UM_TOOLS_REPORT_HTML_H

#include "report_form.h"

extern const char *const html_css[], *const html_js[]; /* lines; NULL at the end */

struct html {
	struct um_out *out;
	const struct report_args *a;
	const struct report_view *v;
};

#define HTML_ROOM 64 /* for a number in words */
#define HTML_FILES 8 /* of those merged, and of processes, that are drawn each for itself */

/* Text of ours: nothing that came from a recording, unless it went through what follows. Cut at 1023 bytes. */
void html_f(const struct html *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A name from the recording, isolated; longer than so many characters: its beginning and its end, the whole of it as
 * the title. */
void html_name(const struct html *h, const char *name, size_t most);

/* Which process, and of which file where there are several. */
void html_process(const struct html *h, uint32_t process);

/* "12.3 MiB", "4.56 ms", "18 727"; they return `to`. */
const char *html_bytes(char *to, uint64_t bytes);
const char *html_ns(char *to, uint64_t ns);
const char *html_count(char *to, uint64_t n);
const char *html_scaled(char *to, double x, const char *unit); /* with three digits that count */

/* 1, 2 or 5 times a power of ten, the least that is not below x. */
double html_round_up(double x);

void html_heading(const struct html *h, const char *title, const char *about); /* h2, and a line below */

void html_legend(const struct html *h); /* of reasons for which something moved */

void html_time(const struct html *h);
void html_iterations(const struct html *h);
void html_heat(const struct html *h);
void html_causes(const struct html *h);
void html_findings(const struct html *h);
void html_tables(const struct html *h);

#endif
