/* SPDX-License-Identifier: Apache-2.0
 *
 * A hint belongs to the gap before the next use of its tensor. That use is its key, whatever slot the tensor has by
 * then, so an eviction of one iteration is matched with its prefetch in the next.
 */
#include "plan_view.h"

#define NO_USE UINT32_MAX

struct finder {
	struct plan_view *v;
	const uint64_t *copied; /* by hint */
	const int32_t *after; /* by hint */
	uint32_t *successor; /* by slot */
	uint32_t *first; /* by slot, into use_op; one more */
	int32_t *use_op; /* ascending, each op once */
	uint32_t *eviction; /* by index of use_op; then by slot, for tensors that are not used again */
};

/* A future use: its slot, its index in use_op, and how many iterations later. */
struct coming {
	uint32_t slot, use; /* use NOBODY: none */
	int later;
};

static int uses_build(struct finder *f)
{
	const struct um_schedule *s = &f->v->plan.sched;
	size_t n = s->slots.n;

	f->successor = um_schedule_successors(s);
	f->first = calloc(n + 2, sizeof *f->first);
	f->use_op = malloc((s->uses.n + 1) * sizeof *f->use_op);
	f->eviction = malloc((s->uses.n + n + 1) * sizeof *f->eviction);
	if (!f->successor || !f->first || !f->use_op || !f->eviction)
		return -ENOMEM;
	for (size_t u = 0; u < s->uses.n + n; u++)
		f->eviction[u] = NO_USE;
	for (size_t u = 0; u < s->uses.n; u++)
		f->first[s->uses.at[u].slot + 2]++;
	for (size_t i = 0; i < n; i++)
		f->first[i + 2] += f->first[i + 1];
	for (size_t i = 0; i < s->ops.n; i++)
		for (uint32_t u = s->ops.at[i].first_use; u < s->ops.at[i].first_use + s->ops.at[i].n_uses; u++)
			f->use_op[f->first[s->uses.at[u].slot + 1]++] = (int32_t)i;
	return 0;
}

/* The next use of this slot's tensor, seen before op `from` (>= 0) of an iteration. */
static struct coming next_use(const struct finder *f, uint32_t slot, int32_t from)
{
	const struct um_schedule *s = &f->v->plan.sched;
	int32_t n = (int32_t)s->ops.n;
	struct coming c = {slot, NO_USE, 0};

	for (int round = 0; round < 2; round++, from = 0) {
		const struct um_slot *t = &s->slots.at[c.slot];
		int older = t->birth >= 0 && t->death <= t->birth && from < t->death; /* born an iteration ago */
		int32_t end = t->death >= 0 && (older || t->birth < t->death) ? t->death : n;

		c.later = round;
		for (uint32_t u = f->first[c.slot]; u < f->first[c.slot + 1]; u++)
			if (f->use_op[u] >= from && f->use_op[u] < end) {
				c.use = u;
				return c;
			}
		if (end < n || round || f->successor[c.slot] == NO_USE)
			break;
		c.slot = f->successor[c.slot];
	}
	return (struct coming){slot, NO_USE, 0};
}

static struct plan_eviction *eviction_at(struct finder *f, uint32_t slot, const struct coming *c, int32_t after)
{
	uint32_t *at = &f->eviction[c->use == NO_USE ? f->v->plan.sched.uses.n + slot : c->use];
	struct plan_eviction new = {.slot = slot,
				    .next = c->slot,
				    .after = after,
				    .back = INT32_MAX,
				    .need = c->use == NO_USE ? PLAN_NEVER_USED : f->use_op[c->use],
				    .worst = -1};

	if (*at == NO_USE) {
		*at = (uint32_t)f->v->evictions.n;
		if (um_vec_push(&f->v->evictions, new)) {
			*at = NO_USE;
			return NULL;
		}
	}
	return &f->v->evictions.at[*at];
}

