/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in the report, activity by activity: rows, whose a fault and a byte are when the GPU is behind, shares of
 * time, which op a launch is; and the marks that say it.
 */
#include "sim/sim.h"
#include "io/nsys_mark.h"
#include "report/launches.h"
#include "report/report.h"
#include "tap.h"

#include <stdio.h>

#define MIB (1ull << 20)

static struct um_report r;
static int64_t now;

static void start(const struct um_report_options *o)
{
	um_report_init(&r, o ? o : &(struct um_report_options){0});
	now = 0;
}

static void feed(struct um_activity a)
{
	a.begin = a.begin ? a.begin : ++now;
	a.end = a.end ? a.end : a.begin;
	a.process = a.process ? a.process : 7;
	now = a.begin;
	if (um_activity_feed(&r.sink, &a))
		tap_bail("no memory");
}

static void tensor(const char *name, uint64_t address, uint64_t bytes)
{
	feed((struct um_activity){.kind = UM_ACT_TENSOR, .name = name, .address = address, .bytes = bytes});
}

static void tensor_end(uint64_t address)
{
	feed((struct um_activity){.kind = UM_ACT_TENSOR_END, .address = address});
}

static void memory(enum um_activity_kind kind, uint64_t address, uint64_t bytes)
{
	feed((struct um_activity){.kind = kind, .address = address, .bytes = bytes, .managed = 1});
}

static void call(uint64_t correlation)
{
	feed((struct um_activity){.kind = UM_ACT_CALL, .name = "cudaLaunchKernel_v7000", .correlation = correlation});
}

static void kernel(uint64_t correlation, int64_t ns)
{
	now++;
	feed((struct um_activity){
		.kind = UM_ACT_KERNEL, .name = "k", .correlation = correlation, .begin = now, .end = now + ns});
}

static void fault(uint64_t address, uint64_t n, int64_t begin, int64_t end)
{
	feed((struct um_activity){
		.kind = UM_ACT_GPU_FAULT, .address = address, .faults = n, .begin = begin, .end = end});
}

static void moved(uint64_t address, uint64_t bytes, enum um_activity_dir dir, enum um_activity_cause cause)
{
	feed((struct um_activity){
		.kind = UM_ACT_MIGRATION, .address = address, .bytes = bytes, .dir = dir, .cause = cause});
}

static void range(int64_t begin, int64_t end)
{
	feed((struct um_activity){
		.kind = UM_ACT_RANGE, .name = "it", .domain = "umadvise", .begin = begin, .end = end});
}

/* A row's name, lives, faults, CPU faults, bytes in, out, and time; "-" where there is none of that name. */
static const char *row(const char *name)
{
	static char text[256];

	for (size_t i = 0; i < r.tensors.rows.n; i++) {
		const struct um_report_tensor *t = &r.tensors.rows.at[i];

		if (strcmp(t->name, name) != 0)
			continue;
		snprintf(text, sizeof text, "%d: %d %d %d %d %d", (int)t->lives, (int)t->sums.faults,
			 (int)t->sums.cpu_faults, (int)um_report_tensor_moved(t->sums.h2d_bytes),
			 (int)um_report_tensor_moved(t->sums.d2h_bytes), (int)t->sums.fault_ns);
		return text;
	}
	return "-";
}

static void finish(void)
{
	if (um_report_finish(&r))
		tap_bail("no memory");
}

