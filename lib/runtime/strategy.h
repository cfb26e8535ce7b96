/* SPDX-License-Identifier: Apache-2.0
 *
 * strategy.h - names and numbers of strategies and eviction policies
 *
 * in    a name
 * out   its number
 * owns  nothing
 *
 * Start path.
 */
#ifndef UM_RUNTIME_STRATEGY_H
#define UM_RUNTIME_STRATEGY_H

/* From UM_STRATEGY_SCHEME on: published schemes by number (plan/planner.h). */
enum um_strategy { UM_STRATEGY_LOOKAHEAD, UM_STRATEGY_ON_DEMAND, UM_STRATEGY_PREFETCH_ON_USE, UM_STRATEGY_SCHEME };

const char *um_strategy_name(enum um_strategy s);
int um_strategy_parse(const char *name); /* or -EINVAL */

#define UM_EVICT_WORDS 3
extern const char *const um_evict_words[UM_EVICT_WORDS]; /* by enum umadv_evict */
int um_strategy_plans(enum um_strategy s); /* does it learn and plan? */

#endif
