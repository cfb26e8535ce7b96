/* SPDX-License-Identifier: Apache-2.0
 *
 * The program. The iteration is cut at some moments; segment k lies between cut k and the next, and its length T_k is
 * unknown. Each byte is evicted at some of the cuts in its gaps: it is copied out in a segment before the first of
 * them, if the host's copy is stale and was not renewed since, and copied in in the segment after the last of them. The
 * sequence of a byte's copies in an iteration is its day.
 *
 *     minimise the sum of T_k so that
 *         at each cut      bytes away >= bytes needed or in use there - budget
 *         in each segment  bytes in <= h2d T_k, bytes out <= d2h T_k, and with duplex < 1 both together
 *         in each segment  T_k >= the times of the ops that begin and end in it (equal, if it is one op)
 *         each byte        has a day
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
 * With `copies` bytes that the iteration writes are copied out in every gap in which they are evicted, and never
 * before it: the driver does not track which pages are dirty. That bounds what it carries out, while a plan counts no
 * copy where the host's copy is not stale. Bytes that are only read are advised read-mostly, and have none.
 *
 * With duplex below 1, of two copies at once the one booked first runs at full rate and the other at `duplex` of it: in
 * any time T, bytes in / h2d + bytes out / d2h <= (1 + duplex) T.
 *
 * Computing again (--recompute). A share of a gap may also be away without any copy, for that share of the time of
 * bound_again.c, in segments that the gap reaches into (others: or earlier). That is optimistic, and so still a bound:
 * in a plan the ops run as a whole, and what they read has to be there.
 *
 * What the solver is given is smaller: days of single bytes would be endless. How much of each gap is away is a column;
 * all of that together passes through three stores (to be copied out, away, back before its time), which know when
 * bytes may come in and must have gone, but not whose they are. Any choice of days is a solution of it, so it is a
 * bound already, lower by less than a per cent where both were solved. What it loses, it loses most with bytes of
 * several gaps: the largest groups of those have stores of their own in the last round.
 *
 * What is handed out is not the solver's objective but the value of its prices for the program of days, computed here:
 * for any prices >= 0 whose segments cost no more than 1 a ms,
 *
 *     sum of T's least value * (1 - cost) + sum of room prices * excess
 *         - sum over groups of bytes * worth of the best day
 *
 * is no more than the program's minimum (weak duality). So neither the solver's tolerances nor a solver that was
 * stopped make the bound wrong, only weaker. Finer cuts only add conditions.
 */
#include "bound/bound_master.h"

#include "bound/bound_lp.h"

#define OWN_STORES 6 /* times the common ones, at most */
#define NEVER 1e9 /* a prohibitive price */
#define SURE 1e-9 /* of a bound, for rounding errors */

/* Rows, a block of each kind, one for each cut or the segment after it. */
enum { ROW_ROOM, ROW_IN, ROW_OUT, ROW_BOTH, ROW_TIME, ROW_KINDS };

/* Chosen bytes pass from one store to the next: waiting for the copy out, evicted, returned early. Bytes copied out
 * before their gap begins wait, and are then kept, in separate stores. */
enum { WAIT, AWAY, BACK, EARLY, KEPT, STORES };

/* Recomputation, in ms: pending, and done early. */
enum { TO_DO, DONE, WORKS };

/* `n` stores from segment `from` on: one row each, by kind. Or the common ones, around the iteration. */
struct stores {
	int row, circle, kinds;
	int64_t from, n;
};

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
	int fine; /* as in struct bound_problem */
	struct stores works;
};

static int wrap(int64_t i, int n)
{
	return (int)(((i % n) + n) % n);
}

static int row(const struct master *m, int kind, int64_t i)
{
	return kind * m->n + wrap(i, m->n);
}

static int store_row(const struct stores *s, int kind, int64_t i)
{
	return s->row + kind * (int)s->n + (s->circle ? wrap(i, (int)s->n) : (int)(i - s->from));
}

/* All chosen bytes and all bytes copied out early, at cut 0: a circle of stores needs its initial content. */
static int row_all(const struct stores *s, int kind)
{
	return s->row + s->kinds * (int)s->n + (kind >= EARLY);
}

