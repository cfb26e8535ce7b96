/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterations in sequences of kernels that were made by hand: a letter is a kernel, and each is cut where it is known
 * to begin.
 */
#include "report/period.h"
#include "fixture/random.h"
#include "tap.h"

#include <stdio.h>

#define KERNELS_MAX 8192
#define SPANS_MAX 512
#define NAMES_MAX 2048 /* letters, and more */

/* A sequence, and where its iterations truly are. */
static struct {
	uint32_t names[KERNELS_MAX];
	float ns[KERNELS_MAX];
	unsigned char alone[NAMES_MAX];
	size_t n;
	struct um_period_span spans[SPANS_MAX];
	size_t n_spans;
} made;

static void begin(void)
{
	memset(&made, 0, sizeof made);
}

static void kernels(const char *letters)
{
	for (; *letters; letters++) {
		made.ns[made.n] = 10;
		made.names[made.n++] = (unsigned char)*letters;
	}
}

static void times(const char *letters, int n)
{
	while (n--)
		kernels(letters);
}

static void open_iteration(void)
{
	made.spans[made.n_spans++] = (struct um_period_span){made.n, 0, 1};
}

static void close_iteration(void)
{
	made.spans[made.n_spans - 1].to = made.n;
}

static void iteration(const char *letters)
{
	open_iteration();
	kernels(letters);
	close_iteration();
}

static struct um_period find(void)
{
	struct um_period p;

	if (um_period_find(&p, made.names, made.ns, made.n, made.alone, NAMES_MAX))
		tap_bail("no memory");
	return p;
}

static int same(const struct um_period *p)
{
	int ok = p->spans.n == made.n_spans;

	for (size_t i = 0; i < p->spans.n && i < made.n_spans; i++)
		ok &= p->spans.at[i].from == made.spans[i].from && p->spans.at[i].to == made.spans[i].to &&
		      p->spans.at[i].whole == made.spans[i].whole;
	for (size_t i = 0; !ok && i < 8; i++)
		diag("found %zu to %zu, true %zu to %zu", i < p->spans.n ? p->spans.at[i].from : 0,
		     i < p->spans.n ? p->spans.at[i].to : 0, made.spans[i].from, made.spans[i].to);
	return ok;
}

static void found(const char *what, size_t usual, enum um_period_trust trust)
{
	struct um_period p = find();

	ok(same(&p), "%s: where iterations are", what);
	if (!ok(p.kernels == usual && p.trust == trust, "%s: how long, and how sure that is", what))
		diag("%zu kernels, confidence %s, other %zu", p.kernels, um_period_trust_name(p.trust), p.other);
	um_period_fini(&p);
}

static uint64_t seed = 20261122;

static unsigned draw(unsigned below)
{
	return test_random(&seed, below);
}

/* --- where it is plain -------------------------------------------------------------------------------------------- */

static void plain(void)
{
	begin();
	for (int i = 0; i < 10; i++)
		iteration("abcdef");
	found("nothing else", 6, UM_TRUST_HIGH);

	begin();
	times("i", 40);
	for (int i = 0; i < 10; i++)
		iteration("abcdef");
	kernels("xyz");
	found("a prologue and an epilogue", 6, UM_TRUST_HIGH);

	begin();
	for (int i = 0; i < 3; i++)
		iteration("abcdefghij");
	found("three", 10, UM_TRUST_MEDIUM);
}

static void odd(void)
{
	begin();
	times("i", 7);
	iteration("abcdefghijABCDEFGH");
	for (int i = 0; i < 9; i++)
		iteration("abcdefghijAmBmCmDmEmFmGmHm");
	found("a first one that is shorter", 26, UM_TRUST_HIGH);

	begin();
	times("i", 7);
	iteration("abcdefghijzAzBzCzDzEzFzGzH");
	for (int i = 0; i < 9; i++)
		iteration("abcdefghijABCDEFGH");
	found("or longer", 18, UM_TRUST_HIGH);

	begin();
	times("i", 7);
	iteration("abdefghijABCDEFGHklmno");
	for (int i = 0; i < 9; i++)
		iteration("abzzzzzdefghijABCDEFGHklmno");
	found("one that lacks kernels at its beginning", 27, UM_TRUST_HIGH);

	begin();
	for (int i = 0; i < 24; i++) {
		open_iteration();
		kernels("abcdefghijklm");
		if (i % 5 == 3)
			kernels(i % 2 ? "u" : "v");
		kernels("nopqrstuv");
		close_iteration();
	}
	found("a kernel more now and then", 22, UM_TRUST_HIGH);

	begin();
	times("a", 15);
	iteration("aadefghijABCDEFGHklmno");
	for (int i = 0; i < 9; i++)
		iteration("aazzzzzdefghijABCDEFGHklmno");
	found("and begins as what was before it", 27, UM_TRUST_HIGH);

	begin();
	kernels("xyz");
	for (int i = 0; i < 9; i++)
		iteration("abcdefghijklmnop");
	iteration("abcdefghijkl");
	made.spans[made.n_spans - 1].whole = 0;
	found("recording ended in the last one", 16, UM_TRUST_MEDIUM);
}

/* --- other things between, and inside ----------------------------------------------------------------------------- */

#define FORWARD "abcdefghijkl"
#define BACKWARD "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static void evaluations(void)
{
	begin();
	for (int i = 1; i <= 20; i++) {
		iteration(FORWARD BACKWARD);
		if (i % 5 == 0)
			times(FORWARD, 3);
	}
	found("an evaluation after each fifth", 38, UM_TRUST_MEDIUM);

	begin();
	for (int i = 1; i <= 20; i++) {
		iteration(FORWARD BACKWARD);
		if (i % 5 == 0)
			kernels("0123456789");
	}
	found("of other kernels", 38, UM_TRUST_MEDIUM);

	begin();
	times("0123456789", 2);
	times(FORWARD, 2);
	for (int i = 1; i <= 20; i++)
		iteration(FORWARD BACKWARD);
	times(FORWARD, 2);
	found("before all and behind all", 38, UM_TRUST_MEDIUM);
}

