/* SPDX-License-Identifier: Apache-2.0
 *
 * An op's slice is its first kernel, found by its launch call; without a launch, the time from its announcement to its
 * thread's next activity. Operations and calls are kept in rings by number: each overwrites the one UM_PF_RING before
 * it.
 */
#include "formats/perfetto_state.h"

#include "io/plan_line.h"

#include <inttypes.h>
#include <stdio.h>

#define HINTS_MAX (1u << 20) /* hints that wait for their ops */

/* --- who is remembered -------------------------------------------------------------------------------------------- */

/* Concurrent programs number their ops alike. */
static size_t place_of(uint64_t process, uint64_t number)
{
	return (size_t)((number + process * 8209) & (UM_PF_RING - 1));
}

static struct um_pf_op *op_find(const struct um_perfetto *w, uint64_t process, uint64_t number)
{
	struct um_pf_op *op = &w->ops[place_of(process, number)];

	return op->used && op->process == process && op->number == number ? op : NULL;
}

static void forget_hints(struct um_perfetto *w, struct um_pf_op *op)
{
	while (op->hints != UM_PF_NONE) {
		uint32_t h = op->hints;

		op->hints = w->hints.at[h].next;
		w->hints.at[h].next = w->free_hint;
		w->free_hint = h;
	}
}

static struct um_pf_op *op_at(struct um_perfetto *w, uint64_t process, uint64_t number)
{
	struct um_pf_op *op = op_find(w, process, number);

	if (op)
		return op;
	op = &w->ops[place_of(process, number)];
	if (op->used)
		forget_hints(w, op);
	free(op->name);
	*op = (struct um_pf_op){.process = process, .number = number, .used = 1, .hints = UM_PF_NONE};
	return op;
}

/* --- arrows ------------------------------------------------------------------------------------------------------- */

static void arrow_end(struct um_perfetto *w, const char *ph, const struct um_pf_slice *s, uint64_t at,
		      enum um_hint_kind kind)
{
	const struct um_pf_lane *l = &w->lanes.at[s->lane];

	um_pf_event(w, ph, w->groups.at[l->group].pid, l->tid, at, um_hint_kind_name(kind));
	um_out_str(w->out, ",\"cat\":\"hint\",\"id\":");
	um_out_u64(w->out, w->flows);
	um_out_str(w->out, *ph == 'f' ? ",\"bp\":\"e\"}" : "}");
}

/* An arrow points forward: to the slice's begin, or into it if the hint came after its begin. */
static void arrow(struct um_perfetto *w, const struct um_pf_slice *from, enum um_hint_kind kind,
		  const struct um_pf_slice *to)
{
	uint64_t at = to->begin > from->begin ? to->begin : from->begin;

	if (at >= to->end && at != to->begin)
		return;
	w->flows++;
	arrow_end(w, "s", from, from->begin, kind);
	arrow_end(w, "f", to, at, kind);
}

void um_pf_op_meet(struct um_perfetto *w, struct um_pf_op *op, const struct um_pf_slice *s)
{
	if (op->has_met)
		return;
	op->has_met = 1;
	op->met = *s;
	for (uint32_t h = op->hints; h != UM_PF_NONE; h = w->hints.at[h].next)
		arrow(w, &w->hints.at[h].from, w->hints.at[h].kind, s);
	forget_hints(w, op);
}

/* --- hints -------------------------------------------------------------------------------------------------------- */

static int hint_keep(struct um_perfetto *w, struct um_pf_op *op, const struct um_pf_hint *h)
{
	uint32_t at = w->free_hint;

	if (at != UM_PF_NONE) {
		w->free_hint = w->hints.at[at].next;
		w->hints.at[at] = *h;
	} else if (w->hints.n >= HINTS_MAX) {
		return 0;
	} else if (um_vec_push(&w->hints, *h)) {
		return -ENOMEM;
	} else {
		at = (uint32_t)w->hints.n - 1;
	}
	w->hints.at[at].next = op->hints;
	op->hints = at;
	return 0;
}

static void hint_write(struct um_perfetto *w, const struct um_activity *a, const struct um_pf_slice *s, int fits)
{
	const char *tensor = um_pf_tensor(w, a), *kind = um_hint_kind_name(a->hint);
	char name[256];
	int first = 1;

	snprintf(name, sizeof name, "%s%s%s", kind, tensor ? " " : "", tensor ? tensor : "");
	um_pf_slice_begin(w, s, fits, "hint", name);
	um_pf_key_u64(w, &first, "bytes", a->bytes);
	um_pf_key_address(w, &first, a->address);
	if (tensor)
		um_pf_key_str(w, &first, "tensor", tensor);
	if (a->op != UM_ACT_NO_OP)
		um_pf_key_u64(w, &first, "op", a->op);
	if (a->error) {
		snprintf(name, sizeof name, "error %d", a->error);
		um_pf_key_str(w, &first, "result", name);
	} else {
		um_pf_key_str(w, &first, "result", "done");
	}
	um_out_str(w->out, "}}");
}

