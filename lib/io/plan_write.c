/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_write.c - writes a umplan file
 *
 * Defaults of the reader are not written: no carry of slots that stay, no order that is r, then w. Reading gives the
 * same plan, except `bound`, which names tensors of this process, and the base of the places.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/plan_file.h"
#include "io/plan_line.h"
#include "io/uses_write.h"

struct writer {
	struct um_out *out;
	const struct um_plan *plan;
	uint64_t base; /* places are written relative to it: a file holds offsets, no addresses */
	UM_VEC(struct um_use) uses; /* of one op, in the form of events */
};

/* The block of the lowest place, so that slots that share blocks in the plan share them in the file. */
static uint64_t lowest_block(const struct um_plan *p)
{
	uint64_t lowest = UINT64_MAX;

	for (size_t i = 0; i < p->sched.slots.n; i++)
		if (p->sched.slots.at[i].place < lowest)
			lowest = p->sched.slots.at[i].place;
	return lowest == UINT64_MAX ? 0 : lowest / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
}

static void key_u64(struct um_out *o, const char *key, uint64_t value)
{
	um_out_str(o, key);
	um_out_u64(o, value);
}

static void key_i64(struct um_out *o, const char *key, int64_t value)
{
	um_out_str(o, key);
	um_out_i64(o, value);
}

static void key_hex(struct um_out *o, const char *key, uint64_t value)
{
	char buf[24];

	snprintf(buf, sizeof buf, "%016" PRIx64, value);
	um_out_key_str(o, key, buf);
}

static void write_header(struct um_out *o, const struct um_plan *p)
{
	um_out_str(o, "{\"umplan\":1");
	um_out_key_str(o, ",\"source\":", p->source);
	um_out_key_str(o, ",\"workload\":", p->workload);
	key_hex(o, ",\"signature\":", p->sched.signature);
	key_u64(o, ",\"ops\":", p->sched.ops.n);
	key_u64(o, ",\"slots\":", p->sched.slots.n);
	key_u64(o, ",\"budget\":", p->budget);
	if (p->host_budget)
		key_u64(o, ",\"host_budget\":", p->host_budget);
	um_out_key_str(o, ",\"profile\":", p->profile);
	key_u64(o, ",\"h2d\":", p->h2d);
	key_u64(o, ",\"d2h\":", p->d2h);
	if (p->remote)
		key_u64(o, ",\"remote\":", p->remote);
	um_out_key_str(o, ",\"strategy\":", p->strategy);
	key_u64(o, ",\"predicted_ns\":", p->predicted_ns);
	if (p->rehearsed_ns)
		key_u64(o, ",\"rehearsed_ns\":", p->rehearsed_ns);
	key_u64(o, ",\"in_core_ns\":", p->in_core_ns);
	if (p->bound_ns)
		key_u64(o, ",\"bound_ns\":", p->bound_ns);
	um_out_str(o, "}\n");
}

static void write_slot(const struct writer *w, const struct um_slot *s, size_t number)
{
	struct um_out *o = w->out;
	int stays = s->birth < 0 ? s->death < 0 : s->death >= 0 && s->death <= s->birth;

	key_u64(o, "{\"ev\":\"slot\",\"s\":", number);
	key_u64(o, ",\"bytes\":", s->bytes);
	key_i64(o, ",\"birth\":", s->birth);
	key_i64(o, ",\"death\":", s->death);
	um_out_key_str(o, ",\"name\":", s->name);
	if (s->role != UM_ROLE_OTHER)
		um_out_key_str(o, ",\"role\":", um_role_name(s->role));
	if (s->place != UINT64_MAX)
		key_u64(o, ",\"place\":", s->place - w->base);
	if (s->carry == UM_NO_SLOT && stays)
		um_out_str(o, ",\"carry\":null");
	else if (s->carry != UM_NO_SLOT && !(stays && s->carry == number))
		key_u64(o, ",\"carry\":", s->carry);
	if (s->flags & ~(unsigned)UM_SLOT_SCRATCH)
		key_u64(o, ",\"flags\":", s->flags & ~(unsigned)UM_SLOT_SCRATCH);
	if (s->flags & UM_SLOT_SCRATCH)
		key_u64(o, ",\"of\":", s->of);
	else if (s->birth >= 0)
		key_u64(o, ",\"ord\":", s->born_ord);
	um_out_str(o, "}\n");
}

static uint64_t whole(const void *user, uint64_t slot)
{
	return ((const struct writer *)user)->plan->sched.slots.at[slot].bytes;
}

static int gather(struct writer *w, const struct um_sched_op *op)
{
	um_vec_clear(&w->uses);
	if (um_vec_reserve(&w->uses, op->n_uses))
		return -ENOMEM;
	for (uint32_t i = 0; i < op->n_uses; i++) {
		const struct um_sched_use *u = &w->plan->sched.uses.at[op->first_use + i];

		w->uses.at[w->uses.n++] = (struct um_use){
			.id = {u->slot},
			.off = u->off,
			.bytes = u->bytes,
			.touched = u->touched,
			.access = u->access,
		};
	}
	return 0;
}