static void end(void)
{
	um_report_fini(&r);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void names(void)
{
	start(NULL);
	memory(UM_ACT_ALLOC, 0x10000, MIB);
	memory(UM_ACT_ALLOC, 0x900000, 3 * MIB / 2);
	tensor("w", 0x10000, 4096);
	range(100, 200);
	tensor("", 0x20000, 512);
	tensor("a", 0x30000, 512);
	tensor("", 0x40000, 2048);
	tensor_end(0x20000), tensor_end(0x30000), tensor_end(0x40000);
	range(200, 300);
	tensor("", 0x50000, 512);
	tensor("a", 0x60000, 1024);
	tensor("", 0x70000, 2048);
	memory(UM_ACT_ALLOC, 0x2000000, 4096);
	fault(0x50010, 5, 210, 220);
	fault(0x900000, 6, 221, 222);
	fault(0x2000010, 7, 223, 224);
	fault(0x8000000, 8, 225, 226);
	fault(0x10010, 9, 227, 228);
	kernel(0, 10);
	finish();
	is_str(row("w"), "1: 9 0 0 0 0", "a name is a row");
	is_str(row("a"), "2: 0 0 0 0 0", "a tensor that comes again has one row");
	is_str(row("tensor #0 of an iteration (512 bytes)"), "2: 5 0 0 0 0", "without one, by order and bytes");
	is_str(row("tensor #1 of an iteration (2 KiB)"), "2: 0 0 0 0 0",
	       "a tensor without a name is a row of its iteration");
	is_str(row("allocation #1 (1.5 MiB)"), "1: 6 0 0 0 0", "an allocation, by its place in the run");
	is_str(row("allocation #0 of an iteration (4 KiB)"), "1: 7 0 0 0 0",
	       "an allocation without a name is a row of its iteration");
	is_str(row("(unknown)"), "0: 8 0 0 0 0", "faults outside of tensors are unknown");
	is_u64(r.tensors.by_cost.n, 7, "allocations in which nothing happened are not listed");
	end();
}

/* --- the GPU is behind -------------------------------------------------------------------------------------------- */

static void behind(void)
{
	start(NULL);
	memory(UM_ACT_ALLOC, 0, 64 * MIB);
	tensor("first", MIB, MIB);
	call(1);
	tensor_end(MIB);
	tensor("second", MIB, MIB / 2);
	call(2);
	memory(UM_ACT_FREE, 0, 64 * MIB);
	kernel(1, 100);
	fault(MIB, 1, 0, 0);
	moved(MIB, MIB, UM_DIR_H2D, UM_CAUSE_DEMAND);
	now += 200;
	moved(MIB + MIB / 4, MIB / 2, UM_DIR_H2D, UM_CAUSE_PREFETCH);
	feed((struct um_activity){.kind = UM_ACT_CPU_FAULT, .address = MIB, .faults = 3});
	kernel(2, 100);
	fault(MIB, 2, 0, 0);
	moved(MIB - 100, 300, UM_DIR_D2H, UM_CAUSE_EVICTION);
	now += 200;
	moved(MIB, 50, UM_DIR_D2H, UM_CAUSE_PREFETCH);
	finish();
	is_str(row("first"), "1: 1 0 1048576 0 0", "a fault belongs to the tensor of its launch");
	is_str(row("second"), "1: 2 0 262144 250 0",
	       "bytes before, during and after the next launch count for its tensor");
	is_str(row("allocation #0 (64 MiB)"), "1: 0 0 262144 100 0",
	       "memory between tensors belongs to the allocation");
	is_str(row("(unknown)"), "0: 0 3 0 0 0", "the CPU's faults belong to no tensor after its end");
	is_u64(r.tensors.rows.at[2].sums.evictions, 1, "the tensor has one eviction");
	end();

	start(NULL);
	tensor("first", MIB, MIB);
	kernel(1, 100);
	tensor_end(MIB);
	tensor("second", MIB, MIB);
	kernel(2, 100);
	fault(MIB, 1, 0, 0);
	finish();
	is_str(row("second"), "1: 1 0 0 0 0", "no calls were recorded: by time");
	end();

	start(&(struct um_report_options){.from = 1000, .to = 2000});
	tensor("early", MIB, MIB);
	now = 1500;
	kernel(0, 10);
	fault(MIB, 1, 0, 0);
	finish();
	is_str(row("early"), "1: 1 0 0 0 0", "tensors from before the time that is looked at");
	is_u64(r.activities, 2, "activities before the window do not count in it");
	end();
}

static void iterations(void)
{
	start(NULL);
	tensor("w", MIB, MIB);
	range(10, 20);
	now = 11;
	call(1);
	range(20, 1000);
	call(2);
	now = 30;
	kernel(1, 10);
	fault(MIB, 1, 0, 0);
	now = 50;
	moved(MIB, 4096, UM_DIR_H2D, UM_CAUSE_PREFETCH);
	kernel(2, 10);
	moved(MIB, 8192, UM_DIR_D2H, UM_CAUSE_EVICTION);
	now = 100;
	moved(MIB, 512, UM_DIR_D2H, UM_CAUSE_EVICTION);
	finish();
	ok(r.tensors.cells.n == 3 && r.tensors.cells.at[0].iteration == 0 && r.tensors.cells.at[1].iteration == 1 &&
		   r.tensors.cells.at[2].iteration == UM_REPORT_NONE,
	   "a tensor has a cell for each iteration, and one outside of all");
	ok(r.tensors.cells.at[0].sums.faults == 1 && !r.tensors.cells.at[0].sums.h2d_bytes[UM_CAUSE_PREFETCH],
	   "a fault in the kernel's");
	ok(r.tensors.cells.at[1].sums.h2d_bytes[UM_CAUSE_PREFETCH] == 4096 &&
		   r.tensors.cells.at[1].sums.d2h_bytes[UM_CAUSE_EVICTION] == 8192,
	   "events between kernels belong to the next one's iteration");
	is_u64(r.tensors.cells.at[2].sums.d2h_bytes[UM_CAUSE_EVICTION], 512,
	       "events after the last kernel belong to no iteration");
	ok(r.tensors.cell_order.at[0] == 2 && r.tensors.cell_order.at[1] == 0 && r.tensors.cell_order.at[2] == 1,
	   "the cell with most bytes is shown first");
	end();
}

static void shares(void)
{
	start(NULL);
	tensor("a", 1 * MIB, MIB);
	tensor("b", 2 * MIB, MIB);
	tensor("c", 3 * MIB, MIB);
	kernel(0, 10000);
	fault(1 * MIB, 1, 1000, 2000);
	fault(2 * MIB, 3, 1000, 2000);
	fault(3 * MIB, 1, 1500, 2500); /* 500 of it are its own */
	finish();
	is_str(row("a"), "1: 1 0 0 0 250", "what is served at once shares the time by faults");
	is_str(row("b"), "1: 3 0 0 0 750", "the last tensor has its share of the stall");
	is_str(row("c"), "1: 1 0 0 0 500", "each moment counts once");
	is_u64(r.all.work.fault_ns, 1500, "kernels have the same stall");
	end();
}

static void ops(void)
{
	static const char launch[] = "cudaLaunchKernel_v7000";
	struct um_launches l = {0};

	start(NULL);
	tensor("", MIB, MIB);
	feed((struct um_activity){.kind = UM_ACT_OP, .thread = 1, .name = "conv", .op = 41});
	feed((struct um_activity){.kind = UM_ACT_USE, .op = 41, .address = MIB + 10, .bytes = 10});
	feed((struct um_activity){.kind = UM_ACT_OP, .thread = 2, .name = "relu", .op = 42});
	feed((struct um_activity){.kind = UM_ACT_USE, .op = 42, .address = MIB, .bytes = 10});
	feed((struct um_activity){.kind = UM_ACT_CALL, .thread = 1, .name = launch, .correlation = 5});
	feed((struct um_activity){.kind = UM_ACT_CALL, .thread = 2, .name = launch, .correlation = 7});
	feed((struct um_activity){.kind = UM_ACT_CALL, .thread = 1, .name = launch, .correlation = 6});
	feed((struct um_activity){.kind = UM_ACT_CALL, .thread = 1, .name = "cudaFree_v3020", .correlation = 8});
	feed((struct um_activity){.kind = UM_ACT_CALL, .thread = 3, .name = launch, .correlation = 9});
	is_u64(um_report_op_of(&r, 7, 5), 41, "a launch is the op's that its thread announced");
	is_u64(um_report_op_of(&r, 7, 6), 41, "the next launch belongs to the same op");
	is_u64(um_report_op_of(&r, 7, 7), 42, "a launch of another thread belongs to another op");
	is_u64(um_report_op_of(&r, 7, 8), UM_ACT_NO_OP, "other calls are not");
	is_u64(um_report_op_of(&r, 7, 9), UM_ACT_NO_OP, "a launch of a thread without announcements has no op");
	is_u64(um_report_op_of(&r, 8, 5), UM_ACT_NO_OP, "a launch of another process has no op");
	is_str(r.tensors.rows.at[0].first_op, "conv", "the row names its first user");
	end();
	um_launches_announce(&l, &(struct um_activity){.op = 1});
	for (uint64_t i = 1; i <= 200000; i++) {
		um_launches_call(&l, &(struct um_activity){.name = launch, .correlation = i});
		um_launches_begun(&l, i);
	}
	ok(l.queue.cap <= 262144, "old launches are dropped");
	is_u64(um_launches_find(&l, 199999)->op, 1, "recent launches are kept");
	um_launches_fini(&l);
}

static void many(void)
{
	char name[32];

	start(NULL);
	for (unsigned i = 0; i < 70000; i++) {
		snprintf(name, sizeof name, "t%u", i);
		tensor(name, MIB, 4096);
		kernel(0, 1);
		fault(MIB, 1, now, now);
	}
	finish();
	is_u64(r.tensors.rows.n, 65537, "the table stops at its largest number of rows");
	is_str(row("(others)"), "4464: 4464 0 0 0 0", "the last takes the rest");
	end();
}

/* --- on the simulated device -------------------------------------------------------------------------------------- */

static UM_VEC(struct um_activity) recorded;

static int keep(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct um_activity copy = *a;

	(void)sink;
	copy.name = a->name ? "k" : NULL; /* borrowed */
	if (um_vec_push(&recorded, copy))
		tap_bail("no memory");
	return 0;
}

static int in_order(const void *a, const void *b)
{
	const struct um_activity *x = a, *y = b;

	return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : (int)x->kind - (int)y->kind;
}

/* Three tensors on one page, and one that reaches over two: each has its faults, and its bytes. */
static void one_page(void)
{
	struct um_activity_sink sink = {keep};
	struct um_sim_options o = {.profile = um_profile_find("v100"), .watch = &sink};
	struct um_touch touch[2] = {{.bytes = 4096, .access = UM_READ}, {.bytes = 8192, .access = UM_WRITE}};
	struct um_gpu *gpu;
	void *p = NULL;
	uint64_t base;

	if (um_sim_open(&gpu, &o) || gpu->api->cudaMallocManaged(gpu, &p, 4 * MIB, 1))
		tap_bail("no device");
	um_sim_host_touch(gpu, p, 4 * MIB, UM_WRITE);
	touch[0].ptr = (char *)p + 8192;
	touch[1].ptr = (char *)p + 65536 - 4096;
	um_sim_run(gpu, NULL, &(struct um_sim_kernel){.name = "k", .ns = 100000, .access = touch, .n_access = 2});
	um_sim_sync(gpu);
	um_sim_host_touch(gpu, (char *)p + 4096, 100, UM_READ);
	base = um_sim_watch_address(gpu, (uint64_t)(uintptr_t)p);
	start(NULL);
	tensor("unused", base, 4096);
	tensor("host", base + 4096, 4096);
	tensor("read", base + 8192, 4096);
	tensor("written", base + 65536 - 4096, 8192);
	qsort(recorded.at, recorded.n, sizeof *recorded.at, in_order);
	for (size_t i = 0; i < recorded.n; i++) {
		struct um_activity a = recorded.at[i];

		a.process = 7;
		if (um_activity_feed(&r.sink, &a))
			tap_bail("no memory");
	}
	finish();
	ok(strncmp(row("read"), "1: 1 0 4096 4096 ", 17) == 0, "who reads a page that others share: a fault");
	ok(strncmp(row("written"), "1: 1 1 8192 8192 ", 17) == 0, "who writes of it, and of the next: the other's");
	is_str(row("host"), "1: 0 1 4096 4096 0", "whom the CPU reads there: a fault of the CPU");
	is_str(row("unused"), "1: 0 1 4096 4096 0", "who lies where the page begins: that of the CPU's first touch");
	end();
	um_vec_fini(&recorded);
	gpu->api->close(gpu);
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

static void back(struct um_activity a, const char *text)
{
	struct um_activity b = {.op = a.kind == UM_ACT_USE || a.kind == UM_ACT_OP || a.kind == UM_ACT_HINT ? 0 : a.op};
	char *got;

	if (um_nsys_mark_write(&a, &got))
		tap_bail("no memory");
	is_str(got ? got : "(none)", text, "the mark is written as: %s", text);
	if (!got)
		return;
	ok(um_nsys_mark_read(got, &b) && b.kind == a.kind && b.address == a.address && b.bytes == a.bytes &&
		   b.op == a.op && b.access == a.access && b.hint == a.hint && b.error == a.error &&
		   strcmp(b.name ? b.name : "", a.name ? a.name : "") == 0,
	   "the written mark is read back");
	free(got);
}

static void marks(void)
{
	static const char *const bad[] = {"",
					  "tensor",
					  "tensor 12",
					  "tensor x 12 a",
					  "tensor 0x10 0 a",
					  "tensor 0x10 -4 a",
					  "tensor 0x1ffffffffffffffff 4 a",
					  "tensors 0x10 4 a",
					  "tensor-end",
					  "tensor-end 0x10 1",
					  "op",
					  "op - x",
					  "op 5x",
					  "use 1 x 0x10 4",
					  "use 1 r 0x10",
					  "use 1 r 0x10 4 5",
					  "hint 1 prefetch 0x10 4",
					  "hint 1 recompute 0x10 4 0",
					  "hint - fetch 0x10 4 0",
					  "hint - evict 0x10 4 99999999999",
					  "hint - evict 0x10 4 0 0"};
	struct um_activity a = {0};
	char *text;

	back((struct um_activity){.kind = UM_ACT_TENSOR, .address = 0x7f00, .bytes = 4096, .name = "conv1 weight"},
	     "tensor 0x7f00 4096 conv1 weight");
	back((struct um_activity){.kind = UM_ACT_TENSOR, .address = UINT64_MAX, .bytes = UINT64_MAX, .name = ""},
	     "tensor 0xffffffffffffffff 18446744073709551615 ");
	back((struct um_activity){.kind = UM_ACT_TENSOR_END, .address = 0x10}, "tensor-end 0x10");
	back((struct um_activity){.kind = UM_ACT_OP, .op = 12, .name = "a b"}, "op 12 a b");
	back((struct um_activity){.kind = UM_ACT_USE, .op = 3, .address = 16, .bytes = 1, .access = UM_ACCESS_UPDATE},
	     "use 3 u 0x10 1");
	back((struct um_activity){.kind = UM_ACT_USE, .op = 3, .address = 16, .bytes = 1, .access = UM_ACCESS_WRITE},
	     "use 3 w 0x10 1");
	back((struct um_activity){.kind = UM_ACT_HINT,
				  .op = UM_ACT_NO_OP,
				  .address = 16,
				  .bytes = 8,
				  .hint = UM_HINT_DISCARD,
				  .error = 1},
	     "hint - discard 0x10 8 1");
	back(
		(struct um_activity){
			.kind = UM_ACT_HINT, .op = 9, .address = 16, .bytes = 8, .hint = UM_HINT_ADVISE, .error = -5},
		"hint 9 advise 0x10 8 -5");
	back((struct um_activity){.kind = UM_ACT_KERNEL, .name = "k"}, "(none)");
	if (um_nsys_mark_write(&(struct um_activity){.kind = UM_ACT_OP, .name = "two\nlines"}, &text))
		tap_bail("no memory");
	is_str(text, "op 0 two lines", "a name is one line");
	free(text);
	ok(um_nsys_mark_read("tensor 4096 0x10", &a) && a.address == 4096 && a.bytes == 16 && !*a.name,
	   "numbers as in C, and no name");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ok(!um_nsys_mark_read(bad[i], &a), "a malformed mark is ignored: '%s'", bad[i]);
}

int main(void)
{
	names();
	behind();
	iterations();
	shares();
	ops();
	many();
	one_page();
	marks();
	return tap_done();
}
