/* SPDX-License-Identifier: Apache-2.0 */
#include "play/player.h"

#include "runtime/context.h"
#include "sim/sim.h"
#include "play/caching_alloc.h"
#include "play/plan_again.h"
#include "play/play_op.h"
#include "play/streams.h"
#include "io/plan_file.h"
#include "plan/planner.h"
#include "play/trace_period.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[UM_PLAYS] = {"infinite", "on-demand", "prefetch-on-use", "lookahead"};

static const struct um_sim_driver *drivers;
static unsigned n_drivers;

void um_play_drivers(const struct um_sim_driver *list, unsigned n)
{
	drivers = list;
	n_drivers = n;
}

/* NULL: not a driver. */
static const struct um_sim_driver *driver_of(enum um_play_strategy s)
{
	unsigned first = UM_PLAYS;

	while (um_plan_scheme_name(first - UM_PLAYS))
		first++;
	return s >= first && s - first < n_drivers ? &drivers[s - first] : NULL;
}

const char *um_play_strategy_name(enum um_play_strategy s)
{
	const struct um_sim_driver *driver = driver_of(s);

	if (driver)
		return driver->name;
	return s < UM_PLAYS ? names[s] : um_plan_scheme_name((unsigned)(s - UM_PLAYS));
}

int um_play_strategy_parse(const char *name)
{
	const char *is;

	for (int i = 0; (is = um_play_strategy_name((enum um_play_strategy)i)); i++)
		if (strcmp(is, name) == 0)
			return i;
	return -EINVAL;
}

int um_play_strategy_plans(enum um_play_strategy s)
{
	return s >= UM_PLAY_LOOKAHEAD && !driver_of(s);
}

/* The application's view of an iteration, which is ahead of the device's. */
struct host_side {
	uint64_t first_op, in_core_ns, hinted, hints, kind, elsewhere;
	struct um_hints_by_source by;
	const char *name; /* of the trace, may be NULL */
};

struct play {
	const struct um_trace *trace;
	const struct um_play_options *o;
	struct um_play_result *out;
	struct umadv *adv;
	struct um_gpu *gpu;
	const struct um_sim_driver *driver; /* NULL: the plain one */
	void *driving; /* its own; NULL: not open */
	struct um_caching_alloc habit; /* under a driver: addresses of tensors */
	uint64_t kernels; /* launched */
	struct um_trace_period tail;
	void **ptr; /* by id: the tensor's current memory, NULL: dead */
	void **moved; /* buffer for the tail's moves */
	size_t n_ids;
	UM_VEC(struct umadv_use) uses;
	UM_VEC(const void *) outs;
	struct um_play_streams streams;
	uint64_t iteration; /* the one being played; UINT64_MAX: set-up */
	uint64_t iterations; /* to be played */
	uint64_t in_core_ns; /* of this iteration */
	uint64_t first_op; /* ops before this iteration */
	UM_VEC(uint64_t) times; /* times of this iteration's ops */
	size_t op; /* the next one */
	uint64_t begun_ns; /* the app's clock when it began */
	UM_VEC(struct host_side) ended; /* by iteration */
	struct host_side before;
	uint64_t kind; /* of this iteration: hash of its ops */
	const char *name;
};

/* Traces mark ops that may be launched again, without the closure: the player has nothing to launch. */
static int relaunch(void *arg, void *stream)
{
	(void)arg;
	(void)stream;
	return 0;
}

/* Reports the memory of tensors to the driver, as an allocator could. */
static int tell(struct play *p, const void *ptr, uint64_t bytes, int there)
{
	return p->driver ? p->driver->tensor(p->driving, p->kernels, ptr, bytes, there) : 0;
}

static int give(struct play *p, void *ptr)
{
	struct um_tensor *t = p->driver ? um_registry_find(&p->adv->tensors.registry, (uint64_t)(uintptr_t)ptr) : NULL;
	uint64_t bytes = t ? t->bytes : 0;
	int err = t ? tell(p, ptr, bytes, 0) : 0;

	if (err || !t || !(t->flags & UM_TENSOR_ADOPTED))
		return err ? err : umadv_free(p->adv, ptr);
	um_caching_alloc_give(&p->habit, (uint64_t)(uintptr_t)ptr, bytes);
	return umadv_disown(p->adv, ptr, bytes);
}

