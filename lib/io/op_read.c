/* SPDX-License-Identifier: Apache-2.0
 *
 * op_read.c - reads the keys of an op line
 *
 * `r` and `w` are merged in a hash table over (id, offset, bytes), so that a hostile line of a million entries costs at
 * most a million steps. A second table over ids serves `touched` and `relaunch`, which refer to whole tensors.
 */
#include "io/op_read.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "io/number.h"

#define RELAUNCHED 4u /* in addition to enum um_access, in the map of seen ids */

void um_op_line_fini(struct um_op_line *op)
{
	um_vec_fini(&op->uses);
	um_vec_fini(&op->relaunch);
	um_vec_fini(&op->ws);
	um_vec_fini(&op->table);
	um_id_map_fini(&op->seen);
}

static int no_memory(const struct um_json *j)
{
	return um_diag_set(j->diag, ENOMEM, j->line, "out of memory");
}

int um_op_range_read(const struct um_json *j, const json_t *v, const char *list, const struct um_op_names *names,
		     struct um_use *out)
{
	struct um_use u = {.access = 0};
	uint64_t whole;
	char what[64];
	int rc, part = json_is_array(v);

	snprintf(what, sizeof what, "%s of an element of `%s`", names->noun, list);
	if (part && json_array_size(v) != 3)
		return um_json_refuse(j, "an element of `%s` has %zu parts: want a %s number or [%s, offset, bytes]",
				      list, json_array_size(v), names->noun, names->noun);
	rc = um_json_as_u64(j, part ? json_array_get(v, 0) : v, what, 0, INT64_MAX, &u.id.v);
	if (rc)
		return rc;
	rc = names->bytes_of(names, j, u.id.v, &whole);
	if (rc)
		return rc;
	u.bytes = whole;
	if (part) {
		snprintf(what, sizeof what, "offset into %s %" PRIu64, names->noun, u.id.v);
		rc = um_json_as_u64(j, json_array_get(v, 1), what, 0, INT64_MAX, &u.off);
		if (rc)
			return rc;
		snprintf(what, sizeof what, "bytes of %s %" PRIu64, names->noun, u.id.v);
		rc = um_json_as_u64(j, json_array_get(v, 2), what, 1, INT64_MAX, &u.bytes);
		if (rc)
			return rc;
	}
	if (u.off > whole || u.bytes > whole - u.off)
		return um_json_refuse(j,
				      "`%s` reaches over the end of %s %" PRIu64 ": offset %" PRIu64 " + bytes %" PRIu64
				      ", want at most its %" PRIu64 " bytes",
				      list, names->noun, u.id.v, u.off, u.bytes, whole);
	u.touched = u.bytes;
	*out = u;
	return 0;
}

/* A power of two, at most half full with all entries of both lists. */
static int size_table(struct um_op_line *op, size_t entries)
{
	size_t want = 16;

	while (want < entries * 2)
		want *= 2;
	um_vec_clear(&op->table);
	if (um_vec_reserve(&op->table, want))
		return -ENOMEM;
	op->table.n = want;
	memset(op->table.at, 0, want * sizeof *op->table.at);
	return 0;
}

static int same_range(const struct um_use *a, const struct um_use *b)
{
	return a->id.v == b->id.v && a->off == b->off && a->bytes == b->bytes;
}

/* Adds a use, or its access to the one of the same range. */
static int merge(struct um_op_line *op, const struct um_use *u)
{
	size_t mask = op->table.n - 1;
	size_t i = um_hash_u64(um_hash_u64(um_hash_u64(0, u->id.v), u->off), u->bytes) & mask;
	uint64_t *seen;

	while (op->table.at[i] && !same_range(&op->uses.at[op->table.at[i] - 1], u))
		i = (i + 1) & mask;
	if (op->table.at[i]) {
		op->uses.at[op->table.at[i] - 1].access |= u->access;
	} else {
		if (um_vec_push(&op->uses, *u))
			return -ENOMEM;
		op->table.at[i] = (uint32_t)op->uses.n;
	}
	seen = um_id_map_find(&op->seen, u->id.v);
	if (seen)
		*seen |= u->access;
	else if (um_id_map_add(&op->seen, u->id.v, u->access))
		return -ENOMEM;
	return 0;
}

static int read_list(struct um_op_line *op, const struct um_json *j, const struct um_op_names *names, const char *key,
		     const json_t *list, uint32_t access)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct um_use u;
		int rc = um_op_range_read(j, json_array_get(list, i), key, names, &u);

		if (rc)
			return rc;
		u.access = access;
		if (merge(op, &u))
			return no_memory(j);
	}
	return 0;
}

static int read_uses(struct um_op_line *op, const struct um_json *j, const struct um_op_names *names)
{
	json_t *r = NULL, *w = NULL;
	int rc = um_json_array(j, "r", UM_JSON_MUST, &r);

	if (!rc)
		rc = um_json_array(j, "w", UM_JSON_MUST, &w);
	if (rc)
		return rc;
	/* The map is emptied key by key: clearing its table would cost every later op the size of the largest. */
	for (size_t i = 0; i < op->uses.n; i++)
		um_id_map_remove(&op->seen, op->uses.at[i].id.v);
	um_vec_clear(&op->uses);
	if (size_table(op, json_array_size(r) + json_array_size(w)))
		return no_memory(j);
	rc = read_list(op, j, names, "r", r, UM_READ);
	return rc ? rc : read_list(op, j, names, "w", w, UM_WRITE);
}

