/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_view.h"
#include "tool.h"
#include "umadvise.h"

#include <string.h>

#include "io/plan_file.h"

#define MOST_ITERATIONS 8 /* limit; um_plan_check reaches the steady state within as many */

/* Observations of one iteration while it runs. */
struct watcher {
	struct plan_view *v;
	uint64_t begin, step; /* ns: of the iteration; at least between two samples */
	uint64_t *copied; /* by hint, bytes */
	int fresh; /* no observation of this iteration yet */
	struct {
		uint64_t iter;
		uint32_t head;
		int busy;
	} last[2]; /* state of the copy engines at the last observation: in, out */
	int32_t op; /* the last op that began */
	int err;
};

double plan_copy_ns(uint64_t bytes, uint64_t rate)
{
	return (double)bytes * 1e9 / (double)rate;
}

const char *plan_op_name(const struct plan_view *v, size_t launch, char *room, size_t size)
{
	const struct um_sched_op *op = &v->plan.sched.ops.at[launch];

	snprintf(room, size, "%d '%.80s'%s", v->op[op->again ? op->again - 1 : launch], op->name,
		 op->again ? " again" : "");
	return room;
}

/* The op before which a slot is born: behind the relaunches before it. */
static int32_t birth_of(const struct plan_view *v, const struct um_slot *t)
{
	int32_t launch = t->birth;

	while (v->plan.sched.ops.at[launch].again)
		launch++;
	return launch;
}

const char *plan_slot_name(const struct plan_view *v, uint32_t slot, char *room, size_t size)
{
	const struct um_schedule *s = &v->plan.sched;
	const struct um_slot *t = &s->slots.at[slot];
	char op[PLAN_OP_NAME];

	if (t->name && *t->name)
		return t->name;
	if (t->flags & UM_SLOT_SCRATCH)
		snprintf(room, size, "scratch for slot %u", t->of);
	else if (t->birth >= 0 && t->birth < (int32_t)s->ops.n)
		snprintf(room, size, "slot %u of op %s", slot, plan_op_name(v, (size_t)birth_of(v, t), op, sizeof op));
	else
		snprintf(room, size, "slot %u", slot);
	return room;
}

static void see_engine(struct watcher *w, const struct um_plan_run *r, int out)
{
	const struct um_plan_engine *e = out ? &r->d2h : &r->h2d;
	uint32_t base, flag = out ? UM_ATOM_LEAVING : UM_ATOM_COMING | UM_ATOM_LIVE;
	struct plan_copy c = {.out = out};

	if (!e->busy || (w->last[out].busy && w->last[out].iter == e->iter && w->last[out].head == e->head)) {
		w->last[out].busy = e->busy;
		return;
	}
	w->last[out].busy = 1;
	w->last[out].iter = e->iter;
	w->last[out].head = e->head;
	base = r->atoms.first[e->slot];
	for (uint32_t i = base + e->lo; i < base + e->hi; i++)
		if ((r->state[i] & flag) == flag)
			c.bytes += r->atoms.bytes[i];
	c.begin = r->now - w->begin;
	c.end = e->end - w->begin;
	c.slot = e->slot;
	c.hint = e->queue[e->head];
	c.carried = w->fresh && e->end - r->now < (uint64_t)(plan_copy_ns(c.bytes, out ? r->plan->d2h : r->plan->h2d));
	if (!c.carried) {
		w->copied[c.hint] += c.bytes;
		(out ? w->v->out : w->v->in)[c.slot] += c.bytes;
	}
	if (um_vec_push(&w->v->copies, c))
		w->err = -ENOMEM;
}

static void see_memory(struct watcher *w, const struct um_plan_run *r)
{
	struct plan_view *v = w->v;
	struct plan_sample s = {.at = r->now - w->begin};
	const struct um_schedule *sched = &v->plan.sched;

	if (v->samples.n && s.at < v->samples.at[v->samples.n - 1].at + w->step)
		return;
	for (uint32_t k = 0; k < sched->slots.n; k++)
		for (uint32_t i = r->atoms.first[k]; i < r->atoms.first[k + 1]; i++)
			if (r->state[i] & (UM_ATOM_RESIDENT | UM_ATOM_COMING | UM_ATOM_LEAVING))
				s.bytes[sched->slots.at[k].role] += r->atoms.bytes[i];
	if (um_vec_push(&v->samples, s))
		w->err = -ENOMEM;
}

static void see(void *user, struct um_plan_run *r)
{
	struct watcher *w = user;

	for (int out = 0; out < 2; out++)
		see_engine(w, r, out);
	see_memory(w, r);
	if (r->running && r->pos != w->op) {
		w->op = r->pos;
		w->v->op_begin[r->pos] = r->now - w->begin;
	}
	w->fresh = 0;
}

static void see_hint(void *user, const struct um_plan_run *r, uint32_t hint, uint32_t slot, struct um_atom_range atoms)
{
	struct watcher *w = user;
	struct plan_start s = {r->now - w->begin, hint, slot};

	(void)atoms;
	if (um_vec_push(&w->v->starts, s))
		w->err = -ENOMEM;
}

/* Checks that the iteration equals the proved one, within the rounding that the proof allows. */
static int is_steady(const struct plan_view *v, const struct um_plan_run *r)
{
	uint64_t a = r->tally.ns, b = v->figures.ns, d = a > b ? a - b : b - a;

	return r->repeats || (d <= b / 10000 && r->tally.h2d_bytes == v->figures.h2d_bytes &&
			      r->tally.d2h_bytes == v->figures.d2h_bytes && !memcmp(r->begun, r->state, r->atoms.n));
}

