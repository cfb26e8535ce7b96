/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.c - computes the lower bound
 *
 * Only parts count whose next touch reads and whose last touch wrote them as a whole, so that the bound holds to the
 * byte; and only parts that some op uses densely: a sound plan may keep the others on the host and let ops access them
 * there (model/host_resident.h), which takes no room and, at best, no time. Ops are tried in the order of their excess,
 * MOST_TRIED of them, no two close to each other.
 */
#include "plan/bound.h"

#define MOST_TRIED 12

struct bound {
	const struct um_blocks *b;
	const struct um_schedule *s;
	const struct um_bound_link *link;
	int32_t n;
	uint64_t *alive; /* by op: bytes that it touches or that are needed around it */
	uint64_t *sum; /* by op: ns of all ops before it; 2 n + 1, for windows that go around the end */
	uint8_t *dense; /* by part: must be on the device at some time */
	int32_t *written; /* by touch: last write of its part's content, INT32_MIN if unknown */
	uint32_t *counted, n_counted; /* touches whose content counts */
	/* By distance from the op in question, 0 .. n: bytes written before it, needed after it. */
	uint64_t *old, *late;
};

/* Does the next touch read the whole content that a touch leaves? */
static int counts(const struct bound *w, uint32_t t)
{
	const struct um_touch *x = &w->b->touch[t];

	return w->dense[x->part] && x->liveness == UM_LIVENESS_NEEDED && w->b->to[t] != UINT32_MAX &&
	       w->b->touch[w->b->to[t]].reads_all;
}

static void find_counted(struct bound *w)
{
	for (uint32_t t = 0; t < w->b->n_touches; t++)
		if (counts(w, t))
			w->counted[w->n_counted++] = t;
}

static void find_written(struct bound *w)
{
	const struct um_blocks *b = w->b;

	for (uint32_t p = 0; p < b->n_parts; p++) {
		int32_t last = INT32_MIN;

		for (int iteration = 0; iteration < 2; iteration++) {
			for (uint32_t k = b->part[p].first_touch; k < b->part[p + 1].first_touch; k++) {
				const struct um_touch *t = &b->touch[b->part_touch[k]];

				if (t->born)
					last = INT32_MIN;
				if (t->writes)
					last = t->writes_all ? t->op + iteration * w->n : INT32_MIN;
				w->written[b->part_touch[k]] = last == INT32_MIN ? last : last - iteration * w->n;
			}
		}
	}
}

static void find_alive(struct bound *w)
{
	const struct um_blocks *b = w->b;
	int64_t sum = 0;

	for (uint32_t t = 0; t < b->n_touches; t++) {
		const struct um_touch *x = &b->touch[t];

		if (w->dense[x->part] && (x->reads_all || x->writes_all)) {
			w->alive[x->op] += b->part[x->part].bytes;
			w->alive[x->op + 1] -= b->part[x->part].bytes;
		}
	}
	for (uint32_t i = 0; i < w->n_counted; i++) {
		const struct um_touch *x = &b->touch[w->counted[i]];
		uint64_t bytes = b->part[x->part].bytes;
		int32_t from = x->op + 1, to = x->until;

		for (; to - from >= w->n; to -= w->n)
			w->alive[0] += bytes;
		w->alive[from % w->n] += bytes;
		w->alive[to % w->n] -= bytes;
		if (to % w->n < from % w->n)
			w->alive[0] += bytes;
	}
	for (int32_t i = 0; i < w->n; i++) {
		sum += (int64_t)w->alive[i];
		w->alive[i] = (uint64_t)sum;
	}
}

static void add(uint64_t *at, int32_t n, int64_t distance, uint64_t bytes)
{
	at[distance < 0 ? 0 : distance > n ? n : distance] += bytes;
}

/* The content around op p, by its write (ops before p) and its next use (ops after p). */
static void find_around(struct bound *w, int32_t p)
{
	const struct um_blocks *b = w->b;

	memset(w->old, 0, (w->n + 1ull) * sizeof *w->old);
	memset(w->late, 0, (w->n + 1ull) * sizeof *w->late);
	for (uint32_t i = 0; i < w->n_counted; i++) {
		uint32_t t = w->counted[i];
		const struct um_touch *x = &b->touch[t];
		uint64_t bytes = b->part[x->part].bytes;

		for (int32_t at = p; at < x->until; at += w->n) {
			if (at <= x->op)
				continue;
			add(w->old, w->n, w->written[t] == INT32_MIN ? w->n : at - (int64_t)w->written[t], bytes);
			add(w->late, w->n, x->until - at, bytes);
		}
	}
}

