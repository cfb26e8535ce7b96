/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs whose iterations differ from each other, so that lookahead predicts ops instead of following a plan, beside
 * prefetch-on-use and the driver alone. Where the order of ops is regular and sizes vary, predictions gain time; where
 * tensors are chosen at random, the choice of victims does.
 */
#include "io/umtrace.h"
#include "play/player.h"

#include "fixture/random.h"
#include "tap.h"

#include <math.h>
#include <stdarg.h>

#define LAYERS 8
#define ITERATIONS 120 /* the first ones of random programs follow plans that do not hold */
#define MIB (1ull << 20)

/* A trace as text. */
static struct {
	char text[1 << 22];
	size_t n;
	unsigned born;
	uint64_t seed;
} out;

static void __attribute__((format(printf, 1, 2))) line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	out.n += (size_t)vsnprintf(out.text + out.n, sizeof out.text - out.n, fmt, ap);
	va_end(ap);
	if (out.n >= sizeof out.text)
		tap_bail("the text is too long");
}

static unsigned born(uint64_t mib, const char *role)
{
	line("{\"ev\":\"alloc\",\"t\":%u,\"bytes\":%llu,\"role\":\"%s\"}\n", out.born, (unsigned long long)(mib * MIB),
	     role);
	return out.born++;
}

static void died(unsigned t)
{
	line("{\"ev\":\"free\",\"t\":%u}\n", t);
}

static void iteration(unsigned n)
{
	line("{\"ev\":\"iter\",\"n\":%u}\n", n);
}

/* Reads two tensors and updates the second one. */
static void op(const char *name, unsigned a, unsigned b, uint64_t us)
{
	line("{\"ev\":\"op\",\"name\":\"%s\",\"r\":[%u,%u],\"w\":[%u],\"ns\":%llu}\n", name, a, b, b,
	     (unsigned long long)us * 1000);
}

static uint32_t draw(uint32_t below)
{
	return test_random(&out.seed, below);
}

/* --- programs ----------------------------------------------------------------------------------------------------- */

#define EXPERTS 8

/* A mixture of experts: in each layer two of them are chosen. */
static void routing(void)
{
	unsigned attention[LAYERS], expert[LAYERS][EXPERTS];

	for (int i = 0; i < LAYERS; i++) {
		attention[i] = born(8, "param");
		for (int k = 0; k < EXPERTS; k++)
			expert[i][k] = born(8, "param");
	}
	for (unsigned n = 0; n < ITERATIONS; n++) {
		unsigned x = born(4, "act");

		iteration(n);
		op("embed", attention[0], x, 400);
		for (int i = 0; i < LAYERS; i++) {
			op("attention", attention[i], x, 1200);
			for (int k = 0; k < 2; k++)
				op("expert", expert[i][draw(EXPERTS)], x, 800);
		}
		op("loss", attention[LAYERS - 1], x, 400);
		died(x);
	}
}

/* Parts of a graph are sampled: each step uses parts that were chosen at random, and a network of its own. */
static void sampling(void)
{
	unsigned part[64], w[LAYERS];

	for (int i = 0; i < 64; i++)
		part[i] = born(8, "input");
	for (int i = 0; i < LAYERS; i++)
		w[i] = born(8, "param");
	for (unsigned n = 0; n < ITERATIONS; n++) {
		unsigned x = born(8, "act");

		iteration(n);
		for (int k = 0; k < 12; k++)
			op("gather", part[draw(64)], x, 300);
		for (int i = 0; i < LAYERS; i++)
			op("layer", w[i], x, 1500);
		op("loss", w[LAYERS - 1], x, 300);
		died(x);
	}
}

/* A network forward and backward. `mib`: size of its activations. */
static void network(unsigned n, const unsigned *w, unsigned mib)
{
	unsigned act[LAYERS];

	iteration(n);
	for (int i = 0; i < LAYERS; i++) {
		act[i] = born(mib, "act");
		op("forward", w[i], act[i], 200ull * mib);
	}
	op("loss", w[LAYERS - 1], act[LAYERS - 1], 300);
	for (int i = LAYERS; i-- > 0; died(act[i]))
		op("backward", act[i], w[i], 400ull * mib);
}

