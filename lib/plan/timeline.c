/* SPDX-License-Identifier: Apache-2.0
 *
 * Three iterations are carried out in time, as the proof does it but move by move, to find out where in the queue the
 * arrivals belong: they take no time themselves, but wait behind a return that is being copied, and a return behind one
 * that is not due yet would wait for it. The last iteration's order is the result.
 */
#include "plan/timeline.h"

#define LAPS 3

struct out { /* room that is free once something has been copied out */
	uint64_t at;
	uint64_t bytes;
	uint32_t visit;
};

struct lap {
	struct um_timeline *t;
	const struct um_blocks *b;
	const struct um_schedule *s;
	const struct um_choice *c;
	const struct um_arrivals *a;
	const struct um_returns *r;
	const struct um_timing *timing;
	int32_t n;
	uint32_t *dirty; /* by visit: bytes to copy out */
	uint64_t *left; /* by visit: when its block last began to leave */
	uint64_t *goes; /* by position: bytes that leave by themselves, or are dropped */
	uint64_t *done; /* by op, over all laps: when it ended; [0] is the start */
	uint64_t h2d, d2h; /* when the engine is free */
	uint64_t resident;
	UM_VEC(struct out) outs;
	size_t out_head;
	uint64_t next; /* return, over all laps */
	int64_t arrived; /* over all laps: arrivals of ops before this one are issued */
	int64_t ended; /* ops over all laps that had ended when the engine last started something */
	int failed;
};

static uint64_t copy_ns(uint64_t bytes, uint64_t rate)
{
	return (uint64_t)((double)bytes * 1e9 / (double)rate + 0.5);
}

/* --- what leaves -------------------------------------------------------------------------------------------------- */

/* A part is copied out where it was written since it came or was copied last: two laps, the second counts. */
static void find_dirty(struct lap *l)
{
	const struct um_blocks *b = l->b;

	for (uint32_t p = 0; p < b->n_parts; p++) {
		int stale = 0;

		for (int lap = 0; lap < 2; lap++) {
			for (uint32_t k = b->part[p].first_touch; k < b->part[p + 1].first_touch; k++) {
				const struct um_touch *t = &b->touch[b->part_touch[k]];
				uint32_t v;

				stale = (stale && !t->born) || t->writes;
				if (t->fate != UM_FATE_NEEDED || !stale)
					continue;
				v = um_choice_first(l->c, b, b->part_touch[k]);
				if (v == UINT32_MAX)
					continue;
				l->dirty[v] += lap ? b->part[p].bytes : 0;
				stale = 0;
			}
		}
	}
}

/* Where a part is dropped or freed behind a touch without being copied: a position, INT32_MAX if it stays or is
 * copied. */
static int32_t drops_at(const struct lap *l, uint32_t touch)
{
	const struct um_touch *t = &l->b->touch[touch];
	uint32_t v = t->fate == UM_FATE_NEEDED ? UINT32_MAX : um_choice_first(l->c, l->b, touch);
	int32_t at;

	if (v == UINT32_MAX)
		return t->fate == UM_FATE_GONE ? t->until : INT32_MAX;
	at = l->b->visit[v].op + 1 + (l->b->visit[v].op < t->op ? l->n : 0);
	return t->fate == UM_FATE_GONE && t->until < at ? t->until : at;
}

/* Bytes that leave by position, and those on the device when an iteration begins. */
static void find_drops(struct lap *l)
{
	const struct um_blocks *b = l->b;

	for (uint32_t t = 0; t < b->n_touches; t++) {
		const struct um_touch *x = &b->touch[t];
		const struct um_part *p = &b->part[x->part];
		int32_t at = drops_at(l, t);

		if (at != INT32_MAX)
			l->goes[at % l->n] += p->bytes;
		if (x->until < l->n || (at != INT32_MAX && at < l->n))
			continue;
		/* Around the end: there if its block is. */
		if (x->fate != UM_FATE_NEEDED || !l->c->away[b->block[p->block + 1].first_visit - 1])
			l->resident += p->bytes;
	}
}

static int prepare(struct lap *l)
{
	const struct um_blocks *b = l->b;

	l->dirty = calloc(b->n_visits + 1ull, sizeof *l->dirty);
	l->left = calloc(b->n_visits + 1ull, sizeof *l->left);
	l->goes = calloc(l->n + 1ull, sizeof *l->goes);
	l->done = calloc((size_t)LAPS * (size_t)l->n + 1, sizeof *l->done);
	l->t->blame = calloc(b->n_visits + 1ull, sizeof *l->t->blame);
	l->t->start = calloc(l->n + 1ull, sizeof *l->t->start);
	if (!l->dirty || !l->left || !l->goes || !l->done || !l->t->blame || !l->t->start)
		return -ENOMEM;
	find_dirty(l);
	find_drops(l);
	return 0;
}

