/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems planted in small programs on the simulated GPU, each exported and read back: the report must find it, under
 * its name and with its tensor, and must not find it, or anything else, where it was not planted.
 */
#include "gpu/sim.h"
#include "io/nsys.h"
#include "player.h"
#include "report/report.h"
#include "tap.h"

#include <unistd.h>

#define MIB (1ull << 20)
#define BLOCK (2 * MIB)
#define ITERATIONS 6
#define KERNEL_NS 2000000ull
#define TENSORS 8

static char file[64];

struct tensor {
	const char *name;
	char *at;
	uint64_t told, bytes; /* its address as the export has it */
};

/* The program, who watches it, and what it has. */
static struct program {
	struct um_activity_sink sink;
	struct um_activity_sink *writer;
	struct um_gpu *gpu;
	struct tensor tensor[TENSORS];
	unsigned n;
	uint64_t op, allocated; /* the last allocation's address, as it was told */
	um_stream side;
	int speechless; /* says nothing of tensors, ops and hints */
	int faultless; /* recorded without page faults */
} p;

static int listen(struct um_activity_sink *sink, const struct um_activity *a)
{
	(void)sink;
	if (a->kind == UM_ACT_ALLOC)
		p.allocated = a->address;
	if (a->kind == UM_ACT_GPU_FAULT && p.faultless)
		return 0;
	if (a->kind == UM_ACT_CPU_FAULT) {
		struct um_activity known = *a;

		known.name = "checkpoint";
		known.domain = "app";
		return um_activity_feed(p.writer, &known);
	}
	return um_activity_feed(p.writer, a);
}

static struct um_activity said(enum um_activity_kind kind)
{
	int64_t now = (int64_t)um_sim_now(p.gpu);

	return (struct um_activity){
		.kind = kind, .begin = now, .end = now, .process = 1, .thread = 1, .device = -1, .stream = -1};
}

static void tell(const struct um_activity *a)
{
	if (!p.speechless || a->kind == UM_ACT_RANGE)
		um_activity_feed(p.writer, a);
}

/* --- what a program does ------------------------------------------------------------------------------------------ */

static struct tensor *name(const char *what, char *at, uint64_t told, uint64_t bytes)
{
	struct um_activity a = said(UM_ACT_TENSOR);

	p.tensor[p.n] = (struct tensor){what, at, told, bytes};
	a.name = what;
	a.address = told;
	a.bytes = bytes;
	tell(&a);
	return &p.tensor[p.n++];
}

static void *managed(uint64_t bytes)
{
	void *at;

	if (p.gpu->api->cudaMallocManaged(p.gpu, &at, bytes, 1))
		tap_bail("cannot allocate");
	return at;
}

/* Managed memory that the CPU has written. */
static struct tensor *tensor(const char *what, uint64_t mib)
{
	char *at = managed(mib * MIB);

	um_sim_host_touch(p.gpu, at, mib * MIB, 2);
	return name(what, at, p.allocated, mib * MIB);
}

static void use(const struct tensor *t, uint64_t off, uint64_t bytes, unsigned access)
{
	struct um_activity a = said(UM_ACT_USE);

	a.op = p.op;
	a.address = t->told + off;
	a.bytes = bytes;
	a.access = access == 1 ? UM_ACCESS_READ : access == 2 ? UM_ACCESS_WRITE : UM_ACCESS_UPDATE;
	tell(&a);
}

static void op(const char *what)
{
	struct um_activity a = said(UM_ACT_OP);

	a.name = what;
	a.op = ++p.op;
	tell(&a);
}

static void launch(const char *what, const struct um_touch *touch, uint32_t n)
{
	struct um_sim_kernel k = {
		.name = what, .ns = KERNEL_NS, .access = touch, .n_access = n, .pattern = UM_PATTERN_WIDE};

	if (um_sim_run(p.gpu, NULL, &k))
		tap_bail("cannot run");
}

/* A kernel that uses a part of a tensor: 1 reads, 2 overwrites, 3 both. */
static void kernel_on(const char *what, const struct tensor *t, uint64_t off, uint64_t bytes, unsigned access)
{
	struct um_touch touch = {.ptr = t->at + off, .bytes = bytes, .access = access};

	op(what);
	use(t, off, bytes, access);
	launch(what, &touch, 1);
}

