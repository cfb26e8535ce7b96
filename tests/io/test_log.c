/* SPDX-License-Identifier: Apache-2.0
 *
 * A log says what was told: workloads are played, logged and read back, and everything is held against what the log was
 * fed. A log at its limit keeps its sums; a file that was cut reads up to its last whole part; a damaged one is refused
 * or read, and breaks nothing.
 */
#include "io/log.h"
#include "io/log_file.h"
#include "play/player.h"
#include "fixture/random.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char file[64];

/* What was fed to a log, or read from one. */
struct received {
	struct um_activity_sink sink;
	struct um_log *log; /* goes on to this one; NULL: none */
	UM_VEC(struct um_activity) at; /* names are copied */
	uint64_t n[UM_ACT_KINDS];
	uint64_t iteration;
	int64_t last, end;
	unsigned disorder;
};

static void forget(struct received *h)
{
	for (size_t i = 0; i < h->at.n; i++)
		free((char *)(uintptr_t)h->at.at[i].name);
	um_vec_fini(&h->at);
	memset(h, 0, sizeof *h);
}

static void note(struct received *h, const struct um_activity *a)
{
	struct um_activity copy = *a;

	copy.name = a->name ? strdup(a->name) : NULL;
	if ((a->name && !copy.name) || um_vec_push(&h->at, copy))
		tap_bail("no memory");
	h->n[a->kind]++;
}

static int on_read(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct received *h = (struct received *)sink;

	h->disorder += a->begin < h->last || a->end < a->begin;
	h->last = a->begin;
	note(h, a);
	return 0;
}

/* A watcher: each iteration's range comes when the iteration is over. */
static int on_written(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct received *h = (struct received *)sink;
	uint64_t counts[UM_LIBRARY_COUNTS] = {[UM_LIBRARY_OPS] = h->n[UM_ACT_OP]}, levels[UM_LIBRARY_LEVELS] = {0};

	if (a->kind != UM_ACT_TENSOR && a->kind != UM_ACT_TENSOR_END && a->kind != UM_ACT_OP && a->kind != UM_ACT_USE &&
	    a->kind != UM_ACT_HINT && a->kind != UM_ACT_RANGE)
		return 0;
	if (a->end > h->end)
		h->end = a->end;
	note(h, a);
	if (a->kind == UM_ACT_RANGE) {
		if (h->n[UM_ACT_RANGE] == 1) /* the set-up was over when the first iteration began, as far as we know */
			um_log_next_part(h->log, a->begin, counts, levels, 0, "first");
		um_log_next_part(h->log, a->end, counts, levels, h->n[UM_ACT_RANGE], NULL);
	} else {
		um_activity_feed(um_log_sink(h->log), a);
	}
	return 0;
}

