/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver counts, in a log: it comes back in order of time, however late it was told; what is too much comes
 * back in sum; damage is refused with its line. `test_log_driver_counters
 * write` only writes, for a test without memory.
 */
#include "io/log.h"
#include "tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ITERATION 1000 /* ns */

static char file[] = "/tmp/umlog.XXXXXX";

struct received {
	struct um_activity_sink sink;
	uint64_t n, sums, records, bytes, faults, cpu_faults;
	uint64_t in_iteration[8]; /* migrations by their time */
	int64_t last;
	unsigned disorder;
	struct um_capture capture;
	struct um_diag diag;
};

static int on_activity(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct received *h = (struct received *)sink;

	h->disorder += a->begin < h->last || a->end < a->begin;
	h->last = a->begin;
	if (a->kind == UM_ACT_CPU_FAULT)
		h->cpu_faults += a->faults;
	else
		h->faults += a->faults;
	h->n += a->records != 0;
	h->records += a->records;
	h->sums += a->records && !a->address;
	h->bytes += a->records ? a->bytes : 0;
	if (a->kind == UM_ACT_MIGRATION && a->begin / ITERATION < 8)
		h->in_iteration[a->begin / ITERATION] += a->bytes;
	return 0;
}

static int look(struct received *h)
{
	memset(h, 0, sizeof *h);
	h->sink.feed = on_activity;
	return um_log_read(file, &(struct um_log_read_options){0}, &h->sink, &h->capture, &h->diag);
}

static void feed(struct um_log *l, enum um_activity_kind kind, int64_t at, uint64_t n)
{
	struct um_activity a = {.kind = kind,
				.begin = at,
				.end = at + 10,
				.address = 0x7f0000000000u + (uint64_t)at * 4096,
				.records = 1,
				.dir = UM_DIR_H2D,
				.cause = UM_CAUSE_DEMAND,
				.access = UM_ACCESS_WRITE};

	if (kind == UM_ACT_MIGRATION)
		a.bytes = n;
	else
		a.faults = n;
	um_activity_feed(um_log_sink(l), &a);
}

static struct um_log *begin(int counters, uint64_t limit)
{
	struct um_capture_library library = {.is = 1, .counters = counters};
	struct um_diag diag;
	struct um_log *l = NULL;

	return um_log_open(&l, file, &library, limit, 0, &diag) ? NULL : l;
}

static int turn(struct um_log *l, int64_t now, uint64_t next)
{
	static const uint64_t counts[UM_LIBRARY_COUNTS], levels[UM_LIBRARY_LEVELS];

	return next ? um_log_next_part(l, now, counts, levels, next - 1, NULL) : um_log_close(l, now, counts, levels);
}

/* Five iterations after a set-up; each has a migration of its number of bytes, and is told of it in the last one. */
static int write_late(void)
{
	struct um_log *l = begin(1, 0);
	int err = l ? 0 : -ENOMEM;

	for (int i = 1; i <= 5 && !err; i++)
		err = turn(l, i * ITERATION, (uint64_t)i);
	for (int i = 5; i >= 0 && l; i--)
		feed(l, UM_ACT_MIGRATION, i * ITERATION + 500, (uint64_t)i + 1);
	if (l) {
		feed(l, UM_ACT_GPU_FAULT, 2 * ITERATION, 7);
		feed(l, UM_ACT_CPU_FAULT, ITERATION, 1);
	}
	return l ? turn(l, 6 * ITERATION, 0) : err;
}

static void late(void)
{
	struct received h;

	ok(write_late() == 0, "a log with late counters is written");
	ok(look(&h) == 0, "the log is read %s", h.diag.text);
	for (int i = 0; i < 6; i++)
		is_u64(h.in_iteration[i], (uint64_t)i + 1, "late records have their own time");
	is_u64(h.disorder, 0, "counters are in order of time");
	ok(h.n == 8 && h.records == 8 && h.faults == 7 && h.cpu_faults == 1, "all counters of the log are read");
	is_u64(h.capture.library.counts[UM_LIBRARY_H2D], 21, "counters add up to their sum");
	is_u64(h.capture.library.counts[UM_LIBRARY_SUMMED], 0, "nothing is known in sum alone");
	is_u64(h.capture.missing.n, 1, "only kernels are missing");
	um_capture_fini(&h.capture);
}

