/* SPDX-License-Identifier: Apache-2.0
 *
 * context_share.c - changes the budget of a context as other contexts on the device come and go
 *
 * A smaller budget is kept at once. The room is given up when the memory has been evicted, after the ops that were
 * launched before. The program does not wait for that: the ends of the next iterations ask.
 */
#include "runtime/context.h"

#include <errno.h>
#include <stdlib.h>

struct um_executor_ranges {
	struct um_executor_range *at;
	size_t n, cap;
};

/* Memory that the program allocated itself. 0 or -ENOMEM. */
static int add_adopted(const struct um_registry *registry, struct um_executor_ranges *to)
{
	int err = 0;

	for (struct um_tree_node *n = um_tree_first(&registry->live); n && !err; n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);
		uint64_t first = um_block_of(t->addr);

		if (!t->parent && t->flags & UM_TENSOR_ADOPTED && !(t->flags & UM_TENSOR_UNMANAGED))
			err = um_vec_push(to, ((struct um_executor_range){first, t->addr + t->bytes - first}));
	}
	return err;
}

/* Managed memory that may be resident. 0 or -ENOMEM. */
static int find_memory(const struct um_tensors *t, struct um_executor_ranges *to)
{
	struct um_executor_range *used;
	size_t n = um_tensors_used(t, 0, &used);
	int err = used ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++)
		err = um_vec_push(to, used[i]);
	free(used);
	return err ? err : add_adopted(&t->registry, to);
}

static uint64_t sum_of(const struct um_executor_ranges *r)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->n; i++)
		bytes += r->at[i].bytes;
	return bytes;
}

/* Without an executor: on the stream of the latest op, as prefetch-on-use evicts. 0, or a CUDA error code. */
static int evict_on_stream(struct umadv *adv, const struct um_executor_range *r, size_t n)
{
	const struct um_gpu_api *api = adv->device.gpu->api;
	struct um_gpu *gpu = adv->device.gpu;
	int code = 0;

	for (size_t i = 0; i < n; i++)
		um_context_issue_hint(adv, UM_ACTION_EVICT, r[i].addr, r[i].bytes, adv->op.stream);
	if (!adv->sharing.evicted)
		code = api->cudaEventCreateWithFlags(gpu, &adv->sharing.evicted, UM_EVENT_DISABLE_TIMING);
	return code ? code : api->cudaEventRecord(gpu, adv->sharing.evicted, adv->op.stream);
}

/* Evicts all memory of the context if more of it may be resident than the budget. 1: that has begun, or is to be tried
 * again; 0: nothing to evict. */
static int evict(struct umadv *adv)
{
	struct um_sharing *s = &adv->sharing;
	struct um_executor *ex = adv->replan.executor;
	struct um_executor_ranges r = {0};
	int err = find_memory(&adv->tensors, &r), evicts = 1;

	if (!err)
		evicts = adv->device.starved ? r.n != 0 : sum_of(&r) > adv->device.budget;
	if (!err && evicts)
		err = ex ? um_executor_evict_all(ex, r.at, r.n, &s->room) : evict_on_stream(adv, r.at, r.n);
	s->failed = err != 0;
	if (ex)
		s->epoch = um_executor_epoch(ex);
	um_vec_fini(&r);
	return evicts;
}

/* Have the evictions ended? Those that failed are made again. So are those that were dropped, unless a plan has begun:
 * then it has evicted all that it does not use. */
static int has_evicted(struct umadv *adv)
{
	struct um_sharing *s = &adv->sharing;
	struct um_executor *ex = adv->replan.executor;
	struct um_executor_room done;

	if (s->failed || (ex && um_executor_epoch(ex) != s->epoch && !um_executor_active(ex)))
		return !evict(adv);
	if (!ex)
		return !s->evicted || adv->device.gpu->api->cudaEventQuery(adv->device.gpu, s->evicted) == UM_CUDA_OK;
	done = um_executor_room_done(ex);
	return (int32_t)(done.outs - s->room.outs) >= 0 && (int32_t)(done.drops - s->room.drops) >= 0;
}

/* Gives up the room above the budget, as soon as that is empty. */
static void give_up_room(struct umadv *adv)
{
	struct um_sharing *s = &adv->sharing;

	if (s->evicts && has_evicted(adv))
		s->evicts = 0;
	if (!s->evicts && s->arbiter.held > s->in_use)
		um_arbiter_confirm(&s->arbiter, s->in_use);
}

/* Sets the budget. If hints cannot change now, the budget changes at a later iteration. */
static void change(struct umadv *adv, uint64_t blocks)
{
	struct um_sharing *s = &adv->sharing;
	struct um_chosen_device *d = &adv->device;
	uint64_t in_use = s->in_use;
	int larger = d->larger, starved = d->starved, shrinks;

	um_sharing_use(s, d, blocks);
	if (d->budget == s->hinted && d->larger == larger && d->starved == starved)
		return;
	if (um_context_change_budget(adv)) {
		um_sharing_use(s, d, in_use);
		s->arbiter.seen--; /* asks again */
		return;
	}
	shrinks = d->budget < s->hinted || blocks < in_use;
	s->hinted = d->budget;
	if (shrinks)
		s->evicts = evict(adv);
	um_notices_log(&adv->notices, UMADV_LOG_INFO, "budget %llu MiB: %u other contexts use the device",
		       (unsigned long long)(d->starved ? 0 : d->budget >> 20), s->arbiter.others);
}

/* Has unmanaged memory come or gone, so that the context's part of the device leaves hints another budget? */
static int has_other_memory(const struct umadv *adv)
{
	return adv->device.granted != UINT64_MAX && adv->device.budget != adv->sharing.hinted;
}

void um_context_share(struct umadv *adv)
{
	struct um_sharing *s = &adv->sharing;
	int known = s->passive || adv->iterations.n > 1;
	uint64_t live = known ? adv->tensors.bytes_live_peak : 0, blocks;

	um_assert_locked(adv);
	if (s->passive && !live)
		live = 1;
	give_up_room(adv);
	blocks = s->in_use;
	if (!um_sharing_look(s, &adv->device, live, &blocks) && !has_other_memory(adv))
		return;
	change(adv, blocks);
	give_up_room(adv);
}
