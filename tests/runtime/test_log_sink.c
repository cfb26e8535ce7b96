/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's own log of a whole run, with helper threads in real time: it has what the statistics have; a process
 * that is killed leaves all iterations that were over; a forked child leaves its parent's log alone; a log that can not
 * be written is counted, and nothing else.
 */
#include "oppath_app.h"

#include "io/log.h"
#include "tap.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPS (2 * APP_LAYERS)

static char file[64];

struct found {
	struct um_activity_sink sink;
	uint64_t n[UM_ACT_KINDS], refused, bytes[UM_HINT_ADVISE + 1];
	uint64_t aimed, next_op;
	unsigned wrong;
	struct um_capture capture;
	struct um_diag diag;
};

static int on_activity(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct found *f = (struct found *)sink;

	f->n[a->kind]++;
	if (a->kind == UM_ACT_OP) {
		f->wrong += a->op != f->next_op++ || strcmp(a->name, a->op % OPS < APP_LAYERS ? "forward" : "backward");
	} else if (a->kind == UM_ACT_USE) {
		f->wrong += a->op + 1 != f->next_op || a->bytes != APP_BYTES;
	} else if (a->kind == UM_ACT_HINT) {
		f->refused += a->error != 0;
		f->bytes[a->hint] += a->error ? 0 : a->bytes;
		f->aimed += a->op != UM_ACT_NO_OP;
	}
	return 0;
}

static int look(struct found *f, const char *path)
{
	memset(f, 0, sizeof *f);
	f->sink.feed = on_activity;
	return um_log_read(path, &(struct um_log_read_options){0}, &f->sink, &f->capture, &f->diag);
}

static int iterate(struct app *a, unsigned n)
{
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++) {
		err = umadv_iter(a->adv, i % 2 ? "odd" : NULL);
		if (!err)
			err = app_ops(a);
	}
	return err;
}

/* The helper threads get on with what was asked for: a program that does not wait for anything leaves them behind, and
 * then the schedule. */
static void wait_for_hints(struct app *a)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	for (int i = 0; i < 10000; i++) {
		umadv_stats_get(a->adv, &s);
		if (s.hints_issued + s.hints_refused + s.hints_dropped >= um_context_hints(a->adv))
			return;
		usleep(1000);
	}
}

static void whole(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	struct um_capture_library *l;
	struct found f;
	struct app a;
	int err = app_open(&a);

	for (int i = 0; i < 20 && !err; i++) {
		err = iterate(&a, 1);
		wait_for_hints(&a);
	}
	if (err)
		tap_bail("cannot run");
	um_context_quiesce(a.adv); /* as the end of the process does: what is under way is through then */
	umadv_stats_get(a.adv, &s);
	um_context_close(a.adv);
	ok(look(&f, file) == 0, "a log is there %s", f.diag.text);
	l = &f.capture.library;
	is_u64(l->iterations, 20, "the log has 20 iterations");
	is_u64(f.n[UM_ACT_RANGE], 20, "each iteration is a range");
	is_u64(f.n[UM_ACT_OP], 20 * OPS, "the log has all ops");
	is_u64(f.n[UM_ACT_USE], 3 * 20 * OPS, "the log has all uses");
	is_u64(f.n[UM_ACT_TENSOR], 2 * APP_LAYERS + 1, "the log has all tensors");
	is_u64(f.wrong, 0, "tensors have their number, name and size");
	is_u64(l->counts[UM_LIBRARY_OPS], s.ops, "ops are counted");
	is_u64(l->counts[UM_LIBRARY_ISSUED], s.hints_issued, "hints are counted");
	is_u64(l->counts[UM_LIBRARY_PREFETCH], s.prefetch_bytes, "prefetches add up to the statistics");
	is_u64(l->counts[UM_LIBRARY_SCHEDULED] + l->counts[UM_LIBRARY_PREDICTED] + l->counts[UM_LIBRARY_ANNOUNCED],
	       s.hints_issued, "each hint has a source");
	is_u64(l->counts[UM_LIBRARY_SCHEDULED], s.hints_scheduled, "hints of the plan are counted by themselves");
	is_u64(l->counts[UM_LIBRARY_SCHEDULED_BYTES] + l->counts[UM_LIBRARY_PREDICTED_BYTES] +
		       l->counts[UM_LIBRARY_ANNOUNCED_BYTES],
	       s.prefetch_bytes, "so are prefetched bytes");
	ok(s.hints_issued > 0, "there are some (%" PRIu64 ")", s.hints_issued);
	/* Statistics are taken before the helper threads have stopped: the last calls may not be in them. */
	ok(f.bytes[UM_HINT_PREFETCH] >= s.prefetch_bytes, "the log has the bytes to the device");
	ok(f.bytes[UM_HINT_EVICT] + f.bytes[UM_HINT_ADVISE] >= s.evict_bytes, "bytes to the host, or let go");
	ok(f.bytes[UM_HINT_DISCARD] >= s.discard_bytes, "discards have at least the bytes of the statistics");
	ok(f.aimed > 0, "a discard names its op");
	is_u64(l->counts[UM_LIBRARY_PLANS], s.plans, "the log counts the plans");
	is_u64(l->levels[UM_LIBRARY_PLAN_NS], s.plan_ns, "the log has the plan's figures");
	is_str(l->strategy, "lookahead", "the log has the strategy");
	is_u64(l->budget_bytes, s.budget_bytes, "the log has the budget");
	um_capture_fini(&f.capture);
}

