/* SPDX-License-Identifier: Apache-2.0
 *
 * Two steps. First every return gets its earliest op, by the load alone: the op behind the last one before its need that
 * leaves no room. Then three iterations are carried out in time, block by block, to find out where in the queue the
 * arrivals belong: they take no time themselves, but wait behind a return that is being copied, and returns behind one
 * that is not due yet would wait for it. The last iteration's order is the result.
 */
#include "plan/timeline.h"

#define LAPS 3

struct ret {
	int32_t need, after;
	uint32_t visit;
};

struct out { /* a block that has left once it is copied */
	uint64_t at;
};

struct lap {
	struct um_timeline *t;
	const struct um_blocks *b;
	const struct um_schedule *s;
	const struct um_choice *c;
	const struct um_timing *timing;
	const uint8_t *arrives;
	int32_t n, limit;
	struct um_move *ret; /* returns, merged, in order of need */
	uint32_t n_ret;
	uint32_t *dirty; /* by visit: bytes to copy out */
	int32_t *comes, *goes; /* by op: blocks that become resident with its arrivals; that leave by themselves before it */
	uint64_t *done; /* by op, over all laps: when it ended; [0] is the start */
	uint64_t h2d, d2h; /* when the engine is free */
	int64_t resident;
	UM_VEC(struct out) outs;
	size_t out_head;
	uint64_t next_ret; /* over all laps */
	int64_t arrived; /* over all laps: arrivals of ops before this one are issued */
	int64_t seen; /* ops over all laps that had ended when the engine last started something */
	int failed;
};

static int by_need(const void *a, const void *b)
{
	const struct ret *x = a, *y = b;

	if (x->need != y->need)
		return x->need < y->need ? -1 : 1;
	if (x->after != y->after)
		return x->after < y->after ? -1 : 1;
	return x->visit < y->visit ? -1 : x->visit > y->visit;
}

/* Returns in order of need, counted from the calmest op on, so that few reach back behind the start. */
static int find_returns(struct lap *l, struct ret *ret, struct um_choice *c)
{
	const struct um_blocks *b = l->b;
	uint32_t n = 0;

	for (uint32_t v = 0; v < b->n_visits; v++) {
		const struct um_visit *x = &b->visit[v];

		if (c->away[v] && x->live && b->after[v] != UINT32_MAX)
			ret[n++] = (struct ret){(x->end + l->n - c->calm) % l->n, 0, v};
	}
	qsort(ret, n, sizeof *ret, by_need);
	for (uint32_t i = 0; i < n; i++) {
		const struct um_visit *x = &b->visit[ret[i].visit];
		int64_t at = um_load_last(&c->load, x->op + 1, x->end, l->limit);

		um_load_add(&c->load, at + 1, x->end, 1);
		/* From the op that the gap begins at to the one that it ends at, as seen from the latter's iteration. */
		ret[i].after = (int32_t)at - (x->end >= l->n ? l->n : 0);
		ret[i].need = x->end % l->n;
	}
	qsort(ret, n, sizeof *ret, by_need);
	return (int)n;
}

/* Neighbouring blocks that may return at the same time become one move. */
static int merge_returns(struct lap *l, const struct ret *ret, uint32_t n)
{
	l->ret = malloc((n + 1ull) * sizeof *l->ret);
	l->t->back = malloc((n + 1ull) * sizeof *l->t->back);
	if (!l->ret || !l->t->back)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct um_visit *x = &l->b->visit[ret[i].visit];
		struct um_move *m = l->n_ret ? &l->ret[l->n_ret - 1] : NULL;

		l->t->back[i] = ret[i].visit;
		if (m && m->need == ret[i].need && m->after == ret[i].after && m->n < l->timing->merge &&
		    l->b->visit[ret[i - 1].visit].block + 1 == x->block) {
			m->n++;
			m->bytes += x->live;
		} else {
			l->ret[l->n_ret++] = (struct um_move){ret[i].need, ret[i].after, i, 1, x->live};
		}
	}
	l->t->n_back = n;
	return 0;
}

static int plan_returns(struct lap *l, struct um_choice *c)
{
	struct ret *ret = malloc((l->b->n_visits + 1ull) * sizeof *ret);
	int err = ret ? 0 : -ENOMEM;

	if (!err)
		err = merge_returns(l, ret, (uint32_t)find_returns(l, ret, c));
	free(ret);
	return err;
}