static int by_content(const void *x, const void *y)
{
	const struct um_activity *a = x, *b = y;
	const uint64_t p[] = {a->kind, a->op, a->hint, a->address, a->bytes, a->access, (uint64_t)a->error};
	const uint64_t q[] = {b->kind, b->op, b->hint, b->address, b->bytes, b->access, (uint64_t)b->error};

	for (size_t i = 0; i < sizeof p / sizeof *p; i++)
		if (p[i] != q[i])
			return p[i] < q[i] ? -1 : 1;
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

static unsigned differences(struct received *a, struct received *b)
{
	unsigned bad = a->at.n != b->at.n;

	qsort(a->at.at, a->at.n, sizeof *a->at.at, by_content);
	qsort(b->at.at, b->at.n, sizeof *b->at.at, by_content);
	for (size_t i = 0; i < a->at.n && i < b->at.n; i++) {
		const struct um_activity *x = &a->at.at[i], *y = &b->at.at[i];

		if (by_content(x, y) && bad++ < 3)
			diag("%zu: kinds %d %d, ops %" PRIu64 " %" PRIu64 ", at %" PRIx64 " %" PRIx64 ", bytes %" PRIu64
			     " %" PRIu64,
			     i, (int)x->kind, (int)y->kind, x->op, y->op, x->address, y->address, x->bytes, y->bytes);
	}
	return bad;
}

static const struct um_capture_library about = {
	.version = "test", .device = "a device", .why = "", .strategy = "lookahead", .simulated = 1, .pid = 1};

static int read_log(struct received *h, struct um_capture *c, struct um_diag *d)
{
	memset(h, 0, sizeof *h);
	h->sink.feed = on_read;
	h->last = INT64_MIN;
	return um_log_read(file, &(struct um_log_read_options){0}, &h->sink, c, d);
}

static uint64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

/* --- what was played ---------------------------------------------------------------------------------------------- */

static void play(const char *name, uint64_t iterations, uint64_t hints)
{
	const char *top = getenv("top_srcdir");
	struct received written = {.sink.feed = on_written}, found;
	struct um_play_result result;
	struct um_capture c;
	struct um_trace *t;
	struct um_diag d;
	char path[512];
	uint64_t none[UM_LIBRARY_COUNTS + UM_LIBRARY_LEVELS] = {0};

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", name);
	if (um_trace_load(&t, path, &d) || um_log_open(&written.log, file, &about, 0, 0, &d))
		tap_bail(d.text);

	struct um_play_options o = {.profile = um_profile_find("v100"),
				    .budget = um_trace_peak_bytes(t) * 2 / 3,
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = iterations,
				    .watch = &written.sink};

	ok(um_play(t, &o, &result) == 0, "%s: the workload is played", name);
	is_int(um_log_close(written.log, written.end, none, none), 0, "%s: the log is written", name);
	ok(read_log(&found, &c, &d) == 0, "%s: read %s", name, d.text);
	is_u64(found.disorder, 0, "%s: in order of time", name);
	is_u64(c.library.kept, iterations + 1, "%s: the log has all iterations",
	       name); /* one more begins with the last one's end */
	/* The ranges are not those that were fed: they are where the log's parts are. */
	is_u64(found.n[UM_ACT_RANGE], iterations + 1, "%s: the log has the ranges", name);
	for (size_t i = 0; i < found.at.n; i++)
		if (found.at.at[i].kind == UM_ACT_RANGE)
			found.at.at[i].bytes = found.at.at[i].op = 0;
	for (int k = 0; k < 2; k++) {
		struct received *h = k ? &found : &written;
		size_t n = 0;

		for (size_t i = 0; i < h->at.n; i++) {
			if (h->at.at[i].kind == UM_ACT_RANGE)
				free((char *)(uintptr_t)h->at.at[i].name);
			else
				h->at.at[n++] = h->at.at[i];
		}
		h->at.n = n;
	}
	ok(written.n[UM_ACT_HINT] >= hints, "%s: hints are in it (%" PRIu64 ")", name, written.n[UM_ACT_HINT]);
	is_u64(differences(&written, &found), 0, "%s: all that was told", name);
	ok(size_of(file) < found.at.n * 11, "%s: %" PRIu64 " bytes for %zu things", name, size_of(file), found.at.n);
	um_play_result_fini(&result);
	um_capture_fini(&c);
	um_trace_free(t);
	forget(&written);
	forget(&found);
}

/* --- by hand ------------------------------------------------------------------------------------------------------ */

/* A program that does one of `kinds` different things in each iteration. */
static struct um_log *begin(uint64_t limit)
{
	struct um_activity a = {.kind = UM_ACT_TENSOR, .begin = 1, .end = 1, .op = UM_ACT_NO_OP};
	struct um_log *l;
	struct um_diag d;
	char name[16];

	if (um_log_open(&l, file, &about, limit, 0, &d))
		tap_bail(d.text);
	for (uint64_t i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "t%d", (int)i);
		a.name = name;
		a.address = (i + 1) << 21;
		a.bytes = 1 << 21;
		um_activity_feed(um_log_sink(l), &a);
	}
	return l;
}

