/* SPDX-License-Identifier: Apache-2.0
 *
 * AutoSwap on cases worked by hand. A byte is a nanosecond on the link, a slot a block, unless said; U is the time that
 * one block takes on the link.
 */
#include "plan/link_booking.h"
#include "plan/scores.h"
#include "scheme_case.h"

#define U ((uint64_t)UM_BLOCK_BYTES)

/* Slot 0 is absent in ops 1 .. 6, 1 in 2 .. 5, 2 in 3 and 4, 3 never; ops of 1 U, but the one in the middle of 4. */
static void nest(struct um_schedule *s)
{
	static const char *const use[] = {"u0", "u1", "u2", "u3", "u3", "u2", "u1", "u0"};

	for (int i = 0; i < 4; i++)
		fx_slot(s, B, i, 8 - i);
	for (int i = 0; i < 8; i++)
		fx_op(s, "op", i == 3 ? 4 * U : U, use[i]);
}

/* The loads at the ops are 1 2 3 4 4 3 2 1. */
static void scores(void)
{
	struct um_schedule s = {0};
	struct scheme_case x;
	struct um_swaps w;
	struct um_scores c;
	const double *doa, *aoa, *wdoa, *swdoa;

	nest(&s);
	scheme_case_init(&x, &s, 3);
	is_int(um_swaps_build(&w, &x.s, x.keep_resident), 0, "absences of the schedule are found");
	is_int(um_scores_build(&c, UM_SCORES_ALL, &w, &x.s, &x.a.choice.load), 0,
	       "absences of the schedule get scores");
	doa = c.of[UM_SCORE_DOA];
	aoa = c.of[UM_SCORE_AOA];
	wdoa = c.of[UM_SCORE_WDOA];
	swdoa = c.of[UM_SCORE_SWDOA];
	is_u64(w.n, 3, "three tensors are absent, each once");
	ok(w.at[0].from == 1 && w.at[0].to == 7 && w.at[2].from == 3 && w.at[2].to == 5,
	   "an absence lasts from use to use");
	ok(doa[0] == 7.0 * U && doa[1] == 5.0 * U && doa[2] == 3.0 * U, "DOA: 9, 7 and 5 less 2 for copies");
	ok(aoa[0] == doa[0] * B && aoa[2] == doa[2] * B, "AOA is DOA times the size");
	ok(wdoa[0] == 30.0 * U && wdoa[1] == 26.0 * U && wdoa[2] == 20.0 * U,
	   "WDOA: loads of 2 3 4 4 3 2 for 1 1 4 1 1 1: %.1f %.1f %.1f", wdoa[0] / U, wdoa[1] / U, wdoa[2] / U);
	ok(swdoa[0] == 30.0 * U && swdoa[1] == 19.0 * U && swdoa[2] == 10.0 * U,
	   "SWDOA excludes chosen ones: %.1f %.1f %.1f", swdoa[0] / U, swdoa[1] / U, swdoa[2] / U);
	um_scores_standardise(&c, w.n);
	ok(doa[0] > 1.22 && doa[0] < 1.23 && doa[2] < -1.22, "standardised scores are 1.22, 0 and -1.22");
	um_scores_fini(&c);
	um_swaps_fini(&w);
	scheme_case_fini(&x);
	um_schedule_fini(&s);
}

/* Absences shorter than their copies: the larger tensor is the lesser evil. */
static void negative(void)
{
	struct um_schedule s = {0};
	struct scheme_case x;
	struct um_swaps w;
	struct um_scores c;

	fx_slot(&s, B, 0, 3);
	fx_slot(&s, 4 * B, 1, 4);
	fx_op(&s, "op", U, "u0");
	fx_op(&s, "op", U, "u1");
	fx_op(&s, "op", U, "u0");
	fx_op(&s, "op", U, "u1");
	fx_op(&s, "last", U, "");
	scheme_case_init(&x, &s, 5);
	is_int(um_swaps_build(&w, &x.s, x.keep_resident), 0, "short absences of the schedule are found");
	is_int(um_scores_build(&c, UM_SCORES_ALL, &w, &x.s, &x.a.choice.load), 0, "short absences get scores");
	is_u64(w.n, 2, "two short absences are left");
	ok(c.of[UM_SCORE_DOA][0] == -1.0 * U && c.of[UM_SCORE_DOA][1] == -7.0 * U, "DOA of short absences is negative");
	ok(c.of[UM_SCORE_AOA][0] == -1.0 && c.of[UM_SCORE_AOA][1] == -7.0 / 4,
	   "AOA divides negative scores by the size");
	um_scores_fini(&c);
	um_swaps_fini(&w);
	scheme_case_fini(&x);
	um_schedule_fini(&s);
}

