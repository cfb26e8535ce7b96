/* SPDX-License-Identifier: Apache-2.0
 *
 * What the report finds in an export is what the simulated GPU knows: recorded workloads are played and exported, and
 * faults and bytes by kernel and iteration must be those of the device's own ledger, to the fault and the byte.
 *
 * The ledger is read whenever a kernel ends; which iteration launched it is counted, not looked up by time.
 */
#include "sim/ledger.h"
#include "sim/state.h"
#include "formats/nsys.h"
#include "play/player.h"
#include "report/report.h"
#include "tap.h"
#include "truth_tensors.h"

#include <unistd.h>

#define NONE (-1)
#define ITERATIONS 3

struct cell {
	char name[64];
	int iteration;
	struct um_report_work work; /* launches, faults, bytes */
};

/* Listens, and passes on to the writer. */
static struct truth {
	struct um_activity_sink sink;
	struct um_activity_sink *writer;
	const struct um_sim *sim;
	uint64_t launched, before_first; /* ops; those before the first iteration */
	int ended; /* iterations */
	UM_VEC(int) iteration; /* by correlation */
	UM_VEC(struct cell) cells;
	UM_VEC(struct um_ledger_kernel) seen; /* ledger rows when last looked at */
	struct um_tally tally;
} truth;

static struct cell *cell_of(const char *name, int iteration)
{
	struct cell c = {.iteration = iteration};

	for (size_t i = 0; i < truth.cells.n; i++)
		if (truth.cells.at[i].iteration == iteration && strcmp(truth.cells.at[i].name, name) == 0)
			return &truth.cells.at[i];
	snprintf(c.name, sizeof c.name, "%s", name);
	if (um_vec_push(&truth.cells, c))
		tap_bail("no memory");
	return &truth.cells.at[truth.cells.n - 1];
}

/* A kernel has served its last fault: what its row has grown by is its. */
static void kernel_ended(const struct um_activity *a)
{
	const struct um_ledger *l = truth.sim->ledger;
	int iteration = a->correlation < truth.iteration.n ? truth.iteration.at[a->correlation] : NONE;
	struct cell *c = cell_of(a->name, iteration);

	c->work.launches++;
	for (size_t i = 1; i < l->kernel.n; i++) {
		const struct um_ledger_kernel *now = &l->kernel.at[i];

		while (truth.seen.n <= i)
			if (um_vec_push(&truth.seen, (struct um_ledger_kernel){0}))
				tap_bail("no memory");
		if (strcmp(now->name, a->name) != 0)
			continue;
		c->work.faults += now->faults - truth.seen.at[i].faults;
		c->work.h2d_bytes += now->h2d_bytes - truth.seen.at[i].h2d_bytes;
		c->work.d2h_bytes += now->d2h_bytes - truth.seen.at[i].d2h_bytes;
		truth.seen.at[i] = *now;
	}
}

static int listen(struct um_activity_sink *sink, const struct um_activity *a)
{
	(void)sink;
	truth.tally = truth.sim->tally;
	truth_tensors_listen(a);
	if (a->kind == UM_ACT_RANGE)
		truth.ended++;
	if (a->kind == UM_ACT_CALL) {
		int launch = strncmp(a->name, "cudaLaunch", 10) == 0;
		int which = launch && truth.launched >= truth.before_first ? truth.ended : NONE;

		truth.launched += (uint64_t)launch;
		while (truth.iteration.n <= a->correlation)
			if (um_vec_push(&truth.iteration, which))
				tap_bail("no memory");
	}
	if (a->kind == UM_ACT_KERNEL)
		kernel_ended(a);
	return um_activity_feed(truth.writer, a);
}

static void opened(void *user, struct um_gpu *gpu)
{
	(void)user;
	truth.sim = um_sim_of(gpu);
	truth_tensors_opened(um_sim_of(gpu));
}

static uint64_t ops_before_first(const struct um_trace *t)
{
	uint64_t n = 0;

	for (size_t i = 0; i < um_trace_length(t) && um_trace_event(t, i)->kind != UM_EV_ITER; i++)
		n += um_trace_event(t, i)->kind == UM_EV_OP;
	return n;
}

/* What hints evicted. */
static uint64_t evicted_by_hints(const struct um_report *r)
{
	uint64_t bytes = r->all.moves[UM_DIR_D2H][UM_CAUSE_EVICTION].bytes;

	for (size_t i = 0; i < truth.cells.n; i++)
		bytes -= truth.cells.at[i].work.d2h_bytes;
	return bytes;
}

/* Cells that are not the same, told one by one as far as a reader can bear. Where helper threads prefetch, a recording
 * does not say whether an eviction was for a fault that is being served or for a prefetch at the same time: with
 * `helpers` kernels may be charged with such, and with no more than there were. */
static unsigned differences(const struct um_report *r, int helpers)
{
	unsigned bad = r->cells.n != truth.cells.n;
	uint64_t excess = 0;

	for (size_t i = 0; i < r->cells.n; i++) {
		const struct um_report_cell *c = &r->cells.at[i];
		int iteration = c->iteration == UM_REPORT_NONE ? NONE : (int)r->iterations.at[c->iteration].n;
		const struct cell *t = cell_of(r->ops.at[c->op].name, iteration);

		if (c->work.launches == t->work.launches && c->work.faults == t->work.faults &&
		    c->work.h2d_bytes == t->work.h2d_bytes &&
		    (helpers ? c->work.d2h_bytes >= t->work.d2h_bytes : c->work.d2h_bytes == t->work.d2h_bytes)) {
			excess += c->work.d2h_bytes - t->work.d2h_bytes;
			continue;
		}
		if (bad++ < 5)
			diag("%s in %d, found and true: launches %" PRIu64 " %" PRIu64 ", faults %" PRIu64 " %" PRIu64
			     ", in %" PRIu64 " %" PRIu64 ", out %" PRIu64 " %" PRIu64,
			     t->name, iteration, c->work.launches, t->work.launches, c->work.faults, t->work.faults,
			     c->work.h2d_bytes, t->work.h2d_bytes, c->work.d2h_bytes, t->work.d2h_bytes);
	}
	return bad + (excess > evicted_by_hints(r));
}

