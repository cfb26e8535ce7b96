/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts made from the tables: --help, suggestions for mistyped names, and the lines of the shell completion.
 */
#include "args.h"
#include "tool.h"

#include "base/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 100 /* columns */
#define INDENT 24 /* column where the description of an option begins */

const struct tool_verb *const *args_verbs;

int args_has(const struct tool_verb *v, const struct arg *a)
{
	return !a->modes || (a->modes & v->modes);
}

const char *args_word(const struct arg *a, unsigned i, char *room, size_t size)
{
	const char *word = a->word ? a->word(i) : a->words;
	size_t n;

	for (; word && !a->word && i && *word; i--) {
		word += strcspn(word, " ");
		word += *word == ' ';
	}
	if (!word || !*word)
		return NULL;
	n = a->word ? strlen(word) : strcspn(word, " ");
	snprintf(room, size, "%.*s", (int)n, word);
	return room;
}

/* Prints text from `column` on, broken between words; its own line breaks stay. */
static void wrap(const char *text, size_t indent, size_t column)
{
	while (*text) {
		size_t n = strcspn(text, " \n");

		if (column > indent && column + 1 + n > WIDTH) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)n, text);
		column += n;
		text += n;
		if (*text == '\n') {
			printf("\n%*s", (int)indent, "");
			column = indent;
		}
		text += *text != '\0';
	}
	putchar('\n');
}

void args_help(const struct tool_verb *v)
{
	const char *line = v->synopsis;

	for (const char *before = "Usage:"; *line; before = "      ") {
		size_t n = strcspn(line, "\n");

		printf("%s umadvise %.*s\n", before, (int)n, line);
		line += n + (line[n] == '\n');
	}
	putchar('\n');
	wrap(v->about, 0, 0);
	putchar('\n');
	for (const struct arg *a = v->options; a->name; a++) {
		char left[80], letter[] = {'-', a->letter, ',', ' ', '\0'};

		if (!args_has(v, a))
			continue;
		snprintf(left, sizeof left, "  %s--%s%s%s", a->letter ? letter : "", a->name, a->value ? " " : "",
			 a->value ? a->value : "");
		if (strlen(left) + 1 < INDENT)
			printf("%-*s", INDENT, left);
		else
			printf("%s\n%*s", left, INDENT, "");
		wrap(a->help, INDENT, INDENT);
	}
	printf("\n%s", v->tail);
}

/* --- names close by ----------------------------------------------------------------------------------------------- */

/* Is `word` closer to the text than all previous words? */
static int closer(const char *text, const char *word, size_t *best)
{
	size_t n = strcspn(text, "=,"), d = um_near_distance(text, n, word);

	if (n > 1 && strncmp(text, word, n) == 0)
		d = 1; /* the text is a prefix of the word */
	if (d > 3 || 2 * d >= strlen(word) || d >= *best)
		return 0;
	*best = d;
	return 1;
}

const char *args_near(const char *text, const struct arg *a, char *room, size_t size)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;
	char word[64];

	for (unsigned i = 0; args_word(a, i, word, sizeof word); i++)
		if (closer(text, word, &best)) {
			snprintf(room, size, "%s", word);
			near = room;
		}
	return near;
}

const char *args_near_option(const struct tool_verb *v, const char *text)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (const struct arg *a = v->options; a->name; a++)
		if (args_has(v, a) && closer(text, a->name, &best))
			near = a->name;
	return near;
}

const char *args_near_verb(const char *text)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (const struct tool_verb *const *v = args_verbs; *v; v++)
		if (closer(text, (*v)->name, &best))
			near = (*v)->name;
	return near;
}

/* --- for the shell ------------------------------------------------------------------------------------------------ */

static void complete_option(const struct arg *a)
{
	char word[64];

	if (a->letter)
		printf("-%c ", a->letter);
	printf("--%s", a->name);
	if (a->value && strchr(a->value, ','))
		fputs(" @list", stdout);
	for (unsigned i = 0; a->value && args_word(a, i, word, sizeof word); i++)
		printf(" %s", word);
	if (a->value && strstr(a->value, "FILE"))
		fputs(" @file", stdout);
	else if (a->value && !a->words && !a->word)
		fputs(" @value", stdout);
	putchar('\n');
}

int args_complete(const char *verb)
{
	for (const struct tool_verb *const *v = args_verbs; *v; v++) {
		if (!verb)
			puts((*v)->name);
		if (!verb || strcmp((*v)->name, verb) != 0)
			continue;
		for (const struct arg *a = (*v)->options; a->name; a++)
			if (args_has(*v, a))
				complete_option(a);
		return TOOL_DONE;
	}
	return verb ? TOOL_USAGE : TOOL_DONE;
}
