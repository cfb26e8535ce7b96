/* SPDX-License-Identifier: Apache-2.0
 *
 * Periods in sequences of ops, one letter each.
 */
#include "learn/op_period.h"

#include "fixture/random.h"
#include "tap.h"

#include <string.h>

#define NEW UINT32_MAX

/* A program: ops by letter. An upper-case op uses what was last used a whole step before. */
struct play {
	struct um_op_period p;
	uint64_t live, born;
	uint32_t reuse_distance; /* of an upper-case op */
	unsigned found, last, begins, given_up; /* answers */
	uint64_t n, found_at, begins_at;
	uint32_t length; /* of the period found last */
	int refuse;
};

static void answer(struct play *t, enum um_op_period_step step)
{
	if (step == UM_OP_PERIOD_FOUND && t->refuse) {
		step = um_op_period_refuse(&t->p);
	} else if (step == UM_OP_PERIOD_FOUND && !t->p.start_known && t->p.due_first) {
		t->p.start_known = 1;
		um_op_period_wait(&t->p, t->p.due_first);
	} else if (step == UM_OP_PERIOD_FOUND) {
		t->found++;
		t->found_at = t->n;
		t->length = um_op_period_due(&t->p);
		um_op_period_accept(&t->p);
	}
	t->last += step == UM_OP_PERIOD_LAST;
	t->given_up += step == UM_OP_PERIOD_GIVEN_UP;
	if (step == UM_OP_PERIOD_BEGINS) {
		t->begins++;
		t->begins_at = t->n - 1;
	}
}

static void feed_key(struct play *t, uint64_t key, uint32_t reuse_distance)
{
	struct um_op_trait op = {
		.key = key * 0x9e3779b97f4a7c15ull, .live = t->live, .born = t->born, .reuse_distance = reuse_distance};
	enum um_op_period_step step = um_op_period_feed(&t->p, &op);

	t->n++;
	answer(t, step);
}

static void feed(struct play *t, const char *ops, unsigned times)
{
	while (times--)
		for (const char *c = ops; *c; c++)
			feed_key(t, (uint64_t)*c, *c >= 'A' && *c <= 'Z' ? t->reuse_distance : 1);
}

static void begin(struct play *t)
{
	memset(t, 0, sizeof *t);
	um_op_period_init(&t->p);
	t->reuse_distance = 1;
}

/* Twenty ops that differ. */
static const char step[] = "abcdefghijklmnopqrst";

static void simple(void)
{
	struct play t;

	begin(&t);
	feed(&t, "0123456", 1);
	feed(&t, step, 10);
	ok(t.found == 1 && t.length == 20, "a period is found once, with its length");
	is_u64(t.found_at, 7 + 3 * 20, "it is found when three periods of twenty ops are over: 48 ops are alike");
	is_u64(t.last, 7, "each later iteration has a last op");
	um_op_period_fini(&t.p);
}

static void two_periods(void)
{
	struct play t;
	char ops[101];

	for (int i = 0; i < 100; i++)
		ops[i] = (char)(' ' + i % 95);
	ops[98] = ops[97] = ops[96] = ops[95] = '!';
	ops[100] = 0;
	begin(&t);
	feed(&t, ops, 2);
	ok(t.found == 1 && t.length == 100 && t.found_at == 200, "two long periods are enough");
	um_op_period_fini(&t.p);
}

static void nothing_repeats(void)
{
	uint64_t seed = 1;
	struct play t;

	begin(&t);
	for (int i = 0; i < 300000; i++)
		feed_key(&t, test_random64(&seed), 1);
	is_u64(t.found, 0, "no period is found in 300,000 ops that differ");
	ok(t.p.room <= 2 * UM_OP_PERIOD_MOST, "memory is bounded");
	um_op_period_fini(&t.p);
}

static void few_kinds(void)
{
	uint64_t seed = 2;
	struct play t;

	begin(&t);
	for (int i = 0; i < 300000; i++)
		feed_key(&t, 1 + test_random(&seed, 3), 1);
	is_u64(t.found, 0, "no period is found in a random sequence of three kinds of ops");
	um_op_period_fini(&t.p);
}

/* Layers are alike, and use tensors that the layer before did not. */
static void layers(void)
{
	struct play t;

	begin(&t);
	t.reuse_distance = 1000;
	for (int i = 0; i < 2; i++) {
		feed(&t, "0", 1);
		feed(&t, "Mnop", 30);
		is_u64(t.found, 0, "a loop over layers is no period (%d)", i);
		feed(&t, "Qrst", 30);
	}
	um_op_period_fini(&t.p);
}

static void collects(void)
{
	struct play t;

	begin(&t);
	for (int i = 0; i < 100; i++) {
		feed(&t, "mnopq", 1);
		t.live += 100;
		t.born += 300;
	}
	is_u64(t.found, 0, "a loop that leaves a third of what it makes is no period");
	for (int i = 0; i < 100; i++) {
		feed(&t, "mnopq", 1);
		t.born += 300;
	}
	is_u64(t.length, 5, "the same ops are a period where they leave nothing");
	um_op_period_fini(&t.p);
}

