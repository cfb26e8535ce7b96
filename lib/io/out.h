/* SPDX-License-Identifier: Apache-2.0
 *
 * out.h - an output file that appears as a whole or not at all
 *
 * in    text, numbers, JSON strings
 * out   the file at `path`, gzip if the name ends in .gz; "-": standard output, plain
 * owns  a temporary until it replaces the file (io/target.h has the rules)
 *
 * After the first error writes do nothing and close reports it, so that callers check once. Equal content gives equal
 * bytes.
 */
#ifndef UM_IO_OUT_H
#define UM_IO_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct um_out;

int um_out_open(struct um_out **out, const char *path, struct um_diag *diag); /* diag is initialised; may be NULL */

/* The same to memory, gzip with `gz`. */
int um_out_open_mem(struct um_out **out, int gz);
/* Ends it: 0 and the bytes, to be freed, or -errno. */
int um_out_take(struct um_out *o, void **data, size_t *bytes);

void um_out_write(struct um_out *o, const void *data, size_t n);
void um_out_str(struct um_out *o, const char *s);
void um_out_u64(struct um_out *o, uint64_t x);
void um_out_i64(struct um_out *o, int64_t x);
void um_out_double(struct um_out *o, double x); /* finite, in the fewest digits that read back as the same number */
/* `key`, unchanged, and a string; nothing if the string is NULL. */
void um_out_key_str(struct um_out *o, const char *key, const char *s);
void um_out_json_str(struct um_out *o, const char *s); /* quoted; hidden characters as \u, invalid UTF-8 as U+FFFD */

/* Text of HTML, or of a quoted attribute: at most this many characters. Invalid UTF-8 and characters that are not
 * displayed become U+FFFD; line breaks and tabs become blanks. Returns the number of bytes of `s` that were written. */
size_t um_out_html(struct um_out *o, const char *s, size_t most);

void um_out_csv(struct um_out *o, const char *s, int quoted); /* a cell: um_text_csv */
void um_out_visible(struct um_out *o, const char *s); /* um_text_visible, of 1 KiB at most */

/* Records an error of the caller: the file will not be created. */
void um_out_fail(struct um_out *o, int err);
int um_out_error(const struct um_out *o); /* 0 or -errno */

/* Ends it: 0 and the file exists, or -errno and nothing remains. keep 0 discards it and returns 0. */
int um_out_close(struct um_out *o, int keep, struct um_diag *diag);

#endif
