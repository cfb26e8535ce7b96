/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.c - simulates three iterations, move by move
 *
 * Three iterations are carried out as the proof does, but move by move, to find the position of arrivals in the queue:
 * they take no time themselves, but wait for a return that is being copied, and a return after an arrival that is not
 * due yet would wait for it. The last iteration's order is the result.
 */
#include "plan/timeline.h"

#include "base/bisect.h"

#define ITERATIONS 3

struct out { /* room that becomes free after a copy to the host */
	uint64_t at;
	uint64_t bytes;
	uint32_t visit;
};

/* Of an engine: most copies are as long as the previous one. */
struct rate {
	uint64_t rate; /* bytes/s */
	uint64_t bytes, ns;
};

/* Cached result for a return that is examined repeatedly until it starts. */
struct gone {
	uint64_t left;
	int64_t after, op;
};

struct evaluation {
	struct um_timeline *t;
	const struct um_blocks *b;
	const struct um_schedule *s;
	const struct um_choice *c;
	const struct um_arrivals *a;
	const struct um_returns *r;
	const struct um_timing *timing;
	int32_t n;
	uint32_t *dirty; /* by visit: bytes to copy out */
	uint32_t *overwritten; /* by visit: bytes that leave with a copy and do not return */
	uint32_t *first_out, *evictions; /* first_out: by op, into evictions; n + 1. evictions: visits after which
					    content is evicted that is copied */
	uint64_t *left; /* by visit: begin of the block's last eviction */
	uint64_t *freed; /* by position: bytes freed or dropped */
	uint64_t *done; /* by op, over all iterations: its end; [0] is the start */
	uint64_t h2d, d2h; /* when the engine is free */
	struct rate in, out;
	uint64_t block_out_ns; /* a whole one */
	uint64_t resident;
	UM_VEC(struct out) outs;
	size_t out_head;
	struct gone gone;
	uint32_t next, next_iteration; /* the next return, and its iteration */
	int64_t arrived; /* over all iterations: arrivals of earlier ops are issued */
	int64_t ended; /* ops over all iterations that had ended when the engine last started a copy */
	int failed;
};

static uint64_t copy_ns(struct rate *r, uint64_t bytes)
{
	if (bytes != r->bytes) {
		r->bytes = bytes;
		r->ns = (uint64_t)((double)bytes * 1e9 / (double)r->rate + 0.5);
	}
	return r->ns;
}

/* --- evictions ---------------------------------------------------------------------------------------------------- */

/* Is the part copied if it leaves after this touch? */
static int is_copied(const struct evaluation *l, const struct um_touch *t)
{
	return t->liveness == UM_LIVENESS_NEEDED || (l->timing->copies && t->overwritten);
}

/* A part is copied out if it was written since it arrived or was last copied, provided that it is not stale when the
 * iteration begins. Is it stale at the end? */
static int find_dirty_part(struct evaluation *l, uint32_t part)
{
	const struct um_blocks *b = l->b;
	int stale = 0;

	for (uint32_t k = b->part[part].first_touch; k < b->part[part + 1].first_touch; k++) {
		uint32_t touch = b->part_touch[k], v;
		const struct um_touch *t = &b->touch[touch];

		stale = (stale && !t->born) || t->writes;
		if (!is_copied(l, t) || !stale)
			continue;
		v = um_choice_first(l->c, touch);
		if (v == UINT32_MAX)
			continue;
		l->dirty[v] += b->part[part].bytes;
		stale = 0;
	}
	return stale;
}

/* If it is stale at the end, it is at the beginning: this counts until the part is copied, written or born. */
static void find_dirty_begin(struct evaluation *l, uint32_t part)
{
	const struct um_blocks *b = l->b;

	for (uint32_t k = b->part[part].first_touch; k < b->part[part + 1].first_touch; k++) {
		uint32_t touch = b->part_touch[k], v;
		const struct um_touch *t = &b->touch[touch];

		if (t->born || t->writes)
			return;
		v = is_copied(l, t) ? um_choice_first(l->c, touch) : UINT32_MAX;
		if (v == UINT32_MAX)
			continue;
		l->dirty[v] += b->part[part].bytes;
		return;
	}
}

