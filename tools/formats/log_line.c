/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/log_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int um_log_time(const struct um_json *j, const char *key, int64_t *out)
{
	const json_t *v = json_object_get(j->root, key);

	if (!json_is_integer(v))
		return um_json_refuse(j, "`%s` is missing, or no integer", key);
	*out = json_integer_value(v);
	if (*out > INT64_MAX / 4 || *out < INT64_MIN / 4)
		return um_json_refuse(j, "`%s` is %s: want a time in ns", key, um_json_show(v).text);
	return 0;
}

static int read_counts(const struct um_json *j, uint64_t *counts)
{
	int err = 0;

	for (int i = 0; i < UM_LIBRARY_COUNTS && !err; i++)
		err = um_json_u64(j, um_library_count_keys[i], UM_JSON_MAY, 0, INT64_MAX, &counts[i]);
	return err;
}

static int read_text(const struct um_json *j, const char *key, char *to, size_t size)
{
	const char *s = "";
	int err = um_json_str(j, key, UM_JSON_MAY, &s);

	if (!err)
		snprintf(to, size, "%s", s);
	return err;
}

/* In the header of a process of a job. */
static int read_rank(const struct um_json *j, struct um_capture_rank *rank)
{
	const struct {
		const char *key;
		uint64_t *out;
	} numbers[] = {{"ranks", &rank->ranks}, {"local_rank", &rank->local_rank}, {"local_ranks", &rank->local_ranks}};
	const char *host = NULL;
	int err = um_json_u64(j, "rank", UM_JSON_MUST, 0, INT64_MAX, &rank->rank);

	for (size_t i = 0; !err && i < sizeof numbers / sizeof *numbers; i++)
		err = um_json_u64(j, numbers[i].key, UM_JSON_MAY, 0, INT64_MAX, numbers[i].out);
	if (!err)
		err = um_json_str(j, "host", UM_JSON_MAY, &host);
	if (err)
		return err;
	snprintf(rank->host, sizeof rank->host, "%s", host ? host : "");
	rank->is = 1;
	return 0;
}

int um_log_line_head(struct um_log_reader *r, const struct um_json *j)
{
	struct um_capture_library *l = &r->capture->library;
	uint64_t version;
	char clock[16];
	int err;

	if (!json_object_get(j->root, "umlog"))
		return um_json_refuse(j, "not a umlog file: want {\"umlog\":%d,...} in its first line", UM_LOG_VERSION);
	err = um_json_u64(j, "umlog", UM_JSON_MUST, 1, INT64_MAX, &version);
	if (!err && version > UM_LOG_VERSION)
		return um_json_refuse(j, "umlog version %" PRIu64 ": this tool reads version %d", version,
				      UM_LOG_VERSION);
	if (!err)
		err = read_text(j, "source", l->version, sizeof l->version);
	if (!err)
		err = read_text(j, "device", l->device, sizeof l->device);
	if (!err)
		err = read_text(j, "why", l->why, sizeof l->why);
	if (!err)
		err = read_text(j, "strategy", l->strategy, sizeof l->strategy);
	if (!err)
		err = read_text(j, "clock", clock, sizeof clock);
	if (!err)
		err = um_json_u64(j, "pid", UM_JSON_MAY, 0, INT64_MAX, &l->pid);
	if (!err)
		err = um_json_u64(j, "capacity_bytes", UM_JSON_MAY, 0, INT64_MAX, &l->capacity_bytes);
	if (!err)
		err = um_json_u64(j, "budget_bytes", UM_JSON_MAY, 0, INT64_MAX, &l->budget_bytes);
	if (!err && json_object_get(j->root, "rank"))
		err = read_rank(j, &l->rank);
	if (err)
		return err;
	l->is = 1;
	l->simulated = strcmp(clock, "simulated") == 0;
	l->counters = json_is_true(json_object_get(j->root, "counters"));
	snprintf(r->capture->product, sizeof r->capture->product, "%s", l->version);
	snprintf(r->capture->schema, sizeof r->capture->schema, "umlog/%d", UM_LOG_VERSION);
	if (um_capture_process(r->capture, l->pid, l->pid, "") ||
	    um_capture_device(r->capture, 0, l->device, l->capacity_bytes))
		return um_log_no_memory(r);
	return 0;
}

int um_log_line_define(struct um_log_reader *r, const struct um_json *j)
{
	uint64_t id, address, bytes;
	const char *name;
	uint32_t got;
	int fresh, err = um_json_u64(j, "define", UM_JSON_MUST, 0, UINT32_MAX, &id);

	if (!err)
		err = um_json_u64(j, "address", UM_JSON_MUST, 0, INT64_MAX, &address);
	if (!err)
		err = um_json_u64(j, "bytes", UM_JSON_MUST, 0, INT64_MAX / 4, &bytes);
	if (!err)
		err = um_json_str(j, "name", UM_JSON_MUST, &name);
	if (err)
		return err;
	if (id != r->defs.at.n)
		return um_json_refuse(j, "definition %" PRIu64 ": want %zu", id, r->defs.at.n);
	if (um_log_defs_get(&r->defs, address, bytes, name, &got, &fresh))
		return um_log_no_memory(r);
	return fresh ? 0 : um_json_refuse(j, "definition %" PRIu64 " is that of %" PRIu32, id, got);
}

