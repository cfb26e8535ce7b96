/* SPDX-License-Identifier: Apache-2.0
 *
 * Tries anchors one by one (period_anchors.c), measures the units between them, chooses an anchor, and cuts the
 * sequence (period_cut.c).
 */
#include "report/period_state.h"

#include "base/hash.h"

#define ALIKE 0.9 /* share of common kernels of similar units */
#define MOST 0.5 /* smallest share of time in iterations, from first to last */
#define SOME 0.3 /* smallest share of time in similar ones */
#define REACH 0.25 /* smallest share of all kernels, or of their time */
#define REGULAR 0.6 /* share of the best score */
#define NEARLY_ALL 0.8 /* share of a repetition that a longer one need not explain */
#define EXACT 0.9 /* share of a longer unit that repeats */
#define SAME_LEVEL 1.3 /* largest ratio of lengths of the same unit with other anchors */
#define SAME_NS 0.7 /* share of the best one's time */
#define SHORT 32 /* kernels; shorter units may be layers or steps of a loop */

static const char *const trusts[] = {"low", "medium", "high"};

const char *um_period_trust_name(enum um_period_trust trust)
{
	return trusts[trust];
}

/* --- measured ----------------------------------------------------------------------------------------------------- */

struct span {
	uint64_t hash;
	size_t from, length;
};

static int by_kind(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->length != y->length)
		return x->length < y->length ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* The most frequent unit between anchors; if all differ, the one of median length. */
static void usual(struct um_level *l, struct span *spans, size_t n)
{
	size_t best = 0, at = n / 2, same;

	qsort(spans, n, sizeof *spans, by_kind);
	for (size_t i = 0; i < n; i += same) {
		for (same = 1; i + same < n && spans[i + same].length == spans[i].length &&
			       spans[i + same].hash == spans[i].hash;)
			same++;
		if (same > 1 && same * spans[i].length > best) {
			best = same * spans[i].length;
			at = i;
		}
	}
	l->unit = spans[at].length;
	l->sample = spans[at].from;
}

static double time_of(const struct um_sequence *s, size_t from, size_t to)
{
	double ns = 0;

	for (size_t i = from; i < to; i++)
		ns += (double)s->ns[i];
	return ns;
}

static void weigh(struct um_level *l, const struct um_sequence *s, size_t from, size_t to)
{
	size_t alike = um_span_alike(s, l->sample, l->unit, from, to), length = to - from;
	double share = (double)alike / (double)l->unit, ns = time_of(s, from, to);

	if (share < UM_PERIOD_SIMILAR) {
		l->partly += (double)alike >= ALIKE * (double)length ? ns : 0;
		return;
	}
	if (length > l->unit)
		ns *= (double)l->unit / (double)length;
	l->repeats++;
	l->ns += ns;
	/* The last unit may be incomplete. */
	if (share >= ALIKE || (to == s->n && (double)alike >= ALIKE * (double)length)) {
		l->alike++;
		l->held += ns;
	}
}

static void weigh_all(struct um_level *l, const struct um_sequence *s, const size_t *at, size_t n)
{
	size_t end = s->n - at[n - 1] > l->unit ? at[n - 1] + l->unit : s->n;
	double all = time_of(s, 0, s->n), region = time_of(s, at[0], end), kernels = (double)(end - at[0]);

	for (size_t i = 0; i + 1 < n; i++)
		weigh(l, s, at[i], at[i + 1]);
	weigh(l, s, at[n - 1], end);
	if (region <= 0)
		return;
	l->covered = l->ns / region;
	l->held /= region;
	l->partly /= region;
	l->reach = region / all > kernels / (double)s->n ? region / all : kernels / (double)s->n;
}

/* Groups the units between anchors by frequency. 0 or -ENOMEM. */
static int measure(struct um_level *l, const struct um_sequence *s)
{
	size_t *at = NULL, n = 0;
	struct span *spans = NULL;
	int err = um_anchor_places(s, &l->anchor, &at, &n);

	if (!err && n >= UM_PERIOD_LEAST)
		spans = malloc(n * sizeof *spans);
	if (!spans) {
		free(at);
		return err || n < UM_PERIOD_LEAST ? err : -ENOMEM;
	}
	for (size_t i = 0; i + 1 < n; i++) {
		spans[i] = (struct span){0, at[i], at[i + 1] - at[i]};
		for (size_t k = at[i]; k < at[i + 1]; k++)
			spans[i].hash = um_hash_fold(spans[i].hash, s->names[k]);
	}
	usual(l, spans, n - 1);
	weigh_all(l, s, at, n);
	free(spans);
	free(at);
	return 0;
}

/* --- chosen ------------------------------------------------------------------------------------------------------- */

static int by_unit(const void *a, const void *b)
{
	const struct um_level *x = a, *y = b;

	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->anchor.first < y->anchor.first ? -1 : x->anchor.first > y->anchor.first;
}

/* Is the shorter one only a part of each of the longer? */
static int once_each(const struct um_level *longer, const struct um_level *shorter)
{
	return 2 * longer->repeats > shorter->repeats;
}

/* Is the longer one the iteration, and the shorter one a loop in it? An occasional evaluation has the iteration's own
 * kernels; code around the layers of a network has others. */
static int surrounds(const struct um_level *longer, const struct um_level *shorter)
{
	double explained = shorter->held + shorter->partly;

	if (once_each(longer, shorter))
		return longer->covered > shorter->covered;
	if (longer->covered < EXACT || longer->covered <= explained)
		return 0;
	return explained < NEARLY_ALL || (shorter->unit < SHORT && longer->held > explained);
}