static uint64_t copy_ns(uint64_t bytes, uint64_t rate)
{
	/* rounded down, because copies are rounded one by one and a bound must not be too large */
	return (uint64_t)((double)bytes * 0.9999e9 / (double)rate);
}

/* The maximum time beyond the ops' own that copies take in a window of any length up to `most` next to p. `by`: bytes
 * by distance; bytes beyond the window can make up for as much. `before`: the window ends at p. */
static uint64_t window(const struct bound *w, int32_t p, uint64_t over, const uint64_t *by, uint64_t rate, int before,
		       int32_t most, int32_t *length)
{
	uint64_t best = 0, beyond = 0, ns, own;

	for (int32_t i = 0; i <= w->n; i++)
		beyond += by[i];
	*length = 0;
	for (int32_t i = 0; i < most; i++) {
		/* Written at distance i: op p - i took part, and the copy runs in later ops. Needed at distance i: op p
		 * + i waits, and the copy ran in earlier ops. So the window is the i - 1 ops between. */
		beyond -= by[i];
		if (i < 1 || beyond >= over)
			continue;
		own = before ? w->sum[p + w->n] - w->sum[p + w->n - i + 1] : w->sum[p + i] - w->sum[p + 1];
		ns = copy_ns(over - beyond, rate);
		if (ns > own && ns - own > best) {
			best = ns - own;
			*length = i;
		}
	}
	return best;
}

static uint64_t try_op(struct bound *w, int32_t p)
{
	uint64_t over = w->alive[p] - w->link->budget, out, in;
	int32_t i, j;

	find_around(w, p);
	out = window(w, p, over, w->old, w->link->d2h, 1, w->n, &i);
	in = window(w, p, over, w->late, w->link->h2d, 0, w->n, &j);
	/* Both windows in one iteration. */
	if (i + j >= w->n)
		in = window(w, p, over, w->late, w->link->h2d, 0, w->n - i, &j);
	return out + in;
}

static int prepare(struct bound *w)
{
	w->alive = calloc(w->n + 2ull, sizeof *w->alive);
	w->sum = calloc(2ull * (size_t)w->n + 2, sizeof *w->sum);
	w->dense = calloc(w->b->n_parts + 1ull, 1);
	w->written = malloc((w->b->n_touches + 1ull) * sizeof *w->written);
	w->counted = malloc((w->b->n_touches + 1ull) * sizeof *w->counted);
	w->old = malloc((w->n + 1ull) * sizeof *w->old);
	w->late = malloc((w->n + 1ull) * sizeof *w->late);
	if (!w->alive || !w->sum || !w->written || !w->old || !w->late || !w->dense || !w->counted)
		return -ENOMEM;
	for (uint32_t t = 0; t < w->b->n_touches; t++)
		w->dense[w->b->touch[t].part] |= w->b->touch[t].dense;
	for (int32_t i = 0; i <= 2 * w->n; i++)
		w->sum[i + 1] = w->sum[i] + w->s->ops.at[i % w->n].ns;
	find_counted(w);
	find_written(w);
	find_alive(w);
	return 0;
}

int um_bound_build(const struct um_blocks *b, const struct um_schedule *s, const struct um_bound_link *link,
		   uint64_t *ns)
{
	struct bound w = {.b = b, .s = s, .link = link, .n = b->n_ops};
	int err = prepare(&w);
	uint64_t best = 0;

	for (int i = 0; !err && i < MOST_TRIED; i++) {
		int32_t p = 0, near = w.n / 64;

		for (int32_t k = 1; k < w.n; k++)
			if (w.alive[k] > w.alive[p])
				p = k;
		if (w.alive[p] <= link->budget)
			break;
		uint64_t extra = try_op(&w, p);

		best = extra > best ? extra : best;
		for (int32_t k = p > near ? p - near : 0; k < w.n && k <= p + near; k++)
			w.alive[k] = 0;
	}
	if (!err)
		*ns = w.sum[w.n] + best;
	free(w.alive);
	free(w.sum);
	free(w.dense);
	free(w.written);
	free(w.counted);
	free(w.old);
	free(w.late);
	return err;
}