/* --- what leaves ---------------------------------------------------------------------------------------------------- */

/* A part is copied out where it was written since it came or was copied last: two laps, the second counts. */
static int find_dirty(struct lap *l)
{
	const struct um_blocks *b = l->b;
	uint32_t *next = um_choice_next(l->c, b);

	l->dirty = calloc(b->n_visits + 1ull, sizeof *l->dirty);
	if (!next || !l->dirty) {
		free(next);
		return -ENOMEM;
	}
	for (uint32_t p = 0; p < b->n_parts; p++) {
		int stale = 0;

		for (int lap = 0; lap < 2; lap++) {
			for (uint32_t k = b->part[p].first_touch; k < b->part[p + 1].first_touch; k++) {
				const struct um_touch *t = &b->touch[b->part_touch[k]];
				uint32_t v;

				stale = (stale && !t->born) || t->writes;
				if (t->fate != UM_FATE_NEEDED || !stale)
					continue;
				v = um_choice_first(b, next, b->part_touch[k]);
				if (v == UINT32_MAX)
					continue;
				l->dirty[v] += lap ? b->part[p].bytes : 0;
				stale = 0;
			}
		}
	}
	free(next);
	return 0;
}

/* Blocks that come and go without a copy. */
static int count_blocks(struct lap *l)
{
	const struct um_blocks *b = l->b;
	uint8_t *held = calloc(b->n_visits + 1ull, 1); /* the block is there already when the visit is due */

	l->comes = calloc(l->n + 1ull, sizeof *l->comes);
	l->goes = calloc(l->n + 1ull, sizeof *l->goes);
	if (!held || !l->comes || !l->goes) {
		free(held);
		return -ENOMEM;
	}
	for (uint32_t v = 0; v < b->n_visits; v++) {
		const struct um_visit *x = &b->visit[v];

		if (b->after[v] != UINT32_MAX && (l->c->away[v] ? x->live > 0 : x->held == x->end))
			held[b->after[v]] = 1;
		if (l->c->away[v] && !x->live)
			l->goes[(x->op + 1) % l->n]++;
		else if (!l->c->away[v] && (x->held < x->end || b->after[v] == UINT32_MAX))
			l->goes[x->held % l->n]++;
		if (l->c->away[v] ? !x->live && x->op + 1 == l->n : x->held >= l->n)
			l->resident++;
	}
	for (uint32_t v = 0; v < b->n_visits; v++)
		l->comes[b->visit[v].op] += !held[v];
	free(held);
	return 0;
}

/* --- time ------------------------------------------------------------------------------------------------------------ */

static uint64_t copy_ns(uint64_t bytes, uint64_t rate)
{
	return (uint64_t)((double)bytes * 1e9 / (double)rate + 0.5);
}

static const struct um_move *ret_at(const struct lap *l, uint64_t i, int64_t *need, int64_t *after)
{
	const struct um_move *m = &l->ret[i % l->n_ret];
	int64_t base = (int64_t)(i / l->n_ret) * l->n;

	*need = base + m->need;
	*after = base + m->after;
	return m;
}

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

/* Blocks copied out by `time` have left. */
static void settle(struct lap *l, uint64_t time)
{
	while (l->out_head < l->outs.n && l->outs.at[l->out_head].at <= time) {
		l->out_head++;
		l->resident--;
	}
}

/* The earliest time from `time` on at which `blocks` have room, as far as copies out make it; UINT64_MAX if they do not. */
static uint64_t room_at(struct lap *l, uint64_t time, int64_t blocks)
{
	int64_t over;

	settle(l, time);
	over = l->resident + blocks - l->limit;
	if (over <= 0)
		return time;
	if ((uint64_t)over > l->outs.n - l->out_head)
		return UINT64_MAX;
	return l->outs.at[l->out_head + (size_t)over - 1].at;
}

static void arrive(struct lap *l, int64_t op, int64_t after)
{
	if (l->arrives[op % l->n])
		record(l, op, after, NULL);
	l->resident += l->comes[op % l->n];
}