static int iterate(struct um_log *l, uint64_t n, uint64_t kind, unsigned ops)
{
	uint64_t counts[UM_LIBRARY_COUNTS] = {[UM_LIBRARY_OPS] = ops, [UM_LIBRARY_ISSUED] = 1};
	uint64_t levels[UM_LIBRARY_LEVELS] = {[UM_LIBRARY_PLAN_NS] = n + 1};
	struct um_activity a = {0};
	char name[32];

	if (!n)
		um_log_next_part(l, 10, counts, levels, 0, NULL);
	for (unsigned i = 0; i < ops; i++) {
		snprintf(name, sizeof name, "op %" PRIu64, kind);
		a = (struct um_activity){
			.kind = UM_ACT_OP, .begin = (int64_t)(1000 * n + 10 + i), .name = name, .op = n * ops + i};
		a.end = a.begin;
		um_activity_feed(um_log_sink(l), &a);
		a.kind = UM_ACT_USE;
		a.name = NULL;
		a.address = ((kind * 2654435761u + i) % 4 + 1) << 21;
		a.bytes = (kind * 40503u + i * 7919u) % 1000 + 1;
		a.access = UM_ACCESS_READ;
		um_activity_feed(um_log_sink(l), &a);
	}
	a = (struct um_activity){.kind = UM_ACT_HINT,
				 .begin = (int64_t)(1000 * n + 5), /* before the iteration begins */
				 .end = (int64_t)(1000 * n + 500),
				 .op = n * ops,
				 .hint = UM_HINT_PREFETCH,
				 .address = 1 << 21,
				 .bytes = 1 << 21,
				 .error = n % 7 == 3 ? 1 : 0};
	um_activity_feed(um_log_sink(l), &a);
	return um_log_next_part(l, (int64_t)(1000 * (n + 1) + 10), counts, levels, n + 1, NULL);
}

static int finish(struct um_log *l, uint64_t n)
{
	uint64_t none[UM_LIBRARY_COUNTS + UM_LIBRARY_LEVELS] = {0};

	return um_log_close(l, (int64_t)(1000 * n + 20), none, none);
}

/* `n` iterations, of which one in `change` is of a kind of its own. */
static void limited(uint64_t n, uint64_t change, const char *what)
{
	struct um_log *l = begin(1);
	struct received h;
	struct um_capture c;
	struct um_diag d;
	uint64_t most = 0, named = 0;
	int err = 0;

	for (uint64_t i = 0; i < n && !err; i++) {
		err = iterate(l, i, i % change ? i % 2 : i + 2, 6);
		if (i % 64 == 0 && size_of(file) > most)
			most = size_of(file);
	}
	is_int(err, 0, "%s: the log is written", what);
	is_int(finish(l, n), 0, "%s: the log is closed", what);
	ok(most <= UM_LOG_LIMIT_LEAST && size_of(file) <= UM_LOG_LIMIT_LEAST, "%s: the log never exceeds its limit",
	   what);
	ok(read_log(&h, &c, &d) == 0, "%s: read %s", what, d.text);
	is_u64(c.library.iterations, n + 1, "%s: every iteration is counted", what);
	is_u64(c.library.counts[UM_LIBRARY_OPS], 6 * (n + 1), "%s: so is what happened in it", what);
	ok(c.library.kept < n / 2 && c.library.kept > 100, "%s: some are there (%" PRIu64 ")", what, c.library.kept);
	is_u64(h.n[UM_ACT_OP], 6 * (c.library.kept - 1), "%s: kept iterations have their operations", what);
	is_u64(h.n[UM_ACT_TENSOR], 4, "%s: tensors are known", what);
	is_u64(h.disorder, 0, "%s: in order of time", what);
	for (size_t i = 0; i < h.at.n; i++)
		if (h.at.at[i].kind == UM_ACT_OP && (h.at.at[i].op == 0 || h.at.at[i].op == 6 * n - 1))
			named++;
	is_u64(named, 2, "%s: the first and the last of it", what);
	is_u64(c.library.levels[UM_LIBRARY_PLAN_NS], 0, "%s: what holds at the end", what);
	ok(c.notes.n == 2 && strstr(c.notes.at[1], "only sums"), "%s: it says what is missing", what);
	um_capture_fini(&c);
	forget(&h);
}

