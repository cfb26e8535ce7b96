/* SPDX-License-Identifier: Apache-2.0
 *
 * What readers and writers are made of: numbers, the map of ids, the arena, lines.
 */
#include "base/text.h"
#include "base/diag.h"
#include "io/arena.h"
#include "io/id_map.h"
#include "io/lines.h"
#include "io/number.h"
#include "io/umtrace.h"
#include "model/event.h"
#include "tap.h"

#include <errno.h>
#include <float.h>
#include <zlib.h>

static void check_number(double x, const char *want)
{
	char buf[UM_NUMBER_MAX];
	double back = -1;
	size_t n = um_number_print(buf, x);

	is_str(buf, want, "a number is written as %s", want);
	ok(um_number_parse(buf, n, &back) == 0 && back == x, "the written number is read back");
}

static void check_numbers(void)
{
	static const char *const wrong[] = {"",	   ".",	 ".5", "5.",  "1e",  "e5",  "+1",    "-1",
					    "0x1", "1 ", " 1", "nan", "inf", "1e+", "1.5.5", "1,5"};
	uint64_t u = 9;
	double x = 9;

	check_number(0, "0");
	check_number(0.1, "0.1");
	check_number(1.0 / 3, "0.3333333333333333");
	check_number(12e9, "12000000000");
	check_number(9007199254740993.0, "9007199254740992");
	check_number(DBL_MAX, "1.7976931348623157e+308");
	check_number(DBL_MIN / 4, "5.562684646268003e-309");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		is_int(um_number_parse(wrong[i], strlen(wrong[i]), &x), -EINVAL, "\"%s\" is refused as a number",
		       wrong[i]);
	is_int(um_number_parse("1e999", 5, &x), -ERANGE, "a number beyond a double is out of range");
	ok(x == 9, "a refused number leaves the output untouched");
	is_int(um_number_parse_u64("9223372036854775807", 19, &u), 0, "an integer of 2^63 - 1 is accepted");
	is_u64(u, INT64_MAX, "the largest integer is read");
	is_int(um_number_parse_u64("9223372036854775808", 19, &u), -ERANGE, "an integer of 2^63 is out of range");
	is_int(um_number_parse_u64("99999999999999999999999", 23, &u), -ERANGE, "a far larger integer is out of range");
	is_int(um_number_parse_u64("", 0, &u), -EINVAL, "an empty integer is refused");
	is_int(um_number_parse_u64("1e3", 3, &u), -EINVAL, "an integer with an exponent is refused");
	is_u64(u, INT64_MAX, "a refused integer leaves the output untouched");
}

/* Against a plain array: keys that collide, come and go. */
static void check_map(void)
{
	enum { KEYS = 500 };
	struct um_id_map m = {0};
	uint64_t value[KEYS];
	int wrong = 0;
	size_t n = 0;

	memset(value, 0xff, sizeof value);
	ok(!um_id_map_find(&m, 3), "an empty map finds nothing");
	um_id_map_remove(&m, 3);
	for (uint64_t step = 0; step < 20000; step++) {
		uint64_t k = (step * 2654435761u >> 7) % KEYS, key = k % 2 ? k : k << 40;

		if (value[k] == UINT64_MAX) {
			wrong += um_id_map_add(&m, key, step) != 0;
			value[k] = step;
			n++;
		} else if (step % 3) {
			um_id_map_remove(&m, key);
			value[k] = UINT64_MAX;
			n--;
		}
		for (uint64_t i = step % 7; i < KEYS; i += 7) {
			const uint64_t *found = um_id_map_find(&m, i % 2 ? i : i << 40);

			wrong += (found ? *found : UINT64_MAX) != value[i];
		}
	}
	is_int(wrong, 0, "a map is what a plain array is");
	is_u64(m.n, n, "the map counts its entries");
	um_id_map_fini(&m);
}

static void check_arena(void)
{
	struct um_arena a = {0};
	char text[32], big[300000];
	const char *first = um_arena_intern(&a, "first");
	int wrong = 0;

	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "name %d", i % 1000);
		const char *name = um_arena_intern(&a, text);

		wrong += strcmp(name, text) != 0 || name != um_arena_intern(&a, text);
	}
	is_int(wrong, 0, "a string is kept once");
	ok(first == um_arena_intern(&a, "first") && strcmp(first, "first") == 0, "an interned text keeps its address");
	memset(big, 'x', sizeof big);
	char *copy = um_arena_copy(&a, big, sizeof big);

	ok(memcmp(copy, big, sizeof big) == 0, "an allocation larger than a chunk succeeds");
	um_arena_fini(&a);
}

/* Lines of a text, joined by '|'. */
static int join(const void *data, size_t bytes, char *out, struct um_diag *d)
{
	struct um_lines *l;
	const char *text;
	size_t n;
	int rc = um_lines_open_mem(&l, data, bytes, "memory", d);

	*out = '\0';
	while (!rc && (rc = um_lines_next(l, &text, &n)) > 0) {
		strncat(out, text, n);
		strcat(out, "|");
		rc = 0;
	}
	um_lines_close(l);
	return rc;
}

static size_t gzip(const void *data, size_t n, unsigned char *out, size_t room)
{
	z_stream z = {0};

	deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
	z.next_in = (unsigned char *)(uintptr_t)data;
	z.avail_in = (uInt)n;
	z.next_out = out;
	z.avail_out = (uInt)room;
	deflate(&z, Z_FINISH);
	deflateEnd(&z);
	return z.total_out;
}