/* Only parts that are evicted with content. `seen`: by part, 0 initially. */
static void find_dirty(struct evaluation *l, uint8_t *seen)
{
	for (uint32_t i = 0; i < l->c->n_left; i++) {
		const struct um_touch *t = &l->b->touch[l->c->left[i]];

		if (!is_copied(l, t) || seen[t->part])
			continue;
		seen[t->part] = 1;
		if (find_dirty_part(l, t->part))
			find_dirty_begin(l, t->part);
	}
}

/* Position at which a part that is not needed again is dropped or freed after touch t. */
static int32_t drops_at(const struct evaluation *l, uint32_t touch)
{
	const struct um_touch *t = &l->b->touch[touch];
	uint32_t v = um_choice_first(l->c, touch);
	int32_t at = l->b->visit[v].op + 1 + (l->b->visit[v].op < t->op ? l->n : 0);

	return t->liveness == UM_LIVENESS_FREED && t->until < at ? t->until : at;
}

/* Bytes freed by position, and bytes on the device when an iteration begins: the baseline, less the evictions. */
static void find_drops(struct evaluation *l)
{
	const struct um_blocks *b = l->b;

	memcpy(l->freed, b->baseline.freed, (l->n + 1ull) * sizeof *l->freed);
	l->resident = b->baseline.resident;
	for (uint32_t i = 0; i < l->c->n_left; i++) {
		const struct um_touch *x = &b->touch[l->c->left[i]];
		const struct um_part *p = &b->part[x->part];
		int32_t at;

		if (b->visit[x->visit].on_cpu)
			continue;
		if (x->liveness == UM_LIVENESS_NEEDED) {
			/* around the end: resident if its block is */
			if (x->until >= l->n && l->c->evicted[b->block[p->block + 1].first_visit - 1])
				l->resident -= p->bytes;
			continue;
		}
		at = drops_at(l, l->c->left[i]);
		if (is_copied(l, x)) {
			l->overwritten[um_choice_first(l->c, l->c->left[i])] += p->bytes;
			l->resident -= x->until >= l->n && at <= l->n ? p->bytes : 0;
			continue;
		}
		if (x->liveness == UM_LIVENESS_FREED)
			l->freed[x->until % l->n] -= p->bytes;
		l->freed[at % l->n] += p->bytes;
		if (x->until >= l->n && at < l->n)
			l->resident -= p->bytes;
	}
}

/* Evictions by op, in the order of blocks. */
static void list_evictions(struct evaluation *l)
{
	const struct um_choice *c = l->c;
	const struct um_visit *visit = l->b->visit;

	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t i = 0; i < c->n_evicted; i++) {
			const struct um_visit *x = &visit[c->gone[i]];

			if (!x->live && !l->overwritten[c->gone[i]])
				continue;
			if (fill)
				l->evictions[l->first_out[x->op + 1]++] = c->gone[i];
			else
				l->first_out[x->op + 2]++;
		}
		for (int32_t i = 0; !fill && i <= l->n; i++)
			l->first_out[i + 1] += l->first_out[i];
	}
}

