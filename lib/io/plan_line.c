/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_line.c - reads op and hint lines of a umplan
 */
#include "io/plan_line.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const kind_names[] = {
	[UM_HINT_PREFETCH] = "prefetch",   [UM_HINT_EVICT] = "evict",	[UM_HINT_DISCARD] = "discard",
	[UM_HINT_RECOMPUTE] = "recompute", [UM_HINT_ADVISE] = "advise",
};

/* Indexed by cudaMemoryAdvise. */
static const char *const advice_names[] = {
	NULL,	       "read_mostly",	    "unset_read_mostly", "preferred_location", "unset_preferred_location",
	"accessed_by", "unset_accessed_by",
};

#define N_KINDS (sizeof kind_names / sizeof *kind_names)
#define N_ADVICE (sizeof advice_names / sizeof *advice_names)

const char *um_hint_kind_name(enum um_hint_kind kind)
{
	return (size_t)kind < N_KINDS ? kind_names[kind] : NULL;
}

const char *um_advice_name(int advice)
{
	return advice > 0 && (size_t)advice < N_ADVICE ? advice_names[advice] : NULL;
}

static int no_memory(const struct um_json *j)
{
	return um_diag_set(j->diag, ENOMEM, j->line, "out of memory");
}

/* `order`: indices of the uses (r first, then w alone) in the program's order. */
static int reorder(struct um_op_line *op, const struct um_json *j)
{
	json_t *list = NULL;
	int rc = um_json_array(j, "order", UM_JSON_MAY, &list);

	if (rc || !list)
		return rc;
	if (json_array_size(list) != op->uses.n)
		return um_json_refuse(j, "`order` has %zu numbers: want %zu, one for each use", json_array_size(list),
				      op->uses.n);
	/* Old and new order in one array; the table of ranges marks the uses that were taken. */
	if (um_vec_reserve(&op->uses, op->uses.n))
		return no_memory(j);
	memset(op->table.at, 0, op->table.n * sizeof *op->table.at);
	for (size_t i = 0; i < op->uses.n; i++) {
		uint64_t from;

		rc = um_json_as_u64(j, json_array_get(list, i), "an element of `order`", 0, op->uses.n - 1, &from);
		if (rc)
			return rc;
		if (op->table.at[from]++)
			return um_json_refuse(j, "`order` has %" PRIu64 " twice: want each use once", from);
		op->uses.at[op->uses.n + i] = op->uses.at[from];
	}
	if (op->uses.n)
		memcpy(op->uses.at, op->uses.at + op->uses.n, op->uses.n * sizeof *op->uses.at);
	return 0;
}

/* `dead`: the ranges that were declared dead after this op, in the order of its uses. */
static int mark_dead(struct um_sched_use *uses, size_t n, const struct um_json *j, const struct um_op_names *names)
{
	json_t *list = NULL;
	size_t k = 0;
	int rc = um_json_array(j, "dead", UM_JSON_MAY, &list);

	for (size_t i = 0; !rc && i < json_array_size(list); i++) {
		struct um_use u;

		rc = um_op_range_read(j, json_array_get(list, i), "dead", names, &u);
		if (rc)
			break;
		while (k < n && (uses[k].slot != u.id.v || uses[k].off != u.off || uses[k].bytes != u.bytes))
			k++;
		if (k == n)
			return um_json_refuse(j,
					      "`dead` names a range of slot %" PRIu64
					      " that the op does not use, or out of "
					      "order: want those of `r` and `w`, in the order of the uses",
					      u.id.v);
		uses[k++].dead_after = 1;
	}
	return rc;
}

/* `choice`: without it the op has one algorithm. */
static int keep_choice(struct um_schedule *sched, const struct um_op_line *op, const struct um_json *j,
		       struct um_sched_op *so)
{
	uint64_t choice = UINT64_MAX;
	int rc = 0;

	if (!op->ws.n && json_object_get(j->root, "choice"))
		return um_json_refuse(j, "`choice` without `ws`: want the algorithms that it chooses from");
	if (op->ws.n)
		rc = um_json_u64(j, "choice", UM_JSON_MAY, 0, op->ws.n - 1, &choice);
	if (rc || choice == UINT64_MAX)
		return rc;
	if (op->ws.n > UINT32_MAX - sched->ws.n || um_vec_reserve(&sched->ws, op->ws.n))
		return no_memory(j);
	so->choice = (uint32_t)choice;
	so->first_ws = (uint32_t)sched->ws.n;
	so->n_ws = (uint32_t)op->ws.n;
	for (size_t i = 0; i < op->ws.n; i++)
		sched->ws.at[sched->ws.n++] = op->ws.at[i];
	return 0;
}

