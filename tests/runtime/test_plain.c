/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan's next op is processed on a path of its own while nothing but hints is to be done for it. The same loops,
 * with random changes, run twice: as they are, and with a listener, so that each op is processed in full and each
 * action is checked. What is recorded, requested and noted of the tensors must be the same.
 */
#include "runtime/context.h"
#include "gpu/null.h"

#include "fixture/random.h"
#include "iteration_digest.h"
#include "tap.h"

#include <pthread.h>
#include <time.h>

#define LAYERS 12
#define BYTES (5u << 20)
#define ITERATIONS 30
#define SEEDS 24

struct run {
	struct umadv *adv;
	struct um_gpu *gpu;
	void *w[LAYERS], *y[LAYERS + 1], *spare;
	int dead; /* this one of y is to be allocated again; 0: none */
	uint64_t chance;
	int err;
	unsigned plain; /* ops after which the next one is plain */
	uint64_t digest;
	struct um_hints_by_source hints;
	struct umadv_stats stats;
	struct um_null_counts counts;
};

/* How an op is announced. */
struct call {
	struct run *r;
	const char *name;
	void *stream;
	struct umadv_use uses[3];
	int relaunch;
	uint64_t ns;
};

static int ignore(struct um_activity_sink *sink, const struct um_activity *activity)
{
	(void)sink;
	(void)activity;
	return 0;
}

static struct um_activity_sink listener = {ignore};

static int again(void *arg, void *stream)
{
	(void)arg;
	(void)stream;
	return 0;
}

static void *announce(void *arg)
{
	struct call *c = arg;
	const void *outs[] = {c->uses[2].ptr};
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = c->uses, .n_uses = 3, .ns = c->ns};

	if (c->relaunch) {
		info.relaunch = again;
		info.relaunch_outs = outs;
		info.n_relaunch_outs = 1;
	}
	c->r->err |= umadv_op_ex(c->r->adv, c->stream, c->name, &info);
	c->r->plain += c->r->adv->op.plain != 0;
	return NULL;
}

static void fold(struct run *r, uint64_t x)
{
	r->digest = um_hash_fold(r->digest, x);
}

/* What is noted of a tensor. */
static void fold_tensor(struct run *r, void *p)
{
	const struct um_tensor *t = um_registry_find(&r->adv->tensors.registry, (uintptr_t)p);

	fold(r, t->id.v);
	fold(r, t->used_op);
	fold(r, t->streams);
	fold(r, t->flags);
}

static void replace(struct run *r, int i)
{
	r->err |= umadv_free(r->adv, r->y[i]) || umadv_alloc(r->adv, &r->y[i], BYTES, "y", UMADV_ACT);
}

static void rename_use(struct call *c, const void *from, void *to)
{
	for (int k = 0; k < 3; k++)
		c->uses[k].ptr = c->uses[k].ptr == from ? to : c->uses[k].ptr;
}

/* Something that does not happen in each iteration. */
static void disturb(struct run *r, struct call *c, int i)
{
	const void *old = r->y[i + 1];
	pthread_t thread;

	switch (test_random(&r->chance, 12)) {
	case 0:
		c->name = "other";
		break;
	case 1:
		c->stream = (void *)(uintptr_t)99;
		break;
	case 2:
		c->uses[0].touched = BYTES / 2;
		break;
	case 3:
		c->relaunch = 1;
		break;
	case 4:
		replace(r, i + 1);
		rename_use(c, old, r->y[i + 1]);
		break;
	case 5:
		c->uses[1] = (struct umadv_use)UMADV_READ_RANGE(r->w[i], BYTES / 2);
		break;
	case 6:
		r->err |= umadv_dead(r->adv, r->y[i + 1]);
		break;
	case 7:
		r->err |= umadv_host(r->adv, "look", UMADV_USES(UMADV_READ(r->w[i])));
		break;
	case 8: /* from another thread, from now on each op is processed in full */
		if (test_random(&r->chance, 8) == 0 && !pthread_create(&thread, NULL, announce, c))
			pthread_join(thread, NULL);
		break;
	case 9:
		c->ns = 1234;
		break;
	case 10: /* named after its death */
		r->err |= umadv_free(r->adv, r->y[i + 1]);
		r->dead = i + 1;
		break;
	case 11:
		rename_use(c, old, r->spare);
		break;
	}
}

