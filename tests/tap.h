/* SPDX-License-Identifier: Apache-2.0
 *
 * tap.h - a test says what it found, in the Test Anything Protocol
 *
 *     int main(void)
 *     {
 *             ok(um_tree_add(&t, &n) == 0, "a node goes in");
 *             is_u64(t.n, 1, "and is counted");
 *             return tap_done();
 *     }
 *
 * Each check prints one line and goes on after a failure; the failing line is followed by file, line and both values.
 * Checks return whether they held. Either tap_plan(n) first (a test that ends early is then seen), or tap_done() alone,
 * which prints the count; with tap_plan, end with `return tap_done()` just the same. plan(n) is another name of
 * tap_plan. Messages are printf formats. Not thread-safe: check from one thread.
 */
#ifndef UM_TESTS_TAP_H
#define UM_TESTS_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAP_UNUSED __attribute__((unused))

static struct {
	int planned, run, failed;
} tap_;

/* Unbuffered by line: what was found before a crash must be seen. */
static inline void tap_setup_(void)
{
	if (tap_.run == 0 && tap_.planned == 0)
		setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline void tap_plan(int n)
{
	tap_setup_();
	tap_.planned = n;
	printf("1..%d\n", n);
}

/* Ends the test; what main returns. */
static inline int tap_done(void)
{
	if (!tap_.planned)
		printf("1..%d\n", tap_.run);
	else if (tap_.planned != tap_.run)
		printf("# planned %d, ran %d\n", tap_.planned, tap_.run);
	fflush(stdout);
	return tap_.failed || (tap_.planned && tap_.planned != tap_.run) || tap_.run == 0;
}

/* With UM_TEST_FEW a test takes some of many cases: with sanitizers, under valgrind, with a second compiler, and where
 * someone waits (`./quickstart check`). The suite of the release archive takes each of them. */
static inline TAP_UNUSED int tap_few(void)
{
	return getenv("UM_TEST_FEW") != NULL;
}

/* The step of a sweep: one case in `n`, or each. */
static inline TAP_UNUSED int tap_step(int n)
{
	return tap_few() ? n : 1;
}

/* The rest of the plan cannot go on. */
static inline __attribute__((noreturn)) TAP_UNUSED void tap_bail(const char *why)
{
	printf("Bail out! %s\n", why);
	fflush(stdout);
	exit(1);
}

/* The whole test does not apply here; only before the first check. */
static inline __attribute__((noreturn)) TAP_UNUSED void tap_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	fflush(stdout);
	exit(0);
}

static inline TAP_UNUSED void __attribute__((format(printf, 1, 2))) tap_diag_(const char *fmt, ...)
{
	va_list ap;

	printf("# ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* A '#' in a message would start a directive: it is printed as '.'. */
static inline int tap_vok_(int good, const char *file, int line, const char *fmt, va_list ap)
{
	char text[512], *c;

	tap_setup_();
	vsnprintf(text, sizeof(text), fmt, ap);
	for (c = text; *c; c++)
		*c = *c == '#' ? '.' : *c == '\n' ? ' ' : *c;
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++tap_.run, text);
	if (!good) {
		tap_.failed++;
		printf("#   at %s:%d\n", file, line);
	}
	return good;
}

static inline int TAP_UNUSED __attribute__((format(printf, 4, 5)))
tap_ok_(int good, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tap_vok_(good, file, line, fmt, ap);
	va_end(ap);
	return good;
}

static inline int TAP_UNUSED __attribute__((format(printf, 5, 6)))
tap_is_int_(long long got, long long want, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!tap_vok_(got == want, file, line, fmt, ap))
		tap_diag_("  got %lld, want %lld", got, want);
	va_end(ap);
	return got == want;
}

static inline int TAP_UNUSED __attribute__((format(printf, 5, 6)))
tap_is_u64_(uint64_t got, uint64_t want, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!tap_vok_(got == want, file, line, fmt, ap))
		tap_diag_("  got %" PRIu64 " (0x%" PRIx64 "), want %" PRIu64 " (0x%" PRIx64 ")", got, got, want, want);
	va_end(ap);
	return got == want;
}

static inline int TAP_UNUSED __attribute__((format(printf, 5, 6)))
tap_is_str_(const char *got, const char *want, const char *file, int line, const char *fmt, ...)
{
	int good = got && want ? strcmp(got, want) == 0 : got == want;
	va_list ap;

	va_start(ap, fmt);
	if (!tap_vok_(good, file, line, fmt, ap)) {
		tap_diag_("  got  %s%s%s", got ? "\"" : "", got ? got : "NULL", got ? "\"" : "");
		tap_diag_("  want %s%s%s", want ? "\"" : "", want ? want : "NULL", want ? "\"" : "");
	}
	va_end(ap);
	return good;
}

static inline TAP_UNUSED void tap_skip_(int n, const char *why)
{
	tap_setup_();
	while (n-- > 0)
		printf("ok %d # SKIP %s\n", ++tap_.run, why);
}

/* Macros only for file and line. Calls of these names never hide a variable of the same name. */
#define plan(n) tap_plan(n)
#define ok(cond, ...) tap_ok_(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, want, ...) tap_is_int_((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define is_u64(got, want, ...) tap_is_u64_((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define is_str(got, want, ...) tap_is_str_((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define skip(n, why) tap_skip_((n), (why))
#define diag(...) tap_diag_(__VA_ARGS__)

#endif
