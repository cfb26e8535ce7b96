/* SPDX-License-Identifier: Apache-2.0
 *
 * What the front desk remembers of an op - whose memory it named - is never out of date. Programs made up by chance
 * repeat themselves, and in between change what was remembered: tensors are freed and given out again elsewhere, parts
 * are adopted and disowned, streams, threads, names and ranges differ. Each runs as it is, and with all of it forgotten
 * before every call: what is computed, recorded, hinted and how long it takes must be the same.
 *
 *     test_known SEED     one program alone, for a run in which memory gives out: 1 where it computed something else
 */
#include "runtime/context.h"

#include "fixture/random.h"
#include "iteration_digest.h"
#include "tap.h"

#include <pthread.h>

#define MIB (1ull << 20)
#define SEEDS 24
#define PARAMS 6 /* the last two are only read */
#define ACTS 8
#define TENSORS (PARAMS + ACTS)
#define STEPS 22 /* ops of an iteration */
#define ITERATIONS 32
#define FEW 8 /* where each is run hundreds of times */
#define STRIDE 8192 /* words: one in 64 KiB counts */

struct range {
	uint64_t *at;
	size_t bytes;
};

/* A kernel: out = f(in...), or out = f(in..., out). */
struct job {
	struct range in[2], out;
	unsigned n_in;
	int update, written; /* written: there is something in `out` to be updated */
	uint64_t salt;
};

struct tensor {
	struct range mem;
	int written; /* in this iteration; of a parameter always */
};

struct world {
	struct umadv *adv;
	int forgets;
	int calm; /* nothing is born or freed in an iteration, unless something is out of order */
	struct tensor tensor[TENSORS];
	struct range part; /* of a tensor, adopted */
	void *stream; /* another one than the default one */
	struct job jobs[ITERATIONS * STEPS * 8];
	size_t n_jobs;
	uint64_t recorded; /* hash of all iterations */
	int err; /* of a call that may fail for want of memory */
	int op_err; /* of an op or an iteration: they never do */
};

/* How an op is announced. */
struct way {
	int elsewhere; /* on the other stream */
	int thread; /* from a thread of its own */
	int twice; /* its first range is named twice */
	int unknown; /* and one of unknown memory */
	int half; /* it looks a little up in its first range */
	int relaunch;
	const char *name;
};

static void kernel(void *arg)
{
	const struct job *j = arg;
	uint64_t h = j->salt;

	for (unsigned i = 0; i < j->n_in; i++)
		for (size_t k = 0; k < j->in[i].bytes / 8; k += STRIDE)
			h = um_hash_fold(h, j->in[i].at[k]);
	for (size_t k = 0; k < j->out.bytes / 8; k += STRIDE)
		j->out.at[k] = (j->update ? j->out.at[k] * 31 : 0) + h + k;
}

/* --- a call ------------------------------------------------------------------------------------------------------ */

static void before(struct world *w)
{
	if (w->forgets)
		um_context_forget_uses(w->adv);
}

static int again(void *arg, void *stream)
{
	(void)arg;
	(void)stream;
	return 0;
}

struct call {
	struct world *w;
	struct job *job;
	struct way way;
};

static void *announce(void *arg)
{
	static char name[32]; /* one place, other names */
	struct call *c = arg;
	struct job *j = c->job;
	void *stream = c->way.elsewhere ? c->w->stream : NULL;
	const void *outs[] = {j->out.at};
	struct umadv_use uses[5];
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = uses, .ns = 200000};

	for (unsigned i = 0; i < j->n_in; i++)
		uses[info.n_uses++] = UMADV_READ_RANGE(j->in[i].at, j->in[i].bytes);
	if (c->way.half && j->n_in)
		uses[0].touched = j->in[0].bytes / 2;
	if (c->way.twice && j->n_in)
		uses[info.n_uses++] = uses[0];
	if (c->way.unknown)
		uses[info.n_uses++] = UMADV_READ(name);
	uses[info.n_uses++] =
		umadv_use_(j->out.at, j->out.bytes, 0, j->update ? UMADV_ACCESS_UPDATE : UMADV_ACCESS_WRITE);
	if (c->way.relaunch) {
		info.relaunch = again;
		info.relaunch_arg = &info.ns;
		info.relaunch_arg_bytes = sizeof info.ns;
		info.relaunch_outs = outs;
		info.n_relaunch_outs = 1;
		info.phase = 'f';
	}
	snprintf(name, sizeof name, "%s", c->way.name);
	before(c->w);
	c->w->op_err |= umadv_op_ex(c->w->adv, stream, name, &info);
	c->w->err |= umadv_sim_run(c->w->adv, stream, kernel, j);
	return NULL;
}

