/* SPDX-License-Identifier: Apache-2.0
 *
 * Places and blocks are made once. Then some ways of choosing what leaves, and some reserves of free room, are carried
 * through to hints, each is proved, and the fastest that is sound wins: what is kept is never an estimate.
 */
#include "plan/planner.h"

#include "plan/blocks.h"
#include "plan/bound.h"
#include "plan/hints.h"
#include "plan/place.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* One way to go. */
struct way {
	uint32_t reserve; /* blocks of 1,000 kept free */
	int begin, clean; /* struct um_choose_rule */
	uint32_t merge; /* blocks in one hint, at most */
	int eager;
};

/* The likeliest first: on long iterations only some are tried. */
static const struct way ways[] = {
	{0, 0, 0, 4, 1},  {20, 0, 0, 4, 1}, {0, 16, 0, 4, 1},  {0, 0, 0, 16, 0},
	{10, 0, 0, 1, 1}, {40, 0, 0, 4, 1}, {20, 16, 0, 4, 1}, {80, 0, 0, 4, 1},
};

/* Times that one way is gone, each without the gaps that turned out too short. */
#define MOST_ROUNDS 6

/* Touches that may be gone through in all, so that a plan takes bounded time. */
#define MOST_TOUCHES 4000000u

struct search {
	const struct um_plan_request *r;
	struct um_plan *out;
	struct um_blocks blocks;
	int32_t capacity; /* blocks */
	int32_t most; /* blocks that one op touches */
	UM_VEC(struct um_hint) best;
	uint64_t best_ns;
	uint64_t *clock; /* by op: when it starts if nothing waits; one more */
	char why[200]; /* the last unsoundness */
};

static int __attribute__((format(printf, 4, 5))) refuse(char *why, size_t size, int err, const char *fmt, ...)
{
	va_list ap;

	if (why && size) {
		va_start(ap, fmt);
		vsnprintf(why, size, fmt, ap);
		va_end(ap);
	}
	return -err;
}

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

static int find_largest(struct search *s, char *why, size_t size)
{
	const struct um_blocks *b = &s->blocks;
	int32_t at = 0;

	for (int32_t i = 0; i < b->n_ops; i++) {
		int32_t n = (int32_t)(b->first_of_op[i + 1] - b->first_of_op[i]);

		if (n > s->most) {
			s->most = n;
			at = i;
		}
	}
	if (s->most <= s->capacity)
		return 0;
	return refuse(why, size, E2BIG, "op %d '%s' alone needs %d MiB of %d MiB", at, s->out->sched.ops.at[at].name,
	              2 * s->most, 2 * s->capacity);
}

/* Hints of one way, into out->hints. `*hasty`: gaps that should not have been chosen, pinned now. */
static int go_once(struct search *s, const struct way *w, int32_t limit, uint8_t *pinned, uint32_t *hasty)
{
	const struct um_blocks *b = &s->blocks;
	struct um_timing timing = {s->out->budget, s->out->h2d, s->out->d2h, w->eager};
	struct um_arrivals arrivals = {0};
	struct um_returns returns = {0};
	struct um_timeline line = {0};
	struct um_choose_rule rule = {s->clock, w->begin, w->clean};
	struct um_choice c;
	int err = um_choice_init(&c, b, pinned);

	if (err)
		return err;
	err = um_choice_build(&c, b, limit, &rule);
	if (!err)
		err = um_arrivals_build(&arrivals, b, &c);
	if (!err)
		err = um_returns_build(&returns, b, &c, s->capacity, w->merge);
	if (!err)
		err = um_timeline_build(&line, b, &s->out->sched, &c, &arrivals, &returns, &timing);
	if (!err)
		err = um_hints_build(s->out, b, &c, &arrivals, &returns, &line, w->merge);
	if (!err)
		*hasty = line.hasty;
	um_arrivals_fini(&arrivals);
	um_returns_fini(&returns);
	um_timeline_fini(&line);
	um_choice_fini(&c);
	return err;
}