/* Reads ascending numbers below `below`; `equal`: they may repeat. */
static int read_numbers(struct um_log_reader *r, const struct um_json *j, const char *key, uint64_t below, int equal,
			uint32_t **at, size_t *n)
{
	json_t *a = NULL, *v;
	uint64_t least = 0, x;
	size_t i;
	int err = um_json_array(j, key, UM_JSON_MAY, &a);

	*n = 0;
	if (err || !json_array_size(a))
		return err;
	*at = malloc(json_array_size(a) * sizeof **at);
	if (!*at)
		return um_log_no_memory(r);
	json_array_foreach(a, i, v)
	{
		err = um_json_as_u64(j, v, key, least, below ? below - 1 : 0, &x);
		if (err || !below) {
			free(*at);
			*at = NULL;
			return err ? err : um_json_refuse(j, "`%s` refers to undefined entries", key);
		}
		(*at)[i] = (uint32_t)x;
		least = x + !equal;
	}
	*n = json_array_size(a);
	return 0;
}

const struct um_log_part *um_log_kept(const struct um_log_reader *r, int64_t n)
{
	for (unsigned i = 0; i < r->n_kept; i++)
		if (r->kept[i].n == n)
			return &r->kept[i];
	return NULL;
}

static int read_like(struct um_log_reader *r, const struct um_json *j)
{
	const struct um_log_part *whole;
	uint64_t n = 0;
	uint32_t *without = NULL;
	size_t n_without;
	int err;

	r->like = UM_LOG_SETUP;
	um_vec_clear(&r->without);
	if (!json_object_get(j->root, "like"))
		return 0;
	err = um_json_u64(j, "like", UM_JSON_MUST, 0, INT64_MAX, &n);
	if (err)
		return err;
	whole = um_log_kept(r, (int64_t)n);
	if (!whole)
		return um_json_refuse(j, "like %" PRIu64 ": there is no such whole part shortly before", n);
	r->like = (int64_t)n;
	err = read_numbers(r, j, "without", whole->hints.n, 0, &without, &n_without);
	if (err)
		return err;
	um_vec_fini(&r->without);
	r->without.at = without;
	r->without.n = r->without.cap = n_without;
	return 0;
}

int um_log_line_part(struct um_log_reader *r, const struct um_json *j)
{
	struct um_log_part *p = &r->part;
	uint32_t *alive = NULL;
	size_t n_alive;
	uint64_t n = 0;
	int err = 0, setup = json_is_string(json_object_get(j->root, "part"));

	if (r->in_part)
		return um_json_refuse(j, "a part inside another");
	um_log_part_clear(p);
	if (!setup)
		err = um_json_u64(j, "part", UM_JSON_MUST, 0, INT64_MAX, &n);
	p->n = setup ? UM_LOG_SETUP : (int64_t)n;
	if (!err)
		err = um_log_time(j, "begin_ns", &p->begin);
	if (!err)
		err = um_log_time(j, "end_ns", &p->end);
	if (!err && p->end < p->begin)
		return um_json_refuse(j, "the part ends before it begins");
	if (!err)
		err = um_json_u64(j, "first_op", UM_JSON_MUST, 0, INT64_MAX, &p->first_op);
	if (!err)
		err = um_json_u64(j, "left_out", UM_JSON_MAY, 0, INT64_MAX, &p->left_out);
	if (!err)
		err = read_counts(j, p->counts);
	for (int i = 0; i < UM_LIBRARY_LEVELS && !err; i++)
		err = um_json_u64(j, um_library_level_keys[i], UM_JSON_MAY, 0, INT64_MAX, &p->levels[i]);
	if (!err)
		err = read_like(r, j);
	r->bare = r->like == UM_LOG_SETUP && !json_object_get(j->root, "alive");
	if (!err)
		err = read_numbers(r, j, "alive", r->defs.at.n, 1, &alive, &n_alive);
	if (err)
		return err;
	um_vec_fini(&p->alive);
	p->alive.at = alive;
	p->alive.n = p->alive.cap = n_alive;
	if (n_alive % 2)
		return um_json_refuse(j, "`alive` has no pairs");
	r->in_part = 1;
	return 0;
}

static int read_use(struct um_log_reader *r, const struct um_json *j, const json_t *v)
{
	static const char letters[] = "?rw?";
	struct um_log_use u = {.access = UM_ACCESS_UNKNOWN};
	const char *access = json_string_value(json_array_get(v, 0));
	const char *known = access && *access && !access[1] ? strchr(letters, *access) : NULL;
	int err;

	if (access && strcmp(access, "u") == 0)
		u.access = UM_ACCESS_UPDATE;
	else if (known && *known != '?')
		u.access = *known == 'r' ? UM_ACCESS_READ : UM_ACCESS_WRITE;
	else
		return um_json_refuse(j, "a use is %s: want [\"r\", \"w\" or \"u\", ADDRESS, BYTES]",
				      um_json_show(v).text);
	err = um_json_as_u64(j, json_array_get(v, 1), "address", 0, INT64_MAX, &u.address);
	if (!err)
		err = um_json_as_u64(j, json_array_get(v, 2), "bytes", 0, UM_RANGE_MAX, &u.bytes);
	if (err)
		return err;
	r->part.events.at[r->part.events.n - 1].n_uses++;
	return um_vec_push(&r->part.uses, u) ? um_log_no_memory(r) : 0;
}

