/* SPDX-License-Identifier: Apache-2.0
 *
 * bound_master.h - the linear program over given cuts
 *
 * in    chains, cuts of the iteration, budget, rates
 * out   the bound, and the prices of memory and link at each cut
 *
 * See bound_master.c for the program and its proof.
 */
#ifndef UM_BOUND_BOUND_MASTER_H
#define UM_BOUND_BOUND_MASTER_H

#include "bound/bound.h"

/* Per MiB at each cut (room) and in the segment after it (in, out), in ms; per ms of it (time). */
struct bound_prices {
	double *room, *in, *out, *time; /* one allocation, at room */
};

int bound_prices_init(struct bound_prices *p, int n); /* all 0; 0 or -ENOMEM */
void bound_prices_fini(struct bound_prices *p);

struct bound_cuts {
	int n;
	int64_t *moment; /* ascending, in [0, 2 n_ops) */
};

/* A day: when bytes of a group with the same gaps between cuts are evicted. */
struct bound_group {
	double mib;
	double own, others; /* as in struct bound_again */
	/* Into keys: first segment of a copy out (or INT32_MIN), cuts of each gap, first segment for others. */
	uint32_t key, gaps;
};

struct bound_groups {
	UM_VEC(struct bound_group) at;
	UM_VEC(int32_t) keys;
};

/* Groups bytes that these cuts do not distinguish. 0 or -ENOMEM. */
int bound_groups_init(struct bound_groups *g, const struct bound_work *w, const struct bound_cuts *c);
void bound_groups_fini(struct bound_groups *g);

/* Gain of one MiB of a group on its best day at these prices; >= 0. */
double bound_day_worth(const struct bound_groups *g, const struct bound_group *x, int n, const struct bound_prices *p);

struct bound_problem { /* all borrowed */
	const struct bound_request *r;
	const struct bound_work *w;
	const struct bound_cuts *c;
	int fine; /* better and slower: large chains of gaps separately */
};

/* Solves within `seconds` (0: no limit). `prices` (of c->n cuts) prove the bound *bound_ms, *done or not. 0,
 * -ENOMEM. */
int bound_master_solve(const struct bound_problem *b, double seconds, struct bound_prices *prices, double *bound_ms,
		       int *done);

#endif
