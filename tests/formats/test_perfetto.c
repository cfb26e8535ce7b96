/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces: nanoseconds, lanes, arrows, counters, and what is in no order.
 */
#include "formats/perfetto.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char path[64];

static struct um_perfetto *open_trace(void)
{
	struct um_perfetto_options o = {0};
	struct um_perfetto *w = NULL;

	ok(um_perfetto_open(&w, path, &o, NULL) == 0, "a trace is begun");
	return w;
}

/* The file as text; to be freed. */
static char *end_trace(struct um_perfetto *w)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	ok(um_perfetto_close(w, 1, NULL) == 0, "the file is closed");
	f = fopen(path, "r");
	if (!f || getdelim(&text, &size, 0, f) < 0)
		tap_bail("no file");
	fclose(f);
	return text;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void feed(struct um_perfetto *w, struct um_activity a)
{
	if (!a.process)
		a.process = 1;
	if (um_activity_feed(um_perfetto_sink(w), &a))
		ok(0, "kind %d at %" PRId64 " is taken", a.kind, a.begin);
}

#define FEED(w, ...) feed((w), (struct um_activity){__VA_ARGS__})

static void kernel(struct um_perfetto *w, int64_t begin, int64_t end, uint64_t correlation, const char *name)
{
	FEED(w, .kind = UM_ACT_KERNEL, .begin = begin, .end = end, .correlation = correlation, .name = name,
	     .stream = 7);
}

/* Announces an op, and launches it. */
static void launch(struct um_perfetto *w, int64_t at, uint64_t op, uint64_t correlation)
{
	FEED(w, .kind = UM_ACT_OP, .begin = at, .end = at, .thread = 1, .op = op, .name = "op", .device = -1);
	if (correlation)
		FEED(w, .kind = UM_ACT_CALL, .begin = at, .end = at + 1, .thread = 1, .correlation = correlation,
		     .name = "launch", .device = -1);
}

