/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts are refined where it matters until the bound settles.
 */
#include "bound.h"

#include "bound_master.h"

#include <math.h>

#define FIRST_CUTS 12
#define MOST_CUTS 160
#define SETTLED 1e-4 /* two rounds in a row that gain less are the last */

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

/* Evenly in time, and the fullest op. */
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

/* Where to cut (from, to), moments of one lap or into the next: at the fullest op if it stands out, else midway in
 * time. -1: nowhere. */
static int64_t middle(const struct bound_work *w, int64_t from, int64_t to, uint64_t budget)
{
	int64_t lap = 2ll * w->n_ops, best = -1;
	int64_t begin = w->need[from % lap / 2], end = w->need[to % lap / 2], most = begin > end ? begin : end;
	uint64_t half, sum = 0;

	if (to - from < 2)
		return -1;
	most = most > (int64_t)budget ? most : (int64_t)budget;
	most += most / 500;
	for (int64_t m = from + 1; m < to; m++)
		if (w->need[m % lap / 2] > most) {
			most = w->need[m % lap / 2];
			best = m;
		}
	if (best >= 0)
		return best % lap;
	for (int64_t m = from; m < to; m++)
		sum += m % 2 == 0 ? w->before[m % lap / 2 + 1] - w->before[m % lap / 2] : 0;
	half = sum / 2;
	sum = 0;
	for (int64_t m = from; m + 1 < to; m++) {
		sum += m % 2 == 0 ? w->before[m % lap / 2 + 1] - w->before[m % lap / 2] : 0;
		if (sum >= half && m + 1 > from)
			return (m + 1) % lap;
	}
	return (to - 1) % lap;
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

/* Cuts the segments that count most; carries their prices over. */
static int refine(struct bound_cuts *c, const struct bound_work *w, struct bound_prices *p, uint64_t budget)
{
	struct candidate *x = malloc(((size_t)c->n + 1) * sizeof *x);
	int64_t lap = 2ll * w->n_ops, *old = malloc(((size_t)c->n + 1) * sizeof *old);
	struct bound_prices q = {0};
	int n = c->n, room = n / 2, err = 0;

	if (!x || !old || bound_prices_init(&q, 2 * n + 1)) {
		err = -ENOMEM;
		goto out;
	}
	memcpy(old, c->moment, (size_t)n * sizeof *old);
	for (int k = 0; k < n; k++) {
		int64_t from = c->moment[k], to = k + 1 < n ? c->moment[k + 1] : c->moment[0] + lap;
		double ns = 0;

		for (int64_t m = from; m < to; m++)
			ns += m % 2 == 0 ? (double)(w->before[m % lap / 2 + 1] - w->before[m % lap / 2]) : 0;
		int l = k ? k - 1 : n - 1, h = k + 1 < n ? k + 1 : 0;
		/* Where prices change from segment to segment the program would like to tell more apart. */
		double step = fabs(p->in[k] - p->in[l]) + fabs(p->in[k] - p->in[h]) + fabs(p->out[k] - p->out[l]) +
			      fabs(p->out[k] - p->out[h]) + p->room[k] + p->room[h];

		x[k] = (struct candidate){ns * (0.02 + 10 * step), k};
	}
	qsort(x, (size_t)n, sizeof *x, by_score);
	for (int i = 0; i < n && c->n < n + room; i++) {
		int k = x[i].k;
		int64_t m = middle(w, old[k], k + 1 < n ? old[k + 1] : old[0] + lap, budget);

		if (m >= 0)
			c->moment[c->n++] = m;
	}
	tidy(c);
	for (int k = 0, j = n - 1; k < c->n; k++) {
		if (j + 1 < n && old[j + 1] == c->moment[k])
			j++;
		if (k == 0)
			j = old[0] == c->moment[0] ? 0 : n - 1;
		else if (j == n - 1 && old[0] <= c->moment[k] && (n == 1 || c->moment[k] < old[1]))
			j = 0;
		q.in[k] = p->in[j];
		q.out[k] = p->out[j];
		q.room[k] = old[j] == c->moment[k] ? p->room[j] : 0;
	}
	bound_prices_fini(p);
	*p = q;
	q = (struct bound_prices){0};
out:
	bound_prices_fini(&q);
	free(x);
	free(old);
	return err;
}

int bound_find(const struct bound_request *r, struct bound_result *out)
{
	struct bound_work w;
	struct bound_cuts c = {0};
	struct bound_prices p = {0};
	double ms, best = 0;
	int idle = 0;
	int err = bound_work_init(&w, r->sched);

	memset(out, 0, sizeof *out);
	if (err)
		return err;
	for (int32_t i = 0; i < w.n_ops; i++)
		if (w.uses[i] > (int64_t)r->budget)
			err = -E2BIG;
	c.moment = malloc((2 * (size_t)w.n_ops + 2 * MOST_CUTS + 2 * FIRST_CUTS) * sizeof *c.moment);
	if (!err && !c.moment)
		err = -ENOMEM;
	if (err)
		goto out;
	out->ns = w.before[w.n_ops];
	if (r->all) {
		for (c.n = 0; c.n < 2 * w.n_ops; c.n++)
			c.moment[c.n] = c.n;
	} else {
		cut_first(&c, &w);
	}
	err = bound_prices_init(&p, c.n);
	for (int round = 0; !err && round < 16; round++) {
		int before = c.n;
		uint64_t last = out->ns;

		err = bound_master_solve(r, &w, &c, &p, &ms);
		if (err)
			break;
		best = ms > best ? ms : best;
		out->ns = (uint64_t)(best * 1e6);
		out->by_round[round] = out->ns;
		out->rounds = (unsigned)round + 1;
		out->cuts = (unsigned)c.n;
		if (r->all || (r->rounds && round + 1 >= r->rounds) || c.n >= MOST_CUTS)
			break;
		idle = (double)(out->ns - last) <= SETTLED * (double)last ? idle + 1 : 0;
		if (round > 2 && idle > 1)
			break;
		err = refine(&c, &w, &p, r->budget);
		if (c.n == before)
			break;
	}
out:
	bound_prices_fini(&p);
	bound_work_fini(&w);
	free(c.moment);
	return err;
}