/* Op number `k` of an iteration. */
static struct call call_of(struct run *r, int k)
{
	int i = k < LAYERS ? k : 2 * LAYERS - 1 - k, back = k >= LAYERS;
	struct call c = {.r = r, .name = back ? "backward" : "forward", .ns = 1000000};

	c.uses[0] = (struct umadv_use)UMADV_READ(r->y[i + back]);
	c.uses[1] = back ? (struct umadv_use)UMADV_UPDATE(r->w[i]) : (struct umadv_use)UMADV_READ(r->w[i]);
	c.uses[2] = back ? (struct umadv_use)UMADV_READ(r->y[i]) : (struct umadv_use)UMADV_WRITE(r->y[i + 1]);
	return c;
}

static void iterate(struct run *r, int wild, int host, int stream_each)
{
	r->err |= umadv_iter(r->adv, NULL);
	if (host) {
		um_op_timer_off(&r->adv->replan.times.timer); /* it would measure such iterations for ever */
		r->err |= umadv_host(r->adv, "load", UMADV_USES(UMADV_WRITE(r->y[0])));
	}
	r->digest = iteration_digest(r->digest, &r->adv->iterations.last);
	for (int k = 0; k < 2 * LAYERS && !r->err; k++) {
		int i = k < LAYERS ? k : 2 * LAYERS - 1 - k;
		struct call c = call_of(r, k);

		c.stream = stream_each && k % 3 == 0 ? (void *)(uintptr_t)98 : NULL;
		if (wild && test_random(&r->chance, 24) == 0)
			disturb(r, &c, i);
		announce(&c);
		if (r->dead)
			r->err |= umadv_alloc(r->adv, &r->y[r->dead], BYTES, "y", UMADV_ACT);
		r->dead = 0;
		fold(r, r->adv->replan.cursor.op);
		fold(r, um_context_hints(r->adv));
		fold(r, r->adv->op.n_unknown);
		fold(r, r->adv->pending.of[0].n);
		fold_tensor(r, r->y[i + 1]);
	}
}

/* All that was requested has been issued. */
static void wait_issued(struct run *r)
{
	struct timespec nap = {0, 1000000};

	do {
		nanosleep(&nap, NULL);
		umadv_stats_get(r->adv, &r->stats);
	} while (r->stats.hints_issued + r->stats.hints_refused + r->stats.hints_dropped < um_context_hints(r->adv));
}

static void open_run(struct run *r, int in_full)
{
	struct umadv_options o;

	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = (uint64_t)LAYERS * BYTES;
	o.profile = "v100";
	r->stats.struct_size = sizeof r->stats;
	r->err = um_null_open(&r->gpu, 1ull << 40, 0) || um_context_open(&r->adv, &o, r->gpu, NULL);
	if (!r->err && in_full)
		r->err = um_context_listen(r->adv, &listener);
	for (int i = 0; i < LAYERS && !r->err; i++)
		r->err = umadv_alloc(r->adv, &r->w[i], BYTES, "w", UMADV_PARAM);
	for (int i = 0; i <= LAYERS && !r->err; i++)
		r->err = umadv_alloc(r->adv, &r->y[i], BYTES, "y", UMADV_ACT);
	if (!r->err)
		r->err = umadv_alloc(r->adv, &r->spare, BYTES, "spare", UMADV_ACT);
}

static struct run run(uint64_t seed, int in_full)
{
	struct run r = {.chance = seed};
	int calm = seed % 4 == 0, births = seed % 3 == 0, host = seed % 2, two_streams = seed % 5 == 0;