static void check_lines(void)
{
	unsigned char packed[256];
	char out[256];
	struct um_diag d;
	size_t n = gzip("one\ntwo", 7, packed, sizeof packed);

	ok(join("", 0, out, &d) == 0 && strcmp(out, "") == 0, "nothing has no line");
	ok(join("\n", 1, out, &d) == 0 && strcmp(out, "|") == 0, "a newline is a line");
	ok(join("a\n\nbc", 5, out, &d) == 0 && strcmp(out, "a||bc|") == 0, "the last newline may be missing");
	ok(join("\x1f", 1, out, &d) == 0 && strcmp(out, "\x1f|") == 0, "half a sign of gzip is none");
	ok(join(packed, n, out, &d) == 0 && strcmp(out, "one|two|") == 0, "lines of a gzip file are read");
	memcpy(packed + n, packed, n);
	ok(join(packed, 2 * n, out, &d) == 0 && strcmp(out, "one|twoone|two|") == 0,
	   "lines of two gzip members are read as one file");
	for (size_t cut = 2; cut < n; cut++)
		if (join(packed, cut, out, &d) != -EINVAL)
			break;
		else if (cut == n - 1)
			ok(1, "refused wherever it is cut");
	is_int(join(packed, n + 5, out, &d), -EINVAL, "cut in the second member");
	packed[n + 1] = 0;
	is_int(join(packed, n + 2, out, &d), -EINVAL, "something else behind the end");
}

static void check_long_lines(void)
{
	struct um_lines *l;
	struct um_diag d;
	const char *text;
	size_t n, max = UM_IO_LINE_MAX;
	char *line = malloc(max + 3);

	memset(line, 'x', max + 2);
	line[0] = '\n';
	line[max + 1] = '\n';
	um_lines_open_mem(&l, line, max + 2, "memory", &d);
	is_int(um_lines_next(l, &text, &n), 1, "an empty line is read");
	is_int(um_lines_next(l, &text, &n), 1, "a line of the largest size is read");
	is_u64(n, max, "a line of the largest length is whole");
	is_int(um_lines_next(l, &text, &n), 0, "the file ends after the line");
	um_lines_close(l);
	line[max + 1] = 'x';
	for (int newline = 0; newline < 2; newline++) {
		line[max + 2] = '\n';
		um_lines_open_mem(&l, line, max + 2 + (size_t)newline, "memory", &d);
		um_lines_next(l, &text, &n);
		is_int(um_lines_next(l, &text, &n), -EINVAL, "a byte more, %s newline", newline ? "with" : "without");
		is_u64(d.line, 2, "the diagnostic has the line");
		um_lines_close(l);
	}
	free(line);
}

static void check_roles(void)
{
	int wrong = 0;

	for (int i = 0; i < UM_ROLES; i++)
		wrong += um_role_parse(um_role_name((enum um_role)i)) != i;
	is_int(wrong, 0, "roles have names");
	is_int(um_role_parse("Param"), -EINVAL, "a role in another spelling is refused");
	is_str(um_role_name(UM_ROLES), "other", "no role is other");
}

static void check_text(void)
{
	static const char *const hidden[] = {"\x01",	     "\n",	     "\x1b",	     "\x7f",
					     "\xc2\x80",     "\xc2\x9b",     "\x80",	     "\xff",
					     "\xc0\x80",     "\xed\xa0\x80", "\xe2\x80\x8b", "\xe2\x80\xae",
					     "\xe2\x81\xa6", "\xe2\x80\xa8", "\xef\xbb\xbf"};
	static const char *const seen[] = {
		" ", "~", "\xc2\xa0", "\xc3\xa9", "\xe2\x82\xac", "\xe2\x80\x90", "\xf0\x9f\x98\x80"};
	static const char *const cells[][2] = {{"=1", "'=1"},	      {"+1", "'+1"},	  {"-1", "'-1"},
					       {"@a", "'@a"},	      {"a=1", "a=1"},	  {"", ""},
					       {"\t=1", "\\x09=1"},   {"a,b", "\"a,b\""}, {"a\"b", "\"a\"\"b\""},
					       {"=a,b", "\"'=a,b\""}, {"a\nb", "a\\x0ab"}};
	char room[16], byte[2] = "";

	for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
		ok(um_text_hidden(hidden[i], um_text_utf8(hidden[i])), "character %zu is hidden", i);
	for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
		ok(um_text_visible(seen[i], room, sizeof room) == seen[i], "character %zu is seen", i);
	for (int b = 1; b < 256; b++) {
		const char *v;

		byte[0] = (char)b;
		v = um_text_visible(byte, room, sizeof room);
		if (b < 0x20 || b >= 0x7f)
			ok(strlen(v) == 4 && strncmp(v, "\\x", 2) == 0, "byte %d is escaped", b);
		else
			ok(v == byte, "byte %d stays", b);
	}
	is_str(um_text_visible("\xc2\x9b"
			       "31m",
			       room, sizeof room),
	       "\\xc2\\x9b31m", "each byte of a C1 control is escaped");
	is_str(um_text_visible("a\n\n\n\n\n", room, sizeof room), "a\\x0a\\x0a\\x0a",
	       "a text is cut where its room ends");
	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
		char *cell = um_text_csv(cells[i][0], 0);

		is_str(cell, cells[i][1], "text %zu becomes a cell", i);
		free(cell);
	}
}

int main(void)
{
	check_numbers();
	check_map();
	check_arena();
	check_lines();
	check_long_lines();
	check_roles();
	check_text();

	return tap_done();
}