static int outcome(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void killed(void)
{
	struct found f;
	struct app a;
	pid_t pid = fork();

	if (pid == 0) {
		if (app_open(&a) || iterate(&a, 7))
			_exit(1);
		raise(SIGKILL);
	}
	is_int(outcome(pid), 128 + SIGKILL, "a program is killed in its seventh iteration");
	ok(look(&f, file) == 0, "its log can be read %s", f.diag.text);
	is_u64(f.capture.library.iterations, 6, "it has those that were over");
	is_u64(f.n[UM_ACT_OP], 6 * OPS, "kept iterations have their ops");
	is_u64(f.wrong, 0, "kept tensors have number, name and size");
	um_capture_fini(&f.capture);
}

static void left_open(void)
{
	struct found f;
	struct app a;
	pid_t pid = fork();

	if (pid == 0) {
		if (app_open(&a) || iterate(&a, 7))
			_exit(1);
		exit(0);
	}
	is_int(outcome(pid), 0, "a program ends with its context open");
	ok(look(&f, file) == 0 && f.capture.library.iterations == 7, "its log has all of it");
	um_capture_fini(&f.capture);
}

static void forked(void)
{
	struct found f;
	char second[80];
	struct app a, b;
	pid_t pid;

	snprintf(second, sizeof second, "%s.2", file);
	if (app_open(&a) || iterate(&a, 3))
		tap_bail("cannot run");
	pid = fork();
	if (pid == 0) {
		iterate(&a, 3);
		umadv_close(a.adv);
		if (app_open(&b) || iterate(&b, 4))
			_exit(1);
		umadv_close(b.adv);
		exit(0);
	}
	is_int(outcome(pid), 0, "a child of a program with a log ends normally");
	iterate(&a, 2);
	umadv_close(a.adv);
	ok(look(&f, file) == 0 && f.capture.library.iterations == 5, "the parent's log is the parent's");
	um_capture_fini(&f.capture);
	ok(look(&f, second) == 0 && f.capture.library.iterations == 4, "the child's own has a name of its own");
	um_capture_fini(&f.capture);
	remove(second);
}

static void refused(void)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	struct rlimit limit, small = {16384, 0};
	struct found f;
	struct app a;

	setenv("UMADVISE_RUN_LOG", "/nonexistent/log", 1);
	if (app_open(&a) || iterate(&a, 3))
		tap_bail("cannot run");
	umadv_stats_get(a.adv, &s);
	umadv_close(a.adv);
	is_u64(s.errors, 1, "a log that can not be written is counted");
	is_u64(s.iterations, 3, "a failed log changes nothing else");

	setenv("UMADVISE_RUN_LOG", file, 1);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	small.rlim_max = limit.rlim_max;
	if (app_open(&a))
		tap_bail("cannot run");
	setrlimit(RLIMIT_FSIZE, &small);
	for (int i = 0; i < 40; i++)
		iterate(&a, 2);
	umadv_stats_get(a.adv, &s);
	umadv_close(a.adv);
	setrlimit(RLIMIT_FSIZE, &limit);
	ok(s.errors > 0 && s.iterations == 80, "the disk is full: counted, and the program goes on");
	ok(look(&f, file) == 0 && f.capture.library.iterations >= 1, "earlier parts of the log can be read");
	um_capture_fini(&f.capture);
}

/* Everything once, for tests in which memory runs out: to be right it need not be, but it must not break. */
static int once(void)
{
	struct app a = {0};
	int err = app_open(&a);

	if (!err)
		err = iterate(&a, 4);
	umadv_close(a.adv);
	remove(file);
	return err && err != -ENOMEM;
}

int main(int argc, char **argv)
{
	const char *sanitize = getenv("SANITIZE");

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	snprintf(file, sizeof file, "/tmp/um-reporting-%ld.umlog", (long)getpid());
	setenv("UMADVISE_RUN_LOG", file, 1);
	unsetenv("UMADVISE_RUN_LOG_SIZE");
	setenv("UMADVISE_LOG", "error", 1);
	if (argc > 1 && strcmp(argv[1], "once") == 0)
		return once();
	whole();
	killed();
	left_open();
	if (!sanitize || !strstr(sanitize, "thread")) /* which allows no thread in such a child */
		forked();
	refused();
	remove(file);
	return tap_done();
}
