/* SPDX-License-Identifier: Apache-2.0
 *
 * The program. The iteration is cut at some moments; segment k is what lies between cut k and the next, its length T_k
 * is unknown. Each byte is away at some of the cuts in its gaps; for that it is copied out in a segment before the
 * first of them, if the host's copy is stale and for the first time since it became so, and copied in in the segment
 * behind the last of them. All of what a byte does in an iteration is its day; how many bytes have which day is what
 * the program chooses.
 *
 *     minimise the sum of T_k so that
 *         at each cut      bytes away >= bytes needed or in use there - budget
 *         in each segment  bytes in <= h2d T_k, bytes out <= d2h T_k, and with duplex < 1 both together
 *         in each segment  T_k >= the times of the ops that begin and end in it (equal, if it is one op)
 *         for each group   its days are as many as its bytes
 *
 * Why this is a bound. Take any plan that um_plan_check accepts, in its steady state, and its times as T_k. Ops run one
 * after the other and each for its own time, which gives the third line. A byte in a gap (written or on the host
 * before, read behind) must be resident or have left and be copied in again before the gap ends, by one copy engine
 * each way that is no faster than the link: the second line. It frees its room only when all of the copy out is done,
 * and takes it again as soon as the copy in begins; the program counts it as away from the first cut behind its own
 * share of the copy out to the last before its share of the copy in, which is longer. It may also copy out at any time
 * since the write although the byte stays. So the plan's days satisfy the first line, and the program can only be
 * faster. A steady state is a circle: what copies cross the iteration's end are counted where they run.
 *
 * With duplex below 1, of two copies at once the one booked first runs at full rate and the other at `duplex` of it: in
 * any time T, bytes in / h2d + bytes out / d2h <= (1 + duplex) T.
 *
 * Days are added as they are found to pay (column generation). What is handed out is not the solver's objective but
 * the value of its prices, computed here: for any prices >= 0 whose segments cost no more than 1 a ms,
 *
 *     sum of T's least value * (1 - cost) + sum of room prices * excess
 *         - sum over groups of bytes * worth of the best day
 *
 * is no more than the program's minimum (weak duality). So neither the solver's tolerances nor an early stop make the
 * bound wrong, only weaker. Finer cuts only add conditions.
 */
#include "bound_master.h"

#include "bound_lp.h"

#define MOST_PASSES 60
#define CLOSE 2e-5 /* stop when what is proved is as near to the program's minimum */
#define SURE 1e-9 /* of a bound, for what doubles lose */

struct master {
	const struct bound_request *r;
	const struct bound_work *w;
	const struct bound_cuts *c;
	struct bound_groups groups;
	struct bound_lp *lp;
	int n, joint; /* cuts; is there a row for both directions? */
	double h2d, d2h, both; /* MiB/ms; both: 1 + duplex */
	double *excess; /* by cut: MiB over the budget, or 0 */
	double *least; /* by segment: ms */
	uint8_t *fixed; /* by segment: it is one op */
	double *value; /* by row: scratch, all 0 */
	double *price; /* by row */
	double *mark; /* by group: the worth of a day that the program knows of */
	struct bound_lp_entry *entry;
};

enum { ROW_ROOM, ROW_IN, ROW_OUT, ROW_BOTH };

static int row(const struct master *m, int kind, int32_t i)
{
	return kind * m->n + ((i % m->n) + m->n) % m->n;
}

static int group_row(const struct master *m, size_t g)
{
	return (3 + m->joint) * m->n + (int)g;
}

int bound_prices_init(struct bound_prices *p, int n)
{
	p->room = calloc(3 * (size_t)n + 1, sizeof *p->room);
	p->in = p->room ? p->room + n : NULL;
	p->out = p->room ? p->in + n : NULL;
	return p->room ? 0 : -ENOMEM;
}

void bound_prices_fini(struct bound_prices *p)
{
	free(p->room);
	memset(p, 0, sizeof *p);
}

