/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/iterations.h"

#include "base/debug.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int um_iterations_init(struct um_iterations *it)
{
	memset(it, 0, sizeof *it);
	um_iteration_init(&it->last);
	it->first_hinted = UINT64_MAX;
	um_iteration_period_init(&it->period);
	return um_recorder_init(&it->recorder);
}

void um_iterations_search(struct um_iterations *it)
{
	um_iteration_finder_init(&it->finder);
	it->recorder.setup = 1;
}

void um_iterations_are_marked(struct um_iterations *it)
{
	um_iteration_finder_fini(&it->finder);
	it->recorder.setup = 0;
}

static void forget_closures(struct um_iterations *it)
{
	for (size_t i = 0; i < it->closures.n; i++)
		free(it->closures.at[i].arg);
	um_vec_fini(&it->closures);
}

void um_iterations_fini(struct um_iterations *it)
{
	forget_closures(it);
	um_iteration_finder_fini(&it->finder);
	um_recorder_fini(&it->recorder);
	um_iteration_fini(&it->last);
}

static void stop_recording(struct um_iterations *it, struct um_notices *notices)
{
	const struct um_record_caps *c = &it->recorder.caps;

	forget_closures(it);
	um_notices_warn(notices, UM_WARN_LONG,
			"iteration %llu is too long to be planned: recording stopped after %u operations "
			"(limits: %u operations, %u ranges, %u tensors). Mark shorter iterations with umadv_iter",
			(unsigned long long)(it->n - 1), it->ops, c->ops, c->uses, c->tensors);
}

void um_iterations_feed(struct um_iterations *it, const struct um_event *e, struct um_notices *notices)
{
	if (um_sink_feed(&it->recorder.sink, e))
		notices->errors++;
	if (!it->recorder.too_long)
		return;
	if (um_iterations_outside(it))
		um_recorder_restart(&it->recorder);
	else
		stop_recording(it, notices);
}

int um_iterations_add_closure(struct um_iterations *it, const struct umadv_op_info *info)
{
	uint32_t i = it->ops;

	if (um_iterations_outside(it))
		return 0; /* ops outside iterations are never relaunched, and their number has no bound */
	if (it->recorder.too_long)
		return 0;
	/* an iteration of several marks also has ops from where no period was followed */
	if (i > it->closures.n)
		return 0;
	if (i == it->closures.n && um_vec_push(&it->closures, (struct um_closure){0}))
		return -ENOMEM;
	struct um_closure *c = &it->closures.at[i];

	c->fn = NULL;
	if (!info->relaunch)
		return 0;
	if (info->relaunch_arg_bytes > c->cap) {
		void *p = realloc(c->arg, info->relaunch_arg_bytes);

		if (!p)
			return -ENOMEM;
		c->arg = p;
		c->cap = info->relaunch_arg_bytes;
	}
	if (info->relaunch_arg_bytes)
		memcpy(c->arg, info->relaunch_arg, info->relaunch_arg_bytes);
	c->bytes = info->relaunch_arg_bytes;
	c->fn = info->relaunch;
	return 0;
}

static void count_hinted(struct um_iterations *it)
{
	if (it->hinted) {
		it->n_hinted++;
		if (it->first_hinted == UINT64_MAX && it->n)
			it->first_hinted = it->n - 1;
	}
	it->hinted = 0;
}

int um_iterations_mark(struct um_iterations *it)
{
	count_hinted(it);
	if (um_iteration_period_mark(&it->period))
		return 1;
	it->n++;
	return 0;
}

void um_iterations_end(struct um_iterations *it)
{
	um_recorder_take(&it->recorder, &it->last);
	for (size_t i = 0; i < it->last.tensors.n && it->finder.on; i++)
		it->last.tensors.at[i].flags &= ~(unsigned)UM_TENSOR_TRANSIENT; /* promised of the program's own */
}

void um_iterations_replace(struct um_iterations *it, struct um_iteration *last)
{
	um_iteration_fini(&it->last);
	it->last = *last;
	it->recorder.it.n = last->n;
	um_iteration_init(last);
}

void um_iterations_begin(struct um_iterations *it)
{
	it->ops = it->beside = 0;
	it->before = it->began;
	it->began = it->op_serial;
	it->n++;
}

void um_iterations_stats(const struct um_iterations *it, struct umadv_stats *out)
{
	out->iterations = it->n;
	out->hinted_iterations = it->n_hinted;
	out->first_hinted_iteration = it->first_hinted;
	if (it->hinted) {
		out->hinted_iterations++;
		if (out->first_hinted_iteration == UINT64_MAX && it->n)
			out->first_hinted_iteration = it->n - 1;
	}
}