static void kernel(const char *what, const struct tensor *t, unsigned access)
{
	kernel_on(what, t, 0, t->bytes, access);
}

static void hint(enum um_hint_kind kind, const struct tensor *t, int error, int64_t at)
{
	struct um_activity a = said(UM_ACT_HINT);

	a.begin = a.end = at;
	a.hint = kind;
	a.op = UM_ACT_NO_OP;
	a.address = t->told;
	a.bytes = t->bytes;
	a.error = error;
	tell(&a);
}

static int prefetch_on(const struct tensor *t, uint64_t bytes, um_stream stream)
{
	int64_t at = (int64_t)um_sim_now(p.gpu);
	int err = p.gpu->api->cudaMemPrefetchAsync(p.gpu, t->at, bytes, um_on_device(0), 0, stream);

	hint(UM_HINT_PREFETCH, t, err, at);
	return err;
}

static void prefetch(const struct tensor *t)
{
	if (prefetch_on(t, t->bytes, NULL))
		tap_bail("cannot prefetch");
}

static void send_home(const struct tensor *t)
{
	int64_t at = (int64_t)um_sim_now(p.gpu);

	if (p.gpu->api->cudaMemPrefetchAsync(p.gpu, t->at, t->bytes, um_on_host(), 0, NULL))
		tap_bail("cannot evict");
	hint(UM_HINT_EVICT, t, 0, at);
}

static void cpu(const struct tensor *t, uint64_t bytes)
{
	um_sim_sync(p.gpu);
	um_sim_host_touch(p.gpu, t->at, bytes, 2);
}

/* --- the problems ------------------------------------------------------------------------------------------------- */

static struct tensor *a, *b, *c;

static void two(void)
{
	a = tensor("weights", 40);
	b = tensor("other", 40);
}

static void demand(void)
{
	kernel("first", a, 3);
	kernel("second", b, 3);
}

static void one_with_other(void)
{
	a = tensor("weights", 24);
	b = tensor("other", 8);
}

static void late(void)
{
	kernel("first", a, 3);
	prefetch_on(a, a->bytes, p.side);
	kernel("second", b, 3);
	send_home(a);
}

static void early(void)
{
	prefetch(a);
	prefetch(b);
	kernel("second", b, 3);
	kernel("first", a, 3);
	send_home(a);
	send_home(b);
}

static void one(void)
{
	a = tensor("weights", 96);
}

/* 18 of the 32 pages of each block. */
static void overshoot(void)
{
	struct um_touch touch[48];
	unsigned n = (unsigned)(a->bytes / BLOCK);

	op("sparse");
	for (unsigned i = 0; i < n; i++) {
		touch[i] = (struct um_touch){.ptr = a->at + i * BLOCK, .bytes = 18 * 65536, .access = 3};
		use(a, i * BLOCK, 18 * 65536, 3);
	}
	launch("sparse", touch, n);
}

static void cpu_touch(void)
{
	kernel("first", a, 3);
	cpu(a, 8 * MIB);
}

static void ping_pong(void)
{
	for (int i = 0; i < 3; i++) {
		kernel("first", a, 3);
		cpu(a, 8 * MIB);
	}
}

/* Block by block, a tensor that the CPU works on and one of the GPU's. */
static void shared_setup(void)
{
	char *at = managed(BLOCK);
	uint64_t told = p.allocated;

	um_sim_host_touch(p.gpu, at, BLOCK, 2);
	b = name("of the CPU", at, told, 20 * 65536);
	a = name("weights", at + 20 * 65536, told + 20 * 65536, 12 * 65536);
}

static void shared(void)
{
	kernel("first", a, 3);
	cpu(b, b->bytes);
}

