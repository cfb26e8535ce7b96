/* SPDX-License-Identifier: Apache-2.0
 *
 * Anchors: runs of kernels, of doubling lengths, that recur at regular distance. A rolling hash identifies runs; the
 * most regular one represents all runs of equal frequency.
 */
#include "report/period_state.h"

#include "base/hash.h"

#define LENGTH_MAX 256u
#define NEARLY 0.8
#define BASE 0x9e3779b97f4a7c15ull /* of the polynomial */

struct roll {
	uint64_t hash, top; /* top: BASE to the power of the length */
};

static uint64_t value(uint32_t name)
{
	return um_hash_u64(1, name);
}

static struct roll roll_begin(const struct um_sequence *s, size_t length)
{
	struct roll r = {0, 1};

	for (size_t i = 0; i < length; i++) {
		r.hash = r.hash * BASE + value(s->names[i]);
		r.top *= BASE;
	}
	return r;
}

/* Moves the hash from the run at `at` to the next one. */
static void roll_on(struct roll *r, const struct um_sequence *s, size_t at, size_t length)
{
	if (at + length < s->n)
		r->hash = r->hash * BASE + value(s->names[at + length]) - value(s->names[at]) * r->top;
}

int um_anchor_places(const struct um_sequence *s, const struct um_anchor *anchor, size_t **places, size_t *n)
{
	UM_VEC(size_t) found = {NULL, 0, 0};
	struct roll r = roll_begin(s, anchor->length);

	for (size_t i = 0; i + anchor->length <= s->n; i++) {
		if (r.hash == anchor->hash && um_vec_push(&found, i)) {
			um_vec_fini(&found);
			return -ENOMEM;
		}
		roll_on(&r, s, i, anchor->length);
	}
	*places = found.at;
	*n = found.n;
	return 0;
}

/* --- counted ------------------------------------------------------------------------------------------------------ */

struct slot {
	uint64_t hash;
	uint32_t count, first, last;
	double squares; /* of the distances */
};

struct table {
	struct slot *at;
	size_t size; /* a power of two */
};

static struct slot *slot_of(const struct table *t, uint64_t hash)
{
	size_t i = (size_t)um_hash_u64(0, hash) & (t->size - 1);

	while (t->at[i].count && t->at[i].hash != hash)
		i = (i + 1) & (t->size - 1);
	return &t->at[i];
}

static void count_runs(const struct table *t, const struct um_sequence *s, size_t length)
{
	struct roll r = roll_begin(s, length);

	memset(t->at, 0, t->size * sizeof *t->at);
	for (size_t i = 0; i + length <= s->n; i++) {
		struct slot *slot = slot_of(t, r.hash);
		double distance = (double)(i - slot->last);

		if (slot->count)
			slot->squares += distance * distance;
		else
			slot->first = (uint32_t)i;
		slot->hash = r.hash;
		slot->last = (uint32_t)i;
		slot->count++;
		roll_on(&r, s, i, length);
	}
}

/* --- chosen ------------------------------------------------------------------------------------------------------- */

static struct um_anchor anchor_of(const struct um_sequence *s, const struct slot *slot, size_t length)
{
	double mean = (double)(slot->last - slot->first) / (slot->count - 1);
	struct um_anchor a = {slot->hash, length, slot->count, slot->first, slot->last, 0, 0};

	a.uneven = slot->squares / (slot->count - 1) / (mean * mean) - 1;
	a.uneven = a.uneven > 0 ? a.uneven : 0;
	a.score = ((double)(slot->last - slot->first) + mean) / (double)s->n / (1 + a.uneven);
	return a;
}

/* Keeps the best one of each count. Their number. */
static int keep(struct um_anchor anchors[UM_ANCHORS_MAX], int n, const struct um_anchor *a)
{
	int worst = 0;

	for (int i = 0; i < n; i++) {
		if (anchors[i].count == a->count) {
			if (a->score > anchors[i].score)
				anchors[i] = *a;
			return n;
		}
		if (anchors[i].score < anchors[worst].score)
			worst = i;
	}
	if (n < UM_ANCHORS_MAX)
		anchors[n++] = *a;
	else if (a->score > anchors[worst].score)
		anchors[worst] = *a;
	return n;
}

/* Of those nearly as regular as the best, the first: the first iteration usually differs from the others towards its
 * end, so an anchor there would not show its begin. */
static void come_first(const struct um_anchor *best, struct um_anchor *first, int n, const struct um_anchor *a)
{
	for (int i = 0; i < n; i++)
		if (a->count == best[i].count && a->score >= NEARLY * best[i].score &&
		    (!first[i].count || a->first < first[i].first ||
		     (a->first == first[i].first && a->length < first[i].length)))
			first[i] = *a;
}

/* Searches runs of every length: keeps the best or, if `first` is not NULL, finds these. The number kept. */
static int look(const struct table *t, const struct um_sequence *s, struct um_anchor *best, struct um_anchor *first,
		int n)
{
	for (size_t length = 1; length <= LENGTH_MAX && length <= s->n / UM_PERIOD_LEAST; length *= 2) {
		count_runs(t, s, length);
		for (size_t i = 0; i < t->size; i++) {
			const struct slot *slot = &t->at[i];
			struct um_anchor a;

			if (slot->count < UM_PERIOD_LEAST)
				continue;
			/* A single repeated kernel is an iteration only if `alone` allows it. */
			if (slot->last - slot->first < 2 * (slot->count - 1) && !s->alone[s->names[slot->first]])
				continue;
			a = anchor_of(s, slot, length);
			if (first)
				come_first(best, first, n, &a);
			else
				n = keep(best, n, &a);
		}
	}
	return n;
}

int um_anchors_find(const struct um_sequence *s, struct um_anchor anchors[UM_ANCHORS_MAX])
{
	struct um_anchor best[UM_ANCHORS_MAX];
	struct table t = {NULL, 16};
	int n;

	while (t.size < 2 * s->n)
		t.size *= 2;
	t.at = malloc(t.size * sizeof *t.at);
	if (!t.at)
		return -ENOMEM;
	n = look(&t, s, best, NULL, 0);
	memset(anchors, 0, UM_ANCHORS_MAX * sizeof *anchors);
	look(&t, s, best, anchors, n);
	free(t.at);
	return n;
}
