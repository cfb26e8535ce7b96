/* SPDX-License-Identifier: Apache-2.0
 *
 * log_write.c - the writer of a umlog
 *
 * The current part is collected as values. When it ends it is compared with the last few whole parts: if it equals one
 * of them except for few hints (helper threads issue hints, so some cross the end of their iteration), it becomes a
 * line that refers to it. A part that is too large, or could not be kept, is written without its events.
 */
#include "io/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "io/log_file.h"
#include "io/log_address_map.h"

#define EVENTS_MOST (1u << 20) /* in a part: events, uses and hints */
#define NAMES_MOST 65536u /* different names of ops; further ones are called OTHER */
#define OTHER "(other)"
#define USES_MOST 65536u /* of an op: bounds the length of a line */
#define DIFFERENT 4 /* one of this many hints may differ */
#define DIFFERENT_LEAST 16 /* hints */
#define WHOLE_SHARE 64 /* a whole part takes at most this share of the limit */
#define DEFS_SHARE 8 /* definitions take at most this share of the limit */
#define COUNTED_SHARE 16384 /* bytes of the limit for each counter record that a part keeps: 4096 records of 64 MiB */

/* A whole part that is in the file. */
struct kept {
	int64_t n;
	uint64_t fingerprint;
	UM_VEC(struct um_log_hint) hints;
};

struct um_log {
	struct um_activity_sink sink; /* first */
	int err; /* the first one */
	struct um_log_file file;
	struct um_log_defs defs;
	uint32_t defs_written;
	uint64_t defs_bytes; /* in the file */
	struct um_arena names; /* of ops */
	struct um_log_part part; /* current */
	char name[64]; /* its name */
	int lost; /* some event could not be kept */
	struct um_log_address_map places; /* of the current part, built when counter records exceed the single ones */
	int placed; /* the map is built */
	uint64_t next_op;
	struct kept kept[UM_LOG_REFERRED]; /* newest first */
	unsigned n_kept;
	UM_VEC(uint32_t) without;
	UM_VEC(uint32_t) more;
};

/* --- events ------------------------------------------------------------------------------------------------------- */

static int full(const struct um_log *l)
{
	return l->lost || l->part.events.n + l->part.uses.n + l->part.hints.n >= EVENTS_MOST;
}

static void lose(struct um_log *l)
{
	l->lost = 1;
	l->part.left_out++;
}

static void mix(struct um_log *l, uint64_t x)
{
	l->part.fingerprint = um_hash_u64(l->part.fingerprint, x);
}

static void on_tensor(struct um_log *l, const struct um_activity *a)
{
	int born = a->kind == UM_ACT_TENSOR, fresh;
	struct um_log_event e = {.kind = born ? UM_LOG_TENSOR : UM_LOG_TENSOR_END, .at = a->begin - l->part.begin};

	/* If definitions take too much, new ranges stay without a name. */
	if (l->defs_bytes > l->file.limit / DEFS_SHARE) {
		l->part.left_out++;
		return;
	}
	if (um_log_defs_get(&l->defs, a->address, a->bytes, a->name, &e.def, &fresh)) {
		lose(l);
		return;
	}
	um_log_defs_live(&l->defs, e.def, born);
	if (full(l) || um_vec_push(&l->part.events, e)) {
		lose(l);
		return;
	}
	mix(l, (uint64_t)e.kind << 32 | e.def);
}

static void on_op(struct um_log *l, const struct um_activity *a)
{
	struct um_log_event e = {.kind = UM_LOG_OP,
				 .name = um_arena_intern(&l->names, l->names.n_names < NAMES_MOST ? a->name : OTHER),
				 .at = a->begin - l->part.begin,
				 .first_use = (uint32_t)l->part.uses.n};

	l->next_op = a->op + 1;
	if (!e.name || full(l) || um_vec_push(&l->part.events, e)) {
		lose(l);
		return;
	}
	mix(l, (uint64_t)(uintptr_t)e.name);
}

static void on_use(struct um_log *l, const struct um_activity *a)
{
	struct um_log_use u = {a->address, a->bytes, a->access};
	struct um_log_event *op = l->part.events.n ? &l->part.events.at[l->part.events.n - 1] : NULL;

	if (!op || op->kind != UM_LOG_OP || op->n_uses == USES_MOST || full(l) || um_vec_push(&l->part.uses, u)) {
		lose(l);
		return;
	}
	op->n_uses++;
	mix(l, u.address);
	mix(l, u.bytes ^ (uint64_t)u.access << 61);
}

static void on_hint(struct um_log *l, const struct um_activity *a)
{
	struct um_log_hint h = {.kind = a->hint,
				.error = a->error,
				.op = a->op == UM_ACT_NO_OP ? UM_LOG_NO_OP : (int64_t)(a->op - l->part.first_op),
				.address = a->address,
				.bytes = a->bytes,
				.begin = a->begin - l->part.begin,
				.end = a->end - l->part.begin};

	if (full(l) || um_vec_push(&l->part.hints, h))
		lose(l);
}

