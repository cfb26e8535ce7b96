/* SPDX-License-Identifier: Apache-2.0
 *
 * hazards.c - how a program can hang on a GPU: hardware queues, their size, lazy loading, handles
 *
 * Off by default: then nothing here changes a time. A command begins only after all commands that were enqueued earlier
 * on the same hardware queue have begun, whatever their streams. hazard_lock.c has the driver's lock, hazard_report.c
 * names the calls of the cycle.
 */
#include "sim/state.h"

#include <stdlib.h>

/* --- options ------------------------------------------------------------------------------------------------------ */

static int number(const char *text, size_t n, unsigned most, unsigned *out)
{
	unsigned long v = 0;

	if (!n)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9' || v > most)
			return -EINVAL;
		v = v * 10 + (unsigned long)(text[i] - '0');
	}
	if (!v || v > most)
		return -EINVAL;
	*out = (unsigned)v;
	return 0;
}

static int item(const char *text, size_t n, struct um_sim_hazards *h)
{
	const struct {
		const char *name;
		int *flag;
	} flags[] = {{"locks", &h->locks},
		     {"lazy", &h->lazy},
		     {"reuse", &h->reuse},
		     {"defer", &h->defer},
		     {"destroyed", &h->destroyed}};

	if (n == 2 && !memcmp(text, "on", 2)) {
		h->queues = h->queues ? h->queues : UM_SIM_QUEUES_DEFAULT;
		h->depth = h->depth ? h->depth : UM_SIM_DEPTH_DEFAULT;
		h->locks = h->lazy = h->reuse = h->destroyed = 1;
		return 0;
	}
	if (n > 7 && !memcmp(text, "queues=", 7))
		return number(text + 7, n - 7, UM_SIM_QUEUES_MOST, &h->queues);
	if (n > 6 && !memcmp(text, "depth=", 6))
		return number(text + 6, n - 6, 1u << 20, &h->depth);
	if (n > 8 && !memcmp(text, "timeout=", 8))
		return number(text + 8, n - 8, 1u << 20, &h->timeout_ms);
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (n == strlen(flags[i].name) && !memcmp(text, flags[i].name, n)) {
			*flags[i].flag = 1;
			return 0;
		}
	return -EINVAL;
}

int um_sim_hazards_parse(const char *text, struct um_sim_hazards *hazards)
{
	struct um_sim_hazards h = *hazards;

	for (;;) {
		size_t n = strcspn(text, ",");

		if (item(text, n, &h))
			return -EINVAL;
		if (!text[n])
			break;
		text += n + 1;
	}
	*hazards = h;
	return 0;
}

int um_sim_hazards_open(struct um_sim *sim)
{
	unsigned n = sim->opt.hazards.queues;

	if (n > UM_SIM_QUEUES_MOST)
		return -EINVAL;
	if (sim->opt.hazards.timeout_ms)
		sim->opt.timeout_ms = sim->opt.hazards.timeout_ms;
	sim->hardware = n ? calloc(n, sizeof *sim->hardware) : NULL;
	return n && !sim->hardware ? -ENOMEM : 0;
}

void um_sim_hazards_close(struct um_sim *sim)
{
	free(sim->hardware);
	for (size_t i = 0; i < sim->loaded.n; i++)
		free(sim->loaded.at[i]);
	um_vec_fini(&sim->loaded);
	for (size_t i = 0; i < sim->handles.n; i++)
		free(sim->handles.at[i]);
	um_vec_fini(&sim->handles);
	um_vec_fini(&sim->handles_free);
}

int um_sim_hazards_on(const struct um_sim *sim)
{
	const struct um_sim_hazards *h = &sim->opt.hazards;

	return h->queues || h->depth || h->locks || h->lazy || h->reuse || h->defer || h->destroyed;
}

/* --- hardware queues ---------------------------------------------------------------------------------------------- */

unsigned um_sim_queue_of(const struct um_sim *sim, const struct um_sim_stream *s)
{
	return s->serial % sim->opt.hazards.queues;
}

