/* SPDX-License-Identifier: Apache-2.0
 *
 * drops.c - candidates, their costs, and the greedy order
 *
 * A candidate's relaunches are found once, for its gap alone. Those that other candidates need at nearly the same time
 * are shared. A score depends on the candidates taken before; it is renewed when it reaches the top of the heap.
 */
#include "plan/drops.h"

#include "base/bisect.h"
#include "base/pqueue.h"
#include "model/plan_unfold.h"

#include <math.h>

#define MOST_RELAUNCHES 64 /* of one gap */
#define MOST_RENEWALS 60 /* of one score */

struct candidate {
	struct um_drop gap;
	double own_ns, cost_ns; /* relaunches that write the slot; all, with its share of the others */
	uint64_t scratch_bytes;
	uint32_t first_read, n_reads; /* into reads: slots whose memory the relaunches read */
	int32_t back; /* taken: where it returns */
	int taken, renewed;
};

struct other { /* a relaunch that several candidates may share */
	int32_t op;
	uint64_t time; /* when it is needed */
	uint32_t candidate;
};

struct link {
	uint32_t candidate, next; /* next: 1 + link, 0: none */
};

struct item {
	double score;
	uint32_t candidate;
};

struct drops {
	const struct um_versions *v;
	const struct um_drops_rule *rule;
	int32_t n;
	uint64_t *clock; /* by op: its start in core; n + 1 */
	int64_t *need; /* by op: bytes in use or needed later */
	double *over; /* by op: time above the budget before it, of the iteration's; n + 1 */
	UM_VEC(struct candidate) all; /* by slot, then op */
	uint32_t *first; /* by slot, into all; slots + 1 */
	UM_VEC(uint32_t) reads;
	UM_VEC(struct other) others;
	UM_VEC(int32_t) shared;
	uint32_t *reader; /* by slot: 1 + the first link to a taken candidate that reads it */
	UM_VEC(struct link) links;
	UM_VEC(uint32_t) returning; /* taken candidates that would have to return earlier */
	uint32_t *seen, round; /* by candidate */
	UM_VEC(struct um_drop) order;
};

/* --- memory above the budget -------------------------------------------------------------------------------------- */

/* Bytes with content that is used later, or in use, by op; n + 1 differences first. */
static void add_need(int64_t *need, int32_t n, int64_t from, int64_t to, int64_t bytes)
{
	for (; to - from >= n; to -= n)
		need[0] += bytes;
	if (from >= to)
		return;
	need[from % n] += bytes;
	if (to % n)
		need[to % n] -= bytes;
	if (to % n && to % n <= from % n)
		need[0] += bytes;
}

static void add_slot(const struct drops *d, int64_t *need, uint32_t slot)
{
	const struct um_versions *v = d->v;
	const struct um_slot *t = &v->s->slots.at[slot];
	uint32_t lo = v->first[slot], hi = v->first[slot + 1];
	int64_t bytes = (int64_t)t->bytes;

	for (uint32_t k = lo; k < hi; k++) {
		int32_t op = v->touch[k].op;
		uint32_t next = k + 1 < hi ? k + 1 : lo;
		int64_t to = next > k ? v->touch[next].op : (int64_t)v->touch[next].op + d->n;
		int wraps = next <= k, dies = t->death >= 0 && (t->birth < 0 || t->birth < t->death || op < t->birth);

		/* freed before the next use, or that use is another tensor's */
		if (dies && t->death > op && (wraps || v->touch[next].op >= t->death))
			to = op + 1;
		if (wraps && t->birth >= 0 && t->birth < t->death)
			to = op + 1;
		if (!v->touch[next].needs || v->touch[k].dead || (wraps && t->flags & UM_SLOT_TRANSIENT))
			to = op + 1;
		add_need(need, d->n, op, to, bytes);
	}
}

static void find_over(struct drops *d)
{
	double all = (double)d->clock[d->n], sum = 0;

	for (int32_t i = 0; i < d->n; i++) {
		sum += d->need[i] > (int64_t)d->rule->budget ? (double)(d->clock[i + 1] - d->clock[i]) : 0;
		d->over[i + 1] = all > 0 ? sum / all : 0;
	}
}

