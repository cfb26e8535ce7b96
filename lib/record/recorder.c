/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder.c - records the events of an iteration
 *
 * A live tensor remembers its number in the current iteration (seen_at, valid while seen_generation is the recorder's
 * generation), so numbering by first appearance needs no look-up. Memory is reserved before anything is appended: an
 * event is kept as a whole or not at all; after the first that is not, the iteration is incomplete and ops are ignored.
 */
#include "record/recorder.h"

#include "model/tensor.h"

#include <assert.h>

#define NO_USE UINT32_MAX

/* Copies the constant properties of a tensor. 0 or -ENOMEM. */
static int describe(struct um_recorder *r, const struct um_tensor *t, struct um_iter_tensor *to)
{
	const struct um_name *name = t->name ? um_names_find(&r->names, t->name) : NULL;

	if (t->name && !name)
		return -ENOMEM;
	*to = (struct um_iter_tensor){
		.id = t->id,
		.addr = t->addr,
		.bytes = t->bytes,
		.name = name ? name->text : NULL,
		.role = t->role,
		.born_iter = t->born_iter,
		.born_ord = t->born_ord,
	};
	return 0;
}

/* Adds a tensor that appears for the first time. 0, -ENOMEM or -E2BIG. */
static int number_new(struct um_recorder *r, struct um_tensor *t, int32_t birth)
{
	struct um_iteration *it = &r->it;
	struct um_iter_tensor *to;
	size_t n_nests = 0;

	if (it->tensors.n >= r->caps.tensors)
		return -E2BIG;
	for (const struct um_tensor *outer = t->parent; outer; outer = outer->parent)
		n_nests++;
	if (um_vec_reserve(&it->tensors, 1) || um_vec_reserve(&r->last_use, 1) || um_vec_reserve(&it->nests, n_nests))
		return -ENOMEM;
	to = &it->tensors.at[it->tensors.n];
	if ((it->tensors.n >= r->old_tensors || to->id.v != t->id.v) && describe(r, t, to))
		return -ENOMEM;
	to->flags = t->flags;
	to->birth = birth;
	to->death = UM_NOWHERE;
	t->seen_generation = r->generation;
	t->seen_at = (uint32_t)it->tensors.n;
	for (const struct um_tensor *outer = t->parent; outer; outer = outer->parent)
		it->nests.at[it->nests.n++] = (struct um_iter_nest){t->seen_at, outer->id, t->addr - outer->addr};
	r->last_use.at[r->last_use.n++] = NO_USE;
	it->tensors.n++;
	return 0;
}

static int seen(const struct um_recorder *r, const struct um_tensor *t)
{
	return t->seen_generation == r->generation;
}

/* Only births are counted. */
static int idle(const struct um_recorder *r)
{
	return (r->it.n == 0 && !r->setup) || r->it.incomplete;
}

static int32_t position(const struct um_recorder *r)
{
	return (int32_t)r->it.ops.n;
}

static int feed_alloc(struct um_recorder *r, struct um_tensor *t)
{
	struct um_iteration *it = &r->it;

	t->born_iter = it->n;
	t->born_ord = r->n_births++;
	if (idle(r))
		return 0;
	if (t->n_children)
		return -ENOTSUP; /* its parts were numbered without it */
	int rc = um_vec_reserve(&it->births, 1);

	if (!rc)
		rc = number_new(r, t, position(r));
	if (rc)
		return rc;
	it->births.at[it->births.n++] = t->seen_at;
	it->signature = um_signature_birth(it->signature, t->bytes);
	return 0;
}

static int feed_free(struct um_recorder *r, const struct um_tensor *t)
{
	struct um_iteration *it = &r->it;

	if (idle(r))
		return 0;
	if (seen(r, t)) {
		it->tensors.at[t->seen_at].death = position(r);
		it->tensors.at[t->seen_at].flags = t->flags;
	}
	if (t->born_iter == 0 || t->born_iter + 1 != it->n) { /* the order of births in set-up is not used */
		if (seen(r, t) || t->parent || t->n_children || t->bytes < UM_BLOCK_BYTES)
			return 0;
		return um_vec_push(&it->idle_frees, ((struct um_iter_idle){t->id, t->bytes, position(r)}));
	}
	return um_vec_push(&it->late_frees, ((struct um_iter_free){t->born_ord, t->bytes, position(r)}));
}

