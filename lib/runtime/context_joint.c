/* SPDX-License-Identifier: Apache-2.0
 *
 * context_joint.c - memory of the program that contexts of several devices have adopted
 *
 * Tensors in a range that a context shares (runtime/joint.h) are no part of its plans while another one uses them, and
 * their size is not part of its budget. Each context looks at its own tensors at its next op or iteration after
 * something has changed.
 */
#include "runtime/context.h"
#include "runtime/joint.h"

#define PART 8 /* a range that is less than this part of both tensors is a halo: it stays planned, and faults */
#define MOST_PART 2 /* shared memory takes at most this part of a budget */

/* --- who shares what ---------------------------------------------------------------------------------------------- */

/* A tensor that was adopted, and the contexts that have adopted a part of it, too. */
struct search {
	const struct umadv *adv;
	int context; /* its number */
	uint64_t addr, bytes;
	int used;
};

/* The number of the context, or -1. */
static int enter(struct umadv *adv)
{
	if (!adv->joint.entered) {
		adv->joint.context = um_joint_enter();
		adv->joint.entered = adv->joint.context >= 0;
	}
	return adv->joint.entered ? adv->joint.context : -1;
}

/* The first tensor at or after `addr` that no other one contains, or the one that contains `addr`. */
static struct um_tensor *outermost(const struct um_registry *r, uint64_t addr)
{
	struct um_tensor *t = um_registry_find(r, addr);
	struct um_tree_node *n = t ? NULL : um_tree_ceil(&r->live, addr, 0);

	if (n)
		t = um_tree_entry(n, struct um_tensor, node);
	while (t && t->parent)
		t = t->parent;
	return t;
}

static void compare(struct search *s, struct umadv *other, const struct um_tensor *t)
{
	uint64_t from = t->addr > s->addr ? t->addr : s->addr, to = t->addr + t->bytes;
	uint64_t least = t->bytes < s->bytes ? t->bytes : s->bytes;
	int theirs;

	to = to < s->addr + s->bytes ? to : s->addr + s->bytes;
	if (!(t->flags & UM_TENSOR_ADOPTED) || (to - from) < least / PART)
		return;
	theirs = enter(other);
	if (theirs >= 0)
		um_joint_add(s->context, theirs, (struct um_joint_run){from, to - from},
			     !t->used_op ? s->context
			     : !s->used	 ? theirs
					 : -1);
}

/* With the locks of the list of contexts and of `other`. */
static void look(void *other_context, void *user)
{
	struct umadv *other = other_context;
	struct search *s = user;
	uint64_t at = s->addr, end = s->addr + s->bytes;
	const struct um_tensor *t;

	if (other == s->adv)
		return;
	while (at < end && (t = outermost(&other->tensors.registry, at)) && t->addr < end) {
		compare(s, other, t);
		at = t->addr + t->bytes;
	}
}

void um_context_join(struct umadv *adv, void *ptr, uint64_t bytes)
{
	struct search s = {.adv = adv, .addr = (uint64_t)(uintptr_t)ptr, .bytes = bytes};
	const struct um_tensor *t;

	if (um_fork_exit_is_dead(&adv->fork_exit) || !um_fork_exit_several())
		return;
	um_context_lock(adv);
	t = um_tensors_find_start(&adv->tensors, ptr, bytes);
	s.used = t && t->used_op;
	s.context = enter(adv);
	um_context_unlock(adv);
	if (t && s.context >= 0)
		um_fork_exit_visit(look, &s);
}

void um_context_part(struct umadv *adv, const struct um_tensor *t)
{
	if (adv->joint.entered && t->flags & UM_TENSOR_ADOPTED && !t->parent)
		um_joint_leave(adv->joint.context, (struct um_joint_run){t->addr, t->bytes});
}

/* --- the context's tensors ---------------------------------------------------------------------------------------- */

#define SHARED (UM_TENSOR_JOINT | UM_TENSOR_UNMANAGED)

static int set(struct um_tensor *t, int shared)
{
	unsigned flags = shared ? t->flags | SHARED : t->flags & ~(unsigned)SHARED;
	int changes = flags != t->flags;

	t->flags = flags;
	return changes;
}

/* Marks a tensor and those inside it. */
static int mark(struct um_tensor *t, int shared)
{
	uint64_t end = t->addr + t->bytes;
	struct um_tree_node *n = &t->node;
	int changes = set(t, shared);

	while ((n = um_tree_next(n)) && n->a < end)
		changes |= set(um_tree_entry(n, struct um_tensor, node), shared);
	return changes;
}

/* A plan would not know that an eviction leaves a copy on the device. */
static void end_advice(struct umadv *adv, const struct um_tensor *t)
{
	struct um_gpu *gpu = adv->device.gpu;

	if (um_gpu_takes_hints(gpu))
		gpu->api->cudaMemAdvise(gpu, (void *)(uintptr_t)t->addr, t->bytes, UM_ADV_UNSET_READ_MOSTLY,
					um_on_device(gpu->caps.device));
}