static int find_need(struct drops *d)
{
	const struct um_schedule *s = d->v->s;

	d->need = calloc((size_t)d->n + 1, sizeof *d->need);
	d->clock = calloc((size_t)d->n + 1, sizeof *d->clock);
	d->over = calloc((size_t)d->n + 1, sizeof *d->over);
	if (!d->need || !d->clock || !d->over)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->slots.n; i++)
		if (!(s->slots.at[i].flags & UM_SLOT_UNMANAGED))
			add_slot(d, d->need, i);
	for (int32_t i = 0; i < d->n; i++) {
		d->need[i] += i ? d->need[i - 1] : 0;
		d->clock[i + 1] = d->clock[i] + s->ops.at[i].ns;
	}
	find_over(d);
	return 0;
}

static double share(const struct drops *d, int32_t from, int32_t to)
{
	return from < to ? d->over[to] - d->over[from] : 0;
}

/* --- candidates --------------------------------------------------------------------------------------------------- */

static int is_writer(const struct um_versions *v, uint32_t slot, int32_t op)
{
	uint32_t t = um_versions_find(v, slot, op);

	return t != UINT32_MAX && v->touch[t].writes;
}

/* Does the burst have all ops that wrote the slot's content, and `op` among them? */
static int has_chain(const struct um_versions *v, const struct um_burst *b, uint32_t slot, int32_t op)
{
	uint32_t last = um_versions_at(v, slot, b->at), t = um_versions_base(v, slot, last);

	if (t == UINT32_MAX || v->touch[t].op > op || v->touch[last].op < op)
		return 0;
	while (t <= last && (!v->touch[t].writes || b->in[v->touch[t].op]))
		t++;
	return t > last;
}

/* May the op be launched again at any time until the burst, as runtime/relaunches.h says? */
static int may_come_earlier(const struct um_versions *v, const struct um_burst *b, int32_t number)
{
	const struct um_schedule *s = v->s;
	const struct um_sched_op *op = &s->ops.at[number];

	for (uint32_t k = op->first_relaunch; k < op->first_relaunch + op->n_relaunch; k++) {
		uint32_t slot = s->relaunch.at[k], last = um_versions_from(v, slot, b->at) - 1;

		/* The gap begins after the last op of the burst. An eviction before that copies the content. */
		if (!has_chain(v, b, slot, number) ||
		    (s->slots.at[slot].bytes >= UM_DROP_LEAST && v->touch[last].op < b->ops.at[b->ops.n - 1]))
			return 0;
	}
	for (uint32_t k = op->first_use; k < op->first_use + op->n_uses; k++) {
		uint32_t slot = s->uses.at[k].slot;

		if (um_relaunch_access(s, op, &s->uses.at[k]) == UM_READ &&
		    um_versions_at(v, slot, number) != um_versions_at(v, slot, b->at))
			return 0;
	}
	return 1;
}

/* Do the relaunches of a burst leave all memory as it is, or as it was? */
static int is_in_place(const struct um_versions *v, const struct um_burst *b)
{
	for (size_t i = 0; i < b->slots.n; i++)
		if (b->role[b->slots.at[i]] & UM_BURST_SCRATCH)
			return 0;
	for (size_t i = 0; i < b->ops.n; i++)
		if (!may_come_earlier(v, b, b->ops.at[i]))
			return 0;
	return 1;
}

static int add_candidate(struct drops *d, struct um_burst *b, const struct um_drop *gap)
{
	const struct um_schedule *s = d->v->s;
	struct candidate c = {.gap = *gap, .first_read = (uint32_t)d->reads.n};
	int err = um_burst_build(b, gap->to, &gap->slot, 1);

	if (err || (d->rule->in_place && !is_in_place(d->v, b)))
		return err == -EINVAL ? 0 : err;
	c.gap.first_shared = (uint32_t)d->shared.n;
	for (size_t i = 0; i < b->ops.n; i++) {
		int32_t op = b->ops.at[i];

		if (is_writer(d->v, gap->slot, op))
			c.own_ns += (double)s->ops.at[op].ns;
		else if (um_vec_push(&d->others, ((struct other){op, d->clock[gap->to], (uint32_t)d->all.n})) ||
			 um_vec_push(&d->shared, op))
			return -ENOMEM;
	}
	for (size_t i = 0; i < b->slots.n; i++) {
		uint32_t slot = b->slots.at[i];

		if (b->role[slot] & UM_BURST_SCRATCH)
			c.scratch_bytes += s->slots.at[slot].bytes;
		if (b->role[slot] & UM_BURST_READ && um_vec_push(&d->reads, slot))
			return -ENOMEM;
	}
	c.n_reads = (uint32_t)d->reads.n - c.first_read;
	c.gap.n_shared = (uint32_t)d->shared.n - c.gap.first_shared;
	return um_vec_push(&d->all, c);
}

