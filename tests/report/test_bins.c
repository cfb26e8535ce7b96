/* SPDX-License-Identifier: Apache-2.0
 *
 * Series in bins: whatever is added is there, to the byte, however often bins were joined; the views of a report have
 * the sums of its iterations; which blocks are in use.
 */
#include "report/bins.h"

#include "report/report.h"
#include "report/views.h"
#include "fixture/random.h"
#include "tap.h"

#define ROW UM_BINS_BUSY

static uint64_t state = 1;

static int64_t at(int64_t most)
{
	return (int64_t)(test_random64(&state) % (uint64_t)most) - most / 3;
}

static void test_sums(unsigned room, int64_t span)
{
	struct um_bins s, other;
	uint64_t sum = 0;
	int64_t first = INT64_MAX, last = INT64_MIN;

	if (um_bins_init(&s, room) || um_bins_init(&other, room))
		tap_bail("no memory");
	for (int i = 0; i < 3000; i++) {
		int64_t begin = at(span), end = begin + (int64_t)(test_random64(&state) % (uint64_t)(span / 50 + 2));
		uint64_t amount = 1 + test_random64(&state) % (1u << (test_random64(&state) % 31));

		um_bins_add(i % 3 ? &s : &other, ROW, begin, end, amount);
		sum += amount;
		first = begin < first ? begin : first;
		last = end - 1 > last ? end - 1 : last;
	}
	um_bins_join(&s, &other);
	is_u64(um_bins_total(&s, ROW), sum, "%u bins over %lld: nothing is lost", room, (long long)span);
	ok(s.n <= room && s.n > 1, "%u bins over %lld: their number stays limited, %u", room, (long long)span, s.n);
	ok(um_bins_at(&s, 0) <= first && um_bins_at(&s, s.n) > last, "%u bins over %lld: from the first to the last",
	   room, (long long)span);
	um_bins_fini(&s);
	um_bins_fini(&other);
}

static void test_ends(void)
{
	struct um_bins s;

	if (um_bins_init(&s, 4))
		tap_bail("no memory");
	um_bins_add(&s, ROW, INT64_MAX - 1, INT64_MAX, 7);
	um_bins_add(&s, ROW, INT64_MIN, INT64_MIN + 5, 9);
	um_bins_add(&s, ROW, INT64_MIN, INT64_MAX, 1000);
	is_u64(um_bins_total(&s, ROW), 1016, "the total covers all of time");
	ok(um_bins_at(&s, 0) == INT64_MIN && um_bins_at(&s, s.n) == INT64_MAX, "whose ends are theirs");
	um_bins_clear(&s);
	is_u64(um_bins_total(&s, ROW), 0, "a cleared series has no bytes");
	um_bins_add(&s, ROW, 100, 104, 8);
	ok(s.n == 4 && s.at[0].sum[ROW] == 2 && s.at[3].sum[ROW] == 2, "an amount is spread evenly over bins of 1 ns");
	um_bins_add(&s, ROW, 96, 97, 1);
	ok(s.n == 4 && um_bins_at(&s, 0) == 96 && um_bins_at(&s, 1) == 100 - 2, "bins are joined in pairs on one grid");
	um_bins_fini(&s);
}

static void test_levels(void)
{
	struct um_bins s, later;

	if (um_bins_init(&s, 2) || um_bins_init(&later, 2))
		tap_bail("no memory");
	um_bins_level(&s, 0, 5);
	um_bins_level(&s, 0, 9);
	um_bins_level(&s, 0, 3);
	ok(s.at[0].most == 9 && s.at[0].last == 3, "the highest level, and the last");
	um_bins_level(&s, 3, 1);
	ok(s.n == 2 && s.at[0].most == 9 && s.at[0].last == 3 && s.at[1].last == 1,
	   "levels hold in bins that were joined");
	um_bins_level(&later, 3, 4);
	um_bins_join(&s, &later);
	ok(s.at[1].most == 4 && s.at[1].last == 4, "levels of another series are joined");
	um_bins_fini(&s);
	um_bins_fini(&later);
}

