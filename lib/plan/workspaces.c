/* SPDX-License-Identifier: Apache-2.0
 *
 * workspaces.c - searches between the fastest algorithms and the smallest workspaces
 *
 * The choices tried have one parameter, a price: each rise of what does not fit costs the link's time for these bytes,
 * times the price. The cheapest choice is found op by op, from the cheapest of each choice of the op before. So it sees
 * that neighbours share the room that one of them needs.
 */
#include "plan/workspaces.h"

#include "model/plan_run.h"
#include "model/workspace.h"
#include "plan/blocks.h"
#include "plan/bound.h"

#include <math.h>

#define OPS_PER_PART 128 /* as in recompute.c */
#define MOST_PARTS 8

/* Of two plans the one that pages fewer ops is better, then the faster one. */
struct score {
	uint64_t paged, ns; /* ns UINT64_MAX: there is no plan */
};

struct found {
	struct um_plan plan;
	uint64_t grow;
	struct score score; /* expected */
};

struct search {
	const struct um_plan_request *r;
	um_plan_build_fn build;
	int32_t n; /* ops */
	uint64_t *live; /* by op: bytes alive, without workspaces */
	uint64_t *room; /* by op: most bytes that a workspace may have beside the op's own ranges */
	uint32_t *choice; /* by op: of the plan at hand */
	uint32_t *best; /* by op: of the fastest trial */
	struct score best_score;
	uint64_t fastest_ns; /* sum of the ops' shortest times */
	struct found found;
	char *why;
	size_t size;
};

static const struct um_workspace *offers(const struct search *c, int32_t op)
{
	return &c->r->sched->ws.at[c->r->sched->ops.at[op].first_ws];
}

/* Each op takes the fastest algorithm that keeps the bytes alive within `level`, or the smallest. */
static void choose_below(struct search *c, uint64_t level)
{
	for (int32_t i = 0; i < c->n; i++) {
		uint64_t room = level > c->live[i] ? level - c->live[i] : 0;

		room = room < c->room[i] ? room : c->room[i];
		if (c->r->sched->ops.at[i].n_ws)
			c->choice[i] = um_workspace_pick(offers(c, i), c->r->sched->ops.at[i].n_ws, room);
	}
}

static void choose_smallest(struct search *c)
{
	choose_below(c, 0);
}

/* --- one plan ----------------------------------------------------------------------------------------------------- */

/* A plan for the choice at hand, with less work if `part`. */
static int build(struct search *c, const struct um_plan_request *how, struct um_plan *out, uint64_t *grow)
{
	struct um_plan_request r = *how;
	struct um_schedule s;
	int err;

	um_schedule_init(&s);
	err = um_workspace_apply(how->sched, c->choice, !(how->recompute && how->in_place), &s);
	r.sched = &s;
	if (!err)
		err = c->build(&r, out, grow, c->why, c->size);
	um_schedule_fini(&s);
	return err;
}

/* The time of a plan: rehearsed, or predicted. */
static int expected(const struct search *c, struct um_plan *p, uint64_t *ns)
{
	const struct um_plan_rehearsal *r = c->r->rehearsal;
	int err = 0;

	*ns = um_plan_expected_ns(p);
	if (!r || p->rehearsed_ns)
		return 0;
	if (!p->start)
		err = um_plan_prove(p, NULL, NULL, 0);
	return err ? err : r->ns(r->user, p, ns);
}

static struct score score_of(const struct um_plan *p, uint64_t ns)
{
	struct score s = {0, ns};

	for (size_t i = 0; i < p->sched.ops.n; i++)
		s.paged += p->sched.ops.at[i].paged;
	return s;
}

static int is_better(struct score a, struct score b)
{
	return b.ns == UINT64_MAX || (a.paged != b.paged ? a.paged < b.paged : a.ns < b.ns);
}

/* Plans the choice at hand with the usual work, and keeps the plan if it is the fastest. 0; -ENOMEM; or there is none,
 * and c->why says why. */
