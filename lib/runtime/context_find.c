/* SPDX-License-Identifier: Apache-2.0
 *
 * context_find.c - begins an iteration that the program did not mark
 *
 * The recording so far contains the two previous iterations. They are cut out of it, compared tensor by tensor, and
 * given to the planner: the first iteration after the discovery has a plan.
 */
#include "runtime/context.h"

#include "learn/iteration_cut.h"
#include "learn/iteration_start.h"
#include "learn/tensor_distance.h"

#include <errno.h>

/* Limits of a recording while no period is found; past one of them it restarts. */
#define RECORD_OPS (2 * UM_OP_PERIOD_MOST)
#define RECORD_USES (1u << 20)
#define RECORD_TENSORS (1u << 18)

#define STEADY_SHARE 0.6 /* of the recorded ops */

/* The two latest periods. */
struct found {
	struct um_iteration before, last;
};

/* 1: the periods are equal; 0: they differ, or out of memory. */
static int cut_out(struct umadv *adv, uint32_t length, struct found *out)
{
	const struct um_iteration *all = &adv->iterations.recorder.it;
	uint32_t end = (uint32_t)all->ops.n, periods = UM_OP_PERIOD_EVIDENCE / length;
	int alike = 1;

	if (periods > end / length)
		periods = end / length;
	for (uint32_t k = periods > 2 ? periods : 2; k && alike; k--) {
		struct um_cut cut = {.from = end - k * length, .to = end - (k - 1) * length};

		cut.before = cut.from > length ? cut.from - length : 0;
		cut.n = adv->iterations.n + (k == 1 ? 2 : 1);
		um_iteration_fini(&out->before);
		out->before = out->last;
		um_iteration_init(&out->last);
		if (um_iteration_cut(all, &cut, &out->last)) {
			adv->notices.errors++;
			return 0;
		}
		alike = !out->before.ops.n || out->before.signature == out->last.signature;
	}
	return alike;
}

/* Stores iteration and order of birth in the live tensors. */
static void set_birth_iterations(struct umadv *adv, const struct um_iteration *it)
{
	for (uint32_t i = 0; i < it->births.n; i++) {
		const struct um_iter_tensor *born = &it->tensors.at[it->births.at[i]];
		struct um_tensor *t = um_registry_find(&adv->tensors.registry, born->addr);

		while (t && t->id.v != born->id.v)
			t = t->parent;
		if (!t)
			continue;
		t->born_iter = it->n;
		t->born_ord = i;
	}
}

/* 1: the iteration should begin later, and the period waits. `known`: the recording ends with two periods. */
static int wait_for_start(struct umadv *adv, int known)
{
	struct um_op_period *p = &adv->iterations.finder.period;
	uint32_t start = p->due_first;

	if (p->start_known)
		return 0;
	p->start_known = 1;
	if (known && um_iteration_start(&adv->iterations.recorder.it, um_op_period_due(p), p->due_first, &start))
		adv->notices.errors++;
	um_op_period_wait(p, start);
	return start != 0;
}

/* 1: the tensors of the period's ops are the same again only after more ops, which is a longer period. */
static int lengthen(struct umadv *adv)
{
	struct um_iteration_finder *f = &adv->iterations.finder;
	uint32_t length = um_op_period_due(&f->period), seen = (uint32_t)adv->iterations.recorder.it.ops.n,
		 d = um_tensor_distance(&adv->iterations.recorder.it, length, um_op_period_unit(&f->period));

	if (d > length)
		f->step = um_op_period_lengthen(&f->period, d, 2 * d > seen ? 2 * d - seen : 1);
	return d > length;
}

/* 1: the two periods are most of what the program has done. One that did much else before will do so again, and the
 * first hints of a plan are dear. */
static int is_steady(const struct umadv *adv, uint32_t length)
{
	return 2.0 * length >= STEADY_SHARE * (double)adv->iterations.recorder.it.ops.n;
}

