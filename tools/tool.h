/* SPDX-License-Identifier: Apache-2.0
 *
 * tool.h - what the verbs of the tool share
 *
 * Exit codes: 0 done; 1 a run failed (an op alone exceeds the budget), or a report has findings of the level of
 * --fail-on; 2 usage; 3 an input is unreadable or was refused; 4 internal (no memory, no space). Errors go to stderr,
 * one line each; results go to stdout or -o.
 */
#ifndef UM_TOOL_H
#define UM_TOOL_H

enum tool_exit { TOOL_DONE, TOOL_FAILED, TOOL_USAGE, TOOL_REFUSED, TOOL_INTERNAL };

/* A file a verb. */
extern const struct tool_verb verb_calibrate, verb_diff, verb_doctor, verb_dryrun, verb_plan, verb_pool, verb_report;
extern const struct tool_verb verb_run, verb_simulate, verb_trace;

/* "umadvise VERB: ..." to stderr. */
void tool_say(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A name with control characters escaped (base/text.h), in static memory that eight calls share in turn. */
const char *tool_text(const char *s);

/* Reads --profile: a built-in device, or a file. 0, or the exit code after an error message. */
struct um_profile;
int tool_profile(const char *verb, const char *name, struct um_profile *out);
/* Writes a profile, each constant with its source, to `output` (NULL: standard output). 0, or the exit code. */
int tool_show_profile(const char *verb, const char *name, const char *output);

/* The exit code for -errno. */
int tool_exit_of(int err);

#endif
