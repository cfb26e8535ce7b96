/* SPDX-License-Identifier: Apache-2.0
 *
 * learn.c - builds the schedule of the next iteration
 *
 * The learner remembers the tensors' numbers in the latest two iterations (previous_iteration.h), and the rules of some
 * signatures: which tensor has the role of which in the next iteration was seen when two of them came in a row. A
 * schedule is built only on demand: most iterations have the facts of the one before, and so the key of its schedule.
 */
#include "learn/learn.h"

#include "base/hash.h"
#include "learn/iteration_facts.h"
#include "learn/slots.h"

#define RULES 8 /* that are remembered, the latest ones */

struct rule {
	uint64_t signature;
	struct um_successors roles; /* without memory: there is none here */
	uint64_t used; /* the latest iteration of this signature */
};

struct learner {
	struct rule rules[RULES];
	struct um_previous_iteration past, now; /* the iteration before the latest one, and that one */
	uint64_t facts; /* of the latest one */
	uint64_t key_facts; /* of the iteration that the key belongs to */
	int has_key;
	struct um_schedule built; /* of the latest iteration, until it is taken; ops.n == 0: not built */
};

int um_learner_init(struct um_learner *l)
{
	struct learner *m = calloc(1, sizeof *m);

	if (!m)
		return -ENOMEM;
	um_previous_iteration_init(&m->past);
	um_previous_iteration_init(&m->now);
	um_schedule_init(&m->built);
	l->impl = m;
	return 0;
}

void um_learner_fini(struct um_learner *l)
{
	struct learner *m = l->impl;

	if (!m)
		return;
	um_previous_iteration_fini(&m->past);
	um_previous_iteration_fini(&m->now);
	um_schedule_fini(&m->built);
	for (size_t i = 0; i < RULES; i++)
		um_successors_fini(&m->rules[i].roles);
	free(m);
	l->impl = NULL;
}

static void add_uses(const struct um_iteration *it, const struct um_nesting *nesting, const uint32_t *slot_of,
		     struct um_schedule *out)
{
	for (size_t i = 0; i < it->uses.n; i++) {
		const struct um_iter_use *u = &it->uses.at[i];
		uint32_t host = nesting->host[u->tensor];

		out->uses.at[out->uses.n++] = (struct um_sched_use){
			.slot = slot_of[host],
			.access = u->access,
			.off = u->off + nesting->off[u->tensor],
			.bytes = u->bytes,
			.touched = u->touched,
			/* a dead part does not make the whole dead, and a dead whole does not make its parts dead */
			.dead_after = u->dead_after && host == u->tensor && !nesting->whole[host],
		};
	}
}

/* Can the op be relaunched? Only if each output is a whole slot, not a part of it. */
static int relaunch_is_whole(const struct um_iteration *it, const struct um_iter_op *op,
			     const struct um_nesting *nesting)
{
	for (uint32_t i = 0; i < op->n_relaunch; i++) {
		uint32_t number = it->relaunch.at[op->first_relaunch + i];

		if (nesting->host[number] != number || nesting->whole[number])
			return 0;
	}
	return 1;
}

static int add_ops(const struct um_iteration *it, const struct um_nesting *nesting, const uint32_t *slot_of,
		   struct um_schedule *out)
{
	if (um_vec_reserve(&out->ops, it->ops.n) || um_vec_reserve(&out->uses, it->uses.n) ||
	    um_vec_reserve(&out->relaunch, it->relaunch.n) || um_vec_reserve(&out->ws, it->ws.n))
		return -ENOMEM;
	add_uses(it, nesting, slot_of, out);
	for (size_t i = 0; i < it->relaunch.n; i++)
		out->relaunch.at[out->relaunch.n++] = slot_of[it->relaunch.at[i]];
	for (size_t i = 0; i < it->ws.n; i++)
		out->ws.at[out->ws.n++] = it->ws.at[i];
	for (size_t i = 0; i < it->ops.n; i++) {
		const struct um_iter_op *op = &it->ops.at[i];
		int again = op->relaunchable && !op->collective && relaunch_is_whole(it, op, nesting);
		char *name = strdup(op->name);

		if (!name)
			return -ENOMEM;
		out->ops.at[out->ops.n++] = (struct um_sched_op){
			.name = name,
			.hash = op->hash,
			.first_use = op->first_use,
			.n_uses = op->n_uses,
			.ns = op->cost.ns,
			.cost = op->cost,
			.stream = op->stream,
			.phase = op->phase,
			.collective = op->collective,
			.relaunchable = (uint8_t)again,
			.first_relaunch = op->first_relaunch,
			.n_relaunch = again ? op->n_relaunch : 0,
			.first_ws = op->first_ws,
			.n_ws = op->n_ws,
		};
	}
	return 0;
}

/* The rule of a signature. NULL: it is not known. */
static struct rule *find_rule(struct learner *m, uint64_t signature)
{
	for (size_t i = 0; i < RULES; i++)
		if (m->rules[i].roles.next && m->rules[i].signature == signature)
			return &m->rules[i];
	return NULL;
}