/* Where the program's order differs from the file's (r, then w alone): each use's index in the file, in the program's
 * order. */
static void write_order(struct writer *w)
{
	uint32_t reads = 0, read = 0, written = 0;
	int mixed = 0;

	for (size_t i = 0; i < w->uses.n; i++) {
		int is_read = (w->uses.at[i].access & UM_READ) != 0;

		mixed |= is_read && reads < i;
		reads += (uint32_t)is_read;
	}
	if (!mixed)
		return;
	um_out_str(w->out, ",\"order\":[");
	for (size_t i = 0; i < w->uses.n; i++)
		key_u64(w->out, i ? "," : "", w->uses.at[i].access & UM_READ ? read++ : reads + written++);
	um_out_str(w->out, "]");
}

static void write_dead(struct writer *w, const struct um_sched_op *op, const struct um_uses_view *view)
{
	int any = 0;

	for (uint32_t i = 0; i < op->n_uses; i++) {
		if (!w->plan->sched.uses.at[op->first_use + i].dead_after)
			continue;
		um_out_str(w->out, any ? "," : ",\"dead\":[");
		um_range_write(w->out, view, &w->uses.at[i]);
		any = 1;
	}
	if (any)
		um_out_str(w->out, "]");
}

static int write_op(struct writer *w, const struct um_sched_op *op, size_t number)
{
	struct um_cost cost = {op->cost.flops, op->cost.bytes, 0};
	struct um_uses_view view = {.base = 0, .user = w, .whole = whole};

	if (gather(w, op))
		return -ENOMEM;
	view.uses = w->uses.at;
	view.n = (uint32_t)w->uses.n;
	key_u64(w->out, "{\"ev\":\"op\",\"i\":", number);
	um_out_key_str(w->out, ",\"name\":", op->name);
	um_uses_write(w->out, &view);
	write_order(w);
	write_dead(w, op, &view);
	key_u64(w->out, ",\"ns\":", op->ns);
	if (op->cost.ns != op->ns)
		um_out_str(w->out, ",\"measured\":false");
	if (op->paged)
		um_out_str(w->out, ",\"paged\":true");
	um_cost_write(w->out, &cost);
	if (op->relaunchable) {
		um_out_str(w->out, ",\"relaunch\":[");
		for (uint32_t i = 0; i < op->n_relaunch; i++)
			key_u64(w->out, i ? "," : "", w->plan->sched.relaunch.at[op->first_relaunch + i]);
		um_out_str(w->out, "]");
	}
	if (op->n_ws) {
		um_ws_write(w->out, &w->plan->sched.ws.at[op->first_ws], op->n_ws);
		key_u64(w->out, ",\"choice\":", op->choice);
	}
	if (op->stream == UM_STREAM_CPU)
		um_out_str(w->out, ",\"host\":true");
	um_launch_write(w->out, op->stream, op->phase, op->collective);
	if (op->hash)
		key_hex(w->out, ",\"hash\":", op->hash);
	um_out_str(w->out, "}\n");
	return 0;
}

static void write_hint(struct um_out *o, const struct um_plan *p, const struct um_hint *h)
{
	key_i64(o, "{\"ev\":\"hint\",\"at\":", h->at);
	key_i64(o, ",\"after\":", h->after);
	if (h->again)
		key_u64(o, ",\"again\":", h->again);
	um_out_key_str(o, ",\"kind\":", um_hint_kind_name(h->kind));
	if (h->kind == UM_HINT_RECOMPUTE) {
		key_u64(o, ",\"op\":", h->slot);
		for (uint64_t i = 0; i < h->n_scratch; i++)
			key_u64(o, i ? "," : ",\"scratch\":[", p->scratch.at[h->first_scratch + i]);
		if (h->n_scratch)
			um_out_str(o, "]");
	} else {
		key_u64(o, ",\"s\":", h->slot);
		key_u64(o, ",\"off\":", h->off);
		key_u64(o, ",\"bytes\":", h->bytes);
	}
	if (h->kind == UM_HINT_EVICT && !h->copy)
		um_out_str(o, ",\"copy\":false");
	if (h->kind == UM_HINT_ADVISE)
		um_out_key_str(o, ",\"advice\":", um_advice_name(h->advice));
	um_out_str(o, "}\n");
}

int um_plan_write(const char *path, const struct um_plan *p, struct um_diag *diag)
{
	struct writer w = {.plan = p, .base = lowest_block(p)};
	int rc = um_out_open(&w.out, path, diag);

	if (rc)
		return rc;
	write_header(w.out, p);
	for (size_t i = 0; i < p->sched.slots.n; i++)
		write_slot(&w, &p->sched.slots.at[i], i);
	for (size_t i = 0; i < p->sched.ops.n; i++)
		if (write_op(&w, &p->sched.ops.at[i], i))
			um_out_fail(w.out, -ENOMEM);
	for (size_t i = 0; i < p->hints.n; i++)
		write_hint(w.out, p, &p->hints.at[i]);
	um_vec_fini(&w.uses);
	return um_out_close(w.out, 1, diag);
}
