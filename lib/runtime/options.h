/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - the options of a context
 *
 * Owned copies of the options given to umadv_open; defaults come from the environment (environment.h).
 */
#ifndef UM_RUNTIME_OPTIONS_H
#define UM_RUNTIME_OPTIONS_H

#include "runtime/strategy.h"
#include "umadvise.h"

struct um_options {
	struct umadv_options pub; /* its strings point to the copies below */
	enum um_strategy strategy;
	char *strings[5];
	char problem[160]; /* the first invalid value, in words; empty if all are valid */
};

/* Copies `given` (NULL: defaults and environment). 0, -ENOMEM, -EINVAL (see `problem`). */
int um_options_take(struct um_options *o, const struct umadv_options *given);
void um_options_fini(struct um_options *o);

#endif
