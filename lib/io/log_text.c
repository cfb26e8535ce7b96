/* SPDX-License-Identifier: Apache-2.0
 *
 * log_text.c - writes the lines of a umlog
 */
#include "io/log_text.h"

#include "io/out.h"

#include <errno.h>
#include <string.h>

static const char *const hint_names[] = {[UM_HINT_PREFETCH] = "prefetch",
					 [UM_HINT_EVICT] = "evict",
					 [UM_HINT_DISCARD] = "discard",
					 [UM_HINT_RECOMPUTE] = "recompute",
					 [UM_HINT_ADVISE] = "advise"};

static void key(struct um_out *o, const char *name, int first)
{
	um_out_str(o, first ? "{\"" : ",\"");
	um_out_str(o, name);
	um_out_str(o, "\":");
}

static void key_u64(struct um_out *o, const char *name, uint64_t x, int first)
{
	key(o, name, first);
	um_out_u64(o, x <= INT64_MAX ? x : INT64_MAX); /* the maximum that readers accept */
}

static void key_i64(struct um_out *o, const char *name, int64_t x, int first)
{
	key(o, name, first);
	um_out_i64(o, x);
}

static void key_str(struct um_out *o, const char *name, const char *s, int first)
{
	key(o, name, first);
	um_out_json_str(o, s);
}

static void counts(struct um_out *o, const uint64_t *c)
{
	for (int i = 0; i < UM_LIBRARY_COUNTS; i++)
		if (c[i])
			key_u64(o, um_library_count_keys[i], c[i], 0);
}

static int done(struct um_out *o, struct um_log_text *t)
{
	return um_out_take(o, &t->data, &t->bytes);
}

int um_log_text_head(struct um_log_text *t, const struct um_capture_library *library)
{
	struct um_out *o;

	if (um_out_open_mem(&o, 1))
		return -ENOMEM;
	key_u64(o, "umlog", UM_LOG_VERSION, 1);
	key_str(o, "source", library->version, 0);
	key_u64(o, "pid", library->pid, 0);
	key_str(o, "device", library->device, 0);
	key_str(o, "why", library->why, 0);
	key_str(o, "strategy", library->strategy, 0);
	key_u64(o, "capacity_bytes", library->capacity_bytes, 0);
	key_u64(o, "budget_bytes", library->budget_bytes, 0);
	key_str(o, "clock", library->simulated ? "simulated" : "monotonic", 0);
	if (library->rank.is) {
		key_u64(o, "rank", library->rank.rank, 0);
		key_u64(o, "ranks", library->rank.ranks, 0);
		key_u64(o, "local_rank", library->rank.local_rank, 0);
		key_u64(o, "local_ranks", library->rank.local_ranks, 0);
		key_str(o, "host", library->rank.host, 0);
	}
	if (library->counters) {
		key(o, "counters", 0);
		um_out_str(o, "true");
	}
	um_out_str(o, "}\n");
	return done(o, t);
}

int um_log_text_defs(struct um_log_text *t, const struct um_log_defs *defs, uint32_t from)
{
	struct um_out *o;

	if (um_out_open_mem(&o, 1))
		return -ENOMEM;
	for (uint32_t i = from; i < defs->at.n; i++) {
		key_u64(o, "define", i, 1);
		key_u64(o, "address", defs->at.at[i].address, 0);
		key_u64(o, "bytes", defs->at.at[i].bytes, 0);
		key_str(o, "name", defs->at.at[i].name, 0);
		um_out_str(o, "}\n");
	}
	return done(o, t);
}

/* The line of a part, left open. */
static void part_line(struct um_out *o, const struct um_log_part *p)
{
	if (p->n == UM_LOG_SETUP)
		key_str(o, "part", "setup", 1);
	else
		key_i64(o, "part", p->n, 1);
	if (p->name)
		key_str(o, "name", p->name, 0);
	key_i64(o, "begin_ns", p->begin, 0);
	key_i64(o, "end_ns", p->end, 0);
	key_u64(o, "first_op", p->first_op, 0);
	counts(o, p->counts);
	for (int i = 0; i < UM_LIBRARY_LEVELS; i++)
		if (p->levels[i])
			key_u64(o, um_library_level_keys[i], p->levels[i], 0);
	if (p->left_out)
		key_u64(o, "left_out", p->left_out, 0);
}