static int add_departure(struct finder *f, uint32_t i)
{
	const struct um_hint *h = &f->v->plan.hints.at[i];
	struct coming c = next_use(f, h->slot, f->after[i] + 1);
	int32_t after = f->after[i] - (c.later ? (int32_t)f->v->plan.sched.ops.n : 0);
	struct plan_eviction *l = eviction_at(f, h->slot, &c, after);

	if (!l)
		return -ENOMEM;
	if (after < l->after)
		l->after = after;
	l->bytes += h->bytes;
	l->dropped += h->kind == UM_HINT_DISCARD ? h->bytes : 0;
	l->copied_out += f->copied[i];
	return 0;
}

static void add_return(struct finder *f, uint32_t i)
{
	const struct um_hint *h = &f->v->plan.hints.at[i];
	struct coming c = next_use(f, h->slot, h->at);
	struct plan_eviction *l;
	int32_t back;

	if (c.use == NO_USE || f->eviction[c.use] == NO_USE)
		return; /* prefetched but never evicted: it is born */
	l = &f->v->evictions.at[f->eviction[c.use]];
	back = h->at - (c.later ? (int32_t)f->v->plan.sched.ops.n : 0);
	if (back < l->back)
		l->back = back;
	l->returned += h->bytes;
	l->copied_in += f->copied[i];
}

/* Finds the ops that need its room. */
static void find_reason(const struct plan_view *v, struct plan_eviction *l)
{
	int32_t n = (int32_t)v->plan.sched.ops.n, end = l->need == PLAN_NEVER_USED ? n : l->need;

	for (int32_t p = l->after + 1; p < end; p++) {
		int32_t op = p < 0 ? p + n : p;

		l->over += v->alive[op] > v->plan.budget;
		if (l->worst < 0 || v->alive[op] > v->alive[l->worst])
			l->worst = op;
	}
}

/* From launches to ops of the program. A launch before the iteration begins counts from its end. */
static int32_t op_at(const struct plan_view *v, int32_t launch)
{
	int32_t n = (int32_t)v->plan.sched.ops.n;

	return launch < 0 ? v->op[launch + n] - v->n_ops : v->op[launch];
}

/* A relaunch precedes its op, so what follows a relaunch follows the op before. */
static void count_ops(const struct plan_view *v, struct plan_eviction *l)
{
	const struct um_sched_op *op = v->plan.sched.ops.at;
	int32_t n = (int32_t)v->plan.sched.ops.n;

	if (l->after != -1)
		l->after = op_at(v, l->after) - (op[l->after < 0 ? l->after + n : l->after].again != 0);
	if (l->back != INT32_MAX && l->back != -1)
		l->back = op_at(v, l->back);
	if (l->need == PLAN_NEVER_USED)
		return;
	l->again = l->dropped && op[l->need].again;
	l->need = op_at(v, l->need);
}

uint64_t plan_dropped_bytes(const struct plan_view *v)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < v->evictions.n; i++)
		bytes += v->evictions.at[i].again ? v->evictions.at[i].dropped : 0;
	return bytes;
}

int plan_evictions_find(struct plan_view *v, const uint64_t *copied, const int32_t *after)
{
	struct finder f = {.v = v, .copied = copied, .after = after};
	int err = uses_build(&f);

	for (uint32_t i = 0; i < v->plan.hints.n && !err; i++)
		if (v->plan.hints.at[i].kind == UM_HINT_EVICT || v->plan.hints.at[i].kind == UM_HINT_DISCARD)
			err = add_departure(&f, i);
	for (uint32_t i = 0; i < v->plan.hints.n && !err; i++)
		if (v->plan.hints.at[i].kind == UM_HINT_PREFETCH)
			add_return(&f, i);
	for (size_t i = 0; i < v->evictions.n && !err; i++)
		find_reason(v, &v->evictions.at[i]);
	for (size_t i = 0; i < v->evictions.n && !err; i++)
		count_ops(v, &v->evictions.at[i]);
	free(f.successor);
	free(f.first);
	free(f.use_op);
	free(f.eviction);
	return err;
}
