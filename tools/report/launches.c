/* SPDX-License-Identifier: Apache-2.0 */
#include "report/launches.h"

#define LAUNCHES_MAX 1048576u
#define LONG 65536u /* correlations: a launch queue holds a thousand */

void um_launches_fini(struct um_launches *l)
{
	um_vec_fini(&l->threads);
	um_vec_fini(&l->queue);
	*l = (struct um_launches){0};
}

static struct um_thread_op *thread_of(const struct um_launches *l, uint64_t thread)
{
	for (size_t i = 0; i < l->threads.n; i++)
		if (l->threads.at[i].thread == thread)
			return &l->threads.at[i];
	return NULL;
}

int um_launches_announce(struct um_launches *l, const struct um_activity *op)
{
	struct um_thread_op *t = thread_of(l, op->thread);

	if (!t)
		return um_vec_push(&l->threads, ((struct um_thread_op){op->thread, op->op, op->begin}));
	t->op = op->op;
	t->announced = op->begin;
	return 0;
}

int um_launches_call(struct um_launches *l, const struct um_activity *call)
{
	struct um_thread_op *t = l->threads.n ? thread_of(l, call->thread) : NULL;
	int64_t at = t && t->announced != INT64_MIN ? t->announced : call->end;
	size_t i;

	if (!call->correlation || !strstr(call->name, "Launch"))
		return 0;
	if (l->queue.n - l->first >= LAUNCHES_MAX)
		l->first++;
	if (l->first > l->queue.n / 2) {
		memmove(l->queue.at, l->queue.at + l->first, (l->queue.n - l->first) * sizeof *l->queue.at);
		l->queue.n -= l->first;
		l->first = 0;
	}
	if (um_vec_reserve(&l->queue, 1))
		return -ENOMEM;
	/* Numbers of concurrent threads may be in another order than times. */
	for (i = l->queue.n; i > l->first && l->queue.at[i - 1].correlation > call->correlation; i--)
		l->queue.at[i] = l->queue.at[i - 1];
	l->queue.at[i] = (struct um_launch){call->correlation, t ? t->op : UM_ACT_NO_OP, at};
	l->queue.n++;
	if (t)
		t->announced = INT64_MIN;
	return 0;
}

const struct um_launch *um_launches_find(const struct um_launches *l, uint64_t correlation)
{
	size_t from = l->first, to = l->queue.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (l->queue.at[middle].correlation == correlation)
			return &l->queue.at[middle];
		if (l->queue.at[middle].correlation < correlation)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

void um_launches_begun(struct um_launches *l, uint64_t correlation)
{
	while (l->first < l->queue.n && correlation > LONG && l->queue.at[l->first].correlation < correlation - LONG)
		l->first++;
}