/* The first iteration of a new period begins, or it waits: for its first op, or as it is too short. 0: the ops repeat,
 * but with other tensors. */
static int begin_period(struct umadv *adv)
{
	struct um_iterations *it = &adv->iterations;
	uint32_t length = um_op_period_due(&it->finder.period);
	struct found found = {0};
	int known;

	um_recorder_flush(&it->recorder);
	known = !it->recorder.it.incomplete && it->recorder.it.ops.n >= 2ull * length;
	if (!known && um_iterations_outside(it))
		return 0; /* the recording has just restarted */
	if (known && !it->finder.period.start_known && lengthen(adv))
		return 1;
	if (known && !cut_out(adv, length, &found)) {
		um_iteration_fini(&found.before);
		um_iteration_fini(&found.last);
		return 0;
	}
	if (wait_for_start(adv, known)) {
		um_iteration_fini(&found.before);
		um_iteration_fini(&found.last);
		return 1;
	}
	um_notices_log(&adv->notices, UMADV_LOG_INFO,
		       "the program marks no iterations; its ops repeat every %u ops: iterations begin after op '%s'",
		       length, adv->op.name);
	if (known) {
		set_birth_iterations(adv, &found.before);
		set_birth_iterations(adv, &found.last);
		if (adv->replan.executor)
			um_replan_teach(&adv->replan, &found.before, is_steady(adv, length));
		it->n += 2;
	}
	um_context_begin(adv, NULL, known ? &found.last : NULL);
	if (um_op_period_accept(&it->finder.period))
		adv->notices.errors++;
	um_iteration_fini(&found.before);
	um_iteration_fini(&found.last);
	return 1;
}

void um_context_find_last(struct umadv *adv)
{
	struct um_iteration_finder *f = &adv->iterations.finder;

	if (f->step == UM_OP_PERIOD_FOUND) {
		if (begin_period(adv))
			return;
		f->step = um_op_period_refuse(&f->period);
	}
	if (f->step == UM_OP_PERIOD_LAST)
		um_context_begin(adv, NULL, NULL);
	else if (f->step == UM_OP_PERIOD_GIVEN_UP)
		um_notices_log(&adv->notices, UMADV_LOG_INFO,
			       "the ops stopped repeating; no iterations are found until they repeat again");
}

/* Bounds the recording while nothing repeats. */
static void limit_record(struct umadv *adv)
{
	const struct um_iteration *all = &adv->iterations.recorder.it;

	if (all->incomplete || all->ops.n >= RECORD_OPS || all->uses.n >= RECORD_USES ||
	    all->tensors.n >= RECORD_TENSORS)
		um_recorder_restart(&adv->iterations.recorder);
}

const struct um_sched_op *um_context_find(struct umadv *adv, unsigned stream, const struct umadv_op_info *info,
					  const struct um_sched_op *known)
{
	struct um_iteration_finder *f = &adv->iterations.finder;
	struct um_op_state *o = &adv->op;
	uint32_t op = adv->replan.cursor.op;

	o->key = known && op < o->known.keys.n ? o->known.keys.at[op] : 0;
	if (!o->key)
		o->key = um_iteration_finder_key(o->name, stream, o->uses, o->n_uses);
	um_iteration_finder_op(f, o->key, o->uses, o->n_uses, adv->iterations.op_serial, adv->tensors.bytes_live);
	if (um_iterations_outside(&adv->iterations))
		limit_record(adv);
	if (f->step != UM_OP_PERIOD_BEGINS)
		return known;
	um_context_begin(adv, NULL, NULL);
	if (known && um_op_state_resolve(o, &adv->tensors, info, &adv->notices))
		adv->notices.errors++;
	known = o->n_ws ? NULL
			: um_op_state_expected(o, &adv->tensors.registry, &adv->replan.cursor, (int32_t)stream, info);
	if (!known) {
		o->uses = o->resolved.at;
		o->n_uses = (uint32_t)o->resolved.n;
	}
	return known;
}