/* A driver learns addresses, so each tensor reuses its previous address. */
static int take(struct play *p, const struct um_event *e, void **ptr)
{
	enum umadv_role role = e->alloc.role == UM_ROLE_COMM ? UMADV_OTHER : (enum umadv_role)e->alloc.role;
	uint64_t addr;
	int err;

	if (!p->driver)
		return umadv_alloc(p->adv, ptr, e->alloc.bytes, e->alloc.name, role);
	err = um_caching_alloc_take(&p->habit, e->alloc.bytes, &addr);
	if (err)
		return err;
	err = umadv_adopt(p->adv, (void *)(uintptr_t)addr, e->alloc.bytes, e->alloc.name, role);
	if (err)
		return err;
	*ptr = (void *)(uintptr_t)addr;
	return tell(p, *ptr, e->alloc.bytes, 1);
}

static int play_alloc(struct play *p, const struct um_event *e)
{
	uint64_t id = e->alloc.id.v;
	int err = 0;

	if (p->ptr[id]) {
		err = give(p, p->ptr[id]);
		p->ptr[id] = NULL;
	}
	um_play_streams_born(&p->streams, e->alloc.id);
	return err ? err : take(p, e, &p->ptr[id]);
}

static int play_free(struct play *p, const struct um_event *e)
{
	void *ptr = p->ptr[e->free.id.v];

	p->ptr[e->free.id.v] = NULL;
	return ptr ? give(p, ptr) : 0;
}

/* Launches the announced kernel; before the first iteration it takes its announced time. `times`: as long as with
 * everything resident. */
static int run(struct play *p, um_stream stream, const char *name, double times)
{
	struct um_sim_kernel k = {.name = name, .announced = 1, .pattern = (enum um_pattern)p->o->pattern};

	if (p->op < p->times.n) {
		k.timed = 1;
		k.ns = (uint64_t)((double)p->times.at[p->op++] * times + 0.5);
	}
	p->kernels++;
	return um_sim_run(p->gpu, stream, &k) ? -EIO : 0;
}

/* The app's CPU code waits for its ops and then uses the op's ranges. */
static int use_on_cpu(struct play *p, const struct um_op *op)
{
	int err = umadv_host(p->adv, op->name, p->uses.at, p->uses.n);

	if (!err)
		err = um_play_streams_await(&p->streams);
	for (size_t i = 0; i < p->uses.n && !err; i++) {
		const struct umadv_use *u = &p->uses.at[i];

		if (um_sim_host_touch(p->gpu, (void *)(uintptr_t)u->ptr, u->bytes, u->access))
			err = -EIO;
	}
	return err;
}

static int play_op(struct play *p, const struct um_op *op)
{
	uint64_t core_ns = um_play_op_ns(p->o->profile, op);
	struct um_play_workspace workspace = {NULL, 0};
	struct umadv_op_info info = {.struct_size = sizeof info,
				     .flops = op->cost.flops,
				     .bytes = op->cost.bytes,
				     .ns = op->cost.ns,
				     .phase = op->phase,
				     .collective = (char)op->collective};
	um_stream stream;
	int err;

	p->kind = um_play_op_kind(p->kind, op);
	um_vec_clear(&p->uses);
	um_vec_clear(&p->outs);
	if (um_vec_reserve(&p->uses, op->n_uses) || um_vec_reserve(&p->outs, op->n_relaunch + 1u))
		return -ENOMEM;
	for (uint32_t i = 0; i < op->n_uses; i++) {
		const struct um_use *u = &op->uses[i];
		char *base = p->ptr[u->id.v];

		if (base)
			p->uses.at[p->uses.n++] = umadv_use_(base + u->off, u->bytes, u->touched, u->access);
	}
	if (op->stream == UM_STREAM_CPU)
		return use_on_cpu(p, op);
	for (uint32_t i = 0; i < op->n_relaunch; i++)
		p->outs.at[p->outs.n++] = p->ptr[op->relaunch[i].v];
	info.uses = p->uses.at;
	info.n_uses = p->uses.n;
	info.relaunch = op->relaunchable ? relaunch : NULL;
	info.relaunch_outs = p->outs.at;
	info.n_relaunch_outs = p->outs.n;
	err = um_play_streams_of(&p->streams, op, &stream);
	if (!err)
		err = um_play_offer(p->adv, op, p->o->strategy == UM_PLAY_INFINITE, &info, &workspace);
	if (!err && workspace.ptr)
		err = tell(p, workspace.ptr, workspace.bytes, 1);
	if (!err)
		err = umadv_op_ex(p->adv, stream, op->name, &info);
	if (!err)
		err = run(p, stream, op->name, op->n_ws ? (double)info.ns / (double)core_ns : 1);
	if (!err && workspace.ptr)
		err = tell(p, workspace.ptr, workspace.bytes, 0);
	p->in_core_ns += core_ns;
	return err;
}

