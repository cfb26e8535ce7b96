/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs without iterations: what ops above the budget use beyond it, and tables, stay on the host.
 */
#include "umadvise.h"

#include "runtime/context.h"
#include "sim/sim.h"

#include "tap.h"

#define MIB (1ull << 20)
#define TENSORS 12
#define TENSOR (8 * MIB)
#define BUDGET (6 * TENSOR)
#define TABLE (32 * MIB)

static struct um_gpu *gpu;
static struct umadv *adv;
static char *x[TENSORS], *table;
static uint32_t seed;

static void open_program(void)
{
	const struct um_profile *v100 = um_profile_find("v100");
	struct um_sim_options so = {.profile = v100, .capacity = BUDGET};
	struct umadv_options o;

	umadv_options_init(&o);
	o.log_level = UMADV_LOG_ERROR;
	o.budget = BUDGET;
	if (um_sim_open(&gpu, &so) || um_context_open(&adv, &o, gpu, v100))
		tap_bail("no context");
	for (int i = 0; i < TENSORS; i++)
		if (umadv_alloc(adv, (void **)&x[i], TENSOR, "x", UMADV_PARAM))
			tap_bail("no memory");
	if (umadv_alloc(adv, (void **)&table, TABLE, "table", UMADV_PARAM))
		tap_bail("no memory");
	seed = 1;
}

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static struct um_tally tally(void)
{
	struct um_tally t;

	um_sim_sync(gpu);
	um_sim_tally(gpu, &t);
	return t;
}

static void launch(const struct umadv_use *uses, size_t n, double bytes)
{
	struct umadv_op_info info = {
		.struct_size = sizeof info, .uses = uses, .n_uses = n, .bytes = bytes, .ns = 300000};

	if (umadv_op_ex(adv, NULL, "op", &info) ||
	    um_sim_run(gpu, NULL, &(struct um_sim_kernel){.announced = 1, .ns = 300000}))
		tap_bail("an op failed");
}

static void launch_one(struct umadv_use use, double bytes)
{
	launch(&use, 1, bytes);
}

/* An op on `n` tensors from a random one on; `accesses` of each byte, 0: of unknown cost. */
static void random_op(int n, double accesses)
{
	struct umadv_use uses[TENSORS];
	uint32_t first = draw(TENSORS);

	for (int i = 0; i < n; i++)
		uses[i] = UMADV_READ(x[(first + (uint32_t)i) % TENSORS]);
	launch(uses, (size_t)n, accesses * n * (double)TENSOR);
}

/* Faults and remote bytes of the last ten of forty ops, each a third larger than the budget. */
static struct um_tally large_ops(double accesses)
{
	struct um_tally before, after;

	open_program();
	for (int i = 0; i < 30; i++)
		random_op(8, accesses);
	before = tally();
	for (int i = 0; i < 10; i++)
		random_op(8, accesses);
	after = tally();
	umadv_close(adv);
	return (struct um_tally){.faults = after.faults - before.faults,
				 .remote_bytes = after.remote_bytes - before.remote_bytes};
}

static void test_large_ops(void)
{
	struct um_tally once = large_ops(1), often = large_ops(3), unknown = large_ops(0);

	is_u64(once.faults, 0, "ops above the budget that access each byte once do not fault");
	ok(once.remote_bytes >= 10 * 2 * TENSOR && once.remote_bytes <= 10 * 8 * TENSOR,
	   "ops above the budget access over the link what does not fit (%llu MiB)",
	   (unsigned long long)(once.remote_bytes / MIB));
	is_u64(often.remote_bytes, 0, "an op that accesses each byte three times does not do so over the link");
	is_u64(unknown.remote_bytes, 0, "an op of unknown cost accesses nothing over the link");
}

/* Ten times: a look-up in the table, and ops on the others, which are all that is alive. Returns remote bytes, faults
 * and copies of the last look-up. */
static struct um_tally look_ups(int others, uint64_t touched)
{
	struct um_tally before = {0}, after;

	open_program();
	for (int i = others; i < TENSORS; i++)
		if (umadv_free(adv, x[i]))
			tap_bail("not freed");
	for (int k = 0; k < 10; k++) {
		before = tally();
		launch_one(UMADV_LOOKUP(table, touched), (double)touched);
		after = tally();
		for (int i = 0; i < others; i++)
			launch_one(UMADV_READ(x[draw((uint32_t)others)]), (double)TENSOR);
	}
	umadv_close(adv);
	return (struct um_tally){.faults = after.faults - before.faults,
				 .remote_bytes = after.remote_bytes - before.remote_bytes,
				 .h2d_bytes = after.h2d_bytes - before.h2d_bytes};
}

static void test_tables(void)
{
	struct um_tally full = look_ups(TENSORS, MIB), free = look_ups(1, MIB), large = look_ups(TENSORS, TABLE / 2);

	is_u64(full.remote_bytes, MIB, "look-ups in a table read its rows over the link where not all fits");
	is_u64(full.faults + full.h2d_bytes, 0, "look-ups in a table on the host cause no fault and no copy");
	is_u64(large.remote_bytes, 0, "a table of which an op touches a half is not kept on the host");
	is_u64(free.remote_bytes, 0, "where all fits the table stays on the device");
}

static void test_whole_table(void)
{
	struct um_tally before, after;

	open_program();
	for (int k = 0; k < 6; k++) {
		launch_one(UMADV_LOOKUP(table, MIB), (double)MIB);
		for (int i = 0; i < TENSORS; i++)
			random_op(1, 1);
	}
	before = tally();
	launch_one(UMADV_READ(table), 0);
	after = tally();
	is_u64(after.remote_bytes - before.remote_bytes, 0,
	       "a table that an op of unknown cost uses whole is migrated");
	ok(after.h2d_bytes - before.h2d_bytes >= TABLE, "the whole table is copied");
	umadv_close(adv);
}

static void test_table_used_whole_before(void)
{
	struct um_tally before, after;

	open_program();
	launch_one(UMADV_LOOKUP(table, MIB), (double)MIB);
	launch_one(UMADV_READ(table), (double)TABLE);
	for (int k = 0; k < 6; k++) {
		for (int i = 0; i < TENSORS; i++)
			random_op(1, 1);
		before = tally();
		launch_one(UMADV_LOOKUP(table, MIB), (double)MIB);
		after = tally();
	}
	is_u64(after.remote_bytes - before.remote_bytes, MIB,
	       "a table that an op used whole is kept on the host once ops look up in it again and again");
	umadv_close(adv);
}

int main(void)
{
	test_large_ops();
	test_tables();
	test_whole_table();
	test_table_used_whole_before();
	return tap_done();
}