/* Iterations that are alike but for what became of their hint. */
static void alike(void)
{
	struct um_log *l = begin(0);
	uint64_t n = 100, refused = 0, expected = 0;
	struct um_capture c;
	struct um_diag d;
	struct received h;

	for (uint64_t i = 0; i < n; i++) {
		expected += i % 7 == 3;
		if (iterate(l, i, 0, 6))
			tap_bail("cannot write");
	}
	finish(l, n);
	ok(read_log(&h, &c, &d) == 0, "alike: read %s", d.text);
	for (size_t i = 0; i < h.at.n; i++)
		refused += h.at.at[i].kind == UM_ACT_HINT && h.at.at[i].error == 1;
	is_u64(h.n[UM_ACT_HINT], n, "alike: each iteration has a hint");
	is_u64(refused, expected, "alike: hints keep their results");
	is_u64(h.n[UM_ACT_USE], 6 * n, "alike: and its uses");
	ok(size_of(file) < n * 250, "alike: %" PRIu64 " bytes", size_of(file));
	um_capture_fini(&c);
	forget(&h);
}

/* What nothing in the file refers to any more may still come again. */
static void again(void)
{
	struct um_log *l = begin(1);
	struct um_capture c;
	struct um_diag d;
	struct received h;
	uint64_t i = 0;
	int err = 0;

	for (; i < 1500 && !err; i++)
		err = iterate(l, i, i + 10, 6);
	err = err ? err : iterate(l, i++, 1, 6);
	for (; i < 6000 && !err; i++)
		err = iterate(l, i, 2, 6);
	err = err ? err : iterate(l, i++, 1, 6);
	is_int(err, 0, "the log of the second reading is written");
	finish(l, i);
	ok(read_log(&h, &c, &d) == 0, "the log is read again: %s", d.text);
	um_capture_fini(&c);
	forget(&h);
}

static unsigned char *load(size_t *n)
{
	int fd = open(file, O_RDONLY);
	unsigned char *data = malloc(size_of(file) + 1);

	*n = size_of(file);
	if (fd < 0 || !data || read(fd, data, *n) != (ssize_t)*n)
		tap_bail("cannot read it back");
	close(fd);
	return data;
}

static void store(const unsigned char *data, size_t n)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		tap_bail("cannot write");
	close(fd);
}

static void cut(void)
{
	struct um_log *l = begin(0);
	struct received h;
	struct um_capture c;
	struct um_diag d;
	unsigned refused = 0, fewer = 0, silent = 0, step = (unsigned)tap_step(9);
	uint64_t before = 0, all = 12;
	unsigned char *data;
	size_t n;

	for (uint64_t i = 0; i < all; i++)
		if (iterate(l, i, i / 3, 5))
			tap_bail("cannot write");
	finish(l, all);
	data = load(&n);
	for (size_t k = n % step; k <= n; k += step) {
		int err;

		store(data, k);
		err = read_log(&h, &c, &d);
		refused += err != 0;
		if (!err && c.library.iterations < before)
			fewer++;
		if (!err && c.library.iterations > before)
			before = c.library.iterations;
		/* Cut inside a part: it says so. */
		silent += !err && c.library.iterations > 0 && c.library.iterations <= all && k < n && c.notes.n < 2 &&
			  h.n[UM_ACT_OP] != 5 * c.library.iterations;
		um_capture_fini(&c);
		forget(&h);
	}
	is_u64(before, all + 1, "cut anywhere: the whole file has all iterations");
	ok(refused > 20 / step && refused < 400 / step, "cut in its first line it is refused, else read (%u refused)",
	   refused);
	is_u64(fewer, 0, "the more of the file there is, the more is read");
	is_u64(silent, 0, "parts are read as wholes");

	uint64_t x = 1;
	unsigned wrong = 0;

	for (int i = 0; i < 1000; i += tap_step(9)) {
		size_t at;
		unsigned char was;
		int err;

		at = test_random(&x, (uint32_t)n);
		was = data[at];
		data[at] ^= (unsigned char)(1u << test_random(&x, 8));
		store(data, n);
		err = read_log(&h, &c, &d);
		wrong += err != 0 && err != -EINVAL;
		wrong += err && !*d.text;
		um_capture_fini(&c);
		forget(&h);
		data[at] = was;
	}
	is_u64(wrong, 0, "damaged anywhere: refused with a reason, or read");
	free(data);
}

