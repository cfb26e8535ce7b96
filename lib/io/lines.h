/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.h - reads the lines of a file, gzip or plain
 *
 * in    a path ("-": standard input) or memory
 * out   one line after the other, without its newline
 * owns  the file and its buffer; of a line at most UM_IO_LINE_MAX bytes (umtrace.h)
 *
 * Gzip is detected by content. Members may follow each other as gzip allows; a file that ends inside a member, a wrong
 * checksum, or any other data after the last member is refused: a damaged trace must not pass as a shorter one. The
 * last newline may be missing. The content of lines is not checked.
 */
#ifndef UM_IO_LINES_H
#define UM_IO_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct um_lines;

/* 0 or -errno with the reason in `diag`, which is initialised here and kept until close (may be NULL). */
int um_lines_open(struct um_lines **out, const char *path, struct um_diag *diag);
int um_lines_open_mem(struct um_lines **out, const void *data, size_t bytes, const char *name, struct um_diag *diag);

/* 1 and the next line (valid until the next call; not NUL-terminated), 0 at the end, or -errno. */
int um_lines_next(struct um_lines *l, const char **text, size_t *n);

/* The number of the last returned line, from 1; 0 before the first. */
uint64_t um_lines_number(const struct um_lines *l);

/* After -EINVAL: did the data end inside a gzip member, without other damage? */
int um_lines_truncated(const struct um_lines *l);

void um_lines_close(struct um_lines *l); /* NULL is allowed */

#endif
