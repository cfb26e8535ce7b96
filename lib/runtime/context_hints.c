/* SPDX-License-Identifier: Apache-2.0
 *
 * context_hints.c - what a context answers its executor and its horizon, and opening both
 */
#include "runtime/context.h"

#include "runtime/discard_guard.h"

#define MOST_IN_BLOCK 64 /* tensors of one block that are looked at for its next use */

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void clip(void *user, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole)
{
	const struct umadv *adv = user;

	um_tensors_clip(&adv->tensors, addr, bytes, whole);
}

static int allocation(void *user, uint64_t addr, struct um_executor_range *out)
{
	const struct umadv *adv = user;

	return um_tensors_adopted(&adv->tensors, addr, out);
}

static struct um_discard_guard guard_of(struct umadv *adv)
{
	return (struct um_discard_guard){&adv->tensors.registry, &adv->tensors.pool, adv->op.uses, adv->op.n_uses,
					 um_iterations_before(&adv->iterations)};
}

static int may_discard(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	struct umadv *adv = user;
	const struct um_discard_guard guard = guard_of(adv);

	if (um_pending_launches_use(&adv->pending, addr, bytes))
		return 0;
	return um_discard_allowed(&guard, addr, bytes, waits);
}

static unsigned users(void *user, uint64_t addr, uint64_t bytes)
{
	const struct um_discard_guard guard = guard_of(user);

	return um_discard_users(&guard, addr, bytes);
}

static enum um_residency residency(void *user, uint64_t addr, uint64_t *last)
{
	const struct umadv *adv = user;

	return adv->op.beside_plan ? UM_RESIDENCY_UNKNOWN : um_horizon_residency(&adv->horizon, addr, last);
}

static int same_name(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static int is_resident(struct umadv *adv, const struct um_tensor *t)
{
	uint64_t last;

	for (uint64_t a = um_block_of(t->addr); a < t->addr + t->bytes; a += UM_BLOCK_BYTES)
		if (residency(adv, a, &last) != UM_RESIDENT)
			return 0;
	return 1;
}

static int is_alike(const struct um_slot *a, const struct um_slot *b)
{
	return a->bytes == b->bytes && a->role == b->role && same_name(a->name, b->name);
}

/* Tensors that take turns in a slot are like it in size, role and name. Returns the number of their blocks, if there
 * are several and all are resident; else 0. The tree is in order of address, and adjacent tensors may share a block. */
static uint64_t count_resident(struct umadv *adv, const struct um_slot *s)
{
	uint64_t blocks = 0, counted = 0;
	int n = 0;

	for (struct um_tree_node *i = um_tree_first(&adv->tensors.registry.live); i; i = um_tree_next(i)) {
		const struct um_tensor *t = um_tree_entry(i, struct um_tensor, node);
		uint64_t lo = um_block_of(t->addr), hi = um_block_of(t->addr + t->bytes + UM_BLOCK_BYTES - 1);

		if (t->bytes != s->bytes || t->role != s->role || !same_name(t->name, s->name))
			continue;
		if (!is_resident(adv, t))
			return 0;
		lo = lo > counted ? lo : counted;
		if (hi > lo)
			blocks += (hi - lo) / UM_BLOCK_BYTES;
		counted = hi > counted ? hi : counted;
		n++;
	}
	return n > 1 ? blocks : 0;
}

static uint64_t supplied_away(void *user, uint64_t *resident)
{
	struct umadv *adv = user;
	const struct um_schedule *s = adv->replan.cursor.sched;
	uint64_t away = 0, blocks;

	*resident = 0;
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *slot = &s->slots.at[i];
		size_t first = 0;

		if (!(slot->flags & UM_SLOT_SUPPLIED))
			continue;
		blocks = count_resident(adv, slot);
		if (!blocks)
			away += slot->bytes / UM_BLOCK_BYTES + 1;
		while (!(s->slots.at[first].flags & UM_SLOT_SUPPLIED && is_alike(&s->slots.at[first], slot)))
			first++;
		*resident += first == i ? blocks : 0; /* slots that are alike share their tensors */
	}
	return away;
}

static uint64_t live_peak(void *user)
{
	const struct umadv *adv = user;

	return adv->tensors.bytes_live_peak;
}

void um_context_warn_host(struct umadv *adv)
{
	um_notices_warn(
		&adv->notices, UM_WARN_HOST,
		"host memory: evicted data take more than the %llu MiB that are available (%s): the program may be "
		"killed",
		(unsigned long long)(adv->device.host_budget >> 20), adv->device.host_limit);
}