/* Adds records beyond the single ones by tensor. These arrive when the part ends: no tensor is added to it
 * afterwards. */
static void on_counted(struct um_log *l, const struct um_activity *a)
{
	size_t most = (size_t)(l->file.limit / COUNTED_SHARE);
	struct um_log_counts *c = &l->part.counted;
	struct um_log_driver_counter x;
	uint64_t end, until;

	if (!um_log_driver_counter_read(&x, a) || um_log_counts_add(c, &x, most))
		return;
	if (!l->placed)
		um_log_address_map_build(&l->places, &l->part, &l->defs); /* if memory is short they belong to no
									     tensor */
	l->placed = 1;
	if (!x.address) {
		um_log_counts_sum(c, &x, UM_LOG_NOWHERE, most);
		return;
	}
	for (end = x.address + (x.kind <= UM_LOG_D2H ? x.n : 1); x.address < end; x.address = until) {
		uint32_t def = um_log_address_map_find(&l->places, x.address, x.begin, &until);

		until = until < end ? until : end;
		if (x.kind <= UM_LOG_D2H)
			x.n = until - x.address;
		um_log_counts_sum(c, &x, def, most);
	}
}

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct um_log *l = (struct um_log *)sink;

	if (l->err)
		return 0;
	switch (a->kind) {
	case UM_ACT_TENSOR:
	case UM_ACT_TENSOR_END:
		on_tensor(l, a);
		break;
	case UM_ACT_OP:
		on_op(l, a);
		break;
	case UM_ACT_USE:
		on_use(l, a);
		break;
	case UM_ACT_HINT:
		on_hint(l, a);
		break;
	case UM_ACT_MIGRATION:
	case UM_ACT_GPU_FAULT:
	case UM_ACT_CPU_FAULT:
		on_counted(l, a);
		break;
	default:
		break;
	}
	return 0;
}

/* --- end of a part ------------------------------------------------------------------------------------------------ */

/* Collects hints that only one of the two parts has in l->without and l->more. 0; -ENOMEM; 1: too many differ. */
static int compare(struct um_log *l, const struct kept *k)
{
	const struct um_log_part *p = &l->part;
	size_t i = 0, j = 0, most = p->hints.n / DIFFERENT > DIFFERENT_LEAST ? p->hints.n / DIFFERENT : DIFFERENT_LEAST;

	um_vec_clear(&l->without);
	um_vec_clear(&l->more);
	while (i < k->hints.n || j < p->hints.n) {
		int c = i == k->hints.n ? 1 : j == p->hints.n ? -1 : um_log_hint_cmp(&k->hints.at[i], &p->hints.at[j]);

		if (c == 0) {
			i++;
			j++;
			continue;
		}
		if (l->without.n + l->more.n == most)
			return 1;
		if (c < 0 ? um_vec_push(&l->without, (uint32_t)i++) : um_vec_push(&l->more, (uint32_t)j++))
			return -ENOMEM;
	}
	return 0;
}

static const struct kept *find_like(struct um_log *l)
{
	for (unsigned i = 0; i < l->n_kept; i++)
		if (l->kept[i].fingerprint == l->part.fingerprint && compare(l, &l->kept[i]) == 0)
			return &l->kept[i];
	return NULL;
}

/* Makes the part available for references; without memory it is skipped. */
static void keep(struct um_log *l)
{
	struct kept k = l->kept[UM_LOG_REFERRED - 1];

	um_vec_clear(&k.hints);
	if (um_vec_reserve(&k.hints, l->part.hints.n + 1)) {
		l->kept[UM_LOG_REFERRED - 1] = k;
		return;
	}
	if (l->part.hints.n)
		memcpy(k.hints.at, l->part.hints.at, l->part.hints.n * sizeof *k.hints.at);
	k.hints.n = l->part.hints.n;
	k.n = l->part.n;
	k.fingerprint = l->part.fingerprint;
	memmove(&l->kept[1], &l->kept[0], (UM_LOG_REFERRED - 1) * sizeof *l->kept);
	l->kept[0] = k;
	if (l->n_kept < UM_LOG_REFERRED)
		l->n_kept++;
	for (unsigned i = 0; i < l->n_kept; i++)
		l->file.pinned[i] = l->kept[i].n;
	l->file.n_pinned = l->n_kept;
}

static int add(struct um_log *l, const struct um_log_member *m, struct um_log_text *t)
{
	int err = um_log_file_add(&l->file, m, t);

	free(t->data);
	return err;
}

static int write_defs(struct um_log *l)
{
	struct um_log_text t;
	int err = 0;

	if (l->defs_written == l->defs.at.n)
		return 0;
	err = um_log_text_defs(&t, &l->defs, l->defs_written);
	if (err)
		return err;
	l->defs_bytes += t.bytes;
	l->defs_written = (uint32_t)l->defs.at.n;
	return add(l, &(struct um_log_member){.kind = UM_LOG_DEFS}, &t);
}

