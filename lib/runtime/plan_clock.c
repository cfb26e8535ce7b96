/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan_clock.h"

#include <string.h>

void um_plan_clock_init(struct um_plan_clock *c, struct um_gpu *gpu)
{
	memset(c, 0, sizeof *c);
	c->gpu = gpu;
}

void um_plan_clock_fini(struct um_plan_clock *c)
{
	for (int i = 0; i < UM_PLAN_CLOCK_EVENTS; i++)
		if (c->ring[i].event)
			c->gpu->api->cudaEventDestroy(c->gpu, c->ring[i].event);
	memset(c, 0, sizeof *c);
}

static struct um_plan_clock_mark *mark_at(struct um_plan_clock *c, uint64_t i)
{
	return &c->ring[i % UM_PLAN_CLOCK_EVENTS];
}

void um_plan_clock_reset(struct um_plan_clock *c)
{
	c->first = c->read = c->n;
	c->due = 0;
	c->ns = 0;
}

void um_plan_clock_iteration(struct um_plan_clock *c, int followed, int follows)
{
	struct um_plan_clock_mark *m = mark_at(c, c->n);

	if (!followed)
		c->first = c->n;
	c->due = follows || c->first < c->n;
	if (c->due && !m->event && c->gpu->api->cudaEventCreateWithFlags(c->gpu, &m->event, 0)) {
		m->event = NULL;
		c->first = c->n;
		c->due = 0;
	}
}

void um_plan_clock_record(struct um_plan_clock *c, um_stream stream, const struct um_executor_counts *counts)
{
	struct um_plan_clock_mark *m = mark_at(c, c->n);

	c->due = 0;
	if (c->gpu->api->cudaEventRecord(c->gpu, m->event, stream)) {
		c->first = c->n;
		return;
	}
	m->counts = *counts;
	c->n++;
	if (c->n - c->first > UM_PLAN_CLOCK_EVENTS)
		c->first = c->n - UM_PLAN_CLOCK_EVENTS;
}

int um_plan_clock_read(struct um_plan_clock *c)
{
	uint64_t end = c->n;
	float ms;

	while (end > c->first + 1 && end > c->read + 1 &&
	       c->gpu->api->cudaEventQuery(c->gpu, mark_at(c, end - 1)->event) == UM_CUDA_NOT_READY)
		end--;
	if (end <= c->first + 1 || end <= c->read + 1)
		return 0;
	c->read = end - 1;
	if (c->gpu->api->cudaEventElapsedTime(c->gpu, &ms, mark_at(c, end - 2)->event, mark_at(c, end - 1)->event) ||
	    !(ms > 0))
		return 0;
	c->ns = (uint64_t)((double)ms * 1e6 + 0.5);
	c->before = mark_at(c, end - 2)->counts;
	c->after = mark_at(c, end - 1)->counts;
	return 1;
}
