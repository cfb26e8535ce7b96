/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged exports: whatever bytes are changed, the reader says what it found, or why it refuses, in one line; it never
 * crashes and always ends. A few hundred of them; UM_TEST_DAMAGE=N for more.
 */
#include "formats/nsys.h"
#include "report/report.h"
#include "fixture/random.h"
#include "tap.h"

#include <fcntl.h>
#include <unistd.h>

#define ROUNDS 400
#define PAGE 4096 /* bytes: SQLite's own choice */

static uint64_t seed = 20261121;

static uint64_t draw(uint64_t below)
{
	return test_random64(&seed) % below;
}

static void feed(struct um_activity_sink *to, enum um_activity_kind kind, int64_t begin, uint64_t n)
{
	char name[32];
	struct um_activity a = {.kind = kind,
				.begin = begin,
				.end = begin + 900,
				.process = 1 + n % 2,
				.thread = 1,
				.device = kind == UM_ACT_CALL || kind == UM_ACT_RANGE ? -1 : 0,
				.correlation = n + 1,
				.name = name,
				.domain = kind == UM_ACT_RANGE ? UM_REPORT_DOMAIN : NULL,
				.address = n << 16,
				.bytes = 65536,
				.faults = 3,
				.dir = n % 2 ? UM_DIR_H2D : UM_DIR_D2H,
				.cause = (enum um_activity_cause)(n % UM_CAUSES),
				.managed = 1};

	snprintf(name, sizeof name, "name %" PRIu64, kind == UM_ACT_RANGE ? n : n % 7);
	um_activity_feed(to, &a);
}

/* Some of everything, a few rows to a page. */
static void write_sample(const char *path)
{
	struct um_nsys_writer *w;
	struct um_diag d;

	if (um_nsys_create(&w, path, um_profile_find("v100"), &d))
		tap_bail(d.text);
	for (uint64_t n = 0; n < 150; n++)
		for (int kind = 0; kind < UM_ACT_KINDS; kind++)
			feed(um_nsys_sink(w), (enum um_activity_kind)kind, (int64_t)(n * 1000), n);
	if (um_nsys_close(w, 1, &d))
		tap_bail(d.text);
}

static uint8_t *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(1 << 22);

	*size = f && data ? fread(data, 1, 1 << 22, f) : 0;
	if (f)
		fclose(f);
	return data;
}

static void spill(const char *path, const uint8_t *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		tap_bail("cannot write");
	close(fd);
}

/* One damage, of the kinds that disks and hands make; half of them where a page begins. */
static void hurt(uint8_t *data, size_t size)
{
	size_t at = draw(2) ? draw(size) : draw(size / PAGE) * PAGE + draw(64);
	size_t n = 1 + draw(draw(4) ? 8 : 2000);

	at = at < size ? at : size - 1;
	n = n < size - at ? n : size - at;
	switch (draw(5)) {
	case 0:
		data[at] ^= (uint8_t)(1u << draw(8));
		break;
	case 1:
		memset(data + at, 0, n);
		break;
	case 2:
		memset(data + at, 0xff, n);
		break;
	case 3:
		for (size_t i = 0; i < n; i++)
			data[at + i] = (uint8_t)draw(256);
		break;
	default:
		memmove(data + at, data + draw(size - n), n);
	}
}

/* 0 or the refusal; bad: it did not say what it should. thread_rows: tables of so many are read on threads. */
static int read_one(const char *path, uint64_t thread_rows, int *bad)
{
	struct um_nsys_read_options o = {.thread_rows = thread_rows};
	struct um_report r;
	struct um_capture c;
	struct um_diag d;
	int err;

	um_report_init(&r, &(struct um_report_options){0});
	err = um_nsys_read(path, &o, &r.sink, &c, &d);
	if (!err)
		err = um_report_finish(&r);
	*bad |= err && (!*d.text || strchr(d.text, '\n'));
	*bad |= err && err != -EINVAL && (err != -ENOMEM || !strstr(d.text, "damaged"));
	if (*bad)
		diag("status %d: %s", err, d.text);
	um_report_fini(&r);
	um_capture_fini(&c);
	return err;
}

int main(void)
{
	const char *more = getenv("UM_TEST_DAMAGE");
	char sample[64], path[64];
	int bad = 0, fine = 0, refused = 0;
	long rounds = more ? atol(more) : ROUNDS / tap_step(8);
	size_t size, cuts = 0;
	uint8_t *whole, *data;

	snprintf(sample, sizeof sample, "/tmp/um-damage-%ld.sqlite", (long)getpid());
	snprintf(path, sizeof path, "/tmp/um-damage-%ld-x.sqlite", (long)getpid());
	write_sample(sample);
	is_int(read_one(sample, 0, &bad), 0, "the sample is read");
	is_int(read_one(sample, 1, &bad), 0, "the sample is read with a thread for each table");
	whole = slurp(sample, &size);
	data = malloc(size);
	ok(data && size > 20000, "the sample is large enough to be damaged: %zu", size);
	for (long i = 0; i < rounds && data; i++) {
		memcpy(data, whole, size);
		for (uint64_t k = 1 + draw(3); k > 0; k--)
			hurt(data, size);
		spill(path, data, size);
		*(read_one(path, i % 2, &bad) ? &refused : &fine) += 1;
		if (bad)
			break;
	}
	ok(!bad, "%ld damaged files: %d refused, each with a line; %d read", rounds, refused, fine);
	ok(refused > rounds / 10 && fine > rounds / 10, "damage is neither always seen nor never");
	for (size_t n = 0; n < size; n += size / 40, cuts++) {
		spill(path, whole, n);
		bad |= read_one(path, 0, &bad) != -EINVAL;
	}
	ok(!bad, "%zu files that were cut off: each refused", cuts);
	free(whole);
	free(data);
	remove(sample);
	remove(path);
	return tap_done();
}