static void read_mostly_setup(void)
{
	one_with_other();
	p.gpu->api->cudaMemAdvise(p.gpu, a->at, a->bytes, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
}

static void collapse(void)
{
	kernel("reads", a, 1);
	kernel("writes", a, 3);
}

static void discarded(void)
{
	void *at = a->at;
	size_t bytes = a->bytes;
	int64_t now;

	kernel("reads", a, 1);
	um_sim_sync(p.gpu);
	now = (int64_t)um_sim_now(p.gpu);
	if (p.gpu->api->cudaMemDiscardBatchAsync(p.gpu, &at, &bytes, 1, 0, p.side))
		tap_bail("cannot discard");
	um_sim_sync(p.gpu);
	hint(UM_HINT_DISCARD, a, 0, now);
	kernel("writes", a, 2);
}

static void fresh(void)
{
	char *at = managed(32 * MIB);
	struct tensor *t = name("scratch", at, p.allocated, 32 * MIB);

	kernel("first", t, 2);
	um_sim_sync(p.gpu);
	p.gpu->api->cudaFree(p.gpu, at);
	p.n--;
}

static void clean(void)
{
	kernel("first", a, 1);
	kernel("second", b, 1);
}

static void dead_setup(void)
{
	a = tensor("weights", 32);
	b = tensor("scratch", 32);
}

static void dead(void)
{
	kernel("makes", b, 2);
	kernel("takes", b, 1);
	kernel("first", a, 3);
}

static void redundant(void)
{
	prefetch(a);
	kernel("first", a, 3);
}

static void refused(void)
{
	prefetch_on(a, a->bytes + 64 * MIB, NULL);
	kernel("first", a, 3);
}

static void none_setup(void)
{
}

/* What it should be: asked for ahead, in time, and sent home where the room is needed. */
static void orderly_setup(void)
{
	a = tensor("weights", 24);
	b = tensor("other", 24);
	c = tensor("third", 24);
}

static void orderly(void)
{
	struct tensor *const turn[] = {a, b, c};

	for (int i = 0; i < 3; i++) {
		prefetch(turn[i]);
		kernel("works", turn[i], 3);
		um_sim_sync(p.gpu);
		send_home(turn[i]);
	}
}

static void in_core(void)
{
	kernel("first", a, 3);
	kernel("second", b, 1);
}

/* --- found or not ------------------------------------------------------------------------------------------------- */

static struct um_report report;
static struct um_capture capture;

static void read_back(void)
{
	struct um_nsys_read_options ro = {0};
	struct um_diag d;

	um_report_init(&report, &(struct um_report_options){0});
	if (um_nsys_read(file, &ro, &report.sink, &capture, &d) || um_report_finish(&report))
		tap_bail(d.text);
}

static void forget(void)
{
	um_report_fini(&report);
	um_capture_fini(&capture);
}

static void say(void)
{
	for (size_t i = 0; i < report.findings.list.n; i++) {
		const struct um_finding *f = &report.findings.list.at[i];

		diag("%s: %s, %s: %.1f %%; %s", um_severity_name(f->severity), um_reason_name(f->reason),
		     um_report_tensor_name(&report, f->tensor), 100 * f->share, f->evidence);
	}
}

static const struct um_finding *found(enum um_reason reason, const char *tensor_name)
{
	for (size_t i = 0; i < report.findings.list.n; i++) {
		const struct um_finding *f = &report.findings.list.at[i];

		if (f->reason == reason && strcmp(um_report_tensor_name(&report, f->tensor), tensor_name) == 0)
			return f;
	}
	return NULL;
}

static void play(uint64_t capacity, void (*setup)(void), void (*iteration)(void))
{
	struct um_nsys_writer *w;
	struct um_diag d;
	int speechless = p.speechless, faultless = p.faultless;

	memset(&p, 0, sizeof p);
	p.speechless = speechless;
	p.faultless = faultless;
	p.sink.feed = listen;
	if (um_nsys_create(&w, file, um_profile_find("a100"), &d))
		tap_bail(d.text);
	p.writer = um_nsys_sink(w);
	if (um_sim_open(&p.gpu, &(struct um_sim_options){
					.profile = um_profile_find("a100"), .capacity = capacity, .watch = &p.sink}) ||
	    p.gpu->api->cudaStreamCreateWithFlags(p.gpu, &p.side, UM_STREAM_NON_BLOCKING))
		tap_bail("cannot open");
	setup();
	for (int i = 0; i < ITERATIONS; i++) {
		struct um_activity range = said(UM_ACT_RANGE);
		char text[32];

		snprintf(text, sizeof text, "iteration %d", i);
		iteration();
		um_sim_sync(p.gpu);
		range.name = text;
		range.domain = UM_REPORT_DOMAIN;
		range.end = (int64_t)um_sim_now(p.gpu);
		tell(&range);
	}
	p.gpu->api->close(p.gpu);
	if (um_nsys_close(w, 1, &d))
		tap_bail(d.text);
	read_back();
}

/* What became of the prefetches of a tensor. */
static struct um_hint_row hints_of(const char *tensor_name)
{
	const struct um_hints *h = &report.causes.hints;

	for (size_t i = 0; i < h->rows.n; i++)
		if (h->rows.at[i].kind == UM_HINT_PREFETCH &&
		    strcmp(um_report_tensor_name(&report, h->rows.at[i].tensor), tensor_name) == 0)
			return h->rows.at[i];
	return (struct um_hint_row){0};
}

/* Hints of a plant are judged as what was planted. */
static void judged(enum um_reason reason)
{
	struct um_hint_row h = hints_of("weights");

	if (reason == UM_REASON_LATE)
		ok(h.issued == ITERATIONS && h.late == ITERATIONS, "each prefetch was late");
	else if (reason == UM_REASON_EARLY)
		is_u64(h.early, ITERATIONS, "each prefetch was evicted before use");
	else if (reason == UM_REASON_REDUNDANT)
		ok(h.redundant == ITERATIONS - 1, "each prefetch but the first was redundant");
	else if (reason == UM_REASON_REFUSED)
		ok(h.refused == ITERATIONS && h.issued == ITERATIONS, "each prefetch was refused");
}

static void planted(void)
{
	static const struct {
		enum um_reason reason;
		const char *tensor;
		uint64_t capacity;
		void (*setup)(void), (*iteration)(void);
	} plants[] = {
		{UM_REASON_DEMAND, "weights", 64 * MIB, two, demand},
		{UM_REASON_LATE, "weights", 64 * MIB, one_with_other, late},
		{UM_REASON_EARLY, "weights", 64 * MIB, two, early},
		{UM_REASON_OVERSHOOT, "weights", 64 * MIB, one, overshoot},
		{UM_REASON_CPU, "weights", 64 * MIB, one_with_other, cpu_touch},
		{UM_REASON_PING_PONG, "weights", 64 * MIB, one_with_other, ping_pong},
		{UM_REASON_SHARED, "weights", 64 * MIB, shared_setup, shared},
		{UM_REASON_COLLAPSE, "weights", 64 * MIB, read_mostly_setup, collapse},
		{UM_REASON_DISCARDED, "weights", 64 * MIB, one_with_other, discarded},
		{UM_REASON_FRESH, "scratch", 64 * MIB, none_setup, fresh},
		{UM_REASON_CLEAN, "weights", 64 * MIB, two, clean},
		{UM_REASON_DEAD, "scratch", 48 * MIB, dead_setup, dead},
		{UM_REASON_REDUNDANT, "weights", 64 * MIB, one_with_other, redundant},
		{UM_REASON_REFUSED, "weights", 64 * MIB, one_with_other, refused},
	};

	for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
		const struct um_finding *f;

		play(plants[i].capacity, plants[i].setup, plants[i].iteration);
		f = found(plants[i].reason, plants[i].tensor);
		if (!ok(f != NULL, "planted: %s of %s", um_reason_name(plants[i].reason), plants[i].tensor))
			say();
		ok(f && (f->saving_ns || plants[i].reason == UM_REASON_REFUSED) && *f->evidence && *f->advice &&
		           *f->estimate,
		   "%s: with its figures and what to do", um_reason_name(plants[i].reason));
		if (f && (f->reason == UM_REASON_CPU || f->reason == UM_REASON_PING_PONG))
			ok(strstr(f->evidence, "checkpoint of app") != NULL, "%s: with the CPU's function",
			   um_reason_name(f->reason));
		judged(plants[i].reason);
		forget();
	}
}

