/* SPDX-License-Identifier: Apache-2.0
 *
 * The referee alone, on made-up programs: how long an iteration takes with each kind of hints is given, and varies.
 */
#include "runtime/referee.h"

#include "tap.h"

#include <string.h>

#define MS 1000000.0
#define QUEUE 16
#define KEYS 3
#define COLD 1.5 /* times as long takes the first iteration of another kind */

static const char *const names[] = {"none", "predicted", "planned"};

struct program {
	struct um_referee referee;
	double ns[KEYS][UM_REFEREE_KINDS]; /* time of an iteration */
	double noise; /* the time varies by up to this part */
	unsigned keys, every; /* number of keys; iterations until the key changes */
	unsigned delay; /* iterations that the host is ahead of the device */
	int no_plan;
	int distinct; /* no two iterations have the same signature; their times and bounds differ */

	struct {
		struct um_referee_mark mark;
		uint64_t ns;
	} queue[QUEUE];
	uint64_t n, seed;
	enum um_referee_hints had;
	double total, usual; /* ns of all iterations; of the same without trials and changes */
	uint64_t with[UM_REFEREE_KINDS]; /* iterations by kind of hints */
	unsigned stopped, resumed;
};

static struct program *open_program(const double ns[UM_REFEREE_KINDS])
{
	static struct program p;

	memset(&p, 0, sizeof p);
	um_referee_init(&p.referee, 1);
	memcpy(p.ns[0], ns, sizeof p.ns[0]);
	p.keys = p.every = 1;
	p.seed = 1;
	p.had = UM_REFEREE_KINDS;
	return &p;
}

/* In [-1, 1). */
static double vary(struct program *p)
{
	p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(p->seed >> 33) / (double)(1u << 30) - 1;
}

static void measure(struct program *p, unsigned i)
{
	struct um_referee_change c;

	if (!um_referee_measure(&p->referee, &p->queue[i].mark, p->queue[i].ns, &c))
		return;
	p->stopped += c.to < c.from;
	p->resumed += c.to > c.from;
}

static void iterate(struct program *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++, p->n++) {
		unsigned key = (unsigned)(p->n / p->every % p->keys), at = (unsigned)(p->n % QUEUE);
		enum um_referee_hints had = p->referee.allowed;
		double size = p->distinct ? 1.5 + vary(p) : 1, noise = 1 + p->noise * vary(p), ns, scale;
		struct um_referee_key *k;

		if (had == UM_REFEREE_PLANNED && p->no_plan)
			had = UM_REFEREE_PREDICTED;
		ns = p->ns[key][had] * size * noise * (had == p->had ? 1 : COLD);
		p->had = had;
		p->with[had]++;
		p->total += ns;
		p->usual += p->ns[key][p->no_plan ? UM_REFEREE_PREDICTED : UM_REFEREE_PLANNED] * size * noise;
		if (p->n > p->delay)
			measure(p, (unsigned)((p->n - p->delay - 1) % QUEUE));
		k = um_referee_meet(&p->referee, p->distinct ? 1000 + p->n : 100 + key);
		scale = 1;
		if (!k->fault_ns)
			k = um_referee_add(&p->referee, k, (uint64_t)(p->ns[key][UM_REFEREE_PLANNED] * size * 10), 64,
					   &scale);
		p->queue[at].mark = um_referee_end(&p->referee, k, scale, had);
		p->queue[at].ns = (uint64_t)ns;
	}
}

/* --- hints that pay ----------------------------------------------------------------------------------------------- */

