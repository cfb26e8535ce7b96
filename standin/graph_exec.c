/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_exec.c - instantiates and launches graphs
 *
 * An instantiated graph is a list of items in an order that its dependencies allow, with child graphs unrolled. Items
 * are assigned to lanes: one that follows the last item of a lane continues it, others open a lane. The first lane is
 * the stream of the launch, the others are streams of the graph; events order items of different lanes.
 */
#include "standin/graph_exec.h"

void um_item_clear(struct um_item *it)
{
	for (size_t i = 0; i < it->work.n; i++)
		um_work_drop(&it->work.at[i]);
	um_vec_clear(&it->work);
}

void um_exec_free(struct um_exec *x)
{
	struct um_gpu *gpu = x ? x->of->gpu : NULL;

	if (!x)
		return;
	um_standin_lock();
	for (size_t i = 0; i < x->item.n; i++)
		um_item_clear(&x->item.at[i]);
	um_graph_free(x->graph);
	um_standin_unlock();
	um_events_reap();
	for (size_t i = 0; i < x->item.n; i++) {
		um_vec_fini(&x->item.at[i].work);
		um_vec_fini(&x->item.at[i].after);
		if (x->item.at[i].event)
			gpu->api->cudaEventDestroy(gpu, x->item.at[i].event);
	}
	um_vec_fini(&x->item);
	for (uint32_t i = 1; i < x->lanes; i++)
		if (x->stream[i])
			gpu->api->cudaStreamDestroy(gpu, x->stream[i]);
	if (x->begun)
		gpu->api->cudaEventDestroy(gpu, x->begun);
	if (x->done)
		gpu->api->cudaEventDestroy(gpu, x->done);
	free(x);
}

/* --- making one --------------------------------------------------------------------------------------------------- */

typedef UM_VEC(uint32_t) indices;

static int item_after(struct um_item *it, uint32_t i)
{
	for (size_t k = 0; k < it->after.n; k++)
		if (it->after.at[k] == i)
			return 0;
	return um_vec_push(&it->after, i);
}

static int item_add(struct um_exec *x, const struct um_node *n, const indices *before)
{
	struct um_item it = {.origin = n->origin};
	int err = um_vec_reserve(&x->item, 1);

	for (size_t i = 0; i < before->n && !err; i++)
		err = item_after(&it, before->at[i]);
	for (size_t i = 0; i < n->work.n && !err; i++) {
		err = um_vec_push(&it.work, n->work.at[i]);
		if (!err)
			um_work_keep(&n->work.at[i]);
	}
	if (err) {
		um_item_clear(&it);
		um_vec_fini(&it.work);
		um_vec_fini(&it.after);
		return err;
	}
	x->item.at[x->item.n++] = it;
	return 0;
}

/* Unrolls `g` after the items `before`; `*ends`: the items at its end. */
static int unroll(struct um_exec *x, struct um_graph *g, const indices *before, indices *ends)
{
	struct um_node **order;
	indices *end, mine = {0};
	int err = um_graph_order(g, &order);

	if (err)
		return err;
	end = calloc(g->node.n + 1, sizeof *end); /* of each node */
	err = end ? 0 : -ENOMEM;
	for (size_t i = 0; i < g->node.n && !err; i++) {
		const struct um_node *n = order[i];

		um_vec_clear(&mine);
		for (size_t k = 0; k < n->after.n && !err; k++)
			for (size_t j = 0; j < end[n->after.at[k]->index].n && !err; j++)
				err = um_vec_push(&mine, end[n->after.at[k]->index].at[j]);
		for (size_t j = 0; j < before->n && !n->after.n && !err; j++)
			err = um_vec_push(&mine, before->at[j]);
		if (err)
			break;
		if (n->child && n->child->node.n) {
			struct um_node *kept = order[i]; /* the child's order covers its own nodes only */

			err = unroll(x, kept->child, &mine, &end[kept->index]);
			continue;
		}
		err = item_add(x, n, &mine);
		err = err ? err : um_vec_push(&end[n->index], (uint32_t)(x->item.n - 1));
	}
	for (size_t i = 0; i < g->node.n && !err; i++) {
		int followed = 0;

		for (size_t k = 0; k < g->node.n && !followed; k++)
			for (size_t j = 0; j < g->node.at[k]->after.n; j++)
				followed |= g->node.at[k]->after.at[j] == order[i];
		for (size_t j = 0; j < end[order[i]->index].n && !followed && !err; j++)
			err = um_vec_push(ends, end[order[i]->index].at[j]);
	}
	for (size_t i = 0; end && i <= g->node.n; i++)
		um_vec_fini(&end[i]);
	um_vec_fini(&mine);
	free(end);
	free(order);
	return err;
}

