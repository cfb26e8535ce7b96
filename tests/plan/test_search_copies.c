/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans for fields with two buffers each, which steps overwrite in turn, beside matrices that are only read.
 */
#include "fixture/plan_fixture.h"
#include "tap.h"

#define FIELDS 20
#define MATRICES 24
#define BYTES (4 * FX_MIB)
#define STEPS 4

struct schedule {
	struct um_schedule s;
	int declared; /* the program declares dead what a step has read */
};

static void make(struct schedule *x)
{
	uint32_t field[2][FIELDS], matrix[MATRICES];
	char uses[64];

	for (int i = 0; i < FIELDS; i++)
		for (int k = 0; k < 2; k++)
			field[k][i] = fx_slot(&x->s, BYTES, -1, -1);
	for (int i = 0; i < MATRICES; i++)
		matrix[i] = fx_slot(&x->s, BYTES, -1, -1);
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < FIELDS; i++) {
			int32_t op;

			snprintf(uses, sizeof uses, "r%u w%u", field[step % 2][i], field[!(step % 2)][i]);
			op = fx_op(&x->s, "step", FX_MIB / 4, uses);
			x->s.uses.at[x->s.ops.at[op].first_use].dead_after = (uint8_t)x->declared;
		}
	}
	for (int i = 0; i < MATRICES; i++) {
		snprintf(uses, sizeof uses, "r%u u%u", matrix[i], field[0][i % FIELDS]);
		fx_op(&x->s, "solve", FX_MIB / 4, uses);
	}
}

static uint64_t discarded(const struct um_plan *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->hints.n; i++)
		sum += p->hints.at[i].kind == UM_HINT_DISCARD ? p->hints.at[i].bytes : 0;
	return sum;
}

static int rehearsals;

/* The library copies what it may not discard: a byte a nanosecond. */
static int with_copies(void *user, const struct um_plan *p, uint64_t *ns)
{
	const struct schedule *x = user;

	rehearsals++;
	*ns = p->predicted_ns + (x->declared ? 0 : discarded(p));
	return 0;
}

/* The plan's time with copies, and the bytes that it discards. */
static uint64_t make_plan(struct schedule *x, int rehearsed, uint64_t *bytes)
{
	struct um_plan_rehearsal rehearsal = {.ns = with_copies, .user = x};
	struct um_plan_request r = fx_request(&x->s, fx_peak(&x->s) / 3 * 2);
	struct um_plan_figures f = {0};
	struct um_plan p;
	uint64_t ns = 0;

	rehearsals = 0;
	r.rehearsal = rehearsed ? &rehearsal : NULL;
	is_int(fx_build(&r, &p, &f, NULL), 0, "a plan %s rehearsals is sound", rehearsed ? "with" : "without");
	is_int(p.predicted_ns, f.ns, "its prediction is the time of its proof");
	*bytes = discarded(&p);
	ns = p.predicted_ns + (x->declared ? 0 : *bytes);
	um_plan_fini(&p);
	return ns;
}

int main(void)
{
	struct schedule twice = {0}, dead = {.declared = 1};
	uint64_t bytes[2], ns[2];

	make(&twice);
	for (int i = 0; i < 2; i++)
		ns[i] = make_plan(&twice, i, &bytes[i]);
	diag("%" PRIu64 " ns, %" PRIu64 " bytes discarded; without rehearsals %" PRIu64 ", %" PRIu64, ns[1], bytes[1],
	     ns[0], bytes[0]);
	ok(bytes[1] < bytes[0] / 2,
	   "less than half of the content that steps overwrite leaves, where that takes copies");
	ok(ns[1] < ns[0] / 3 * 2, "with these copies the plan takes less than two thirds of the time");
	um_schedule_fini(&twice.s);

	make(&dead);
	for (int i = 0; i < 2; i++)
		ns[i] = make_plan(&dead, i, &bytes[i]);
	ok(bytes[1] > bytes[0] / 10 * 9, "content that the program declares dead is discarded nevertheless");
	ok(ns[1] <= ns[0] + ns[0] / 10, "and the plan is no slower");
	um_schedule_fini(&dead.s);
	return tap_done();
}
