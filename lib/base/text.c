/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - decodes UTF-8 and escapes hidden characters
 */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ESCAPED 4 /* bytes of \xNN */

size_t um_text_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char c = s[0], low = 0x80, high = 0xbf;
	size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;

	if (c == 0xe0)
		low = 0xa0;
	else if (c == 0xed)
		high = 0x9f;
	else if (c == 0xf0)
		low = 0x90;
	else if (c == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < n; i++) {
		if (s[i] < low || s[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return n;
}

int um_text_hidden(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;

	if (n == 0 || *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
		return 1;
	if (*p == 0xe2) /* U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F */
		return (p[1] == 0x80 && ((p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
		       (p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf);
	return *p == 0xef && p[1] == 0xbb && p[2] == 0xbf; /* U+FEFF */
}

const char *um_text_visible(const char *s, char *room, size_t size)
{
	const char *p = s;
	size_t at = 0, n;

	while (*p && !um_text_hidden(p, um_text_utf8(p)))
		p += um_text_utf8(p);
	if (!*p)
		return s;
	for (p = s; *p; p += n) {
		int hidden;

		n = um_text_utf8(p);
		hidden = um_text_hidden(p, n);
		n = n ? n : 1;
		if (at + (hidden ? ESCAPED * n : n) >= size)
			break;
		if (!hidden)
			memcpy(room + at, p, n), at += n;
		for (size_t i = 0; hidden && i < n; i++)
			at += (size_t)snprintf(room + at, size - at, "\\x%02x", (unsigned char)p[i]);
	}
	room[at] = '\0';
	return room;
}

int um_text_ends(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && strcmp(s + n - k, end) == 0;
}

char *um_text_csv(const char *s, int quoted)
{
	size_t room = ESCAPED * strlen(s) + 1, at = 0;
	char *plain = malloc(room), *cell = malloc(2 * room + 4);
	const char *text = plain ? um_text_visible(s, plain, room) : "";
	/* A tab and a carriage return are skipped by spreadsheets; here they are escaped and start no formula. */
	int formula = *text && strchr("=+-@", *text);

	quoted = quoted || strpbrk(text, ",\"");
	if (plain && cell) {
		if (quoted)
			cell[at++] = '"';
		if (formula)
			cell[at++] = '\'';
		for (; *text; text++) {
			if (*text == '"')
				cell[at++] = '"';
			cell[at++] = *text;
		}
		if (quoted)
			cell[at++] = '"';
		cell[at] = '\0';
	} else {
		free(cell);
		cell = NULL;
	}
	free(plain);
	return cell;
}