static void none_found(const char *what)
{
	if (!is_u64(report.findings.list.n, 0, "none: %s", what))
		say();
	forget();
}

/* A call that failed, in a program that says nothing. */
static void mute_refused(void)
{
	const struct um_activity call = {.kind = UM_ACT_CALL,
	                                 .begin = (int64_t)um_sim_now(p.gpu),
	                                 .end = (int64_t)um_sim_now(p.gpu) + 1000,
	                                 .process = 1,
	                                 .thread = 1,
	                                 .correlation = 1u << 30,
	                                 .name = "cudaMemPrefetchAsync_v8000",
	                                 .error = 101};

	um_activity_feed(p.writer, &call);
	kernel("first", a, 3);
}

/* Programs that have never heard of us: no tensors, ops and hints in the export. */
static void mute(void)
{
	static const struct {
		enum um_reason reason;
		void (*setup)(void), (*iteration)(void);
	} plants[] = {
		{UM_REASON_DEMAND, two, demand},
		{UM_REASON_CPU, one_with_other, cpu_touch},
		{UM_REASON_PING_PONG, one_with_other, ping_pong},
		{UM_REASON_COLLAPSE, read_mostly_setup, collapse},
		{UM_REASON_FRESH, none_setup, fresh},
		{UM_REASON_REFUSED, one_with_other, mute_refused},
	};

	p.speechless = 1;
	for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
		int there = 0;

		play(64 * MIB, plants[i].setup, plants[i].iteration);
		for (size_t k = 0; k < report.findings.list.n; k++)
			there |= report.findings.list.at[k].reason == plants[i].reason;
		if (!ok(there, "in a program that says nothing: %s", um_reason_name(plants[i].reason)))
			say();
		forget();
	}
	play(64 * MIB, one_with_other, in_core);
	none_found("all fits, in a program that says nothing");
	play(64 * MIB, orderly_setup, orderly);
	none_found("asked for in time, in a program that says nothing");
	p.speechless = 0;
}

