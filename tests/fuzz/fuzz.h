/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.h - a fuzz target: it takes any bytes and must not crash, leak, hang or grow without bound
 *
 * `make fuzz` builds each target with libFuzzer and runs it. `make check` runs replay.c: the corpus, each file of it
 * cut short, and mutations of it (mutate.h).
 */
#ifndef UM_TESTS_FUZZ_H
#define UM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_OUT "-" /* where a target writes: standard output, which leads to /dev/null while a target runs */

extern const char fuzz_name[]; /* the ending of its samples: "umtrace" */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* libFuzzer's name for it; returns 0 */

/* file.c: the path of a file with these bytes, for a reader that takes a path. The file is this process's only one: the
 * next call writes it anew, and exit removes it. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* report.c: reads the recording or run log at `path` as `umadvise report` does, makes the report, looks at each cell of
 * each table, writes the JSON document and reads that back. Aborts where one of these breaks its contract. `views`: the
 * report's course over time is made, too. */
void fuzz_report(const char *path, int views);

#endif