static int go(struct search *s, const struct way *w)
{
	int32_t limit = s->capacity - (int32_t)(((int64_t)s->capacity * w->reserve + 999) / 1000);
	uint8_t *pinned = calloc(s->blocks.n_visits + 1ull, 1);
	uint32_t hasty = 0;
	int err = pinned ? 0 : -ENOMEM;

	if (limit < s->most)
		limit = s->most;
	for (int i = 0; !err && (!i || hasty) && i < MOST_ROUNDS; i++) {
		err = go_once(s, w, limit, pinned, &hasty);
		/* Too much pinned: what was made before has to do. */
		if (err == -E2BIG && i) {
			err = 0;
			break;
		}
	}
	free(pinned);
	return err;
}

/* Proves what `go` made and keeps it if it is the best so far. Not sound: not kept, no error. */
static int judge(struct search *s)
{
	struct um_plan_figures f;
	struct um_plan *out = s->out;
	int err = um_plan_check(out, &f, s->why, sizeof s->why);

	if (err == -EINVAL)
		return 0;
	if (err || (s->best_ns && f.ns >= s->best_ns))
		return err;
	um_vec_clear(&s->best);
	if (um_vec_reserve(&s->best, out->hints.n))
		return -ENOMEM;
	if (out->hints.n)
		memcpy(s->best.at, out->hints.at, out->hints.n * sizeof *s->best.at);
	s->best.n = out->hints.n;
	s->best_ns = f.ns;
	return 0;
}

static int set_clock(struct search *s)
{
	const struct um_schedule *sched = &s->out->sched;

	s->clock = malloc((sched->ops.n + 1) * sizeof *s->clock);
	if (!s->clock)
		return -ENOMEM;
	s->clock[0] = 0;
	for (size_t i = 0; i < sched->ops.n; i++)
		s->clock[i + 1] = s->clock[i] + sched->ops.at[i].ns;
	return 0;
}

static int search(struct search *s, char *why, size_t size)
{
	uint64_t work = 0;
	int err = 0;

	for (size_t i = 0; !err && i < sizeof ways / sizeof *ways; i++) {
		work += s->blocks.n_touches + s->out->sched.uses.n;
		if (s->best_ns && work > MOST_TOUCHES)
			break;
		err = go(s, &ways[i]);
		if (!err)
			err = judge(s);
		/* No way can be better by much. */
		if (s->best_ns && s->best_ns <= s->out->bound_ns + s->out->bound_ns / 200)
			break;
	}
	if (err == -E2BIG)
		return refuse(why, size, E2BIG, "%d MiB cannot hold what is in use around one op", 2 * s->capacity);
	if (err)
		return err;
	if (!s->best_ns)
		return refuse(why, size, EINVAL, "no sound plan found: %s", s->why);
	um_vec_clear(&s->out->hints);
	if (um_vec_reserve(&s->out->hints, s->best.n))
		return -ENOMEM;
	if (s->best.n)
		memcpy(s->out->hints.at, s->best.at, s->best.n * sizeof *s->best.at);
	s->out->hints.n = s->best.n;
	s->out->predicted_ns = s->best_ns;
	return 0;
}

int um_plan_build(const struct um_plan_request *r, struct um_plan *out, uint64_t *grow_bytes, char *why, size_t size)
{
	struct search s = {.r = r, .out = out};
	uint64_t grow = 0;
	int err = um_schedule_copy(&out->sched, r->sched);

	if (!err)
		err = um_schedule_check(&out->sched, why, size);
	if (!err)
		err = set_header(out, r);
	if (!err)
		err = um_place_build(r, &out->sched, &grow);
	if (!err)
		err = um_blocks_build(&s.blocks, &out->sched);
	if (!err) {
		s.capacity = r->budget / UM_BLOCK_BYTES < INT32_MAX ? (int32_t)(r->budget / UM_BLOCK_BYTES) : INT32_MAX;
		err = find_largest(&s, why, size);
	}
	if (!err)
		err = um_bound_build(&s.blocks, &out->sched, &(struct um_bound_link){out->budget, out->h2d, out->d2h},
		                     &out->bound_ns);
	if (!err)
		err = set_clock(&s);
	if (!err)
		err = search(&s, why, size);
	um_blocks_fini(&s.blocks);
	um_vec_fini(&s.best);
	free(s.clock);
	if (err) {
		um_plan_fini(out);
		um_plan_init(out);
		return err;
	}
	if (grow_bytes)
		*grow_bytes = grow;
	return 0;
}