static int prepare(struct evaluation *l)
{
	const struct um_blocks *b = l->b;
	uint8_t *seen = calloc(b->n_parts + 1ull, 1);

	l->dirty = calloc(b->n_visits + 1ull, sizeof *l->dirty);
	l->overwritten = calloc(b->n_visits + 1ull, sizeof *l->overwritten);
	l->left = calloc(b->n_visits + 1ull, sizeof *l->left);
	l->first_out = calloc(l->n + 2ull, sizeof *l->first_out);
	l->evictions = malloc((l->c->n_evicted + 1ull) * sizeof *l->evictions);
	l->freed = malloc((l->n + 1ull) * sizeof *l->freed);
	l->done = calloc((size_t)ITERATIONS * (size_t)l->n + 1, sizeof *l->done);
	l->t->stall = calloc(b->n_visits + 1ull, sizeof *l->t->stall);
	l->t->start = calloc(l->n + 1ull, sizeof *l->t->start);
	if (!seen || !l->dirty || !l->overwritten || !l->left || !l->first_out || !l->evictions || !l->freed ||
	    !l->done || !l->t->stall || !l->t->start) {
		free(seen);
		return -ENOMEM;
	}
	find_dirty(l, seen);
	free(seen);
	find_drops(l);
	list_evictions(l);
	return 0;
}

static int begin_evictions(struct evaluation *l, int32_t op, uint64_t time)
{
	for (uint32_t k = l->first_out[op]; k < l->first_out[op + 1]; k++) {
		uint32_t v = l->evictions[k];

		if (time > l->d2h)
			l->d2h = time;
		l->left[v] = l->d2h;
		l->d2h += copy_ns(&l->out, l->dirty[v]);
		if (um_vec_push(&l->outs, ((struct out){l->d2h, l->b->visit[v].live + l->overwritten[v], v})))
			return -ENOMEM;
	}
	return 0;
}

/* --- returns and arrivals ----------------------------------------------------------------------------------------- */

static void record(struct evaluation *l, int64_t need, int64_t after, const struct um_move *m)
{
	int64_t base = (int64_t)(ITERATIONS - 1) * l->n;
	struct um_move x = m ? *m : (struct um_move){0};

	if (need < base || need >= base + l->n)
		return;
	x.need = (int32_t)(need - base);
	x.after = (int32_t)(after - base);
	if (um_vec_push(&l->t->moves, x))
		l->failed = 1;
}

/* Attributes a wait to the blocks that were copied out between two times. Early iterations count as well: they converge
 * to the same order. */
static void attribute_stall(struct evaluation *l, uint64_t from, uint64_t to)
{
	for (size_t i = l->out_head; i < l->outs.n && l->outs.at[i].at <= to; i++)
		if (l->outs.at[i].at > from)
			l->t->stall[l->outs.at[i].visit] += to - from;
}

static void stall_by_move(struct evaluation *l, const struct um_move *m, uint64_t ns)
{
	for (uint32_t i = m->first; i < m->first + m->n; i++)
		l->t->stall[l->r->back[i]] += ns;
}

/* Frees the room of evictions whose copy ended by `time`. */
static void settle(struct evaluation *l, uint64_t time)
{
	for (; l->out_head < l->outs.n && l->outs.at[l->out_head].at <= time; l->out_head++)
		l->resident -= l->outs.at[l->out_head].bytes;
}

/* The earliest time from `time` on at which there is room, considering copies out only; UINT64_MAX if never. */
static uint64_t room_at(struct evaluation *l, uint64_t time, uint64_t bytes)
{
	uint64_t used;

	settle(l, time);
	used = l->resident;
	for (size_t i = l->out_head; used + bytes > l->timing->budget; i++) {
		if (i >= l->outs.n)
			return UINT64_MAX;
		used -= l->outs.at[i].bytes;
		time = l->outs.at[i].at;
	}
	return time;
}

/* An op of an iteration: `at` counts ops over all iterations. */
static void arrive(struct evaluation *l, int32_t op, int64_t at, int64_t after)
{
	if (um_arrivals_any(l->a, op))
		record(l, at, after, NULL);
	l->resident += l->a->bytes[op];
	l->arrived = at + 1;
}

/* Arrivals that come due, by the ops' own times, while a return is copied from `start` to `end`: issued before it, if
 * there is room. */
