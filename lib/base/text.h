/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - names that come from anywhere, as a terminal, a log or a spreadsheet may show them
 *
 * Hidden is what a terminal obeys or a reader does not see: C0 and C1 controls, DEL, what is no UTF-8, line and
 * paragraph separators, zero-width characters and marks that turn the direction of text.
 */
#ifndef UM_BASE_TEXT_H
#define UM_BASE_TEXT_H

#include <stddef.h>

/* Bytes of the well-formed UTF-8 sequence at s (shortest form, no surrogates, up to U+10FFFF), 0 if there is none. */
size_t um_text_utf8(const char *s);
/* Is the character of n bytes at s (0: none there) hidden? */
int um_text_hidden(const char *s, size_t n);

/* `s` itself where nothing of it is hidden; else a copy in `room`, each hidden byte as \xNN, cut where `room` ends. */
const char *um_text_visible(const char *s, char *room, size_t size);

/* `s` as a cell of CSV, to be freed; NULL: no memory. Hidden bytes as above; an apostrophe before what a spreadsheet
 * would take for a formula (= + - @); in quotes where RFC 4180 wants them, or `quoted`. */
char *um_text_csv(const char *s, int quoted);

#endif