/* Times of the ops of the iteration that begins with event `i`. */
static int take_times(struct play *p, size_t i)
{
	uint64_t n = p->iteration == UINT64_MAX ? 0 : p->iteration + 1;

	um_vec_clear(&p->times);
	p->op = 0;
	for (i++; i < um_trace_length(p->trace) && um_trace_event(p->trace, i)->kind != UM_EV_ITER; i++) {
		const struct um_event *e = um_trace_event(p->trace, i);

		if (e->kind == UM_EV_OP && e->op.stream != UM_STREAM_CPU &&
		    um_vec_push(&p->times, um_play_op_ns(p->o->profile, &e->op)))
			return -ENOMEM;
	}
	um_jitter_apply(&p->o->jitter, n, p->times.at, p->times.n);
	return 0;
}

static int watch_iteration(const struct play *p)
{
	struct um_activity a = {.kind = UM_ACT_RANGE,
				.begin = (int64_t)p->begun_ns,
				.end = (int64_t)um_sim_now(p->gpu),
				.process = 1,
				.thread = 1,
				.device = -1,
				.stream = -1,
				.domain = UM_PLAY_DOMAIN};
	char name[64];

	snprintf(name, sizeof name, UM_PLAY_RANGE, (unsigned long long)p->iteration);
	a.name = name;
	return p->o->watch ? um_activity_feed(p->o->watch, &a) : 0;
}

/* Ends the current iteration, if any. */
static int end_iteration(struct play *p)
{
	struct umadv_stats st = {.struct_size = sizeof st};

	if (p->iteration == UINT64_MAX)
		return 0;
	if (umadv_stats_get(p->adv, &st))
		return -EINVAL;
	struct host_side now = {.hinted = st.hinted_iterations,
				.hints = um_context_hints(p->adv),
				.elsewhere = st.allocs_elsewhere,
				.by = um_context_hints_by_source(p->adv)};
	struct host_side it = {.first_op = p->first_op,
			       .in_core_ns = p->in_core_ns,
			       .hinted = now.hinted - p->before.hinted,
			       .hints = now.hints - p->before.hints,
			       .elsewhere = now.elsewhere - p->before.elsewhere,
			       .kind = p->kind,
			       .name = p->name};

	for (int i = 0; i < UM_HINT_SOURCES; i++) {
		it.by.hints[i] = now.by.hints[i] - p->before.by.hints[i];
		it.by.prefetch_bytes[i] = now.by.prefetch_bytes[i] - p->before.by.prefetch_bytes[i];
	}

	if (um_vec_push(&p->ended, it))
		return -ENOMEM;
	p->before = now;
	return watch_iteration(p);
}

static int play_iter(struct play *p, const char *name)
{
	int err = end_iteration(p);

	if (err)
		return err;
	p->iteration = p->iteration == UINT64_MAX ? 0 : p->iteration + 1;
	p->in_core_ns = 0;
	p->kind = 0;
	p->name = name;
	p->first_op = p->kernels;
	um_caching_alloc_iter(&p->habit);
	p->begun_ns = um_sim_now(p->gpu);
	if (um_play_streams_mark(&p->streams))
		return -ENOMEM;
	if (p->o->progress)
		p->o->progress(p->o->user, p->iteration, p->iterations);
	return um_trace_is_marked(p->trace) ? umadv_iter(p->adv, name) : 0; /* else the library finds it */
}

/* Plays events [from, to) up to the begin of the iteration after the last wanted one. 1: stopped there. */
static int play_span(struct play *p, size_t from, size_t to)
{
	int err = 0;

	for (size_t i = from; i < to && !err; i++) {
		const struct um_event *e = um_trace_event(p->trace, i);

		switch (e->kind) {
		case UM_EV_ALLOC:
			err = play_alloc(p, e);
			break;
		case UM_EV_FREE:
			err = play_free(p, e);
			break;
		case UM_EV_OP:
			err = play_op(p, &e->op);
			break;
		case UM_EV_ITER:
			if (p->iteration != UINT64_MAX && p->iteration + 1 == p->iterations)
				return 1;
			err = take_times(p, i);
			if (!err)
				err = play_iter(p, e->iter.name);
			break;
		case UM_EV_DEAD:
			if (p->ptr[e->free.id.v])
				err = umadv_dead(p->adv, p->ptr[e->free.id.v]);
			break;
		}
		if (p->o->progress && i % 4096 == 0)
			p->o->progress(p->o->user, p->iteration == UINT64_MAX ? 0 : p->iteration, p->iterations);
	}
	return err;
}