/* An item after the last one of a lane continues it; another item opens a lane or, at the limit, shares one. */
static void deal(struct um_exec *x)
{
	for (uint32_t i = 0; i < x->item.n; i++) {
		struct um_item *it = &x->item.at[i];
		uint32_t lane = x->lanes;

		for (uint32_t l = 0; l < x->lanes && lane == x->lanes; l++)
			for (size_t k = 0; k < it->after.n; k++)
				if (it->after.at[k] == x->last[l])
					lane = l;
		if (lane == UM_LANES_MAX)
			lane = i % UM_LANES_MAX;
		if (lane == x->lanes)
			x->lanes++;
		it->lane = lane;
		x->last[lane] = i;
	}
	for (uint32_t i = 0; i < x->item.n; i++)
		for (size_t k = 0; k < x->item.at[i].after.n; k++) {
			struct um_item *before = &x->item.at[x->item.at[i].after.at[k]];

			before->waited |= before->lane != x->item.at[i].lane;
		}
	for (uint32_t l = 1; l < x->lanes; l++)
		x->item.at[x->last[l]].waited = 1;
}

static int equip(struct um_exec *x)
{
	struct um_gpu *gpu = x->of->gpu;
	const struct um_gpu_api *api = gpu->api;
	int err = api->cudaEventCreateWithFlags(gpu, &x->begun, UM_EVENT_DISABLE_TIMING);

	err = err ? err : api->cudaEventCreateWithFlags(gpu, &x->done, UM_EVENT_DISABLE_TIMING);
	for (uint32_t l = 1; l < x->lanes && !err; l++)
		err = api->cudaStreamCreateWithFlags(gpu, &x->stream[l], UM_STREAM_NON_BLOCKING);
	for (size_t i = 0; i < x->item.n && !err; i++)
		if (x->item.at[i].waited)
			err = api->cudaEventCreateWithFlags(gpu, &x->item.at[i].event, UM_EVENT_DISABLE_TIMING);
	return err;
}

int um_exec_new(struct um_exec **out, const struct um_graph *g, unsigned long long flags)
{
	struct um_exec *x = calloc(1, sizeof *x);
	indices none = {0}, ends = {0};
	int err;

	if (!x)
		return UM_CUDA_NO_MEMORY;
	x->of = um_standin();
	um_standin_lock();
	x->graph = um_graph_copy(g);
	err = x->graph ? unroll(x, x->graph, &none, &ends) : -ENOMEM;
	um_standin_unlock();
	um_vec_fini(&ends);
	if (err) {
		um_exec_free(x);
		return err == -ENOMEM ? UM_CUDA_NO_MEMORY : UM_CUDA_INVALID_VALUE;
	}
	x->flags = flags;
	deal(x);
	err = equip(x);
	if (err)
		um_exec_free(x);
	else
		*out = x;
	return err;
}

static int instantiate(const char *name, void **out, const struct um_graph *g, unsigned long long flags)
{
	int err = um_standin_enter(name);
	struct um_exec *x;

	if (err || !out || !g)
		return err ? err : UM_CUDA_INVALID_VALUE;
	err = um_exec_new(&x, g, flags);
	if (!err)
		*out = x;
	return err;
}

UM_FORWARD(cuGraphInstantiateWithFlags, (void **out, const void *g, unsigned long long flags),
	   instantiate(__func__, out, g, flags))

UM_CALL(cuGraphInstantiate_v2, void **out, const void *g, void **node, char *log, size_t bytes)
{
	if (node)
		*node = NULL;
	if (log && bytes)
		*log = '\0';
	return instantiate(__func__, out, g, 0);
}
UM_FORWARD(cuGraphInstantiate, (void **out, const void *g, void **node, char *log, size_t bytes),
	   cuGraphInstantiate_v2(out, g, node, log, bytes))

struct instantiate_params { /* CUDA_GRAPH_INSTANTIATE_PARAMS */
	unsigned long long flags;
	void *upload_stream, *error_node;
	int result; /* 0 success, 1 error */
};

UM_CALL(cuGraphInstantiateWithParams, void **out, const void *g, struct instantiate_params *p)
{
	int err = p ? instantiate(__func__, out, g, p->flags) : UM_CUDA_INVALID_VALUE;

	if (p) {
		p->error_node = NULL;
		p->result = err != 0;
	}
	return err;
}

UM_CALL(cuGraphExecGetFlags, const struct um_exec *x, unsigned long long *flags)
{
	int err = um_standin_enter(__func__);

	if (err || !x || !flags)
		return err ? err : UM_CUDA_INVALID_VALUE;
	*flags = x->flags;
	return UM_CUDA_OK;
}

