/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_evict.c - compares eviction by the library with eviction by the driver
 *
 * A program cycles through more blocks than memory holds, one per op, and uses some others that stay. Memory for the
 * next block is freed by:
 *
 *     home      workers, which prefetch used blocks to the host
 *     driver    the driver: a prefetch without free memory makes it evict the blocks that it served longest ago. Blocks
 *               that should stay are refreshed by prefetches that copy nothing
 *     let       as home, read-mostly: workers remove the advice and give it again
 *     ghost     as driver, read-mostly
 *
 * Prints the time per block (us) and faults, which show that a block that should stay was evicted.
 */
#include "sim/sim.h"
#include "model/event.h"
#include "model/profile.h"
#include "replay/lanes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define B UM_BLOCK_BYTES
#define STREAMS 4
#define INS 4
#define OUTS UM_LANES_OUT_MOST
#define TOUCHED 32u /* blocks in one call that refreshes */
#define SLACK 8 /* blocks of room that the driver's order is not counted on for */

enum way { HOME, DRIVER, LET, GHOST, WAYS };

static const char *const way_names[] = {"home", "driver", "let", "ghost"};

struct worker {
	struct um_worker worker;
	struct run *run;
	int out, called; /* what a call has done is said a step later: when it is over */
	uint64_t next, stride;
};

struct run {
	struct um_gpu *gpu;
	enum way way;
	uint64_t n, kept, room, items; /* blocks that go round, are kept, have room; ops in all */
	char *memory;
	int n_outs; /* workers that take away */
	um_stream compute, in[STREAMS], away[OUTS];
	uint32_t *arrived;
	um_event_handle *done; /* by op */
	uint64_t launched, turn, due; /* ops; which is to be brought next; blocks to be refreshed */
	uint64_t touched;
	struct worker ins[INS], outs[OUTS];
};

static void must(int code)
{
	if (code) {
		fprintf(stderr, "driver_evict: a call returned %d\n", code);
		exit(1);
	}
}

static char *block_of(const struct run *r, uint64_t item)
{
	return r->memory + (r->kept + item % r->n) * B;
}

static void poke_all(struct run *r)
{
	for (int i = 0; i < INS; i++)
		r->gpu->api->worker_poke(r->gpu, &r->ins[i].worker);
	for (int i = 0; i < r->n_outs; i++)
		r->gpu->api->worker_poke(r->gpu, &r->outs[i].worker);
}

static uint64_t least(const struct worker *w, int n)
{
	uint64_t out = w[0].next;

	for (int i = 1; i < n; i++)
		out = w[i].next < out ? w[i].next : out;
	return out;
}

/* Op `item` is over, or what to wait for. */
static int is_over(struct run *r, uint64_t item, struct um_step *wait)
{
	*wait = (struct um_step){.kind = UM_STEP_IDLE};
	if (item >= r->launched)
		return 0;
	if (r->gpu->api->cudaEventQuery(r->gpu, r->done[item]) != UM_CUDA_NOT_READY)
		return 1;
	*wait = (struct um_step){.kind = UM_STEP_WAIT, .event = r->done[item]};
	return 0;
}

/* All that is kept is refreshed once while as many blocks come as there is room for. */
static void refresh(struct run *r, um_stream s)
{
	const struct um_gpu_api *api = r->gpu->api;

	r->due += r->kept * 1024 / (r->room - SLACK) + 1;
	while (r->kept && r->due / 1024 >= (r->kept < TOUCHED ? r->kept : TOUCHED)) {
		uint64_t n = r->kept - r->touched < TOUCHED ? r->kept - r->touched : TOUCHED;

		must(api->cudaMemPrefetchAsync(r->gpu, r->memory + r->touched * B, n * B, um_on_device(0), 0, s));
		r->touched = (r->touched + n) % r->kept;
		r->due -= n * 1024;
	}
}

static struct um_step bring(struct worker *w)
{
	struct run *r = w->run;
	const struct um_gpu_api *api = r->gpu->api;
	struct um_step wait = {.kind = UM_STEP_IDLE};
	uint64_t item = w->next, room = r->room;
	um_stream s = r->in[item % STREAMS];

