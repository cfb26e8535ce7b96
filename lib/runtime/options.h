/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - the options of a context
 *
 * Owned copies of what umadv_open was given, with the environment (environment.h) where nothing was given.
 */
#ifndef UM_RUNTIME_OPTIONS_H
#define UM_RUNTIME_OPTIONS_H

#include "umadvise.h"

/* From UM_STRATEGY_SCHEME on: published schemes by number (plan/planner.h). */
enum um_strategy { UM_STRATEGY_LOOKAHEAD, UM_STRATEGY_ON_DEMAND, UM_STRATEGY_PREFETCH_ON_USE, UM_STRATEGY_SCHEME };

struct um_options {
	struct umadv_options pub; /* its strings point at the copies below */
	enum um_strategy strategy;
	char *strings[5];
	char problem[160]; /* the first value given that makes no sense, in words; empty if all do */
};

/* Takes `given` (NULL: defaults and environment). 0, -ENOMEM, -EINVAL (`problem` says which). */
int um_options_take(struct um_options *o, const struct umadv_options *given);
void um_options_fini(struct um_options *o);

const char *um_strategy_name(enum um_strategy s);
int um_strategy_parse(const char *name); /* or -EINVAL */

#define UM_EVICT_WORDS 3
extern const char *const um_evict_words[UM_EVICT_WORDS]; /* by enum umadv_evict */
int um_evict_parse(const char *name); /* enum umadv_evict, or -EINVAL */
int um_strategy_plans(enum um_strategy s); /* does it learn and plan? */

#endif
