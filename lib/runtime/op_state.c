/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/op_state.h"

#include "runtime/mistakes.h"
#include "runtime/owners.h"

#include <errno.h>

void um_op_state_fini(struct um_op_state *o)
{
	um_vec_fini(&o->resolved);
	um_vec_fini(&o->known.given);
	um_vec_fini(&o->known.found);
	um_vec_fini(&o->known.keys);
	um_vec_fini(&o->known.held);
	um_vec_fini(&o->outs);
	um_vec_fini(&o->touches);
}

void um_op_state_remember(struct um_op_state *o, const struct um_schedule *s, uint32_t op,
			  const struct umadv_op_info *info)
{
	const struct um_sched_op *so = &s->ops.at[op];

	if (o->joint || info->n_uses != so->n_uses || um_vec_fill(&o->known.held, s->ops.n) ||
	    um_vec_fill(&o->known.given, s->uses.n) || um_vec_fill(&o->known.found, s->uses.n))
		return;
	for (uint32_t i = 0; i < so->n_uses; i++) {
		o->known.given.at[so->first_use + i] = info->uses[i];
		o->known.found.at[so->first_use + i] = o->uses[i];
	}
	if (o->key && !um_vec_fill(&o->known.keys, s->ops.n))
		o->known.keys.at[op] = o->key;
}

void um_op_state_forget(struct um_op_state *o)
{
	um_vec_clear(&o->known.given);
	um_vec_clear(&o->known.found);
	um_vec_clear(&o->known.keys);
	um_vec_clear(&o->known.held);
}

static int add_use(struct um_op_state *o, const struct um_tensors *tensors, const struct umadv_use *given,
		   struct um_notices *notices)
{
	const struct um_registry *r = &tensors->registry;
	uint64_t addr = (uint64_t)(uintptr_t)given->ptr;
	struct um_tensor *t;
	int device;

	if (given->reserved || given->reserved_more) {
		um_mistake_reserved(notices, o->name);
		return -EINVAL;
	}
	t = um_registry_find(r, addr);
	while (t && given->bytes > t->bytes - (addr - t->addr) && t->parent)
		t = t->parent;
	if (!t && um_owners_other(addr, tensors->pool.gpu, &device)) {
		um_mistake_other(notices, o->name, given->ptr, device);
		return -EINVAL;
	}
	if (!t) {
		o->n_unknown++;
		um_mistake_pointer(notices, o->name, r, given->ptr);
		return 0;
	}
	if (t->flags & UM_TENSOR_WORKSPACE)
		return 0; /* the use of it is added by the library */
	o->joint |= (t->flags & UM_TENSOR_JOINT) != 0;
	struct um_use u = {.id = t->id, .tensor = t, .off = addr - t->addr, .access = given->access & UM_UPDATE};

	u.bytes = given->bytes ? given->bytes : t->bytes - u.off;
	u.touched = given->touched && given->touched < u.bytes ? given->touched : u.bytes;
	if (!u.access)
		um_mistake_access(notices, o->name, t, given->access);
	else if (u.bytes > t->bytes - u.off)
		um_mistake_range(notices, o->name, t, u.off, u.bytes);
	if (!u.access || u.bytes > t->bytes - u.off)
		return -EINVAL;
	for (size_t k = 0; k < o->resolved.n; k++) {
		struct um_use *old = &o->resolved.at[k];

		if (old->id.v == u.id.v && old->off == u.off && old->bytes == u.bytes) {
			old->access |= u.access;
			return 0;
		}
	}
	return um_vec_push(&o->resolved, u);
}

int um_op_state_resolve(struct um_op_state *o, const struct um_tensors *tensors, const struct umadv_op_info *info,
			struct um_notices *notices)
{
	int err = 0;

	o->joint = 0;
	um_vec_clear(&o->resolved);
	for (size_t i = 0; i < info->n_uses && !err; i++)
		err = add_use(o, tensors, &info->uses[i], notices);
	o->uses = o->resolved.at;
	o->n_uses = (uint32_t)o->resolved.n;
	return err;
}

