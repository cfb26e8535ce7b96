/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/strategy.h"

#include "plan/planner.h"

#include <errno.h>
#include <string.h>

static const char *const strategies[] = {"lookahead", "on-demand", "prefetch-on-use"};
const char *const um_evict_words[UM_EVICT_WORDS] = {"auto", "library", "driver"};

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

static int find_name(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}

const char *um_strategy_name(enum um_strategy s)
{
	return s < UM_STRATEGY_SCHEME ? strategies[s] : um_plan_scheme_name((unsigned)(s - UM_STRATEGY_SCHEME));
}

int um_strategy_parse(const char *name)
{
	int scheme = um_plan_scheme_parse(name);

	if (scheme >= 0)
		return UM_STRATEGY_SCHEME + scheme;
	return find_name(strategies, COUNT(strategies), name);
}

int um_strategy_plans(enum um_strategy s)
{
	return s == UM_STRATEGY_LOOKAHEAD || s >= UM_STRATEGY_SCHEME;
}