static void others(void)
{
	static const char *const texts[] = {
		"",
		"x",
		"{}\n",
		"{\"umlog\":2}\n",
		"{\"umlog\":\"1\"}\n",
		"{\"umtrace\":1}\n",
		"{\"umlog\":1}\n{\"part\":0}\n",
		"{\"umlog\":1}\n{\"define\":1,\"address\":1,\"bytes\":1,\"name\":\"\"}\n",
		"{\"umlog\":1}\n{\"part\":0,\"begin_ns\":5,\"end_ns\":1,\"first_op\":0}\n",
		"{\"umlog\":1}\n{\"part\":0,\"begin_ns\":0,\"end_ns\":1,\"first_op\":0,\"like\":3}\n",
		"{\"umlog\":1}\n{\"part\":0,\"begin_ns\":0,\"end_ns\":1,\"first_op\":0,\"alive\":[0,0]}\n",
		"{\"umlog\":1}\n{\"part\":0,\"begin_ns\":0,\"end_ns\":1,\"first_op\":0,\"alive\":[]}\n"
		"{\"at_ns\":0,\"tensor\":0}\n",
		"{\"umlog\":1}\n{\"part\":0,\"begin_ns\":0,\"end_ns\":1,\"first_op\":0,\"alive\":[]}\n"
		"{\"at_ns\":0,\"op\":\"a\",\"uses\":[[\"x\",1,1]]}\n"};
	struct um_capture c;
	struct um_diag d;
	struct received h;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		store((const unsigned char *)texts[i], strlen(texts[i]));
		ok(read_log(&h, &c, &d) == -EINVAL && *d.text && !strchr(d.text, '\n'),
		   "the log is refused with one line: %s", d.text);
		um_capture_fini(&c);
		forget(&h);
	}
}

/* Two at a time do not write one file; what is no file is left alone. */
static void names(void)
{
	struct um_log *a = begin(0), *b = begin(0);
	char second[80];
	struct um_diag d;

	snprintf(second, sizeof second, "%s.2", file);
	finish(b, 0);
	finish(a, 0);
	ok(size_of(file) && size_of(second), "the second of two has a file of its own");
	remove(second);
	ok(um_log_open(&a, "/dev/null", &about, 0, 0, &d) == -EINVAL && *d.text, "a device file is refused: %s",
	   d.text);
}

/* Which files a log replaces. */
static void foreign_files(void)
{
	static const char *const foreign[] = {"a letter\n", "{\"umtrace\":1}\n", "{\"umlo", "\x1f\x8b\x08"};
	struct um_log *a;
	struct um_diag d;

	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
		store((const unsigned char *)foreign[i], strlen(foreign[i]));
		is_int(um_log_open(&a, file, &about, 0, 0, &d), -EEXIST, "a file that is no umlog is refused");
		is_u64(size_of(file), strlen(foreign[i]), "the file that is no umlog stays");
	}
	store((const unsigned char *)"", 0);
	finish(begin(0), 0);
	ok(size_of(file) > 0, "an empty file becomes a umlog");
	finish(begin(0), 0);
	ok(size_of(file) > 0, "a umlog is replaced");
}

int main(void)
{
	snprintf(file, sizeof file, "/tmp/um-log-%ld.umlog", (long)getpid());
	if (!tap_few()) {
		play("resnet50", 6, 1000);
		play("gpt2_small", 4, 1000);
		limited(9000, UINT64_MAX, "two kinds of iterations");
		limited(6000, 9, "one in nine of its own kind");
		limited(4000, 1, "all different");
	}
	play("transformer_varlen", 3, 0);
	alike();
	again();
	cut();
	others();
	names();
	foreign_files();
	remove(file);
	return tap_done();
}
