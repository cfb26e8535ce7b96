/* SPDX-License-Identifier: Apache-2.0
 *
 * args.h - the options of all verbs, as tables
 *
 * in    a verb's table and its command line
 * out   the verb's struct, filled in; or an error message on stderr
 *
 * The parser, --help, the messages and the data of the shell completion read the same table. An option of several verbs
 * is one macro here, or one line of a shared table; `modes` lists its verbs.
 */
#ifndef UM_TOOLS_ARGS_H
#define UM_TOOLS_ARGS_H

#include <stddef.h>
#include <stdint.h>

enum arg_kind {
	ARG_FLAG, /* int: 1 */
	ARG_OFF, /* int: 0 */
	ARG_TEXT, /* const char *, of argv */
	ARG_SIZE, /* uint64_t: bytes, `least` (or 1) or more */
	ARG_COUNT, /* uint64_t, `least` to `most` */
	ARG_REAL, /* double, `least` to `most` */
	ARG_CHOICE, /* int or an enum: which of `words` */
	ARG_READ, /* parsed by `read` */
	ARG_LIST, /* `list` prints, then the command ends */
};

struct arg {
	const char *name; /* NULL: the end of a table */
	char letter; /* or 0 */
	enum arg_kind kind;
	unsigned modes; /* bits of verbs or uses; 0: all of them */
	size_t at; /* offset of the target in the verb's struct */
	const char *value; /* name of the value in --help; completion knows "FILE" and ","; NULL: no value */
	const char *words; /* "table json csv" */
	const char *(*word)(unsigned i); /* instead of `words`: the i-th word, or NULL */
	double least, most;
	const char *expected; /* "a percentage"; ranges, words and sizes need none */
	const char *(*read)(void *args, const char *text); /* NULL, or the part of `text` that is wrong */
	void (*list)(int json); /* json: --format json was given */
	int writes; /* ARG_TEXT: a file that the verb writes */
	const char *help;
};

struct tool_verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what; /* for umadvise --help */
	const char *synopsis; /* a usage a line, without "umadvise" */
	const char *about; /* a paragraph a line */
	const struct arg *options;
	unsigned modes; /* the table's modes that belong to this verb */
	const char *tail; /* --help ends with it: examples */
	int runs_program; /* the first operand ends the options */
	int table_fd; /* descriptor of tables without --output; 0: standard output */
};

extern const struct tool_verb *const *args_verbs; /* all of the tool, NULL at the end; set by main() */

struct args_found {
	char **operands;
	int n;
	uint64_t given; /* bits, by index into the table */
};

#define ARGS_GO_ON (-1)

/* Reads the options into `args`, which holds the defaults. ARGS_GO_ON, or the exit code after --help or an error
 * message. */
int args_read(const struct tool_verb *v, void *args, int argc, char **argv, struct args_found *found);

/* Are all given options of these modes? Otherwise prints that `with` excludes the first other one. */
int args_only(const struct tool_verb *v, const struct args_found *found, unsigned modes, const char *with);

/* args_help.c */
void args_help(const struct tool_verb *v);
/* For the shell completion: the verbs, or one line per option: its spellings, then words, "@file", "@list", "@value" */
int args_complete(const char *verb);
/* The word closest to `text`, or NULL. `room` holds it. */
const char *args_near(const char *text, const struct arg *a, char *room, size_t size);
const char *args_near_option(const struct tool_verb *v, const char *text);
const char *args_near_verb(const char *text);
/* The i-th word of a choice into `room`, or NULL. */
const char *args_word(const struct arg *a, unsigned i, char *room, size_t size);
/* Has this verb the option? */
int args_has(const struct tool_verb *v, const struct arg *a);

/* The built-in devices: name, memory, link. */
void args_list_profiles(int json);
const char *args_profile_name(unsigned i);

/* A row of a table. Further fields follow by name, `help` last. */
#define ARG(kind_, name_, modes_, at_, value_, ...)                                                                    \
	{                                                                                                              \
		.kind = (kind_), .name = (name_), .modes = (modes_), .at = (at_), .value = (value_), __VA_ARGS__       \
	}

/* --- options that verbs share ------------------------------------------------------------------------------------- */

#define ARG_PROFILE(at_, modes_)                                                                                       \
	{.name = "profile",                                                                                            \
	 .kind = ARG_TEXT,                                                                                             \
	 .modes = (modes_),                                                                                            \
	 .at = (at_),                                                                                                  \
	 .value = "NAME|FILE",                                                                                         \
	 .word = args_profile_name,                                                                                    \
	 .help = "the device: one of --list-profiles, or a file (default: v100)"},                                     \
	{                                                                                                              \
		.name = "list-profiles", .kind = ARG_LIST, .modes = (modes_), .list = args_list_profiles,              \
		.help = "built-in devices, one per line: name, memory, link"                                           \
	}
#define ARG_BUDGET(at_, modes_, least_, help_)                                                                         \
	{                                                                                                              \
		.name = "budget", .kind = ARG_SIZE, .modes = (modes_), .at = (at_), .value = "BYTES",                  \
		.least = (least_), .help = help_ "; a number with KiB, MiB or GiB"                                     \
	}
#define ARG_FORMAT(at_, modes_, words_, help_)                                                                         \
	{                                                                                                              \
		.name = "format", .letter = 'f', .kind = ARG_CHOICE, .modes = (modes_), .at = (at_),                   \
		.value = "FORMAT", .words = (words_), .help = (help_)                                                  \
	}
#define ARG_OUTPUT(at_, help_)                                                                                         \
	{                                                                                                              \
		.name = "output", .letter = 'o', .kind = ARG_TEXT, .at = (at_), .value = "FILE", .writes = 1,          \
		.help = (help_)                                                                                        \
	}
#define ARG_LAST                                                                                                       \
	{.name = "color",                                                                                              \
	 .kind = ARG_CHOICE,                                                                                           \
	 .at = SIZE_MAX,                                                                                               \
	 .value = "WHEN",                                                                                              \
	 .words = "auto always never",                                                                                 \
	 .help = "colour tables and findings: auto (default: on a terminal if NO_COLOR is not set), always "           \
		 "or never"},                                                                                          \
		{.name = "help", .letter = 'h', .kind = ARG_LIST, .help = "this text"},                                \
	{                                                                                                              \
		.name = NULL                                                                                           \
	}

#endif
