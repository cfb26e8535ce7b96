/* SPDX-License-Identifier: Apache-2.0
 *
 * Refines cuts until the bound settles.
 */
#include "bound/bound.h"

#include "base/clock.h"
#include "bound/bound_master.h"

#include <math.h>

#define FIRST_CUTS 12
#define MOST_CUTS 1000
#define FEW_CUTS 200 /* not settled before */
#define MOST_ROUNDS (BOUND_ROUNDS - 1) /* and one more */
#define SETTLED 1e-4 /* gain below which two successive rounds end the search */

static int by_moment(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void tidy(struct bound_cuts *c)
{
	int n = 0;

	qsort(c->moment, (size_t)c->n, sizeof *c->moment, by_moment);
	for (int i = 0; i < c->n; i++)
		if (!n || c->moment[n - 1] != c->moment[i])
			c->moment[n++] = c->moment[i];
	c->n = n;
}

/* Initial cuts: even in time, and the fullest op. */
static void cut_first(struct bound_cuts *c, const struct bound_work *w)
{
	int32_t full = 0, op = 0;

	c->n = 0;
	for (int32_t i = 0; i < w->n_ops; i++)
		if (w->need[i] > w->need[full])
			full = i;
	c->moment[c->n++] = 2ll * full;
	for (int k = 0; k < FIRST_CUTS; k++) {
		while (op + 1 < w->n_ops && w->before[op + 1] * FIRST_CUTS <= w->before[w->n_ops] * (uint64_t)k)
			op++;
		c->moment[c->n++] = 2ll * op;
	}
	tidy(c);
}

/* Where to cut (from, to), moments of one iteration or into the next: at the fullest op if it stands out, else midway
 * in time. -1: no cut. */
static int64_t middle(const struct bound_work *w, int64_t from, int64_t to, uint64_t budget)
{
	int64_t length = 2ll * w->n_ops, best = -1;
	int64_t begin = w->need[from % length / 2], end = w->need[to % length / 2], most = begin > end ? begin : end;
	uint64_t half, sum = 0;

	if (to - from < 2)
		return -1;
	most = most > (int64_t)budget ? most : (int64_t)budget;
	most += most / 500;
	for (int64_t m = from + 1; m < to; m++)
		if (w->need[m % length / 2] > most) {
			most = w->need[m % length / 2];
			best = m;
		}
	if (best >= 0)
		return best % length;
	for (int64_t m = from; m < to; m++)
		sum += m % 2 == 0 ? w->before[m % length / 2 + 1] - w->before[m % length / 2] : 0;
	half = sum / 2;
	sum = 0;
	for (int64_t m = from; m + 1 < to; m++) {
		sum += m % 2 == 0 ? w->before[m % length / 2 + 1] - w->before[m % length / 2] : 0;
		if (sum >= half && m + 1 > from)
			return (m + 1) % length;
	}
	return (to - 1) % length;
}

struct candidate {
	double score;
	int k;
};

static int by_score(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->k - y->k;
}

/* Cuts the segments that count most. */
static int refine(struct bound_cuts *c, const struct bound_work *w, struct bound_prices *p, uint64_t budget)
{
	struct candidate *x = malloc(((size_t)c->n + 1) * sizeof *x);
	int64_t length = 2ll * w->n_ops, *old = malloc(((size_t)c->n + 1) * sizeof *old);
	struct bound_prices q = {0};
	int n = c->n, room = n / 2, err = 0;

	if (!x || !old || bound_prices_init(&q, 2 * n + 1)) {
		err = -ENOMEM;
		goto out;
	}
	memcpy(old, c->moment, (size_t)n * sizeof *old);
	for (int k = 0; k < n; k++) {
		int64_t from = c->moment[k], to = k + 1 < n ? c->moment[k + 1] : c->moment[0] + length;
		int l = k ? k - 1 : n - 1, h = k + 1 < n ? k + 1 : 0;
		double ns = 0, step;

		for (int64_t m = from; m < to; m++)
			ns += m % 2 == 0 ? (double)(w->before[m % length / 2 + 1] - w->before[m % length / 2]) : 0;
		/* Segments whose prices differ from their neighbours' deserve more cuts. */
		step = fabs(p->in[k] - p->in[l]) + fabs(p->in[k] - p->in[h]) + fabs(p->out[k] - p->out[l]) +
		       fabs(p->out[k] - p->out[h]) + p->room[k] + p->room[h];
		x[k] = (struct candidate){ns * (0.02 + 10 * step), k};
	}
	qsort(x, (size_t)n, sizeof *x, by_score);
	for (int i = 0; i < n && c->n < n + room; i++) {
		int k = x[i].k;
		int64_t m = middle(w, old[k], k + 1 < n ? old[k + 1] : old[0] + length, budget);

		if (m >= 0)
			c->moment[c->n++] = m;
	}
	tidy(c);
	bound_prices_fini(p);
	*p = q;
out:
	free(x);
	free(old);
	return err;
}

static double seconds_now(void)
{
	return (double)um_clock_ns(CLOCK_MONOTONIC) / 1e9;
}

struct finder {
	const struct bound_request *r;
	struct bound_result *out;
	struct bound_work w;
	struct bound_cuts c;
	struct bound_prices p;
	double begun, took; /* seconds: at the start, by the last round */
};

/* One round with the current cuts. *more: it finished, and time is left for another. */
static int go_round(struct finder *f, int fine, int *more)
{
	struct bound_problem b = {f->r, &f->w, &f->c, fine};
	double from = seconds_now(), left = f->r->seconds - (from - f->begun), ms = 0;
	unsigned round = f->out->rounds;
	int done, err = bound_master_solve(&b, f->r->seconds > 0 ? (left > 0.01 ? left : 0.01) : 0, &f->p, &ms, &done);

	if (err)
		return err;
	f->took = seconds_now() - from;
	/* A stopped solver may leave NaN. */
	if (ms > 0 && ms * 1e6 < 1e18 && (uint64_t)(ms * 1e6) > f->out->ns)
		f->out->ns = (uint64_t)(ms * 1e6);
	f->out->by_round[round] = f->out->ns;
	f->out->rounds = round + 1;
	f->out->cuts = (unsigned)f->c.n;
	f->out->cut_short = !done || (f->r->seconds > 0 && seconds_now() - f->begun + 2 * f->took > f->r->seconds);
	*more = !f->out->cut_short;
	return 0;
}

static int go_rounds(struct finder *f)
{
	int idle = 0, more = 1, err = 0;

	while (!err && more && f->out->rounds < MOST_ROUNDS) {
		int before = f->c.n;
		uint64_t last = f->out->ns;

		err = go_round(f, f->r->all, &more);
		if (err || !more || f->r->all || f->out->rounds == f->r->rounds)
			return err;
		idle = (double)(f->out->ns - last) <= SETTLED * (double)last ? idle + 1 : 0;
		if ((before >= FEW_CUTS && idle > 1) || before >= MOST_CUTS)
			break;
		err = refine(&f->c, &f->w, &f->p, f->r->budget);
		if (f->c.n == before)
			break;
	}
	return !err && more ? go_round(f, 1, &more) : err;
}

int bound_find(const struct bound_request *r, struct bound_result *out)
{
	struct finder f = {.r = r, .out = out, .begun = seconds_now()};
	int err = bound_work_init(&f.w, r);

	memset(out, 0, sizeof *out);
	if (err)
		return err;
	for (int32_t i = 0; i < f.w.n_ops; i++)
		if (f.w.uses[i] > (int64_t)r->budget)
			err = -E2BIG;
	f.c.moment = malloc((2 * (size_t)f.w.n_ops + 2 * MOST_CUTS + 2 * FIRST_CUTS) * sizeof *f.c.moment);
	if (!err && !f.c.moment)
		err = -ENOMEM;
	if (err)
		goto out;
	out->ns = f.w.before[f.w.n_ops];
	if (r->all) {
		for (f.c.n = 0; f.c.n < 2 * f.w.n_ops; f.c.n++)
			f.c.moment[f.c.n] = f.c.n;
	} else {
		cut_first(&f.c, &f.w);
	}
	err = bound_prices_init(&f.p, f.c.n);
	if (!err)
		err = go_rounds(&f);
out:
	bound_prices_fini(&f.p);
	bound_work_fini(&f.w);
	free(f.c.moment);
	return err;
}
