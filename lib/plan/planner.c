/* SPDX-License-Identifier: Apache-2.0
 *
 * Places, blocks and the bound are made once; search.c makes the hints. Advice is none of the published schemes' ideas:
 * only our own strategy gives it.
 */
#include "plan/planner.h"

#include "plan/advice.h"
#include "plan/blocks.h"
#include "plan/bound.h"
#include "plan/place.h"
#include "plan/scheme.h"
#include "plan/search.h"

#include <inttypes.h>
#include <stdio.h>

/* Link rates that driver-queued copies reach. */
static void set_rates(struct um_plan *out, const struct um_profile *p)
{
	double eta = p->eta > 0 ? p->eta : 1;

	out->h2d = p->h2d * eta >= 1 ? (uint64_t)(p->h2d * eta) : 1;
	out->d2h = p->d2h * eta >= 1 ? (uint64_t)(p->d2h * eta) : 1;
}

static int set_name(char **to, const char *from)
{
	free(*to);
	*to = from && *from ? strdup(from) : NULL;
	return from && *from && !*to ? -ENOMEM : 0;
}

static int set_header(struct um_plan *out, const struct um_plan_request *r)
{
	for (size_t i = 0; i < out->sched.ops.n; i++) {
		struct um_sched_op *op = &out->sched.ops.at[i];

		if (!op->ns)
			op->ns = um_profile_op_ns(r->profile, &op->cost);
		out->in_core_ns += op->ns;
	}
	out->budget = r->budget;
	set_rates(out, r->profile);
	if (set_name(&out->profile, r->profile->name))
		return -ENOMEM;
	return set_name(&out->strategy, r->strategy ? r->strategy : "lookahead");
}

/* An op's blocks must fit. */
static int check_ops(const struct um_blocks *b, const struct um_plan *out, char *why, size_t size)
{
	uint64_t most = 0, allowed = out->budget / UM_BLOCK_BYTES;
	int32_t at = 0;

	for (int32_t i = 0; i < b->n_ops; i++) {
		uint64_t n = b->first_of_op[i + 1] - b->first_of_op[i];

		if (n > most) {
			most = n;
			at = i;
		}
	}
	if (most <= allowed)
		return 0;
	if (why && size)
		snprintf(why, size, "op %d '%s' alone needs %" PRIu64 " MiB of %" PRIu64 " MiB", at,
		         out->sched.ops.at[at].name, 2 * most, 2 * allowed);
	return -E2BIG;
}

const char *um_plan_scheme_name(unsigned i)
{
	const struct um_scheme *scheme = um_scheme_at(i);

	return scheme ? scheme->name : NULL;
}

int um_plan_scheme_parse(const char *name)
{
	const struct um_scheme *scheme;

	for (unsigned i = 0; (scheme = um_scheme_at(i)); i++)
		if (strcmp(scheme->name, name) == 0)
			return (int)i;
	return -EINVAL;
}

int um_plan_build(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow_bytes, char *why, size_t size)
{
	struct um_bound_link link;
	struct um_blocks blocks = {0};
	uint64_t grow = 0;
	const struct um_scheme *scheme = r->strategy ? um_scheme_find(r->strategy) : NULL;
	int err = um_schedule_copy(&out->sched, r->sched);

	if (!err)
		err = um_schedule_check(&out->sched, why, size);
	if (!err)
		err = set_header(out, r);
	if (!err)
		err = um_place_build(r, &out->sched, &grow);
	if (!err)
		err = um_blocks_build(&blocks, &out->sched);
	if (!err)
		err = check_ops(&blocks, out, why, size);
	link = (struct um_bound_link){out->budget, out->h2d, out->d2h};
	if (!err)
		err = um_bound_build(&blocks, &out->sched, &link, &out->bound_ns);
	if (!err)
		err = scheme ? um_scheme_run(scheme, &blocks, r->profile, out, why, size)
		             : um_search_run(&blocks, r->effort, out, why, size);
	if (!err && !scheme)
		err = um_advice_add(out);
	um_blocks_fini(&blocks);
	if (err) {
		um_plan_fini(out);
		um_plan_init(out);
		return err;
	}
	if (grow_bytes)
		*grow_bytes = grow;
	return 0;
}
