/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme.c - runs a published scheme and proves its plan
 */
#include "plan/scheme.h"

#include <stdio.h>

/* Maximum rounds of a scheme, each without the gaps that turned out too short. */
#define MOST_ROUNDS 20

/* Number of weights tried; those of the paper converge after some 30. */
#define TRIES 34
#define FEW_TRIES 12
#define MANY_TOUCHES 400000u /* from this many touches on */

#define MERGE 4 /* maximum number of blocks in a hint */

static const struct um_scheme schemes[] = {
	{"autoswap", UM_AUTOSWAP_COMBINED, 1, um_scheme_autoswap, NULL},
	{"autoswap-doa", UM_AUTOSWAP_DOA, 0, um_scheme_autoswap, NULL},
	{"autoswap-aoa", UM_AUTOSWAP_AOA, 0, um_scheme_autoswap, NULL},
	{"autoswap-wdoa", UM_AUTOSWAP_WDOA, 0, um_scheme_autoswap, NULL},
	{"autoswap-swdoa", UM_AUTOSWAP_SWDOA, 0, um_scheme_autoswap, NULL},
	{"autoswap-no-overhead", UM_AUTOSWAP_NO_OVERHEAD, 1, um_scheme_autoswap, NULL},
	{"superneurons", 0, 0, um_scheme_superneurons, um_superneurons_drops},
	{"appobmem", 0, 0, um_scheme_appobmem, NULL},
};

#define OWN (unsigned)(sizeof schemes / sizeof *schemes)

static const struct um_scheme *further;
static unsigned n_further;

void um_scheme_add(const struct um_scheme *more, unsigned n)
{
	further = more;
	n_further = n;
}

const struct um_scheme *um_scheme_at(unsigned i)
{
	if (i < OWN)
		return &schemes[i];
	return i - OWN < n_further ? &further[i - OWN] : NULL;
}

const struct um_scheme *um_scheme_find(const char *name)
{
	const struct um_scheme *scheme;

	for (unsigned i = 0; (scheme = um_scheme_at(i)); i++)
		if (strcmp(scheme->name, name) == 0)
			return scheme;
	return NULL;
}

struct run {
	const struct um_scheme *scheme;
	struct um_scheme_input s;
	struct um_plan *out;
	uint8_t *keep_resident; /* by visit: turned out too short */
};

/* One round, into out->hints. `*too_short`: number of gaps that should not have been chosen, keep_resident now. */
static int run_once(struct run *r, uint32_t *too_short)
{
	struct um_scheme_result a;
	struct um_lowering carry = r->s.carry;
	struct um_timeline line = {0};
	int err = um_scheme_result_init(&a, r->s.b, r->keep_resident);

	if (err)
		return err;
	err = r->scheme->choose(&r->s, r->scheme->mode, &a);
	um_choice_settle(&a.choice, r->s.b);
	carry.not_before = a.not_before;
	if (!err)
		err = um_lower_plan(r->s.b, r->s.sched, &a.choice, &carry, &line, r->out);
	*too_short = line.too_short;
	um_timeline_fini(&line);
	um_scheme_result_fini(&a);
	return err;
}

static int ask_all(struct run *r)
{
	uint32_t too_short = 1;
	int err = 0;

	memset(r->keep_resident, 0, r->s.b->n_visits);
	for (int i = 0; !err && too_short && i < MOST_ROUNDS; i++) {
		err = run_once(r, &too_short);
		/* too many gaps excluded: use the previous result */
		if (err == -E2BIG && i)
			return 0;
	}
	return err;
}

/* A whole plan, proved. 0, -ENOMEM, or no plan: -E2BIG, -EINVAL. If hints of several blocks make an unsound plan (a
 * block is prefetched again before its eviction began), hints of one block each may be sound. */
static int plan(struct run *r)
{
	static const uint32_t merges[] = {MERGE, 1};
	struct um_plan_figures f;
	char reason[240] = "";
	int err = -EINVAL;

	for (int i = 0; err == -EINVAL && i < 2; i++) {
		r->s.carry.merge = merges[i];
		r->s.value = -1;
		err = ask_all(r);
		if (err)
			return err;
		err = um_plan_check(r->out, &f, reason, sizeof reason);
	}
	if (!err)
		r->out->predicted_ns = f.ns;
	else if (r->s.why)
		snprintf(r->s.why, r->s.why_size, "%s: no sound plan found: %s", r->scheme->name, reason);
	return err;
}

/* Finds weights for r->s.weight. Without a plan the value is the worst possible, unless the scheme grades it. */
static int tune(struct run *r)
{
	int most = r->s.b->n_touches > MANY_TOUCHES ? FEW_TRIES : TRIES;
	struct um_bayes y = {.n = 0};

	for (int i = 0; i < most; i++) {
		double weight[UM_BAYES_DIMS] = {0}, worst = 0;
		int err;

		if (i < UM_BAYES_DIMS)
			weight[i] = 1;
		else
			um_bayes_next(&y, weight);
		memcpy(r->s.weight, weight, sizeof weight);
		err = plan(r);
		if (err && err != -E2BIG && err != -EINVAL)
			return err;
		for (int k = 0; k < y.n; k++)
			worst = y.value[k] > worst ? y.value[k] : worst;
		if (r->s.value < 0)
			r->s.value = err ? worst + (double)r->s.clock[r->s.b->n_ops] : (double)r->out->predicted_ns;
		um_bayes_add(&y, weight, r->s.value);
	}
	memcpy(r->s.weight, y.at[um_bayes_best(&y)], sizeof r->s.weight);
	return 0;
}

static int fits(const struct run *r)
{
	struct um_choice c;
	int err = um_choice_init(&c, r->s.b, r->keep_resident);

	if (err)
		return err;
	err = um_load_max(&c.load, 0, r->s.b->n_ops) <= r->s.carry.capacity;
	um_choice_fini(&c);
	return err;
}

int um_scheme_run(const struct um_scheme *scheme, const struct um_blocks *b, const struct um_profile *profile,
		  struct um_plan *out, char *why, size_t size)
{
	uint64_t blocks = out->budget / UM_BLOCK_BYTES, *clock = calloc(out->sched.ops.n + 1, sizeof *clock);
	struct run r = {.scheme = scheme, .out = out, .keep_resident = calloc(b->n_visits + 1ull, 1)};
	int err = clock && r.keep_resident ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < out->sched.ops.n; i++)
		clock[i + 1] = clock[i] + out->sched.ops.at[i].ns;
	r.s = (struct um_scheme_input){
		.b = b,
		.sched = &out->sched,
		.clock = clock,
		.carry = {{out->budget, out->h2d, out->d2h, 1, 0}, INT32_MAX, MERGE, NULL},
		.fixed_ns = profile->o_seg,
		.why = why,
		.why_size = why ? size : 0,
	};
	if (blocks < INT32_MAX)
		r.s.carry.capacity = (int32_t)blocks;
	/* without evictions there is nothing to tune */
	if (!err && scheme->tuned && !(err = fits(&r)))
		err = tune(&r);
	if (err >= 0)
		err = plan(&r);
	free(clock);
	free(r.keep_resident);
	return err;
}