static void hint(struct um_perfetto *w, int64_t at, uint64_t op, int error)
{
	FEED(w, .kind = UM_ACT_HINT, .begin = at, .end = at, .op = op, .bytes = 4096, .address = 1 << 21,
	     .hint = UM_HINT_PREFETCH, .error = error, .device = -1);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static void test_nanoseconds(void)
{
	struct um_perfetto *w = open_trace();
	unsigned wrong = 0, seen = 0;
	char *text, *at;

	for (int64_t i = 0; i < 5000; i++)
		kernel(w, i * 1000003 + i % 1000, i * 1000003 + i % 1000 + 1 + i % 999, 0, "k");
	text = at = end_trace(w);
	while ((at = strstr(at, "\"ph\":\"X\""))) {
		double ts = strtod(strstr(at, "\"ts\":") + 5, NULL), dur = strtod(strstr(at, "\"dur\":") + 6, NULL);
		int64_t begin = (int64_t)seen * 1000003 + seen % 1000;

		wrong += (int64_t)(ts * 1000) != begin || (int64_t)(dur * 1000) != 1 + seen % 999 ||
			 (int64_t)(ts * 1000 + 0.5) != begin;
		seen++;
		at++;
	}
	is_u64(seen, 5000, "all slices are there");
	is_u64(wrong, 0, "times are exact to the nanosecond");
	free(text);
}

static void test_order(void)
{
	struct um_perfetto *w = open_trace();
	struct um_activity a = {.kind = UM_ACT_KERNEL, .begin = -51, .end = 20, .name = "late", .process = 1};
	char *text;

	kernel(w, -50, 10, 0, "first");
	kernel(w, 30, 40, 0, "second");
	ok(um_activity_feed(um_perfetto_sink(w), &a) == -EINVAL, "an activity out of order is refused");
	text = end_trace(w);
	ok(strstr(text, "\"ts\":0,\"name\":\"first\",\"dur\":0.060"), "activities before 0 begin at 0");
	ok(strstr(text, "\"ts\":0.080"), "activities after a refused one are written");
	free(text);

	w = open_trace();
	kernel(w, INT64_MIN, INT64_MAX, 0, "ages");
	text = end_trace(w);
	ok(strstr(text, "\"dur\":18446744073709551.615"), "the longest time there is");
	free(text);
	unlink(path);
	w = open_trace();
	kernel(w, 0, 1, 0, "k");
	ok(um_perfetto_close(w, 0, NULL) == 0 && access(path, F_OK), "a file that is thrown away does not exist");
}

/* --- lanes -------------------------------------------------------------------------------------------------------- */

static void test_lanes(void)
{
	struct um_perfetto *w = open_trace();
	char *text;

	kernel(w, 0, 100, 0, "a");
	kernel(w, 50, 150, 0, "b");
	kernel(w, 100, 120, 0, "c");
	FEED(w, .kind = UM_ACT_RANGE, .begin = 200, .end = 300, .thread = 5, .name = "outer", .device = -1);
	FEED(w, .kind = UM_ACT_RANGE, .begin = 210, .end = 300, .thread = 5, .name = "inner", .device = -1);
	FEED(w, .kind = UM_ACT_RANGE, .begin = 290, .end = 310, .thread = 5, .name = "across", .device = -1);
	text = end_trace(w);
	is_u64(count(text, "\"stream 7\""), 1, "a stream has one lane");
	is_u64(count(text, "\"stream 7 (2)\""), 1, "overlapping work has a second lane");
	is_u64(count(text, "\"stream 7 (3)\""), 0, "a lane is used again when it is free");
	is_u64(count(text, "\"thread 5\"") + 10 * count(text, "\"thread 5 (2)\""), 11,
	       "ranges nest in a lane, but not across each other's end");
	free(text);

	w = open_trace();
	for (int i = 0; i < 40; i++)
		kernel(w, i, 1000, 0, "k");
	text = end_trace(w);
	is_u64(count(text, "\"ph\":\"X\""), 32, "32 overlapping activities have lanes");
	is_u64(count(text, "\"ph\":\"i\""), 8, "further overlapping activities are instants");
	free(text);

	w = open_trace();
	for (int i = 0; i < 50; i++)
		hint(w, 500, UM_ACT_NO_OP, 0);
	text = end_trace(w);
	is_u64(count(text, "\"thread_name\""), 1, "hints of one moment are in one lane");
	ok(strstr(text, "\"ts\":0.549"), "activities follow each other in the lane");
	free(text);
}

/* --- arrows ------------------------------------------------------------------------------------------------------- */

static void test_arrows(void)
{
	struct um_perfetto *w = open_trace();
	char *text;

	hint(w, 10, 1, 0);
	hint(w, 10, UM_ACT_NO_OP, 0);
	hint(w, 12, 2, 700);
	launch(w, 100, 1, 21);
	launch(w, 200, 2, 22);
	kernel(w, 300, 400, 21, "one");
	hint(w, 350, 1, 0);
	kernel(w, 400, 500, 21, "one again");
	hint(w, 450, 1, 0);
	kernel(w, 500, 600, 22, "two");
	kernel(w, 600, 700, 23, "a stranger");
	text = end_trace(w);
	is_u64(count(text, "\"ph\":\"s\""), 3, "each of three hints begins an arrow");
	is_u64(count(text, "\"ph\":\"f\""), 3, "each of three arrows has an end");
	ok(strstr(text, "\"ts\":0.300,\"name\":\"prefetch\",\"cat\":\"hint\",\"id\":1,\"bp\":\"e\""),
	   "an arrow ends at the beginning of the first kernel");
	ok(strstr(text, "\"ts\":0.350,\"name\":\"prefetch\",\"cat\":\"hint\",\"id\":2,\"bp\":\"e\""),
	   "the arrow of a late hint ends inside the kernel");
	ok(strstr(text, "\"result\":\"error 700\""), "failed hints are marked");
	is_u64(count(text, "\"op\":1,\"op_name\":\"op\""), 2, "kernels know their op");
	free(text);

	w = open_trace();
	hint(w, 10, 1, 0);
	hint(w, 11, 2, 0);
	launch(w, 100, 1, 0);
	launch(w, 200, 2, 0);
	FEED(w, .kind = UM_ACT_RANGE, .begin = 250, .end = 900, .thread = 1, .name = "next", .device = -1);
	text = end_trace(w);
	ok(strstr(text, "\"ts\":0.100,\"name\":\"prefetch\"") && strstr(text, "\"ts\":0.200,\"name\":\"prefetch\""),
	   "a hint without a launch points to the announcement");
	ok(strstr(text, "\"dur\":0.100") && strstr(text, "\"dur\":0.050"), "an op lasts until its thread continues");
	free(text);
}

static void test_programs(void)
{
	struct um_perfetto *w = open_trace();
	char *text;

	hint(w, 10, 1, 0);
	launch(w, 100, 1, 21);
	FEED(w, .kind = UM_ACT_KERNEL, .begin = 300, .end = 400, .correlation = 21, .name = "other", .process = 2);
	text = end_trace(w);
	is_u64(count(text, "\"ph\":\"s\""), 0, "another program's kernel is not this one's");
	is_u64(count(text, "\"process_name\""), 2, "each has its device");
	free(text);

	/* Nothing is kept for ever. */
	w = open_trace();
	hint(w, 0, 70000 * 2, 0);
	hint(w, 0, 3, 0);
	for (uint64_t i = 0; i <= 70000 * 2; i += i < 10 ? 1 : (uint64_t)tap_step(30)) {
		launch(w, (int64_t)i * 10, i, i != 3 ? i + 1 : 0);
		kernel(w, (int64_t)i * 10 + 5, (int64_t)i * 10 + 9, i != 3 ? i + 1 : 0, "k");
	}
	text = end_trace(w);
	is_u64(count(text, "\"ph\":\"f\""), 1, "a hint for an op far ahead is forgotten, for a near one not");
	free(text);
}

/* --- counters ----------------------------------------------------------------------------------------------------- */

static void move(struct um_perfetto *w, int64_t begin, int64_t end, uint64_t address, uint64_t bytes,
		 enum um_activity_dir dir)
{
	FEED(w, .kind = UM_ACT_MIGRATION, .begin = begin, .end = end, .address = address, .bytes = bytes, .dir = dir,
	     .cause = UM_CAUSE_DEMAND);
}

#define MIB (1ull << 20)
#define RESIDENT(ts, bytes) "\"ts\":" ts ",\"name\":\"resident\",\"args\":{\"bytes\":" bytes "}"

static void test_counters(void)
{
	struct um_perfetto *w = open_trace();
	char *text;

	move(w, 100000, 150000, 2 * MIB, 4 * MIB, UM_DIR_H2D);
	move(w, 120000, 160000, 2 * MIB, MIB, UM_DIR_D2H); /* ends later: taken away */
	move(w, 200000, 210000, 2 * MIB, 4 * MIB, UM_DIR_H2D); /* 3 of them were there */
	move(w, 300000, 310000, 100 * MIB, 2 * MIB, UM_DIR_D2H); /* of what never came */
	FEED(w, .kind = UM_ACT_FREE, .begin = 400000, .end = 400000, .address = 2 * MIB, .bytes = 3 * MIB, .managed = 1,
	     .device = -1);
	move(w, 500000, 510000, 0, 7, UM_DIR_H2D);
	text = end_trace(w);
	ok(strstr(text, RESIDENT("150", "4194304")), "pages are resident after their copy");
	ok(strstr(text, RESIDENT("160", "3145728")), "evicted pages are not resident");
	ok(strstr(text, RESIDENT("210", "4194304")), "nothing is there twice");
	ok(!strstr(text, "\"ts\":310,\"name\":\"resident\""), "an eviction of unknown pages changes nothing");
	ok(strstr(text, RESIDENT("400", "1048576")), "freed memory is not resident");
	ok(strstr(text, RESIDENT("510", "1048583")), "without an address it counts as well");
	ok(strstr(text, "\"ts\":120,\"name\":\"migrating\",\"args\":{\"bytes to the device\":4194304,"
			"\"bytes to the host\":1048576}"),
	   "copies under way are counted");
	ok(strstr(text, "\"ts\":510,\"name\":\"migrating\",\"args\":{\"bytes to the device\":0,"
			"\"bytes to the host\":0}"),
	   "the counter ends at no bytes");
	free(text);

	w = open_trace();
	for (int i = 0; i < 1000; i++)
		FEED(w, .kind = UM_ACT_GPU_FAULT, .begin = i * 100, .end = i * 100, .faults = 3,
		     .access = UM_ACCESS_READ);
	move(w, 100000, 100001, 1ull << 62, 1ull << 62, UM_DIR_H2D);
	FEED(w, .kind = UM_ACT_FREE, .begin = 100002, .end = 100002, .address = 1 << 21, .bytes = 1ull << 62,
	     .managed = 1, .device = -1);
	text = end_trace(w);
	ok(count(text, "page faults so far") < 25, "points that follow each other closely are one");
	ok(strstr(text, "\"ts\":99.9001,\"name\":\"page faults so far\",\"args\":{\"faults\":3000}") ||
		   strstr(text, "\"ts\":99.900,\"name\":\"page faults so far\",\"args\":{\"faults\":3000}"),
	   "the last count of faults is the sum");
	free(text);
}

int main(void)
{
	snprintf(path, sizeof path, "test_perfetto.%ld.json", (long)getpid());
	test_nanoseconds();
	test_order();
	test_lanes();
	test_arrows();
	test_programs();
	test_counters();
	unlink(path);
	return tap_done();
}