/* --- views -------------------------------------------------------------------------------------------------------- */

static void feed(struct um_report *r, struct um_activity a)
{
	a.process = 1;
	if (um_activity_feed(&r->sink, &a))
		tap_bail("no memory");
}

/* An iteration of two kernels; the first faults, and between them something is prefetched. */
static void iteration(struct um_report *r, int64_t t, int64_t takes, uint64_t n)
{
	feed(r, (struct um_activity){
			.kind = UM_ACT_RANGE, .begin = t, .end = t + takes, .name = "i", .domain = "umadvise"});
	for (uint64_t k = 0; k < 2; k++) {
		int64_t begin = t + (int64_t)k * takes / 2;

		feed(r, (struct um_activity){.kind = UM_ACT_CALL,
					     .begin = begin,
					     .end = begin,
					     .name = "launch",
					     .correlation = 2 * n + k + 1});
		feed(r, (struct um_activity){.kind = UM_ACT_KERNEL,
					     .begin = begin,
					     .end = begin + takes / 4,
					     .name = "k",
					     .correlation = 2 * n + k + 1});
		if (!k)
			feed(r, (struct um_activity){.kind = UM_ACT_GPU_FAULT,
						     .begin = begin,
						     .end = begin + 1,
						     .address = 1 << 21,
						     .faults = 3});
		feed(r, (struct um_activity){.kind = UM_ACT_MIGRATION,
					     .begin = begin + (k ? 0 : takes / 3),
					     .end = begin + takes,
					     .address = (1 + k) << 21,
					     .bytes = 65537 + n,
					     .dir = UM_DIR_H2D,
					     .cause = k ? UM_CAUSE_DEMAND : UM_CAUSE_PREFETCH});
	}
	feed(r,
	     (struct um_activity){.kind = UM_ACT_CPU_FAULT, .begin = t + takes - 1, .end = t + takes - 1, .faults = 2});
}

static int same(const struct um_bins *s, const struct um_report_sums *sums)
{
	int good = um_bins_total(s, UM_BINS_FAULTS) == sums->work.faults &&
		   um_bins_total(s, UM_BINS_CPU_FAULTS) == sums->cpu_faults &&
		   um_bins_total(s, UM_BINS_BUSY) == sums->work.ns;

	for (int dir = 0; dir <= UM_DIR_D2D; dir++)
		for (int cause = 0; cause < UM_CAUSES; cause++)
			good &= um_bins_total(s, UM_BINS_MOVED(dir, cause)) == sums->moves[dir][cause].bytes;
	return good;
}

static void test_views(unsigned n)
{
	const struct um_view *chosen[UM_VIEW_ROLES];
	enum um_view_role roles[UM_VIEW_ROLES];
	struct um_report r;
	unsigned bad = 0;
	int64_t t = 1000;

	um_report_init(&r, &(struct um_report_options){.views = 1});
	for (unsigned i = 0; i < n; i++) {
		/* The second half is a little slower, one is slow. */
		int64_t takes = i == n / 2 + 1 ? 9000 : i < n / 2 ? 1000 : 1200;

		iteration(&r, t, takes, i);
		t += takes;
	}
	if (um_report_finish(&r))
		tap_bail("no memory");
	is_u64(r.iterations.n, n, "the report has %u iterations", n);
	ok(same(&r.views.all, &r.all), "%u iterations: the whole run has the sums of all", n);
	ok(r.views.of.n <= UM_VIEWS_KEPT + 3, "%u iterations: few are kept, %zu", n, r.views.of.n);
	for (size_t i = 0; i < r.views.of.n; i++)
		bad += !same(&r.views.of.at[i].series, &r.iterations.at[r.views.of.at[i].iteration].sums);
	is_u64(bad, 0, "%u iterations: and each that is kept has its own", n);
	is_u64(um_views_choose(&r, chosen, roles), 3, "%u iterations: three are looked at", n);
	ok(chosen[0]->iteration == 0 && roles[0] == UM_VIEW_FIRST, "%u iterations: the first is kept", n);
	ok(roles[1] == UM_VIEW_TYPICAL && r.iterations.at[chosen[1]->iteration].ns < 1300,
	   "%u iterations: one as most are", n);
	is_u64(chosen[2]->iteration, n / 2 + 1, "%u iterations: the slowest is kept", n);
	is_u64(r.views.resident.used.at[0], 2, "%u iterations: two blocks are in use", n);
	um_report_fini(&r);
}

