/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/iteration_clock.h"

#include <string.h>

void um_iteration_clock_init(struct um_iteration_clock *c, struct um_gpu *gpu)
{
	memset(c, 0, sizeof *c);
	c->gpu = gpu;
}

void um_iteration_clock_fini(struct um_iteration_clock *c)
{
	for (int i = 0; i < UM_ITERATION_CLOCK_EVENTS; i++)
		if (c->ring[i].event)
			c->gpu->api->cudaEventDestroy(c->gpu, c->ring[i].event);
	memset(c, 0, sizeof *c);
}

static struct um_iteration_begin *begin_at(struct um_iteration_clock *c, uint64_t i)
{
	return &c->ring[i % UM_ITERATION_CLOCK_EVENTS];
}

void um_iteration_clock_end(struct um_iteration_clock *c, const struct um_iteration_kind *kind)
{
	struct um_iteration_begin *next = begin_at(c, c->n);

	if (c->recorded)
		begin_at(c, c->n - 1)->kind = *kind;
	c->previous = c->recorded;
	c->recorded = 0;
	c->due = c->n - c->read < UM_ITERATION_CLOCK_EVENTS;
	if (c->due && !next->event && c->gpu->api->cudaEventCreateWithFlags(c->gpu, &next->event, 0)) {
		next->event = NULL;
		c->due = 0;
	}
}

void um_iteration_clock_record(struct um_iteration_clock *c, um_stream stream, const struct um_executor_counts *counts)
{
	struct um_iteration_begin *b = begin_at(c, c->n);

	c->due = 0;
	if (c->gpu->api->cudaEventRecord(c->gpu, b->event, stream))
		return;
	b->counts = *counts;
	b->adjacent = c->previous;
	c->recorded = 1;
	c->n++;
}

int um_iteration_clock_read(struct um_iteration_clock *c, struct um_iteration_time *out)
{
	while (c->read + 1 < c->n) {
		const struct um_iteration_begin *a = begin_at(c, c->read), *b = begin_at(c, c->read + 1);
		float ms;

		if (c->gpu->api->cudaEventQuery(c->gpu, b->event) == UM_CUDA_NOT_READY)
			return 0;
		c->read++;
		if (!b->adjacent || c->gpu->api->cudaEventElapsedTime(c->gpu, &ms, a->event, b->event) || !(ms > 0))
			continue;
		*out = (struct um_iteration_time){(uint64_t)((double)ms * 1e6 + 0.5), a->kind, a->counts, b->counts};
		return 1;
	}
	return 0;
}
