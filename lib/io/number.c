/* SPDX-License-Identifier: Apache-2.0
 *
 * number.c - prints and parses numbers independently of the locale
 */
#include "io/number.h"

#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Locales with a decimal point of several bytes exist (ps_AF): handle it as a string. */
static const char *local_point(void)
{
	const char *point = localeconv()->decimal_point;

	return point && *point ? point : ".";
}

size_t um_number_print(char buf[UM_NUMBER_MAX], double x)
{
	const char *point = local_point();
	char *at;

	assert(isfinite(x));
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buf, UM_NUMBER_MAX, "%.*g", digits, x);
		if (strtod(buf, NULL) == x)
			break;
	}
	at = strcmp(point, ".") == 0 ? NULL : strstr(buf, point);
	if (at) {
		*at = '.';
		memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
	}
	return strlen(buf);
}

static size_t digits(const char *text, size_t n, size_t i)
{
	while (i < n && text[i] >= '0' && text[i] <= '9')
		i++;
	return i;
}

int um_number_parse(const char *text, size_t n, double *out)
{
	const char *point = local_point();
	char buf[128];
	size_t whole, end, i, len;
	double x;

	whole = i = digits(text, n, 0);
	if (i == 0)
		return -EINVAL;
	if (i < n && text[i] == '.') {
		end = digits(text, n, i + 1);
		if (end == i + 1)
			return -EINVAL;
		i = end;
	}
	if (i < n && (text[i] == 'e' || text[i] == 'E')) {
		size_t first = i + 1 < n && (text[i + 1] == '+' || text[i + 1] == '-') ? i + 2 : i + 1;

		end = digits(text, n, first);
		if (end == first)
			return -EINVAL;
		i = end;
	}
	if (i != n)
		return -EINVAL;
	if (n + strlen(point) >= sizeof buf)
		return -ERANGE; /* a rate of a hundred digits is an error */
	len = (size_t)snprintf(buf, sizeof buf, "%.*s", (int)whole, text);
	if (whole < n && text[whole] == '.')
		len += (size_t)snprintf(buf + len, sizeof buf - len, "%s", point), whole++;
	snprintf(buf + len, sizeof buf - len, "%.*s", (int)(n - whole), text + whole);
	x = strtod(buf, NULL);
	if (!isfinite(x))
		return -ERANGE;
	*out = x;
	return 0;
}

int um_number_parse_u64(const char *text, size_t n, uint64_t *out)
{
	uint64_t x = 0;

	if (n == 0 || digits(text, n, 0) != n)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		unsigned digit = (unsigned)(text[i] - '0');

		if (x > ((uint64_t)INT64_MAX - digit) / 10)
			return -ERANGE;
		x = x * 10 + digit;
	}
	*out = x;
	return 0;
}
