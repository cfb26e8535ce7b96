/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums per kernel and per allocation: each adds up to the device's own.
 */
#include "sim/ledger.h"
#include "tap.h"

#define BLOCK UM_BLOCK_BYTES

static struct um_gpu *gpu;

static char *managed(unsigned blocks)
{
	void *p;

	if (gpu->api->cudaMallocManaged(gpu, &p, blocks * BLOCK, 1))
		tap_bail("cannot allocate");
	return p;
}

static void nothing(void *arg)
{
	(void)arg;
}

static void kernel(const char *name, char *p, unsigned blocks, int computes)
{
	struct um_touch a = {.ptr = p, .bytes = blocks * BLOCK, .access = UM_UPDATE};
	struct um_sim_kernel k = {
		.name = name, .ns = 1000, .access = &a, .n_access = 1, .fn = computes ? nothing : NULL};

	if (um_sim_run(gpu, NULL, &k))
		tap_bail("cannot run");
}

static struct um_ledger_kernel kernels[8];
static struct um_ledger_memory memories[8];
static size_t n_kernels, n_memories;
static struct um_ledger_kind kinds[4];
static uint64_t calls;

static void show(void *user, const struct um_tally *t, const struct um_ledger *l)
{
	(void)user;
	(void)t;
	n_kernels = l->kernel.n;
	n_memories = l->memory.n;
	for (size_t i = 0; i < 8 && i < n_kernels; i++)
		kernels[i] = l->kernel.at[i];
	for (size_t i = 0; i < 8 && i < n_memories; i++)
		memories[i] = l->memory.at[i];
	memcpy(kinds, l->kind, sizeof kinds);
	calls = l->calls;
}

#define SUM(list, n, field)                                                                                            \
	({                                                                                                             \
		uint64_t sum_ = 0;                                                                                     \
		for (size_t i_ = 0; i_ < (n); i_++)                                                                    \
			sum_ += (list)[i_].field;                                                                      \
		sum_;                                                                                                  \
	})

static void test_sums(void)
{
	char *a = managed(3), *b = managed(2), host[100];
	struct um_tally t;

	um_sim_host_touch(gpu, a, 3 * BLOCK, UM_WRITE);
	for (int i = 0; i < 3; i++) {
		kernel("first", a, 3, 0);
		kernel("second", b, 2, i == 1);
	}
	um_sim_copy(gpu, NULL, &(struct um_sim_copy){host, b, 100, 100, 100, 1}, 1);
	um_sim_call(gpu, NULL, nothing, NULL);
	um_sim_sync(gpu);
	um_sim_host_touch(gpu, a, 1, UM_READ);
	gpu->api->cudaFree(gpu, b);
	um_sim_tally(gpu, &t);
	um_sim_ledger_show(gpu, show, NULL);

	is_u64(n_kernels, 4, "three names and the others");
	is_str(kernels[1].name, "first", "kernels are listed in order of launch");
	is_u64(kernels[1].launches, 3, "the kernel has its number of launches");
	is_u64(kernels[1].computed, 0, "a kernel without a body is not computed");
	is_u64(kernels[2].computed, 1, "a kernel with a body is computed once");
	is_str(kernels[3].name, "(copy)", "copies are listed under their own name");
	ok(kernels[3].xfer && !kernels[1].xfer, "is told from kernels");
	ok(t.evictions > 5, "there were evictions");
	is_u64(SUM(kernels, n_kernels, stall_ns), t.stall_ns, "the stall of kernels adds up");
	is_u64(SUM(kernels, n_kernels, faults), t.faults, "faults of kernels");
	is_u64(SUM(memories, n_memories, faults), t.faults, "faults of allocations");
	is_u64(SUM(memories, n_memories, cpu_faults), t.cpu_faults, "CPU faults of allocations");
	is_u64(SUM(memories, n_memories, h2d_bytes), t.h2d_bytes, "bytes in of all allocations add up");
	is_u64(SUM(memories, n_memories, d2h_bytes), t.d2h_bytes, "bytes out of all allocations add up");
	is_u64(SUM(memories, n_memories, evictions), t.evictions, "evictions of allocations add up");
	is_u64(SUM(kernels, n_kernels, evictions), t.evictions, "evictions for kernels add up");
	ok(SUM(memories, n_memories, stall_ns) <= t.stall_ns &&
		   SUM(memories, n_memories, stall_ns) > t.stall_ns - t.stall_ns / 100,
	   "the stall of allocations adds up, except rounding");
	is_u64(kernels[1].ns - kernels[1].stall_ns, 3000, "time without a stall is computing");
	is_u64(kinds[UM_SIM_MANAGED].peak_bytes, 5 * BLOCK, "the peak of managed bytes is right");
	is_u64(kinds[UM_SIM_MANAGED].bytes, 3 * BLOCK, "the current managed bytes are right");
	ok(!memories[2].alive && memories[1].alive, "freed allocations are marked");
	is_u64(calls, 1, "the host function is called once");
}

static void test_many(void)
{
	char *p = managed(1), name[24];

	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "k%d", i);
		kernel(name, p, 1, 0);
	}
	um_sim_sync(gpu);
	um_sim_ledger_show(gpu, show, NULL);
	ok(n_kernels <= 4200 && n_kernels > 4000, "names are counted up to a limit: %zu", n_kernels);
	is_u64(kernels[0].launches, 5000 + 3 - (n_kernels - 1), "the last row has the launches of all other kernels");
}

