/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.c - opens and closes the simulated GPU, its device table, and the calls that only the simulation has
 */
#include "sim/state.h"

#include <math.h>

void um_sim_tally_at(struct um_sim *sim, uint64_t t, struct um_tally *out)
{
	*out = sim->tally;
	out->ns = t;
	out->resident_bytes = sim->resident * UM_BLOCK_BYTES;
	out->peak_resident_bytes = sim->peak * UM_BLOCK_BYTES;
	out->prefetched_bytes = sim->prefetched * UM_BLOCK_BYTES;
	out->peak_prefetched_bytes = sim->prefetched_peak * UM_BLOCK_BYTES;
}

static void sim_close(struct um_gpu *gpu)
{
	struct um_sim *sim = um_sim_of(gpu);

	if (!gpu)
		return;
	pthread_mutex_lock(&sim->node->lock); /* other devices may be in use */
	for (struct um_sim_lane *l = sim->lanes, *next; l; l = next) {
		next = l->next;
		l->worker->impl = NULL;
		if (l->record)
			um_sim_record_put(l->record);
		free(l);
	}
	for (struct um_sim_stream *s = sim->streams, *next; s; s = next) {
		next = s->next;
		um_sim_stream_end(s);
	}
	sim->lanes = NULL;
	sim->streams = NULL;
	while (sim->mem.n)
		um_sim_mem_leave(sim, sim->mem.at[sim->mem.n - 1]);
	um_vec_fini(&sim->mem);
	um_vec_fini(&sim->mem_order);
	um_vec_fini(&sim->marks);
	um_vec_fini(&sim->pins);
	for (int i = 0; i < UM_SIM_ENGINES; i++)
		um_vec_fini(&sim->engine[i].busy);
	um_sim_node_leave(sim);
	um_sim_ledger_free(sim->ledger);
	um_sim_hazards_close(sim);
	free(sim);
}

static const struct um_gpu_simulation simulation = {
	.run = um_sim_run,
	.sync = um_sim_sync,
	.checks = um_sim_checks,
	.watch_tick = um_sim_watch_tick,
	.watch_address = um_sim_watch_address,
};

static const struct um_gpu_api api = {
	.cudaMallocManaged = um_sim_malloc_managed,
	.cudaFree = um_sim_free,
	.cudaMalloc = um_sim_malloc,
	.cudaMemGetInfo = um_sim_mem_info,
	.cudaMemPrefetchAsync = um_sim_prefetch,
	.cudaMemAdvise = um_sim_advise,
	.cudaMemPrefetchBatchAsync = um_sim_prefetch_batch,
	.cudaMemDiscardBatchAsync = um_sim_discard_batch,
	.cudaMemDiscardAndPrefetchBatchAsync = um_sim_renew_batch,
	.cudaStreamCreateWithFlags = um_sim_stream_create,
	.cudaStreamDestroy = um_sim_stream_destroy,
	.cudaStreamSynchronize = um_sim_stream_sync,
	.cudaDeviceSynchronize = um_sim_sync,
	.cudaStreamWaitEvent = um_sim_stream_wait,
	.cudaStreamIsCapturing = um_sim_stream_capturing,
	.cuStreamGetId = um_sim_stream_id,
	.cudaHostAlloc = um_sim_host_alloc,
	.cudaFreeHost = um_sim_host_free,
	.cudaEventCreateWithFlags = um_sim_event_create,
	.cudaEventDestroy = um_sim_event_destroy,
	.cudaEventRecord = um_sim_event_record,
	.cudaEventQuery = um_sim_event_query,
	.cudaEventSynchronize = um_sim_event_sync,
	.cudaEventElapsedTime = um_sim_event_elapsed,
	.announce = um_sim_announce,
	.now = um_sim_now,
	.worker_start = um_sim_worker_start,
	.worker_stop = um_sim_worker_stop,
	.worker_poke = um_sim_worker_poke,
	.worker_wait = um_sim_worker_wait,
	.simulation = &simulation,
	.close = sim_close,
};

