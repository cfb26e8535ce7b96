/* SPDX-License-Identifier: Apache-2.0
 *
 * No program hangs, and none reads wrong values, on a device that can hang: shared hardware queues, full launch queues,
 * the driver's lock, lazy loading, streams that are destroyed (random_program.h). No wait of an op is ended by its time
 * limit either.
 *
 *     test_hazards SEED [N]      N programs (1) from this one on, with what was run and what is wrong
 *
 * UM_TEST_PROGRAMS=N runs N programs from UM_TEST_SEED on, with progress on standard error; UM_TEST_ALL=1 runs 300.
 * Built a second time with REAL_THREADS, as test_programs.
 */
#include "random_program.h"

#include "tap.h"

#include <signal.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define PROGRAMS 90
#define PROGRAMS_ALL 300
#define PATIENCE_S 120 /* no program takes so long, under a sanitizer and valgrind neither */

static struct prog prog;
static uint64_t current;
static struct prog_options options;
static uint64_t hinted, stuck, evicted, discarded;

static void hangs(int signal)
{
	(void)signal;
	fprintf(stderr, "program %llu with strategy %s and hazards '%s' hangs:\n", (unsigned long long)current,
		options.strategy, options.hazards);
	prog_say(&prog);
	fprintf(stderr, "%s\n", prog.why); /* the first deadlock that the device has seen */
	_exit(99);
}

/* Every choice follows from the seed. */
static int play(uint64_t seed, int talks)
{
	static const char *const hazards[] = {
		"on,timeout=5000,queues=1,depth=8",  "on,timeout=5000,queues=1,depth=1000",
		"on,timeout=5000,queues=8,depth=8",  "on,timeout=5000,queues=8,depth=1000",
		"on,timeout=5000,queues=32,depth=8", "on,timeout=5000,queues=32,depth=1000",
	};
	static const char *const strategies[] = {"lookahead", "lookahead", "lookahead", "autoswap", "prefetch-on-use"};
	uint64_t h = (seed + 1) * 0x9e3779b97f4a7c15ull >> 20;
	struct umadv_stats s;
	int wrong;

	current = seed;
	options = (struct prog_options){.strategy = strategies[h % 5],
					.profile = h / 5 % 3 ? "v100" : "a100",
					.budget = (24 + h / 15 % 4 * 8) * MIB,
					.evict = (enum umadv_evict)(h / 60 % 3),
					.hazards = hazards[seed % 6],
					.tells = talks && getenv("UM_TEST_TELL")};
	options.capacity = options.budget;
	alarm(PATIENCE_S);
	wrong = prog_run(&prog, seed, &options, &s);
	alarm(0);
	if (talks)
		fprintf(stderr,
			"seed %llu: %s on %s, %llu MiB, evict %d, %s; %u threads: %llu of %u iterations hinted: %s\n",
			(unsigned long long)seed, options.strategy, options.profile,
			(unsigned long long)(options.budget / MIB), (int)options.evict, options.hazards, prog.n_threads,
			(unsigned long long)s.hinted_iterations, prog.iterations, wrong ? prog.why : "right");
	if (wrong)
		diag("program %llu, %s, %s: %s", (unsigned long long)seed, options.strategy, options.hazards, prog.why);
	hinted += s.hinted_iterations;
	stuck += s.stuck;
	evicted += s.evict_bytes;
	discarded += s.discard_bytes;
	return wrong;
}

static uint64_t number(const char *text, uint64_t other)
{
	return text ? strtoull(text, NULL, 10) : other;
}

int main(int argc, char **argv)
{
	const char *many = getenv("UM_TEST_PROGRAMS");
	uint64_t seed = number(getenv("UM_TEST_SEED"), 0), wrong = 0;
	uint64_t n = number(many, getenv("UM_TEST_ALL") ? PROGRAMS_ALL : tap_few() ? 12 : PROGRAMS);

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, hangs);
	if (argc > 1) {
		seed = number(argv[1], 0);
		n = number(argc > 2 ? argv[2] : NULL, 1);
	}
	for (uint64_t i = 0; i < n; i++) {
		wrong += (uint64_t)play(seed + i, argc > 1);
		if (many && (i + 1) % 100 == 0)
			fprintf(stderr, "%llu of %llu programs, %llu wrong\n", (unsigned long long)i + 1,
				(unsigned long long)n, (unsigned long long)wrong);
	}
	is_u64(wrong, 0, "%llu random programs neither hang nor read wrong values, with hazards",
	       (unsigned long long)n);
	is_u64(stuck, 0, "no wait of an op was ended by its time limit");
	diag("%llu iterations hinted, MiB evicted %llu, discarded %llu", (unsigned long long)hinted,
	     (unsigned long long)evicted >> 20, (unsigned long long)discarded >> 20);
	if (n >= PROGRAMS && argc == 1)
		ok(hinted && evicted && discarded, "hints of all kinds were issued");
	return tap_done();
}