	open_run(&r, in_full);
	for (int it = 0; it < ITERATIONS && !r.err; it++) {
		iterate(&r, !calm && it > 4 && test_random(&r.chance, 3) == 0, host, two_streams);
		if (births)
			replace(&r, 1 + it % 2);
	}
	for (int i = 0; i < LAYERS && !r.err; i++) {
		fold_tensor(&r, r.w[i]);
		fold_tensor(&r, r.y[i]);
	}
	wait_issued(&r);
	r.hints = um_context_hints_by_source(r.adv);
	um_null_counts(r.gpu, &r.counts);
	umadv_close(r.adv);
	return r;
}

/* The first `n` ops of an iteration that follows the plan. */
static void begin_plain(struct run *r, int n)
{
	open_run(r, 0);
	for (int it = 0; it < 8 && !r->err; it++)
		iterate(r, 0, 0, 0);
	r->err |= umadv_iter(r->adv, NULL);
	for (int k = 0; k < n; k++) {
		struct call c = call_of(r, k);

		announce(&c);
	}
}

/* Ops with the same arguments as ever, on tensors that are others now. */
static void changed(void)
{
	struct run dead = {0}, other = {0};
	struct call c;

	begin_plain(&dead, 3);
	dead.err |= umadv_free(dead.adv, dead.y[4]);
	c = call_of(&dead, 3);
	announce(&c);
	ok(!dead.err && dead.plain && dead.adv->op.n_unknown == 1, "an op on memory that was freed is looked up");
	umadv_close(dead.adv);

	begin_plain(&other, 3);
	c = call_of(&other, 3);
	rename_use(&c, other.y[4], other.spare);
	announce(&c);
	ok(!other.err && other.plain && other.adv->replan.cursor.on, "an op may write another tensor than planned");
	c = call_of(&other, 4);
	announce(&c);
	ok(!other.err && !other.adv->replan.cursor.on, "an op that reads the planned one then is off the plan");
	umadv_close(other.adv);
}

/* A tensor that is born in each iteration, while the one before still has its place. */
static void born_elsewhere(void)
{
	struct run r = {0};
	void *y = NULL;

	open_run(&r, 0);
	for (int it = 0; it < 8 && !r.err; it++) {
		iterate(&r, 0, 0, 0);
		replace(&r, 1);
	}
	iterate(&r, 0, 0, 0);
	ok(!r.err && r.adv->op.plain, "the op after a birth is expected to need its hints alone");
	r.err |= umadv_alloc(r.adv, &y, BYTES, "y", UMADV_ACT);
	ok(!r.err && !r.adv->op.plain && um_registry_find(&r.adv->tensors.registry, (uintptr_t)y)->absent,
	   "after a birth at another address than planned it is processed in full");
	umadv_close(r.adv);
}

int main(void)
{
	uint64_t seeds = tap_few() ? 8 : SEEDS;
	uint64_t plain = 0, diverged = 0;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct run is = run(seed, 0), want = run(seed, 1);

		ok(!is.err && !want.err && !want.plain, "program %d runs, and with a listener each op in full",
		   (int)seed);
		is_u64(is.digest, want.digest, "the same is recorded, requested op by op, and noted of the tensors");
		ok(memcmp(&is.hints, &want.hints, sizeof is.hints) == 0, "the same hints are requested");
		is_u64(is.stats.divergences, want.stats.divergences, "plans are left as often");
		if (seed % 4 == 0 && seed % 3) /* nothing is dropped */
			ok(is.counts.prefetch_bytes == want.counts.prefetch_bytes &&
				   is.counts.evict_bytes == want.counts.evict_bytes &&
				   is.counts.discard_bytes == want.counts.discard_bytes,
			   "without changes, the same is prefetched, evicted and discarded");
		plain += is.plain;
		diverged += is.stats.divergences;
	}
	ok(plain > seeds * ITERATIONS * 2 * LAYERS / 8, "more than an eighth of all ops took the short path (%d)",
	   (int)plain);
	ok(diverged > seeds / 2, "plans were left (%d)", (int)diverged);
	changed();
	born_elsewhere();
	return tap_done();
}