static void feed_dead(struct um_recorder *r, const struct um_tensor *t)
{
	uint32_t use;

	if (idle(r) || !seen(r, t))
		return;
	use = r->last_use.at[t->seen_at];
	if (use != NO_USE)
		r->it.uses.at[use].dead_after = 1;
}

/* Number of the tensor with this id among the uses of an op; UINT32_MAX if the op does not use it. */
static uint32_t find_used(const struct um_op *op, struct um_tensor_id id)
{
	for (uint32_t i = 0; i < op->n_uses; i++)
		if (op->uses[i].id.v == id.v)
			return op->uses[i].tensor->seen_at;
	return UINT32_MAX;
}

/* Appends the uses of an op, for which there is room; returns the op's hash. 0 in `*rc`, or -ENOMEM. */
static uint64_t add_uses(struct um_recorder *r, const struct um_op *op, uint64_t hash, int *rc)
{
	struct um_iteration *it = &r->it;

	for (uint32_t i = 0; i < op->n_uses; i++) {
		const struct um_use *u = &op->uses[i];
		struct um_tensor *t = u->tensor;

		assert(t && u->bytes > 0 && u->off <= t->bytes && u->bytes <= t->bytes - u->off);
		if (!seen(r, t)) {
			*rc = number_new(r, t, UM_NOWHERE);
			if (*rc)
				return 0;
		}
		it->tensors.at[t->seen_at].flags = t->flags; /* may have been declared after the birth */
		r->last_use.at[t->seen_at] = (uint32_t)it->uses.n;
		it->uses.at[it->uses.n++] = (struct um_iter_use){
			.tensor = t->seen_at,
			.access = u->access,
			.off = u->off,
			.bytes = u->bytes,
			.touched = u->touched,
		};
		hash = um_op_hash_use(hash, t->seen_at, t->bytes, u);
	}
	*rc = 0;
	return hash;
}

static int feed_op(struct um_recorder *r, const struct um_op *op)
{
	struct um_iteration *it = &r->it;
	const struct um_name *name;
	struct um_iter_op *kept;
	uint64_t hash;
	int rc;

	if (idle(r))
		return 0;
	if (it->ops.n >= r->caps.ops || it->uses.n + op->n_uses > r->caps.uses)
		return -E2BIG;
	if (um_vec_reserve(&it->ops, 1) || um_vec_reserve(&it->uses, op->n_uses) ||
	    um_vec_reserve(&it->relaunch, op->n_relaunch) || um_vec_reserve(&it->ws, op->n_ws))
		return -ENOMEM;
	name = um_names_find(&r->names, op->name);
	if (!name)
		return -ENOMEM;
	kept = &it->ops.at[it->ops.n]; /* counted only when it is complete */
	*kept = (struct um_iter_op){
		.name = name->text,
		.first_use = (uint32_t)it->uses.n,
		.n_uses = op->n_uses,
		.cost = op->cost,
		.stream = op->stream,
		.phase = op->phase,
		.collective = um_op_is_collective(op) != 0,
		.relaunchable = op->relaunchable != 0,
		.first_relaunch = (uint32_t)it->relaunch.n,
		.first_ws = (uint32_t)it->ws.n,
		.n_ws = op->n_ws,
	};
	hash = add_uses(r, op, um_op_hash(name->hash, op->stream), &rc);
	if (rc)
		return rc;
	kept->hash = um_op_hash_end(um_op_hash_ws(hash, op->ws, op->n_ws), op->n_uses);
	for (uint32_t i = 0; i < op->n_ws; i++)
		it->ws.at[it->ws.n++] = op->ws[i];
	for (uint32_t i = 0; i < op->n_relaunch; i++) {
		uint32_t number = find_used(op, op->relaunch[i]);

		if (number != UINT32_MAX)
			it->relaunch.at[it->relaunch.n++] = number;
	}
	kept->n_relaunch = (uint32_t)it->relaunch.n - kept->first_relaunch;
	it->ops.n++;
	it->signature = um_signature_op(it->signature, kept->hash);
	return 0;
}

/* Are the uses of the next op in memory from the previous iteration? 0: not all of them. */
static int are_in_place(struct um_recorder *r, const struct um_use *uses, uint32_t n)
{
	struct um_iteration *it = &r->it;
	uint32_t first = (uint32_t)it->uses.n;

	for (uint32_t i = 0; i < n; i++) {
		struct um_tensor *t = uses[i].tensor;
		struct um_iter_use *use = &it->uses.at[first + i];

		if ((!seen(r, t) && number_new(r, t, UM_NOWHERE)) || t->seen_at != use->tensor)
			return 0;
		use->touched = uses[i].touched;
		use->dead_after = 0;
		it->tensors.at[t->seen_at].flags = t->flags;
		r->last_use.at[t->seen_at] = first + i;
	}
	return 1;
}