/* Keeps the candidates for iterations, by length. Their number. */
static size_t eligible(struct um_level *levels, size_t n)
{
	double best = 0;
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		if (levels[i].repeats >= UM_PERIOD_LEAST && levels[i].alike > 1 && levels[i].covered >= MOST &&
		    levels[i].held >= SOME && levels[i].reach >= REACH)
			levels[left++] = levels[i];
	for (size_t i = 0; i < left; i++)
		best = levels[i].anchor.score > best ? levels[i].anchor.score : best;
	n = left;
	left = 0;
	for (size_t i = 0; i < n; i++)
		if (levels[i].anchor.score >= REGULAR * best)
			levels[left++] = levels[i];
	qsort(levels, left, sizeof *levels, by_unit);
	return left;
}

static int same_level(const struct um_level *a, const struct um_level *b)
{
	double x = (double)a->unit, y = (double)b->unit;

	return x < SAME_LEVEL * y && y < SAME_LEVEL * x;
}

/* The confidence level; `other`: another repetition. */
static struct um_level choose(const struct um_level *levels, size_t n, size_t *other)
{
	struct um_level best = levels[0];

	*other = 0;
	for (size_t i = 1; i < n; i++) {
		const struct um_level *l = &levels[i];

		if (same_level(l, &best)) {
			best = l->ns > best.ns ? *l : best;
		} else if (surrounds(l, &best)) {
			*other = once_each(l, &best) || best.held + best.partly < NEARLY_ALL ? 0 : best.unit;
			best = *l;
		} else if (l->held >= EXACT && !*other) {
			*other = l->unit;
		}
	}
	return best;
}

static int try_all(const struct um_sequence *s, struct um_level levels[UM_ANCHORS_MAX])
{
	struct um_anchor anchors[UM_ANCHORS_MAX];
	int n = um_anchors_find(s, anchors), err = n < 0 ? n : 0;

	for (int i = 0; i < n && !err; i++) {
		levels[i] = (struct um_level){.anchor = anchors[i]};
		err = measure(&levels[i], s);
	}
	return err ? err : n;
}

/* --- cut ---------------------------------------------------------------------------------------------------------- */

static enum um_period_trust trust_of(const struct um_period *p, double covered, int sure)
{
	if (covered < (MOST + NEARLY_ALL) / 2)
		return UM_TRUST_LOW;
	return sure && !p->other && covered >= NEARLY_ALL && p->spans.n > UM_PERIOD_LEAST ? UM_TRUST_HIGH
											  : UM_TRUST_MEDIUM;
}

/* Confidence in the begin of iterations. The sequence probably ends with one. */
static int knowledge(const struct um_period *p, const struct um_sequence *s, int sure)
{
	const struct um_period_span *last = &p->spans.at[p->spans.n - 1];

	return 2 * sure + (last->to == s->n && last->whole);
}

/* Takes a better result over. */
static void take(struct um_period *p, int *known, struct um_period *cut, int cut_known)
{
	if (!p->spans.n || cut_known > *known || (cut_known == *known && cut->covered > p->covered)) {
		um_vec_fini(&p->spans);
		*p = *cut;
		*known = cut_known;
	} else {
		um_vec_fini(&cut->spans);
	}
}

/* Tries the anchors of a level: the best ones show the begin of iterations. 0 or -ENOMEM. */
static int cut_all(struct um_period *p, const struct um_sequence *s, const struct um_level *levels, size_t n,
		   size_t skipped)
{
	size_t other;
	struct um_level best = choose(levels, n, &other), l;
	double all = time_of(s, 0, s->n), covered;
	int known = 0;

	for (size_t i = 0; i < n; i++) {
		struct um_period cut = {.kernels = levels[i].unit, .other = other};
		int sure, err;

		if (!same_level(&levels[i], &best) || levels[i].ns < SAME_NS * best.ns)
			continue;
		l = levels[i];
		l.sample += skipped;
		err = um_period_cut(&cut, s, &l, &sure);
		if (err) {
			um_vec_fini(&cut.spans);
			return err;
		}
		for (size_t k = 0; k < cut.spans.n; k++)
			cut.covered += time_of(s, cut.spans.at[k].from, cut.spans.at[k].to) / all;
		if (cut.spans.n >= UM_PERIOD_LEAST)
			take(p, &known, &cut, knowledge(&cut, s, sure));
		else
			um_vec_fini(&cut.spans);
	}
	covered = p->spans.n ? time_of(s, p->spans.at[0].from, p->spans.at[p->spans.n - 1].to) : 0;
	p->trust = trust_of(p, covered > 0 ? p->covered * all / covered : 0, known >= 2);
	return 0;
}

int um_period_find(struct um_period *p, const uint32_t *names, const float *ns, size_t n, const unsigned char *alone,
		   size_t n_names)
{
	struct um_sequence all = {names, ns, n, alone, calloc(n_names + 1, sizeof(uint32_t))}, some = all;
	struct um_level levels[UM_ANCHORS_MAX];
	size_t skipped = n > UM_PERIOD_WINDOW ? (n - UM_PERIOD_WINDOW) / 2 : 0;
	int got = all.count ? 0 : -ENOMEM;

	memset(p, 0, sizeof *p);
	some.names += skipped;
	some.ns += skipped;
	some.n -= 2 * skipped;
	if (!got)
		got = try_all(&some, levels);
	if (got > 0)
		got = (int)eligible(levels, (size_t)got);
	if (got > 0)
		got = cut_all(p, &all, levels, (size_t)got, skipped);
	free(all.count);
	return got < 0 ? got : 0;
}

void um_period_fini(struct um_period *p)
{
	um_vec_fini(&p->spans);
}
