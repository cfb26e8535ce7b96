/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_json.h - plans that are shown or compared, as JSON: "umplan-show/1", "umplan-diff/1"
 */
#ifndef UM_TOOLS_PLAN_JSON_H
#define UM_TOOLS_PLAN_JSON_H

#include "plan_view.h"
#include "table.h"

#include <jansson.h>

/* Differing evictions, row by row: `x` of the first plan, `y` of the second; one may be NULL. */
struct plan_differ {
	void (*row)(struct plan_differ *d, const struct plan_view *v, const struct plan_eviction *x,
		    const struct plan_eviction *y);
	struct table *table; /* of a text */
	json_t *list; /* of JSON */
	int err;
	size_t only_a, only_b, both, same;
};

/* The figures of a plan. NULL: no memory. */
json_t *plan_json_figures(const struct plan_view *v);
void plan_json_differ(struct plan_differ *d, const struct plan_view *v, const struct plan_eviction *x,
		      const struct plan_eviction *y);

#endif