static void numbers(struct um_out *o, const char *name, const uint32_t *at, size_t n)
{
	key(o, name, 0);
	um_out_str(o, "[");
	for (size_t i = 0; i < n; i++) {
		um_out_str(o, i ? "," : "");
		um_out_u64(o, at[i]);
	}
	um_out_str(o, "]");
}

static void part_end(struct um_out *o, const struct um_log_part *p)
{
	um_log_counts_write(o, &p->counted, p->begin);
	um_out_str(o, "{\"end\":true}\n");
}

static void hint(struct um_out *o, const struct um_log_hint *h)
{
	key_str(o, "hint", hint_names[h->kind], 1);
	if (h->op != UM_LOG_NO_OP)
		key_i64(o, "op", h->op, 0);
	key_u64(o, "address", h->address, 0);
	key_u64(o, "bytes", h->bytes, 0);
	key_i64(o, "begin_ns", h->begin, 0);
	key_i64(o, "end_ns", h->end, 0);
	if (h->error)
		key_i64(o, "error", h->error, 0);
	um_out_str(o, "}\n");
}

static void op(struct um_out *o, const struct um_log_part *p, const struct um_log_event *e)
{
	static const char *const access[] = {
		[UM_ACCESS_READ] = "[\"r\",", [UM_ACCESS_WRITE] = "[\"w\",", [UM_ACCESS_UPDATE] = "[\"u\","};

	key_i64(o, "at_ns", e->at, 1);
	key_str(o, "op", e->name, 0);
	if (e->n_uses)
		key(o, "uses", 0);
	for (uint32_t i = 0; i < e->n_uses; i++) {
		const struct um_log_use *u = &p->uses.at[e->first_use + i];

		um_out_str(o, i ? "," : "[");
		um_out_str(o, access[u->access]);
		um_out_u64(o, u->address);
		um_out_str(o, ",");
		um_out_u64(o, u->bytes);
		um_out_str(o, "]");
	}
	um_out_str(o, e->n_uses ? "]}\n" : "}\n");
}

int um_log_text_part(struct um_log_text *t, const struct um_log_part *p, int whole)
{
	struct um_out *o;

	if (um_out_open_mem(&o, 1))
		return -ENOMEM;
	part_line(o, p);
	if (whole)
		numbers(o, "alive", p->alive.at, p->alive.n);
	um_out_str(o, "}\n");
	for (size_t i = 0; i < p->events.n && whole; i++) {
		const struct um_log_event *e = &p->events.at[i];

		if (e->kind == UM_LOG_OP) {
			op(o, p, e);
			continue;
		}
		key_i64(o, "at_ns", e->at, 1);
		key_u64(o, e->kind == UM_LOG_TENSOR ? "tensor" : "tensor_end", e->def, 0);
		um_out_str(o, "}\n");
	}
	for (size_t i = 0; i < p->hints.n && whole; i++)
		hint(o, &p->hints.at[i]);
	part_end(o, p);
	return done(o, t);
}

int um_log_text_like(struct um_log_text *t, const struct um_log_part *p, int64_t like, const uint32_t *without,
		     size_t n_without, const uint32_t *more, size_t n_more)
{
	struct um_out *o;

	if (um_out_open_mem(&o, 1))
		return -ENOMEM;
	part_line(o, p);
	key_i64(o, "like", like, 0);
	if (n_without)
		numbers(o, "without", without, n_without);
	um_out_str(o, "}\n");
	for (size_t i = 0; i < n_more; i++)
		hint(o, &p->hints.at[more[i]]);
	part_end(o, p);
	return done(o, t);
}

int um_log_text_sums(struct um_log_text *t, const struct um_log_sums *s)
{
	struct um_out *o;

	if (um_out_open_mem(&o, 1))
		return -ENOMEM;
	key(o, "sums", 1);
	um_out_str(o, "[");
	um_out_i64(o, s->first);
	um_out_str(o, ",");
	um_out_i64(o, s->last);
	um_out_str(o, "]");
	key_i64(o, "begin_ns", s->begin, 0);
	key_i64(o, "end_ns", s->end, 0);
	key_u64(o, "shortest_ns", s->shortest, 0);
	key_u64(o, "longest_ns", s->longest, 0);
	counts(o, s->counts);
	um_out_str(o, "}\n");
	return done(o, t);
}