/* Ends the period: each tensor takes its role of the next one. */
static int next_period(struct play *p)
{
	const struct um_trace_period *t = &p->tail;
	int err = 0;

	um_play_streams_move(&p->streams, t);
	for (size_t i = 0; i < t->moves.n; i++)
		p->moved[i] = p->ptr[t->moves.at[i].from];
	for (size_t i = 0; i < t->moves.n; i++)
		p->ptr[t->moves.at[i].from] = NULL;
	for (size_t i = 0; i < t->moves.n && !err; i++) {
		void **to = &p->ptr[t->moves.at[i].to];

		if (*to && p->moved[i])
			err = give(p, *to);
		if (p->moved[i])
			*to = p->moved[i];
	}
	return err;
}

static int play_all(struct play *p)
{
	size_t end = um_trace_length(p->trace);
	int err = play_span(p, 0, end);

	while (!err) {
		err = next_period(p);
		if (!err)
			err = play_span(p, p->tail.begin, end);
	}
	if (err < 0)
		return err;
	err = end_iteration(p);
	if (!err && um_play_streams_mark(&p->streams))
		err = -ENOMEM;
	if (!err)
		err = umadv_sim_sync(p->adv);
	return err;
}

static int collect(struct play *p)
{
	struct um_play_result *r = p->out;
	struct um_tally a, b;

	for (unsigned k = 0; k < p->ended.n; k++) {
		const struct host_side *h = &p->ended.at[k];

		if (um_sim_mark_at(p->gpu, k, &a) || um_sim_mark_at(p->gpu, k + 1, &b))
			return -EIO;
		struct um_play_iteration it = {.first_op = h->first_op,
					       .ns = b.ns - a.ns,
					       .faults = b.faults - a.faults,
					       .h2d_bytes = b.h2d_bytes - a.h2d_bytes,
					       .d2h_bytes = b.d2h_bytes - a.d2h_bytes,
					       .peak_resident_bytes = b.peak_resident_bytes,
					       .peak_prefetched_bytes = b.peak_prefetched_bytes,
					       .hints = h->hints,
					       .by = h->by,
					       .in_core_ns = h->in_core_ns,
					       .kind = h->kind,
					       .name = h->name,
					       .elsewhere = h->elsewhere,
					       .hinted = h->hinted != 0};

		it.stall_ns = it.ns > h->in_core_ns ? it.ns - h->in_core_ns : 0;
		if (um_vec_push(&r->iterations, it))
			return -ENOMEM;
		r->host_bytes = b.host_bytes;
		if (it.hinted && r->first_hinted_iteration < 0)
			r->first_hinted_iteration = k;
	}
	r->in_core_ns = p->in_core_ns;
	um_play_result_settle(r, p->o->means);
	return 0;
}

static int set_string(char **to, const char *from)
{
	char *s = from ? strdup(from) : NULL;

	if (from && !s)
		return -ENOMEM;
	free(*to);
	*to = s;
	return 0;
}

static int save(struct play *p)
{
	struct um_plan *plan = &p->adv->replan.plan;
	struct um_diag diag;
	int err;

	if (!plan->sched.ops.n) {
		snprintf(p->out->why, sizeof p->out->why, "no plan after %llu iterations%s",
			 (unsigned long long)p->iterations, p->iterations < 2 ? ": one more is needed" : "");
		return -ENODATA;
	}
	err = set_string(&plan->workload, um_trace_header(p->trace)->workload);
	if (!err && p->o->recompute)
		err = um_plan_again(plan, p->o->profile);
	if (!err)
		err = um_plan_check(plan, &p->out->plan, p->out->why, sizeof p->out->why);
	err = err ? err : um_compiled_plan_host(plan, NULL, 0, &p->out->plan.host_bytes);
	if (!err && p->o->planned)
		err = p->o->planned(p->o->planned_user, plan);
	if (err || !p->o->save_plan)
		return err;
	um_diag_init(&diag, p->o->save_plan);
	err = um_plan_write(p->o->save_plan, plan, &diag);
	if (err)
		um_diag_line(&diag, p->out->why, sizeof p->out->why);
	return err ? -EIO : 0;
}

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	const struct um_play_options *o = user;

	(void)level;
	if (o->log)
		o->log(o->user, line);
}

