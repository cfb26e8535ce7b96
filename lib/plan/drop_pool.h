/* SPDX-License-Identifier: Apache-2.0
 *
 * drop_pool.h - the gaps of several orders, each once
 *
 * in    a schedule, rules for orders (drops.h)
 * out   all gaps, and each order as indices of them
 * owns  the arrays
 */
#ifndef UM_PLAN_DROP_POOL_H
#define UM_PLAN_DROP_POOL_H

#include "plan/drops.h"

struct um_drop_order {
	uint32_t *at, n; /* indices of gaps */
	uint64_t *bytes; /* by number of gaps: their sum; n + 1 */
};

struct um_drop_pool {
	struct um_drops all; /* by slot and begin */
	struct um_drop_order *order;
	size_t n_orders;
};

/* 0 or -ENOMEM. Plan path: as um_drops_build, for each rule. */
int um_drop_pool_build(struct um_drop_pool *p, const struct um_versions *v, const struct um_drops_rule *rule, size_t n);
void um_drop_pool_fini(struct um_drop_pool *p);

#endif
