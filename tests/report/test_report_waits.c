/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetches that come too late without a fault: programs that ask right before they need it, beside the same ones that
 * ask ahead, which is what the estimate is measured by; and recorded workloads, where the simulated GPU knows how long
 * each kernel waited.
 */
#include "sim/state.h"
#include "formats/nsys.h"
#include "planted.h"

#include <unistd.h>

static struct tensor *a, *b, *big;

static void setup(void)
{
	a = tensor("weights", 24);
	b = tensor("other", 8);
}

/* Asked for right before: the link is idle while the one before runs, and the device while it comes. */
static void right_before(void)
{
	kernel("before", b, 1);
	prefetch(a);
	kernel("first", a, 3);
	um_sim_sync(p.gpu);
	send_home(a);
}

static void ahead(void)
{
	prefetch_on(a, a->bytes, p.side);
	kernel("before", b, 1);
	um_sim_sync(p.gpu);
	kernel("first", a, 3);
	um_sim_sync(p.gpu);
	send_home(a);
}

/* The link has no time left: what comes is needed at once, and asked for as early as can be. */
static void no_time(void)
{
	prefetch(a);
	kernel("first", a, 3);
	um_sim_sync(p.gpu);
	send_home(a);
}

/* All but a block of it could not have come before: the memory is full of what is used meanwhile. */
static void no_room_setup(void)
{
	a = tensor("weights", 62);
	big = tensor("all the rest", 62);
}

static void no_room(void)
{
	prefetch(big);
	kernel("before", big, 3);
	um_sim_sync(p.gpu);
	send_home(big);
	um_sim_sync(p.gpu);
	prefetch(a);
	kernel("first", a, 3);
	um_sim_sync(p.gpu);
	send_home(a);
	um_sim_sync(p.gpu);
}

/* The driver makes room while the device stands still. */
static void full_setup(void)
{
	a = tensor("weights", 40);
	b = tensor("other", 40);
}

static void full(void)
{
	prefetch(a);
	kernel("first", a, 3);
	prefetch(b);
	kernel("second", b, 3);
}

/* In the later half of the iterations. */
static uint64_t waited(void)
{
	uint64_t ns = 0;

	for (size_t i = ITERATIONS / 2; i < ITERATIONS; i++)
		ns += report.iterations.at[i].sums.work.wait_ns;
	return ns / (ITERATIONS - ITERATIONS / 2);
}

static void planted(void)
{
	uint64_t slow, saving;
	const struct um_finding *f;

	play(64 * MIB, setup, right_before);
	f = found(UM_REASON_LATE, "weights");
	if (!ok(f != NULL, "a prefetch right before its use is found"))
		say();
	ok(f && f->severity == UM_SEVERITY_HIGH && f->waited_ns && !f->faults && f->waited_bytes == a->bytes,
	   "all of it was waited for, without a fault");
	ok(f && strstr(f->evidence, "was idle until 24.0 MiB") != NULL && strstr(f->advice, "earlier") != NULL,
	   "the finding has its evidence and advice");
	is_u64(f ? f->op : 0, 1, "the late prefetch is found in the kernel that needs it");
	is_u64(f ? f->waited_ns : 0, waited(), "the sums of all kernels are the same");
	slow = report.median_ns;
	saving = f ? f->saving_ns : 0;
	forget();
	play(64 * MIB, setup, ahead);
	is_u64(report.all.work.wait_ns, 0, "nothing is waited for where it is asked for ahead");
	ok(saving * 10 > (slow - report.median_ns) * 9 && saving * 9 < (slow - report.median_ns) * 10,
	   "the earlier prefetch saves what was estimated: %llu of %llu ns", (unsigned long long)saving,
	   (unsigned long long)(slow - report.median_ns));
	none_found("asked for ahead");
	play(64 * MIB, full_setup, full);
	f = found(UM_REASON_LATE, "weights");
	ok(f && f->full && strstr(f->advice, "free memory") != NULL,
	   "the finding says that the driver frees memory first");
	forget();
	p.speechless = 1;
	play(64 * MIB, setup, right_before);
	ok(report.findings.list.n == 1 && report.findings.list.at[0].reason == UM_REASON_LATE,
	   "the late prefetch is found in a program without the library");
	ok(report.findings.list.n && strstr(report.findings.list.at[0].estimate, "assuming that") != NULL,
	   "the estimate says that it is a guess");
	forget();
	play(64 * MIB, setup, ahead);
	none_found("asked for ahead, in a program that says nothing");
	p.speechless = 0;
}

/* Between iterations the program's thread takes its time, in which the link is idle; and there is room for a block. */
#define LITTLE_NS 250000

static int only_a_little(void)
{
	int good = 1;

	for (size_t i = 0; i < report.findings.list.n; i++)
		good &= report.findings.list.at[i].spare_ns < LITTLE_NS ||
			report.findings.list.at[i].reason == UM_REASON_WAITED;
	return good;
}

