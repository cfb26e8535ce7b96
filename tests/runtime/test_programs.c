/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints never change results, whatever a program does: several threads and streams, host access between operations,
 * parts of tensors, failing device calls, a context that closes with work outstanding (random_program.h). Each program
 * runs without hints and then with two strategies in less memory than it needs.
 *
 *     test_programs SEED [N]     N programs (1) from this one on, with what was run and what is wrong; with
 *                                UM_TEST_TELL each step, and what the device does
 *
 * UM_TEST_PROGRAMS=N runs N programs from UM_TEST_SEED on, with progress on standard error. Built a second time with
 * REAL_THREADS: there the library's workers are threads, a thread makes the plans of half of the programs, and what
 * they do when is a matter of chance.
 */
#include "random_program.h"

#include "tap.h"

#include <signal.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define PROGRAMS 25
#ifdef REAL_THREADS
#define THREADS 1
#else
#define THREADS 0
#endif
#define PATIENCE_S 120 /* no program takes so long, under a sanitizer and valgrind neither */

/* Programs that failed once: a discard of scratch that came after an op which could not wait for it; a gate that never
 * opened after refused calls; discards that did not wait for another thread's default stream; a tensor that lay
 * elsewhere than planned, where it was discarded while an op overwrote it; an event recorded on two streams. */
static const uint64_t kept[] = {140, 5035, 110, 154, 102672, 102342};

static struct prog prog;
static uint64_t current;
static const char *strategy;
static struct {
	uint64_t runs, wrong, hinted, failed, discarded, evicted, prefetched, diverged;
} sum;

static void hangs(int signal)
{
	(void)signal;
	fprintf(stderr, "program %llu with strategy %s hangs:\n", (unsigned long long)current, strategy);
	prog_say(&prog);
	_exit(99);
}

static int run(uint64_t seed, const struct prog_options *o, int talks)
{
	struct umadv_stats s;
	int wrong;

	strategy = o->strategy;
	alarm(PATIENCE_S);
	wrong = prog_run(&prog, seed, o, &s);
	alarm(0);
	sum.runs++;
	for (unsigned i = 0; i < prog.n_threads && talks; i++)
		fprintf(stderr, "thread %u: streams %p %p\n", i, prog.thread[i].stream[0], prog.thread[i].stream[1]);
	if (talks)
		fprintf(stderr,
			"seed %llu: %s on %s, %llu of %llu KiB, evict %d, every %u. call fails%s; %u threads, %s: "
			"%llu of %u iterations hinted, %llu divergences%s: %s\n",
			(unsigned long long)seed, o->strategy, o->profile, (unsigned long long)o->budget >> 10,
			(unsigned long long)o->capacity >> 10, (int)o->evict, o->nth, o->by_chance ? " by chance" : "",
			prog.n_threads, prog.in_step ? "in step" : "free-running",
			(unsigned long long)s.hinted_iterations, prog.iterations, (unsigned long long)s.divergences,
			o->plan_thread == UMADV_PLAN_THREAD_ON ? ", planned beside" : "", wrong ? prog.why : "right");
	if (wrong) {
		sum.wrong++;
		diag("program %llu, %s: %s", (unsigned long long)seed, o->strategy, prog.why);
		return 1;
	}
	sum.failed += prog.failed;
	sum.hinted += s.hinted_iterations;
	sum.discarded += s.discard_bytes;
	sum.evicted += s.evict_bytes;
	sum.prefetched += s.prefetch_bytes;
	sum.diverged += s.divergences;
	return 0;
}

/* Every choice follows from the seed. */
static int play(uint64_t seed, int talks)
{
	static const char *const profiles[] = {"v100", "v100", "a100", "gh200"};
	static const unsigned nths[] = {0, 0, 0, 3, 5, 10}, percents[] = {90, 66, 50};
	uint64_t h = (seed + 1) * 0x9e3779b97f4a7c15ull >> 20, peak;
	struct prog_options o = {.strategy = "on-demand",
				 .profile = profiles[h % 4],
				 .budget = 1024 * MIB,
				 .capacity = 1024 * MIB,
				 .nth = nths[h / 4 % 6],
				 .by_chance = h / 24 % 2,
				 .evict = (enum umadv_evict)(h / 48 % 3),
				 .plan_thread = THREADS && h / 41472 % 2 ? UMADV_PLAN_THREAD_ON : UMADV_PLAN_THREAD_OFF,
				 .listens = h / 144 % 4 == 0,
				 .limits = h / 82944 % 2 == 0,
				 .tells = talks && getenv("UM_TEST_TELL")};
	int wrong;

	current = seed;
	wrong = run(seed, &o, talks);
	peak = 0;
	for (unsigned i = 0; i < prog.n_threads; i++)
		for (unsigned k = 0; k < prog.thread[i].n; k++)
			peak += prog.thread[i].t[k].bytes;
	o.budget = peak * percents[h / 576 % 3] / 100 / (2 * MIB) * (2 * MIB);
	o.budget = o.budget < 24 * MIB ? 24 * MIB : o.budget;
	o.capacity = h / 1728 % 4 ? o.budget : o.budget * 2;
	o.strategy = "lookahead";
	wrong |= run(seed, &o, talks);
	if (h / 6912 % 3)
		return wrong;
	o.strategy = h / 20736 % 2 ? "prefetch-on-use" : "autoswap";
	return wrong | run(seed, &o, talks);
}

static uint64_t number(const char *text, uint64_t other)
{
	return text ? strtoull(text, NULL, 10) : other;
}

int main(int argc, char **argv)
{
	const char *many = getenv("UM_TEST_PROGRAMS");
	uint64_t seed = number(getenv("UM_TEST_SEED"), 0), n = number(many, tap_few() ? 2 : PROGRAMS), wrong = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, hangs);
	if (argc > 1) {
		seed = number(argv[1], 0);
		n = number(argc > 2 ? argv[2] : NULL, 1);
	}
	for (uint64_t i = 0; i < n; i++) {
		wrong += (uint64_t)play(seed + i, argc > 1);
		if (many && (i + 1) % 100 == 0)
			fprintf(stderr, "%llu of %llu programs, %llu wrong, %llu calls failed\n",
				(unsigned long long)i + 1, (unsigned long long)n, (unsigned long long)wrong,
				(unsigned long long)sum.failed);
	}
	for (size_t i = 0; i < sizeof kept / sizeof *kept && argc == 1 && !many; i++)
		wrong += (uint64_t)play(kept[i], 0);
	is_u64(wrong, 0, "%llu random programs read what they wrote, under every strategy", (unsigned long long)n);
	diag("%llu runs, %llu wrong, %llu iterations hinted, %llu diverged, %llu calls failed, MiB prefetched %llu, "
	     "evicted %llu, discarded %llu",
	     (unsigned long long)sum.runs, (unsigned long long)sum.wrong, (unsigned long long)sum.hinted,
	     (unsigned long long)sum.diverged, (unsigned long long)sum.failed, (unsigned long long)sum.prefetched >> 20,
	     (unsigned long long)sum.evicted >> 20, (unsigned long long)sum.discarded >> 20);
	if (n >= PROGRAMS && argc == 1)
		ok(sum.hinted && sum.discarded && sum.evicted && sum.prefetched && sum.diverged && sum.failed,
		   "hints of all kinds were issued, iterations diverged, and device calls failed");
	return tap_done();
}
