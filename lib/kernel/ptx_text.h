/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx_text.h - the words of PTX text, for its readers
 *
 * No byte from `end` on is read.
 */
#ifndef UM_KERNEL_PTX_TEXT_H
#define UM_KERNEL_PTX_TEXT_H

#include <ctype.h>

struct um_ptx_text {
	const char *at, *end;
};

/* May the character be part of a word? */
static inline int um_ptx_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* Skips white space and comments. */
static inline void um_ptx_space_skip(struct um_ptx_text *t)
{
	for (;;) {
		while (t->at < t->end && isspace((unsigned char)*t->at))
			t->at++;
		if (t->end - t->at < 2 || t->at[0] != '/')
			return;
		if (t->at[1] == '/') {
			while (t->at < t->end && *t->at != '\n')
				t->at++;
		} else if (t->at[1] == '*') {
			for (t->at += 2; t->end - t->at >= 2 && (t->at[0] != '*' || t->at[1] != '/'); t->at++)
				;
			t->at = t->end - t->at >= 2 ? t->at + 2 : t->end;
		} else {
			return;
		}
	}
}

#endif
