/* SPDX-License-Identifier: Apache-2.0
 *
 * diag.h - why an input file was refused
 *
 * Filled by readers of files: one line for a person, in the form FILE:LINE: the error, the expected form. Control
 * characters of the input are shown as '?'. The first failure is kept; later calls do not change it.
 */
#ifndef UM_BASE_DIAG_H
#define UM_BASE_DIAG_H

#include <stdint.h>

struct um_diag {
	char file[256];
	uint64_t line; /* counted from 1; 0: the file as a whole */
	char text[512]; /* empty: no failure */
};

void um_diag_init(struct um_diag *d, const char *file);

/* Records the first failure and returns -err, so that a reader can write `return um_diag_set(d, EINVAL, ...)`.
 * `d` may be NULL. */
int um_diag_set(struct um_diag *d, int err, uint64_t line, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* "FILE:LINE: text" (or "FILE: text" for line 0) into `buf`, always terminated. */
void um_diag_line(const struct um_diag *d, char *buf, unsigned long size);

/* The same for values without a file: writes the reason into `why` (`size` bytes, may be NULL), returns -EINVAL. */
int um_refuse(char *why, unsigned long size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
