/* SPDX-License-Identifier: Apache-2.0
 *
 * One stream has no room for what goes on beside it. So an all-reduce is an op without duration where its bucket is
 * sent, which uses the gradients, and the wait is an op of its own; their times come from a second clock, with all data
 * resident. Where ops wait for data the ring is done earlier than that.
 */
#include "play/shard.h"

#include "base/vec.h"
#include "play/play_op.h"

#define NONE SIZE_MAX

enum share { UNDECIDED, DIVIDED, REPLICATED };

struct tensor {
	uint64_t bytes; /* of the whole batch */
	enum share share;
	int is_gradient;
	/* Events of this iteration: */
	size_t ready; /* the last op with the batch that writes it */
	size_t need; /* the first op that reads it after that */
	size_t bucket;
};

struct gradient {
	struct um_tensor_id id;
	size_t ready; /* likewise */
};

struct bucket {
	size_t first, n; /* in `gradients` */
	size_t at; /* the op after which it is sent */
	size_t need; /* the first op that needs one of its gradients */
	uint64_t bytes, end_ns;
};

struct shard {
	const struct um_trace *from;
	const struct um_shard_options *o;
	struct um_sink *to;
	struct um_shard_figures *figures;
	UM_VEC(struct tensor) tensors; /* by id */
	/* Of this iteration: */
	UM_VEC(struct gradient) gradients; /* by `ready` */
	UM_VEC(struct bucket) buckets;
	size_t sent; /* buckets */
	uint64_t now_ns, ring_ns; /* clocks: of the ops, of the ring */
	/* Of this op: */
	UM_VEC(struct um_use) uses;
	UM_VEC(struct um_workspace) ws;
};

static struct tensor *tensor_of(const struct shard *s, struct um_tensor_id id)
{
	return &s->tensors.at[id.v];
}

/* --- what is divided ---------------------------------------------------------------------------------------------- */

static int uses_batch(const struct shard *s, const struct um_op *op)
{
	for (uint32_t i = 0; i < op->n_uses; i++)
		if (tensor_of(s, op->uses[i].id)->share == DIVIDED)
			return 1;
	return 0;
}

static enum share share_of(enum um_role role, int is_set_up)
{
	if (role == UM_ROLE_INPUT || role == UM_ROLE_ACT)
		return DIVIDED;
	if (role == UM_ROLE_PARAM || role == UM_ROLE_GRAD || role == UM_ROLE_OPTIM || role == UM_ROLE_COMM)
		return REPLICATED;
	return is_set_up ? REPLICATED : UNDECIDED;
}

static int meet(struct shard *s, const struct um_event *e, int is_set_up)
{
	struct tensor *t;

	if (e->alloc.id.v >= SIZE_MAX / sizeof *t || um_vec_fill(&s->tensors, (size_t)e->alloc.id.v + 1))
		return -ENOMEM;
	t = tensor_of(s, e->alloc.id);
	t->bytes = e->alloc.bytes;
	t->share = share_of(e->alloc.role, is_set_up);
	t->is_gradient = e->alloc.role == UM_ROLE_GRAD;
	t->ready = t->need = t->bucket = NONE;
	return 0;
}

static void decide(struct shard *s, const struct um_op *op)
{
	enum share share = uses_batch(s, op) ? DIVIDED : REPLICATED;

	for (uint32_t i = 0; i < op->n_uses; i++) {
		struct tensor *t = tensor_of(s, op->uses[i].id);

		t->share = t->share == UNDECIDED ? share : t->share;
	}
}

/* 0, -EINVAL: nothing is divided, or -ENOMEM. */
static int classify(struct shard *s)
{
	int is_set_up = 1, is_divided = 0;

	for (size_t i = 0; i < um_trace_length(s->from); i++) {
		const struct um_event *e = um_trace_event(s->from, i);

		is_set_up = is_set_up && e->kind != UM_EV_ITER;
		if (e->kind == UM_EV_ALLOC && meet(s, e, is_set_up))
			return -ENOMEM;
		if (e->kind != UM_EV_OP)
			continue;
		decide(s, &e->op);
		is_divided = is_divided || uses_batch(s, &e->op);
	}
	return is_divided ? 0 : -EINVAL;
}

/* --- the gradients of an iteration -------------------------------------------------------------------------------- */

static int note_use(struct shard *s, const struct um_use *u, size_t at, int is_batch)
{
	struct tensor *t = tensor_of(s, u->id);

	if (!t->is_gradient)
		return 0;
	if (is_batch && u->access & UM_WRITE) {
		int is_new = t->ready == NONE;

		t->ready = at;
		t->need = NONE;
		return is_new ? um_vec_push(&s->gradients, ((struct gradient){u->id, 0})) : 0;
	}
	if (u->access & UM_READ && t->ready != NONE && t->need == NONE)
		t->need = at;
	return 0;
}