static int send_out(struct lap *l, int32_t op, uint64_t time)
{
	for (uint32_t k = l->b->first_of_op[op]; k < l->b->first_of_op[op + 1]; k++) {
		uint32_t v = l->b->of_op[k];

		if (!l->c->away[v] || !l->b->visit[v].live)
			continue;
		if (time > l->d2h)
			l->d2h = time;
		l->left[v] = l->d2h;
		l->d2h += copy_ns(l->dirty[v], l->timing->d2h);
		if (um_vec_push(&l->outs, ((struct out){l->d2h, l->b->visit[v].live, v})))
			return -ENOMEM;
	}
	return 0;
}

/* --- what comes --------------------------------------------------------------------------------------------------- */

static void record(struct lap *l, int64_t need, int64_t after, const struct um_move *m)
{
	int64_t base = (int64_t)(LAPS - 1) * l->n;
	struct um_move x = m ? *m : (struct um_move){0};

	if (need < base || need >= base + l->n)
		return;
	x.need = (int32_t)(need - base);
	x.after = (int32_t)(after - base);
	if (um_vec_push(&l->t->moves, x))
		l->failed = 1;
}

/* Whoever was copied out between two times is why an op waited. Early laps count as well: they settle the same way. */
static void blame_out(struct lap *l, uint64_t from, uint64_t to)
{
	for (size_t i = l->out_head; i < l->outs.n && l->outs.at[i].at <= to; i++)
		if (l->outs.at[i].at > from)
			l->t->blame[l->outs.at[i].visit] += to - from;
}

static void blame_move(struct lap *l, const struct um_move *m, uint64_t ns)
{
	for (uint32_t i = m->first; i < m->first + m->n; i++)
		l->t->blame[l->r->back[i]] += ns;
}

/* What is copied out by `time` has left. */
static void settle(struct lap *l, uint64_t time)
{
	for (; l->out_head < l->outs.n && l->outs.at[l->out_head].at <= time; l->out_head++)
		l->resident -= l->outs.at[l->out_head].bytes;
}

/* The earliest time from `time` on at which there is room, as far as copies out make it; UINT64_MAX if they do not. */
static uint64_t room_at(struct lap *l, uint64_t time, uint64_t bytes)
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

static void arrive(struct lap *l, int64_t op, int64_t after)
{
	if (um_arrivals_any(l->a, (int32_t)(op % l->n)))
		record(l, op, after, NULL);
	l->resident += l->a->bytes[op % l->n];
	l->arrived = op + 1;
}

/* Arrivals that come due, by the ops' own times, while a return is copied from `start` to `end`: before it, with
 * room. */
static void hoist(struct lap *l, int64_t op, uint64_t due, uint64_t start, uint64_t end, uint64_t bytes, int64_t need)
{
	int64_t last = (int64_t)LAPS * l->n;

	while (l->ended < op && l->done[l->ended + 1] <= start)
		l->ended++;
	for (; op < last && op < need && due < end; due += l->s->ops.at[op % l->n].ns, op++) {
		if (op < l->arrived)
			continue;
		if (l->resident + l->a->bytes[op % l->n] + bytes > l->timing->budget)
			return;
		arrive(l, op, l->ended - 1);
	}
}

/* The op after which a return may start, `after` or a later one below `known`: when its blocks have surely begun to
 * leave. One that is asked back before would not be fetched, and leave then. INT64_MAX if they have not by then. */
static int64_t gone_by(const struct lap *l, const struct um_move *m, int64_t after, int64_t known)
{
	uint64_t left = 0;

	for (uint32_t i = m->first; i < m->first + m->n; i++)
		left = l->left[l->r->back[i]] > left ? l->left[l->r->back[i]] : left;
	if (!left)
		return after;
	left += copy_ns(UM_BLOCK_BYTES, l->timing->d2h);
	if (known < 1 || l->done[known] < left)
		return INT64_MAX;
	for (int64_t lo = after < 0 ? -1 : after, hi = known - 1;;) {
		int64_t mid = lo + (hi - lo) / 2;

		if (lo >= hi)
			return hi;
		if (l->done[mid + 1] < left)
			lo = mid + 1;
		else
			hi = mid;
	}
}

