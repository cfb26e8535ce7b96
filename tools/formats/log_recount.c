/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's counts may appear in the log long after their time: they are read first and sorted by time.
 */
#include "formats/log_reader.h"

#include <errno.h>
#include <string.h>

int um_log_is_counted(const char *text, size_t n)
{
	static const char begin[] = "{\"um\":";

	return n >= sizeof begin - 1 && memcmp(text, begin, sizeof begin - 1) == 0;
}

/* The index of a name among `of` names, of which some may be NULL; -1: not found. */
static int find(const struct um_json *j, const char *key, const char *const *names, int of)
{
	const char *s = json_string_value(json_object_get(j->root, key));

	for (int i = 0; s && i < of; i++)
		if (names[i] && strcmp(names[i], s) == 0)
			return i;
	return -1;
}

static int read_one(const struct um_json *j, struct um_log_driver_counter *c)
{
	const char *whys[UM_LOG_WHYS];
	uint64_t ns = 0;
	int kind = find(j, "um", um_log_driver_counter_names, UM_LOG_DRIVER_COUNTERS), why, err;

	if (kind < 0)
		return 0; /* written by a later version */
	c->kind = (enum um_log_driver_counter_kind)kind;
	for (unsigned i = 0; i < UM_LOG_WHYS; i++)
		whys[i] = um_log_driver_counter_why(c->kind, i);
	why = find(j, "why", whys, UM_LOG_WHYS);
	c->why = why < 0 ? 0 : (unsigned)why;
	c->records = 1;
	err = um_log_time(j, "at_ns", &c->begin);
	if (!err)
		err = um_json_u64(j, "ns", UM_JSON_MAY, 0, INT64_MAX / 4, &ns);
	c->end = c->begin + (int64_t)ns;
	if (!err)
		err = um_json_u64(j, "address", UM_JSON_MAY, 0, INT64_MAX / 2, &c->address);
	if (!err)
		err = um_json_u64(j, "records", c->address ? UM_JSON_MAY : UM_JSON_MUST, 1, INT64_MAX / 4, &c->records);
	if (!err)
		err = um_json_u64(j, um_log_driver_counter_unit(c->kind), UM_JSON_MUST, 0, INT64_MAX / 4, &c->n);
	return err ? err : 1;
}

static int in_time(const void *x, const void *y)
{
	const struct um_log_driver_counter *a = x, *b = y;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->why != b->why)
		return a->why < b->why ? -1 : 1;
	return a->n < b->n ? -1 : a->n > b->n;
}

static int ends_part(const char *text, size_t n)
{
	static const char end[] = "{\"end\":";

	return n >= sizeof end - 1 && memcmp(text, end, sizeof end - 1) == 0;
}

/* The main reader reports damage. A part without an end has no counts. */
int um_log_recount(struct um_log_reader *r)
{
	struct um_lines *lines;
	struct um_diag diag;
	const char *text;
	size_t n, whole = 0;
	int err = 0;

	if (um_lines_open(&lines, r->path, &diag))
		return um_diag_set(r->diag, EINVAL, r->line, "cannot be read twice: want a file");
	while (!err && um_lines_next(lines, &text, &n) > 0) {
		struct um_log_driver_counter c = {0};
		struct um_json j;

		if (ends_part(text, n))
			whole = r->counted.n;
		if (!um_log_is_counted(text, n))
			continue;
		err = um_json_parse(&j, text, n, um_lines_number(lines), r->diag);
		if (err)
			break;
		err = read_one(&j, &c);
		um_json_fini(&j);
		if (err > 0)
			err = um_vec_push(&r->counted, c) ? um_log_no_memory(r) : 0;
	}
	um_lines_close(lines);
	r->counted.n = whole;
	if (!err && whole)
		qsort(r->counted.at, r->counted.n, sizeof *r->counted.at, in_time);
	return err;
}