/* Work under way keeps its resources: events and streams of the simulator end after their work. */
UM_CALL(cuGraphExecDestroy, struct um_exec *x)
{
	int err = um_standin_enter(__func__);

	if (err || !x)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_exec_free(x);
	return UM_CUDA_OK;
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

static int item_run(const struct um_exec *x, uint32_t i, um_stream stream)
{
	const struct um_item *it = &x->item.at[i];
	struct um_gpu *gpu = x->of->gpu;
	const struct um_gpu_api *api = gpu->api;
	int err = UM_CUDA_OK;

	for (size_t k = 0; k < it->after.n && !err; k++) {
		const struct um_item *before = &x->item.at[it->after.at[k]];

		if (before->lane != it->lane)
			err = api->cudaStreamWaitEvent(gpu, stream, before->event, 0);
	}
	for (size_t k = 0; k < it->work.n && !err && !it->disabled; k++) {
		um_standin_lock();
		um_work_keep(&it->work.at[k]);
		um_standin_unlock();
		err = um_work_run(stream, &it->work.at[k], 0);
	}
	if (it->event && !err)
		err = api->cudaEventRecord(gpu, it->event, stream);
	return err;
}

/* A launch of a graph begins after its previous launch has ended. */
static int launch(const struct um_exec *x, um_stream stream)
{
	struct um_gpu *gpu = x->of->gpu;
	const struct um_gpu_api *api = gpu->api;
	int err = api->cudaStreamWaitEvent(gpu, stream, x->done, 0);

	err = err ? err : api->cudaEventRecord(gpu, x->begun, stream);
	for (uint32_t l = 1; l < x->lanes && !err; l++)
		err = api->cudaStreamWaitEvent(gpu, x->stream[l], x->begun, 0);
	for (uint32_t i = 0; i < x->item.n && !err; i++)
		err = item_run(x, i, x->item.at[i].lane ? x->stream[x->item.at[i].lane] : stream);
	for (uint32_t l = 1; l < x->lanes && !err; l++)
		err = api->cudaStreamWaitEvent(gpu, stream, x->item.at[x->last[l]].event, 0);
	return err ? err : api->cudaEventRecord(gpu, x->done, stream);
}

UM_CALL(cuGraphLaunch, const struct um_exec *x, void *stream)
{
	int err = um_standin_enter(__func__), captured = 0;
	struct um_stream_handle *s;
	um_stream sim = NULL;

	if (err || !x)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_lock();
	s = um_stream_find(stream);
	err = s ? um_capture_guard(s) : UM_CU_INVALID_HANDLE;
	if (!err && s->of != x->of)
		err = um_standin_unsupported("the launch of a graph on another device than the one it is made for");
	if (!err && um_capture_of(s)) {
		captured = 1;
		err = um_capture_child(s, x->graph);
	} else if (!err) {
		sim = s->sim;
	}
	um_standin_unlock();
	return err || captured ? err : launch(x, sim);
}
UM_FORWARD(cuGraphLaunch_ptsz, (const struct um_exec *x, void *s), cuGraphLaunch(x, um_ptsz(s)))

/* Uploads need no preparation. */
UM_CALL(cuGraphUpload, const struct um_exec *x, void *stream)
{
	int err = um_standin_enter(__func__), ok;

	if (err || !x)
		return err ? err : UM_CUDA_INVALID_VALUE;
	um_standin_stream(stream, &ok);
	return ok ? UM_CUDA_OK : UM_CU_INVALID_HANDLE;
}
UM_FORWARD(cuGraphUpload_ptsz, (const struct um_exec *x, void *s), cuGraphUpload(x, um_ptsz(s)))
UM_FORWARD(cuGraphInstantiateWithParams_ptsz, (void **out, const void *g, struct instantiate_params *p),
	   cuGraphInstantiateWithParams(out, g, p))

const struct um_entry um_exec_entries[] = {
	{"cuGraphInstantiate", 10000, cuGraphInstantiate, NULL},
	{"cuGraphInstantiate", 11000, cuGraphInstantiate_v2, NULL},
	{"cuGraphInstantiate", 12000, cuGraphInstantiateWithFlags, NULL},
	{"cuGraphInstantiateWithFlags", 11040, cuGraphInstantiateWithFlags, NULL},
	{"cuGraphInstantiateWithParams", 12000, cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz},
	{"cuGraphExecGetFlags", 12000, cuGraphExecGetFlags, NULL},
	{"cuGraphExecDestroy", 10000, cuGraphExecDestroy, NULL},
	{"cuGraphLaunch", 10000, cuGraphLaunch, cuGraphLaunch_ptsz},
	{"cuGraphUpload", 11010, cuGraphUpload, cuGraphUpload_ptsz},
	{0},
};
