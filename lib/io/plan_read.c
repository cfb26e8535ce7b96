/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_read.c - reads a umplan file
 *
 * The header has the numbers of slots and ops, so every number can be checked on its line. plan_line.c parses ops and
 * hints; facts of the file as a whole (counts, births in order, carry) are checked at its end.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "io/lines.h"
#include "io/plan_file.h"
#include "io/plan_line.h"

struct reader {
	struct um_op_names names; /* first member: bytes_of casts it to the reader */
	struct um_diag *diag;
	struct um_plan plan;
	uint64_t n_slots, n_ops; /* from the header */
	struct um_op_line op;
	UM_VEC(struct um_slot_line) lines; /* by slot */
};

static int no_memory(const struct reader *r, uint64_t line)
{
	return um_diag_set(r->diag, ENOMEM, line, "out of memory");
}

static int bytes_of(const struct um_op_names *names, const struct um_json *j, uint64_t s, uint64_t *bytes)
{
	const struct um_plan *p = &((const struct reader *)names)->plan;

	if (s >= p->sched.slots.n)
		return um_json_refuse(j, "slot %" PRIu64 " is not defined: want one of the %zu slots above", s,
				      p->sched.slots.n);
	*bytes = p->sched.slots.at[s].bytes;
	return 0;
}

static int keep_str(const struct um_json *j, const char *key, char **out)
{
	const char *s = NULL;
	int rc = um_json_str(j, key, UM_JSON_MAY, &s);

	if (rc || !s)
		return rc;
	*out = strdup(s);
	return *out ? 0 : um_diag_set(j->diag, ENOMEM, j->line, "out of memory");
}

/* A rate of a plan: whole bytes/s, written as an integer or a real. */
static int read_rate(const struct um_json *j, const char *key, uint64_t *out)
{
	double x = 0;
	int rc = um_json_amount(j, key, &x);

	if (rc)
		return rc;
	if (x < 1 || x > 1e18)
		return um_json_refuse(j, "`%s` is missing or out of range: want bytes/s from 1 to 1e18", key);
	*out = (uint64_t)x;
	return 0;
}

static int read_header(struct reader *r, const struct um_json *j)
{
	struct um_plan *p = &r->plan;
	json_t *version = json_object_get(j->root, "umplan");
	const struct {
		const char *key;
		enum um_json_need need;
		uint64_t max, *out;
	} counts[] = {
		{"ops", UM_JSON_MUST, INT32_MAX - 1, &r->n_ops},
		{"slots", UM_JSON_MUST, UINT32_MAX - 1, &r->n_slots},
		{"budget", UM_JSON_MUST, INT64_MAX, &p->budget},
		{"host_budget", UM_JSON_MAY, INT64_MAX, &p->host_budget},
		{"predicted_ns", UM_JSON_MAY, INT64_MAX, &p->predicted_ns},
		{"rehearsed_ns", UM_JSON_MAY, INT64_MAX, &p->rehearsed_ns},
		{"in_core_ns", UM_JSON_MAY, INT64_MAX, &p->in_core_ns},
		{"bound_ns", UM_JSON_MAY, INT64_MAX, &p->bound_ns},
		{"remote", UM_JSON_MAY, 1000000000000000000, &p->remote},
	};
	int rc = 0;

	if (!version)
		return um_json_refuse(j, "no umplan header: want {\"umplan\":1,...} first");
	if (!json_is_integer(version) || json_integer_value(version) != 1)
		return um_json_refuse(j, "umplan version %s: want 1", um_json_show(version).text);
	for (size_t i = 0; !rc && i < sizeof counts / sizeof *counts; i++)
		rc = um_json_u64(j, counts[i].key, counts[i].need, 0, counts[i].max, counts[i].out);
	if (!rc)
		rc = um_json_hex(j, "signature", UM_JSON_MUST, &p->sched.signature);
	if (!rc)
		rc = read_rate(j, "h2d", &p->h2d);
	if (!rc)
		rc = read_rate(j, "d2h", &p->d2h);
	if (!rc)
		rc = keep_str(j, "source", &p->source);
	if (!rc)
		rc = keep_str(j, "workload", &p->workload);
	if (!rc)
		rc = keep_str(j, "profile", &p->profile);
	return rc ? rc : keep_str(j, "strategy", &p->strategy);
}