static int start(struct play *p)
{
	const struct um_play_options *o = p->o;
	int infinite = o->strategy == UM_PLAY_INFINITE;
	struct um_sim_options so = {.profile = o->profile,
				    .capacity = o->device_bytes ? o->device_bytes : o->budget,
				    .in_core = infinite,
				    .ledger = o->opened != NULL,
				    .watch = o->watch};
	struct umadv_options ao = {.struct_size = sizeof ao,
				   .device = UMADV_DEVICE_SIM,
				   .budget = o->budget,
				   .strategy = infinite || p->driver ? "on-demand" : um_play_strategy_name(o->strategy),
				   .log = on_log,
				   .log_user = (void *)(uintptr_t)o,
				   .log_level = UMADV_LOG_WARN,
				   .plan_ms = o->plan_ms,
				   .evict = o->evict,
				   .host_memory = o->host_bytes,
				   .nvtx = UMADV_NVTX_OFF,
				   .referee = o->save_plan ? UMADV_REFEREE_OFF : UMADV_REFEREE_ON};
	int err = o->gpu ? 0 : um_sim_open(&p->gpu, &so);

	p->gpu = o->gpu ? o->gpu : p->gpu;
	if (!err && o->opened)
		o->opened(o->opened_user, p->gpu);
	err = err ? err : um_context_open(&p->adv, &ao, p->gpu, o->profile);
	if (!err)
		p->adv->no_relaunches = 1; /* plan_again.h */
	if (!err && o->watch)
		err = um_context_watch(p->adv, o->watch);
	err = err ? err : um_play_streams_init(&p->streams, p->gpu, p->trace, p->n_ids, p->tail.moves.n);
	if (!err && p->driver) {
		um_caching_alloc_init(&p->habit, p->gpu);
		err = p->driver->open(&p->driving, p->gpu);
	}
	return err;
}

/* Less than a block holds nothing. An op that exceeds the budget is paged by the driver. */
static int too_small(uint64_t budget, char *why, size_t size)
{
	if (!budget || budget >= UM_BLOCK_BYTES)
		return 0;
	snprintf(why, size, "the budget of %llu bytes is less than one block of %llu MiB", (unsigned long long)budget,
		 UM_BLOCK_BYTES >> 20);
	return -E2BIG;
}

int um_play(const struct um_trace *trace, const struct um_play_options *o, struct um_play_result *out)
{
	struct play p = {.trace = trace, .o = o, .out = out, .iteration = UINT64_MAX, .driver = driver_of(o->strategy)};
	struct umadv_stats stats;
	int err;

	memset(out, 0, sizeof *out);
	out->first_hinted_iteration = -1;
	p.iterations = um_trace_is_marked(trace) || um_trace_iterations(trace) > 1 ? o->iterations : 1;
	err = too_small(o->budget, out->why, sizeof out->why);
	err = err ? err : um_trace_period_find(trace, &p.tail);
	if (err == -ENODATA)
		snprintf(out->why, sizeof out->why, "the trace has no iterations");
	for (size_t i = 0; i < um_trace_length(trace); i++) {
		const struct um_event *e = um_trace_event(trace, i);

		if (e->kind == UM_EV_ALLOC && e->alloc.id.v >= p.n_ids)
			p.n_ids = (size_t)e->alloc.id.v + 1;
	}
	p.ptr = calloc(p.n_ids + 1, sizeof *p.ptr);
	p.moved = calloc(p.tail.moves.n + 1, sizeof *p.moved);
	err = err ? err : p.ptr && p.moved ? start(&p) : -ENOMEM;
	if (err && !p.gpu && o->gpu)
		o->gpu->api->close(o->gpu);
	if (!err)
		err = play_all(&p);
	if (!err)
		err = collect(&p);
	if (!err) {
		um_context_stats(p.adv, &stats);
		out->planned_ns = stats.plan_ns;
		out->played_ns = stats.played_ns;
	}
	if (!err && (o->save_plan || o->planned))
		err = save(&p);
	if (p.driving)
		p.driver->close(p.driving);
	um_play_streams_fini(&p.streams);
	um_context_close(p.adv);
	um_caching_alloc_fini(&p.habit);
	free(p.ptr);
	free(p.moved);
	um_vec_fini(&p.uses);
	um_vec_fini(&p.outs);
	um_vec_fini(&p.ended);
	um_vec_fini(&p.times);
	um_trace_period_fini(&p.tail);
	return err;
}