/* The ops that begin and end in segment k. */
static void find_least(struct master *m, int k)
{
	const struct bound_cuts *c = m->c;
	int64_t lap = 2ll * m->w->n_ops, from = c->moment[k];
	int64_t to = k + 1 < c->n ? c->moment[k + 1] : c->moment[0] + lap;
	int64_t first = (from + 1) / 2, last = (to + 1) / 2; /* ops [first, last) */
	const uint64_t *before = m->w->before;
	uint64_t ns = 0;

	if (last > first)
		ns = last <= m->w->n_ops ? before[last] - before[first]
		                         : before[m->w->n_ops] - before[first] + before[last - m->w->n_ops];
	m->least[k] = (double)ns / 1e6;
	m->fixed[k] = to == from + 1 && from % 2 == 0;
}

static int add_times(struct master *m)
{
	for (int k = 0; k < m->n; k++) {
		struct bound_lp_entry e[3] = {{row(m, ROW_IN, k), m->h2d}, {row(m, ROW_OUT, k), m->d2h}};
		double high = m->fixed[k] ? m->least[k] : -1;

		if (m->joint)
			e[2] = (struct bound_lp_entry){row(m, ROW_BOTH, k), m->both};
		if (bound_lp_add(m->lp, 1, m->least[k], high, 2 + m->joint, e))
			return -ENOMEM;
	}
	return 0;
}

static void put(struct master *m, int *n, int at, double value)
{
	if (m->value[at] == 0)
		m->entry[(*n)++].row = at;
	m->value[at] += value;
}

/* A column for a day of group g. */
static int add_day(struct master *m, size_t g, const struct bound_day *d)
{
	int n = 0;

	for (uint32_t i = 0; i < d->n; i++) {
		for (int32_t k = d->away[i].from; k <= d->away[i].to; k++)
			if (m->excess[row(m, ROW_ROOM, k)] > 0)
				put(m, &n, row(m, ROW_ROOM, k), 1);
		put(m, &n, row(m, ROW_IN, d->away[i].to), -1);
		if (m->joint)
			put(m, &n, row(m, ROW_BOTH, d->away[i].to), -1 / m->h2d);
	}
	if (d->out != INT32_MIN) {
		put(m, &n, row(m, ROW_OUT, d->out), -1);
		if (m->joint)
			put(m, &n, row(m, ROW_BOTH, d->out), -1 / m->d2h);
	}
	put(m, &n, group_row(m, g), -1);
	for (int i = 0; i < n; i++) {
		m->entry[i].value = m->value[m->entry[i].row];
		m->value[m->entry[i].row] = 0;
	}
	return bound_lp_add(m->lp, 0, 0, -1, n, m->entry);
}

/* Days that make the program solvable: everything away all the time. And the best ones at the prices given. */
static int add_first_days(struct master *m, const struct bound_prices *p)
{
	for (size_t g = 0; g < m->groups.at.n; g++) {
		const struct bound_group *x = &m->groups.at.at[g];
		const int32_t *key = m->groups.keys.at + x->key;
		struct bound_day d = {.out = key[0]};
		int err;

		for (uint32_t i = 0; i < x->gaps && d.n < sizeof d.away / sizeof *d.away; i++, d.n++) {
			d.away[i].from = key[2 * i + 1];
			d.away[i].to = key[2 * i + 2];
		}
		err = add_day(m, g, &d);
		if (!err) {
			bound_day_find(&d, key, x->gaps, m->n, p);
			if (d.worth > 0)
				err = add_day(m, g, &d);
		}
		if (err)
			return err;
	}
	return 0;
}

/* The solver's prices, made such that they prove something; what copies cost where both directions count. */
static void take_prices(struct master *m, struct bound_prices *p, double *sum)
{
	*sum = 0;
	for (int k = 0; k < m->n; k++) {
		double room = m->price[row(m, ROW_ROOM, k)], in = m->price[row(m, ROW_IN, k)];
		double out = m->price[row(m, ROW_OUT, k)], both = m->joint ? m->price[row(m, ROW_BOTH, k)] : 0, cost;

		room = room > 0 && m->excess[k] > 0 ? room : 0;
		in = in > 0 ? in : 0;
		out = out > 0 ? out : 0;
		both = both > 0 ? both : 0;
		cost = in * m->h2d + out * m->d2h + both * m->both;
		if (cost > 1 && !m->fixed[k]) {
			in /= cost;
			out /= cost;
			both /= cost;
			cost = 1;
		}
		p->room[k] = room;
		p->in[k] = in + both / m->h2d;
		p->out[k] = out + both / m->d2h;
		*sum += m->least[k] * (1 - cost) + room * m->excess[k];
	}
}