/* --- memory in use ------------------------------------------------------------------------------------------------ */

#define BLOCK ((uint64_t)UM_RESIDENT_BLOCK)

static uint64_t after(struct um_resident *r, struct um_activity a)
{
	int err = a.kind == UM_ACT_FREE || a.kind == UM_ACT_HINT ? (um_resident_remove(r, 0, &a), 0)
								 : um_resident_feed(r, 0, &a);

	if (err)
		tap_bail("no memory");
	return um_resident_bytes(r, 0) / BLOCK;
}

static struct um_activity move(enum um_activity_dir dir, enum um_activity_cause cause, uint64_t address, uint64_t bytes)
{
	return (struct um_activity){
		.kind = UM_ACT_MIGRATION, .dir = dir, .cause = cause, .address = address, .bytes = bytes};
}

static void test_resident(void)
{
	struct um_resident r = {0};
	const uint64_t at = 16 * BLOCK;

	is_u64(after(&r, (struct um_activity){.kind = UM_ACT_GPU_FAULT, .address = at + 5, .faults = 1}), 1,
	       "an accessed page takes a block");
	is_u64(after(&r, move(UM_DIR_H2D, UM_CAUSE_DEMAND, at, 65536)), 1, "pages that come in make a block resident");
	is_u64(after(&r, move(UM_DIR_H2D, UM_CAUSE_PREFETCH, at + BLOCK / 2, 2 * BLOCK)), 3,
	       "a range takes all it is in");
	is_u64(after(&r, move(UM_DIR_D2H, UM_CAUSE_DEMAND, at + BLOCK, 65536)), 3, "a CPU migration leaves the rest");
	is_u64(after(&r, move(UM_DIR_D2H, UM_CAUSE_EVICTION, at + BLOCK, 65536)), 2,
	       "an eviction removes the whole block");
	is_u64(after(&r, move(UM_DIR_D2H, UM_CAUSE_PREFETCH, at + 2 * BLOCK, BLOCK / 2)), 1,
	       "a block stays resident until all of it has left");
	if (um_resident_use(&r, 0, at + 3 * BLOCK, 4 * BLOCK))
		tap_bail("no memory");
	is_u64(um_resident_bytes(&r, 0) / BLOCK, 5, "a declared use is resident");
	is_u64(after(&r, (struct um_activity){.kind = UM_ACT_HINT, .address = at + 3 * BLOCK, .bytes = BLOCK}), 4,
	       "a discard removes it");
	is_u64(after(&r, (struct um_activity){.kind = UM_ACT_FREE, .address = at + 4 * BLOCK, .bytes = 2 * BLOCK + 1}),
	       1, "a freed block is not resident");
	is_u64(um_resident_bytes(&r, 1), 0, "each lane has its own levels");
	is_u64(after(&r, move(UM_DIR_H2D, UM_CAUSE_DEMAND, UINT64_MAX - 5, 100)), 2,
	       "blocks are counted to the end of all addresses");
	ok(!r.lost, "residency of all addresses is known");
	after(&r, move(UM_DIR_H2D, UM_CAUSE_DEMAND, at, UINT64_MAX / 2));
	ok(r.lost, "residency is unknown without sizes");
	um_resident_fini(&r);
	r = (struct um_resident){0};
	after(&r, move(UM_DIR_H2D, UM_CAUSE_DEMAND, 0, 4096));
	ok(r.lost, "residency is unknown without addresses");
	um_resident_fini(&r);
}

int main(void)
{
	test_sums(2, 1000);
	test_sums(7, 1000000007);
	test_sums(1024, 1ll << 55);
	test_ends();
	test_levels();
	test_resident();
	test_views(9);
	test_views(700);
	return tap_done();
}