/* Makes a hint call before the op. 0, or why not. */
static int issue(struct umadv *adv, enum um_action_kind kind, uint64_t addr, uint64_t bytes, um_stream stream)
{
	struct um_activity_source *activities = &adv->sinks.activities;
	struct um_gpu *gpu = adv->device.gpu;
	struct um_executor_counts *counts = &adv->replan.counts;
	int listened = um_activity_source_on(activities), in = kind == UM_ACTION_PREFETCH;
	struct um_location to = in ? um_on_device(gpu->caps.device) : um_on_host();
	struct um_issued_hint h = {.kind = kind, .addr = addr, .bytes = bytes, .op = adv->iterations.op_serial - 1};

	h.begin = listened ? um_activity_source_now(activities) : 0;
	h.code = gpu->api->cudaMemPrefetchAsync(gpu, (void *)(uintptr_t)h.addr, h.bytes, to, 0, stream);
	if (listened) {
		h.end = um_activity_source_now(activities);
		um_sinks_hint(&adv->sinks, &h);
	}
	if (h.code) {
		counts->refused++;
		return h.code;
	}
	counts->issued++;
	counts->issued_by.hints[UM_HINT_ANNOUNCED]++;
	*(in ? &counts->prefetch_bytes : &counts->evict_bytes) += h.bytes;
	counts->issued_by.prefetch_bytes[UM_HINT_ANNOUNCED] += in ? h.bytes : 0;
	adv->iterations.hinted |= !adv->replan.executor;
	return 0;
}

void um_context_issue_hint(void *user, enum um_action_kind kind, uint64_t addr, uint64_t bytes, um_stream stream)
{
	struct umadv *adv = user;

	if (adv->on_use.exceeds)
		um_context_warn_host(adv);
	um_tensors_clip(&adv->tensors, &addr, &bytes, NULL);
	if (bytes && !issue(adv, kind, addr, bytes, stream) && kind == UM_ACTION_PREFETCH && adv->replan.executor)
		um_executor_note_prefetch(adv->replan.executor, addr, bytes);
}

void um_context_prefetch_joint(struct umadv *adv, uint64_t addr, uint64_t bytes, um_stream stream)
{
	issue(adv, UM_ACTION_PREFETCH, addr, bytes, stream);
}

/* No live tensor lies in the block. */
static int is_dead(void *user, uint64_t addr)
{
	const struct umadv *adv = user;
	uint64_t bytes = UM_BLOCK_BYTES;

	um_registry_clip(&adv->tensors.registry, &addr, &bytes);
	return !bytes;
}

/* Of two tensors in a block: the block is used as soon as one of them is, and dies with the last of them. */
static struct um_predicted_next join(struct um_predicted_next a, struct um_predicted_next b)
{
	if (a.freed != b.freed)
		return a.freed ? b : a;
	return (a.op < b.op) != a.freed ? a : b;
}

/* What probably happens to the live tensors of the block next. A block of many small tensors is always in use. */
static struct um_predicted_next next_use(void *user, uint64_t addr)
{
	const struct umadv *adv = user;
	const struct um_registry *r = &adv->tensors.registry;
	const struct um_tensor *t = um_registry_find(r, addr);
	struct um_tree_node *n = um_tree_ceil(&r->live, addr + 1, 0);
	struct um_predicted_next first = {.freed = 1};
	int most = MOST_IN_BLOCK;

	for (; t; t = t->parent)
		first = join(first, um_predictor_next(&adv->predictor, t));
	for (; n && n->a < addr + UM_BLOCK_BYTES; n = um_tree_next(n)) {
		if (!most--)
			return (struct um_predicted_next){.op = adv->predictor.n_ops + 1};
		t = um_tree_entry(n, struct um_tensor, node);
		first = join(first, um_predictor_next(&adv->predictor, t));
	}
	return first;
}

/* Where the block is when the confirmed plan begins that was followed until this iteration. */
static enum um_residency plan_begins(void *user, uint64_t addr)
{
	const struct umadv *adv = user;
	const struct um_replan *r = &adv->replan;
	const struct um_compiled_plan *p = &r->program;
	size_t k;

	if (!p->resident || !um_follow_is_confirmed(r->state) || um_follow_waits(r->state))
		return UM_RESIDENCY_UNKNOWN;
	k = um_compiled_plan_find(p, addr);
	if (k == p->blocks.n || p->blocks.at[k] != addr)
		return UM_RESIDENCY_UNKNOWN;
	return p->resident[k] ? UM_RESIDENT : UM_NOT_RESIDENT;
}

/* --- open, change ------------------------------------------------------------------------------------------------- */