static int plan(struct search *c)
{
	struct um_plan p;
	uint64_t grow = 0, ns;
	int err;

	um_plan_init(&p);
	err = build(c, c->r, &p, &grow);
	if (!err)
		err = expected(c, &p, &ns);
	if (!err && is_better(score_of(&p, ns), c->found.score)) {
		um_plan_fini(&c->found.plan);
		c->found = (struct found){p, grow, score_of(&p, ns)};
		return 0;
	}
	um_plan_fini(&p);
	return err;
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

static int is_late(const struct search *c)
{
	const struct um_plan_effort *e = c->r->effort;

	return e && e->late && e->late(e->user);
}

/* Plans the choice at hand with little work. 0 or -ENOMEM. */
static int try(struct search *c)
{
	unsigned parts = (unsigned)c->n / OPS_PER_PART;
	struct um_plan_request r = *c->r;
	struct um_plan p;
	uint64_t grow = 0;
	int err;

	if (is_late(c))
		return 0;
	r.part = parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
	r.recompute = 0;
	r.rehearsal = NULL;
	um_plan_init(&p);
	err = build(c, &r, &p, &grow);
	if (!err && is_better(score_of(&p, p.predicted_ns), c->best_score)) {
		c->best_score = score_of(&p, p.predicted_ns);
		memcpy(c->best, c->choice, (size_t)c->n * sizeof *c->best);
	}
	um_plan_fini(&p);
	return err == -ENOMEM ? err : 0;
}

/* Costs of the choices of one op, and from which one of the op before each is reached. */
struct stage {
	double cost[UM_MOST_WORKSPACES];
	uint64_t over[UM_MOST_WORKSPACES]; /* bytes that do not fit */
	uint32_t n;
};

static void add_stage(const struct search *c, int32_t op, double price, const struct stage *was, struct stage *is,
		      uint8_t *from)
{
	const struct um_sched_op *o = &c->r->sched->ops.at[op];
	const struct um_workspace *ws = o->n_ws ? offers(c, op) : NULL;

	uint32_t smallest = ws ? um_workspace_pick(ws, o->n_ws, 0) : 0;

	is->n = ws ? o->n_ws : 1;
	for (uint32_t k = 0; k < is->n; k++) {
		uint64_t bytes = c->live[op] + (ws ? ws[k].bytes : 0);

		is->over[k] = bytes > c->r->budget ? bytes - c->r->budget : 0;
		is->cost[k] = INFINITY;
		if (ws && k != smallest && ws[k].bytes > c->room[op])
			continue;
		for (uint32_t j = 0; j < was->n; j++) {
			double rise = is->over[k] > was->over[j] ? (double)(is->over[k] - was->over[j]) : 0;
			double cost = was->cost[j] + price * rise + (ws ? (double)ws[k].ns : 0);

			if (cost < is->cost[k]) {
				is->cost[k] = cost;
				from[k] = (uint8_t)j;
			}
		}
	}
}

/* Minimises the ops' time plus `price` ns for each byte that has to leave. `from`: UM_MOST_WORKSPACES an op. */
static void choose_priced(struct search *c, double price, uint8_t *from)
{
	struct stage a = {.n = 1}, b, *was = &a, *is = &b, *other;
	uint32_t k = 0;

	a.cost[0] = 0;
	a.over[0] = c->live[0] > c->r->budget ? c->live[0] - c->r->budget : 0;
	for (int32_t i = 0; i < c->n; i++) {
		add_stage(c, i, price, was, is, &from[(size_t)i * UM_MOST_WORKSPACES]);
		other = was;
		was = is;
		is = other;
	}
	for (uint32_t j = 1; j < was->n; j++)
		k = was->cost[j] < was->cost[k] ? j : k;
	for (int32_t i = c->n; i-- > 0; k = from[(size_t)i * UM_MOST_WORKSPACES + k])
		c->choice[i] = k;
}

static int try_prices(struct search *c)
{
	static const double prices[] = {0.1, 0.3, 1, 3};
	double ns_per_byte = 1e9 / (c->r->profile->d2h * c->r->profile->eta);
	uint8_t *from = malloc((size_t)c->n * UM_MOST_WORKSPACES);
	int err = from ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < sizeof prices / sizeof *prices; i++) {
		choose_priced(c, prices[i] * ns_per_byte, from);
		err = try(c);
	}
	free(from);
	return err;
}

