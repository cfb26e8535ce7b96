/* SPDX-License-Identifier: Apache-2.0
 *
 * json_in.h - one line of JSON, and its keys with their types checked
 *
 * Getters return 0 or -EINVAL with file, line, what is there and what would be right. A key that may be missing leaves
 * the output as it was. null is a wrong type, not a missing key. Borrowed strings and arrays live until um_json_fini.
 *
 * An allocation that fails inside the JSON parser is told as -ENOMEM where the parser knows, else as a wrong text.
 */
#ifndef UM_IO_JSON_IN_H
#define UM_IO_JSON_IN_H

#include <jansson.h>
#include <stdint.h>

#include "base/diag.h"

struct um_json {
	json_t *root; /* an object */
	uint64_t line;
	struct um_diag *diag; /* may be NULL */
};

/* For a program of our own, once, at its start: from then on the parser always knows where memory ran out. Else it may
 * drop a character of a string there and go on. Not for a library: it holds for all of the process. */
void um_json_watch_memory(void);

enum um_json_need { UM_JSON_MAY, UM_JSON_MUST };

/* Takes one object; duplicate keys are refused. */
int um_json_parse(struct um_json *j, const char *text, size_t n, uint64_t line, struct um_diag *diag);
void um_json_fini(struct um_json *j);

/* Refuses the line: returns -EINVAL. */
int um_json_refuse(const struct um_json *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int um_json_u64(const struct um_json *j, const char *key, enum um_json_need need, uint64_t min, uint64_t max,
		uint64_t *out);
int um_json_i32(const struct um_json *j, const char *key, enum um_json_need need, int32_t min, int32_t max,
		int32_t *out);
int um_json_amount(const struct um_json *j, const char *key, double *out); /* may be missing; >= 0 */
int um_json_str(const struct um_json *j, const char *key, enum um_json_need need, const char **out);
int um_json_bool(const struct um_json *j, const char *key, int *out); /* may be missing */
/* Hexadecimal digits in a string; of more than 16 the last 16 count (others fingerprint with longer sums than we do).
 */
int um_json_hex(const struct um_json *j, const char *key, enum um_json_need need, uint64_t *out);
int um_json_array(const struct um_json *j, const char *key, enum um_json_need need, json_t **out);

/* The same for a value inside an array; `what` names it in messages. */
int um_json_as_u64(const struct um_json *j, const json_t *v, const char *what, uint64_t min, uint64_t max,
		   uint64_t *out);

/* A value fit for a message: short, printable. */
struct um_json_shown {
	char text[56];
};
struct um_json_shown um_json_show(const json_t *v);

#endif