static int by_ready(const void *a, const void *b)
{
	const struct gradient *x = a, *y = b;

	if (x->ready != y->ready)
		return x->ready < y->ready ? -1 : 1;
	return (x->id.v > y->id.v) - (x->id.v < y->id.v);
}

/* Leaves the gradients that are needed, in the order in which they are ready. */
static void sort_gradients(struct shard *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->gradients.n; i++) {
		struct um_tensor_id id = s->gradients.at[i].id;
		struct tensor *t = tensor_of(s, id);

		if (t->need != NONE)
			s->gradients.at[n++] = (struct gradient){id, t->ready};
		else
			t->ready = NONE;
	}
	s->gradients.n = n;
	if (n)
		qsort(s->gradients.at, n, sizeof *s->gradients.at, by_ready);
}

static int add_to_bucket(struct shard *s, size_t i)
{
	struct tensor *t = tensor_of(s, s->gradients.at[i].id);
	struct bucket *b = s->buckets.n ? &s->buckets.at[s->buckets.n - 1] : NULL;

	if (!b || b->bytes >= UM_SHARD_BUCKET || t->ready > b->need) {
		if (um_vec_push(&s->buckets, ((struct bucket){.first = i, .need = NONE})))
			return -ENOMEM;
		b = &s->buckets.at[s->buckets.n - 1];
	}
	b->n++;
	b->bytes += t->bytes;
	b->at = t->ready;
	b->need = t->need < b->need ? t->need : b->need;
	t->bucket = s->buckets.n - 1;
	return 0;
}

/* Of the events [from, to). */
static int find_buckets(struct shard *s, size_t from, size_t to)
{
	um_vec_clear(&s->gradients);
	um_vec_clear(&s->buckets);
	s->sent = 0;
	s->now_ns = s->ring_ns = 0;
	for (size_t i = from; i < to && s->o->ranks > 1; i++) {
		const struct um_event *e = um_trace_event(s->from, i);
		int is_batch = e->kind == UM_EV_OP && uses_batch(s, &e->op);

		for (uint32_t k = 0; e->kind == UM_EV_OP && k < e->op.n_uses; k++)
			if (note_use(s, &e->op.uses[k], i, is_batch))
				return -ENOMEM;
	}
	sort_gradients(s);
	for (size_t i = 0; i < s->gradients.n; i++)
		if (add_to_bucket(s, i))
			return -ENOMEM;
	if (s->buckets.n)
		*s->figures = (struct um_shard_figures){.buckets = (unsigned)s->buckets.n};
	return 0;
}

/* The next iteration may use the same tensors. */
static void forget_buckets(struct shard *s)
{
	for (size_t i = 0; i < s->gradients.n; i++) {
		struct tensor *t = tensor_of(s, s->gradients.at[i].id);

		t->ready = t->need = t->bucket = NONE;
	}
}

/* --- a rank's ops ------------------------------------------------------------------------------------------------- */

static uint64_t divide(const struct shard *s, uint64_t bytes)
{
	return bytes / s->o->ranks + (bytes % s->o->ranks != 0);
}

static struct um_use share_of_use(const struct shard *s, const struct um_use *u)
{
	const struct tensor *t = tensor_of(s, u->id);
	struct um_use share = *u;
	uint64_t end;

	if (t->share == DIVIDED) {
		end = divide(s, u->off + u->bytes);
		share.off = u->off / s->o->ranks;
		share.bytes = end - share.off;
	}
	/* Look-ups in a table are those of the rank's part of the batch. */
	if (t->share == DIVIDED || u->touched < u->bytes)
		share.touched = u->touched < u->bytes ? divide(s, u->touched) : share.bytes;
	return share;
}

/* Ratio of an op's time to that with the whole batch. */
static double time_ratio(const struct shard *s, const struct um_op *op, double touched)
{
	const struct um_profile *p = s->o->profile;
	double n = s->o->ranks, whole = um_uses_touched(op->uses, op->n_uses), moved = whole > 0 ? touched / whole : 1;
	struct um_cost all = {op->cost.flops, op->cost.bytes, 0}, part = {all.flops / n, all.bytes * moved, 0};

	if (all.flops <= 0 && all.bytes <= 0)
		return moved;
	return (double)um_profile_op_ns(p, &part, touched) / (double)um_profile_op_ns(p, &all, whole);
}

static uint64_t scale_ns(uint64_t ns, double ratio)
{
	uint64_t scaled = (uint64_t)((double)ns * ratio + 0.5);

	return ns && !scaled ? 1 : scaled;
}