static int keep_uses(struct um_schedule *sched, const struct um_op_line *op)
{
	if (um_vec_reserve(&sched->uses, op->uses.n) || um_vec_reserve(&sched->relaunch, op->relaunch.n))
		return -ENOMEM;
	for (size_t i = 0; i < op->uses.n; i++) {
		const struct um_use *u = &op->uses.at[i];

		sched->uses.at[sched->uses.n++] = (struct um_sched_use){
			.slot = (uint32_t)u->id.v,
			.access = u->access,
			.off = u->off,
			.bytes = u->bytes,
			.touched = u->touched,
		};
	}
	for (size_t i = 0; i < op->relaunch.n; i++)
		sched->relaunch.at[sched->relaunch.n++] = (uint32_t)op->relaunch.at[i].v;
	return 0;
}

int um_plan_op_keep(struct um_schedule *sched, struct um_op_line *op, const struct um_json *j,
		    const struct um_op_names *names)
{
	struct um_sched_op so = {
		.first_use = (uint32_t)sched->uses.n,
		.n_uses = (uint32_t)op->uses.n,
		.ns = op->cost.ns,
		.cost = op->cost,
		.stream = op->stream,
		.phase = op->phase,
		.collective = (uint8_t)op->collective,
		.relaunchable = (uint8_t)op->relaunchable,
		.first_relaunch = (uint32_t)sched->relaunch.n,
		.n_relaunch = (uint32_t)op->relaunch.n,
	};
	int measured = 1, paged = 0, host = 0, rc;

	if (!json_object_get(j->root, "ns"))
		return um_json_refuse(j, "`ns` is missing: want the op's duration, measured or estimated");
	if (sched->uses.n + op->uses.n > UINT32_MAX || sched->relaunch.n + op->relaunch.n > UINT32_MAX)
		return um_json_refuse(j, "too many uses: want at most %u in a plan", UINT32_MAX);
	rc = um_json_hex(j, "hash", UM_JSON_MAY, &so.hash);
	if (!rc)
		rc = um_json_bool(j, "measured", &measured);
	if (!rc)
		rc = um_json_bool(j, "paged", &paged);
	if (!rc)
		rc = um_json_bool(j, "host", &host);
	if (!rc)
		rc = keep_choice(sched, op, j, &so);
	if (!rc)
		rc = reorder(op, j);
	if (!rc && keep_uses(sched, op))
		rc = no_memory(j);
	if (!rc)
		rc = mark_dead(so.n_uses ? sched->uses.at + so.first_use : NULL, so.n_uses, j, names);
	if (rc)
		return rc;
	so.paged = (uint8_t)paged;
	if (host)
		so.stream = UM_STREAM_CPU;
	if (!measured)
		so.cost.ns = 0;
	so.name = strdup(op->name);
	if (!so.name || um_vec_push(&sched->ops, so)) {
		free(so.name);
		return no_memory(j);
	}
	return 0;
}

static int hint_kind(const struct um_json *j, enum um_hint_kind *out)
{
	const char *kind;
	int rc = um_json_str(j, "kind", UM_JSON_MUST, &kind);

	if (rc)
		return rc;
	for (size_t i = 0; i < N_KINDS; i++) {
		if (strcmp(kind, kind_names[i]) == 0) {
			*out = (enum um_hint_kind)i;
			return 0;
		}
	}
	return um_json_refuse(j, "unknown `kind` %s: want prefetch, evict, discard, recompute or advise",
			      um_json_show(json_object_get(j->root, "kind")).text);
}

static int hint_advice(const struct um_json *j, int *out)
{
	const char *advice;
	int rc = um_json_str(j, "advice", UM_JSON_MUST, &advice);

	if (rc)
		return rc;
	for (size_t i = 1; i < N_ADVICE; i++) {
		if (strcmp(advice, advice_names[i]) == 0) {
			*out = (int)i;
			return 0;
		}
	}
	return um_json_refuse(
		j, "unknown `advice` %s: want read_mostly, preferred_location, accessed_by, or unset_ and one of these",
		um_json_show(json_object_get(j->root, "advice")).text);
}