int um_pf_on_hint(struct um_perfetto *w, const struct um_activity *a)
{
	int64_t lane = um_pf_lane(w, a->process, UM_PF_PROGRAM, UM_PF_HINTS, 0);
	struct um_pf_hint h = {{.begin = um_pf_time(w, a->begin), .end = um_pf_time(w, a->end)}, a->hint, UM_PF_NONE};
	struct um_pf_op *op;
	int fits = lane < 0 ? (int)lane : um_pf_place(w, (uint32_t)lane, &h.from);

	if (fits < 0)
		return fits;
	hint_write(w, a, &h.from, fits);
	if (a->op == UM_ACT_NO_OP || !fits)
		return 0;
	op = op_at(w, a->process, a->op);
	if (!op->has_met)
		return hint_keep(w, op, &h);
	arrow(w, &h.from, h.kind, &op->met);
	return 0;
}

/* --- operations --------------------------------------------------------------------------------------------------- */

int um_pf_op_over(struct um_perfetto *w, uint32_t lane, uint64_t at)
{
	struct um_pf_announced o = w->lanes.at[lane].announced;
	struct um_pf_slice s = {.begin = o.begin, .end = at > o.begin ? at : o.begin};
	struct um_pf_op *known;
	int fits, first = 1;

	if (!o.name)
		return 0;
	w->lanes.at[lane].announced = (struct um_pf_announced){0};
	fits = um_pf_place(w, lane, &s);
	if (fits >= 0) {
		um_pf_slice_begin(w, &s, fits, "op", o.name);
		um_pf_key_u64(w, &first, "op", o.op);
		um_out_str(w->out, "}}");
	}
	known = op_find(w, w->groups.at[w->lanes.at[lane].group].process, o.op);
	if (fits > 0 && known && !o.calls)
		um_pf_op_meet(w, known, &s);
	free(o.name);
	return fits < 0 ? fits : 0;
}

int um_pf_on_op(struct um_perfetto *w, const struct um_activity *a)
{
	int64_t lane = um_pf_lane(w, a->process, UM_PF_PROGRAM, UM_PF_OPS, a->thread);
	uint64_t begin = um_pf_time(w, a->begin);
	struct um_pf_announced o = {strdup(a->name), a->op, begin, 0};
	struct um_pf_op *op = op_at(w, a->process, a->op);
	int err = lane < 0 ? (int)lane : o.name ? um_pf_op_over(w, (uint32_t)lane, begin) : -ENOMEM;

	if (!err && !op->name) {
		op->name = strdup(a->name);
		err = op->name ? 0 : -ENOMEM;
	}
	if (err) {
		free(o.name);
		return err;
	}
	w->lanes.at[lane].announced = o;
	return 0;
}

void um_pf_on_call(struct um_perfetto *w, const struct um_activity *a)
{
	uint32_t lane = um_pf_lane_find(w, a->process, UM_PF_PROGRAM, UM_PF_OPS, a->thread);
	struct um_pf_announced *o = lane == UM_PF_NONE ? NULL : &w->lanes.at[lane].announced;

	if (!o || !o->name || !a->correlation)
		return;
	o->calls = 1;
	w->calls[place_of(a->process, a->correlation)] = (struct um_pf_call){a->process, a->correlation, o->op};
}

struct um_pf_op *um_pf_op_of(struct um_perfetto *w, const struct um_activity *kernel)
{
	const struct um_pf_call *c = &w->calls[place_of(kernel->process, kernel->correlation)];

	if (w->o.kernels_say_op)
		return kernel->op == UM_ACT_NO_OP ? NULL : op_at(w, kernel->process, kernel->op);
	if (!kernel->correlation || c->correlation != kernel->correlation || c->process != kernel->process)
		return NULL;
	return op_find(w, kernel->process, c->op);
}

void um_pf_ops_fini(struct um_perfetto *w)
{
	for (size_t i = 0; w->ops && i < UM_PF_RING; i++)
		free(w->ops[i].name);
	free(w->ops);
	free(w->calls);
	um_vec_fini(&w->hints);
}
