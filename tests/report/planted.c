/* SPDX-License-Identifier: Apache-2.0 */
#include "planted.h"

#include "formats/nsys.h"
#include "tap.h"

#include <unistd.h>

static char file[64];

struct program p;
struct um_report report;
struct um_capture capture;

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

struct um_activity said(enum um_activity_kind kind)
{
	int64_t now = (int64_t)um_sim_now(p.gpu);

	return (struct um_activity){
		.kind = kind, .begin = now, .end = now, .process = 1, .thread = 1, .device = -1, .stream = -1};
}

void feed(const struct um_activity *a)
{
	if (!p.speechless || a->kind == UM_ACT_RANGE)
		um_activity_feed(p.writer, a);
}

/* --- what a program does ------------------------------------------------------------------------------------------ */

struct tensor *name(const char *what, char *at, uint64_t exported, uint64_t bytes)
{
	struct um_activity a = said(UM_ACT_TENSOR);

	p.tensor[p.n] = (struct tensor){what, at, exported, bytes};
	a.name = what;
	a.address = exported;
	a.bytes = bytes;
	feed(&a);
	return &p.tensor[p.n++];
}

void *managed(uint64_t bytes)
{
	void *at;

	if (p.gpu->api->cudaMallocManaged(p.gpu, &at, bytes, 1))
		tap_bail("cannot allocate");
	return at;
}

/* Managed memory that the CPU has written. */
struct tensor *tensor(const char *what, uint64_t mib)
{
	char *at = managed(mib * MIB);

	um_sim_host_touch(p.gpu, at, mib * MIB, 2);
	return name(what, at, p.allocated, mib * MIB);
}

void use(const struct tensor *t, uint64_t off, uint64_t bytes, unsigned access)
{
	struct um_activity a = said(UM_ACT_USE);

	a.op = p.op;
	a.address = t->exported + off;
	a.bytes = bytes;
	a.access = access == 1 ? UM_ACCESS_READ : access == 2 ? UM_ACCESS_WRITE : UM_ACCESS_UPDATE;
	feed(&a);
}

void op(const char *what)
{
	struct um_activity a = said(UM_ACT_OP);

	a.name = what;
	a.op = ++p.op;
	feed(&a);
}

void launch(const char *what, const struct um_touch *touch, uint32_t n)
{
	struct um_sim_kernel k = {
		.name = what, .ns = KERNEL_NS, .access = touch, .n_access = n, .pattern = UM_PATTERN_ONE_BATCH};

	if (um_sim_run(p.gpu, NULL, &k))
		tap_bail("cannot run");
}

/* A kernel that uses a part of a tensor: 1 reads, 2 overwrites, 3 both. */
void kernel_on(const char *what, const struct tensor *t, uint64_t off, uint64_t bytes, unsigned access)
{
	struct um_touch touch = {.ptr = t->at + off, .bytes = bytes, .access = access};

	op(what);
	use(t, off, bytes, access);
	launch(what, &touch, 1);
}

void kernel(const char *what, const struct tensor *t, unsigned access)
{
	kernel_on(what, t, 0, t->bytes, access);
}

void hint(enum um_hint_kind kind, const struct tensor *t, int error, int64_t at)
{
	struct um_activity a = said(UM_ACT_HINT);

	a.begin = a.end = at;
	a.hint = kind;
	a.op = UM_ACT_NO_OP;
	a.address = t->exported;
	a.bytes = t->bytes;
	a.error = error;
	feed(&a);
}

int prefetch_on(const struct tensor *t, uint64_t bytes, um_stream stream)
{
	int64_t at = (int64_t)um_sim_now(p.gpu);
	int err = p.gpu->api->cudaMemPrefetchAsync(p.gpu, t->at, bytes, um_on_device(0), 0, stream);

	hint(UM_HINT_PREFETCH, t, err, at);
	return err;
}

void prefetch(const struct tensor *t)
{
	if (prefetch_on(t, t->bytes, NULL))
		tap_bail("cannot prefetch");
}

void send_home(const struct tensor *t)
{
	int64_t at = (int64_t)um_sim_now(p.gpu);

	if (p.gpu->api->cudaMemPrefetchAsync(p.gpu, t->at, t->bytes, um_on_host(), 0, NULL))
		tap_bail("cannot evict");
	hint(UM_HINT_EVICT, t, 0, at);
}

