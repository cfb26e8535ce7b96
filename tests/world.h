/* SPDX-License-Identifier: Apache-2.0
 *
 * world.h - a small program to learn from: registry, recorder and learner wired as the front desk does it
 *
 * Addresses are made up and never used twice, so that nothing can lean on them. What was learned of the iteration that
 * just ended is in rc, changed, sched and it.
 */
#ifndef UM_TESTS_WORLD_H
#define UM_TESTS_WORLD_H

#include "learn/learn.h"
#include "record/recorder.h"
#include "record/registry.h"

#include <stdlib.h>

struct world {
	struct um_registry registry;
	struct um_recorder recorder;
	struct um_learner learner;
	struct um_iteration it; /* the last whole one */
	struct um_schedule sched; /* learned from it */
	int rc, changed;
	uint64_t next_addr;
	uint64_t iterations; /* begun */
};

static inline void world_init(struct world *w)
{
	memset(w, 0, sizeof *w);
	um_registry_init(&w->registry);
	if (um_recorder_init(&w->recorder) || um_learner_init(&w->learner))
		abort();
	um_iteration_init(&w->it);
	um_schedule_init(&w->sched);
	w->next_addr = 1ull << 40;
}

static inline void world_fini(struct world *w)
{
	um_schedule_fini(&w->sched);
	um_learner_fini(&w->learner);
	um_recorder_fini(&w->recorder);
	um_iteration_fini(&w->it);
	um_registry_fini(&w->registry);
}

static inline void world_feed(struct world *w, const struct um_event *event)
{
	if (um_sink_feed(&w->recorder.sink, event))
		abort(); /* the recorder never fails its host */
}

static inline struct um_tensor *world_add(struct world *w, uint64_t addr, uint64_t bytes, const char *name,
					  unsigned flags)
{
	struct um_event event = {.kind = UM_EV_ALLOC};
	struct um_tensor *t;

	if (um_registry_add(&w->registry, addr, bytes, name, UM_ROLE_OTHER, flags, &t))
		abort();
	event.alloc.id = t->id;
	event.alloc.tensor = t;
	event.alloc.bytes = bytes;
	event.alloc.name = name;
	world_feed(w, &event);
	return t;
}

static inline struct um_tensor *world_alloc(struct world *w, uint64_t bytes, const char *name)
{
	uint64_t addr = w->next_addr;

	w->next_addr += (bytes + 4095) / 4096 * 4096;
	return world_add(w, addr, bytes, name, 0);
}

static inline void world_tell(struct world *w, enum um_event_kind kind, struct um_tensor *t)
{
	struct um_event event = {.kind = kind};

	event.free.id = t->id;
	event.free.tensor = t;
	world_feed(w, &event);
}

static inline void world_free(struct world *w, struct um_tensor *t)
{
	world_tell(w, UM_EV_FREE, t);
	if (um_registry_remove(&w->registry, t))
		abort();
}

static inline void world_dead(struct world *w, struct um_tensor *t)
{
	world_tell(w, UM_EV_DEAD, t);
}

static inline struct um_use world_use(struct um_tensor *t, uint32_t access, uint64_t off, uint64_t bytes)
{
	return (struct um_use){t->id, t, off, bytes, bytes, access};
}

static inline void world_op(struct world *w, const char *name, const struct um_use *uses, size_t n)
{
	struct um_event event = {.kind = UM_EV_OP};

	event.op.name = name;
	event.op.uses = uses;
	event.op.n_uses = (uint32_t)n;
	world_feed(w, &event);
}

#define R(t) world_use((t), UM_READ, 0, (t)->bytes)
#define W(t) world_use((t), UM_WRITE, 0, (t)->bytes)
#define U(t) world_use((t), UM_UPDATE, 0, (t)->bytes)
#define OP(w, name, ...)                                                                                               \
	world_op((w), (name), (const struct um_use[]){__VA_ARGS__},                                                    \
		 sizeof((const struct um_use[]){__VA_ARGS__}) / sizeof(struct um_use))

/* An iteration begins; the one before, if there was one, is learned. */
static inline void world_iter(struct world *w)
{
	struct um_event event = {.kind = UM_EV_ITER};

	if (w->iterations) {
		um_recorder_take(&w->recorder, &w->it);
		um_schedule_fini(&w->sched);
		um_schedule_init(&w->sched);
		w->changed = -1;
		w->rc = um_learner_feed(&w->learner, &w->it, &w->sched, &w->changed);
	}
	event.iter.n = w->iterations++;
	world_feed(w, &event);
}

/* The first thing wrong with a schedule by umplan's rules of lives and by schedule.h, or NULL. */
static inline const char *world_flaw(const struct um_schedule *s)
{
	int32_t end = (int32_t)s->ops.n;

	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *slot = &s->slots.at[i];
		int at_start = slot->birth < 0 || slot->death <= slot->birth;

		if (slot->birth < -1 || slot->birth > end || slot->death < -1 || slot->death > end)
			return "a position is outside";
		if (slot->birth >= 0 && slot->death < 0)
			return "born in every iteration and never freed";
		if (slot->carry != UM_NO_SLOT && !at_start)
			return "carried although not alive at the start";
		if (slot->carry == UM_NO_SLOT && at_start && !(slot->flags & UM_SLOT_GUESSED))
			return "alive at the start, carried by nobody";
		if (slot->carry != UM_NO_SLOT &&
		    (slot->carry >= s->slots.n || s->slots.at[slot->carry].bytes != slot->bytes))
			return "carried by a slot of another size";
		if ((slot->carry == UM_NO_SLOT) != (slot->bound.v == 0))
			return "bound and carry disagree";
		if (!(slot->flags & UM_SLOT_FIXED) != (slot->place == UINT64_MAX))
			return "fixed and place disagree";
		for (size_t j = 0; slot->bound.v && j < i && s->slots.n < 2000; j++)
			if (s->slots.at[j].bound.v == slot->bound.v)
				return "a tensor is two slots at once";
	}
	for (size_t i = 0; i < s->uses.n; i++) {
		const struct um_sched_use *u = &s->uses.at[i];

		if (u->slot >= s->slots.n || u->bytes == 0 || u->off + u->bytes > s->slots.at[u->slot].bytes)
			return "a use outside its slot";
	}
	for (int32_t op = 0; op < end; op++) {
		for (uint32_t k = 0; k < s->ops.at[op].n_uses; k++) {
			const struct um_slot *slot = &s->slots.at[s->uses.at[s->ops.at[op].first_use + k].slot];
			int born = slot->birth < 0 || op >= slot->birth, freed = slot->death >= 0 && op >= slot->death;
			int wraps = slot->birth >= 0 && slot->death <= slot->birth;

			if (wraps ? !born && freed : !born || freed)
				return "used while it is not alive";
		}
	}
	for (size_t i = 0; i < s->births.n; i++)
		if (s->births.at[i] >= s->slots.n || s->slots.at[s->births.at[i]].birth < 0 ||
		    s->slots.at[s->births.at[i]].born_ord != i)
			return "a birth without its slot";
	return NULL;
}

#endif