static int hint_recompute(const struct um_json *j, const struct um_plan *plan, struct um_hint *h)
{
	uint64_t op;
	int rc = um_json_u64(j, "op", UM_JSON_MUST, 0, INT64_MAX, &op);

	if (rc)
		return rc;
	if (op >= plan->sched.ops.n)
		return um_json_refuse(j, "op %" PRIu64 " is not defined: want one of the %zu ops above", op,
				      plan->sched.ops.n);
	if (!plan->sched.ops.at[op].relaunchable)
		return um_json_refuse(j, "op %" PRIu64 " has no `relaunch`: want an op that may be launched again", op);
	h->slot = (uint32_t)op;
	return 0;
}

/* `scratch`: slots, which the judge checks further. */
static int hint_scratch(const struct um_json *j, const struct um_op_names *names, struct um_plan *plan,
			struct um_hint *h)
{
	json_t *list = NULL;
	int rc = um_json_array(j, "scratch", UM_JSON_MAY, &list);

	h->first_scratch = plan->scratch.n;
	for (size_t i = 0; !rc && i < json_array_size(list); i++) {
		uint64_t slot, bytes;

		rc = um_json_as_u64(j, json_array_get(list, i), "an element of `scratch`", 0, INT64_MAX, &slot);
		if (!rc)
			rc = names->bytes_of(names, j, slot, &bytes);
		if (!rc && !(plan->sched.slots.at[slot].flags & UM_SLOT_SCRATCH))
			rc = um_json_refuse(
				j, "`scratch` names slot %" PRIu64 ", which has no `of`: want scratch slots", slot);
		if (!rc && um_vec_push(&plan->scratch, (uint32_t)slot))
			rc = no_memory(j);
		h->n_scratch = i + 1;
	}
	return rc;
}

static int hint_range(const struct um_json *j, const struct um_op_names *names, struct um_hint *h)
{
	uint64_t slot, whole;
	int rc = um_json_u64(j, "s", UM_JSON_MUST, 0, INT64_MAX, &slot);

	if (!rc)
		rc = names->bytes_of(names, j, slot, &whole);
	if (!rc)
		rc = um_json_u64(j, "off", UM_JSON_MUST, 0, INT64_MAX, &h->off);
	if (!rc)
		rc = um_json_u64(j, "bytes", UM_JSON_MUST, 1, INT64_MAX, &h->bytes);
	if (rc)
		return rc;
	if (h->off > whole || h->bytes > whole - h->off)
		return um_json_refuse(j,
				      "the range reaches over the end of slot %" PRIu64 ": offset %" PRIu64
				      " + bytes %" PRIu64 ", want at most its %" PRIu64 " bytes",
				      slot, h->off, h->bytes, whole);
	h->slot = (uint32_t)slot;
	return 0;
}

int um_plan_hint_read(const struct um_json *j, struct um_plan *plan, uint64_t n_ops, const struct um_op_names *names,
		      struct um_hint *out)
{
	struct um_hint h = {.after = -1, .copy = 1};
	int32_t last = plan->hints.n ? plan->hints.at[plan->hints.n - 1].at : 0;
	enum um_json_need after = UM_JSON_MUST;
	uint64_t again = 0;
	int copy = 1, advice = 0;
	int rc = hint_kind(j, &h.kind);

