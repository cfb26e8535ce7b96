/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - reports the activity of the simulated GPU as a profiler would record it
 *
 * Calls belong to the program, or to the helper thread whose step runs. A copy of non-adjacent pages, or of faulted and
 * added ones, is several migrations, as in the driver: each has its share of the time.
 */
#include "sim/state.h"

#define APP_THREAD 1u /* helper threads have the numbers after it */

#define WATCH_FROM (0x7ull << 44) /* first address */

/* The watcher keeps its own errors. */
static void report(struct um_sim *sim, const struct um_activity *a)
{
	um_activity_feed(sim->opt.watch, a);
}

static struct um_activity activity(enum um_activity_kind kind, uint64_t begin, uint64_t end)
{
	return (struct um_activity){.kind = kind,
				    .begin = (int64_t)begin,
				    .end = (int64_t)um_sim_later(begin, end),
				    .process = 1,
				    .device = 0,
				    .stream = -1};
}

/* The calling thread. */
static uint64_t thread_of(const struct um_sim *sim)
{
	uint64_t n = APP_THREAD;

	for (const struct um_sim_lane *l = sim->lanes; sim->node->lane && l; l = l->next) {
		n++;
		if (l == sim->node->lane)
			return n;
	}
	return n;
}

/* The clock advances, so that calls without a duration differ in time, also across iterations. */
uint64_t um_sim_watch_call(struct um_sim *sim, const char *name, uint64_t begin)
{
	struct um_activity a;

	if (!sim->opt.watch)
		return 0;
	a = activity(UM_ACT_CALL, begin, ++*um_sim_clock(sim));
	a.device = -1;
	a.thread = thread_of(sim);
	a.name = name;
	a.correlation = ++sim->correlation;
	report(sim, &a);
	return a.correlation;
}

void um_sim_watch_kernel(struct um_sim *sim, const struct um_sim_stream *s, const char *name, uint64_t correlation,
			 uint64_t begin, uint64_t end)
{
	struct um_activity a;

	if (!sim->opt.watch)
		return;
	a = activity(UM_ACT_KERNEL, begin, end);
	a.name = name;
	a.stream = (int32_t)s->serial;
	a.correlation = correlation;
	report(sim, &a);
}

void um_sim_watch_copy(struct um_sim *sim, const struct um_sim_stream *s, enum um_activity_kind kind,
		       enum um_activity_dir dir, uint64_t bytes, uint64_t correlation, uint64_t begin, uint64_t end)
{
	struct um_activity a;

	if (!sim->opt.watch)
		return;
	a = activity(kind, begin, end);
	a.dir = dir;
	a.bytes = bytes;
	a.stream = (int32_t)s->serial;
	a.correlation = correlation;
	report(sim, &a);
}

/* Offset of a page in its allocation. */
static uint64_t offset_of(const struct um_sim_block *b, unsigned page)
{
	return (uint64_t)(b - b->mem->block) * UM_BLOCK_BYTES + page * (uint64_t)UM_SIM_PAGE;
}

int um_sim_is_watched(const struct um_sim *sim)
{
	return sim->opt.watch || sim->counting;
}

/* Reports an event of managed memory to the watcher and to the counter. */
static void report_memory(struct um_sim *sim, const struct um_sim_mem *m, uint64_t off, struct um_activity *a)
{
	a->address = m->watch_addr + off;
	if (sim->opt.watch)
		report(sim, a);
	a->address = m->addr + off;
	if (sim->counting)
		um_activity_feed(sim->counting, a);
}

void um_sim_count_moves(struct um_gpu *gpu, struct um_activity_sink *sink)
{
	struct um_sim *sim = um_sim_of(gpu);

	um_sim_enter(sim);
	sim->counting = sink;
	um_sim_leave(sim, 0);
}