static void pin(struct lap *l, const struct um_move *m)
{
	for (uint32_t i = m->first; i < m->first + m->n; i++) {
		uint32_t v = l->r->back[i];

		l->t->hasty += !l->c->pinned[v];
		l->c->pinned[v] = 1;
	}
}

/* The engine works until `time`, when op `op` could start, as far as it knew before that op's place was reached; or, if
 * `reached`, on what the op itself waits for. Returns when that is there. */
static uint64_t work(struct lap *l, int64_t op, uint64_t time, int reached)
{
	while (l->r->n_moves && l->next < (uint64_t)LAPS * l->r->n_moves) {
		const struct um_move *m = &l->r->move[l->next % l->r->n_moves];
		int64_t base = (int64_t)(l->next / l->r->n_moves) * l->n;
		int64_t need = base + m->need, after = base + m->after, known = reached ? op : op - 1, gone;
		int must = reached && need <= op;
		uint64_t start, ready;

		if (after >= known)
			break;
		gone = gone_by(l, m, after, known);
		if (gone == INT64_MAX && !must)
			break;
		if (gone == INT64_MAX)
			pin(l, m);
		else
			after = gone;
		ready = after < 0 ? 0 : l->done[after + 1];
		start = room_at(l, l->h2d > ready ? l->h2d : ready, m->bytes);
		if (!must && start >= time) {
			/* What is freed from now on cannot be used before. */
			if (start == UINT64_MAX && l->h2d < time)
				l->h2d = time;
			break;
		}
		if (start == UINT64_MAX)
			start = l->h2d > time ? l->h2d : time;
		if (must && start > time)
			blame_out(l, time, start);
		settle(l, start);
		if (l->timing->eager && !must)
			hoist(l, op, time, start, start + copy_ns(m->bytes, l->timing->h2d), m->bytes, need);
		record(l, need, after, m);
		l->resident += m->bytes;
		l->h2d = start + copy_ns(m->bytes, l->timing->h2d);
		l->next++;
		if (must && l->h2d > time) {
			blame_move(l, m, l->h2d - time);
			time = l->h2d;
		}
	}
	return time;
}

/* Arrivals take their turn behind what is being copied, and need room. */
static uint64_t wait_to_arrive(struct lap *l, int64_t op, uint64_t time)
{
	uint64_t room;

	if (!um_arrivals_any(l->a, (int32_t)(op % l->n)))
		return time;
	if (time < l->h2d)
		time = l->h2d;
	room = room_at(l, time, l->a->bytes[op % l->n]);
	if (room != UINT64_MAX) {
		blame_out(l, time, room);
		time = room;
	}
	settle(l, time);
	l->h2d = time;
	return time;
}

static int run(struct lap *l)
{
	for (int64_t i = 0; i < (int64_t)LAPS * l->n; i++) {
		int32_t op = (int32_t)(i % l->n);
		uint64_t time = l->done[i];

		if (i)
			work(l, i, time, 0);
		l->resident -= l->goes[op];
		if (i && send_out(l, (op + l->n - 1) % l->n, time))
			return -ENOMEM;
		time = work(l, i, time, 1);
		if (i >= l->arrived) {
			time = wait_to_arrive(l, i, time);
			arrive(l, i, i - 1);
		}
		l->done[i + 1] = time + l->s->ops.at[op].ns;
	}
	l->t->ns = l->done[(int64_t)LAPS * l->n] - l->done[(int64_t)(LAPS - 1) * l->n];
	for (int32_t op = 0; op <= l->n; op++)
		l->t->start[op] = l->done[(int64_t)(LAPS - 1) * l->n + op] - l->done[(int64_t)(LAPS - 1) * l->n];
	return l->failed ? -ENOMEM : 0;
}

int um_timeline_build(struct um_timeline *t, const struct um_blocks *b, const struct um_schedule *s,
                      const struct um_choice *c, const struct um_arrivals *a, const struct um_returns *r,
                      const struct um_timing *timing)
{
	struct lap l = {.t = t, .b = b, .s = s, .c = c, .a = a, .r = r, .timing = timing, .n = b->n_ops};
	int err;

	memset(t, 0, sizeof *t);
	err = prepare(&l);
	if (!err)
		err = run(&l);
	free(l.dirty);
	free(l.left);
	free(l.goes);
	free(l.done);
	um_vec_fini(&l.outs);
	if (err)
		um_timeline_fini(t);
	return err;
}

void um_timeline_fini(struct um_timeline *t)
{
	um_vec_fini(&t->moves);
	free(t->blame);
	free(t->start);
	memset(t, 0, sizeof *t);
}