static void pays(void)
{
	static const double ns[] = {8 * MS, 1.2 * MS, 1 * MS}, equal[] = {1 * MS, 1 * MS, 1 * MS};
	struct program *p = open_program(ns);

	iterate(p, 60);
	is_u64(p->with[UM_REFEREE_PLANNED], 60, "a short program gets all its hints");
	for (uint64_t n = 100; n <= 100000; n *= 10) {
		p = open_program(ns);
		iterate(p, n);
		ok(p->total <= 1.01 * p->usual + MS, "%llu iterations that hints help take at most 1 %% longer (%.4f)",
		   (unsigned long long)n, p->total / p->usual);
	}
	is_u64(p->stopped, 0, "hints that pay are not stopped");
	ok(p->with[UM_REFEREE_NONE] && p->with[UM_REFEREE_PREDICTED], "which is measured: %llu iterations %s, %llu %s",
	   (unsigned long long)p->with[UM_REFEREE_NONE], names[UM_REFEREE_NONE],
	   (unsigned long long)p->with[UM_REFEREE_PREDICTED], names[UM_REFEREE_PREDICTED]);
	p = open_program(equal);
	iterate(p, 100000);
	is_u64(p->stopped, 0, "hints that make no difference are not stopped");
}

static void noisy(void)
{
	static const double ns[] = {8 * MS, 1.1 * MS, 1 * MS};
	double worst = 0;
	unsigned stopped = 0;

	for (unsigned seed = 0; seed < 50; seed++) {
		struct program *p = open_program(ns);

		p->seed = seed;
		p->noise = 0.25;
		iterate(p, 20000);
		worst = p->total / p->usual > worst ? p->total / p->usual : worst;
		stopped += p->stopped;
	}
	ok(worst <= 1.01,
	   "times that vary by 25 %%: 20,000 iterations take at most 1 %% longer, whatever the order (%.4f)", worst);
	ok(stopped <= 2, "hints that pay are hardly ever stopped by mistake (%u of 50 runs)", stopped);
}

/* --- hints that do not pay ---------------------------------------------------------------------------------------- */

static void does_not_pay(double noise, unsigned delay)
{
	static const double none[] = {0.7 * MS, 1.2 * MS, 1 * MS}, predicted[] = {8 * MS, 0.8 * MS, 1 * MS};
	struct program *p = open_program(none);

	p->noise = noise;
	p->delay = delay;
	iterate(p, 20000);
	ok(p->stopped && p->with[UM_REFEREE_NONE] > 15000,
	   "noise %.2f, delay %u: hints are stopped where none are faster (%llu of 20,000 iterations)", noise, delay,
	   (unsigned long long)p->with[UM_REFEREE_NONE]);
	p = open_program(predicted);
	p->noise = noise;
	p->delay = delay;
	iterate(p, 20000);
	ok(p->stopped && p->with[UM_REFEREE_PREDICTED] > 15000,
	   "noise %.2f, delay %u: a plan is suspended where predicted ops do better (%llu of 20,000 iterations)", noise,
	   delay, (unsigned long long)p->with[UM_REFEREE_PREDICTED]);
}

static void before_a_plan(void)
{
	static const double ns[] = {8 * MS, 0.8 * MS, 1 * MS};
	struct program *p = open_program(ns);

	p->no_plan = 1;
	iterate(p, 8);
	p->no_plan = 0;
	iterate(p, 20);
	ok(p->stopped == 1 && p->with[UM_REFEREE_PLANNED] <= 12,
	   "iterations before the plan count: a slower one is suspended after %llu iterations",
	   (unsigned long long)p->with[UM_REFEREE_PLANNED]);
}

/* Fewer hints are faster during a trial, by chance. */
static void mistake(void)
{
	static const double ns[] = {8 * MS, 1.1 * MS, 1 * MS};
	struct program *p = open_program(ns);

	while (!p->stopped && p->n < 2000) {
		p->ns[0][UM_REFEREE_PREDICTED] = p->referee.trial.key ? 0.8 * MS : 1.1 * MS;
		iterate(p, 1);
	}
	ok(p->stopped && !p->resumed, "hints are stopped if a trial is faster by chance");
	p->ns[0][UM_REFEREE_PREDICTED] = 1.1 * MS;
	iterate(p, 20);
	ok(p->resumed && p->referee.allowed == UM_REFEREE_PLANNED, "they are resumed after some iterations");
}