void um_sim_watch_moved(struct um_sim *sim, const struct um_sim_block *b, const struct um_sim_segment *seg, unsigned n,
			int to_device, enum um_sim_cause cause, uint64_t begin, uint64_t end)
{
	static const enum um_activity_cause causes[] = {UM_CAUSE_PREFETCH, UM_CAUSE_DEMAND, UM_CAUSE_EVICTION};
	uint64_t all = 0, before = 0;

	if (!um_sim_is_watched(sim))
		return;
	for (unsigned i = 0; i < n; i++)
		all += seg[i].bytes;
	for (unsigned i = 0; i < n; before += seg[i++].bytes) {
		uint64_t after = before + seg[i].bytes;
		struct um_activity a = activity(UM_ACT_MIGRATION, begin + (end - begin) * before / all,
						begin + (end - begin) * after / all);

		a.dir = to_device ? UM_DIR_H2D : UM_DIR_D2H;
		a.cause = seg[i].added ? UM_CAUSE_SPECULATIVE : causes[cause];
		a.bytes = seg[i].bytes;
		report_memory(sim, b->mem, offset_of(b, 0) + seg[i].off, &a);
	}
}

void um_sim_watch_faults(struct um_sim *sim, const struct um_sim_mem *m, uint64_t off, int write, unsigned entries,
			 uint64_t begin, uint64_t end)
{
	struct um_activity a;

	if (!um_sim_is_watched(sim) || !entries)
		return;
	a = activity(UM_ACT_GPU_FAULT, begin, end);
	a.faults = entries;
	a.access = write ? UM_ACCESS_WRITE : UM_ACCESS_READ;
	report_memory(sim, m, off, &a);
}

void um_sim_watch_cpu_faults(struct um_sim *sim, const struct um_sim_block *b, uint32_t page, uint64_t from, unsigned n,
			     uint64_t at)
{
	if (!um_sim_is_watched(sim))
		return;
	for (unsigned i = 0; i < n; i++) {
		struct um_activity a = activity(UM_ACT_CPU_FAULT, at, at);
		uint64_t off = offset_of(b, (unsigned)__builtin_ctz(page));

		off += i * (uint64_t)(UM_SIM_PAGE / UM_SIM_SUBPAGES);
		a.faults = 1;
		report_memory(sim, b->mem, um_sim_later(off, from), &a);
	}
}

void um_sim_watch_memory(struct um_sim *sim, struct um_sim_mem *m, int born, uint64_t at)
{
	struct um_activity a;

	if (!sim->opt.watch || (m->kind != UM_SIM_MANAGED && m->kind != UM_SIM_DEVICE))
		return;
	if (born) {
		m->watch_addr = um_sim_later(sim->watch_end, WATCH_FROM);
		sim->watch_end = m->watch_addr + (m->bytes / UM_BLOCK_BYTES + 1) * UM_BLOCK_BYTES;
	}
	a = activity(born ? UM_ACT_ALLOC : UM_ACT_FREE, at, at);
	a.address = m->watch_addr;
	a.bytes = m->bytes;
	a.managed = m->kind == UM_SIM_MANAGED;
	report(sim, &a);
}

uint64_t um_sim_watch_tick(struct um_gpu *gpu)
{
	struct um_sim *sim = um_sim_of(gpu);
	uint64_t t;

	pthread_mutex_lock(&sim->node->lock);
	t = (*um_sim_clock(sim))++;
	pthread_mutex_unlock(&sim->node->lock);
	return t;
}

uint64_t um_sim_watch_address(struct um_gpu *gpu, uint64_t addr)
{
	struct um_sim *sim = um_sim_of(gpu);
	const struct um_sim_mem *m;
	uint64_t reported = 0;

	pthread_mutex_lock(&sim->node->lock);
	m = um_sim_mem_find(sim, addr);
	if (m && (m->kind == UM_SIM_MANAGED || m->kind == UM_SIM_DEVICE))
		reported = m->watch_addr + (addr - m->addr);
	pthread_mutex_unlock(&sim->node->lock);
	return reported;
}