/* Arrivals that come due, by the ops' own times, while a return is copied from `start` to `end`: before it, with room. */
static void hoist(struct lap *l, int64_t op, uint64_t due, uint64_t start, uint64_t end, const struct um_move *m,
                  int64_t need)
{
	int64_t last = (int64_t)LAPS * l->n;

	while (l->seen + 1 <= op && l->done[l->seen + 1] <= start)
		l->seen++;
	for (; op < last && op < need && due < end; due += l->s->ops.at[op % l->n].ns, op++) {
		if (op < l->arrived)
			continue;
		if (l->resident + l->comes[op % l->n] + m->n > l->limit)
			return;
		arrive(l, op, l->seen - 1);
		l->arrived = op + 1;
	}
}

/* The engine works until `time`, when op `op` could start, as far as it knew before that op's place was reached; or, if
 * `reached`, on what the op itself waits for. Returns when that is there. */
static uint64_t work(struct lap *l, int64_t op, uint64_t time, int reached)
{
	int64_t need, after;

	while (l->n_ret && l->next_ret < (uint64_t)LAPS * l->n_ret) {
		const struct um_move *m = ret_at(l, l->next_ret, &need, &after);
		int must = reached && need <= op;
		uint64_t start, ready;

		if (after >= (reached ? op : op - 1))
			break;
		ready = after < 0 ? 0 : l->done[after + 1];
		start = room_at(l, l->h2d > ready ? l->h2d : ready, m->n);
		if (!must && start >= time) {
			/* What is freed from now on cannot be used before. */
			if (start == UINT64_MAX && l->h2d < time)
				l->h2d = time;
			break;
		}
		if (start == UINT64_MAX)
			start = l->h2d > time ? l->h2d : time;
		settle(l, start);
		if (l->timing->eager && !must)
			hoist(l, op, time, start, start + copy_ns(m->bytes, l->timing->h2d), m, need);
		record(l, need, after, m);
		l->resident += m->n;
		l->h2d = start + copy_ns(m->bytes, l->timing->h2d);
		l->next_ret++;
		if (must && l->h2d > time)
			time = l->h2d;
	}
	return time;
}

static int send_out(struct lap *l, int32_t op, uint64_t time)
{
	for (uint32_t k = l->b->first_of_op[op]; k < l->b->first_of_op[op + 1]; k++) {
		uint32_t v = l->b->of_op[k];

		if (!l->c->away[v] || !l->b->visit[v].live)
			continue;
		if (time > l->d2h)
			l->d2h = time;
		l->d2h += copy_ns(l->dirty[v], l->timing->d2h);
		if (um_vec_push(&l->outs, (struct out){l->d2h}))
			return -ENOMEM;
	}
	return 0;
}

/* Arrivals take their turn behind what is being copied, and need room. */
static uint64_t wait_to_arrive(struct lap *l, int64_t op, uint64_t time)
{
	uint64_t room;

	if (!l->arrives[op % l->n])
		return time;
	if (time < l->h2d)
		time = l->h2d;
	room = room_at(l, time, l->comes[op % l->n]);
	if (room != UINT64_MAX)
		time = room;
	settle(l, time);
	l->h2d = time;
	return time;
}

static int run(struct lap *l)
{
	l->done = calloc((size_t)LAPS * (size_t)l->n + 1, sizeof *l->done);
	if (!l->done)
		return -ENOMEM;
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
			l->arrived = i + 1;
		}
		l->done[i + 1] = time + l->s->ops.at[op].ns;
	}
	l->t->ns = l->done[(int64_t)LAPS * l->n] - l->done[(int64_t)(LAPS - 1) * l->n];
	return l->failed ? -ENOMEM : 0;
}

int um_timeline_build(struct um_timeline *t, const struct um_blocks *b, const struct um_schedule *s,
                      struct um_choice *c, int32_t limit, const uint8_t *arrives, const struct um_timing *timing)
{
	struct lap l = {.t = t, .b = b, .s = s, .c = c, .timing = timing, .arrives = arrives, .limit = limit};
	int err;

	memset(t, 0, sizeof *t);
	l.n = b->n_ops;
	err = plan_returns(&l, c);
	if (!err)
		err = find_dirty(&l);
	if (!err)
		err = count_blocks(&l);
	if (!err)
		err = run(&l);
	free(l.ret);
	free(l.dirty);
	free(l.comes);
	free(l.goes);
	free(l.done);
	um_vec_fini(&l.outs);
	if (err)
		um_timeline_fini(t);
	return err;
}

void um_timeline_fini(struct um_timeline *t)
{
	free(t->back);
	um_vec_fini(&t->moves);
	memset(t, 0, sizeof *t);
}