void cpu(const struct tensor *t, uint64_t bytes)
{
	um_sim_sync(p.gpu);
	um_sim_host_touch(p.gpu, t->at, bytes, 2);
}

/* --- found or not ------------------------------------------------------------------------------------------------- */

static void read_back(void)
{
	struct um_nsys_read_options ro = {0};
	struct um_diag d;

	um_report_init(&report, &(struct um_report_options){.capture = &capture});
	if (um_nsys_read(file, &ro, &report.sink, &capture, &d) || um_report_finish(&report))
		tap_bail(d.text);
}

void forget(void)
{
	um_report_fini(&report);
	um_capture_fini(&capture);
}

void say(void)
{
	for (size_t i = 0; i < report.findings.list.n; i++) {
		const struct um_finding *f = &report.findings.list.at[i];

		diag("%s: %s, %s: %.1f %%; %s", um_severity_name(f->severity), um_reason_name(f->reason),
		     um_report_tensor_name(&report, f->tensor), 100 * f->share, f->evidence);
	}
}

const struct um_finding *found(enum um_reason reason, const char *tensor_name)
{
	for (size_t i = 0; i < report.findings.list.n; i++) {
		const struct um_finding *f = &report.findings.list.at[i];

		if (f->reason == reason &&
		    (!tensor_name || strcmp(um_report_tensor_name(&report, f->tensor), tensor_name) == 0))
			return f;
	}
	return NULL;
}

void play(uint64_t capacity, void (*setup)(void), void (*iteration)(void))
{
	struct um_nsys_writer *w;
	struct um_diag d;
	struct um_profile device = *um_profile_find("a100");
	int speechless = p.speechless, faultless = p.faultless;

	memset(&p, 0, sizeof p);
	p.speechless = speechless;
	p.faultless = faultless;
	p.sink.feed = listen;
	device.capacity = capacity;
	if (um_nsys_create(&w, file, &device, &d))
		tap_bail(d.text);
	p.writer = um_nsys_sink(w);
	if (um_sim_open(&p.gpu, &(struct um_sim_options){.profile = um_profile_find("a100"),
							 .capacity = capacity,
							 .watch = &p.sink}) ||
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
		feed(&range);
	}
	p.gpu->api->close(p.gpu);
	if (um_nsys_close(w, 1, &d))
		tap_bail(d.text);
	read_back();
}

/* What became of the prefetches of a tensor. */
struct um_hint_row hints_of(const char *tensor_name)
{
	const struct um_hints *h = &report.causes.hints;

	for (size_t i = 0; i < h->rows.n; i++)
		if (h->rows.at[i].kind == UM_HINT_PREFETCH &&
		    strcmp(um_report_tensor_name(&report, h->rows.at[i].tensor), tensor_name) == 0)
			return h->rows.at[i];
	return (struct um_hint_row){0};
}

/* A workload played by the library, read back. */
void workload(const char *trace, enum um_play_strategy strategy, double ratio)
{
	const char *top = getenv("top_srcdir");
	struct um_play_options o = {.profile = um_profile_find("v100"), .strategy = strategy, .iterations = 8};
	struct um_profile device = *o.profile;
	struct um_play_result result;
	struct um_nsys_writer *w;
	struct um_trace *t;
	struct um_diag d;
	char text[512];

	snprintf(text, sizeof text, "%s/tests/data/%s.umtrace.gz", top ? top : ".", trace);
	if (um_trace_load(&t, text, &d))
		tap_bail(d.text);
	device.capacity = o.budget = (uint64_t)((double)um_trace_peak_bytes(t) / ratio);
	if (um_nsys_create(&w, file, &device, &d))
		tap_bail(d.text);
	o.watch = um_nsys_sink(w);
	if (um_play(t, &o, &result) || um_nsys_close(w, 1, &d))
		tap_bail("cannot play");
	um_play_result_fini(&result);
	um_trace_free(t);
	read_back();
}

void planted_begin(void)
{
	snprintf(file, sizeof file, "/tmp/um-planted-%ld.sqlite", (long)getpid());
}

void planted_end(void)
{
	remove(file);
}