/* What a kernel waits for before it begins is stall, and part of its time. */
static void test_gate(void)
{
	uint32_t *at;
	um_stream s;
	size_t i;

	if (gpu->api->cudaHostAlloc(gpu, (void **)&at, 4, 0) || gpu->api->cudaStreamCreateWithFlags(gpu, &s, 1))
		tap_bail("set-up");
	*at = 0;
	um_sim_wait_value(gpu, NULL, at, 1);
	kernel("gated", NULL, 0, 0);
	um_sim_run(gpu, s, &(struct um_sim_kernel){.name = "long", .ns = 1000000});
	um_sim_write_value(gpu, s, at, 1);
	um_sim_sync(gpu);
	is_int(um_sim_ledger_show(gpu, show, NULL), 0, "the ledger is shown");
	for (i = 0; i + 1 < n_kernels && strcmp(kernels[i].name ? kernels[i].name : "", "gated"); i++)
		;
	ok(kernels[i].stall_ns >= 900000, "a kernel waits at a gate");
	is_u64(kernels[i].ns, kernels[i].stall_ns + 1000, "stall time is part of the kernel's time");
	gpu->api->cudaStreamDestroy(gpu, s);
	gpu->api->cudaFreeHost(gpu, at);
}

/* The names of the row as last shown. */
static int has_names(size_t row, const char *first, const char *second)
{
	const struct um_ledger_memory *m = &memories[row];

	return row < n_memories && m->names.n == 2 && strcmp(m->names.at[0], first) == 0 &&
	       strcmp(m->names.at[1], second) == 0;
}

static void test_names(void)
{
	struct um_tally before, after;
	char *a = managed(2), name[16];
	void *other;

	um_sim_tally(gpu, &before);
	um_sim_ledger_name(gpu, a, "x");
	um_sim_ledger_name(gpu, a + BLOCK, "w");
	um_sim_ledger_name(gpu, a, "x");
	um_sim_ledger_name(gpu, &before, "nowhere");
	um_sim_tally(gpu, &after);
	um_sim_ledger_show(gpu, show, NULL);
	ok(has_names(n_memories - 1, "x", "w"), "an allocation has each name of what is in it once");
	ok(memcmp(&before, &after, sizeof before) == 0, "no time passes when memory is named");
	gpu->api->cudaFree(gpu, a);
	um_sim_ledger_name(gpu, a, "late");
	um_sim_ledger_show(gpu, show, NULL);
	ok(has_names(n_memories - 1, "x", "w"), "a freed allocation keeps its names and gets no more");
	other = managed(1);
	for (int i = 0; i < UM_LEDGER_NAMES + 5; i++) {
		snprintf(name, sizeof name, "t%d", i);
		um_sim_ledger_name(gpu, other, name);
	}
	um_sim_ledger_show(gpu, show, NULL);
	is_u64(memories[n_memories - 1].names.n, UM_LEDGER_NAMES, "names are kept up to a limit");
	is_u64(memories[n_memories - 1].names_left_out, 5, "names beyond the limit are counted");
}

/* For ledger_memory.sh: where an allocation fails a name may be missing, and nothing else differs. Status 1: it does.
 * Status 3: there is no device. */
static int names_alone(void)
{
	char *a;
	void *p;
	size_t found = 0;

	if (um_sim_open(&gpu,
			&(struct um_sim_options){
				.profile = um_profile_find("v100"), .capacity = 4 * BLOCK, .backed = 1, .ledger = 1}))
		return 3;
	if (gpu->api->cudaMallocManaged(gpu, &p, 2 * BLOCK, 1)) {
		gpu->api->close(gpu);
		return 3;
	}
	a = p;
	um_sim_ledger_name(gpu, a, "x");
	um_sim_ledger_name(gpu, a + BLOCK, "w");
	um_sim_ledger_show(gpu, show, NULL);
	for (size_t i = 0; i < memories[1].names.n; i++)
		found += !strcmp(memories[1].names.at[i], "x") || !strcmp(memories[1].names.at[i], "w");
	found = n_memories == 2 && found == memories[1].names.n && found + memories[1].names_left_out == 2 &&
		memories[1].bytes == 2 * BLOCK;
	if (n_memories == 1) /* no memory for its row */
		found = kinds[UM_SIM_MANAGED].bytes == 2 * BLOCK;
	gpu->api->close(gpu);
	return !found;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return names_alone();
	if (um_sim_open(&gpu,
			&(struct um_sim_options){
				.profile = um_profile_find("v100"), .capacity = 4 * BLOCK, .backed = 1, .ledger = 1}))
		tap_bail("cannot open");
	test_names();
	gpu->api->close(gpu);
	if (um_sim_open(&gpu,
			&(struct um_sim_options){
				.profile = um_profile_find("v100"), .capacity = 4 * BLOCK, .backed = 1, .ledger = 1}))
		tap_bail("cannot open");
	test_sums();
	test_many();
	gpu->api->close(gpu);
	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = um_profile_find("v100"), .backed = 1, .ledger = 1}))
		tap_bail("cannot open");
	test_gate();
	gpu->api->close(gpu);
	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = um_profile_find("v100")}))
		tap_bail("cannot open");
	is_int(um_sim_ledger_show(gpu, show, NULL), -ENOENT, "a device has no ledger by default");
	gpu->api->close(gpu);
	return tap_done();
}
