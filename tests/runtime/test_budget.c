/* SPDX-License-Identifier: Apache-2.0
 *
 * A budget is kept by every strategy, also on devices that hold more: each resident page is attributed to the prefetch
 * or to the fault that brought it, and prefetches never make more resident than the budget. Made-up programs under the
 * planner are in test_results.c.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "io/umtrace.h"
#include "replay/block_lru.h"

#include "budget_kept.h"

#define MIB (1ull << 20)
#define BUDGET (32 * MIB)
#define TENSORS 16

/* --- the list --------------------------------------------------------------------------------------------------- */

static void blocks(void)
{
	const uint64_t b = UM_BLOCK_BYTES;
	struct um_block_lru l;

	if (um_block_lru_init(&l, 3))
		tap_bail("no memory");
	is_int(um_block_lru_add_range(&l, 10 * b + 5, 2 * b - 5), 0, "a range of two blocks fits into three");
	is_int(um_block_lru_add_range(&l, 11 * b, 3 * b), -ENOSPC, "a range with two more blocks does not fit");
	is_u64(l.by_addr.n, 2, "a range that does not fit adds nothing");
	is_int(um_block_lru_add_range(&l, 11 * b, 2 * b), 0, "a range with one more block fits");
	um_block_lru_use(&l, l.head);
	is_u64(l.head->node.a, 11 * b, "the block that was used last is not the least recently used one");
	um_block_lru_remove_range(&l, 11 * b, 1);
	ok(!um_block_lru_find(&l, 11 * b) && um_block_lru_find(&l, 12 * b), "a block is removed by any byte of it");
	is_int(um_block_lru_add(&l, 20 * b), 0, "its place is used again");
	is_int(um_block_lru_add(&l, 21 * b), -ENOSPC, "there is no fourth place");
	um_block_lru_fini(&l);
}

/* --- prefetch-on-use -------------------------------------------------------------------------------------------- */

struct app {
	struct umadv *adv;
	struct um_gpu *gpu;
	um_stream streams[2];
	void *w[TENSORS];
	int err;
};

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	(void)user;
	(void)level;
	(void)line;
}

static void open_app(struct app *a, const char *strategy, unsigned larger)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = larger * BUDGET};
	struct umadv_options o;

	memset(a, 0, sizeof *a);
	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = BUDGET;
	o.strategy = strategy;
	o.log = on_log;
	a->err = um_sim_open(&a->gpu, &so);
	if (!a->err)
		a->err = um_context_open(&a->adv, &o, a->gpu, v100);
	for (int i = 0; i < 2 && !a->err; i++)
		a->err = a->gpu->api->cudaStreamCreateWithFlags(a->gpu, &a->streams[i], UM_STREAM_NON_BLOCKING);
	for (int i = 0; i < TENSORS && !a->err; i++)
		a->err = umadv_alloc(a->adv, &a->w[i], 8 * MIB, "w", UMADV_PARAM);
	if (a->err)
		tap_bail("no context");
}

static void op(struct app *a, um_stream stream, const struct umadv_use *uses, size_t n)
{
	a->err |= umadv_op(a->adv, stream, "op", uses, n);
	a->err |= um_sim_run(a->gpu, stream, &(struct um_sim_kernel){.announced = 1, .ns = 100000});
}

/* `n_streams` take turns. */
static void play(struct app *a, unsigned n_streams)
{
	for (unsigned it = 0; it < 4; it++) {
		a->err |= umadv_iter(a->adv, NULL);
		for (unsigned i = 0; i < TENSORS; i++)
			op(a, a->streams[i % n_streams], UMADV_USES(UMADV_UPDATE(a->w[i])));
	}
	a->err |= um_sim_sync(a->gpu);
}

static void on_use(unsigned larger, unsigned n_streams)
{
	struct umadv_stats st = {.struct_size = sizeof st};
	struct um_tally t;
	struct app a;

	open_app(&a, "prefetch-on-use", larger);
	play(&a, n_streams);
	is_int(a.err, 0, "device of %u budgets, %u streams: the program runs", larger, n_streams);
	ok(budget_kept(a.gpu, BUDGET), "device of %u budgets, %u streams: prefetch-on-use keeps the budget", larger,
	   n_streams);
	um_sim_tally(a.gpu, &t);
	umadv_stats_get(a.adv, &st);
	is_u64(t.peak_prefetched_bytes, BUDGET, "device of %u budgets: it uses all of it", larger);
	is_u64(st.hints_refused, 0, "device of %u budgets: no hint is refused", larger);
	if (n_streams == 1)
		is_u64(t.faults, 0, "device of %u budgets: no op faults", larger);
	ok(larger == 1 ? st.evict_bytes == 0 : st.evict_bytes >= 3 * TENSORS * 8 * MIB, "device of %u budgets: %s",
	   larger, larger == 1 ? "the driver evicts" : "the library evicts");
	umadv_close(a.adv);
}