static void loops(void)
{
	begin();
	for (int i = 0; i < 8; i++) {
		open_iteration();
		kernels("ab");
		times("cdefg", 12);
		kernels("hij");
		close_iteration();
	}
	found("layers", 65, UM_TRUST_MEDIUM);

	begin();
	for (int i = 0; i < 8; i++) {
		open_iteration();
		kernels("a");
		times("cdefghij", 96);
		kernels("xyz");
		close_iteration();
	}
	found("layers with hardly anything around them", 772, UM_TRUST_MEDIUM);

	begin();
	times("i", 20);
	for (int i = 0; i < 12; i++) {
		open_iteration();
		times("s", 16);
		kernels("daahddcxk");
		close_iteration();
	}
	found("one kernel over and over", 25, UM_TRUST_HIGH);

	begin();
	for (int i = 0; i < 12; i++) {
		open_iteration();
		kernels("abcdefgh");
		kernels("abcdXYZh");
		close_iteration();
	}
	found("two phases that alternate", 16, UM_TRUST_HIGH);

	begin();
	for (int i = 0; i < 9; i++) {
		open_iteration();
		kernels("abcdefghijklmnopqrst");
		times("ABCDEFGHIJKL", 3);
		close_iteration();
	}
	found("what comes thrice in each, far from each other and near", 56, UM_TRUST_HIGH);
}

/* --- where nothing can be said ------------------------------------------------------------------------------------ */

/* Steps that take as many turns as they need: a turn is what repeats. */
static void solver(void)
{
	begin();
	times("i", 30);
	for (int i = 0; i < 40; i++) {
		kernels("ABC");
		for (unsigned turn = 0; turn < 5 + draw(11); turn++)
			iteration("abcdef");
		kernels("DE");
	}
	found("turns in steps of any length", 6, UM_TRUST_HIGH);
}

/* The recording begins and ends somewhere: it repeats, but where it begins is not known. */
static void cut_off(void)
{
	struct um_period p;

	begin();
	kernels("mnopqrstuvwxyz");
	times("abcdefghijklmnopqrstuvwxyz", 10);
	kernels("abcde");
	p = find();
	ok(p.kernels == 26 && p.trust == UM_TRUST_MEDIUM, "a recording cut off at both ends");
	um_period_fini(&p);
}

static void none(const char *what)
{
	struct um_period p = find();

	ok(p.spans.n == 0, "%s: nothing repeats", what);
	um_period_fini(&p);
}

static void nothing(void)
{
	begin();
	none("no kernel");
	kernels("a");
	none("a single one");
	kernels("b");
	none("two");
	begin();
	times("f", 48);
	times("s", 128);
	none("the same kernel over and over");
	begin();
	for (int i = 0; i < 2; i++)
		kernels("abcdefghijkl");
	none("twice");
	begin();
	for (int i = 0; i < 1000; i++)
		kernels((char[]){(char)(1 + draw(100)), 0});
	none("noise");
	begin();
	for (uint32_t i = 0; i < 1000; i++) {
		if (i == 500)
			times("abcdefghijkl", 8);
		made.ns[made.n] = 10;
		made.names[made.n++] = 256 + i;
	}
	none("a little that comes again in much that does not");
}

/* A kernel that says so is an iteration by itself. */
static void graphs(void)
{
	begin();
	kernels("abc");
	made.alone['G'] = 1;
	for (int i = 0; i < 10; i++)
		iteration("G");
	found("a graph each", 1, UM_TRUST_HIGH);
}

/* --- whatever comes ----------------------------------------------------------------------------------------------- */

/* Loops in loops, of few or many names, with kernels between that are there or not. */
static void anything(unsigned names, unsigned depth)
{
	unsigned turns = 1 + draw(depth ? 9 : 30), steps = 1 + draw(4);
	uint64_t body = seed;

	for (unsigned turn = 0; turn < turns; turn++) {
		if (draw(8))
			seed = body;
		for (unsigned i = 0; i < steps && made.n < KERNELS_MAX / 2; i++) {
			if (depth && draw(2))
				anything(names, depth - 1);
			else
				kernels((char[]){(char)(1 + draw(names)), 0});
		}
		seed += turn;
	}
}

static void whatever(void)
{
	unsigned bad = 0, repeats = 0, step = (unsigned)tap_step(10);

	for (unsigned run = 0; run < 400; run += step) {
		size_t over = 0;
		struct um_period p;

		begin();
		anything(1 + draw(12), 3);
		p = find();
		for (size_t i = 0; i < p.spans.n; i++) {
			bad += p.spans.at[i].from < over || p.spans.at[i].to <= p.spans.at[i].from;
			over = p.spans.at[i].to;
		}
		bad += over > made.n || p.covered < 0 || p.covered > 1.001 || (p.spans.n && p.spans.n < 3);
		repeats += p.spans.n != 0;
		um_period_fini(&p);
	}
	is_u64(bad, 0, "spans are in order, whatever comes");
	ok(repeats > 50 / step && repeats < 400 / step, "something repeats in some of it");
	diag("%u of %u", repeats, 400 / step);
}

int main(void)
{
	plain();
	odd();
	evaluations();
	loops();
	solver();
	cut_off();
	nothing();
	graphs();
	whatever();
	return tap_done();
}