/* 0 or -ENOMEM. */
static int settle_op(struct um_recorder *r, const struct um_use *uses)
{
	struct um_iteration *it = &r->it;
	struct um_iter_op *kept = &it->ops.at[it->ops.n];

	if (!are_in_place(r, uses, kept->n_uses))
		return feed_op(r, &(struct um_op){
					  .name = kept->name,
					  .uses = uses,
					  .n_uses = kept->n_uses,
					  .cost = kept->cost,
					  .stream = kept->stream,
					  .phase = kept->phase,
					  .collective = kept->collective,
					  .relaunchable = kept->relaunchable,
				  });
	kept->first_relaunch = (uint32_t)it->relaunch.n;
	it->uses.n += kept->n_uses;
	it->ops.n++;
	it->signature = um_signature_op(it->signature, kept->hash);
	return 0;
}

/* Discards the record of the iteration. */
static void mark_incomplete(struct um_recorder *r, int rc)
{
	uint64_t n = r->it.n;

	if (rc == -E2BIG) {
		r->too_long = 1;
		um_iteration_fini(&r->it);
		um_vec_fini(&r->last_use);
		r->generation++; /* invalidates all numbers */
		r->old_ops = r->old_tensors = 0;
		r->it.n = n;
	}
	r->it.incomplete = 1; /* the program continues after a failure of the library */
}

void um_recorder_flush(struct um_recorder *r)
{
	const struct um_use *uses = r->repeated;
	uint32_t n = r->n_repeated;

	r->n_repeated = r->n_repeated_uses = 0;
	for (; n && !r->it.incomplete; n--) {
		uint32_t n_uses = r->it.ops.at[r->it.ops.n].n_uses;

		int rc = settle_op(r, uses);

		if (rc)
			mark_incomplete(r, rc);
		uses += n_uses;
	}
}

/* Empties the current iteration and sets its number. */
static void start(struct um_recorder *r, uint64_t n)
{
	if (r->it.ops.n || r->it.incomplete)
		r->old_ops = r->it.incomplete ? 0 : r->it.ops.n;
	if (r->it.tensors.n)
		r->old_tensors = r->it.tensors.n;
	r->generation++;
	um_iteration_clear(&r->it);
	um_vec_clear(&r->last_use);
	r->n_births = 0;
	r->too_long = 0;
	r->it.n = n;
}

void um_recorder_restart(struct um_recorder *r)
{
	uint32_t births = r->n_births;

	um_recorder_flush(r);
	start(r, r->it.n);
	r->n_births = births;
}

static int feed(struct um_sink *sink, const struct um_event *event)
{
	struct um_recorder *r = (struct um_recorder *)sink;
	int rc = 0;

	if (r->n_repeated)
		um_recorder_flush(r);
	switch (event->kind) {
	case UM_EV_ALLOC:
		rc = feed_alloc(r, event->alloc.tensor);
		break;
	case UM_EV_FREE:
		rc = feed_free(r, event->free.tensor);
		break;
	case UM_EV_OP:
		rc = feed_op(r, &event->op);
		break;
	case UM_EV_DEAD:
		feed_dead(r, event->free.tensor);
		break;
	case UM_EV_ITER:
		start(r, r->it.n + 1);
		break;
	}
	if (rc)
		mark_incomplete(r, rc);
	return 0;
}

int um_recorder_init(struct um_recorder *r)
{
	memset(r, 0, sizeof *r);
	r->sink.feed = feed;
	r->caps = (struct um_record_caps){UM_RECORD_OPS, UM_RECORD_USES, UM_RECORD_TENSORS};
	um_names_init(&r->names);
	um_iteration_init(&r->it);
	return 0;
}

void um_recorder_fini(struct um_recorder *r)
{
	um_iteration_fini(&r->it);
	um_vec_fini(&r->last_use);
	um_names_fini(&r->names);
}

void um_recorder_take(struct um_recorder *r, struct um_iteration *out)
{
	struct um_iteration done;

	um_recorder_flush(r);
	done = r->it;
	r->it = *out;
	r->old_ops = r->old_tensors = 0;
	*out = done;
	start(r, done.n);
}