static int is_out(const struct um_op_state *o, struct um_tensor_id id)
{
	for (size_t i = 0; i < o->outs.n; i++)
		if (o->outs.at[i].v == id.v)
			return 1;
	return 0;
}

int um_op_state_resolve_outs(struct um_op_state *o, const struct um_registry *r, const struct umadv_op_info *info)
{
	um_vec_clear(&o->outs);
	for (uint32_t i = 0; !info->relaunch_outs && i < o->n_uses; i++)
		if (o->uses[i].access & UM_WRITE && !is_out(o, o->uses[i].id) && um_vec_push(&o->outs, o->uses[i].id))
			return -ENOMEM;
	for (size_t i = 0; i < info->n_relaunch_outs; i++) {
		struct um_tensor *t = um_registry_find(r, (uint64_t)(uintptr_t)info->relaunch_outs[i]);

		if (t && um_vec_push(&o->outs, t->id))
			return -ENOMEM;
	}
	return 0;
}

int um_op_state_add_workspace(struct um_op_state *o)
{
	struct um_tensor *t = o->workspace;

	if (!t)
		return 0;
	if (um_vec_push(&o->resolved, ((struct um_use){t->id, t, 0, t->bytes, t->bytes, UM_WRITE})))
		return -ENOMEM;
	o->uses = o->resolved.at;
	o->n_uses = (uint32_t)o->resolved.n;
	return 0;
}

int um_op_state_captured(struct um_op_state *o, const struct um_chosen_device *d, um_stream stream, int code,
			 int status, struct um_notices *notices)
{
	if (code && code != UM_CUDA_CAPTURING && code != UM_CUDA_CAPTURE_IMPLICIT) {
		um_mistake_stream(notices, o->name, d, stream, code);
		return 0;
	}
	if (!code && !status)
		return 0;
	o->n_captured++;
	um_notices_warn(notices, UM_WARN_CAPTURE,
			"op '%s' is announced on a stream that is being captured: such ops are ignored. "
			"Announce the launch of the graph",
			o->name);
	return 1;
}

void um_op_state_announce(struct um_op_state *o, const struct um_chosen_device *d, um_stream stream,
			  const struct um_cost *cost, struct um_notices *notices)
{
	double touched = um_uses_touched(o->uses, o->n_uses);
	struct um_announcement next = {.ns = um_profile_op_ns(&d->profile, cost, touched)};

	um_vec_clear(&o->touches);
	if (um_vec_reserve(&o->touches, (size_t)o->n_uses + 1)) {
		notices->errors++;
		return;
	}
	for (uint32_t i = 0; i < o->n_uses; i++) {
		const struct um_use *u = &o->uses[i];

		o->touches.at[o->touches.n++] = (struct um_touch){.ptr = (void *)(uintptr_t)(u->tensor->addr + u->off),
								  .bytes = u->bytes,
								  .touched = u->touched,
								  .access = u->access};
	}
	next.touch = o->touches.at;
	next.n = (uint32_t)o->touches.n;
	int code = d->gpu->api->announce(d->gpu, stream, &next);

	if (code == UM_CUDA_NO_MEMORY)
		notices->errors++;
	else if (code)
		um_mistake_stream(notices, o->name, d, stream, code);
}

struct um_op um_op_state_op(const struct um_op_state *o, int32_t stream, const struct umadv_op_info *info)
{
	return (struct um_op){
		.name = o->name,
		.uses = o->uses,
		.n_uses = o->n_uses,
		.cost = {info->flops, info->bytes, info->ns},
		.stream = stream,
		.phase = info->phase,
		.collective = info->collective != 0,
		.relaunch = o->outs.at,
		.n_relaunch = info->relaunch ? (uint32_t)o->outs.n : 0,
		.relaunchable = info->relaunch != NULL,
		.ws = o->ws,
		.n_ws = o->n_ws,
	};
}