/* --- lookahead ---------------------------------------------------------------------------------------------------- */

static int plan_lookahead(struct search *c)
{
	int err, last;

	choose_below(c, UINT64_MAX);
	err = try(c);
	if (!err && c->best_score.ns > c->fastest_ns) {
		err = try_prices(c);
		if (!err) {
			choose_smallest(c);
			err = plan(c);
		}
		if (err == -ENOMEM)
			return err;
		memcpy(c->choice, c->best, (size_t)c->n * sizeof *c->choice);
		if (c->best_score.ns < UINT64_MAX && !is_late(c) && (last = plan(c)) == -ENOMEM)
			return last;
		choose_below(c, UINT64_MAX);
		if (is_late(c))
			return c->found.score.ns < UINT64_MAX ? 0 : err;
	}
	last = plan(c);
	return last == -ENOMEM ? last : c->found.score.ns < UINT64_MAX ? 0 : err ? err : last;
}

/* --- schemes ------------------------------------------------------------------------------------------------------ */

struct room {
	uint64_t *used; /* by op: most bytes on the device while it is next, or runs */
};

static void note_used(void *user, struct um_plan_run *r)
{
	struct room *room = user;

	if (r->used > room->used[r->pos])
		room->used[r->pos] = r->used;
}

/* SuperNeurons: the fastest algorithm that fits into what is free while the op runs. */
static int choose_free(struct search *c, const struct um_plan *p)
{
	struct room room = {calloc((size_t)c->n + 1, sizeof *room.used)};
	const struct um_plan_watch watch = {NULL, note_used, &room};
	struct um_plan_run run;
	int err = room.used ? um_plan_run_init(&run, p) : -ENOMEM;

	if (err)
		goto out;
	run.watch = &watch;
	do {
		memset(room.used, 0, ((size_t)c->n + 1) * sizeof *room.used);
		um_plan_run_iteration(&run);
	} while (!run.repeats && !run.tally.stuck && run.iter < 8);
	um_plan_run_fini(&run);
	for (int32_t i = 0; i < c->n; i++) {
		const struct um_sched_op *op = &c->r->sched->ops.at[i];
		uint64_t had, room_bytes;

		if (!op->n_ws)
			continue;
		had = offers(c, i)[c->choice[i]].bytes;
		room_bytes = had + (p->budget > room.used[i] ? p->budget - room.used[i] : 0);
		c->choice[i] = um_workspace_pick(offers(c, i), op->n_ws, room_bytes);
	}
out:
	free(room.used);
	return err;
}

/* Published schemes but SuperNeurons choose nothing: what fits beside all that is alive delays none of their copies. */
static int plan_scheme(struct search *c, int free_memory)
{
	struct um_plan_request r = *c->r;
	struct um_plan p;
	uint64_t grow = 0;
	int err;

	if (!free_memory) {
		choose_below(c, c->r->budget);
		err = plan(c);
		if (!err || err == -ENOMEM)
			return err;
		choose_smallest(c);
		return plan(c);
	}
	choose_smallest(c);
	r.recompute = 0;
	um_plan_init(&p);
	err = build(c, &r, &p, &grow);
	if (!err)
		err = choose_free(c, &p);
	um_plan_fini(&p);
	if (!err)
		err = plan(c);
	if (!err || err == -ENOMEM)
		return err;
	choose_smallest(c);
	return plan(c);
}

/* --- everything --------------------------------------------------------------------------------------------------- */