/* Time for a block while all workers evict: of its copy, or of the driver's work, which they share. */
static double eviction_ns(const struct um_chosen_device *d)
{
	const struct um_profile *p = &d->profile;
	double copy = (double)UM_BLOCK_BYTES * 1e9 / (p->d2h * p->eta);
	double shared = (copy + (double)(p->c_pf + p->c_pf_cpu)) / um_replan_out_workers(d);

	return d->evicters || shared < copy ? copy : shared; /* `d2h` of evicters was measured with that work */
}

static int open_horizon(struct umadv *adv)
{
	const struct um_profile *p = &adv->device.profile;
	uint64_t blocks = adv->device.budget / UM_BLOCK_BYTES;
	double in_ns = (double)UM_BLOCK_BYTES * 1e9 / (p->h2d * p->eta);
	const struct um_horizon_host host = {.executor = adv->replan.executor,
					     .predictor = &adv->predictor,
					     .capacity = blocks < UM_HORIZON_MOST ? blocks : UM_HORIZON_MOST,
					     .new_ns = (int64_t)(p->c_pf + p->c_zero),
					     .in_ns = (int64_t)in_ns,
					     .out_ns = (int64_t)((double)UM_BLOCK_BYTES * 1e9 / (p->d2h * p->eta)),
					     .evict_ns = (int64_t)eviction_ns(&adv->device),
					     .advice_ns = (int64_t)(in_ns + (double)(2 * p->c_api + p->c_pf)),
					     .on_host = adv->device.on_host,
					     .remote = p->b_remote > 0,
					     .dead = is_dead,
					     .next = next_use,
					     .plan_begins = plan_begins,
					     .user = adv};
	int err = um_predictor_init(&adv->predictor);

	if (!err)
		err = um_horizon_init(&adv->horizon, &host);
	if (!err)
		um_replan_predicts(&adv->replan);
	return err;
}

/* Prefetch-on-use, and the horizon where the strategy predicts. Both exist beside the executor only if the device
 * memory is the budget: otherwise all of them would have to agree on the resident blocks. 0 or -ENOMEM. */
static int open_unplanned(struct umadv *adv)
{
	const struct um_chosen_device *d = &adv->device;
	enum um_strategy strategy = adv->options.strategy;
	int err;

	if (strategy == UM_STRATEGY_PREFETCH_ON_USE && d->starved)
		return 0;
	if (strategy == UM_STRATEGY_PREFETCH_ON_USE) {
		err = um_on_use_init(&adv->on_use, d->gpu, d->larger ? d->budget / UM_BLOCK_BYTES : UINT64_MAX,
				     um_context_issue_hint, adv);
		um_on_use_limit_host(&adv->on_use, d->on_host);
		return err;
	}
	if (strategy != UM_STRATEGY_LOOKAHEAD || !adv->replan.executor || d->larger)
		return 0;
	um_on_use_init(&adv->on_use, d->gpu, UINT64_MAX, um_context_issue_hint, adv);
	err = um_on_use_skip_resident(&adv->on_use, d->budget / UM_BLOCK_BYTES);
	return err ? err : open_horizon(adv);
}

int um_context_open_hints(struct umadv *adv)
{
	struct um_executor_host host = {.may_discard = may_discard,
					.residency = residency,
					.supplied_away = supplied_away,
					.live_peak = live_peak,
					.users = users,
					.clip = clip,
					.allocation = allocation,
					.user = adv,
					.streams = &adv->tensors.pool.streams};
	int err = 0;

	if (!um_gpu_takes_hints(adv->device.gpu) || adv->options.strategy == UM_STRATEGY_ON_DEMAND)
		return 0;
	if (adv->options.strategy != UM_STRATEGY_PREFETCH_ON_USE)
		err = um_replan_open(&adv->replan, &host);
	return err ? err : open_unplanned(adv);
}

int um_context_change_budget(struct umadv *adv)
{
	const struct um_chosen_device *d = &adv->device;
	int err = 0;

	adv->op.plain = 0;
	if (adv->replan.executor) {
		err = um_executor_set_budget(adv->replan.executor, d->starved ? 0 : d->budget / UM_BLOCK_BYTES,
					     d->larger);
		if (err)
			return err;
		um_replan_restart(&adv->replan);
		um_context_forget_uses(adv);
	}
	um_horizon_fini(&adv->horizon);
	um_predictor_fini(&adv->predictor);
	um_on_use_fini(&adv->on_use);
	adv->op.beside_plan = 0;
	if (!open_unplanned(adv)) {
		adv->horizon.partial = 1; /* it does not know what is resident */
		return 0;
	}
	um_horizon_fini(&adv->horizon);
	um_predictor_fini(&adv->predictor);
	um_on_use_fini(&adv->on_use);
	adv->notices.errors++;
	return 0;
}