/* The device must hold at least one block, and rates must not be so low that times overflow. */
static int is_valid(const struct um_profile *p, uint64_t capacity)
{
	const double slowest = 1e6; /* bytes/s */

	return capacity >= UM_BLOCK_BYTES && p->h2d * p->eta >= slowest && p->d2h * p->eta >= slowest &&
	       p->h2d * p->b_remote >= slowest && p->duplex >= 0 && p->duplex <= 1 && p->duplex_evict >= 0 &&
	       p->duplex_evict <= 1;
}

int um_sim_open(struct um_gpu **out, const struct um_sim_options *options)
{
	const struct um_profile *p = options ? options->profile : NULL;
	uint64_t capacity = !p ? 0 : options->capacity ? options->capacity : p->capacity;
	struct um_sim *sim;
	int err = -ENOMEM;

	if (!p || !is_valid(p, capacity))
		return -EINVAL;
	sim = calloc(1, sizeof *sim);
	if (!sim)
		return -ENOMEM;
	sim->opt = *options;
	if (options->ledger) {
		sim->ledger = um_sim_ledger_new();
		if (!sim->ledger)
			goto free_sim;
	}
	err = um_sim_hazards_open(sim);
	if (err)
		goto free_ledger;
	err = -ENOMEM;
	if (!um_sim_stream_new(sim)) /* the default stream */
		goto close_hazards;
	sim->profile = *p;
	sim->opt.profile = &sim->profile;
	sim->follow = options->follow_cpu && options->backed && !options->in_core && um_sim_cpu_access_supported();
	sim->check = options->check && options->backed && !sim->follow && um_sim_cpu_access_supported();
	sim->kappa = (uint64_t)llround(p->duplex * 1e6);
	sim->kappa_evict = (uint64_t)llround(p->duplex_evict * 1e6);
	um_sim_thrash_init(sim);
	sim->chunks = sim->chunks_free = capacity / UM_BLOCK_BYTES;
	sim->gpu.api = &api;
	sim->gpu.caps = (struct um_gpu_caps){.concurrent_managed = 1,
					     .discard = 1,
					     .prefetch_batch = 1,
					     .virtual_time = 1,
					     .capacity = sim->chunks * UM_BLOCK_BYTES};
	memcpy(sim->gpu.caps.name, p->name, sizeof sim->gpu.caps.name);
	err = um_sim_node_join(sim, options->beside);
	if (err)
		goto end_stream;
	*out = &sim->gpu;
	return 0;

end_stream:
	um_sim_stream_end(sim->streams);
close_hazards:
	um_sim_hazards_close(sim);
free_ledger:
	um_sim_ledger_free(sim->ledger);
free_sim:
	free(sim);
	return err;
}

static int open_simulator(struct um_gpu **out, const struct um_simulator_options *options)
{
	struct um_sim_options o = {.profile = options->profile,
				   .capacity = options->capacity,
				   .backed = 1,
				   .poison = options->poison,
				   .check = options->check};

	return um_sim_open(out, &o);
}

const struct um_simulator um_sim_simulator = {"sim", open_simulator};

int um_sim_run(struct um_gpu *gpu, um_stream stream, const struct um_sim_kernel *kernel)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_kernel announced;
	struct um_sim_stream *s;
	struct um_sim_walk *w;
	int err;

	if (!kernel || (kernel->n_access && !kernel->access))
		return UM_CUDA_INVALID_VALUE;
	um_sim_enter_call(sim, "a kernel launch");
	s = um_sim_stream_of(sim, stream);
	if (!s || sim->error)
		return um_sim_leave(sim, s ? sim->error : UM_CUDA_INVALID_HANDLE);
	s->waiters++; /* other threads may destroy it meanwhile */
	err = um_sim_load_kernel(sim, kernel->name);
	s->waiters--;
	if (err)
		return um_sim_leave(sim, err);
	announced = *kernel;
	if (kernel->announced && s->announced) {
		if (!kernel->timed)
			announced.ns = s->announced_ns;
		announced.access = s->touches.at;
		announced.n_access = (uint32_t)s->touches.n;
		if (!kernel->pattern)
			announced.pattern = s->announced_pattern;
		s->announced_ns = 0;
	}
	w = um_sim_walk_new(&announced);
	if (!w)
		return um_sim_leave(sim, UM_CUDA_NO_MEMORY);
	um_sim_walk_called(w, um_sim_watch_call(sim, "cudaLaunchKernel_v7000", *um_sim_clock(sim)));
	err = um_sim_stream_push(sim, s, &(struct um_sim_cmd){.kind = UM_SIM_CMD_KERNEL, .kernel = w});
	if (err)
		um_sim_walk_free(w);
	return um_sim_leave(sim, err);
}

