/* SPDX-License-Identifier: Apache-2.0
 *
 * environment.h - the table of UMADVISE_* variables: names, options, accepted values, meanings
 *
 * in    the environment of the process; that of a set-uid program counts as empty
 * out   options; one line for each invalid value and each unknown name
 * owns  nothing
 *
 * An empty value counts as unset. An invalid value leaves the option at its default, and the next context that opens
 * logs it. Start path.
 */
#ifndef UM_RUNTIME_ENVIRONMENT_H
#define UM_RUNTIME_ENVIRONMENT_H

#include "umadvise.h"

struct um_variable {
	const char *name;
	const char *accepted; /* "auto, none or sim" */
	const char *standard; /* the default, in words */
	const char *what; /* purpose of the option: a line without a period */
	size_t at; /* of the option in struct umadv_options */
	int (*parse)(const struct um_variable *v, const char *text, struct umadv_options *o); /* 0, or -EINVAL */
	const char *const *words; /* accepted words by number, or NULL */
	unsigned n_words;
	const char *constants; /* their names in C: "UMADV_DEVICE_AUTO, _NONE or _SIM"; NULL: not checked */
};

extern const struct um_variable um_variables[]; /* name NULL: the end */

/* The value of a variable; NULL if it is unset or empty. */
const char *um_variable_get(const char *name);

/* Is it a switch that is on, that is off? */
int um_variable_on(const char *name);
int um_variable_off(const char *name);

/* Does the option's value `text` come from the variable? */
int um_variable_is(const char *name, const char *text);

/* Reads one variable into `o`: 1; 0: it is unset; -EINVAL: its value is invalid. */
int um_variable_read(const struct um_variable *v, struct umadv_options *o);

/* Writes the line about an invalid value. */
void um_variable_ignored(const char *name, char *line, size_t size);

/* Reads all variables with valid values. */
void um_environment_read(struct umadv_options *o);

/* The next unknown UMADVISE_* name of the environment, from `*at` (initially 0) on, or NULL. `near`: the known name
 * that is similar, or NULL. Variables of umadvise dryrun are skipped. */
const char *um_environment_unknown(size_t *at, char *name, size_t size, const char **near);

/* Calls `say` for each invalid value, and for each unknown name once in a process. */
void um_environment_check(void (*say)(void *user, const char *line), void *user);

#endif
