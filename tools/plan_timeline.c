/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the steady iteration twice, because a prefetch in the first may serve an op of the second. A hint appears at
 * its start and belongs to the first op that uses its range.
 */
#include "plan_view.h"
#include "tool.h"
#include "umadvise.h"

#include "formats/perfetto.h"

#define TIMES 2
#define PROCESS 1u

struct timeline {
	const struct plan_view *v;
	struct um_perfetto *file;
	UM_VEC(struct um_activity) all;
	uint32_t *first_use; /* by slot: into `user`; slots + 1 */
	uint32_t *user; /* ops' uses (their rows in the schedule), by slot, in the order of ops */
	uint32_t *op_of; /* by use */
	uint32_t *successor; /* by slot: its tensor's slot an iteration later */
	char name[PLAN_SLOT_NAME];
};

/* --- which op a prefetch is for ----------------------------------------------------------------------------------- */

static int index_uses(struct timeline *t)
{
	const struct um_schedule *s = &t->v->plan.sched;

	t->first_use = calloc(s->slots.n + 2, sizeof *t->first_use);
	t->user = calloc(s->uses.n + 1, sizeof *t->user);
	t->op_of = calloc(s->uses.n + 1, sizeof *t->op_of);
	t->successor = um_schedule_successors(s);
	if (!t->first_use || !t->user || !t->op_of || !t->successor)
		return -ENOMEM;
	for (size_t u = 0; u < s->uses.n; u++)
		t->first_use[s->uses.at[u].slot + 2]++;
	for (size_t i = 0; i < s->slots.n; i++)
		t->first_use[i + 2] += t->first_use[i + 1];
	for (uint32_t i = 0; i < s->ops.n; i++)
		for (uint32_t u = s->ops.at[i].first_use; u < s->ops.at[i].first_use + s->ops.at[i].n_uses; u++) {
			t->op_of[u] = i;
			t->user[t->first_use[s->uses.at[u].slot + 1]++] = u;
		}
	return 0;
}

/* The first op at `from` or later that uses a part of the range; UM_ACT_NO_OP: none in the iteration. */
static uint64_t user_after(const struct timeline *t, uint32_t slot, const struct um_hint *h, uint64_t from)
{
	for (uint32_t k = t->first_use[slot]; k < t->first_use[slot + 1]; k++) {
		const struct um_sched_use *use = &t->v->plan.sched.uses.at[t->user[k]];
		uint32_t op = t->op_of[t->user[k]];

		if (t->v->op_begin[op] >= from && use->off < h->off + h->bytes && h->off < use->off + use->bytes)
			return op;
	}
	return UM_ACT_NO_OP;
}

static uint64_t target(const struct timeline *t, const struct plan_start *s)
{
	const struct um_hint *h = &t->v->plan.hints.at[s->hint];
	uint64_t op;

	if (h->kind != UM_HINT_PREFETCH)
		return UM_ACT_NO_OP;
	op = user_after(t, s->slot, h, s->at);
	if (op != UM_ACT_NO_OP || t->successor[s->slot] == UM_NO_SLOT)
		return op;
	op = user_after(t, t->successor[s->slot], h, 0);
	return op == UM_ACT_NO_OP ? op : op + t->v->plan.sched.ops.n;
}

/* --- what happens ------------------------------------------------------------------------------------------------- */

/* A valid `slot` is stored as the correlation. */
static int put(struct timeline *t, enum um_activity_kind kind, uint64_t begin, uint64_t end,
	       const struct um_activity *rest)
{
	struct um_activity a = *rest;

	a.kind = kind;
	a.begin = (int64_t)begin;
	a.end = (int64_t)end;
	a.process = PROCESS;
	a.thread = 1;
	return um_vec_push(&t->all, a);
}

/* The number of the op that a launch is or precedes. */
static uint64_t number(const struct timeline *t, unsigned iteration, uint64_t launch)
{
	return (uint64_t)iteration * (uint64_t)t->v->n_ops + (uint64_t)t->v->op[launch];
}