static int write_part(struct um_log *l)
{
	struct um_log_part *p = &l->part;
	struct um_log_member m = {.kind = UM_LOG_WHOLE,
				  .sums = {.first = p->n, .last = p->n, .begin = p->begin, .end = p->end}};
	const struct kept *like = NULL;
	struct um_log_text t;
	int err;

	m.sums.shortest = m.sums.longest = (uint64_t)(p->end - p->begin);
	memcpy(m.sums.counts, p->counts, sizeof p->counts);
	um_log_part_sort(p);
	if (!l->lost)
		like = find_like(l);
	if (like) {
		m.kind = UM_LOG_LIKE;
		m.like = like->n;
		err = um_log_text_like(&t, p, like->n, l->without.at, l->without.n, l->more.at, l->more.n);
		return err ? err : add(l, &m, &t);
	}
	err = um_log_text_part(&t, p, !l->lost);
	if (!err && !l->lost && t.bytes > l->file.limit / WHOLE_SHARE) {
		free(t.data);
		um_log_counts_fold(&p->counted);
		p->left_out += p->events.n + p->hints.n;
		l->lost = 1;
		err = um_log_text_part(&t, p, 0);
	}
	if (err)
		return err;
	m.kind = l->lost ? UM_LOG_BARE : UM_LOG_WHOLE;
	err = add(l, &m, &t);
	if (!err && !l->lost && p->n != UM_LOG_SETUP)
		keep(l);
	return err;
}

/* Begins the next part; if memory is short, only its sums are kept. */
static void begin(struct um_log *l, int64_t n, const char *name, int64_t now)
{
	um_log_part_clear(&l->part);
	l->part.n = n;
	l->part.begin = now;
	l->part.first_op = l->next_op;
	l->lost = 0;
	l->placed = 0;
	if (name) {
		snprintf(l->name, sizeof l->name, "%s", name);
		l->part.name = l->name;
	}
	if (um_log_part_alive(&l->part, &l->defs))
		lose(l);
	mix(l, l->defs.alive);
}

static int end(struct um_log *l, int64_t now, const uint64_t *counts, const uint64_t *levels)
{
	l->part.end = now > l->part.begin ? now : l->part.begin;
	memcpy(l->part.counts, counts, sizeof l->part.counts);
	memcpy(l->part.levels, levels, sizeof l->part.levels);
	um_log_counts_total(&l->part.counted, l->part.counts);
	if (!l->err)
		l->err = write_defs(l);
	if (!l->err)
		l->err = write_part(l);
	return l->err;
}

int um_log_next_part(struct um_log *l, int64_t now, const uint64_t counts[UM_LIBRARY_COUNTS],
		     const uint64_t levels[UM_LIBRARY_LEVELS], uint64_t next, const char *name)
{
	int err = l->err ? l->err : end(l, now, counts, levels);

	if (!err)
		begin(l, (int64_t)next, name, now);
	return err;
}

/* --- open, close -------------------------------------------------------------------------------------------------- */

static void log_free(struct um_log *l)
{
	um_log_file_close(&l->file);
	um_log_defs_fini(&l->defs);
	um_arena_fini(&l->names);
	um_log_part_fini(&l->part);
	for (unsigned i = 0; i < UM_LOG_REFERRED; i++)
		um_vec_fini(&l->kept[i].hints);
	um_vec_fini(&l->places.at);
	um_vec_fini(&l->without);
	um_vec_fini(&l->more);
	free(l);
}

int um_log_open(struct um_log **out, const char *path, const struct um_capture_library *library, uint64_t limit,
		int64_t now, struct um_diag *diag)
{
	struct um_log *l = calloc(1, sizeof *l);
	struct um_log_text t;
	int err;

	um_diag_init(diag, path);
	if (!l)
		return um_diag_set(diag, ENOMEM, 0, "cannot write: %s", strerror(ENOMEM));
	if (limit < UM_LOG_LIMIT_LEAST)
		limit = limit ? UM_LOG_LIMIT_LEAST : UM_LOG_LIMIT;
	err = um_log_file_open(&l->file, path, limit, diag);
	if (err) {
		free(l);
		return err;
	}
	err = um_log_text_head(&t, library);
	if (!err)
		err = add(l, &(struct um_log_member){.kind = UM_LOG_HEAD}, &t);
	if (err) {
		log_free(l);
		return um_diag_set(diag, -err, 0, "cannot write: %s", strerror(-err));
	}
	l->sink.feed = feed;
	begin(l, UM_LOG_SETUP, NULL, now);
	*out = l;
	return 0;
}

const char *um_log_other_path(const struct um_log *l)
{
	return l->file.renamed ? l->file.path : NULL;
}

struct um_activity_sink *um_log_sink(struct um_log *l)
{
	return &l->sink;
}

int um_log_close(struct um_log *l, int64_t now, const uint64_t counts[UM_LIBRARY_COUNTS],
		 const uint64_t levels[UM_LIBRARY_LEVELS])
{
	int err;

	if (!l)
		return 0;
	err = l->err ? l->err : end(l, now, counts, levels);
	log_free(l);
	return err;
}
