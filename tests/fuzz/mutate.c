/* SPDX-License-Identifier: Apache-2.0
 *
 * Each mutation has a generator of its own, seeded with its number: one of them is made again without those before it.
 */
#include "mutate.h"
#include "fixture/random.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES 8
#define BLOCK 512 /* bytes that are copied, moved or removed at a time, at most */

struct text {
	uint8_t *at;
	size_t n;
	uint64_t state;
};

static uint64_t draw(struct text *t, uint64_t below)
{
	uint64_t z = test_random64(&t->state);

	return below ? z % below : 0;
}

static int add(struct mutate_file **list, size_t *n, const uint8_t *data, size_t size)
{
	struct mutate_file *grown = realloc(*list, (*n + 1) * sizeof **list);
	uint8_t *copy = malloc(size + 1);

	if (grown)
		*list = grown;
	if (!grown || !copy) {
		free(copy);
		return -1;
	}
	if (size)
		memcpy(copy, data, size);
	grown[(*n)++] = (struct mutate_file){copy, size};
	return 0;
}

int mutate_file_add(struct mutate *m, const uint8_t *data, size_t size)
{
	return add(&m->files, &m->n_files, data, size < MUTATE_LARGEST ? size : MUTATE_LARGEST);
}

static unsigned hex(char c)
{
	return isdigit((unsigned char)c) ? (unsigned)(c - '0') : (unsigned)(tolower((unsigned char)c) - 'a' + 10) & 15;
}

/* "word", with \" \\ and \xHH in it. */
void mutate_words_read(struct mutate *m, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];

	while (f && fgets(line, sizeof line, f)) {
		const char *p = strchr(line, '"');
		size_t n = 0;

		if (line[0] == '#' || !p)
			continue;
		for (p++; *p && *p != '"' && *p != '\n'; p++) {
			if (*p == '\\' && p[1] == 'x' && p[2] && p[3]) {
				line[n++] = (char)(hex(p[2]) << 4 | hex(p[3]));
				p += 3;
				continue;
			}
			p += *p == '\\' && p[1];
			line[n++] = *p;
		}
		add(&m->words, &m->n_words, (const uint8_t *)line, n);
	}
	if (f)
		fclose(f);
}

void mutate_fini(struct mutate *m)
{
	for (size_t i = 0; i < m->n_files; i++)
		free(m->files[i].data);
	for (size_t i = 0; i < m->n_words; i++)
		free(m->words[i].data);
	free(m->files);
	free(m->words);
	*m = (struct mutate){0};
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

static void cut(struct text *t, size_t from, size_t n)
{
	memmove(t->at + from, t->at + from + n, t->n - from - n);
	t->n -= n;
}

static void insert(struct text *t, size_t to, const uint8_t *data, size_t n)
{
	uint8_t copy[BLOCK];

	n = n < BLOCK ? n : BLOCK;
	if (t->n + n > MUTATE_LARGEST)
		return;
	if (n)
		memcpy(copy, data, n); /* it may be of the text itself */
	memmove(t->at + to + n, t->at + to, t->n - to);
	memcpy(t->at + to, copy, n);
	t->n += n;
}

static size_t block_size(const struct text *t, uint64_t drawn, size_t from)
{
	size_t left = t->n - from, n = 1 + (size_t)drawn % BLOCK;

	return n < left ? n : left;
}

/* Integers of 1, 2, 4 or 8 bytes, of either byte order, about the edges. */
static void set_integer(struct text *t, size_t at)
{
	static const uint64_t edges[] = {0,	 1,	     0x7f,	 0x80,	     0xff,	0x7fff,	    0x8000,
					 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, 1ull << 63, UINT64_MAX};
	size_t bytes = (size_t)1 << draw(t, 4);
	uint64_t x = edges[draw(t, sizeof edges / sizeof *edges)] + draw(t, 3) - 1;
	int big = (int)draw(t, 2);

	for (size_t i = 0; i < bytes && at + i < t->n; i++)
		t->at[at + i] = (uint8_t)(x >> 8 * (big ? bytes - 1 - i : i));
}

/* The next number that is written in digits becomes another one. */
static void set_digits(struct text *t, size_t at)
{
	static const char *const numbers[] = {"0",
					      "-1",
					      "1",
					      "65536",
					      "4294967295",
					      "4294967296",
					      "9223372036854775807",
					      "9223372036854775808",
					      "18446744073709551615",
					      "99999999999999999999",
					      "1e308",
					      "0.5",
					      "null",
					      "true",
					      "\"\"",
					      "[]",
					      "{}"};
	const char *to = numbers[draw(t, sizeof numbers / sizeof *numbers)];
	size_t n = 0;

	while (at < t->n && !isdigit(t->at[at]))
		at++;
	while (at + n < t->n && isdigit(t->at[at + n]))
		n++;
	if (!n)
		return;
	cut(t, at, n);
	insert(t, at, (const uint8_t *)to, strlen(to));
}

/* A line is removed, or comes once more elsewhere. */
static void move_line(struct text *t, size_t at)
{
	size_t from = at, n = 0, to = (size_t)draw(t, t->n + 1);

	while (from > 0 && t->at[from - 1] != '\n')
		from--;
	while (from + n < t->n && (n == 0 || t->at[from + n - 1] != '\n'))
		n++;
	while (to > 0 && t->at[to - 1] != '\n')
		to--;
	if (draw(t, 2))
		cut(t, from, n);
	else
		insert(t, to, t->at + from, n);
}

static void splice(const struct mutate *m, struct text *t, size_t at)
{
	const struct mutate_file *other = &m->files[draw(t, m->n_files)];
	size_t from = (size_t)draw(t, other->size + 1), n = 1 + (size_t)draw(t, BLOCK);

	insert(t, at, other->data + from, other->size - from < n ? other->size - from : n);
}

static void change(const struct mutate *m, struct text *t)
{
	size_t at = (size_t)draw(t, t->n), n;
	const struct mutate_file *word;

	switch (t->n ? draw(t, 12) : 11) {
	case 0:
	case 1:
		t->at[at] ^= (uint8_t)(1u << draw(t, 8));
		break;
	case 2:
		t->at[at] = (uint8_t)draw(t, 256);
		break;
	case 3:
	case 4:
		set_integer(t, at);
		break;
	case 5:
	case 6:
		set_digits(t, at);
		break;
	case 7:
		cut(t, at, block_size(t, draw(t, BLOCK), at));
		break;
	case 8:
		n = block_size(t, draw(t, BLOCK), at);
		insert(t, (size_t)draw(t, t->n + 1), t->at + at, n);
		break;
	case 9:
		move_line(t, at);
		break;
	case 10:
		splice(m, t, at);
		break;
	default:
		word = m->n_words ? &m->words[draw(t, m->n_words)] : &m->files[draw(t, m->n_files)];
		insert(t, at, word->data, word->size);
	}
}

size_t mutate_make(const struct mutate *m, uint64_t n, uint8_t *to)
{
	struct text t = {.at = to, .state = n * 0x2545f4914f6cdd1d + 1};
	const struct mutate_file *from = &m->files[draw(&t, m->n_files)];

	memcpy(to, from->data, from->size);
	t.n = from->size;
	for (uint64_t k = 1 + draw(&t, CHANGES); k > 0; k--)
		change(m, &t);
	if (t.n && draw(&t, 16) == 0)
		t.n = (size_t)draw(&t, t.n);
	return t.n;
}