int um_sim_sync(struct um_gpu *gpu)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_waiter w;
	int err;

	um_sim_enter_free(sim, "cudaDeviceSynchronize");
	um_sim_waiter_add(sim, &w, UM_SIM_WAITS_DEVICE, NULL, NULL);
	err = um_sim_finish(sim);
	um_sim_waiter_remove(sim, &w);
	return um_sim_leave(sim, err);
}

uint64_t um_sim_now(struct um_gpu *gpu)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t t;

	pthread_mutex_lock(&sim->node->lock);
	t = *um_sim_clock(sim);
	pthread_mutex_unlock(&sim->node->lock);
	return t;
}

int um_sim_mark(struct um_gpu *gpu, const um_stream *streams, unsigned n)
{
	struct um_sim *sim = um_sim_of(gpu);
	size_t mark;
	int err = 0;

	um_sim_enter(sim);
	mark = sim->marks.n;
	if (um_vec_push(&sim->marks, (struct um_sim_mark){.streams = n}))
		return um_sim_leave(sim, UM_CUDA_NO_MEMORY);
	for (unsigned i = 0; i < n && !err; i++) {
		struct um_sim_stream *s = um_sim_stream_of(sim, streams[i]);

		err = s ? um_sim_stream_push(sim, s, &(struct um_sim_cmd){.kind = UM_SIM_CMD_MARK, .mark = mark})
			: UM_CUDA_INVALID_VALUE;
	}
	return um_sim_leave(sim, err);
}

int um_sim_mark_at(struct um_gpu *gpu, unsigned k, struct um_tally *out)
{
	struct um_sim *sim = um_sim_of(gpu);
	int err = -EAGAIN;

	um_sim_enter(sim);
	if (k < sim->marks.n && !sim->marks.at[k].streams) {
		*out = sim->marks.at[k].tally;
		err = 0;
	}
	return um_sim_leave(sim, err);
}

int um_sim_follows(struct um_gpu *gpu)
{
	return um_sim_of(gpu)->follow;
}

int um_sim_checks(struct um_gpu *gpu)
{
	return um_sim_of(gpu)->check;
}

void um_sim_tally(struct um_gpu *gpu, struct um_tally *out)
{
	struct um_sim *sim = um_sim_of(gpu);

	um_sim_enter(sim);
	um_sim_tally_at(sim, sim->now, out);
	um_sim_leave(sim, UM_CUDA_OK);
}

int um_sim_block(struct um_gpu *gpu, const void *ptr, struct um_sim_block_state *out)
{
	struct um_sim *sim = um_sim_of(gpu);
	struct um_sim_mem *m;
	int err = -ENOENT;

	um_sim_enter(sim);
	m = um_sim_mem_find(sim, (uint64_t)(uintptr_t)ptr);
	if (m && m->kind == UM_SIM_MANAGED) {
		const struct um_sim_block *b = &m->block[((uint64_t)(uintptr_t)ptr - m->addr) / UM_BLOCK_BYTES];

		*out = (struct um_sim_block_state){.list = b->list,
						   .chunk = b->chunk,
						   .cpu_chunk = b->cpu_chunk,
						   .gpu = b->gpu,
						   .prefetched = b->prefetched,
						   .cpu = b->cpu,
						   .discarded = b->disc,
						   .mapped = b->map,
						   .remote = b->remote};
		err = 0;
	}
	return um_sim_leave(sim, err);
}