static int find_candidates(struct drops *d)
{
	const struct um_versions *v = d->v;
	uint8_t *dropped = calloc(v->s->slots.n + 1, 1);
	struct um_burst b;
	int err = um_burst_init(&b, v);

	b.dropped = dropped;
	b.most = MOST_RELAUNCHES;
	b.scratch_from = d->rule->in_place ? UINT64_MAX : UM_DROP_LEAST;
	d->first = calloc(v->s->slots.n + 1, sizeof *d->first);
	if (!err && (!dropped || !d->first))
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < v->s->slots.n; i++) {
		const struct um_slot *t = &v->s->slots.at[i];

		d->first[i] = (uint32_t)d->all.n;
		if (t->bytes < UM_DROP_LEAST || t->flags & UM_SLOT_UNMANAGED)
			continue;
		dropped[i] = 1;
		for (uint32_t k = v->first[i]; !err && k + 1 < v->first[i + 1]; k++) {
			struct um_drop gap = {i, v->touch[k].op, v->touch[k + 1].op, t->bytes, 0, 0};

			if (v->touch[k + 1].needs && share(d, gap.from + 1, gap.to) > 0 &&
			    um_slot_alive_at(t, gap.to) &&
			    um_versions_base(v, i, um_versions_at(v, i, gap.to)) != UINT32_MAX)
				err = add_candidate(d, &b, &gap);
		}
		dropped[i] = 0;
	}
	if (d->first)
		d->first[v->s->slots.n] = (uint32_t)d->all.n;
	free(dropped);
	um_burst_fini(&b);
	return err;
}

