/* SPDX-License-Identifier: Apache-2.0
 *
 * json_in.c - parses one line of JSON and checks the types of its keys
 */
#include "io/json_in.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/number.h"

int um_json_refuse(const struct um_json *j, const char *fmt, ...)
{
	char text[sizeof j->diag->text];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return um_diag_set(j->diag, EINVAL, j->line, "%s", text);
}

/* The parser's messages quote the text, which may contain anything: keep printable characters only. */
static void make_printable(char *s)
{
	for (; *s; s++)
		if (!isprint((unsigned char)*s))
			*s = '?';
}

static _Thread_local int alloc_failed; /* an allocation of the parser failed */

static void *take(size_t n)
{
	void *p = malloc(n);

	alloc_failed |= !p;
	return p;
}

void um_json_watch_memory(void)
{
	json_set_alloc_funcs(take, free);
}

int um_json_parse(struct um_json *j, const char *text, size_t n, uint64_t line, struct um_diag *diag)
{
	json_error_t e;

	*j = (struct um_json){.line = line, .diag = diag};
	alloc_failed = 0;
	j->root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
	if (alloc_failed) {
		um_json_fini(j);
		return um_diag_set(diag, ENOMEM, line, "out of memory");
	}
	if (!j->root) {
		/* If memory runs out before the parser has begun to read, it has no message. */
		if (json_error_code(&e) == json_error_out_of_memory || !*e.text)
			return um_diag_set(diag, ENOMEM, line, "out of memory");
		make_printable(e.text);
		return um_json_refuse(j, "%s (column %d): want one JSON object", e.text, e.column);
	}
	if (!json_is_object(j->root)) {
		um_json_fini(j);
		return um_json_refuse(j, "not an object: want one JSON object a line");
	}
	return 0;
}

void um_json_fini(struct um_json *j)
{
	json_decref(j->root);
	j->root = NULL;
}

struct um_json_shown um_json_show(const json_t *v)
{
	struct um_json_shown s;
	const char *text;

	switch (json_typeof(v)) {
	case JSON_INTEGER:
		snprintf(s.text, sizeof s.text, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		um_number_print(s.text, json_real_value(v));
		if (!strpbrk(s.text, ".e"))
			strcat(s.text, ".0"); /* 1.0 is refused where 1 is not: show why */
		break;
	case JSON_STRING:
		text = json_string_value(v);
		snprintf(s.text, sizeof s.text, "\"%.40s%s\"", text, strlen(text) > 40 ? "..." : "");
		break;
	default:
		snprintf(s.text, sizeof s.text, "%s",
			 json_is_object(v)  ? "an object"
			 : json_is_array(v) ? "an array"
			 : json_is_null(v)  ? "null"
			 : json_is_true(v)  ? "true"
					    : "false");
	}
	make_printable(s.text);
	return s;
}

/* 0 with *v NULL if an optional key is absent. */
static int get(const struct um_json *j, const char *key, enum um_json_need need, const char *want, json_t **v)
{
	*v = json_object_get(j->root, key);
	if (!*v && need == UM_JSON_MUST)
		return um_json_refuse(j, "`%s` is missing: want %s", key, want);
	return 0;
}

static int integer(const struct um_json *j, const json_t *v, const char *what, int64_t min, int64_t max, int64_t *out)
{
	json_int_t x = json_integer_value(v);

	if (json_is_integer(v) && x >= min && x <= max) {
		*out = x;
		return 0;
	}
	if (max == INT64_MAX)
		return um_json_refuse(j, "%s is %s: want an integer of at least %" PRId64, what, um_json_show(v).text,
				      min);
	return um_json_refuse(j, "%s is %s: want an integer from %" PRId64 " to %" PRId64, what, um_json_show(v).text,
			      min, max);
}

int um_json_as_u64(const struct um_json *j, const json_t *v, const char *what, uint64_t min, uint64_t max,
		   uint64_t *out)
{
	int64_t x;
	int rc = integer(j, v, what, (int64_t)min, max > INT64_MAX ? INT64_MAX : (int64_t)max, &x);

	if (!rc)
		*out = (uint64_t)x;
	return rc;
}

int um_json_u64(const struct um_json *j, const char *key, enum um_json_need need, uint64_t min, uint64_t max,
		uint64_t *out)
{
	char what[40];
	json_t *v;
	int rc = get(j, key, need, "an integer", &v);

	if (rc || !v)
		return rc;
	snprintf(what, sizeof what, "`%s`", key);
	return um_json_as_u64(j, v, what, min, max, out);
}

int um_json_i32(const struct um_json *j, const char *key, enum um_json_need need, int32_t min, int32_t max,
		int32_t *out)
{
	char what[40];
	int64_t x;
	json_t *v;
	int rc = get(j, key, need, "an integer", &v);

	if (rc || !v)
		return rc;
	snprintf(what, sizeof what, "`%s`", key);
	rc = integer(j, v, what, min, max, &x);
	if (!rc)
		*out = (int32_t)x;
	return rc;
}

int um_json_amount(const struct um_json *j, const char *key, double *out)
{
	json_t *v = json_object_get(j->root, key);

	if (!v)
		return 0;
	/* JSON has no NaN and no infinity, and the parser refuses overflow: every number is finite. */
	if (!json_is_number(v) || json_number_value(v) < 0)
		return um_json_refuse(j, "`%s` is %s: want a number of at least 0", key, um_json_show(v).text);
	*out = json_number_value(v);
	return 0;
}

int um_json_str(const struct um_json *j, const char *key, enum um_json_need need, const char **out)
{
	json_t *v;
	int rc = get(j, key, need, "a string", &v);

	if (rc || !v)
		return rc;
	if (!json_is_string(v))
		return um_json_refuse(j, "`%s` is %s: want a string", key, um_json_show(v).text);
	*out = json_string_value(v);
	return 0;
}

int um_json_bool(const struct um_json *j, const char *key, int *out)
{
	json_t *v = json_object_get(j->root, key);

	if (!v)
		return 0;
	if (!json_is_boolean(v))
		return um_json_refuse(j, "`%s` is %s: want true or false", key, um_json_show(v).text);
	*out = json_is_true(v);
	return 0;
}

int um_json_hex(const struct um_json *j, const char *key, enum um_json_need need, uint64_t *out)
{
	const char *s = NULL;
	size_t n;
	int rc = um_json_str(j, key, need, &s);

	if (rc || !s)
		return rc;
	n = strlen(s);
	if (n == 0 || strspn(s, "0123456789abcdefABCDEF") != n)
		return um_json_refuse(j, "`%s` is %s: want hexadecimal digits", key,
				      um_json_show(json_object_get(j->root, key)).text);
	*out = strtoull(n > 16 ? s + n - 16 : s, NULL, 16);
	return 0;
}

int um_json_array(const struct um_json *j, const char *key, enum um_json_need need, json_t **out)
{
	json_t *v;
	int rc = get(j, key, need, "a list, [] if there is none", &v);

	if (rc || !v)
		return rc;
	if (!json_is_array(v))
		return um_json_refuse(j, "`%s` is %s: want a list", key, um_json_show(v).text);
	*out = v;
	return 0;
}
