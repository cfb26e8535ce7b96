/* SPDX-License-Identifier: Apache-2.0
 *
 * report_form.h - output forms of a report
 *
 *     report_args.c  the command line
 *     report_text.c  for a terminal: all tables
 *     report_findings.c  for a terminal: findings
 *     report_short.c  its first sentences
 *     report_csv.c   one table, RFC 4180
 *     report_json.c  one document, "umreport/1": doc/report.md
 *     report_html.h  a self-contained page
 *     report_perfetto.c over time, for Perfetto: written while the file is read
 */
#ifndef UM_TOOLS_REPORT_FORM_H
#define UM_TOOLS_REPORT_FORM_H

#include "args.h"
#include "io/out.h"
#include "formats/perfetto.h"
#include "report/tables.h"

#include <stdio.h>

enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON, REPORT_HTML, REPORT_PERFETTO };

struct report_choice {
	const struct um_table *table;
	size_t rows; /* at most; 0: all */
};

struct report_args {
	struct um_report_options o;
	struct report_choice tables[UM_TABLES];
	unsigned n_tables;
	int chosen; /* --report was given */
	enum report_format format;
	const char *list; /* --report, or NULL */
	int unit_index;
	const char *unit; /* unit of times in the table form; NULL: ms */
	double unit_ns;
	const char *output; /* or NULL */
	const char *nsys; /* program nsys; NULL: from PATH */
	int header, force, quiet;
	const char *workload, *profile; /* workload of the run, or NULL; its device, a name or a file */
	uint64_t budget; /* its memory, bytes; 0: the device's capacity */
	int fail_on; /* enum um_severity; -1: nothing fails */
	int merge; /* all files are one report */
	double threshold; /* percent; of umadvise diff */
	char **files;
	int n_files;
};

/* Modes of report_options. */
enum { REPORT_VERB = 1, REPORT_DIFF = 2 };
extern const struct arg report_options[];

/* ARGS_GO_ON or the exit code; `verb`: report or diff. */
int report_args_read(struct report_args *a, const struct tool_verb *verb, int argc, char **argv);

#define REPORT_NOTES 8

struct report_view {
	const char *file; /* title: the file's name, or the number of merged files */
	struct um_findings findings;
	char notes[REPORT_NOTES][600]; /* the tool's own, after those of the capture */
	unsigned n_notes;
};

void report_findings(FILE *to, const struct report_args *a, const struct report_choice *choice,
		     const struct report_view *v);

/* Describes the run in up to three sentences. */
void report_short(const struct report_view *v, char *to, size_t size);

/* Is there a finding of the severity of --fail-on? */
int report_fails(const struct report_args *a, const struct um_report *r);

void report_text(struct um_out *out, const struct report_args *a, const struct report_view *v);
void report_csv(struct um_out *out, const struct report_args *a, const struct report_view *v);
void report_json(struct um_out *out, const struct report_args *a, const struct report_view *v);
void report_html(struct um_out *out, const struct report_args *a, const struct report_view *v);

/* Feeds the report and draws the activities that it counts. */
struct report_perfetto {
	struct um_activity_sink sink; /* first */
	struct um_report *report;
	const struct um_capture *capture;
	const char *path;
	struct um_perfetto *file;
	int err; /* restarting failed */
};

/* 0 or -errno; `report` and `capture` are borrowed until it is closed. */
int report_perfetto_open(struct report_perfetto *t, const char *path, struct um_report *report,
			 const struct um_capture *capture, struct um_diag *diag);
void report_perfetto_again(struct report_perfetto *t);
int report_perfetto_close(struct report_perfetto *t, int keep, struct um_diag *diag);

/* Writes a trace from an export in order of time. 0, or -errno with `diag` (initialised here) set. */
int report_perfetto_convert(const char *from, const char *to, int (*progress)(void *user, uint64_t rows, uint64_t of),
			    void *user, struct um_diag *diag);

#endif