static int by_op(const void *a, const void *b)
{
	const struct other *x = a, *y = b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

/* Shares of relaunches: each of several candidates that need one at nearly the same time pays a part. */
static void find_costs(struct drops *d)
{
	struct other *o = d->others.at;
	size_t n = d->others.n;

	for (size_t i = 0; i < d->all.n; i++)
		d->all.at[i].cost_ns = d->all.at[i].own_ns;
	if (n)
		qsort(o, n, sizeof *o, by_op);
	for (size_t i = 0, lo = 0, hi = 0; i < n; i++) {
		while (o[lo].op != o[i].op || o[i].time - o[lo].time > d->rule->near_ns)
			lo++;
		for (hi = hi > i ? hi : i; hi < n && o[hi].op == o[i].op && o[hi].time - o[i].time <= d->rule->near_ns;)
			hi++;
		d->all.at[o[i].candidate].cost_ns += (double)d->v->s->ops.at[o[i].op].ns / (double)(hi - lo);
	}
}

/* --- the order ---------------------------------------------------------------------------------------------------- */

static int before(const struct item *a, const struct item *b)
{
	return a->score != b->score ? a->score > b->score : a->candidate < b->candidate;
}

UM_PQUEUE(items, struct item, before)

/* The taken candidate of a slot that is dropped at op `op`, or NULL. */
static struct candidate *dropped_at(struct drops *d, uint32_t slot, int32_t op)
{
	for (uint32_t i = d->first[slot]; i < d->first[slot + 1] && d->all.at[i].gap.from < op; i++)
		if (d->all.at[i].taken && d->all.at[i].back >= op)
			return &d->all.at[i];
	return NULL;
}

/* Where a candidate has to return: at its end, or for the first taken candidate that reads it. `*with`: bytes of those
 * that return there. */
static int32_t return_of(const struct drops *d, const struct candidate *c, uint64_t *with)
{
	int32_t at = c->gap.to;

	*with = 0;
	for (uint32_t k = d->reader[c->gap.slot]; k; k = d->links.at[k - 1].next) {
		const struct candidate *r = &d->all.at[d->links.at[k - 1].candidate];

		if (r->back <= c->gap.from || r->back > at)
			continue;
		*with = r->back < at ? r->gap.bytes : *with + r->gap.bytes;
		at = r->back;
	}
	return at;
}

/* Lists the taken candidates that return for a relaunch of `c` at op `at`, directly or not. 0 or -ENOMEM. */
static int find_returning(struct drops *d, const struct candidate *c, int32_t at)
{
	size_t done = 0;

	um_vec_clear(&d->returning);
	d->round++;
	for (;;) {
		for (uint32_t k = c->first_read; k < c->first_read + c->n_reads; k++) {
			struct candidate *u = dropped_at(d, d->reads.at[k], at);

			if (!u || d->seen[u - d->all.at] == d->round)
				continue;
			d->seen[u - d->all.at] = d->round;
			if (um_vec_push(&d->returning, (uint32_t)(u - d->all.at)))
				return -ENOMEM;
		}
		if (done == d->returning.n)
			return 0;
		c = &d->all.at[d->returning.at[done++]];
	}
}

/* The score of a candidate now, 0 if it is not worthwhile; and where it would return. */
static int score(struct drops *d, const struct candidate *c, double *value, int32_t *at)
{
	uint64_t with, burst;
	double gain;

	*at = return_of(d, c, &with);
	*value = 0;
	if (find_returning(d, c, *at))
		return -ENOMEM;
	burst = c->gap.bytes + c->scratch_bytes / 2 + with;
	gain = (double)c->gap.bytes * pow(share(d, c->gap.from + 1, *at), d->rule->power);
	for (size_t i = 0; i < d->returning.n; i++) {
		const struct candidate *u = &d->all.at[d->returning.at[i]];

		burst += u->gap.bytes;
		gain -= (double)u->gap.bytes * pow(share(d, *at, u->back), d->rule->power);
	}
	if ((double)burst <= d->rule->burst * (double)d->rule->budget && gain > 0)
		*value = gain / (c->cost_ns > 1 ? c->cost_ns : 1);
	return 0;
}

static int take(struct drops *d, struct candidate *c, int32_t at)
{
	c->taken = 1;
	c->back = at;
	for (size_t i = 0; i < d->returning.n; i++) {
		struct candidate *u = &d->all.at[d->returning.at[i]];

		for (int32_t k = at; k < u->back; k++)
			d->need[k] += (int64_t)u->gap.bytes;
		u->back = u->back < at ? u->back : at;
	}
	for (uint32_t k = c->first_read; k < c->first_read + c->n_reads; k++) {
		uint32_t slot = d->reads.at[k];

		if (um_vec_push(&d->links, ((struct link){(uint32_t)(c - d->all.at), d->reader[slot]})))
			return -ENOMEM;
		d->reader[slot] = (uint32_t)d->links.n;
	}
	for (int32_t i = c->gap.from + 1; i < c->back; i++)
		d->need[i] -= (int64_t)c->gap.bytes;
	find_over(d);
	return um_vec_push(&d->order, c->gap);
}

static int order(struct drops *d)
{
	size_t n = d->all.n;
	struct item *heap = malloc((n + 1) * sizeof *heap);
	int err = 0;

	d->reader = calloc(d->v->s->slots.n + 1, sizeof *d->reader);
	d->seen = calloc(n + 1, sizeof *d->seen);
	if (!heap || !d->reader || !d->seen)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < n; i++) {
		int32_t at;

		heap[i].candidate = (uint32_t)i;
		err = score(d, &d->all.at[i], &heap[i].score, &at);
	}
	for (size_t i = n / 2; !err && i-- > 0;)
		items_sink(heap, n, i);
	while (!err && n && heap[0].score > 0) {
		struct candidate *c = &d->all.at[heap[0].candidate];
		int32_t at;
		double now;

		err = score(d, c, &now, &at);
		if (!err && now > 0 && now < heap[0].score && c->renewed++ < MOST_RENEWALS) {
			heap[0].score = now;
		} else {
			if (!err && now > 0)
				err = take(d, c, at);
			heap[0] = heap[--n];
		}
		items_sink(heap, n, 0);
	}
	free(heap);
	return err;
}

int um_drops_build(struct um_drops *out, const struct um_versions *v, const struct um_drops_rule *rule)
{
	struct drops d = {.v = v, .rule = rule, .n = (int32_t)v->s->ops.n};
	int err = find_need(&d);

	memset(out, 0, sizeof *out);
	if (!err)
		err = find_candidates(&d);
	if (!err) {
		find_costs(&d);
		err = order(&d);
	}
	if (!err) {
		out->at = d.order.at;
		out->n = (uint32_t)d.order.n;
		out->shared = d.shared.at;
		d.order.at = NULL;
		d.shared.at = NULL;
	}
	um_vec_fini(&d.order);
	um_vec_fini(&d.all);
	um_vec_fini(&d.reads);
	um_vec_fini(&d.others);
	um_vec_fini(&d.shared);
	um_vec_fini(&d.links);
	um_vec_fini(&d.returning);
	free(d.clock);
	free(d.need);
	free(d.over);
	free(d.first);
	free(d.reader);
	free(d.seen);
	return err;
}

void um_drops_fini(struct um_drops *d)
{
	free(d->at);
	free(d->shared);
	memset(d, 0, sizeof *d);
}