const struct um_sim_stream *um_sim_queue_blocker(const struct um_sim *sim, const struct um_sim_stream *s,
						 const struct um_sim_cmd *c)
{
	const struct um_sim_stream *first = NULL;
	uint64_t seq = c->seq;

	for (const struct um_sim_stream *o = sim->streams; o && sim->hardware; o = o->next) {
		const struct um_sim_cmd *head = um_sim_head(o);

		if (o == s || !head || um_sim_queue_of(sim, o) != um_sim_queue_of(sim, s))
			continue;
		if (head->running) /* it holds the queue until it ends */
			head = o->first + 1 < o->queue.n ? head + 1 : NULL;
		if (head && head->seq < seq) {
			first = o;
			seq = head->seq;
		}
	}
	return first;
}

uint64_t um_sim_queue_due(const struct um_sim *sim, const struct um_sim_stream *s, const struct um_sim_cmd *c)
{
	if (!sim->hardware || c->running)
		return 0;
	return um_sim_queue_blocker(sim, s, c) ? UM_SIM_FOREVER : sim->hardware[um_sim_queue_of(sim, s)];
}

void um_sim_queue_begun(struct um_sim *sim, const struct um_sim_stream *s, uint64_t t)
{
	if (sim->hardware)
		sim->hardware[um_sim_queue_of(sim, s)] = um_sim_later(sim->hardware[um_sim_queue_of(sim, s)], t);
}

/* What runs on the device has left its queue, except without a limit on the queues: there it counts, by the program's
 * clock. Otherwise room would come without an event. */
int um_sim_queue_is_full(const struct um_sim *sim, const struct um_sim_stream *s)
{
	size_t depth = sim->opt.hazards.depth, n = 0;

	if (!depth)
		return s->queue.n - s->first + (s->ready > sim->app) >= UM_SIM_QUEUE;
	for (const struct um_sim_stream *o = sim->streams; o; o = o->next)
		if (o == s || (sim->hardware && um_sim_queue_of(sim, o) == um_sim_queue_of(sim, s)))
			n += o->queue.n - o->first;
	return n >= depth;
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

int um_sim_load_kernel(struct um_sim *sim, const char *name)
{
	char *copy;
	int err;

	if (!sim->opt.hazards.lazy || sim->node->lane)
		return UM_CUDA_OK;
	name = name ? name : "";
	for (size_t i = 0; i < sim->loaded.n; i++)
		if (!strcmp(sim->loaded.at[i], name))
			return UM_CUDA_OK;
	err = um_sim_finish_locked(sim);
	copy = err ? NULL : strdup(name);
	if (!err && (!copy || um_vec_push(&sim->loaded, copy))) {
		free(copy);
		err = UM_CUDA_NO_MEMORY;
	}
	return err;
}

int um_sim_module(struct um_gpu *gpu, const char *call)
{
	struct um_sim *sim = um_sim_of(gpu);

	um_sim_enter_call(sim, call);
	return um_sim_leave(sim, sim->opt.hazards.locks ? um_sim_finish_locked(sim) : UM_CUDA_OK);
}

/* --- handles ------------------------------------------------------------------------------------------------------ */

int um_sim_handle_take(struct um_sim *sim, struct um_sim_stream *s)
{
	void *fresh;

	s->handle = s;
	if (!sim->opt.hazards.reuse)
		return 0;
	if (sim->handles_free.n) {
		s->handle = sim->handles_free.at[--sim->handles_free.n];
		return 0;
	}
	fresh = malloc(1);
	/* Giving a handle back must not fail: reserve its room now. */
	if (!fresh || um_vec_reserve(&sim->handles_free, sim->handles.n + 1) || um_vec_push(&sim->handles, fresh)) {
		free(fresh);
		return -ENOMEM;
	}
	s->handle = fresh;
	return 0;
}

void um_sim_handle_give(struct um_sim *sim, struct um_sim_stream *s)
{
	if (sim->opt.hazards.reuse)
		sim->handles_free.at[sim->handles_free.n++] = s->handle;
	s->handle = NULL;
}