int bound_prices_init(struct bound_prices *p, int n)
{
	p->room = calloc(4 * (size_t)n + 1, sizeof *p->room);
	p->in = p->room ? p->room + n : NULL;
	p->out = p->room ? p->in + n : NULL;
	p->time = p->room ? p->out + n : NULL;
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
	int64_t length = 2ll * m->w->n_ops, from = c->moment[k];
	int64_t to = k + 1 < c->n ? c->moment[k + 1] : c->moment[0] + length;
	int64_t first = (from + 1) / 2, last = (to + 1) / 2; /* ops [first, last) */
	const uint64_t *before = m->w->before;
	uint64_t ns = 0;

	if (last > first)
		ns = last <= m->w->n_ops ? before[last] - before[first]
					 : before[m->w->n_ops] - before[first] + before[last - m->w->n_ops];
	m->least[k] = (double)ns / 1e6;
	m->fixed[k] = to == from + 1 && from % 2 == 0;
}

/* A store at cut k: its content then and after the segment. */
static void add_store(struct master *m, const struct stores *s, int kind, int64_t k)
{
	bound_lp_column(m->lp, 0, 0, BOUND_LP_FREE);
	bound_lp_put(m->lp, store_row(s, kind, k), 1);
	bound_lp_put(m->lp, store_row(s, kind, k - 1), -1);
	if (s->kinds == STORES && kind == AWAY && m->excess[wrap(k, m->n)] > 0)
		bound_lp_put(m->lp, row(m, ROW_ROOM, k), 1);
	if (s->circle && k == 0)
		bound_lp_put(m->lp, row_all(s, kind), 1);
}

/* A copy in segment k, from a store to the next. */
static void add_copy(struct master *m, const struct stores *s, int64_t k, int link, double rate, int from, int to)
{
	bound_lp_column(m->lp, 0, 0, BOUND_LP_FREE);
	bound_lp_put(m->lp, row(m, link, k), -1);
	if (m->joint)
		bound_lp_put(m->lp, row(m, ROW_BOTH, k), -1 / rate);
	bound_lp_put(m->lp, store_row(s, from, k), -1);
	bound_lp_put(m->lp, store_row(s, to, k), 1);
}

/* The store at cut k plus the inflow of segment k less its outflow is the store at cut k + 1. */
static void add_store_rows(struct master *m, struct stores *s)
{
	for (int64_t i = 0; i < s->kinds * s->n + 2 * s->circle; i++) {
		int r = bound_lp_row(m->lp, 0, 0);

		s->row = i ? s->row : r;
	}
}

static void add_stores(struct master *m, struct stores *s, int64_t from, int64_t n, int circle)
{
	*s = (struct stores){.circle = circle, .kinds = STORES, .from = from, .n = n};
	add_store_rows(m, s);
	for (int64_t k = from; k < from + n; k++) {
		for (int kind = 0; kind < STORES && (circle || k > from); kind++)
			add_store(m, s, kind, k);
		add_copy(m, s, k, ROW_OUT, m->d2h, WAIT, AWAY);
		add_copy(m, s, k, ROW_OUT, m->d2h, EARLY, KEPT);
		add_copy(m, s, k, ROW_IN, m->h2d, AWAY, BACK);
	}
}

/* Recomputation adds to the time between ops: a segment that is one op has none. */
static void add_works(struct master *m)
{
	struct stores *s = &m->works;

	*s = (struct stores){.circle = 1, .kinds = WORKS, .n = m->n};
	add_store_rows(m, s);
	for (int k = 0; k < m->n; k++) {
		add_store(m, s, TO_DO, k);
		add_store(m, s, DONE, k);
		if (m->fixed[k])
			continue;
		bound_lp_column(m->lp, 0, 0, BOUND_LP_FREE);
		bound_lp_put(m->lp, row(m, ROW_TIME, k), -1);
		bound_lp_put(m->lp, store_row(s, TO_DO, k), -1);
		bound_lp_put(m->lp, store_row(s, DONE, k), 1);
	}
}

static void add_times(struct master *m)
{
	for (int kind = 0; kind < ROW_KINDS; kind++)
		for (int k = 0; k < m->n; k++)
			bound_lp_row(m->lp,
				     kind == ROW_ROOM	? m->excess[k]
				     : kind == ROW_TIME ? m->least[k]
							: 0,
				     BOUND_LP_FREE);
	for (int k = 0; k < m->n; k++) {
		bound_lp_column(m->lp, 1, m->least[k], m->fixed[k] ? m->least[k] : BOUND_LP_FREE);
		bound_lp_put(m->lp, row(m, ROW_IN, k), m->h2d);
		bound_lp_put(m->lp, row(m, ROW_OUT, k), m->d2h);
		bound_lp_put(m->lp, row(m, ROW_TIME, k), 1);
		if (m->joint)
			bound_lp_put(m->lp, row(m, ROW_BOTH, k), m->both);
	}
}

