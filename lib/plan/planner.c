/* SPDX-License-Identifier: Apache-2.0
 *
 * planner.c - the passes of the planner
 *
 * Places, blocks and the bound are made once; search.c makes the hints. Plans without and with host-resident ranges are
 * tried. Published schemes have no advice: only our own strategy adds it.
 */
#include "plan/planner.h"

#include "model/plan_host.h"
#include "model/workspace.h"
#include "plan/advice.h"
#include "plan/blocks.h"
#include "plan/bound.h"
#include "plan/paged.h"
#include "plan/place.h"
#include "plan/recompute.h"
#include "plan/scheme.h"
#include "plan/search.h"
#include "plan/workspaces.h"

#include <stdio.h>

#define MIB(b) ((double)(b) / 1048576.0)

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

		if (!op->ns && op->stream != UM_STREAM_CPU)
			op->ns = um_profile_op_ns(r->profile, &op->cost, um_sched_touched(&out->sched, op));
		out->in_core_ns += op->ns;
	}
	out->budget = r->budget;
	set_rates(out, r->profile);
	if (set_name(&out->profile, r->profile->name))
		return -ENOMEM;
	return set_name(&out->strategy, r->strategy ? r->strategy : "lookahead");
}

/* Bytes of the whole tensors that an op uses. */
static uint64_t used_bytes(const struct um_blocks *b, int32_t op)
{
	uint64_t bytes = 0;

	for (uint32_t i = b->first_of_op[op]; i < b->first_of_op[op + 1]; i++) {
		const struct um_visit *v = &b->visit[b->of_op[i]];

		for (uint32_t t = v->first_touch; t < v[1].first_touch; t++)
			bytes += b->part[b->touch[t].part].bytes;
	}
	return bytes;
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
		snprintf(why, size, "op %d '%s' uses %.1f MiB, in %.1f MiB of whole blocks; the budget is %.1f MiB", at,
			 out->sched.ops.at[at].name, MIB(used_bytes(b, at)), MIB(most * UM_BLOCK_BYTES),
			 MIB(out->budget));
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

/* Makes the hints, with all places fixed. */
static int build_hints(const struct um_plan_request *r, const struct um_scheme *scheme,
		       const struct um_host_resident *host_resident, struct um_plan *out, char *why, size_t size)
{
	struct um_bound_link link = {out->budget, out->h2d, out->d2h};
	struct um_search_request search = {.effort = r->effort,
					   .rehearsal = r->rehearsal,
					   .part = r->part,
					   .on_host = r->on_host,
					   .n_on_host = r->n_on_host};
	struct um_blocks blocks = {0};
	int err = um_blocks_build(&blocks, &out->sched, host_resident), paged = 0;

	if (!err) {
		paged = um_paged_mark(&blocks, &out->sched, scheme ? UINT64_MAX : out->budget / UM_BLOCK_BYTES);
		err = paged < 0 ? paged : 0;
		paged |= um_schedule_uses_cpu(&out->sched);
	}
	if (!err && !host_resident)
		err = paged ? 0 : um_bound_build(&blocks, &out->sched, &link, &out->bound_ns);
	if (!err && !host_resident && paged)
		out->bound_ns = out->in_core_ns;
	if (!err && scheme)
		err = check_ops(&blocks, out, why, size);
	if (!err)
		err = scheme ? um_scheme_run(scheme, &blocks, r->profile, out, why, size)
			     : um_search_run(&blocks, &search, out, why, size);
	um_blocks_fini(&blocks);
	return err;
}

/* Ops that access host-resident ranges take longer; a second call restores the times. `ns`: room for one number an
 * op. */
static void swap_times(struct um_schedule *s, uint64_t *ns)
{
	for (size_t i = 0; i < s->ops.n; i++) {
		uint64_t was = s->ops.at[i].ns;

		s->ops.at[i].ns = ns[i];
		ns[i] = was;
	}
}

/* The time of an iteration. Page faults move about as much as a paged op touches, whatever is resident before. */
static uint64_t paged_ns(const struct um_plan *p)
{
	double bytes = 0;

	for (size_t i = 0; i < p->sched.ops.n; i++)
		bytes += p->sched.ops.at[i].paged ? um_sched_touched(&p->sched, &p->sched.ops.at[i]) : 0;
	return p->predicted_ns + (uint64_t)(bytes * 1e9 / (double)p->h2d);
}

/* Is a plan with host-resident ranges better than one without, which takes `without`? By rehearsals where the latter
 * has one: it copies what its prediction lacks. 0, 1 or -ENOMEM. */
static int is_better(const struct um_plan_request *r, struct um_plan *p, const struct um_plan *other, uint64_t without)
{
	uint64_t ns = p->rehearsed_ns;
	int err = 0;

	if (!other->rehearsed_ns)
		return paged_ns(p) < without;
	if (!ns)
		err = um_plan_prove(p, NULL, NULL, 0);
	if (!err && !ns)
		err = r->rehearsal->ns(r->rehearsal->user, p, &ns);
	free(p->start); /* of this plan alone */
	p->start = NULL;
	return err ? err : ns < other->rehearsed_ns;
}

/* Makes the plan with host-resident ranges too; it is used if it is better than `out`, or if there was no plan (`had`
 * is the error). 0, -ENOMEM, or `had`. */
static int build_host_resident(const struct um_plan_request *r, struct um_plan *out, int had, char *why, size_t size)
{
	uint64_t *ns = malloc((out->sched.ops.n + 1) * sizeof *ns);
	uint64_t remote = (uint64_t)(r->profile->b_remote * r->profile->h2d);
	uint8_t *was = malloc(out->sched.ops.n + 1); /* by op: paged without such ranges */
	uint64_t without = paged_ns(out);
	struct um_plan near = *out;
	struct um_host_resident *host_resident = NULL;
	char line[240];
	int err = ns && was ? 0 : -ENOMEM, better;

	if (!err && remote)
		err = um_advice_host_resident(out, remote, &host_resident);
	if (err || !host_resident)
		goto out;
	memset(&out->hints, 0, sizeof out->hints);
	for (size_t i = 0; i < out->sched.ops.n; i++) {
		uint64_t slow = um_host_resident_ns(&out->sched, &out->sched.ops.at[i], host_resident, remote);

		if (out->sched.ops.at[i].stream == UM_STREAM_CPU)
			slow = 0;
		ns[i] = slow > out->sched.ops.at[i].ns ? slow : out->sched.ops.at[i].ns;
		was[i] = out->sched.ops.at[i].paged;
	}
	out->remote = remote;
	swap_times(&out->sched, ns);
	err = build_hints(r, NULL, host_resident, out, had ? why : line, had ? size : sizeof line);
	better = !err && !had ? is_better(r, out, &near, without) : !err;
	swap_times(&out->sched, ns);
	if (better <= 0) {
		um_vec_fini(&out->hints);
		memcpy(&out->hints, &near.hints, sizeof out->hints);
		out->predicted_ns = near.predicted_ns;
		out->rehearsed_ns = near.rehearsed_ns;
		err = better < 0 ? better : err;
		out->remote = 0;
		for (size_t i = 0; i < out->sched.ops.n; i++)
			out->sched.ops.at[i].paged = was[i];
	} else {
		um_vec_fini(&near.hints);
		had = 0;
	}
out:
	free(host_resident);
	free(was);
	free(ns);
	return err == -ENOMEM ? err : had;
}

/* Makes a plan by lookahead, with advice and, if requested, relaunches. */
static int build_lookahead(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow, char *why, size_t size)
{
	uint64_t all;
	int err = um_plan_managed_bytes(&out->sched, &all);

	/* with room for all there is nothing to keep */
	out->host_budget = all > r->host_budget ? r->host_budget : 0;
	if (!err)
		err = build_hints(r, NULL, NULL, out, why, size);
	if (err == -E2BIG || err == -EINVAL || (!err && out->predicted_ns > out->in_core_ns))
		err = build_host_resident(r, out, err, why, size);
	if (!err && r->recompute)
		err = um_recompute_plan(r, out, grow);
	return err;
}

/* Makes a plan by a published scheme, with relaunches if these are requested and it has them. */
static int build_scheme(const struct um_plan_request *r, const struct um_scheme *scheme, struct um_plan *out,
			uint64_t *grow, char *why, size_t size)
{
	int err = build_hints(r, scheme, NULL, out, why, size);

	if (r->recompute && scheme->drops && err != -ENOMEM)
		err = um_recompute_scheme(r, scheme, err, out, grow);
	return err;
}

static const struct um_scheme *scheme_of(const struct um_plan_request *r)
{
	return r->strategy ? um_scheme_find(r->strategy) : NULL;
}

/* Makes a plan for a schedule that was checked, with the algorithms that were chosen. */
static int build_chosen(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow, char *why, size_t size)
{
	const struct um_scheme *scheme = scheme_of(r);
	int err = um_schedule_copy(&out->sched, r->sched);

	if (!err)
		err = set_header(out, r);
	if (!err)
		err = um_place_build(r, &out->sched, grow);
	if (!err)
		err = scheme ? build_scheme(r, scheme, out, grow, why, size) : build_lookahead(r, out, grow, why, size);
	return err;
}

int um_plan_build(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow_bytes, char *why, size_t size)
{
	uint64_t grow = 0;
	int err = um_schedule_check(r->sched, why, size);

	if (!err)
		err = um_schedule_offers(r->sched)
			      ? um_workspaces_plan(r, scheme_of(r), build_chosen, out, &grow, why, size)
			      : build_chosen(r, out, &grow, why, size);
	if (err) {
		um_plan_fini(out);
		um_plan_init(out);
		return err;
	}
	if (grow_bytes)
		*grow_bytes = grow;
	return 0;
}
