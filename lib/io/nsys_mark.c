/* SPDX-License-Identifier: Apache-2.0
 *
 * nsys_mark.c - formats and parses the text of NVTX marks
 */
#include "io/nsys_mark.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const hints[] = {[UM_HINT_PREFETCH] = "prefetch",
				    [UM_HINT_EVICT] = "evict",
				    [UM_HINT_DISCARD] = "discard",
				    [UM_HINT_RECOMPUTE] = NULL,
				    [UM_HINT_ADVISE] = "advise"};

#define HINTS (sizeof hints / sizeof *hints)

static char letter_of(enum um_activity_access access)
{
	return access == UM_ACCESS_READ ? 'r' : access == UM_ACCESS_WRITE ? 'w' : 'u';
}

int um_nsys_mark_write(const struct um_activity *a, char **out)
{
	char op[24] = "-", *text = NULL;
	int n = 0;

	*out = NULL;
	if (a->op != UM_ACT_NO_OP)
		snprintf(op, sizeof op, "%" PRIu64, a->op);
	switch (a->kind) {
	case UM_ACT_TENSOR:
		n = asprintf(&text, "tensor 0x%" PRIx64 " %" PRIu64 " %s", a->address, a->bytes, a->name);
		break;
	case UM_ACT_TENSOR_END:
		n = asprintf(&text, "tensor-end 0x%" PRIx64, a->address);
		break;
	case UM_ACT_OP:
		n = asprintf(&text, "op %s %s", op, a->name);
		break;
	case UM_ACT_USE:
		n = asprintf(&text, "use %s %c 0x%" PRIx64 " %" PRIu64, op, letter_of(a->access), a->address, a->bytes);
		break;
	case UM_ACT_HINT:
		if ((size_t)a->hint < HINTS && hints[a->hint])
			n = asprintf(&text, "hint %s %s 0x%" PRIx64 " %" PRIu64 " %d", op, hints[a->hint], a->address,
				     a->bytes, a->error);
		break;
	default:
		break;
	}
	if (n < 0)
		return -ENOMEM;
	/* Line breaks in a name would end the mark. */
	for (char *c = text; c && *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	*out = text;
	return 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Each takes a word off the front, and the space after it: 1, or 0 if the word does not match. */
static int word(const char **s, const char *is)
{
	size_t n = strlen(is);

	if (strncmp(*s, is, n) != 0 || ((*s)[n] != ' ' && (*s)[n]))
		return 0;
	*s += n + ((*s)[n] == ' ');
	return 1;
}

static int number(const char **s, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**s))
		return 0;
	errno = 0;
	*out = strtoull(*s, &end, 0);
	if (errno || (*end && *end != ' '))
		return 0;
	*s = end + (*end == ' ');
	return 1;
}

static int range(const char **s, struct um_activity *a)
{
	return number(s, &a->address) && number(s, &a->bytes) && a->bytes <= UM_RANGE_MAX;
}

static int read_use(const char *s, struct um_activity *a)
{
	a->kind = UM_ACT_USE;
	if (!number(&s, &a->op))
		return 0;
	a->access = word(&s, "r")   ? UM_ACCESS_READ
		    : word(&s, "w") ? UM_ACCESS_WRITE
		    : word(&s, "u") ? UM_ACCESS_UPDATE
				    : UM_ACCESS_UNKNOWN;
	return a->access != UM_ACCESS_UNKNOWN && range(&s, a) && !*s;
}

static int read_hint(const char *s, struct um_activity *a)
{
	int minus, known = 0;
	uint64_t error;

	a->kind = UM_ACT_HINT;
	if (word(&s, "-"))
		a->op = UM_ACT_NO_OP;
	else if (!number(&s, &a->op))
		return 0;
	for (size_t i = 0; i < HINTS && !known; i++)
		if (hints[i] && word(&s, hints[i])) {
			a->hint = (enum um_hint_kind)i;
			known = 1;
		}
	if (!known || !range(&s, a))
		return 0;
	minus = *s == '-';
	s += minus;
	if (!number(&s, &error) || error > INT32_MAX || *s)
		return 0;
	a->error = minus ? -(int)error : (int)error;
	return 1;
}

int um_nsys_mark_read(const char *text, struct um_activity *a)
{
	if (word(&text, "tensor")) {
		a->kind = UM_ACT_TENSOR;
		a->name = "";
		if (!number(&text, &a->address) || !number(&text, &a->bytes) || !a->bytes)
			return 0;
		a->name = text;
		return 1;
	}
	if (word(&text, "tensor-end")) {
		a->kind = UM_ACT_TENSOR_END;
		return number(&text, &a->address) && !*text;
	}
	if (word(&text, "op")) {
		a->kind = UM_ACT_OP;
		a->name = "";
		if (!number(&text, &a->op))
			return 0;
		a->name = text;
		return 1;
	}
	if (word(&text, "use"))
		return read_use(text, a);
	return word(&text, "hint") && read_hint(text, a);
}
