/* SPDX-License-Identifier: Apache-2.0
 *
 * output.h - the files that the tool writes: with printf, never onto an input, and not left behind by a signal
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
/* Ends it; keep 0 leaves the file as it was. 0, or the exit code after a line. */
int tool_output_close(struct tool_output *o, int keep);

/* A text as a cell of CSV (base/text.h). */
void tool_csv(FILE *to, const char *s);

/* Prints a document in ASCII: what a terminal obeys is spelled \u. `flags` are jansson's. 0, or -1: `doc` is NULL, or
 * it could not be written. */
int tool_json(FILE *to, const json_t *doc, size_t flags);

/* Is `output` one of the other files (each may be NULL), by whatever name? 0, or the exit code after a line. */
int tool_output_spares(const char *verb, const char *output, char *const *others, int n);

/* SIGINT, SIGTERM and SIGHUP remove named temporaries before they end the process; a file size limit is an error. */
void tool_output_signals(void);

#endif