/* Number of moments in [lo, hi] that are cut 0. */
static int iterations_in(const struct master *m, int64_t lo, int64_t hi)
{
	int64_t n = m->n, below = lo - 1;

	return (int)((hi - wrap(hi, m->n)) / n - (below - wrap(below, m->n)) / n);
}

/* A column of bytes that enter a store in segment `from` and must reach the last one by the end of segment `to`. */
static void add_share(struct master *m, const struct stores *s, int into, int64_t from, int last, int64_t to,
		      double size)
{
	int n = iterations_in(m, from + 1, to);

	bound_lp_put(m->lp, store_row(s, into, from), size);
	bound_lp_put(m->lp, store_row(s, last, to), -size);
	if (s->circle && n)
		bound_lp_put(m->lp, row_all(s, into), -n * size);
}

static void add_chosen(struct master *m, const struct stores *s, double most, int into, int64_t lo, int64_t hi)
{
	bound_lp_column(m->lp, 0, 0, most);
	add_share(m, s, into, lo - 1, BACK, hi, 1);
}

/* Bytes that never become stale: evicted without a copy in each gap independently. */
static void add_clean(struct master *m, const struct stores *s, const struct bound_group *x)
{
	const int32_t *key = m->groups.keys.at + x->key;

	for (uint32_t g = 0; g < x->gaps; g++)
		add_chosen(m, s, x->mib, AWAY, key[2 * g + 1], key[2 * g + 2]);
}

/* Bytes evicted throughout a gap and recomputed after any of its cuts. `full`: the row of evicted bytes. */
static void add_anew(struct master *m, const struct stores *s, const struct bound_group *x, int64_t lo, int64_t hi,
		     int full)
{
	int32_t from = m->groups.keys.at[x->key + 2 * x->gaps + 1];

	bound_lp_column(m->lp, 0, 0, x->mib);
	add_share(m, s, AWAY, lo - 1, AWAY, hi, 1);
	add_share(m, &m->works, TO_DO, lo, DONE, hi, x->own);
	if (from != INT32_MIN)
		add_share(m, &m->works, TO_DO, from, DONE, hi, x->others);
	bound_lp_put(m->lp, full, 1);
}

static void put_full(struct master *m, int full)
{
	if (full >= 0)
		bound_lp_put(m->lp, full, 1);
}

/* Bytes copied out once: before or in the first gap of their eviction. Gap g has the sum of bytes copied out by its
 * end; as many may be evicted in later gaps without a copy. */
static void add_stale(struct master *m, const struct stores *s, const struct bound_group *x)
{
	const int32_t *key = m->groups.keys.at + x->key;
	int sum = -1, last, full = -1;

	for (uint32_t g = 0; g < x->gaps; g++) {
		int64_t lo = key[2 * g + 1], hi = key[2 * g + 2];

		last = sum;
		sum = bound_lp_row(m->lp, 0, 0);
		if (x->own >= 0) {
			full = bound_lp_row(m->lp, 0, x->mib);
			add_anew(m, s, x, lo, hi, full);
		}
		if (g > 0) {
			int again = bound_lp_row(m->lp, 0, BOUND_LP_FREE);

			bound_lp_column(m->lp, 0, 0, x->mib);
			bound_lp_put(m->lp, last, 1);
			bound_lp_put(m->lp, sum, -1);
			bound_lp_put(m->lp, again, 1);
			add_chosen(m, s, x->mib, AWAY, lo, hi);
			bound_lp_put(m->lp, again, -1);
			put_full(m, full);
		}
		add_chosen(m, s, x->mib, WAIT, lo, hi);
		bound_lp_put(m->lp, sum, -1);
		put_full(m, full);
		if (lo - 2 < key[0])
			continue;
		bound_lp_column(m->lp, 0, 0, x->mib);
		add_share(m, s, EARLY, key[0], KEPT, lo - 2, 1);
		add_share(m, s, AWAY, lo - 1, BACK, hi, 1);
		bound_lp_put(m->lp, sum, -1);
		put_full(m, full);
	}
	bound_lp_column(m->lp, 0, 0, x->mib);
	bound_lp_put(m->lp, sum, 1);
}

/* Separate stores for groups that are `alone`. */
static void add_group(struct master *m, const struct stores *common, const struct bound_group *x, int alone)
{
	const int32_t *key = m->groups.keys.at + x->key;
	int64_t from = key[0] == INT32_MIN ? key[1] - 1 : key[0];
	struct stores own;
	const struct stores *s = common;

	if (alone) {
		add_stores(m, &own, from, key[2 * x->gaps] + 1 - from, 0);
		s = &own;
	}
	if (key[0] == INT32_MIN)
		add_clean(m, s, x);
	else
		add_stale(m, s, x);
}

