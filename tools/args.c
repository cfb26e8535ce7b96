/* SPDX-License-Identifier: Apache-2.0 */
#include "args.h"

#include "base/size.h"
#include "output.h"
#include "paint.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 64 /* options of a table */
#define LONG_ONLY 256 /* getopt's value of options without a letter: this plus their index */

static const struct arg *find(const struct tool_verb *v, int c)
{
	for (const struct arg *a = v->options; a->name; a++)
		if (args_has(v, a) && c == (a->letter ? a->letter : LONG_ONLY + (int)(a - v->options)))
			return a;
	return NULL;
}

static const struct arg *named(const struct tool_verb *v, const char *name, size_t n)
{
	for (const struct arg *a = v->options; a->name; a++)
		if (args_has(v, a) && strlen(a->name) == n && strncmp(a->name, name, n) == 0)
			return a;
	return NULL;
}

/* Describes the valid values of an option. */
static void expected(const struct arg *a, char *to, size_t size)
{
	char room[64];
	size_t n = 0;

	switch (a->kind) {
	case ARG_SIZE:
		n = (size_t)snprintf(to, size, "a size such as 512MiB");
		if (a->least > 1)
			snprintf(to + n, size - n, ", %.10g MiB at least", a->least / 1048576);
		return;
	case ARG_COUNT:
	case ARG_REAL:
		snprintf(to, size, "%s, %.10g to %.10g", a->expected, a->least, a->most);
		return;
	case ARG_CHOICE:
		*to = '\0';
		for (unsigned i = 0; args_word(a, i, room, sizeof room) && n < size; i++) {
			int last = !args_word(a, i + 1, (char[64]){0}, 64);

			n += (size_t)snprintf(to + n, size - n, "%s%s", !i ? "" : last ? " or " : ", ", room);
		}
		return;
	default:
		snprintf(to, size, "%s", a->expected ? a->expected : a->value);
	}
}

