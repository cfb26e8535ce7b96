/* SPDX-License-Identifier: Apache-2.0
 *
 * out.h - a file that is there as a whole or not at all
 *
 * in    text, numbers, JSON strings
 * out   the file at `path`, gzip where the name ends in .gz; "-": standard output, plain
 * owns  a temporary until it takes the place of the file (io/target.h has the rule)
 *
 * The first error sticks: later writes do nothing and close reports it, so that callers check once. The same content
 * gives the same bytes.
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
void um_out_double(struct um_out *o, double x); /* finite, in the fewest digits that read back the same */
void um_out_json_str(struct um_out *o, const char *s); /* in quotes; what is hidden as \u, what is no UTF-8 as U+FFFD */

/* Text of HTML, or of a value in quotes there: at most so many characters of it. What is no UTF-8, or no character that
 * is shown, becomes U+FFFD; line breaks and tabs, blanks. Returns the bytes of `s` that were written. */
size_t um_out_html(struct um_out *o, const char *s, size_t most);

void um_out_csv(struct um_out *o, const char *s, int quoted); /* a cell: um_text_csv */
void um_out_visible(struct um_out *o, const char *s); /* um_text_visible, of 1 KiB at most */

/* An error of the caller's own: the file will not be. */
void um_out_fail(struct um_out *o, int err);
int um_out_error(const struct um_out *o); /* 0 or -errno */

/* Ends it: 0 and the file is there, or -errno and nothing is left behind. keep 0 throws it away and returns 0. */
int um_out_close(struct um_out *o, int keep, struct um_diag *diag);

#endif
