/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - the options of a context
 *
 * Owned copies of what umadv_open was given, with the environment (environment.h) where nothing was given.
 */
#ifndef UM_RUNTIME_OPTIONS_H
#define UM_RUNTIME_OPTIONS_H

#include "runtime/strategy.h"
#include "umadvise.h"

struct um_options {
	struct umadv_options pub; /* its strings point at the copies below */
	enum um_strategy strategy;
	char *strings[5];
	char problem[160]; /* the first value given that makes no sense, in words; empty if all do */
};

/* Takes `given` (NULL: defaults and environment). 0, -ENOMEM, -EINVAL (`problem` says which). */
int um_options_take(struct um_options *o, const struct umadv_options *given);
void um_options_fini(struct um_options *o);

#endif