/* A workload played by the library. */
static void workload(const char *trace, enum um_play_strategy strategy, double ratio)
{
	const char *top = getenv("top_srcdir");
	struct um_play_options o = {.profile = um_profile_find("v100"), .strategy = strategy, .iterations = 8};
	struct um_play_result result;
	struct um_nsys_writer *w;
	struct um_trace *t;
	struct um_diag d;
	char text[512];

	snprintf(text, sizeof text, "%s/tests/data/%s.umtrace.gz", top ? top : ".", trace);
	if (um_trace_load(&t, text, &d) || um_nsys_create(&w, file, o.profile, &d))
		tap_bail(d.text);
	o.budget = (uint64_t)((double)um_trace_peak_bytes(t) / ratio);
	o.watch = um_nsys_sink(w);
	if (um_play(t, &o, &result) || um_nsys_close(w, 1, &d))
		tap_bail("cannot play");
	um_play_result_fini(&result);
	um_trace_free(t);
	read_back();
	snprintf(text, sizeof text, "%s, %s, %.2fx", trace, um_play_strategy_name(strategy), ratio);
	none_found(text);
}

int main(void)
{
	snprintf(file, sizeof file, "/tmp/um-planted-%ld.sqlite", (long)getpid());
	planted();
	mute();
	p.faultless = 1;
	play(64 * MIB, two, demand);
	if (!ok(found(UM_REASON_DEMAND, "weights") != NULL, "demand, where page faults were not recorded"))
		say();
	forget();
	p.faultless = 0;
	play(64 * MIB, one_with_other, in_core);
	none_found("all fits");
	play(64 * MIB, orderly_setup, orderly);
	ok(hints_of("weights").useful == ITERATIONS && hints_of("third").useful == ITERATIONS,
	   "each prefetch was useful");
	none_found("asked for in time");
	workload("alexnet_b200", UM_PLAY_ON_DEMAND, 0.5);
	workload("alexnet_b200", UM_PLAY_LOOKAHEAD, 0.5);
	workload("alexnet_b200", UM_PLAY_LOOKAHEAD, 1.5);
	workload("stencil_slabs", UM_PLAY_LOOKAHEAD, 1.5);
	workload("cg_laplace3d", UM_PLAY_LOOKAHEAD, 1.5);
	remove(file);
	return tap_done();
}
