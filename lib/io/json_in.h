/* SPDX-License-Identifier: Apache-2.0
 *
 * json_in.h - one line of JSON, with type-checked access to its keys
 *
 * Getters return 0, or -EINVAL with file, line, the value found and the form expected. If an optional key is absent the
 * output is unchanged. null is a wrong type, not an absent key. Borrowed strings and arrays live until um_json_fini.
 *
 * A failed allocation inside the JSON parser is reported as -ENOMEM if the parser detects it, otherwise as invalid
 * text.
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

/* For programs, not for a library, because it applies to the whole process: called once at the start, it makes the
 * parser detect every failed allocation. Without it the parser may drop a character of a string and continue. */
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
int um_json_amount(const struct um_json *j, const char *key, double *out); /* optional; >= 0 */
int um_json_str(const struct um_json *j, const char *key, enum um_json_need need, const char **out);
int um_json_bool(const struct um_json *j, const char *key, int *out); /* optional */
/* Hexadecimal digits in a string; of more than 16 the last 16 count (other writers use longer fingerprints). */
int um_json_hex(const struct um_json *j, const char *key, enum um_json_need need, uint64_t *out);
int um_json_array(const struct um_json *j, const char *key, enum um_json_need need, json_t **out);

/* The same for a value inside an array; `what` names it in messages. */
int um_json_as_u64(const struct um_json *j, const json_t *v, const char *what, uint64_t min, uint64_t max,
		   uint64_t *out);

/* A value for a message: short, printable. */
struct um_json_shown {
	char text[56];
};
struct um_json_shown um_json_show(const json_t *v);

#endif