/* Slabs are alike, and each comes once in a step. */
static void slabs(void)
{
	struct play t;

	begin(&t);
	t.reuse_distance = 12;
	feed(&t, "S", 100);
	is_u64(t.length, 12, "equal ops make up a period in which all is used again");
	um_op_period_fini(&t.p);
}

static void nested(void)
{
	struct play t;

	begin(&t);
	for (int i = 0; i < 8; i++) {
		feed(&t, "01234567", 1);
		feed(&t, "mnopq", 20);
		if (i == 0)
			is_u64(t.length, 5, "an inner loop is found first");
	}
	is_u64(t.length, 108, "the loop around it takes its place");
	is_u64(t.found, 2, "the outer loop is found once");
	um_op_period_fini(&t.p);
}

static void odd_ops(void)
{
	struct play t;

	begin(&t);
	feed(&t, step, 5);
	t.last = 0;
	feed(&t, "abcdefg!hijklmnopqrst", 1);
	ok(t.last == 1 && !t.given_up, "an op within an iteration does not end it");
	feed(&t, "abcdefgklmnopqrst", 1);
	is_u64(t.last, 2, "an iteration without three of its ops ends where others do");
	feed(&t, "!!!!", 1);
	feed(&t, "a", 1);
	ok(t.begins == 1 && t.begins_at == t.n - 1, "after ops between iterations the next one begins with its first");
	feed(&t, step + 1, 1);
	is_u64(t.last, 3, "it ends where others do");
	feed(&t, "abcde", 1);
	feed(&t, step, 1);
	is_u64(t.begins, 2, "after an iteration that stopped short the next one begins with its first op");
	is_u64(t.found, 1, "the period is not searched again");
	um_op_period_fini(&t.p);
}

static void ends(void)
{
	struct play t;

	begin(&t);
	feed(&t, step, 5);
	feed(&t, "0123456789", 60);
	is_u64(t.length, 10, "another period that holds takes the place of one that is lost");
	for (unsigned i = 0; i < 400; i++)
		feed_key(&t, 1000 + i, 1);
	is_u64(t.given_up, 1, "a period without its ops is given up");
	is_u64(um_op_period_length(&t.p), 0, "nothing is followed then");
	um_op_period_fini(&t.p);
}

static void refused(void)
{
	struct play t;

	begin(&t);
	t.refuse = 1;
	feed(&t, step, 50);
	is_u64(um_op_period_length(&t.p), 0, "a period that is refused is not followed");
	t.refuse = 0;
	feed(&t, step, 50);
	is_u64(t.length, 20, "it is proposed again later");
	um_op_period_fini(&t.p);
}

static void waits(void)
{
	struct play t;

	begin(&t);
	while (!um_op_period_due(&t.p)) {
		struct um_op_trait op = {.key = (uint64_t)step[t.n++ % 20], .reuse_distance = 1};

		um_op_period_feed(&t.p, &op);
	}
	um_op_period_wait(&t.p, 3);
	t.n = t.n % 20;
	for (int i = 1; i <= 3; i++) {
		struct um_op_trait op = {.key = (uint64_t)step[t.n++ % 20], .reuse_distance = 1};

		is_int(um_op_period_feed(&t.p, &op) == UM_OP_PERIOD_FOUND, i == 3, "op %d of three is waited for", i);
	}
	um_op_period_fini(&t.p);
}

static void lengthened(void)
{
	struct um_op_trait op = {.key = 7, .reuse_distance = 11};
	uint64_t asked = 0;
	struct play t;

	begin(&t);
	while (t.n < 200 && um_op_period_due(&t.p) != 12) {
		enum um_op_period_step answered = um_op_period_feed(&t.p, &op);

		t.n++;
		if (answered != UM_OP_PERIOD_FOUND || um_op_period_due(&t.p) != 11)
			continue;
		is_u64(asked, 0, "the shorter period is proposed once");
		is_u64(um_op_period_unit(&t.p), 1, "equal ops repeat after one op");
		is_int(um_op_period_lengthen(&t.p, 12, 5), UM_OP_PERIOD_GOES_ON, "no period is followed");
		asked = t.n;
	}
	is_u64(t.n - asked, 5, "a longer period is proposed after as many ops as the caller asked for");
	um_op_period_accept(&t.p);
	is_u64(um_op_period_length(&t.p), 12, "it is followed");
	um_op_period_fini(&t.p);
}

int main(void)
{
	simple();
	two_periods();
	nothing_repeats();
	few_kinds();
	layers();
	collects();
	slabs();
	nested();
	odd_ops();
	ends();
	refused();
	waits();
	lengthened();
	return tap_done();
}