static void launch(struct world *w, struct way way, struct job job)
{
	struct call c = {w, &w->jobs[w->n_jobs++], way};
	pthread_t thread;

	*c.job = job;
	if (way.elsewhere) /* behind all before it, and before all behind it */
		w->err |= umadv_sim_sync(w->adv);
	if (!way.thread || pthread_create(&thread, NULL, announce, &c))
		announce(&c);
	else
		pthread_join(thread, NULL);
	if (way.elsewhere)
		w->err |= umadv_sim_sync(w->adv);
}

static void write_anew(struct world *w, struct tensor *t, const char *name)
{
	launch(w, (struct way){.name = name}, (struct job){.out = t->mem, .salt = t->mem.bytes});
	t->written = 1;
}

static void born(struct world *w, struct tensor *t, int i)
{
	before(w);
	w->err |= umadv_alloc(w->adv, (void **)&t->mem.at, t->mem.bytes, "t", i < PARAMS ? UMADV_PARAM : UMADV_ACT);
}

static void drop(struct world *w, struct tensor *t)
{
	before(w);
	w->err |= umadv_free(w->adv, t->mem.at);
	t->written = 0;
}

static void disown(struct world *w)
{
	before(w);
	if (w->part.at)
		w->err |= umadv_disown(w->adv, w->part.at, w->part.bytes);
	w->part.at = NULL;
}

/* --- what happens ------------------------------------------------------------------------------------------------ */

static int inside(const struct range *part, const struct tensor *t)
{
	return part->at && part->at >= t->mem.at && part->at < t->mem.at + t->mem.bytes / 8;
}

/* Given back and born again, perhaps elsewhere: somebody may be given its memory in between. */
static void replace(struct world *w, uint64_t *d, int i)
{
	struct tensor *t = &w->tensor[i], other = {.mem = {NULL, t->mem.bytes >> test_random(d, 2)}};
	int stranger = test_random(d, 2) != 0;

	if (inside(&w->part, t))
		disown(w);
	drop(w, t);
	if (stranger && !w->err)
		born(w, &other, TENSORS);
	if (!w->err)
		born(w, t, i);
	if (!w->err)
		write_anew(w, t, "anew");
	if (other.mem.at && !w->err)
		drop(w, &other);
}

/* One thing about an op is not as it was in the iteration before. */
static void alter(struct world *w, uint64_t *d, struct way *way, struct job *j)
{
	struct tensor *other = &w->tensor[test_random(d, TENSORS)];

	switch (test_random(d, 8)) {
	case 0:
		way->name = "else";
		break;
	case 1:
		way->elsewhere = !way->elsewhere;
		break;
	case 2:
		way->half = !way->half;
		break;
	case 3:
		way->relaunch = !way->relaunch;
		break;
	case 4:
		j->update = !j->update && j->written;
		break;
	case 5:
		j->in[0].bytes /= 2;
		break;
	case 6:
		j->in[0].at += j->in[0].bytes / 16;
		j->in[0].bytes /= 2;
		break;
	case 7:
		if (other->written && other->mem.bytes == j->in[0].bytes && other->mem.at != j->out.at)
			j->in[0] = other->mem;
		break;
	}
}

static void one_step(struct world *w, uint64_t *d, uint64_t *chance, int i)
{
	static const char *const names[] = {"step", "stop", "stem"};
	struct tensor *out = &w->tensor[test_random(d, TENSORS)];
	struct job j = {.salt = (uint64_t)i};
	struct way way = {.name = names[test_random(d, 3)],
			  .elsewhere = test_random(d, 16) == 0,
			  .thread = test_random(d, 16) == 0,
			  .twice = test_random(d, 32) == 0,
			  .unknown = test_random(d, 64) == 0,
			  .half = test_random(d, 8) == 0,
			  .relaunch = test_random(d, 8) == 0};

	for (int tries = 0; tries < 2; tries++) {
		const struct tensor *t = &w->tensor[test_random(d, TENSORS)];

		if (t->written && t != out && !(j.n_in && j.in[0].at == t->mem.at))
			j.in[j.n_in++] = t->mem;
	}
	if (out >= w->tensor + PARAMS - 2 && out < w->tensor + PARAMS)
		out = &w->tensor[TENSORS - 1];
	for (unsigned k = 0; k < j.n_in; k++)
		if (j.in[k].at == out->mem.at)
			return;
	j.out = out->mem;
	j.written = out->written;
	j.update = out->written && test_random(d, 2);
	if (test_random(d, 4) == 0 && out->written) { /* a part of it */
		j.out.bytes = out->mem.bytes / 4096 / 2 * 4096;
		j.out.at += test_random(d, 2) * (j.out.bytes / 8);
		j.update = 1;
	}
	out->written = 1;
	if (chance && test_random(chance, 16) == 0)
		alter(w, chance, &way, &j);
	launch(w, way, j);
	if (!w->calm && out >= w->tensor + PARAMS && test_random(d, 12) == 0)
		replace(w, d, (int)(out - w->tensor));
}