/* Marks the tensors of all ranges, and others no longer. `*bytes`: those that are shared. */
static int mark_all(struct umadv *adv, uint64_t *bytes)
{
	struct um_joint_run range = {0};
	int changes = 0, alone, more;

	more = um_joint_next(adv->joint.context, 0, &range, &alone);
	for (struct um_tree_node *n = um_tree_first(&adv->tensors.registry.live); n; n = um_tree_next(n)) {
		struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);
		int shared;

		if (t->parent || !(t->flags & UM_TENSOR_ADOPTED))
			continue;
		while (more && range.addr + range.bytes <= t->addr)
			more = um_joint_next(adv->joint.context, range.addr + 1, &range, &alone);
		shared = more && !alone && range.addr < t->addr + t->bytes;
		if (!shared && t->flags & UM_TENSOR_JOINT)
			end_advice(adv, t);
		if (shared && !(t->flags & UM_TENSOR_JOINT) && adv->replan.executor)
			um_executor_release(adv->replan.executor, t->addr, t->bytes);
		if (shared || t->flags & UM_TENSOR_JOINT)
			changes |= mark(t, shared);
		*bytes += shared ? t->bytes : 0;
	}
	return changes;
}

/* What is shared needs room beside the plan. */
static void change_budget(struct umadv *adv, uint64_t bytes)
{
	uint64_t before = adv->device.joint;

	if (bytes == before)
		return;
	um_chosen_device_join(&adv->device, bytes);
	if (um_context_change_budget(adv)) {
		um_chosen_device_join(&adv->device, before);
		adv->joint.due = 1;
		return;
	}
	adv->sharing.hinted = adv->device.budget;
}

void um_context_take_joint(struct umadv *adv)
{
	uint64_t bytes = 0;

	adv->joint.due = 0;
	adv->joint.seen = atomic_load_explicit(&um_joint_news, memory_order_acquire);
	if (!adv->joint.entered)
		return;
	adv->op.plain = 0;
	if (mark_all(adv, &bytes)) {
		um_context_leave(adv);
		um_context_forget_uses(adv);
	}
	change_budget(adv, bytes);
}

/* --- ops ---------------------------------------------------------------------------------------------------------- */

static void request(struct umadv *adv, const struct um_tensor *t, const struct um_joint_request *r, um_stream stream)
{
	struct um_gpu *gpu = adv->device.gpu;
	uint64_t from = t->addr > r->of.addr ? t->addr : r->of.addr, to = t->addr + t->bytes;
	int advice = r->advice == UM_JOINT_ADVISE ? UM_ADV_SET_READ_MOSTLY : UM_ADV_UNSET_READ_MOSTLY;

	to = to < r->of.addr + r->of.bytes ? to : r->of.addr + r->of.bytes;
	if (r->advice &&
	    gpu->api->cudaMemAdvise(gpu, (void *)(uintptr_t)from, to - from, advice, um_on_device(gpu->caps.device)))
		adv->replan.counts.refused++;
	for (unsigned i = 0; i < r->n; i++)
		um_context_prefetch_joint(adv, r->run[i].addr, r->run[i].bytes, stream);
}

/* A use of all shared ranges in its part of the tensor. */
static void use(struct umadv *adv, const struct um_use *u, enum um_joint_how how, um_stream stream)
{
	int fits = adv->device.joint <= adv->device.most / MOST_PART, write = (u->access & UM_WRITE) != 0;
	uint64_t from = u->tensor->addr + u->off, end = from + u->bytes;
	struct um_joint_request r;

	while (from < end) {
		um_joint_use(adv->joint.context, (struct um_joint_run){from, end - from}, write, fits, how, &r);
		if (r.advice || r.n)
			request(adv, u->tensor, &r, stream);
		from = r.of.bytes ? r.of.addr + r.of.bytes : end;
	}
}

void um_context_use_joint(struct umadv *adv, um_stream stream)
{
	const struct um_op_state *o = &adv->op;
	enum um_joint_how how = adv->joint.somewhere ? UM_JOINT_SOMEWHERE : UM_JOINT_WHOLE;

	if (!adv->joint.entered || !um_gpu_takes_hints(adv->device.gpu) ||
	    adv->options.strategy == UM_STRATEGY_ON_DEMAND)
		return;
	for (const struct um_use *u = o->uses; u < o->uses + o->n_uses; u++)
		if (u->tensor->flags & UM_TENSOR_JOINT)
			use(adv, u,
			    o->cpu		    ? UM_JOINT_ON_CPU
			    : u->touched < u->bytes ? UM_JOINT_SOMEWHERE
						    : how,
			    stream);
}