struct candidate {
	double mib;
	size_t group;
};

static int by_mib(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->mib != y->mib)
		return x->mib < y->mib ? 1 : -1;
	return x->group < y->group ? -1 : x->group > y->group;
}

/* The largest groups with several gaps get separate stores, up to a limit of the program's size. In common stores the
 * copy of one group could count for another. */
static int add_groups(struct master *m, const struct stores *common)
{
	size_t n = m->groups.at.n, many = 0;
	struct candidate *c = malloc((n + 1) * sizeof *c);
	uint8_t *alone = calloc(n + 1, 1);
	int64_t left = (int64_t)OWN_STORES * m->n;
	int err;

	for (size_t g = 0; c && g < n; g++)
		if (m->groups.at.at[g].gaps > 1)
			c[many++] = (struct candidate){m->groups.at.at[g].mib, g};
	if (c)
		qsort(c, many, sizeof *c, by_mib);
	for (size_t i = 0; c && alone && m->fine && i < many && left > 0; i++) {
		const int32_t *key = m->groups.keys.at + m->groups.at.at[c[i].group].key;

		left -= key[2 * m->groups.at.at[c[i].group].gaps] + 1 - key[0];
		alone[c[i].group] = left > 0 && key[0] != INT32_MIN;
	}
	for (size_t g = 0; c && alone && g < n; g++)
		add_group(m, common, &m->groups.at.at[g], alone[g]);
	err = c && alone ? 0 : -ENOMEM;
	free(alone);
	free(c);
	return err;
}

/* Corrects the solver's prices to a valid proof; adds the price of both directions. */
static double take_prices(struct master *m, struct bound_prices *p)
{
	double sum = 0;

	for (int k = 0; k < m->n; k++) {
		double room = bound_lp_price(m->lp, row(m, ROW_ROOM, k)), in = bound_lp_price(m->lp, row(m, ROW_IN, k));
		double out = bound_lp_price(m->lp, row(m, ROW_OUT, k)), cost;
		double both = m->joint ? bound_lp_price(m->lp, row(m, ROW_BOTH, k)) : 0;

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
		p->time[k] = m->fixed[k] ? NEVER : 1 - cost;
		sum += m->least[k] * (1 - cost) + room * m->excess[k];
	}
	return sum;
}

static int init(struct master *m)
{
	struct stores common;

	if (bound_groups_init(&m->groups, m->w, m->c))
		return -ENOMEM;
	m->n = m->c->n;
	m->joint = m->r->duplex < 1;
	m->both = 1 + m->r->duplex;
	/* Copies take whole ns: allows for a slightly faster link. */
	m->h2d = m->r->h2d / 1048576e3 / 0.9999;
	m->d2h = m->r->d2h / 1048576e3 / 0.9999;
	m->excess = calloc((size_t)m->n + 1, sizeof *m->excess);
	m->least = calloc((size_t)m->n + 1, sizeof *m->least);
	m->fixed = calloc((size_t)m->n + 1, 1);
	m->lp = bound_lp_new();
	if (!m->excess || !m->least || !m->fixed || !m->lp)
		return -ENOMEM;
	for (int k = 0; k < m->n; k++) {
		int64_t over = m->w->need[m->c->moment[k] / 2] - (int64_t)m->r->budget;

		m->excess[k] = over > 0 ? (double)over / 1048576.0 : 0;
		find_least(m, k);
	}
	add_times(m);
	if (m->r->recompute)
		add_works(m);
	add_stores(m, &common, 0, m->n, 1);
	return add_groups(m, &common);
}

/* The bound that the solver's prices prove. */
static double prove(struct master *m, struct bound_prices *p)
{
	double proved = take_prices(m, p);

	for (size_t g = 0; g < m->groups.at.n; g++) {
		const struct bound_group *x = &m->groups.at.at[g];

		proved -= x->mib * bound_day_worth(&m->groups, x, m->n, p);
	}
	return proved * (1 - SURE);
}

int bound_master_solve(const struct bound_problem *b, double seconds, struct bound_prices *prices, double *bound_ms,
		       int *done)
{
	struct master m = {.r = b->r, .w = b->w, .c = b->c, .fine = b->fine};
	int err = init(&m);

	if (!err)
		err = bound_lp_solve(m.lp, seconds, done);
	if (!err)
		*bound_ms = prove(&m, prices);
	bound_groups_fini(&m.groups);
	bound_lp_free(m.lp);
	free(m.excess);
	free(m.least);
	free(m.fixed);
	return err;
}