static void many(void)
{
	struct um_log *l = begin(1, UM_LOG_LIMIT_LEAST);
	struct received h;
	uint64_t bytes = 0;

	if (!l || turn(l, ITERATION, 1))
		tap_bail("cannot write");
	for (int i = 0; i < 1000; i++) {
		feed(l, UM_ACT_MIGRATION, ITERATION + i / 2, (uint64_t)i);
		feed(l, UM_ACT_GPU_FAULT, ITERATION + i / 2, 2);
		bytes += (uint64_t)i;
	}
	ok(turn(l, 2 * ITERATION, 0) == 0 && look(&h) == 0, "a part accepts more records than it keeps");
	ok(h.sums == 2 && h.n < 100, "only some are kept one by one");
	is_u64(h.bytes, bytes, "the sum is exact");
	is_u64(h.in_iteration[1], bytes, "counters of an iteration are in that iteration");
	ok(h.faults == 2000 && h.records == 2000, "counters of all kinds are read");
	ok(h.capture.library.counts[UM_LIBRARY_SUMMED] > 1900, "records in sums are counted");
	um_capture_fini(&h.capture);
}

#define PLACE 0x7e0000000000u
#define KIB 1024u

static void tensor(struct um_log *l, int born, int64_t at, const char *name, uint64_t offset, uint64_t bytes)
{
	struct um_activity a = {.kind = born ? UM_ACT_TENSOR : UM_ACT_TENSOR_END,
				.begin = at,
				.end = at,
				.name = name,
				.address = PLACE + offset,
				.bytes = bytes,
				.op = UM_ACT_NO_OP};

	um_activity_feed(um_log_sink(l), &a);
}

static void move(struct um_log *l, int64_t at, uint64_t offset, uint64_t bytes)
{
	struct um_activity a = {.kind = UM_ACT_MIGRATION,
				.begin = at,
				.end = at + 10,
				.address = PLACE + offset,
				.bytes = bytes,
				.records = 1,
				.dir = UM_DIR_D2H,
				.cause = UM_CAUSE_EVICTION};

	um_activity_feed(um_log_sink(l), &a);
}

static struct seen {
	struct um_activity_sink sink;
	struct um_activity at[16];
	unsigned n;
} seen;

static int see(struct um_activity_sink *sink, const struct um_activity *a)
{
	(void)sink;
	if (a->kind == UM_ACT_MIGRATION && seen.n < 16)
		seen.at[seen.n++] = *a;
	return 0;
}

/* `b` lies in `a` until `c` takes a part of its place. */
static int write_tensors(void)
{
	struct um_log *l = begin(1, UM_LOG_LIMIT_LEAST);

	if (!l)
		return -ENOMEM;
	tensor(l, 1, 10, "a", 0, 1024 * KIB);
	tensor(l, 1, 20, "b", 64 * KIB, 64 * KIB);
	if (turn(l, ITERATION, 1))
		return -ENOMEM;
	tensor(l, 0, 1400, "b", 64 * KIB, 64 * KIB);
	tensor(l, 1, 1500, "c", 64 * KIB, 32 * KIB);
	for (int i = 0; i < 16; i++)
		feed(l, UM_ACT_CPU_FAULT, 1900, 1);
	move(l, 1600, 64 * KIB, 64 * KIB); /* half of it c's, half of it a's */
	move(l, 1200, 32 * KIB, 64 * KIB); /* half of it a's, half of it b's */
	move(l, 1700, 512 * KIB, 8 * KIB);
	move(l, 1800, 96 * KIB, 4 * KIB);
	move(l, 1300, 80 * KIB, 4 * KIB);
	move(l, 1300, 2048 * KIB, 1 * KIB);
	return turn(l, 2 * ITERATION, 0);
}