/* Limits of 3 and 2 blocks: by score, until the peak is below. */
static void stick_to_limit(void)
{
	static const char *const names[] = {"autoswap", "autoswap-doa", "autoswap-aoa", "autoswap-wdoa",
					    "autoswap-swdoa"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct um_schedule s = {0};
		struct scheme_plan p;

		nest(&s);
		is_int(scheme_plan(&p, &s, names[i], 3 * B), 0, "%s: a limit below the peak gets a plan", names[i]);
		ok(scheme_leaves(&p, 0) && !scheme_leaves(&p, 1) && !scheme_leaves(&p, 2) && !scheme_leaves(&p, 3),
		   "the one with the highest score leaves");
		is_u64(p.f.stall_ns, 0, "the swaps delay no op");
		is_u64((uint64_t)scheme_returns_after(&p, 0), 5, "it comes back just in time");
		scheme_plan_fini(&p);
		is_int(scheme_plan(&p, &s, names[i], 2 * B), 0, "%s: a lower limit gets a plan", names[i]);
		ok(scheme_leaves(&p, 0) && scheme_leaves(&p, 1) && !scheme_leaves(&p, 2), "the two best leave");
		scheme_plan_fini(&p);
		is_int(scheme_plan(&p, &s, names[i], 4 * B), 0, "a schedule that fits gets a plan");
		is_u64(p.f.d2h_bytes + p.f.h2d_bytes, 0, "a schedule that fits moves nothing");
		scheme_plan_fini(&p);
		um_schedule_fini(&s);
	}
}

/* Slot 0 is copied out in op 1 and back in op 6, 1 in 2 and 5, so both are gone in 3 and 4; slot 2 would be copied out
 * in 3 and back in 4: gone for nothing. */
static void no_overhead(void)
{
	struct um_schedule s = {0};
	struct scheme_plan p;
	struct scheme_case x;
	struct um_swaps w;
	uint32_t order[] = {0, 1, 2};
	int32_t most = 0;

	nest(&s);
	scheme_case_init(&x, &s, 1);
	is_int(um_swaps_build(&w, &x.s, x.keep_resident), 0, "swaps without overhead are found");
	is_int(um_link_booking_choose(&w, &x.s, order, 1, &x.a, &most), 0, "swaps without overhead are booked");
	is_int(most, 2, "the load comes down to two blocks");
	is_int(um_load_at(&x.a.choice.load, 3), 2, "two are away in the middle");
	ok(x.a.not_before[w.visit[w.at[0].first]] == 6 && x.a.not_before[w.visit[w.at[1].first]] == 5,
	   "copies back end with the gap");
	um_swaps_fini(&w);
	scheme_case_fini(&x);
	is_int(scheme_plan(&p, &s, "autoswap-no-overhead", 2 * B), 0, "a plan for that");
	is_u64(p.f.stall_ns, 0, "swaps without overhead delay no op");
	scheme_plan_fini(&p);
	is_int(scheme_plan(&p, &s, "autoswap-no-overhead", B), -E2BIG, "a smaller limit gets no plan");
	is_str(p.why, "autoswap without overhead: the lowest load is 4 MiB, above the budget of 2 MiB",
	       "the plan says how far the memory comes down");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

/* Values of a bowl; the four corners first. */
static void bayes(void)
{
	struct um_bayes y = {.n = 0};
	double at[UM_BAYES_DIMS], first = 0;

	for (int i = 0; i < 34; i++) {
		static const double centre[] = {0.3, -0.4, 0.5, -0.2};
		double value = 0;

		if (i < UM_BAYES_DIMS) {
			memset(at, 0, sizeof at);
			at[i] = 1;
		} else {
			um_bayes_next(&y, at);
		}
		for (int k = 0; k < UM_BAYES_DIMS; k++)
			value += (at[k] - centre[k]) * (at[k] - centre[k]);
		um_bayes_add(&y, at, value);
		if (i == 3)
			first = y.value[um_bayes_best(&y)];
	}
	ok(first > 0.5 && y.value[um_bayes_best(&y)] < 0.1, "30 questions lower the cost from %.3f to %.3f", first,
	   y.value[um_bayes_best(&y)]);
}

int main(void)
{
	scores();
	negative();
	stick_to_limit();
	no_overhead();
	bayes();
	scheme_recorded("autoswap-doa");
	scheme_recorded("autoswap-aoa");
	scheme_recorded("autoswap-wdoa");
	scheme_recorded("autoswap-swdoa");
	return tap_done();
}