static void changes(void)
{
	static const double ns[] = {0.7 * MS, 1.2 * MS, 1 * MS};
	struct program *p = open_program(ns);

	iterate(p, 20000);
	p->ns[0][UM_REFEREE_NONE] = 5 * MS;
	memset(p->with, 0, sizeof p->with);
	iterate(p, 1000);
	ok(p->resumed && p->with[UM_REFEREE_PLANNED] > 900,
	   "a program that changes gets its hints back soon (%llu of 1,000 iterations)",
	   (unsigned long long)p->with[UM_REFEREE_PLANNED]);
	p = open_program(ns);
	iterate(p, 20000);
	p->ns[0][UM_REFEREE_PLANNED] = 0.5 * MS;
	iterate(p, 10000);
	ok(p->resumed && p->referee.allowed == UM_REFEREE_PLANNED,
	   "hints that did not pay are tried again, and resumed if they have come to pay");
}

static void keys(void)
{
	static const double ns[] = {8 * MS, 1.2 * MS, 1 * MS};
	struct program *p = open_program(ns);
	const struct um_referee_key *k;

	p->keys = 2;
	p->every = 500;
	p->ns[1][UM_REFEREE_NONE] = 0.7 * MS;
	p->ns[1][UM_REFEREE_PREDICTED] = 1.2 * MS;
	p->ns[1][UM_REFEREE_PLANNED] = 1 * MS;
	iterate(p, 40000);
	k = um_referee_meet(&p->referee, 100);
	is_int(k->allowed, UM_REFEREE_PLANNED, "of two kinds of iterations, one keeps its hints");
	k = um_referee_meet(&p->referee, 101);
	is_int(k->allowed, UM_REFEREE_NONE, "the other one has none");
}

static void distinct(void)
{
	static const double pay[] = {8 * MS, 1 * MS, 1 * MS}, do_not[] = {0.7 * MS, 1 * MS, 1 * MS};
	struct program *p = open_program(pay);

	p->no_plan = p->distinct = 1;
	p->noise = 0.25;
	iterate(p, 30000);
	ok(!p->stopped && p->total <= 1.01 * p->usual,
	   "iterations that never repeat keep hints that pay, and take at most 1 %% longer (%.4f)",
	   p->total / p->usual);
	p = open_program(do_not);
	p->no_plan = p->distinct = 1;
	p->noise = 0.25;
	iterate(p, 30000);
	ok(p->stopped && p->with[UM_REFEREE_NONE] > 20000,
	   "hints that do not pay stop there, too (%llu of 30,000 iterations)",
	   (unsigned long long)p->with[UM_REFEREE_NONE]);
}

/* --- measurements that are missing -------------------------------------------------------------------------------- */

static void unmeasured(void)
{
	static const double ns[] = {8 * MS, 1.2 * MS, 1 * MS};
	struct program *p = open_program(ns);
	unsigned most = 1000;

	while (!p->referee.trial.key && --most)
		iterate(p, 1);
	ok(most, "a trial begins");
	for (unsigned i = 0; i < 1000; i++)
		um_referee_end(&p->referee, um_referee_meet(&p->referee, 100), 1, p->referee.allowed);
	ok(!p->referee.trial.key && p->referee.allowed == UM_REFEREE_PLANNED,
	   "a trial that is never measured ends, and changes nothing");
}

static void off(void)
{
	static const double ns[] = {0.5 * MS, 0.5 * MS, 1 * MS};
	struct program *p = open_program(ns);

	um_referee_init(&p->referee, 0);
	iterate(p, 20000);
	is_u64(p->with[UM_REFEREE_PLANNED], 20000, "a referee that is switched off changes nothing");
}

int main(void)
{
	pays();
	noisy();
	does_not_pay(0, 0);
	does_not_pay(0, 12);
	does_not_pay(0.25, 0);
	before_a_plan();
	mistake();
	changes();
	keys();
	distinct();
	unmeasured();
	off();
	return tap_done();
}