static void could_not(void)
{
	play(64 * MIB, setup, no_time);
	ok(waited() > 2ull * LITTLE_NS, "a wait is counted");
	if (!ok(only_a_little(), "it could not have come before: it had just left"))
		say();
	forget();
	play(64 * MIB, no_room_setup, no_room);
	ok(waited() > 8ull * LITTLE_NS, "a wait is counted");
	if (!ok(only_a_little(), "it could not have come before: there was no room"))
		say();
	if (!ok(found(UM_REASON_WAITED, NULL) && found(UM_REASON_WAITED, NULL)->share > 0.05,
		"a wait that no earlier prefetch would end is a finding of its own"))
		say();
	forget();
}

/* --- workloads ---------------------------------------------------------------------------------------------------- */

/* Listens, and passes on to the writer: how long the device says that each kernel waited, by its launch. */
static struct {
	struct um_activity_sink sink;
	struct um_activity_sink *writer;
	const struct um_sim *sim;
	uint64_t seen;
	UM_VEC(uint64_t) stall; /* by correlation */
} truth;

static int listen(struct um_activity_sink *sink, const struct um_activity *act)
{
	(void)sink;
	if (act->kind == UM_ACT_KERNEL) {
		while (truth.stall.n <= act->correlation)
			if (um_vec_push(&truth.stall, 0))
				tap_bail("no memory");
		truth.stall.at[act->correlation] = truth.sim->tally.stall_ns - truth.seen;
		truth.seen = truth.sim->tally.stall_ns;
	}
	return um_activity_feed(truth.writer, act);
}

static void opened(void *user, struct um_gpu *gpu)
{
	(void)user;
	truth.sim = um_sim_of(gpu);
}

/* Iterations without a fault, whose kernels waited for what was asked for: for copies, which is what is counted, and
 * besides for room and for pages that are new. Copies are at least so many percent of it. */
static void known(const char *trace, double ratio, unsigned least)
{
	const char *top = getenv("top_srcdir");
	struct um_play_options o = {.profile = um_profile_find("v100"),
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = 12,
				    .watch = &truth.sink,
				    .opened = opened};
	struct um_play_result result;
	struct um_nsys_writer *w;
	struct um_trace *t;
	struct um_diag d;
	char path[64], text[512];
	uint64_t looked_at = 0, wrong = 0, all = 0, counted = 0;

	snprintf(path, sizeof path, "/tmp/um-waits-%ld.sqlite", (long)getpid());
	snprintf(text, sizeof text, "%s/tests/data/%s.umtrace.gz", top ? top : ".", trace);
	if (um_trace_load(&t, text, &d) || um_nsys_create(&w, path, o.profile, &d))
		tap_bail(d.text);
	o.budget = (uint64_t)((double)um_trace_peak_bytes(t) / ratio);
	truth.sink.feed = listen;
	truth.writer = um_nsys_sink(w);
	truth.seen = 0;
	um_vec_clear(&truth.stall);
	um_report_init(&report, &(struct um_report_options){.capture = &capture});
	if (um_play(t, &o, &result) || um_nsys_close(w, 1, &d) ||
	    um_nsys_read(path, &(struct um_nsys_read_options){0}, &report.sink, &capture, &d) ||
	    um_report_finish(&report))
		tap_bail("cannot play");
	for (size_t i = 0; i < report.iterations.n; i++) {
		const struct um_report_iteration *it = &report.iterations.at[i];
		uint64_t stall = 0;

		/* At first, what no plan brings is prefetched on the kernels' stream: they wait for no number. */
		if (it->sums.work.faults || !it->has_calls || i < report.iterations.n / 2)
			continue;
		for (uint64_t k = it->first_call; k <= it->last_call && k < truth.stall.n; k++)
			stall += truth.stall.at[k];
		looked_at += stall > 0;
		wrong += it->sums.work.wait_ns > stall;
		all += stall;
		counted += it->sums.work.wait_ns;
	}
	ok(looked_at && !wrong && counted * 100 >= all * least,
	   "%s, %.2fx: %llu of %llu ns of waiting, in %llu iterations, are copies", trace, ratio,
	   (unsigned long long)counted, (unsigned long long)all, (unsigned long long)looked_at);
	forget();
	um_play_result_fini(&result);
	um_trace_free(t);
	remove(path);
}

int main(void)
{
	planted_begin();
	planted();
	could_not();
	planted_end();
	known("stencil_slabs", 1.25, 85);
	if (!tap_few()) {
		known("stencil_slabs", 2, 100);
		known("cg_laplace3d", 1.5, 80);
		known("alexnet_b200", 1.5, 50);
		known("alexnet_b200", 2, 50);
	}
	um_vec_fini(&truth.stall);
	return tap_done();
}