/* Adds days that pay. *added: how many; returns what the prices prove, in ms. */
static int improve(struct master *m, struct bound_prices *p, double *proved, int *added)
{
	*added = 0;
	take_prices(m, p, proved);
	for (size_t g = 0; g < m->groups.at.n; g++) {
		const struct bound_group *x = &m->groups.at.at[g];
		struct bound_day d;

		bound_day_find(&d, m->groups.keys.at + x->key, x->gaps, m->n, p);
		*proved -= d.worth * x->mib;
		/* The group's price is the worth of the best day that the program has. */
		if (d.worth > m->price[group_row(m, g)] + 1e-9 * (1 + d.worth)) {
			if (add_day(m, g, &d))
				return -ENOMEM;
			++*added;
		}
	}
	return 0;
}

static int init(struct master *m)
{
	int rows;
	double most = 0;

	if (bound_groups_init(&m->groups, m->w, m->c))
		return -ENOMEM;
	m->n = m->c->n;
	m->joint = m->r->duplex < 1;
	m->both = 1 + m->r->duplex;
	/* Each copy takes a whole number of ns: as if the link were a little faster. */
	m->h2d = m->r->h2d / 1048576e3 / 0.9999;
	m->d2h = m->r->d2h / 1048576e3 / 0.9999;
	rows = group_row(m, m->groups.at.n);
	m->excess = calloc((size_t)m->n + 1, sizeof *m->excess);
	m->least = calloc((size_t)m->n + 1, sizeof *m->least);
	m->fixed = calloc((size_t)m->n + 1, 1);
	m->value = calloc((size_t)rows + 1, sizeof *m->value);
	m->price = calloc((size_t)rows + 1, sizeof *m->price);
	m->entry = malloc(((size_t)rows + 1) * sizeof *m->entry);
	if (!m->excess || !m->least || !m->fixed || !m->value || !m->price || !m->entry)
		return -ENOMEM;
	for (int k = 0; k < m->n; k++) {
		int64_t over = m->w->need[m->c->moment[k] / 2] - (int64_t)m->r->budget;

		m->excess[k] = over > 0 ? (double)over / 1048576.0 : 0;
		most = m->excess[k] > most ? m->excess[k] : most;
		find_least(m, k);
		m->price[k] = m->excess[k];
	}
	for (size_t g = 0; g < m->groups.at.n; g++)
		m->price[group_row(m, g)] = -m->groups.at.at[g].mib;
	m->lp = bound_lp_new(rows, m->price);
	return m->lp ? add_times(m) : -ENOMEM;
}

static void fini(struct master *m)
{
	bound_groups_fini(&m->groups);
	bound_lp_free(m->lp);
	free(m->excess);
	free(m->least);
	free(m->fixed);
	free(m->value);
	free(m->price);
	free(m->entry);
}

int bound_master_solve(const struct bound_request *r, const struct bound_work *w, const struct bound_cuts *c,
                       struct bound_prices *prices, double *bound_ms)
{
	struct master m = {.r = r, .w = w, .c = c};
	struct bound_prices p = {0};
	double best = (double)w->before[w->n_ops] / 1e6, proved = 0, objective = 0;
	int err = init(&m), added = 1;

	if (!err)
		err = bound_prices_init(&p, m.n);
	if (!err)
		err = add_first_days(&m, prices);
	for (int pass = 0; !err && added && pass < MOST_PASSES; pass++) {
		err = bound_lp_solve(m.lp, &objective, m.price);
		if (!err)
			err = improve(&m, &p, &proved, &added);
		if (!err && proved * (1 - SURE) >= best) {
			best = proved * (1 - SURE);
			memcpy(prices->room, p.room, 3 * (size_t)m.n * sizeof *p.room);
		}
		if (!err && objective - best <= CLOSE * objective)
			break;
	}
	if (!err)
		*bound_ms = best;
	bound_prices_fini(&p);
	fini(&m);
	return err;
}