static void by_tensor(void)
{
	static const struct {
		int64_t at;
		uint64_t address, bytes, records;
	} want[] = {{1000, 0, KIB, 1},
		    {1200, PLACE + 32 * KIB, (32 + 32 + 8 + 4) * KIB, 4},
		    {1200, PLACE + 64 * KIB, (32 + 4) * KIB, 2},
		    {1600, PLACE + 64 * KIB, 32 * KIB, 1}};
	struct um_capture capture;
	struct um_diag diag;

	seen = (struct seen){.sink = {see}};
	ok(write_tensors() == 0, "more than are kept one by one");
	ok(um_log_read(file, &(struct um_log_read_options){0}, &seen.sink, &capture, &diag) == 0, "the log is read");
	is_u64(seen.n, sizeof want / sizeof *want, "a sum for each tensor, and one for none");
	for (unsigned i = 0; i < seen.n && i < sizeof want / sizeof *want; i++)
		ok(seen.at[i].begin == want[i].at && seen.at[i].address == want[i].address &&
			   seen.at[i].bytes == want[i].bytes && seen.at[i].records == want[i].records,
		   "sum %u: %" PRIi64 " %" PRIx64 " %" PRIu64 " %" PRIu64, i, seen.at[i].begin, seen.at[i].address,
		   seen.at[i].bytes, seen.at[i].records);
	is_u64(capture.library.counts[UM_LIBRARY_SUMMED], 1, "only what is of none is told to be of none");
	um_capture_fini(&capture);
}

static void put(const char *text)
{
	FILE *f = fopen(file, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		tap_bail("cannot write");
}

#define HEAD "{\"umlog\":1,\"counters\":true}\n"
#define PART "{\"part\":0,\"begin_ns\":0,\"end_ns\":9,\"first_op\":0,\"alive\":[]}\n"
#define END "{\"end\":true}\n"

static void by_hand(void)
{
	static const char *const bad[] = {"{\"um\":\"h2d\",\"address\":1,\"bytes\":5}",
					  "{\"um\":\"h2d\",\"at_ns\":1,\"address\":1}",
					  "{\"um\":\"h2d\",\"at_ns\":1,\"address\":-1,\"bytes\":5}",
					  "{\"um\":\"h2d\",\"at_ns\":1,\"ns\":-1,\"address\":1,\"bytes\":5}",
					  "{\"um\":\"h2d\",\"at_ns\":1,\"bytes\":5}",
					  "{\"um\":\"cpu_fault\",\"at_ns\":1,\"records\":0,\"faults\":1}",
					  "{\"um\":"};
	char text[512];
	struct received h;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, HEAD PART "%s\n" END, bad[i]);
		put(text);
		ok(look(&h) == -EINVAL && h.diag.line == 3, "a bad line is refused with its number: %s", h.diag.text);
		um_capture_fini(&h.capture);
	}
	put(HEAD PART "{\"um\":\"later\",\"at_ns\":1}\n{\"um\":\"h2d\",\"why\":\"later\",\"at_ns\":1,\"address\":1,"
		      "\"bytes\":5}\n" END);
	ok(look(&h) == 0 && h.n == 1 && h.bytes == 5, "records of a later writer are left out, or have no reason");
	um_capture_fini(&h.capture);
	put(HEAD PART "{\"um\":\"h2d\",\"at_ns\":1,\"address\":1,\"bytes\":5}\n" END
		      "{\"part\":1,\"begin_ns\":9,\"end_ns\":19,\"first_op\":0,\"alive\":[]}\n"
		      "{\"um\":\"h2d\",\"at_ns\":11,\"address\":1,\"bytes\":3}\n");
	ok(look(&h) == 0 && h.bytes == 5, "a part without an end gives no counters");
	um_capture_fini(&h.capture);
	put("{\"umlog\":1}\n" PART "{\"um\":\"h2d\",\"at_ns\":1,\"address\":1,\"bytes\":5}\n" END);
	ok(look(&h) == 0 && !h.n && h.capture.missing.n == 3, "without a counter nothing is read");
	um_capture_fini(&h.capture);
	put(HEAD "{\"sums\":[3,9],\"begin_ns\":30,\"end_ns\":90,\"shortest_ns\":1,\"longest_ns\":2,"
		 "\"counted_h2d_bytes\":77,\"counted_cpu_faults\":5}\n");
	ok(look(&h) == 0 && h.bytes == 77 && h.cpu_faults == 5 && h.sums == 2, "parts of which only sums are kept");
	um_capture_fini(&h.capture);
}

int main(int argc, char **argv)
{
	int fd = mkstemp(file), err = 0;

	if (fd < 0)
		tap_bail("no file");
	close(fd);
	if (argc > 1 && strcmp(argv[1], "write") == 0) {
		err = write_late() | write_tensors();
		unlink(file);
		return err != 0;
	}
	late();
	many();
	by_tensor();
	by_hand();
	unlink(file);
	return tap_done();
}