static int put_iteration(struct timeline *t, unsigned k)
{
	static const char *const names[TIMES] = {"steady iteration", "the next one"};
	const struct plan_view *v = t->v;
	const struct um_schedule *s = &v->plan.sched;
	uint64_t from = k * v->figures.ns;
	int err = put(t, UM_ACT_RANGE, from, from + v->figures.ns,
		      &(struct um_activity){.name = names[k], .domain = "umadvise", .device = -1});

	for (size_t i = 0; i < s->ops.n && !err; i++)
		err = put(t, UM_ACT_KERNEL, from + v->op_begin[i], from + v->op_begin[i] + s->ops.at[i].ns,
			  &(struct um_activity){.name = s->ops.at[i].name,
						.stream = s->ops.at[i].stream,
						.op = s->ops.at[i].again ? UM_ACT_NO_OP : number(t, k, i)});
	for (size_t i = 0; i < s->ops.n && !err; i++)
		if (s->ops.at[i].again)
			err = put(
				t, UM_ACT_HINT, from + v->op_begin[i], from + v->op_begin[i],
				&(struct um_activity){.hint = UM_HINT_RECOMPUTE, .device = -1, .op = number(t, k, i)});
	for (size_t i = 0; i < v->copies.n && !err; i++) {
		const struct plan_copy *c = &v->copies.at[i];

		if (!c->carried)
			err = put(t, UM_ACT_MIGRATION, from + c->begin, from + c->end,
				  &(struct um_activity){.bytes = c->bytes,
							.dir = c->out ? UM_DIR_D2H : UM_DIR_H2D,
							.cause = c->out ? UM_CAUSE_EVICTION : UM_CAUSE_PREFETCH,
							.correlation = c->slot + 1u});
	}
	for (size_t i = 0; i < v->starts.n && !err; i++) {
		const struct plan_start *at = &v->starts.at[i];
		const struct um_hint *h = &v->plan.hints.at[at->hint];
		uint64_t op = target(t, at);

		err = put(t, UM_ACT_HINT, from + at->at, from + at->at,
			  &(struct um_activity){.hint = h->kind,
						.bytes = h->bytes,
						.device = -1,
						.op = op == UM_ACT_NO_OP
							      ? op
							      : number(t, k + (unsigned)(op / s->ops.n), op % s->ops.n),
						.correlation = at->slot + 1u});
	}
	return err;
}

static int put_counters(struct timeline *t, unsigned k)
{
	const struct plan_view *v = t->v;
	const char *roles[UM_ROLES], *alive = "bytes";
	uint64_t from = k * v->figures.ns, values[UM_ROLES];
	int err = 0;

	for (size_t i = 0; i < v->samples.n && !err; i++) {
		unsigned n = 0;

		for (int r = 0; r < UM_ROLES; r++)
			if (v->roles >> r & 1) {
				roles[n] = um_role_name((enum um_role)r);
				values[n++] = v->samples.at[i].bytes[r];
			}
		if (n)
			err = um_perfetto_count(t->file, PROCESS, 0, (int64_t)(from + v->samples.at[i].at), "resident",
						n, roles, values);
	}
	for (size_t i = 0; i < v->plan.sched.ops.n && !err; i++)
		if (!i || v->alive[i] != v->alive[i - 1])
			err = um_perfetto_count(t->file, PROCESS, 0, (int64_t)(from + v->op_begin[i]), "alive", 1,
						&alive, &v->alive[i]);
	for (unsigned end = 0; end < 2 && !err; end++)
		err = um_perfetto_count(t->file, PROCESS, 0, (int64_t)(from + end * (v->figures.ns - !!v->figures.ns)),
					"budget", 1, &alive, &v->plan.budget);
	return err;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static int earlier(const void *a, const void *b)
{
	const struct um_activity *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->kind != y->kind)
		return (int)x->kind - (int)y->kind;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static const char *tensor(void *user, const struct um_activity *a)
{
	struct timeline *t = user;

	return a->correlation ? plan_slot_name(t->v, (uint32_t)a->correlation - 1, t->name, sizeof t->name) : NULL;
}

static int write_all(struct timeline *t)
{
	int err = index_uses(t);

	for (unsigned k = 0; k < TIMES && !err; k++)
		err = put_iteration(t, k);
	if (err)
		return err;
	qsort(t->all.at, t->all.n, sizeof *t->all.at, earlier);
	for (size_t i = 0; i < t->all.n && !err; i++)
		err = um_activity_feed(um_perfetto_sink(t->file), &t->all.at[i]);
	for (unsigned k = 0; k < TIMES && !err; k++)
		err = put_counters(t, k);
	return err;
}

int plan_timeline_write(const struct plan_view *v, const char *path)
{
	const struct um_plan *p = &v->plan;
	struct timeline t = {.v = v};
	struct um_perfetto_options o = {.tensor = tensor, .user = &t, .own_residency = 1, .kernels_say_op = 1};
	struct um_capture capture;
	struct um_diag diag;
	char line[800];
	int err;

	um_capture_init(&capture);
	o.capture = &capture;
	err = um_capture_process(&capture, PROCESS, 0, p->workload && *p->workload ? p->workload : "plan");
	if (!err && p->profile)
		err = um_capture_device(&capture, 0, p->profile, 0);
	if (err)
		um_diag_init(&diag, path), um_diag_set(&diag, -err, 0, "%s", umadv_strerror(err));
	else
		err = um_perfetto_open(&t.file, path, &o, &diag);
	if (!err) {
		int drawn = write_all(&t);

		err = um_perfetto_close(t.file, !drawn, &diag);
		if (drawn)
			err = um_diag_set(&diag, -drawn, 0, "%s", umadv_strerror(drawn));
	}
	um_vec_fini(&t.all);
	free(t.first_use);
	free(t.user);
	free(t.op_of);
	free(t.successor);
	um_capture_fini(&capture);
	if (!err)
		return TOOL_DONE;
	um_diag_line(&diag, line, sizeof line);
	tool_say("plan", "%s", line);
	return tool_exit_of(err);
}