/* Additional keys of a slot. */
static int read_slot_extra(struct reader *r, const struct um_json *j, struct um_slot *s, int *ord, int *carry)
{
	const uint64_t known = UM_SLOT_FIXED | UM_SLOT_TRANSIENT | UM_SLOT_GUESSED | UM_SLOT_UNMANAGED |
			       UM_SLOT_WORKSPACE | UM_SLOT_SUPPLIED;
	uint64_t from = UINT64_MAX, born = UINT64_MAX, of = UINT64_MAX, flags = 0;
	int rc = um_json_u64(j, "place", UM_JSON_MAY, 0, INT64_MAX - s->bytes, &s->place);

	if (!rc)
		rc = um_json_u64(j, "flags", UM_JSON_MAY, 0, known, &flags);
	if (!rc && flags & ~known)
		rc = um_json_refuse(j, "`flags` is %" PRIu64 ": want a sum of 1, 2, 4, 8, 16 and 128", flags);
	if (!rc)
		rc = um_json_u64(j, "ord", UM_JSON_MAY, 0, UINT32_MAX - 1, &born);
	if (!rc && json_is_null(json_object_get(j->root, "carry")))
		*carry = 1; /* null: none */
	else if (!rc && r->n_slots)
		rc = um_json_u64(j, "carry", UM_JSON_MAY, 0, r->n_slots - 1, &from);
	if (!rc && r->plan.sched.slots.n)
		rc = um_json_u64(j, "of", UM_JSON_MAY, 0, r->plan.sched.slots.n - 1, &of);
	if (rc)
		return rc;
	s->flags = (unsigned)flags;
	if (of != UINT64_MAX) {
		s->flags |= UM_SLOT_SCRATCH;
		s->of = (uint32_t)of;
	}
	s->carry = UM_NO_SLOT;
	if (from != UINT64_MAX) {
		s->carry = (uint32_t)from;
		*carry = 1;
	}
	if (born != UINT64_MAX && s->birth >= 0) {
		s->born_ord = (uint32_t)born;
		*ord = 1;
	}
	return 0;
}

static int read_slot(struct reader *r, const struct um_json *j)
{
	struct um_slot s = {.place = UINT64_MAX};
	size_t n = r->plan.sched.slots.n;
	const char *name = NULL, *role = NULL;
	struct um_slot_line line = {.line = j->line};
	int carry = 0;
	uint64_t number;
	int rc = um_json_u64(j, "s", UM_JSON_MUST, 0, INT64_MAX, &number);

	if (!rc && (number != n || number >= r->n_slots))
		return um_json_refuse(j, "slot %" PRIu64 ": want slot %zu next, of the header's %" PRIu64, number, n,
				      r->n_slots);
	if (!rc)
		rc = um_json_u64(j, "bytes", UM_JSON_MUST, 1, INT64_MAX, &s.bytes);
	if (!rc)
		rc = um_json_i32(j, "birth", UM_JSON_MUST, -1, (int32_t)r->n_ops, &s.birth);
	if (!rc)
		rc = um_json_i32(j, "death", UM_JSON_MUST, -1, (int32_t)r->n_ops, &s.death);
	if (!rc && s.birth >= 0 && s.death < 0)
		return um_json_refuse(j, "slot %zu is born in every iteration and never freed: want a `death`", n);
	if (!rc)
		rc = um_json_str(j, "name", UM_JSON_MAY, &name);
	if (!rc)
		rc = um_json_str(j, "role", UM_JSON_MAY, &role);
	if (!rc)
		rc = read_slot_extra(r, j, &s, &line.has_ord, &carry);
	if (rc)
		return rc;
	if (role && um_role_parse(role) < 0)
		return um_json_refuse(j, "`role` is %s: want param, grad, optim, act, input, workspace, comm or other",
				      um_json_show(json_object_get(j->root, "role")).text);
	s.role = role ? (enum um_role)um_role_parse(role) : UM_ROLE_OTHER;
	/* a tensor that lives across iterations keeps its slot, unless the file says otherwise */
	if (!carry && (s.birth < 0 ? s.death < 0 : s.death >= 0 && s.death <= s.birth))
		s.carry = (uint32_t)n;
	if (um_vec_push(&r->lines, line))
		return no_memory(r, j->line);
	s.name = name ? strdup(name) : NULL;
	if ((name && !s.name) || um_vec_push(&r->plan.sched.slots, s)) {
		free(s.name);
		return no_memory(r, j->line);
	}
	return 0;
}