static void issue_before(struct evaluation *l, int32_t op, int64_t at, uint64_t due, uint64_t start, uint64_t end,
			 uint64_t bytes, int64_t need)
{
	int64_t last = (int64_t)ITERATIONS * l->n;

	while (l->ended < at && l->done[l->ended + 1] <= start)
		l->ended++;
	for (; at < last && at < need && due < end; at++) {
		if (at >= l->arrived) {
			if (l->resident + l->a->bytes[op] + bytes > l->timing->budget)
				return;
			arrive(l, op, at, l->ended - 1);
		}
		due += l->s->ops.at[op].ns;
		op = op + 1 < l->n ? op + 1 : 0;
	}
}

/* The first op of [lo, hi] that ends at `time` or later, at most hi. Mostly lo. */
static int64_t first_done(const struct evaluation *l, int64_t lo, int64_t hi, uint64_t time)
{
	if (lo < hi && l->done[lo + 1] >= time)
		return lo;
	UM_BISECT(lo, hi, i, l->done[i + 1] < time)
	return lo;
}

/* The op after which a return may start, `after` or a later one below `known`: when the eviction of its blocks has
 * certainly begun. A prefetch before that would copy nothing, and the block would be evicted later. INT64_MAX if it has
 * not by then. */
static int64_t evicted_by(struct evaluation *l, const struct um_move *m, int64_t after, int64_t known)
{
	uint64_t left = 0;

	for (uint32_t i = m->first; i < m->first + m->n; i++)
		left = l->left[l->r->back[i]] > left ? l->left[l->r->back[i]] : left;
	if (!left)
		return after;
	left += l->block_out_ns;
	if (known < 1 || l->done[known] < left)
		return INT64_MAX;
	if (left != l->gone.left || after != l->gone.after)
		l->gone = (struct gone){left, after, first_done(l, after < 0 ? -1 : after, known - 1, left)};
	return l->gone.op;
}

static void mark_too_short(struct evaluation *l, const struct um_move *m)
{
	for (uint32_t i = m->first; i < m->first + m->n; i++) {
		uint32_t v = l->r->back[i];

		l->t->too_short += !l->c->keep_resident[v];
		l->c->keep_resident[v] = 1;
	}
}

/* Runs the engine until `time`, when op `op` could start, before the host has reached that op; or, if `reached`, on the
 * blocks that the op itself needs. Returns their arrival. */
static uint64_t work(struct evaluation *l, int32_t op, int64_t at, uint64_t time, int reached)
{
	while (l->next_iteration < ITERATIONS && l->r->n_moves) {
		const struct um_move *m = &l->r->move[l->next];
		int64_t base = (int64_t)l->next_iteration * l->n;
		int64_t need = base + m->need, after = base + m->after, known = reached ? at : at - 1, gone;
		int must = reached && need <= at;
		uint64_t start, ready, ns;

		if (after >= known)
			break;
		gone = evicted_by(l, m, after, known);
		if (gone == INT64_MAX && !must)
			break;
		if (!must && l->h2d >= time) {
			settle(l, l->h2d);
			break;
		}
		if (gone == INT64_MAX)
			mark_too_short(l, m);
		else
			after = gone;
		ready = after < 0 ? 0 : l->done[after + 1];
		start = room_at(l, l->h2d > ready ? l->h2d : ready, m->bytes);
		if (!must && start >= time) {
			/* frees from now on cannot be used before */
			if (start == UINT64_MAX && l->h2d < time)
				l->h2d = time;
			break;
		}
		if (start == UINT64_MAX)
			start = l->h2d > time ? l->h2d : time;
		if (must && start > time)
			attribute_stall(l, time, start);
		settle(l, start);
		ns = copy_ns(&l->in, m->bytes);
		if (l->timing->eager && !must)
			issue_before(l, op, at, time, start, start + ns, m->bytes, need);
		record(l, need, after, m);
		l->resident += m->bytes;
		l->h2d = start + ns;
		if (++l->next == l->r->n_moves) {
			l->next = 0;
			l->next_iteration++;
		}
		if (must && l->h2d > time) {
			stall_by_move(l, m, l->h2d - time);
			time = l->h2d;
		}
	}
	return time;
}