static int carry_out(struct plan_view *v)
{
	const struct um_schedule *s = &v->plan.sched;
	struct watcher w = {.v = v, .step = v->figures.ns / PLAN_VIEW_COLUMNS};
	struct um_plan_watch watch = {.hint = see_hint, .pass = see, .user = &w};
	struct um_plan_run r;
	int err = um_plan_run_init(&r, &v->plan);

	if (err)
		return err;
	w.copied = calloc(v->plan.hints.n + 1, sizeof *w.copied);
	r.watch = &watch;
	err = w.copied ? 0 : -ENOMEM;
	for (int i = 0; i < MOST_ITERATIONS && !err; i++) {
		w.begin = r.now;
		w.fresh = 1;
		w.op = -1;
		memset(w.last, 0, sizeof w.last);
		memset(w.copied, 0, v->plan.hints.n * sizeof *w.copied);
		memset(v->in, 0, s->slots.n * sizeof *v->in);
		memset(v->out, 0, s->slots.n * sizeof *v->out);
		um_vec_clear(&v->copies);
		um_vec_clear(&v->samples);
		um_vec_clear(&v->starts);
		um_plan_run_iteration(&r);
		err = w.err;
		if (is_steady(v, &r))
			break;
	}
	if (!err)
		err = plan_evictions_find(v, w.copied, r.after);
	free(w.copied);
	um_plan_run_fini(&r);
	return err;
}

/* Marks ends of lives, then sums. */
static void sum_alive(struct plan_view *v)
{
	const struct um_schedule *s = &v->plan.sched;
	size_t n = s->ops.n;

	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];
		size_t birth = t->birth < 0 ? 0 : (size_t)t->birth, death = t->death < 0 ? n : (size_t)t->death;

		if (t->flags & (UM_SLOT_UNMANAGED | UM_SLOT_SCRATCH))
			continue;
		if (t->birth >= 0 && t->death <= t->birth)
			v->alive[0] += t->bytes; /* tensors born in the previous iteration */
		v->alive[birth] += t->bytes;
		v->alive[death] -= t->bytes; /* may wrap below zero; the unsigned sum is right */
	}
	for (size_t i = 0; i < n; i++) {
		v->alive[i] += i ? v->alive[i - 1] : 0;
		if (v->alive[i] > v->alive[v->fullest])
			v->fullest = i;
	}
}

static int say(struct um_diag *diag, int err)
{
	char line[800];

	um_diag_line(diag, line, sizeof line);
	tool_say("plan", "%s", line);
	return tool_exit_of(err);
}

/* Replaces the plan by the unfolded one. 0 or -ENOMEM. */
static int unfold(struct plan_view *v)
{
	struct um_unfolded_plan u = {.op = NULL};
	const struct um_schedule *s = &v->plan.sched;
	int err;

	v->n_ops = (int32_t)s->ops.n;
	v->n_hints = v->plan.hints.n;
	for (size_t i = 0; i < s->slots.n; i++)
		v->n_slots += !(s->slots.at[i].flags & UM_SLOT_SCRATCH);
	err = um_plan_unfold(&v->plan, &u, NULL, 0);
	if (err)
		return err;
	v->relaunches = u.plan.sched.ops.n - s->ops.n;
	u.plan.source = v->plan.source;
	u.plan.workload = v->plan.workload;
	u.plan.profile = v->plan.profile;
	u.plan.strategy = v->plan.strategy;
	v->plan.source = v->plan.workload = v->plan.profile = v->plan.strategy = NULL;
	um_plan_fini(&v->plan);
	v->plan = u.plan;
	v->op = u.op;
	free(u.launch);
	return 0;
}

int plan_view_open(struct plan_view *v, const char *path)
{
	struct um_schedule *s = &v->plan.sched;
	struct um_diag diag;
	char why[256] = "";
	int err;

	memset(v, 0, sizeof *v);
	v->path = path;
	um_plan_init(&v->plan);
	err = um_plan_read(path, &v->plan, &diag);
	if (err)
		return say(&diag, err);
	err = um_plan_check(&v->plan, &v->figures, why, sizeof why);
	if (err == -EINVAL) {
		tool_say("plan", "%s: the plan is not sound: %s", path, why);
		return TOOL_FAILED;
	}
	if (!err)
		err = unfold(v);
	v->op_begin = calloc(s->ops.n + 1, sizeof *v->op_begin);
	v->alive = calloc(s->ops.n + 1, sizeof *v->alive);
	v->in = calloc(s->slots.n + 1, sizeof *v->in);
	v->out = calloc(s->slots.n + 1, sizeof *v->out);
	if (!v->op_begin || !v->alive || !v->in || !v->out)
		err = -ENOMEM;
	if (!err) {
		sum_alive(v);
		for (size_t i = 0; i < s->slots.n; i++)
			v->roles |= 1u << s->slots.at[i].role;
		err = carry_out(v);
	}
	if (err)
		tool_say("plan", "%s: %s", path, umadv_strerror(err));
	return err ? tool_exit_of(err) : TOOL_DONE;
}

void plan_view_close(struct plan_view *v)
{
	um_plan_fini(&v->plan);
	free(v->op);
	free(v->op_begin);
	free(v->alive);
	free(v->in);
	free(v->out);
	um_vec_fini(&v->copies);
	um_vec_fini(&v->samples);
	um_vec_fini(&v->starts);
	um_vec_fini(&v->evictions);
}