static void weights(unsigned w[LAYERS])
{
	for (int i = 0; i < LAYERS; i++)
		w[i] = born(8, "param");
}

static void growing(void)
{
	unsigned w[LAYERS];

	weights(w);
	for (unsigned n = 0; n < ITERATIONS; n++)
		network(n, w, 4 + n / 5);
}

static void buckets(void)
{
	unsigned w[LAYERS];

	weights(w);
	for (unsigned n = 0; n < ITERATIONS; n++)
		network(n, w, 6 + 6 * draw(4));
}

/* Two kinds of iterations, for too short a time to learn that they alternate. */
static void alternating(void)
{
	unsigned w[LAYERS], v[LAYERS], x;

	weights(w);
	weights(v);
	x = born(8, "input");
	for (unsigned n = 0; n < 6; n++) {
		if (n % 2 == 0) {
			network(n, w, 16);
			continue;
		}
		iteration(n);
		for (int i = 0; i < LAYERS; i++)
			op("other", v[i], x, 1500);
		op("sum", w[0], x, 500);
	}
}

static void random_access(void)
{
	unsigned t[48], x;

	for (int i = 0; i < 48; i++)
		t[i] = born(8, "other");
	x = born(2, "other");
	for (unsigned n = 0; n < ITERATIONS; n++) {
		iteration(n);
		for (int i = 0; i < 20; i++)
			op("visit", t[draw(48)], x, 500);
	}
}

/* --- comparison --------------------------------------------------------------------------------------------------- */

/* ns of all iterations. */
static double played(const struct um_trace *t, struct um_play_options *o, enum um_play_strategy strategy)
{
	struct um_play_result r;
	double sum = 0;

	o->strategy = strategy;
	if (um_play(t, o, &r))
		tap_bail("cannot play");
	for (size_t i = 0; i < r.iterations.n; i++)
		sum += (double)r.iterations.at[i].ns;
	um_play_result_fini(&r);
	return sum;
}

/* The time of prefetch-on-use, as a multiple of that of lookahead. */
static double compare(const char *name, const struct um_trace *t, const char *profile, double ratio, double most)
{
	struct um_play_options o = {.profile = um_profile_find(profile), .iterations = ITERATIONS};
	double driver, on_use, lookahead;

	if (!strcmp(name, "alternating"))
		o.iterations = 6;
	o.budget = (uint64_t)((double)um_trace_peak_bytes(t) / ratio) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	driver = played(t, &o, UM_PLAY_ON_DEMAND);
	on_use = played(t, &o, UM_PLAY_PREFETCH_ON_USE);
	lookahead = played(t, &o, UM_PLAY_LOOKAHEAD);
	ok(lookahead <= most * (driver < on_use ? driver : on_use),
	   "%s, %s, %.1fx: all iterations take at most %.2f times the faster baseline (on-demand %.3f, "
	   "prefetch-on-use %.3f)",
	   name, profile, ratio, most, lookahead / driver, lookahead / on_use);
	return on_use / lookahead;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*write)(void);
		double most, gain; /* gain: geometric mean of the times of prefetch-on-use by those of lookahead */
	} programs[] = {
		{"routing", routing, 1, 1.15},	      {"sampling", sampling, 1, 1.15},
		{"growing", growing, 1, 1.05},	      {"buckets", buckets, 1, 1.06},
		{"alternating", alternating, 1, 1.1}, {"random access", random_access, 1, 1.15},
	};

	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		struct um_diag diag;
		struct um_trace *t;
		double log_sum = 0;

		memset(&out, 0, sizeof out);
		out.seed = 5;
		line("{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"%s\"}\n", programs[i].name);
		programs[i].write();
		um_diag_init(&diag, programs[i].name);
		if (um_trace_load_mem(&t, out.text, out.n, &diag))
			tap_bail("the trace is not accepted");
		for (int k = 0; k < 4; k++)
			log_sum += log(compare(programs[i].name, t, k % 2 ? "h100" : "v100", k < 2 ? 1.5 : 2,
					       programs[i].most));
		um_trace_free(t);
		ok(exp(log_sum / 4) >= programs[i].gain,
		   "%s: prefetch-on-use takes at least %.2f times as long by geometric mean (%.3f)", programs[i].name,
		   programs[i].gain, exp(log_sum / 4));
	}
	return tap_done();
}
