/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/op_timer.h"

#include <errno.h>

void um_op_timer_init(struct um_op_timer *w, struct um_gpu *gpu)
{
	memset(w, 0, sizeof *w);
	w->gpu = gpu;
}

void um_op_timer_fini(struct um_op_timer *w)
{
	for (size_t i = 0; i < w->pairs.n; i++) {
		if (w->pairs.at[i].start)
			w->gpu->api->cudaEventDestroy(w->gpu, w->pairs.at[i].start);
		if (w->pairs.at[i].end)
			w->gpu->api->cudaEventDestroy(w->gpu, w->pairs.at[i].end);
	}
	um_vec_fini(&w->pairs);
	um_vec_fini(&w->ns);
}

static void next_window(struct um_op_timer *w, uint32_t first)
{
	uint32_t left = (uint32_t)w->ns.n - first;

	w->first = first;
	w->n = left < UM_OP_TIMER_OPS ? left : UM_OP_TIMER_OPS;
	w->pass = 0;
}

static void run(struct um_op_timer *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		w->pairs.at[i].ended = 0;
	w->n_open = 0;
	w->invalid = 0;
	w->state = UM_OP_TIMER_RUNS;
}

int um_op_timer_begin(struct um_op_timer *w, uint32_t n_ops)
{
	uint32_t n = n_ops < UM_OP_TIMER_OPS ? n_ops : UM_OP_TIMER_OPS;

	w->state = UM_OP_TIMER_OFF;
	um_vec_clear(&w->ns);
	if (!n || um_vec_reserve(&w->ns, n_ops) || um_vec_reserve(&w->pairs, n))
		return n ? -ENOMEM : -EIO;
	memset(w->ns.at, 0, n_ops * sizeof *w->ns.at);
	w->ns.n = n_ops;
	while (w->pairs.n < n) {
		struct um_op_timer_pair *p = &w->pairs.at[w->pairs.n++];

		memset(p, 0, sizeof *p);
		if (w->gpu->api->cudaEventCreateWithFlags(w->gpu, &p->start, 0) ||
		    w->gpu->api->cudaEventCreateWithFlags(w->gpu, &p->end, 0)) {
			if (p->start)
				w->gpu->api->cudaEventDestroy(w->gpu, p->start);
			w->pairs.n--;
			return -EIO;
		}
	}
	next_window(w, 0);
	run(w);
	return 0;
}

static void end_op(struct um_op_timer *w, unsigned k)
{
	struct um_op_timer_pair *p = &w->pairs.at[w->open[k].op - w->first];

	p->ended = !um_app_stream_record(w->gpu, p->end, w->open[k].stream);
	w->invalid |= !p->ended;
	w->open[k] = w->open[--w->n_open];
}

void um_op_timer_stop_op(struct um_op_timer *w, um_stream stream)
{
	struct um_app_stream is = um_app_stream_of(stream);

	if (!um_op_timer_listens(w))
		return;
	for (unsigned k = 0; k < w->n_open; k++)
		if (um_app_stream_same(w->open[k].stream, is)) {
			end_op(w, k);
			return;
		}
}

/* Ends the running ops of streams that may be used. The calling thread's come first: blocking streams wait for events
 * that are recorded on the legacy stream. */
static void end_all(struct um_op_timer *w)
{
	for (int ours = 1; ours >= 0; ours--)
		for (unsigned k = w->n_open; k-- > 0;)
			if (um_app_stream_is_ours(w->open[k].stream) == ours &&
			    (w->ends_known || um_app_stream_is_default(w->open[k].stream.handle)))
				end_op(w, k);
}

void um_op_timer_start_op(struct um_op_timer *w, um_stream stream, uint32_t op)
{
	if (w->state != UM_OP_TIMER_RUNS || op < w->first || op - w->first >= w->n)
		return;
	if (w->n_open == UM_OP_TIMER_STREAMS ||
	    w->gpu->api->cudaEventRecord(w->gpu, w->pairs.at[op - w->first].start, stream)) {
		w->invalid = 1;
		return;
	}
	w->open[w->n_open].stream = um_app_stream_of(stream);
	w->open[w->n_open++].op = op;
}

/* Has the device passed all of the window's events? */
static int passed(struct um_op_timer *w)
{
	for (uint32_t i = w->n; i-- > 0;)
		if (w->gpu->api->cudaEventQuery(w->gpu, w->pairs.at[i].end) == UM_CUDA_NOT_READY)
			return 0;
	return 1;
}

static void read_window(struct um_op_timer *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct um_op_timer_pair *p = &w->pairs.at[i];
		uint64_t *best = &w->ns.at[w->first + i], ns;
		float ms;

		if (w->gpu->api->cudaEventElapsedTime(w->gpu, &ms, p->start, p->end) || !(ms > 0))
			continue;
		ns = (uint64_t)((double)ms * 1e6 + 0.5);
		ns = ns ? ns : 1;
		if (!*best || ns < *best)
			*best = ns;
	}
}

/* 0: the iteration is not measured. */
static int end_iteration(struct um_op_timer *w, int whole)
{
	int late = w->state == UM_OP_TIMER_ENDS; /* the iteration before is meant */
	uint32_t n = 0;

	if (!late)
		end_all(w);
	for (uint32_t i = 0; i < w->n; i++)
		n += w->pairs.at[i].ended != 0;
	if (!late)
		n += w->n_open;
	w->state = w->n_open ? UM_OP_TIMER_ENDS : UM_OP_TIMER_WAITS;
	return (whole || late) && !w->invalid && n == w->n;
}

int um_op_timer_end(struct um_op_timer *w, int whole)
{
	if (um_op_timer_listens(w) && !end_iteration(w, whole)) {
		run(w);
		return 0;
	}
	if (w->state != UM_OP_TIMER_WAITS || !passed(w))
		return w->state == UM_OP_TIMER_DONE;
	read_window(w);
	if (++w->pass == UM_OP_TIMER_PASSES) {
		if (w->first + w->n == w->ns.n) {
			w->state = UM_OP_TIMER_DONE;
			return 1;
		}
		next_window(w, w->first + w->n);
	}
	run(w);
	return 0;
}

void um_op_timer_off(struct um_op_timer *w)
{
	w->state = UM_OP_TIMER_OFF;
	um_vec_clear(&w->ns);
}
