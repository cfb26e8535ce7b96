/* SPDX-License-Identifier: Apache-2.0
 *
 * jansson refuses NULL and what is no UTF-8: the first failure makes the whole document NULL.
 */
#include "plan_json.h"

#include "output.h"

/* An op, or null where there is none. */
static json_t *position(int none, int32_t op)
{
	return none ? json_null() : json_integer(op);
}

/* An optional text of the file. */
static json_t *text(const char *s)
{
	return s ? json_string(s) : json_null();
}

json_t *plan_json_figures(const struct plan_view *v)
{
	const struct um_plan *p = &v->plan;
	const struct um_plan_figures *f = &v->figures;

	return json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, "
			 "s:I}",
			 "file", v->path, "workload", text(p->workload), "profile", text(p->profile), "strategy",
			 text(p->strategy), "ops", (json_int_t)v->n_ops, "tensors", (json_int_t)v->n_slots, "hints",
			 (json_int_t)v->n_hints, "budget_bytes", (json_int_t)p->budget, "peak_bytes",
			 (json_int_t)f->peak_bytes, "host_bytes", (json_int_t)f->host_bytes, "h2d_bytes",
			 (json_int_t)f->h2d_bytes, "d2h_bytes", (json_int_t)f->d2h_bytes, "ns", (json_int_t)f->ns,
			 "stall_ns", (json_int_t)f->stall_ns, "predicted_ns", (json_int_t)um_plan_expected_ns(p),
			 "bound_ns", p->bound_ns ? json_integer((json_int_t)p->bound_ns) : json_null(), "relaunches",
			 (json_int_t)v->relaunches, "relaunch_ns", (json_int_t)f->again_ns, "relaunched_bytes",
			 (json_int_t)plan_dropped_bytes(v));
}

static json_t *tensor(const struct plan_view *v, uint32_t slot)
{
	const struct um_slot *s = &v->plan.sched.slots.at[slot];
	char room[PLAN_SLOT_NAME];

	return json_pack("{s:s, s:s, s:I, s:I, s:I}", "tensor", plan_slot_name(v, slot, room, sizeof room), "role",
			 um_role_name(s->role), "bytes", (json_int_t)s->bytes, "h2d_bytes", (json_int_t)v->in[slot],
			 "d2h_bytes", (json_int_t)v->out[slot]);
}

/* Ops are numbers, counted from the iteration in which the eviction begins: n and more are of the next one. */
static json_t *eviction_json(const struct plan_view *v, const struct plan_eviction *l)
{
	int32_t wraps = l->after < -1 ? v->n_ops : 0;
	char room[PLAN_SLOT_NAME];

	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:o, s:o, s:i, s:b}", "tensor",
			 plan_slot_name(v, l->slot, room, sizeof room), "role",
			 um_role_name(v->plan.sched.slots.at[l->slot].role), "bytes", (json_int_t)l->bytes,
			 "dropped_bytes", (json_int_t)l->dropped, "d2h_bytes", (json_int_t)l->copied_out, "h2d_bytes",
			 (json_int_t)l->copied_in, "after_op", l->after + wraps, "asked_op",
			 position(l->back == INT32_MAX, l->back + wraps), "used_op",
			 position(l->need == PLAN_NEVER_USED, l->need + wraps), "ops_over_budget", (int)l->over,
			 "again", l->again);
}

int plan_show_json(const struct plan_view *v, FILE *to)
{
	json_t *tensors = json_array(), *evictions = json_array(), *doc;
	int err = 0;

	for (uint32_t i = 0; i < v->plan.sched.slots.n; i++)
		if (v->in[i] || v->out[i])
			err |= json_array_append_new(tensors, tensor(v, i));
	for (size_t i = 0; i < v->evictions.n; i++)
		err |= json_array_append_new(evictions, eviction_json(v, &v->evictions.at[i]));
	doc = json_pack("{s:s, s:o, s:o, s:o}", "schema", "umplan-show/1", "plan", plan_json_figures(v), "tensors",
			tensors, "leaves", evictions);
	err = err || tool_json(to, doc, 0);
	json_decref(doc);
	return err ? -ENOMEM : 0;
}

void plan_json_differ(struct plan_differ *d, const struct plan_view *v, const struct plan_eviction *x,
		      const struct plan_eviction *y)
{
	const struct plan_eviction *l = x ? x : y;
	int32_t wraps = l->after < -1 ? v->n_ops : 0;
	char room[PLAN_SLOT_NAME];
	json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:i, s:o}", "tensor", plan_slot_name(v, l->slot, room, sizeof room),
			      "role", um_role_name(v->plan.sched.slots.at[l->slot].role), "a_bytes",
			      (json_int_t)(x ? x->bytes : 0), "b_bytes", (json_int_t)(y ? y->bytes : 0), "after_op",
			      l->after + wraps, "used_op", position(l->need == PLAN_NEVER_USED, l->need + wraps));

	d->err |= json_array_append_new(d->list, o);
}