static int read_op(struct reader *r, const struct um_json *j)
{
	struct um_schedule *sched = &r->plan.sched;
	uint64_t i;
	int rc = um_json_u64(j, "i", UM_JSON_MUST, 0, INT64_MAX, &i);

	if (!rc && (i != sched->ops.n || i >= r->n_ops))
		return um_json_refuse(j, "op %" PRIu64 ": want op %zu next, of the header's %" PRIu64, i, sched->ops.n,
				      r->n_ops);
	if (!rc)
		rc = um_op_line_read(&r->op, j, &r->names);
	return rc ? rc : um_plan_op_keep(sched, &r->op, j, &r->names);
}

static int read_hint(struct reader *r, const struct um_json *j)
{
	struct um_hint h;
	int rc = um_plan_hint_read(j, &r->plan, r->n_ops, &r->names, &h);

	if (!rc && um_vec_push(&r->plan.hints, h))
		rc = no_memory(r, j->line);
	return rc;
}

static int read_line(struct reader *r, const struct um_json *j)
{
	static const struct {
		const char *ev;
		int (*read)(struct reader *r, const struct um_json *j);
	} kinds[] = {{"slot", read_slot}, {"op", read_op}, {"hint", read_hint}};
	const char *ev;
	int rc;

	if (j->line == 1)
		return read_header(r, j);
	rc = um_json_str(j, "ev", UM_JSON_MUST, &ev);
	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(ev, kinds[i].ev) == 0)
			return kinds[i].read(r, j);
	return um_json_refuse(j, "unknown `ev` %s: want slot, op or hint",
			      um_json_show(json_object_get(j->root, "ev")).text);
}

/* Checks the file as a whole, at its end. `line`: the last one. */
static int check_whole(struct reader *r, uint64_t line)
{
	struct um_schedule *sched = &r->plan.sched;
	int rc;

	if (line == 0)
		return um_diag_set(r->diag, EINVAL, 0, "empty file: want a umplan header");
	if (sched->slots.n != r->n_slots)
		return um_diag_set(r->diag, EINVAL, line, "%zu slots: want %" PRIu64 " as the header says",
				   sched->slots.n, r->n_slots);
	if (sched->ops.n != r->n_ops)
		return um_diag_set(r->diag, EINVAL, line, "%zu ops: want %" PRIu64 " as the header says", sched->ops.n,
				   r->n_ops);
	rc = um_plan_births_build(sched, r->lines.at, r->diag);
	return rc ? rc : um_plan_carry_check(sched, r->lines.at, r->diag);
}

/* Takes `lines`. `out` is set on success only. */
static int read_all(struct um_lines *lines, struct um_plan *out, struct um_diag *diag)
{
	struct reader r = {.names = {"slot", bytes_of}, .diag = diag};
	const char *text;
	size_t n;
	int rc;

	um_plan_init(&r.plan);
	while ((rc = um_lines_next(lines, &text, &n)) > 0) {
		struct um_json j;

		rc = um_json_parse(&j, text, n, um_lines_number(lines), diag);
		if (!rc)
			rc = read_line(&r, &j);
		um_json_fini(&j);
		if (rc)
			break;
	}
	if (!rc)
		rc = check_whole(&r, um_lines_number(lines));
	if (rc) {
		um_plan_fini(&r.plan);
	} else {
		um_plan_fini(out);
		*out = r.plan;
	}
	um_op_line_fini(&r.op);
	um_vec_fini(&r.lines);
	um_lines_close(lines);
	return rc;
}

int um_plan_read(const char *path, struct um_plan *out, struct um_diag *diag)
{
	struct um_lines *lines;
	int rc = um_lines_open(&lines, path, diag);

	return rc ? rc : read_all(lines, out, diag);
}

int um_plan_read_mem(const void *data, size_t bytes, struct um_plan *out, struct um_diag *diag)
{
	struct um_lines *lines;
	int rc = um_lines_open_mem(&lines, data, bytes, "memory", diag);

	return rc ? rc : read_all(lines, out, diag);
}