	if (!rc && n_ops == 0)
		return um_json_refuse(j, "a hint without ops: want no hints if the header says 0 ops");
	if (!rc)
		rc = um_json_i32(j, "at", UM_JSON_MUST, 0, (int32_t)n_ops - 1, &h.at);
	if (!rc && h.at < last)
		return um_json_refuse(j, "`at` is %d after %d: want hints in the order of issue", h.at, last);
	/* hints of these kinds start with an op, or at once */
	if (h.kind == UM_HINT_RECOMPUTE || h.kind == UM_HINT_ADVISE)
		after = UM_JSON_MAY;
	if (!rc)
		rc = um_json_i32(j, "after", after, -1, INT32_MAX, &h.after);
	if (!rc && h.after >= h.at)
		return um_json_refuse(j, "`after` is %d with `at` %d: want an op before `at`, or -1", h.after, h.at);
	if (!rc)
		rc = um_json_u64(j, "again", UM_JSON_MAY, 0, INT32_MAX, &again);
	if (!rc)
		rc = h.kind == UM_HINT_RECOMPUTE ? hint_recompute(j, plan, &h) : hint_range(j, names, &h);
	if (!rc && h.kind == UM_HINT_RECOMPUTE)
		rc = hint_scratch(j, names, plan, &h);
	if (!rc && h.kind == UM_HINT_EVICT)
		rc = um_json_bool(j, "copy", &copy);
	if (!rc && h.kind == UM_HINT_ADVISE)
		rc = hint_advice(j, &advice);
	if (rc)
		return rc;
	h.again = (uint32_t)again;
	h.copy = (int16_t)copy;
	h.advice = (int16_t)advice;
	*out = h;
	return 0;
}

struct birth {
	uint32_t slot, ord;
	int32_t at;
};

static int compare_ord(const void *a, const void *b)
{
	const struct birth *x = a, *y = b;

	return x->ord != y->ord ? (x->ord > y->ord) - (x->ord < y->ord) : (x->slot > y->slot) - (x->slot < y->slot);
}

static int compare_at(const void *a, const void *b)
{
	const struct birth *x = a, *y = b;

	return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->slot > y->slot) - (x->slot < y->slot);
}

int um_plan_births_build(struct um_schedule *sched, const struct um_slot_line *from, struct um_diag *diag)
{
	UM_VEC(struct birth) births = {0};
	int given = 1, rc = 0;

	if (um_vec_reserve(&births, sched->slots.n) || um_vec_reserve(&sched->births, sched->slots.n)) {
		rc = um_diag_set(diag, ENOMEM, 0, "out of memory");
		goto end;
	}
	for (size_t i = 0; i < sched->slots.n; i++) {
		const struct um_slot *s = &sched->slots.at[i];

		if (s->birth < 0 || s->flags & UM_SLOT_SCRATCH)
			continue;
		given = given && from[i].has_ord;
		births.at[births.n++] = (struct birth){(uint32_t)i, s->born_ord, s->birth};
	}
	if (births.n)
		qsort(births.at, births.n, sizeof *births.at, given ? compare_ord : compare_at);
	for (size_t i = 0; i < births.n; i++) {
		const struct birth *b = &births.at[i];

		if (given && b->ord != i) {
			rc = um_diag_set(diag, EINVAL, from[b->slot].line,
					 "`ord` of slot %" PRIu32 " is %" PRIu32
					 ": want the births numbered from 0, each once",
					 b->slot, b->ord);
			goto end;
		}
		if (i && b->at < births.at[i - 1].at) {
			rc = um_diag_set(diag, EINVAL, from[b->slot].line,
					 "`ord` puts slot %" PRIu32 " after slot %" PRIu32
					 ", `birth` before it: want one order",
					 b->slot, births.at[i - 1].slot);
			goto end;
		}
		sched->slots.at[b->slot].born_ord = (uint32_t)i;
		sched->births.at[sched->births.n++] = b->slot;
	}
end:
	um_vec_fini(&births);
	return rc;
}

int um_plan_carry_check(const struct um_schedule *sched, const struct um_slot_line *from, struct um_diag *diag)
{
	size_t n = sched->slots.n;
	uint8_t *carried = calloc(n ? n : 1, 1);
	int rc = 0;

	if (!carried)
		return um_diag_set(diag, ENOMEM, 0, "out of memory");
	for (size_t i = 0; !rc && i < n; i++) {
		uint32_t c = sched->slots.at[i].carry;

		if (c == UM_NO_SLOT)
			continue;
		if (sched->slots.at[c].bytes != sched->slots.at[i].bytes)
			rc = um_diag_set(diag, EINVAL, from[i].line,
					 "slot %zu carries slot %" PRIu32 " of another size: want the same bytes", i,
					 c);
		else if (carried[c]++)
			rc = um_diag_set(diag, EINVAL, from[i].line,
					 "slot %" PRIu32 " is carried twice: want it to go on as one slot", c);
	}
	free(carried);
	return rc;
}