static int check_touched(const struct um_op_line *op, const struct um_json *j, const struct um_op_names *names,
			 const char *key, const json_t *v)
{
	uint64_t id, whole, bytes;
	char what[64];
	int rc;

	/* no leading zeros: the number is looked up again by its text */
	if (um_number_parse_u64(key, strlen(key), &id) || (key[0] == '0' && key[1]) || !um_id_map_find(&op->seen, id))
		return um_json_refuse(j, "`touched` names %s %.20s: want only what is in `r` or `w`", names->noun, key);
	rc = names->bytes_of(names, j, id, &whole);
	snprintf(what, sizeof what, "`touched` of %s %" PRIu64, names->noun, id);
	return rc ? rc : um_json_as_u64(j, v, what, 0, whole, &bytes);
}

/* Zero touched bytes count as one byte: 0 means "all" to the player of the trace. */
static void limit_use(struct um_use *u, uint64_t touched)
{
	if (touched < u->bytes)
		u->touched = touched ? touched : 1;
}

static int read_touched(struct um_op_line *op, const struct um_json *j, const struct um_op_names *names)
{
	json_t *touched = json_object_get(j->root, "touched"), *v;
	const char *key;

	if (!touched)
		return 0;
	if (!json_is_object(touched))
		return um_json_refuse(j, "`touched` is %s: want {\"%s\": bytes}", um_json_show(touched).text,
				      names->noun);
	json_object_foreach(touched, key, v)
	{
		int rc = check_touched(op, j, names, key, v);

		if (rc)
			return rc;
	}
	for (size_t i = 0; i < op->uses.n; i++) {
		char id[24];

		snprintf(id, sizeof id, "%" PRIu64, op->uses.at[i].id.v);
		v = json_object_get(touched, id);
		if (v)
			limit_use(&op->uses.at[i], (uint64_t)json_integer_value(v));
	}
	return 0;
}

static int read_relaunch(struct um_op_line *op, const struct um_json *j, const struct um_op_names *names)
{
	json_t *list = NULL;
	int rc = um_json_array(j, "relaunch", UM_JSON_MAY, &list);

	um_vec_clear(&op->relaunch);
	op->relaunchable = list != NULL;
	for (size_t i = 0; !rc && i < json_array_size(list); i++) {
		struct um_tensor_id id;
		uint64_t *seen;

		rc = um_json_as_u64(j, json_array_get(list, i), "an element of `relaunch`", 0, INT64_MAX, &id.v);
		if (rc)
			break;
		seen = um_id_map_find(&op->seen, id.v);
		if (!seen || !(*seen & UM_WRITE))
			return um_json_refuse(j, "`relaunch` names %s %" PRIu64 ": want only what is in `w`",
					      names->noun, id.v);
		if (*seen & RELAUNCHED)
			return um_json_refuse(j, "`relaunch` names %s %" PRIu64 " twice: want it once", names->noun,
					      id.v);
		*seen |= RELAUNCHED;
		if (um_vec_push(&op->relaunch, id))
			return no_memory(j);
	}
	return rc;
}

static int read_ws(struct um_op_line *op, const struct um_json *j)
{
	json_t *list = NULL;
	int rc = um_json_array(j, "ws", UM_JSON_MAY, &list);

	um_vec_clear(&op->ws);
	if (!rc && list && json_array_size(list) > UM_MOST_WORKSPACES)
		return um_json_refuse(j, "`ws` has %zu elements: want at most %d", json_array_size(list),
				      UM_MOST_WORKSPACES);
	for (size_t i = 0; !rc && i < json_array_size(list); i++) {
		json_t *v = json_array_get(list, i);
		struct um_workspace ws;

		if (!json_is_array(v) || json_array_size(v) != 2)
			return um_json_refuse(j, "an element of `ws` is no pair: want [workspace bytes, ns]");
		rc = um_json_as_u64(j, json_array_get(v, 0), "bytes of `ws`", 0, INT64_MAX, &ws.bytes);
		if (!rc)
			rc = um_json_as_u64(j, json_array_get(v, 1), "ns of `ws`", 1, INT64_MAX, &ws.ns);
		if (!rc && um_vec_push(&op->ws, ws))
			return no_memory(j);
	}
	return rc;
}

static int read_phase(struct um_op_line *op, const struct um_json *j)
{
	const char *ph = NULL;
	int rc = um_json_str(j, "ph", UM_JSON_MAY, &ph);

	op->phase = 0;
	if (rc || !ph)
		return rc;
	if (strlen(ph) != 1 || !strchr("fbo", *ph))
		return um_json_refuse(j, "`ph` is %s: want \"f\", \"b\" or \"o\"",
				      um_json_show(json_object_get(j->root, "ph")).text);
	op->phase = *ph;
	return 0;
}

int um_op_line_read(struct um_op_line *op, const struct um_json *j, const struct um_op_names *names)
{
	int rc = um_json_str(j, "name", UM_JSON_MUST, &op->name);

	op->cost = (struct um_cost){0};
	op->stream = 0;
	op->collective = 0;
	if (!rc)
		rc = read_uses(op, j, names);
	if (!rc)
		rc = read_touched(op, j, names);
	if (!rc)
		rc = read_relaunch(op, j, names);
	if (!rc)
		rc = read_ws(op, j);
	if (!rc)
		rc = read_phase(op, j);
	if (!rc)
		rc = um_json_amount(j, "flops", &op->cost.flops);
	if (!rc)
		rc = um_json_amount(j, "bytes", &op->cost.bytes);
	if (!rc)
		rc = um_json_u64(j, "ns", UM_JSON_MAY, 0, INT64_MAX, &op->cost.ns);
	if (!rc)
		rc = um_json_i32(j, "stream", UM_JSON_MAY, 0, INT32_MAX, &op->stream);
	if (!rc)
		rc = um_json_bool(j, "collective", &op->collective);
	return rc;
}
