/* SPDX-License-Identifier: Apache-2.0
 *
 * output.h - output files of the tool: written with printf, never onto an input, removed by signals
 */
#ifndef UM_TOOLS_OUTPUT_H
#define UM_TOOLS_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "io/out.h"

struct tool_output {
	const char *verb, *path; /* for messages; borrowed */
	FILE *to;
	struct um_out *out; /* NULL: `to` is standard output */
};

/* Opens `path` by the rule of io/target.h; NULL or "-" is standard output. 0, or the exit code after a line. */
int tool_output_open(struct tool_output *o, const char *verb, const char *path);
/* Ends it; keep 0 restores the file as it was. 0, or the exit code after a line. */
int tool_output_close(struct tool_output *o, int keep);

/* A text as a cell of CSV (base/text.h). */
void tool_csv(FILE *to, const char *s);

/* Prints a document in ASCII: control characters are written as \u. `flags` are jansson's. 0, or -1: `doc` is NULL, or
 * writing failed. */
int tool_json(FILE *to, const json_t *doc, size_t flags);

/* Refuses an `output` that is one of the other files (each may be NULL) under any name. 0, or the exit code after a
 * line. */
int tool_output_check(const char *verb, const char *output, char *const *others, int n);

/* SIGINT, SIGTERM and SIGHUP remove named temporaries before they end the process; a file size limit is an error. */
void tool_output_signals(void);

#endif