/* An op with the batch becomes the rank's share; its lists are valid until the next one. */
static int share_op(struct shard *s, struct um_op *op)
{
	double touched, ratio, whole = um_uses_touched(op->uses, op->n_uses);

	um_vec_clear(&s->uses);
	um_vec_clear(&s->ws);
	for (uint32_t i = 0; i < op->n_uses; i++)
		if (um_vec_push(&s->uses, share_of_use(s, &op->uses[i])))
			return -ENOMEM;
	touched = um_uses_touched(s->uses.at, op->n_uses);
	ratio = time_ratio(s, op, touched);
	for (uint32_t i = 0; i < op->n_ws; i++)
		if (um_vec_push(&s->ws,
				((struct um_workspace){divide(s, op->ws[i].bytes), scale_ns(op->ws[i].ns, ratio)})))
			return -ENOMEM;
	op->uses = s->uses.at;
	op->ws = op->n_ws ? s->ws.at : NULL;
	op->cost.flops /= s->o->ranks;
	op->cost.bytes *= whole > 0 ? touched / whole : 1;
	op->cost.ns = scale_ns(op->cost.ns, ratio);
	return 0;
}

static int feed_op(struct shard *s, const struct um_op *op)
{
	struct um_event e = {.kind = UM_EV_OP, .op = *op};

	if (op->stream != UM_STREAM_CPU)
		s->now_ns += um_play_op_ns(s->o->profile, op);
	return um_sink_feed(s->to, &e);
}

/* The gradients of a bucket are used; the ring begins when it has sent those before. */
static int send_bucket(struct shard *s, struct bucket *b)
{
	double n = s->o->ranks;
	uint64_t ns = (uint64_t)(2 * (n - 1) / n * (double)b->bytes / s->o->bandwidth * 1e9 + 0.5);
	struct um_op op = {.name = "all-reduce", .cost = {.ns = 1}, .phase = 'b'};

	um_vec_clear(&s->uses);
	for (size_t i = b->first; i < b->first + b->n; i++) {
		struct um_tensor_id id = s->gradients.at[i].id;
		uint64_t bytes = tensor_of(s, id)->bytes;
		struct um_use u = {.id = id, .bytes = bytes, .touched = bytes, .access = UM_UPDATE};

		if (um_vec_push(&s->uses, u))
			return -ENOMEM;
	}
	op.uses = s->uses.at;
	op.n_uses = (uint32_t)s->uses.n;
	s->ring_ns = (s->ring_ns > s->now_ns ? s->ring_ns : s->now_ns) + ns;
	b->end_ns = s->ring_ns;
	s->figures->reduced_bytes += b->bytes;
	s->figures->collective_ns += ns;
	return feed_op(s, &op);
}

/* Waits for the buckets whose gradients the op needs. */
static int wait_for_buckets(struct shard *s, const struct um_op *op)
{
	struct um_op wait = {.name = "wait for all-reduce", .phase = 'b'};
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < op->n_uses; i++) {
		const struct tensor *t = tensor_of(s, op->uses[i].id);

		if (t->bucket != NONE && t->bucket < s->sent && s->buckets.at[t->bucket].end_ns > end_ns)
			end_ns = s->buckets.at[t->bucket].end_ns;
	}
	if (end_ns <= s->now_ns)
		return 0;
	wait.cost.ns = end_ns - s->now_ns;
	s->figures->exposed_ns += wait.cost.ns;
	return feed_op(s, &wait);
}

static int pass_op(struct shard *s, size_t at)
{
	struct um_op op = um_trace_event(s->from, at)->op;
	int err = wait_for_buckets(s, &op);

	if (!err && uses_batch(s, &op))
		err = share_op(s, &op);
	if (!err)
		err = feed_op(s, &op);
	while (!err && s->sent < s->buckets.n && s->buckets.at[s->sent].at == at)
		err = send_bucket(s, &s->buckets.at[s->sent++]);
	return err;
}

static int pass(struct shard *s, size_t at)
{
	struct um_event e = *um_trace_event(s->from, at);

	if (e.kind == UM_EV_OP)
		return pass_op(s, at);
	if (e.kind == UM_EV_ALLOC && tensor_of(s, e.alloc.id)->share == DIVIDED)
		e.alloc.bytes = divide(s, e.alloc.bytes);
	return um_sink_feed(s->to, &e);
}

static int pass_all(void *user, struct um_sink *to)
{
	struct shard *s = user;
	size_t n = um_trace_length(s->from), end;
	int err = 0;

	s->to = to;
	for (size_t i = 0; i < n && !err; i = end) {
		for (end = i + 1; end < n && um_trace_event(s->from, end)->kind != UM_EV_ITER; end++)
			;
		err = find_buckets(s, i, end);
		for (size_t k = i; k < end && !err; k++)
			err = pass(s, k);
		forget_buckets(s);
	}
	return err;
}

int um_shard(const struct um_trace *t, const struct um_shard_options *o, struct um_trace **out,
	     struct um_shard_figures *figures)
{
	struct shard s = {.from = t, .o = o, .figures = figures};
	int err = classify(&s);

	*figures = (struct um_shard_figures){0};
	if (!err)
		err = um_trace_derive(out, t, pass_all, &s);
	um_vec_fini(&s.tensors);
	um_vec_fini(&s.gradients);
	um_vec_fini(&s.buckets);
	um_vec_fini(&s.uses);
	um_vec_fini(&s.ws);
	return err;
}
