/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/referee.h"

#include <string.h>

#define COLD 2 /* iterations of the program that are no samples: it allocates memory on the host, too */
#define AFTER 4 /* iterations after a trial that count as part of its cost */
#define LATE 256 /* iterations without a measurement, after which a trial ends */
#define HOPELESS 2 /* usual times; a first iteration without hints that takes longer ends their trial */
#define UNKNOWN_COST 2 /* iterations that a trial is expected to cost */

/* Iterations of one kind in a row that are no samples: the device still has what the kind before left there. */
static const uint32_t warm_up[] = {[UM_REFEREE_NONE] = 1, [UM_REFEREE_PREDICTED] = 1, [UM_REFEREE_PLANNED] = 2};

void um_referee_init(struct um_referee *r, int on)
{
	memset(r, 0, sizeof *r);
	r->on = on;
	r->allowed = UM_REFEREE_PLANNED;
	r->had = UM_REFEREE_KINDS;
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

static uint64_t median_of(const struct um_referee_key *k, enum um_referee_hints kind)
{
	return um_time_samples_median(&k->arms[kind].samples);
}

static void forget(struct um_referee_arm *a)
{
	a->samples.n = 0;
	a->level_ns = 0;
}

/* Is kind `to` to take the place of kind `from`? Fewer hints have to be certainly faster; more need not be slower. */
static int is_better(const struct um_referee_key *k, enum um_referee_hints to, enum um_referee_hints from)
{
	if (to < from)
		return um_time_samples_less(&k->arms[to].samples, &k->arms[from].samples, UM_REFEREE_MARGIN);
	return k->arms[to].samples.n &&
	       um_time_samples_excess(&k->arms[from].samples, &k->arms[to].samples, UM_REFEREE_MARGIN) <= 0;
}

/* The usual time of an iteration; `ns`: if it is not known. */
static uint64_t usual(const struct um_referee_key *k, uint64_t ns)
{
	return k && k->has < UM_REFEREE_KINDS && k->arms[k->has].samples.n ? median_of(k, k->has) : ns;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

static struct um_referee_key *find(struct um_referee *r, uint64_t key)
{
	for (int i = 0; i < UM_REFEREE_KEYS; i++)
		if (r->keys[i].key == key)
			return &r->keys[i];
	return NULL;
}

/* 0 is that of a free entry. */
static uint64_t key_of(uint64_t signature)
{
	return signature ? signature : 1;
}

struct um_referee_key *um_referee_meet(struct um_referee *r, uint64_t signature)
{
	uint64_t key = key_of(signature);
	struct um_referee_key *k = find(r, key);

	if (!k) {
		k = r->keys;
		for (int i = 1; i < UM_REFEREE_KEYS; i++)
			if (r->keys[i].met < k->met)
				k = &r->keys[i];
		memset(k, 0, sizeof *k);
		k->key = key;
		k->allowed = UM_REFEREE_PLANNED;
		k->has = UM_REFEREE_KINDS;
		for (int i = 0; i < UM_REFEREE_KINDS; i++)
			k->arms[i].pause = UM_REFEREE_PAUSE;
	}
	k->met = r->n + 1;
	return k;
}

struct um_referee_key *um_referee_add(struct um_referee *r, struct um_referee_key *k, uint64_t fault_ns, size_t n_ops,
				      double *scale)
{
	struct um_referee_key *common;

	k->fault_ns = fault_ns ? fault_ns : 1;
	common = um_referee_meet(r, ~(uint64_t)n_ops);
	if (!common->fault_ns)
		common->fault_ns = k->fault_ns;
	*scale = (double)common->fault_ns / (double)k->fault_ns;
	return common;
}

void um_referee_forget_plan(struct um_referee *r)
{
	for (int i = 0; i < UM_REFEREE_KEYS; i++) {
		forget(&r->keys[i].arms[UM_REFEREE_PLANNED]);
		r->keys[i].arms[UM_REFEREE_PLANNED].wait = 0;
	}
}

/* --- trials ------------------------------------------------------------------------------------------------------- */

/* The kind of hints that a trial of this one probably shows. */
static enum um_referee_hints expected(const struct um_referee_key *k, enum um_referee_hints allowed)
{
	if (allowed == UM_REFEREE_PLANNED && !k->arms[allowed].samples.n)
		return UM_REFEREE_PREDICTED;
	return allowed;
}

static uint32_t length(enum um_referee_hints allowed)
{
	return warm_up[allowed] + 2;
}

/* What a trial probably costs. */
static uint64_t estimate(const struct um_referee_key *k, enum um_referee_hints allowed, uint64_t base_ns)
{
	uint64_t ns = median_of(k, expected(k, allowed));

	if (k->arms[allowed].tried)
		return k->arms[allowed].cost_ns;
	if (ns)
		return ns < base_ns ? 0 : length(allowed) * (ns - base_ns) + UNKNOWN_COST * base_ns;
	if (allowed == UM_REFEREE_NONE)
		return k->fault_ns + UNKNOWN_COST * base_ns;
	return UNKNOWN_COST * base_ns;
}

static int can_pay(const struct um_referee *r, const struct um_referee_key *k, enum um_referee_hints allowed)
{
	int64_t left = (int64_t)(r->total_ns / UM_REFEREE_PART) - r->spent_ns;

	return left > 0 && estimate(k, allowed, median_of(k, k->has)) <= (uint64_t)left;
}

/* May another kind of hints be tried in place of the usual one? */
static int is_candidate(const struct um_referee_key *k, enum um_referee_hints allowed)
{
	if (allowed == k->allowed || allowed == k->has)
		return 0;
	if (k->allowed == UM_REFEREE_NONE)
		return allowed == UM_REFEREE_PLANNED;
	return allowed != UM_REFEREE_PREDICTED || k->has == UM_REFEREE_PLANNED;
}

static void begin_trial(struct um_referee *r, struct um_referee_key *k, enum um_referee_hints allowed, int probes)
{
	r->trial = (struct um_referee_trial){.key = k->key,
					     .allowed = allowed,
					     .left = probes ? 1 : length(allowed),
					     .after = AFTER,
					     .probes = probes,
					     .base_ns = median_of(k, k->has)};
	r->trials++;
	if (k->allowed == UM_REFEREE_NONE) { /* their samples are old */
		forget(&k->arms[UM_REFEREE_PREDICTED]);
		forget(&k->arms[UM_REFEREE_PLANNED]);
	}
}

/* Begins a trial if one is due and not too expensive. */
static void consider(struct um_referee *r, struct um_referee_key *k)
{
	if (r->trial.key || k->has == UM_REFEREE_KINDS || k->arms[k->has].samples.n < UM_TIME_SAMPLES)
		return;
	for (int i = UM_REFEREE_PLANNED; i >= 0; i--) {
		enum um_referee_hints allowed = (enum um_referee_hints)i;
		struct um_referee_arm *a = &k->arms[i];

		if (!is_candidate(k, allowed))
			continue;
		a->wait -= a->wait != 0;
		if (!a->wait && !r->trial.key && can_pay(r, k, allowed))
			begin_trial(r, k, allowed, allowed == UM_REFEREE_NONE && !k->hopeful);
	}
}

/* The part of a trial that the iteration belongs to. */
static int count_trial(struct um_referee_trial *t)
{
	if (!t->key || (!t->left && !t->after))
		return 0;
	if (t->left)
		t->left--;
	else
		t->after--;
	t->unmeasured++;
	return 1;
}

static void end_trial(struct um_referee *r, struct um_referee_key *k);

struct um_referee_mark um_referee_end(struct um_referee *r, struct um_referee_key *k, double scale,
				      enum um_referee_hints had)
{
	struct um_referee_mark m = {.key = k->key, .had = had, .scale = scale};
	struct um_referee_trial *t = &r->trial;

	r->n++;
	r->in_a_row = had == r->had ? r->in_a_row + 1 : 0;
	r->had = had;
	m.settled = had != UM_REFEREE_KINDS && r->in_a_row >= warm_up[had] && r->n > COLD;
	m.trial = count_trial(t);
	if (m.settled && !m.trial && had <= k->allowed)
		k->has = had;
	if (t->key && !t->left && !t->after && ++t->late > LATE)
		end_trial(r, find(r, t->key));
	if (m.settled && !m.trial)
		consider(r, k);
	r->allowed = !r->on ? UM_REFEREE_PLANNED : t->key && t->left ? t->allowed : k->allowed;
	return m;
}

/* --- decisions ---------------------------------------------------------------------------------------------------- */

static int change_to(struct um_referee_key *k, enum um_referee_hints to, enum um_referee_hints allowed,
		     struct um_referee_change *out)
{
	enum um_referee_hints from = k->has;

	*out = (struct um_referee_change){from, to, median_of(k, from), median_of(k, to)};
	k->allowed = allowed;
	k->has = to;
	k->doubted = to < from;
	k->arms[from].pause = k->arms[from].wait = UM_REFEREE_PAUSE;
	k->arms[UM_REFEREE_PLANNED].wait = UM_REFEREE_PAUSE;
	return 1;
}

static void end_trial(struct um_referee *r, struct um_referee_key *k)
{
	struct um_referee_trial *t = &r->trial;

	if (t->cost_ns < 0)
		r->spent_ns -= t->cost_ns; /* a gain is no allowance */
	if (k) {
		struct um_referee_arm *a = &k->arms[t->allowed];

		a->tried = 1;
		a->cost_ns = t->cost_ns > 0 ? (uint64_t)t->cost_ns : 0;
		a->wait = a->pause;
		a->pause = a->pause < UM_REFEREE_PAUSE_MOST / 2 ? 2 * a->pause : UM_REFEREE_PAUSE_MOST;
	}
	memset(t, 0, sizeof *t);
}

/* All iterations of the trial are measured. */
static int judge(struct um_referee *r, struct um_referee_key *k, struct um_referee_change *change)
{
	struct um_referee_trial t = r->trial;
	enum um_referee_hints to = expected(k, t.allowed);

	end_trial(r, k);
	k->hopeful = t.probes && t.first_ns && t.first_ns / HOPELESS < t.base_ns;
	if (k->hopeful) {
		k->arms[t.allowed].wait = 0;
		k->arms[t.allowed].pause /= 2;
		k->arms[t.allowed].cost_ns *= length(t.allowed);
		return 0;
	}
	if (to == k->has || k->has == UM_REFEREE_KINDS)
		return 0;
	k->arms[to].fresh = 0;
	if (is_better(k, to, k->has))
		return change_to(k, to, t.allowed, change);
	if (to < k->has &&
	    um_time_samples_excess(&k->arms[to].samples, &k->arms[k->has].samples, UM_REFEREE_MARGIN) > 0)
		k->arms[t.allowed].pause = k->arms[t.allowed].wait = UM_REFEREE_PAUSE; /* more samples are to decide */
	else
		forget(&k->arms[to]);
	return 0;
}

/* Another kind of hints than the usual one has been faster all along, or was stopped by mistake. */
static int find_better(struct um_referee_key *k, struct um_referee_change *change)
{
	for (int i = 0; i < UM_REFEREE_KINDS; i++) {
		enum um_referee_hints to = (enum um_referee_hints)i;

		if (((to < k->has && k->arms[to].fresh) || (to > k->allowed && k->doubted)) && is_better(k, to, k->has))
			return change_to(k, to, to, change);
		k->arms[to].fresh = 0;
	}
	k->doubted = 0;
	return 0;
}

/* Forgets what other kinds took, if the usual one has come to take another time. */
static void watch_level(struct um_referee_key *k)
{
	struct um_referee_arm *a = &k->arms[k->has];
	uint64_t ns = median_of(k, k->has), before = a->level_ns;

	if (before && ns >= before - before / 4 && ns <= before + before / 4)
		return;
	a->level_ns = ns;
	for (int i = 0; i < UM_REFEREE_KINDS && before; i++) {
		k->arms[i].pause = UM_REFEREE_PAUSE;
		k->arms[i].wait = 0;
		k->arms[i].tried = 0;
		if (i != (int)k->has)
			forget(&k->arms[i]);
	}
}

static int take_sample(struct um_referee *r, struct um_referee_key *k, const struct um_referee_mark *m, uint64_t ns,
		       struct um_referee_change *change)
{
	struct um_referee_arm *a = &k->arms[m->had];

	um_time_samples_add(&a->samples, ns);
	a->fresh = 1;
	if (m->trial || m->had != k->has || a->samples.n % UM_TIME_SAMPLES)
		return 0;
	watch_level(k);
	return !r->trial.key && find_better(k, change);
}

static void spend(struct um_referee *r, int64_t ns)
{
	r->trial.cost_ns += ns;
	r->spent_ns += ns;
}

int um_referee_measure(struct um_referee *r, const struct um_referee_mark *m, uint64_t ns,
		       struct um_referee_change *change)
{
	struct um_referee_key *k = find(r, m->key);
	struct um_referee_trial *t = &r->trial;
	int changed = 0;

	r->total_ns += ns;
	ns = (uint64_t)((double)ns * m->scale);
	if (k && m->settled)
		changed = take_sample(r, k, m, ns, change);
	if (!m->trial || !t->key)
		return changed;
	t->unmeasured--;
	t->late = 0;
	if (m->key == t->key && !t->first_ns)
		t->first_ns = ns;
	spend(r, (int64_t)ns - (int64_t)(m->key == t->key ? t->base_ns : usual(k, ns)));
	if (t->left || t->after || t->unmeasured)
		return changed;
	k = find(r, t->key);
	if (k)
		return judge(r, k, change);
	end_trial(r, NULL);
	return 0;
}

const struct um_time_samples *um_referee_samples(const struct um_referee *r, uint64_t signature,
						 enum um_referee_hints had)
{
	for (int i = 0; i < UM_REFEREE_KEYS; i++)
		if (r->keys[i].key == key_of(signature))
			return &r->keys[i].arms[had].samples;
	return NULL;
}
