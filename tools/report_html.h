/* SPDX-License-Identifier: Apache-2.0
 *
 * report_html.h - the report as a self-contained page: declarations shared by its parts
 *
 *     report_html.c        the page, from its head to its foot
 *     report_html_time.c   the run and three iterations over time
 *     report_html_chart.c  iterations side by side, the heat map, causes
 *     report_html_findings.c  findings
 *     report_html_table.c  tables
 *     report_html_text.c   names and numbers as text
 *     html/                style and script, which the build converts to C
 *
 * Drawings are SVG of variable width; their labels are text of the page, so that narrow pages keep their size. The page
 * fetches nothing, and all content is visible without a script.
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

#define HTML_ROOM 64 /* for numbers in words */
#define HTML_FILES 8 /* limit of files and of processes that are drawn separately */

/* Prints the tool's own text; texts of a recording need one of the functions below. Cut at 1023 bytes. */
void html_f(const struct html *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A name from the recording, isolated; longer names are shortened in the middle, with the whole name as the title. */
void html_name(const struct html *h, const char *name, size_t most);

/* The process, and its file if there are several. */
void html_process(const struct html *h, uint32_t process);

/* "12.3 MiB", "4.56 ms", "18 727"; they return `to`. */
const char *html_bytes(char *to, uint64_t bytes);
const char *html_ns(char *to, uint64_t ns);
const char *html_count(char *to, uint64_t n);
const char *html_scaled(char *to, double x, const char *unit); /* with three significant digits */

/* 1, 2 or 5 times a power of ten, the least that is not below x. */
double html_round_up(double x);

void html_heading(const struct html *h, const char *title, const char *about); /* h2, and a line of text */

void html_legend(const struct html *h); /* CSS classes of causes of migration */

void html_time(const struct html *h);
void html_iterations(const struct html *h);
void html_heat(const struct html *h);
void html_causes(const struct html *h);
void html_findings(const struct html *h);
void html_tables(const struct html *h);

#endif