/* Two at once: what was the one's may be the other's. */
static void replace_both(struct world *w, int i, int k)
{
	disown(w);
	drop(w, &w->tensor[i]);
	drop(w, &w->tensor[k]);
	born(w, &w->tensor[i], i);
	if (!w->err)
		born(w, &w->tensor[k], k);
	if (!w->err) {
		write_anew(w, &w->tensor[i], "anew");
		write_anew(w, &w->tensor[k], "anew");
	}
}

/* Something that is not so in every iteration, though most ops may be. */
static void disturb(struct world *w, uint64_t *d)
{
	int i = (int)test_random(d, TENSORS);
	struct tensor *t = &w->tensor[i];

	switch (test_random(d, 6)) {
	case 0:
		replace(w, d, i);
		break;
	case 1:
		replace_both(w, i, (i + 1) % TENSORS);
		break;
	case 2:
		if (w->part.at) {
			disown(w);
			break;
		}
		w->part = (struct range){t->mem.at + test_random(d, 2) * (t->mem.bytes / 16), t->mem.bytes / 2};
		before(w);
		w->err |= umadv_adopt(w->adv, w->part.at, w->part.bytes, "part", UMADV_OTHER);
		break;
	case 3:
		if (i < PARAMS)
			break;
		before(w);
		w->err |= umadv_dead(w->adv, t->mem.at);
		if (!w->err)
			write_anew(w, t, "dead");
		break;
	case 4: /* an act: written in each iteration before it is read */
		before(w);
		w->err |= i < PARAMS ? 0 : umadv_transient(w->adv, t->mem.at);
		break;
	case 5:
		if (w->part.at && t->written && !inside(&w->part, t))
			launch(w, (struct way){.name = "part"},
			       (struct job){.in = {t->mem}, .n_in = 1, .out = w->part, .salt = 5});
		break;
	}
}

/* --- what came of it --------------------------------------------------------------------------------------------- */

static uint64_t content(const struct world *w)
{
	uint64_t h = 0;

	for (int i = 0; i < PARAMS; i++)
		for (size_t k = 0; k < w->tensor[i].mem.bytes / 8; k += STRIDE)
			h = um_hash_fold(h, w->tensor[i].mem.at[k]);
	return h;
}

/* --- runs -------------------------------------------------------------------------------------------------------- */

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	(void)line;
}

static void set_up(struct world *w, uint64_t *d)
{
	if (w->adv->device.gpu->api->cudaStreamCreateWithFlags(w->adv->device.gpu, &w->stream, 1))
		w->err |= -ENOMEM;
	for (int i = 0; i < TENSORS && !w->err; i++) {
		w->tensor[i].mem.bytes = (3 + 3 * test_random(d, 2)) * MIB / 2;
		born(w, &w->tensor[i], i);
		if (!w->err)
			write_anew(w, &w->tensor[i], "init");
	}
}

static void iterate(struct world *w, const uint64_t *script, uint64_t *chance)
{
	uint64_t d = *script;
	int wild = test_random(chance, 3) == 0;

	before(w);
	w->op_err |= umadv_iter(w->adv, NULL);
	w->recorded = iteration_digest(w->recorded, &w->adv->iterations.last);
	for (int i = PARAMS; i < TENSORS; i++)
		w->tensor[i].written = 0;
	for (int i = 0; i < STEPS && !w->err; i++) {
		one_step(w, &d, wild ? chance : NULL, i);
		if (wild && !w->err && test_random(chance, 24) == 0)
			disturb(w, chance);
	}
}

struct result {
	uint64_t content, recorded, ns;
	struct umadv_stats stats;
	int err, op_err;
};