/* Ops that alone need more than the budget. */
static void large_op(unsigned larger)
{
	struct umadv_use uses[6];
	struct um_tally t;
	struct app a;

	open_app(&a, "prefetch-on-use", larger);
	for (int it = 0; it < 3; it++) {
		a.err |= umadv_iter(a.adv, NULL);
		for (int i = 0; i < 6; i++)
			uses[i] = UMADV_READ(a.w[i]);
		op(&a, a.streams[0], uses, 6);
	}
	a.err |= um_sim_sync(a.gpu);
	um_sim_tally(a.gpu, &t);
	is_int(a.err, 0, "device of %u budgets: an op larger than the budget runs", larger);
	ok(budget_kept(a.gpu, BUDGET), "device of %u budgets: of such an op, as much is prefetched as fits", larger);
	ok(t.faults > 0 && (larger == 1 || t.prefetched_bytes == BUDGET), "device of %u budgets: the rest faults",
	   larger);
	umadv_close(a.adv);
}

/* --- recorded workloads ----------------------------------------------------------------------------------------- */

static void trace(const char *name)
{
	struct um_play_options o = {.profile = um_profile_find("v100"), .iterations = 4};
	const char *top = getenv("top_srcdir"), *strategy;
	struct um_trace *t;
	struct um_diag diag;
	char path[512];

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", name);
	um_diag_init(&diag, path);
	if (um_trace_load(&t, path, &diag))
		tap_bail("no trace");
	o.budget = um_trace_peak_bytes(t) * 2 / 3 / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	for (int i = UM_PLAY_ON_DEMAND; (strategy = um_play_strategy_name((enum um_play_strategy)i)); i++)
		for (size_t k = 0; k < BUDGET_DEVICES; k++) {
			struct um_play_result r;

			o.strategy = (enum um_play_strategy)i;
			o.device_bytes = budget_devices[k] * o.budget;
			if (um_play(t, &o, &r)) /* there are schemes that some budgets are too small for */
				ok(r.why[0], "%s, %s: %s", name, strategy, r.why);
			else
				ok(budget_kept_played(&r, o.budget), "%s, device of %u budgets: %s keeps the budget",
				   name, budget_devices[k], strategy);
			um_play_result_fini(&r);
		}
	um_trace_free(t);
}

/* --- memory that is not managed --------------------------------------------------------------------------------- */

static uint64_t budget_of(const struct app *a)
{
	struct umadv_stats st = {.struct_size = sizeof st};

	umadv_stats_get(a->adv, &st);
	return st.budget_bytes;
}

/* A buffer for communication takes device memory that the planner must not give to tensors. */
static void communication(unsigned larger)
{
	const uint64_t left = larger == 1 ? BUDGET - 6 * MIB : BUDGET;
	struct um_tally before, after;
	void *buffer, *whole;
	struct app a;

	open_app(&a, "lookahead", larger);
	is_int(umadv_alloc(a.adv, &buffer, 6 * MIB - 1000, "halo", UMADV_COMM), 0, "a buffer is allocated");
	is_u64(budget_of(&a), left, "device of %u budgets: the buffer %s", larger,
	       larger == 1 ? "takes whole blocks of the budget" : "has memory beside the budget");
	play(&a, 1);
	um_sim_tally(a.gpu, &before);
	play(&a, 1);
	um_sim_tally(a.gpu, &after);
	is_int(a.err, 0, "device of %u budgets: the program runs", larger);
	is_u64(after.faults, before.faults, "device of %u budgets: no op faults beside the buffer", larger);
	ok(budget_kept(a.gpu, BUDGET), "device of %u budgets: the budget is kept beside the buffer", larger);
	is_int(umadv_free(a.adv, buffer), 0, "the buffer is freed");
	is_u64(budget_of(&a), BUDGET, "device of %u budgets: the budget is whole after that", larger);
	if (larger == 1) {
		is_int(umadv_alloc(a.adv, &whole, BUDGET, "halo", UMADV_COMM), 0, "a buffer takes all of the device");
		is_u64(budget_of(&a), UM_BLOCK_BYTES, "one block of the budget is left");
		is_int(umadv_free(a.adv, whole), 0, "the buffer is freed");
	}
	umadv_close(a.adv);
}

int main(void)
{
	blocks();
	for (size_t i = 0; i < BUDGET_DEVICES; i++) {
		on_use(budget_devices[i], 1);
		on_use(budget_devices[i], 2);
		large_op(budget_devices[i]);
		communication(budget_devices[i]);
	}
	trace("stencil_slabs");
	trace("cg_laplace3d");
	trace("alexnet_b200");
	return tap_done();
}
