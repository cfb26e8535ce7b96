/* SPDX-License-Identifier: Apache-2.0
 *
 * environment.h - the UMADVISE_* variables: one table of names, options, accepted values and meanings
 *
 * in    the environment of the process; that of a set-uid program counts as empty
 * out   options, and one line for each value that is not accepted and each name that is not known
 * owns  nothing
 *
 * An empty value counts as unset. A value that is not accepted never reaches the options: the default stays, and the
 * next context that opens says so. Start path.
 */
#ifndef UM_RUNTIME_ENVIRONMENT_H
#define UM_RUNTIME_ENVIRONMENT_H

#include "umadvise.h"

struct um_variable {
	const char *name;
	const char *accepted; /* "auto, none or sim" */
	const char *standard; /* the default, in words */
	const char *what; /* what the option is for: a line without a period */
	size_t at; /* of the option in struct umadv_options */
	int (*parse)(const struct um_variable *v, const char *text, struct umadv_options *o); /* 0, or -EINVAL */
	const char *const *words; /* the accepted ones by number, or NULL */
	unsigned n_words;
	const char *constants; /* the same for C: "UMADV_DEVICE_AUTO, _NONE or _SIM"; NULL: the option is not checked */
};

extern const struct um_variable um_variables[]; /* name NULL: the end */

/* The value of a variable; NULL where it is unset or empty. */
const char *um_variable_get(const char *name);

/* Is the option `text` what the variable says? */
int um_variable_is(const char *name, const char *text);

/* Reads one variable into `o`: 1; 0: it is unset; -EINVAL: its value is not accepted. */
int um_variable_read(const struct um_variable *v, struct umadv_options *o);

/* The line that says of the variable's value that it is not accepted. */
void um_variable_ignored(const char *name, char *line, size_t size);

/* All variables that are set to what is accepted. */
void um_environment_read(struct umadv_options *o);

/* The next UMADVISE_* name of the environment, from `*at` (at first 0) on, that no variable has, or NULL. `near`: the
 * name that it may be meant to be, or NULL. Those of umadvise dryrun are not looked at. */
const char *um_environment_unknown(size_t *at, char *name, size_t size, const char **near);

/* Says each value that is not accepted; each unknown name once in a process. */
void um_environment_check(void (*say)(void *user, const char *line), void *user);

#endif