static struct result run(uint64_t seed, const char *strategy, int forgets, int iterations)
{
	static struct world w;
	uint64_t d = seed, script, chance;
	struct result r = {.stats = {.struct_size = sizeof r.stats}};
	struct umadv_options o;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 26 * MIB;
	o.strategy = strategy;
	o.check = UMADV_CHECK_DISCARDS;
	o.log = on_log;
	memset(&w, 0, sizeof w);
	w.forgets = forgets;
	w.calm = seed % 3 != 0;
	w.err = umadv_open(&w.adv, &o);
	if (!w.err)
		set_up(&w, &d);
	script = 1 + test_random(&d, 1u << 30);
	chance = 1 + test_random(&d, 1u << 30);
	for (int it = 0; it < iterations && !w.err; it++)
		iterate(&w, &script, &chance);
	if (!w.err)
		w.err = umadv_sim_sync(w.adv);
	if (!w.err) {
		r.content = content(&w);
		r.ns = umadv_sim_now(w.adv);
		w.err = umadv_stats_get(w.adv, &r.stats);
	}
	r.recorded = w.recorded;
	r.err = w.err;
	r.op_err = w.op_err;
	umadv_close(w.adv);
	return r;
}

/* A tensor is dead, a part of it is written and disowned: the tensor has that content now. `alive`: the part is not
 * disowned, but has ended before what lies behind it. */
static uint64_t written_as_a_part(int alive)
{
	static struct world w;
	struct tensor all = {.mem = {NULL, 8 * MIB}},
		      x[3] = {{.mem = {NULL, 8 * MIB}}, {.mem = {NULL, 8 * MIB}}, {.mem = {NULL, 8 * MIB}}};
	struct umadv_options o;
	uint64_t got = 0;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 18 * MIB;
	o.check = UMADV_CHECK_DISCARDS;
	memset(&w, 0, sizeof w);
	if (umadv_open(&w.adv, &o))
		return 0;
	born(&w, &all, 0);
	for (int i = 0; i < 3; i++) {
		born(&w, &x[i], 0);
		write_anew(&w, &x[i], "init");
	}
	if (!alive)
		w.err |= umadv_dead(w.adv, all.mem.at);
	w.part = (struct range){all.mem.at, alive ? MIB : 4 * MIB};
	w.err |= umadv_adopt(w.adv, w.part.at, w.part.bytes, "part", UMADV_OTHER);
	if (alive)
		write_anew(&w, &all, "all");
	else
		launch(&w, (struct way){.name = "part"}, (struct job){.out = w.part, .salt = 3});
	if (!alive)
		disown(&w);
	for (int it = 0; it < 5 && !w.err; it++) {
		w.op_err |= umadv_iter(w.adv, NULL);
		for (int i = 0; i < 6; i++)
			launch(&w, (struct way){.name = "step"},
			       (struct job){.in = {x[i % 3].mem}, .n_in = 1, .out = x[(i + 1) % 3].mem, .update = 1});
	}
	w.err |= umadv_sim_sync(w.adv);
	if (!w.err && !w.op_err)
		got = all.mem.at[alive ? 6 * MIB / 8 : 2 * MIB / 8] - (alive ? 6 : 2) * MIB / 8;
	umadv_close(w.adv);
	return got;
}

/* The program may end for want of memory, but not with another result. */
static int survive(uint64_t seed)
{
	struct result want = run(seed, "on-demand", 0, FEW), is = run(seed, "lookahead", 0, FEW);

	if (want.op_err || is.op_err)
		return 1;
	return !want.err && !is.err && want.content != is.content;
}

int main(int argc, char **argv)
{
	uint64_t hinted = 0, plans = 0, diverged = 0, seeds = tap_few() ? 8 : SEEDS;

	if (argc > 1)
		return survive(strtoull(argv[1], NULL, 10));
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct result plain = run(seed, "on-demand", 0, ITERATIONS), is = run(seed, "lookahead", 0, ITERATIONS),
			      want = run(seed, "lookahead", 1, ITERATIONS);

		ok(!plain.err && !plain.op_err, "program %d runs", (int)seed);
		is_u64(is.content, plain.content, "it computes the same with hints");
		is_u64(want.content, plain.content, "it computes the same with hints and without memory of plans");
		is_u64(is.recorded, want.recorded, "the same is recorded");
		ok(memcmp(&is.stats, &want.stats, sizeof is.stats) == 0, "the same is hinted");
		is_u64(is.ns, want.ns, "it takes the same time");
		hinted += is.stats.hinted_iterations;
		plans += is.stats.plans;
		diverged += is.stats.divergences;
	}
	is_u64(written_as_a_part(0), 3, "what was written as a part of a dead tensor stays");
	is_u64(written_as_a_part(1), 8 * MIB, "what lies behind a part of a tensor stays");
	ok(hinted > seeds * ITERATIONS / 3, "more than a third of the iterations followed a plan (%d)", (int)hinted);
	ok(plans > seeds && diverged > seeds, "plans were taken up (%d) and left (%d)", (int)plans, (int)diverged);
	return tap_done();
}