static int read_op(struct um_log_reader *r, const struct um_json *j)
{
	struct um_log_event e = {.kind = UM_LOG_OP, .first_use = (uint32_t)r->part.uses.n};
	json_t *uses = NULL, *v;
	const char *name;
	size_t i;
	int err = um_log_time(j, "at_ns", &e.at);

	if (!err)
		err = um_json_str(j, "op", UM_JSON_MUST, &name);
	if (!err)
		err = um_json_array(j, "uses", UM_JSON_MAY, &uses);
	if (err)
		return err;
	e.name = um_arena_intern(&r->names, name);
	if (!e.name || um_vec_push(&r->part.events, e))
		return um_log_no_memory(r);
	json_array_foreach(uses, i, v)
	{
		err = json_array_size(v) == 3 ? read_use(r, j, v) : um_json_refuse(j, "a use has no three words");
		if (err)
			return err;
	}
	return 0;
}

static int read_event(struct um_log_reader *r, const struct um_json *j, const char *key, enum um_log_event_kind kind)
{
	struct um_log_event e = {.kind = kind};
	uint64_t def;
	int err = um_log_time(j, "at_ns", &e.at);

	if (!err && !r->defs.at.n)
		return um_json_refuse(j, "a tensor without a definition");
	if (!err)
		err = um_json_u64(j, key, UM_JSON_MUST, 0, r->defs.at.n - 1, &def);
	if (err)
		return err;
	e.def = (uint32_t)def;
	return um_vec_push(&r->part.events, e) ? um_log_no_memory(r) : 0;
}

static int read_hint(struct um_log_reader *r, const struct um_json *j)
{
	static const char *const names[] = {"prefetch", "evict", "discard", "recompute", "advise"};
	struct um_log_hint h = {.op = UM_LOG_NO_OP};
	const char *kind;
	size_t k = 0;
	int err = um_json_str(j, "hint", UM_JSON_MUST, &kind);

	while (!err && k < sizeof names / sizeof *names && strcmp(names[k], kind) != 0)
		k++;
	if (!err && k == sizeof names / sizeof *names)
		return um_json_refuse(j, "a hint of an unknown kind");
	h.kind = (enum um_hint_kind)k;
	if (!err && json_object_get(j->root, "op"))
		err = um_log_time(j, "op", &h.op);
	if (!err)
		err = um_json_u64(j, "address", UM_JSON_MUST, 0, INT64_MAX, &h.address);
	if (!err)
		err = um_json_u64(j, "bytes", UM_JSON_MUST, 0, UM_RANGE_MAX, &h.bytes);
	if (!err)
		err = um_log_time(j, "begin_ns", &h.begin);
	if (!err)
		err = um_log_time(j, "end_ns", &h.end);
	if (!err)
		err = um_json_i32(j, "error", UM_JSON_MAY, INT32_MIN, INT32_MAX, &h.error);
	if (err)
		return err;
	return um_vec_push(&r->part.hints, h) ? um_log_no_memory(r) : 0;
}

int um_log_line_sums(struct um_log_reader *r, const struct um_json *j)
{
	uint64_t counts[UM_LIBRARY_COUNTS] = {0}, first, last;
	json_t *a = NULL;
	int64_t begin = 0;
	int err = um_json_array(j, "sums", UM_JSON_MUST, &a);

	if (!err && json_array_size(a) != 2)
		return um_json_refuse(j, "`sums` has no two numbers");
	if (!err)
		err = um_json_as_u64(j, json_array_get(a, 0), "sums", 0, INT64_MAX, &first);
	if (!err)
		err = um_json_as_u64(j, json_array_get(a, 1), "sums", first, INT64_MAX, &last);
	if (!err)
		err = read_counts(j, counts);
	if (!err && r->capture->library.counters)
		err = um_log_time(j, "begin_ns", &begin);
	if (err)
		return err;
	if (um_log_queue_sums(r, begin, counts))
		return um_log_no_memory(r);
	for (int i = 0; i < UM_LIBRARY_COUNTS; i++)
		r->capture->library.counts[i] += counts[i];
	r->capture->library.iterations += last - first + 1;
	r->sums += last - first + 1;
	return 0;
}

int um_log_line_event(struct um_log_reader *r, const struct um_json *j)
{
	const json_t *o = j->root;

	if (json_object_get(o, "hint"))
		return read_hint(r, j);
	if (json_object_get(o, "op"))
		return read_op(r, j);
	if (json_object_get(o, "tensor"))
		return read_event(r, j, "tensor", UM_LOG_TENSOR);
	if (json_object_get(o, "tensor_end"))
		return read_event(r, j, "tensor_end", UM_LOG_TENSOR_END);
	return 0; /* written by a later version */
}
