/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - escapes names from untrusted sources for a terminal, a log or a spreadsheet
 *
 * Hidden characters are those that a terminal interprets or a reader does not see: C0 and C1 controls, DEL, invalid
 * UTF-8, line and paragraph separators, zero-width characters and marks that change the direction of text.
 */
#ifndef UM_BASE_TEXT_H
#define UM_BASE_TEXT_H

#include <stddef.h>

/* Bytes of the well-formed UTF-8 sequence at s (shortest form, no surrogates, up to U+10FFFF), 0 if there is none. */
size_t um_text_utf8(const char *s);
/* Is the character of n bytes at s (0: none there) hidden? */
int um_text_hidden(const char *s, size_t n);

/* `s` itself if it has no hidden characters; otherwise a copy in `room`, each hidden byte as \xNN, cut at the end of
 * `room`. */
const char *um_text_visible(const char *s, char *room, size_t size);

int um_text_ends(const char *s, const char *end); /* does `s` end with `end`? */

/* `s` as a CSV cell, to be freed; NULL: out of memory. Hidden bytes are escaped as above; an apostrophe precedes text
 * that a spreadsheet would take for a formula (= + - @); the cell is quoted where RFC 4180 requires it, or if
 * `quoted`. */
char *um_text_csv(const char *s, int quoted);

#endif