/* Keeps these roles as the rule of their signature, in place of the one unused for longest. */
static void keep_rule(struct learner *m, const struct um_iteration *it, const struct um_successors *roles)
{
	struct rule *r = find_rule(m, it->signature);

	if (!r) {
		r = &m->rules[0];
		for (size_t i = 1; i < RULES; i++)
			r = m->rules[i].used < r->used ? &m->rules[i] : r;
	}
	um_successors_fini(&r->roles);
	*r = (struct rule){it->signature, *roles, it->n};
}

static int build(struct learner *m, const struct um_iteration *it, struct um_schedule *out)
{
	int like = um_previous_iteration_is_like(&m->past, it);
	const struct rule *rule = like ? NULL : find_rule(m, it->signature);
	uint32_t *slot_of = malloc((it->tensors.n + 1) * sizeof *slot_of);
	struct um_nesting nesting;
	struct um_successors roles;
	int rc = -ENOMEM;

	if (!slot_of)
		return rc;
	rc = um_successors_init(&roles, it, &m->past, rule ? &rule->roles : NULL);
	if (rc)
		goto free_slot_of;
	rc = um_nesting_init(&nesting, it, &m->now);
	if (rc)
		goto fini_roles;
	rc = um_slots_build(it, &roles, &nesting, out, slot_of);
	if (!rc)
		rc = add_ops(it, &nesting, slot_of, out);
	out->signature = it->signature;
	um_nesting_fini(&nesting);
fini_roles:
	if (like && !rc)
		keep_rule(m, it, &roles);
	else
		um_successors_fini(&roles);
free_slot_of:
	free(slot_of);
	return rc;
}

/* Of the facts on which a plan depends: not the bound tensors, their addresses, or the ops' costs. */
static uint64_t key_of(const struct um_schedule *s)
{
	uint64_t h = s->signature;

	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *slot = &s->slots.at[i];

		h = um_hash_fold(h, slot->bytes);
		h = um_hash_fold(h, (uint64_t)(uint32_t)slot->birth << 32 | (uint32_t)slot->death);
		h = um_hash_fold(h, (uint64_t)slot->carry << 32 | slot->flags);
		h = um_hash_fold(h, slot->born_ord);
	}
	for (size_t i = 0; i < s->uses.n; i++) {
		const struct um_sched_use *u = &s->uses.at[i];

		h = um_hash_fold(h, (uint64_t)u->slot << 32 | u->access << 1 | (u->dead_after != 0));
		h = um_hash_fold(h, u->off);
		h = um_hash_fold(h, u->bytes);
		h = um_hash_fold(h, u->touched);
	}
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];

		h = um_hash_fold(h, op->hash);
		h = um_hash_fold(h, (uint64_t)op->first_use << 32 | op->first_relaunch);
		h = um_hash_fold(h, (uint64_t)op->relaunchable << 32 | op->n_relaunch);
	}
	for (size_t i = 0; i < s->births.n; i++)
		h = um_hash_fold(h, s->births.at[i]);
	for (size_t i = 0; i < s->relaunch.n; i++)
		h = um_hash_fold(h, s->relaunch.at[i]);
	h = um_hash_fold(h, s->slots.n);
	h = um_hash_fold(h, s->ops.n);
	return um_hash_u64(h, s->uses.n);
}

int um_learner_feed(struct um_learner *l, const struct um_iteration *it)
{
	struct learner *m = l->impl;
	struct um_previous_iteration was;
	struct rule *rule;
	int rc;

	if (it->incomplete || it->ops.n == 0)
		return -ENODATA;
	um_schedule_fini(&m->built);
	um_schedule_init(&m->built);
	was = m->past;
	m->past = m->now;
	m->now = was;
	rc = um_previous_iteration_fill(&m->now, it);
	if (rc)
		return rc;
	l->other = um_previous_iteration_other(&m->past, it);
	l->observed = um_previous_iteration_is_like(&m->past, it);
	m->facts = um_iteration_facts(it, &m->past, &m->now);
	rule = find_rule(m, it->signature);
	if (!rule)
		return 0;
	rule->used = it->n;
	l->observed = 1;
	return 0;
}

int um_learner_know_key(struct um_learner *l, const struct um_iteration *it)
{
	struct learner *m = l->impl;
	int rc;

	if (m->has_key && m->key_facts == m->facts)
		return 0;
	rc = build(m, it, &m->built);
	if (rc) {
		um_schedule_fini(&m->built);
		um_schedule_init(&m->built);
		return rc;
	}
	l->key = key_of(&m->built);
	m->key_facts = m->facts;
	m->has_key = 1;
	return 0;
}

int um_learner_build(struct um_learner *l, const struct um_iteration *it, struct um_schedule *out)
{
	struct learner *m = l->impl;
	int rc;

	if (!m->built.ops.n)
		m->has_key = 0;
	rc = um_learner_know_key(l, it);
	if (rc)
		return rc;
	*out = m->built;
	um_schedule_init(&m->built);
	return 0;
}