static void check(const struct um_report *r, int helpers, const char *what)
{
	struct um_report_sums sum = r->outside;

	for (size_t i = 0; i < r->iterations.n; i++) {
		sum.work.faults += r->iterations.at[i].sums.work.faults;
		sum.work.launches += r->iterations.at[i].sums.work.launches;
		for (int k = 0; k < (UM_DIR_D2D + 1) * UM_CAUSES; k++)
			sum.moves[k / UM_CAUSES][k % UM_CAUSES].bytes +=
				r->iterations.at[i].sums.moves[k / UM_CAUSES][k % UM_CAUSES].bytes;
	}
	is_u64(r->iterations.n, ITERATIONS, "%s: the report has all iterations", what);
	is_u64(r->all.work.faults, truth.tally.faults, "%s: the report has all faults", what);
	is_u64(um_report_moved(&r->all, UM_DIR_H2D), truth.tally.h2d_bytes,
	       "%s: the report has all bytes to the device", what);
	is_u64(um_report_moved(&r->all, UM_DIR_D2H), truth.tally.d2h_bytes, "%s: the report has all bytes to the host",
	       what);
	is_u64(r->all.work.launches, truth.launched, "%s: the report has all kernels", what);
	ok(sum.work.faults == r->all.work.faults && sum.work.launches == r->all.work.launches &&
		   um_report_moved(&sum, UM_DIR_H2D) == um_report_moved(&r->all, UM_DIR_H2D) &&
		   um_report_moved(&sum, UM_DIR_D2H) == um_report_moved(&r->all, UM_DIR_D2H),
	   "%s: iterations and what is outside of them are all", what);
	is_u64(differences(r, helpers), 0, "%s: each kernel's figures are right in each iteration", what);
	is_u64(truth_tensors_compare(r), 0, "%s: each tensor's figures are right by iteration and cause", what);
}

static void play(const struct um_trace *t, enum um_play_strategy strategy, const char *path, const char *what)
{
	struct um_play_options o = {.profile = um_profile_find("v100"),
				    .budget = um_trace_peak_bytes(t) * 2 / 3,
				    .strategy = strategy,
				    .iterations = ITERATIONS,
				    .watch = &truth.sink,
				    .opened = opened};
	struct um_nsys_read_options ro = {0};
	struct um_play_result result;
	struct um_nsys_writer *w;
	struct um_capture capture;
	struct um_report r;
	struct um_diag d;
	int err;

	um_vec_clear(&truth.iteration);
	um_vec_clear(&truth.cells);
	um_vec_clear(&truth.seen);
	truth.sink.feed = listen;
	truth.launched = 0;
	truth.ended = 0;
	truth.before_first = ops_before_first(t);
	truth_tensors_begin(t);
	if (um_nsys_create(&w, path, o.profile, &d))
		tap_bail(d.text);
	truth.writer = um_nsys_sink(w);
	err = um_play(t, &o, &result);
	ok(!err, "%s: the workload is played", what);
	ok(um_nsys_close(w, 1, &d) == 0, "%s: the run is exported %s", what, d.text);
	um_play_result_fini(&result);
	um_report_init(&r, &(struct um_report_options){0});
	err = um_nsys_read(path, &ro, &r.sink, &capture, &d);
	ok(!err && !um_report_finish(&r), "%s: read %s", what, d.text);
	if (!err)
		check(&r, strategy == UM_PLAY_LOOKAHEAD, what);
	um_report_fini(&r);
	um_capture_fini(&capture);
}

static void play_all(const char *path, const char *name, const char *file)
{
	const enum um_play_strategy strategies[] = {UM_PLAY_ON_DEMAND, UM_PLAY_PREFETCH_ON_USE, UM_PLAY_LOOKAHEAD};
	const char *few = getenv("SANITIZE");
	struct um_trace *t;
	struct um_diag d;
	char what[128];

	if (um_trace_load(&t, path, &d))
		tap_bail(d.text);
	/* The large ones show nothing more to a sanitizer. */
	for (int s = 0; s < 3 && !(few && *few && um_trace_length(t) > 4000); s++) {
		snprintf(what, sizeof what, "%s, %s", name, um_play_strategy_name(strategies[s]));
		play(t, strategies[s], file, what);
	}
	um_trace_free(t);
}

/* Other traces may be given. */
int main(int argc, char **argv)
{
	static const char *const traces[] = {"alexnet_b200", "cg_laplace3d", "cifar_vgg16_b100", "gpt2_small",
					     "lstm_lm",	     "resnet50",     "stencil_slabs",	 "transformer_varlen",
					     "vgg16"};
	const char *top = getenv("top_srcdir");
	char path[512], file[64];

	snprintf(file, sizeof file, "/tmp/um-truth-%ld.sqlite", (long)getpid());
	for (int i = 1; i < argc; i++)
		play_all(argv[i], argv[i], file);
	for (size_t i = 0; i < sizeof traces / sizeof *traces && argc < 2; i++) {
		snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", traces[i]);
		play_all(path, traces[i], file);
	}
	remove(file);
	um_vec_fini(&truth.iteration);
	um_vec_fini(&truth.cells);
	um_vec_fini(&truth.seen);
	truth_tensors_fini();
	return tap_done();
}