static void add_life(int64_t *change, int32_t n, const struct um_slot *t)
{
	int64_t bytes = (int64_t)t->bytes;
	int32_t birth = t->birth < 0 ? 0 : t->birth, death = t->death < 0 ? n : t->death;

	if (t->flags & (UM_SLOT_UNMANAGED | UM_SLOT_WORKSPACE))
		return;
	if (birth >= death)
		change[0] += bytes;
	change[birth] += bytes;
	change[death] -= bytes;
}

/* An op whose ranges and workspace exceed the budget would be paged. */
static void find_room(struct search *c)
{
	const struct um_schedule *s = c->r->sched;

	for (int32_t i = 0; i < c->n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];
		uint64_t used = 0;

		for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
			used += s->uses.at[u].bytes;
		c->room[i] = used < c->r->budget ? (c->r->budget - used) / UM_BLOCK_BYTES * UM_BLOCK_BYTES : 0;
	}
}

static int init(struct search *c)
{
	const struct um_schedule *s = c->r->sched;
	int64_t *change = calloc((size_t)c->n + 1, sizeof *change), sum = 0;

	c->live = calloc((size_t)c->n + 1, sizeof *c->live);
	c->room = calloc((size_t)c->n + 1, sizeof *c->room);
	c->choice = calloc((size_t)c->n + 1, sizeof *c->choice);
	c->best = calloc((size_t)c->n + 1, sizeof *c->best);
	um_plan_init(&c->found.plan);
	c->found.score.ns = c->best_score.ns = UINT64_MAX;
	for (size_t i = 0; change && i < s->slots.n; i++)
		add_life(change, c->n, &s->slots.at[i]);
	for (int32_t i = 0; change && c->live && i < c->n; i++) {
		sum += change[i];
		c->live[i] = (uint64_t)sum;
	}
	free(change);
	if (c->room)
		find_room(c);
	return change && c->live && c->room && c->choice && c->best ? 0 : -ENOMEM;
}

/* The bound, and the time in core, of all choices. */
static int set_bounds(const struct search *c, struct um_plan *p)
{
	struct um_bound_link link = {p->budget, p->h2d, p->d2h};
	struct um_blocks blocks = {0};
	struct um_schedule s;
	int weak = p->bound_ns <= p->in_core_ns, err;

	p->in_core_ns = p->bound_ns = c->fastest_ns;
	if (weak)
		return 0;
	um_schedule_init(&s);
	err = um_workspace_apply(&p->sched, NULL, 1, &s);
	if (!err)
		err = um_blocks_build(&blocks, &s, NULL);
	if (!err)
		err = um_bound_build(&blocks, &s, &link, &p->bound_ns);
	um_blocks_fini(&blocks);
	um_schedule_fini(&s);
	return err;
}

static uint64_t sum_ns(const struct um_schedule *s, const struct um_profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];

		if (op->stream != UM_STREAM_CPU)
			sum += op->ns ? op->ns : um_profile_op_ns(p, &op->cost, um_sched_touched(s, op));
	}
	return sum;
}

int um_workspaces_plan(const struct um_plan_request *r, const struct um_scheme *scheme, um_plan_build_fn build_plan,
		       struct um_plan *out, uint64_t *grow, char *why, size_t size)
{
	struct search c = {.r = r, .build = build_plan, .n = (int32_t)r->sched->ops.n, .why = why, .size = size};
	struct um_schedule fast;
	int err = init(&c);

	um_schedule_init(&fast);
	if (!err)
		err = um_workspace_apply(r->sched, NULL, 1, &fast);
	c.fastest_ns = err ? 0 : sum_ns(&fast, r->profile);
	um_schedule_fini(&fast);
	if (!err)
		err = scheme ? plan_scheme(&c, scheme->choose == um_scheme_superneurons) : plan_lookahead(&c);
	if (!err)
		err = set_bounds(&c, &c.found.plan);
	if (!err) {
		*out = c.found.plan;
		*grow = c.found.grow;
	} else {
		um_plan_fini(&c.found.plan);
	}
	free(c.live);
	free(c.room);
	free(c.choice);
	free(c.best);
	return err;
}