	if (item >= r->items || item != r->turn)
		return wait;
	if (r->way == DRIVER || r->way == GHOST) {
		room -= SLACK;
		if (item >= room && !is_over(r, item - room, &wait))
			return wait;
	} else if (item >= room && least(r->outs, r->n_outs) <= item - room) {
		return wait;
	}
	/* As the library does: a prefetch on an idle stream is worked off by its caller. */
	if (item >= STREAMS && (int32_t)(r->arrived[item % STREAMS] - (uint32_t)(item + 1 - STREAMS)) < 0)
		return (struct um_step){.kind = UM_STEP_POLL};
	r->turn++;
	if (r->way == DRIVER || r->way == GHOST)
		refresh(r, s);
	poke_all(r);
	must(api->cudaMemPrefetchAsync(r->gpu, block_of(r, item), B, um_on_device(0), 0, s));
	must(um_sim_write_value(r->gpu, s, &r->arrived[item % STREAMS], (uint32_t)item + 1));
	w->next += w->stride;
	poke_all(r);
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static struct um_step take(struct worker *w)
{
	struct run *r = w->run;
	const struct um_gpu_api *api = r->gpu->api;
	struct um_step wait = {.kind = UM_STEP_IDLE};
	char *p = block_of(r, w->next);

	if (w->called) {
		w->called = 0;
		w->next += w->stride;
		poke_all(r);
		return (struct um_step){.kind = UM_STEP_AGAIN};
	}
	if (w->next >= r->items || r->way == DRIVER || r->way == GHOST || !is_over(r, w->next, &wait))
		return wait;
	if (r->way == LET && w->next >= r->n) {
		must(api->cudaMemAdvise(r->gpu, p, B, UM_ADV_UNSET_READ_MOSTLY, um_on_device(0)));
		must(api->cudaMemAdvise(r->gpu, p, B, UM_ADV_SET_READ_MOSTLY, um_on_device(0)));
	} else {
		must(api->cudaMemPrefetchAsync(r->gpu, p, B, um_on_host(), 0, r->away[w - r->outs]));
		if (r->way == LET)
			must(api->cudaMemAdvise(r->gpu, p, B, UM_ADV_SET_READ_MOSTLY, um_on_device(0)));
	}
	w->called = 1;
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static struct um_step step(void *arg)
{
	struct worker *w = arg;

	return w->out ? take(w) : bring(w);
}

static void start(struct run *r, struct worker *w, int n, int out)
{
	for (int i = 0; i < n; i++) {
		w[i] = (struct worker){.run = r, .out = out, .next = (uint64_t)i, .stride = (uint64_t)n};
		w[i].worker = (struct um_worker){.step = step, .arg = &w[i], .name = "worker"};
		must(r->gpu->api->worker_start(r->gpu, &w[i].worker));
	}
}

/* All that is kept is there; then so many ops. Returns when the last is over, ns. */
static uint64_t run(const struct um_profile *p, enum way way, uint64_t n, uint64_t kept, uint64_t room, uint64_t items,
		    uint64_t ns, uint32_t access, uint64_t *faults)
{
	struct um_sim_options o = {.profile = p, .capacity = (kept + room) * B};
	uint64_t copy = (uint64_t)((double)B * 1e9 / (p->d2h * p->eta));
	struct run r = {.way = way, .n = n, .kept = kept, .room = room, .items = items};
	const struct um_gpu_api *api;
	struct um_tally tally;
	void *ptr;
	uint64_t end;

	r.n_outs = (int)um_lanes_out_workers(p->c_pf + p->c_pf_cpu, copy);
	must(um_sim_open(&r.gpu, &o));
	api = r.gpu->api;
	must(api->cudaMallocManaged(r.gpu, &ptr, (n + kept) * B, 1));
	r.memory = ptr;
	must(api->cudaHostAlloc(r.gpu, &ptr, sizeof *r.arrived * STREAMS, 0));
	r.arrived = calloc(STREAMS, sizeof *r.arrived);
	r.done = calloc(items, sizeof *r.done);
	must(api->cudaStreamCreateWithFlags(r.gpu, &r.compute, UM_STREAM_NON_BLOCKING));
	for (int i = 0; i < STREAMS; i++)
		must(api->cudaStreamCreateWithFlags(r.gpu, &r.in[i], UM_STREAM_NON_BLOCKING));
	for (int i = 0; i < r.n_outs; i++)
		must(api->cudaStreamCreateWithFlags(r.gpu, &r.away[i], UM_STREAM_NON_BLOCKING));
	must(um_sim_host_touch(r.gpu, r.memory, (n + kept) * B, UM_WRITE));
	if (way == GHOST)
		must(api->cudaMemAdvise(r.gpu, r.memory + kept * B, n * B, UM_ADV_SET_READ_MOSTLY, um_on_device(0)));
	if (kept)
		must(api->cudaMemPrefetchAsync(r.gpu, r.memory, kept * B, um_on_device(0), 0, r.in[0]));
	must(um_sim_sync(r.gpu));
	start(&r, r.ins, INS, 0);
	start(&r, r.outs, r.n_outs, 1);
	for (uint64_t i = 0; i < items; i++) {
		struct um_touch t[2] = {{block_of(&r, i), B, 0, access},
					{r.memory + (kept ? i % kept : 0) * B, B, 0, UM_READ}};
		struct um_sim_kernel k = {.name = "op", .ns = ns, .access = t, .n_access = kept ? 2 : 1};

		must(um_sim_wait_value(r.gpu, r.compute, &r.arrived[i % STREAMS], (uint32_t)i + 1));
		must(um_sim_run(r.gpu, r.compute, &k));
		must(api->cudaEventCreateWithFlags(r.gpu, &r.done[i], UM_EVENT_DISABLE_TIMING));
		must(api->cudaEventRecord(r.gpu, r.done[i], r.compute));
		r.launched = i + 1;
		poke_all(&r);
	}
	must(um_sim_sync(r.gpu));
	end = um_sim_now(r.gpu);
	um_sim_tally(r.gpu, &tally);
	*faults = tally.faults;
	api->close(r.gpu);
	free(r.arrived);
	free(r.done);
	return end;
}

int main(int argc, char **argv)
{
	static const uint64_t shapes[][2] = {{0, 256}, {128, 128}, {192, 64}, {224, 32}, {240, 16}};
	const uint64_t n = 512;

	printf("%-8s %-6s %5s %5s %8s", "profile", "blocks", "kept", "room", "link us");
	for (int w = 0; w < WAYS; w++)
		printf(" %10s", way_names[w]);
	printf("\n");
	for (int a = 1; a < argc; a++) {
		const struct um_profile *p = um_profile_find(argv[a]);

		if (!p) {
			fprintf(stderr, "driver_evict: no profile '%s'\n", argv[a]);
			return 2;
		}
		for (size_t i = 0; i < 2 * (sizeof shapes / sizeof *shapes); i++) {
			const uint64_t *s = shapes[i / 2];
			uint32_t access = i % 2 ? UM_READ : UM_UPDATE;
			double link = (double)B * 1e9 / (p->h2d * p->eta);

			printf("%-8s %-6s %5u %5u %8.1f", argv[a], i % 2 ? "read" : "update", (unsigned)s[0],
			       (unsigned)s[1], link / 1e3);
			for (int w = 0; w < WAYS; w++) {
				uint64_t f[2], t;

				if ((w == LET || w == GHOST) && access & UM_WRITE)
					continue;
				t = run(p, (enum way)w, n, s[0], s[1], 4 * n, (uint64_t)(link / 5), access, &f[1]) -
				    run(p, (enum way)w, n, s[0], s[1], 2 * n, (uint64_t)(link / 5), access, &f[0]);
				printf(" %9.1f%s", (double)t / 2e3 / (double)n, f[1] > f[0] ? "!" : " ");
			}
			printf("\n");
		}
	}
	return 0;
}