static int bad(const struct tool_verb *v, const struct arg *a, const char *text)
{
	char right[300], room[64];
	const char *near = args_near(text, a, room, sizeof room);

	expected(a, right, sizeof right);
	tool_say(v->name, "--%s '%.*s': expected %s%s%s%s", a->name,
		 (int)(strchr(a->value, ',') ? strcspn(text, ",") : strlen(text)), text, right,
		 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	return TOOL_USAGE;
}

static int read_number(const struct arg *a, void *to, const char *text)
{
	char *end;

	errno = 0;
	if (a->kind == ARG_COUNT) {
		unsigned long long n = strtoull(text, &end, 10);

		*(uint64_t *)to = n;
		return *text < '0' || *text > '9' || *end || errno || (double)n < a->least || (double)n > a->most;
	}
	double x = strtod(text, &end);

	*(double *)to = x;
	return end == text || *end || !(x >= a->least && x <= a->most);
}

static int read_choice(const struct arg *a, void *to, const char *text)
{
	char room[64];

	for (unsigned i = 0; args_word(a, i, room, sizeof room); i++)
		if (strcmp(room, text) == 0) {
			*(int *)to = (int)i;
			return 0;
		}
	return 1;
}

/* ARGS_GO_ON or the exit code. */
static int read_value(const struct tool_verb *v, const struct arg *a, void *args, void *to, const char *text)
{
	const char *wrong = text;

	switch (a->kind) {
	case ARG_FLAG:
	case ARG_OFF:
		*(int *)to = a->kind == ARG_FLAG;
		return ARGS_GO_ON;
	case ARG_TEXT:
		*(const char **)to = text;
		return ARGS_GO_ON;
	case ARG_SIZE:
		if (!um_size_parse(text, to) && *(uint64_t *)to && (double)*(uint64_t *)to >= a->least)
			return ARGS_GO_ON;
		break;
	case ARG_COUNT:
	case ARG_REAL:
		if (!read_number(a, to, text))
			return ARGS_GO_ON;
		break;
	case ARG_CHOICE:
		if (!read_choice(a, to, text))
			return ARGS_GO_ON;
		break;
	case ARG_READ:
		wrong = a->read(args, text);
		if (!wrong)
			return ARGS_GO_ON;
		break;
	case ARG_LIST:
		return ARGS_GO_ON; /* runs after all options are read */
	}
	return bad(v, a, wrong);
}

/* Reports an option that getopt rejected. */
static int refuse(const struct tool_verb *v, int c, const char *word)
{
	const struct arg *a = optopt ? find(v, optopt) : NULL;
	size_t n = strcspn(word, "=");
	char right[300], letter[] = {'-', (char)optopt, '\0'};
	const char *near;

	if (a && c == ':') {
		expected(a, right, sizeof right);
		tool_say(v->name, "--%s needs a value: expected %s", a->name, right);
		return TOOL_USAGE;
	}
	if (a) {
		tool_say(v->name, "--%s takes no value", a->name);
		return TOOL_USAGE;
	}
	if (optopt || strncmp(word, "--", 2) != 0) {
		tool_say(v->name, "unknown option '%s': 'umadvise %s --help' lists the options", letter, v->name);
		return TOOL_USAGE;
	}
	for (const struct tool_verb *const *o = args_verbs; *o; o++)
		if (named(*o, word + 2, n - 2)) {
			tool_say(v->name, "unknown option '%.*s': it is an option of umadvise %s", (int)n, word,
				 (*o)->name);
			return TOOL_USAGE;
		}
	near = args_near_option(v, word + 2);
	if (near)
		tool_say(v->name, "unknown option '%.*s': did you mean '--%s'?", (int)n, word, near);
	else
		tool_say(v->name, "unknown option '%.*s': 'umadvise %s --help' lists the options", (int)n, word,
			 v->name);
	return TOOL_USAGE;
}

static void prepare(const struct tool_verb *v, struct option *longs, char *shorts)
{
	if (v->runs_program)
		*shorts++ = '+';
	*shorts++ = ':';
	for (const struct arg *a = v->options; a->name; a++) {
		int c = a->letter ? a->letter : LONG_ONLY + (int)(a - v->options);

		if (!args_has(v, a))
			continue;
		*longs++ = (struct option){a->name, a->value ? required_argument : no_argument, NULL, c};
		if (a->letter)
			*shorts++ = a->letter;
		if (a->letter && a->value)
			*shorts++ = ':';
	}
	*shorts = '\0';
	*longs = (struct option){NULL, 0, NULL, 0};
}

/* Prints a requested list, otherwise decides on colour. */
static int finish(const struct tool_verb *v, const void *args, const struct arg *list, enum paint_when when)
{
	const struct arg *f = named(v, "format", 6), *o = named(v, "output", 6);
	const char *path = o ? *(const char *const *)((const char *)args + o->at) : NULL;
	char word[64];

	if (list && !list->list)
		return args_help(v), TOOL_DONE;
	if (list) {
		const char *format = f ? args_word(f, *(const unsigned *)((const char *)args + f->at), word, 64) : NULL;

		list->list(format && strcmp(format, "json") == 0);
		return TOOL_DONE;
	}
	paint_init(when, path && strcmp(path, "-") != 0 ? -1 : v->table_fd ? v->table_fd : STDOUT_FILENO);
	return ARGS_GO_ON;
}

static const char *file_of(const struct arg *a, const void *args, const struct args_found *found,
			   const struct tool_verb *v)
{
	int given = found->given >> (a - v->options) & 1;

	return given && a->kind == ARG_TEXT ? *(const char *const *)((const char *)args + a->at) : NULL;
}

/* No output may be an input or another output. */
static int check_outputs(const struct tool_verb *v, const void *args, const struct args_found *found)
{
	int n = v->runs_program && found->n > 1 ? 1 : found->n, code = 0;

	for (const struct arg *a = v->options; a->name && !code; a++) {
		const char *output = a->writes ? file_of(a, args, found, v) : NULL;

		if (!output)
			continue;
		code = tool_output_check(v->name, output, found->operands, n);
		for (const struct arg *b = v->options; b->name && !code; b++) {
			char *other = (char *)file_of(b, args, found, v);

			if (b != a)
				code = tool_output_check(v->name, output, &other, 1);
		}
	}
	return code;
}

int args_read(const struct tool_verb *v, void *args, int argc, char **argv, struct args_found *found)
{
	struct option longs[MOST + 1];
	char shorts[2 * MOST + 3];
	const struct arg *list = NULL;
	int c, code = ARGS_GO_ON, when = PAINT_AUTO;

	*found = (struct args_found){0};
	prepare(v, longs, shorts);
	optind = 0; /* argv is not main's */
	opterr = 0;
	while (code == ARGS_GO_ON && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct arg *a = c == '?' || c == ':' ? NULL : find(v, c);

		if (!a)
			return refuse(v, c, argv[optind - 1]);
		found->given |= UINT64_C(1) << (a - v->options);
		if (a->kind == ARG_LIST && !list)
			list = a;
		code = read_value(v, a, args, a->at == SIZE_MAX ? (void *)&when : (char *)args + a->at, optarg);
	}
	if (code != ARGS_GO_ON)
		return code;
	found->operands = argv + optind;
	found->n = argc - optind;
	if (!list && check_outputs(v, args, found))
		return TOOL_USAGE;
	return finish(v, args, list, (enum paint_when)when);
}

int args_only(const struct tool_verb *v, const struct args_found *found, unsigned modes, const char *with)
{
	for (const struct arg *a = v->options; a->name; a++)
		if ((found->given >> (a - v->options) & 1) && a->modes && !(a->modes & modes)) {
			tool_say(v->name, "--%s cannot be used with %s", a->name, with);
			return 0;
		}
	return 1;
}