/* Arrivals wait for the copy in progress, and for room. */
static uint64_t wait_to_arrive(struct evaluation *l, int32_t op, uint64_t time)
{
	uint64_t room;

	if (!um_arrivals_any(l->a, op))
		return time;
	if (time < l->h2d)
		time = l->h2d;
	room = room_at(l, time, l->a->bytes[op]);
	if (room != UINT64_MAX) {
		attribute_stall(l, time, room);
		time = room;
	}
	settle(l, time);
	l->h2d = time;
	return time;
}

/* Op `op` has ended: begins its evictions. After a paged op no block is assumed to be resident. */
static int end_op_evictions(struct evaluation *l, int32_t op, uint64_t time)
{
	const struct um_sched_op *o = &l->s->ops.at[op];

	if (!o->paged && o->stream != UM_STREAM_CPU)
		return begin_evictions(l, op, time);
	/* its blocks leave without copies of their own, after the copies in progress */
	for (uint32_t k = l->first_out[op]; k < l->first_out[op + 1]; k++)
		l->left[l->evictions[k]] = l->d2h > time ? l->d2h : 0;
	if (!o->paged)
		return 0;
	l->resident = 0;
	l->out_head = l->outs.n;
	return 0;
}

/* Simulates one iteration. */
static int run_iteration(struct evaluation *l, int iteration)
{
	for (int32_t op = 0; op < l->n; op++) {
		int64_t i = (int64_t)iteration * l->n + op;
		uint64_t time = l->done[i];

		if (i)
			work(l, op, i, time, 0);
		l->resident -= l->freed[op];
		if (i && end_op_evictions(l, op ? op - 1 : l->n - 1, time))
			return -ENOMEM;
		time = work(l, op, i, time, 1);
		if (i >= l->arrived) {
			time = wait_to_arrive(l, op, time);
			arrive(l, op, i, i - 1);
		}
		l->done[i + 1] = time + l->s->ops.at[op].ns;
	}
	return 0;
}

static int run(struct evaluation *l)
{
	const uint64_t *last = l->done + (size_t)(ITERATIONS - 1) * (size_t)l->n;
	int err = 0;

	for (int iteration = 0; !err && iteration < ITERATIONS; iteration++)
		err = run_iteration(l, iteration);
	l->t->ns = last[l->n] - last[0];
	for (int32_t op = 0; op <= l->n; op++)
		l->t->start[op] = last[op] - last[0];
	return err || l->failed ? -ENOMEM : 0;
}

int um_timeline_build(struct um_timeline *t, const struct um_blocks *b, const struct um_schedule *s,
		      const struct um_choice *c, const struct um_arrivals *a, const struct um_returns *r,
		      const struct um_timing *timing)
{
	struct evaluation l = {.t = t, .b = b, .s = s, .c = c, .a = a, .r = r, .timing = timing, .n = b->n_ops};
	int err;

	memset(t, 0, sizeof *t);
	l.in.rate = timing->h2d;
	l.out.rate = timing->d2h;
	l.block_out_ns = copy_ns(&l.out, UM_BLOCK_BYTES);
	err = prepare(&l);
	if (!err)
		err = run(&l);
	free(l.dirty);
	free(l.overwritten);
	free(l.left);
	free(l.first_out);
	free(l.evictions);
	free(l.freed);
	free(l.done);
	um_vec_fini(&l.outs);
	if (err)
		um_timeline_fini(t);
	return err;
}

void um_timeline_fini(struct um_timeline *t)
{
	um_vec_fini(&t->moves);
	free(t->stall);
	free(t->start);
	memset(t, 0, sizeof *t);
}
