/* SPDX-License-Identifier: Apache-2.0
 *
 * Mistakes in what a program announces: each is logged once in a context, with the op and the tensor, and counted.
 */
#include "umadvise.h"

#include "fixture/random.h"
#include "tap.h"

#include <errno.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define HAS(text) strstr(logged, text)

static char logged[4096];
static int n_logs;

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	size_t n = strlen(logged);

	(void)user;
	(void)level;
	n_logs++;
	snprintf(logged + n, sizeof logged - n, "%s\n", line);
}

static void forget(void)
{
	logged[0] = '\0';
	n_logs = 0;
}

static struct umadv *open_with(const char *trace, const char *report)
{
	struct umadv_options o;
	struct umadv *adv = NULL;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 64 * MIB;
	o.trace = trace;
	o.run_log = report;
	o.log = on_log;
	forget();
	if (umadv_open(&adv, &o))
		tap_bail("no context");
	return adv;
}

static struct umadv_stats stats_of(struct umadv *adv)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	umadv_stats_get(adv, &s);
	return s;
}

static void ranges(void)
{
	struct umadv *adv = open_with(NULL, NULL);
	char *p, *q;

	umadv_alloc(adv, (void **)&p, 4096, "weights", UMADV_PARAM);
	umadv_alloc(adv, (void **)&q, 512, NULL, UMADV_OTHER);
	umadv_iter(adv, NULL);
	is_int(umadv_op(adv, NULL, "conv1", UMADV_USES(UMADV_READ_RANGE(p + 96, 4001))), -EINVAL,
	       "a range that ends one byte after its tensor is refused");
	ok(HAS("'conv1'") && HAS("'weights'") && HAS("bytes 96 to 4097") && HAS("4096 bytes"),
	   "the log names the op, the tensor, its bytes and the range: %s", logged);
	is_int(umadv_op(adv, NULL, "conv2", UMADV_USES(UMADV_READ_RANGE(q, 513))), -EINVAL, "a second one is refused");
	is_int(n_logs, 1, "a range beyond its tensor is logged once");
	is_int(umadv_op(adv, NULL, "conv1", UMADV_USES(UMADV_READ_RANGE(p + 96, 4000))), 0,
	       "a range that ends with its tensor is accepted");
	umadv_close(adv);
}

static void reserved(void)
{
	struct umadv *adv = open_with(NULL, NULL);
	struct umadv_use use = {.access = UMADV_ACCESS_READ};
	void *p;

	umadv_alloc(adv, &p, 4096, "weights", UMADV_PARAM);
	use.ptr = p;
	for (int i = 0; i < 4; i++) {
		umadv_iter(adv, NULL);
		is_int(umadv_op(adv, NULL, "conv1", &use, 1), 0, "a use by a designated initialiser is accepted: %d",
		       i);
	}
	use.reserved = 1;
	is_int(umadv_op(adv, NULL, "conv1", &use, 1), -EINVAL, "a reserved member that is not zero is refused");
	ok(HAS("'conv1'") && HAS("reserved"), "the log names the op and the reserved members: %s", logged);
	umadv_iter(adv, NULL);
	is_int(umadv_op(adv, NULL, "conv1", &use, 1), -EINVAL, "it is refused where the plan expects the op");
	use.reserved = 0;
	use.reserved_more = p;
	is_int(umadv_op(adv, NULL, "conv1", &use, 1), -EINVAL,
	       "the reserved pointer is refused where the plan expects the op");
	is_int(n_logs, 1, "reserved members are logged once");
	use.reserved_more = NULL;
	is_int(umadv_op(adv, NULL, "conv1", &use, 1), 0, "the op is accepted once they are zero again");
	is_u64(stats_of(adv).ops, 5, "refused ops are not counted");
	umadv_close(adv);
}

static void accesses(void)
{
	struct umadv *adv = open_with(NULL, NULL);
	struct umadv_use neither = {.access = 4};
	void *p;

	umadv_alloc(adv, &p, 4096, "weights", UMADV_PARAM);
	neither.ptr = p;
	is_int(umadv_op(adv, NULL, "conv1", &neither, 1), -EINVAL, "a use that neither reads nor writes is refused");
	ok(HAS("'conv1'") && HAS("'weights'") && HAS("access 4"), "the log names the op, the tensor and the access: %s",
	   logged);
	umadv_close(adv);
}

static void pointers(void)
{
	struct umadv *adv = open_with(NULL, NULL);
	char *p, *old;
	int local;

	umadv_alloc(adv, (void **)&old, 3 * MIB, "act3", UMADV_ACT);
	umadv_alloc(adv, (void **)&p, MIB, "w", UMADV_PARAM);
	umadv_free(adv, old);
	umadv_iter(adv, NULL);
	is_int(umadv_op(adv, NULL, "relu", UMADV_USES(UMADV_READ(old + 5), UMADV_READ(p))), 0,
	       "a use of a freed tensor is ignored");
	ok(HAS("'relu'") && HAS("'act3'") && HAS("byte 5 ") && HAS("3145728 bytes") && HAS("freed"),
	   "the log names the op and the tensor that was freed: %s", logged);
	forget();
	is_int(umadv_op(adv, NULL, "pool", UMADV_USES(UMADV_READ(&local))), 0, "a use of unknown memory is ignored");
	ok(HAS("'pool'") && HAS("which is in no tensor") && HAS("umadv_adopt"),
	   "the log names the op and what to call: %s", logged);
	forget();
	umadv_op(adv, NULL, "pool", UMADV_USES(UMADV_READ(&local), UMADV_READ(old)));
	is_int(n_logs, 0, "unknown pointers are logged once a cause");
	is_u64(stats_of(adv).unknown_pointers, 4, "unknown_pointers counts all of them");
	umadv_close(adv);
}

static void streams(void)
{
	struct umadv *adv = open_with(NULL, NULL);
	void *p;
	int other;

	umadv_alloc(adv, &p, MIB, "w", UMADV_PARAM);
	umadv_iter(adv, NULL);
	is_int(umadv_op(adv, &other, "gemm", UMADV_USES(UMADV_UPDATE(p))), 0,
	       "an op on a stream of no device does not fail the program");
	ok(HAS("'gemm'") && HAS("stream 0x") && HAS("CUDA error 1:"),
	   "the log names the op, the stream and the code: %s", logged);
	umadv_op(adv, &other, "gemm2", UMADV_USES(UMADV_UPDATE(p)));
	is_int(n_logs, 1, "a refused stream is logged once");
	ok(stats_of(adv).errors >= 2, "errors counts each op on a refused stream");
	umadv_close(adv);
}

/* One like no other. */
static void irregular_op(struct umadv *adv, void *p, uint64_t *seed)
{
	umadv_op(adv, NULL, "op", UMADV_USES(UMADV_UPDATE_RANGE(p, 1 + test_random(seed, MIB - 1))));
}

static void no_iteration(void)
{
	struct umadv *adv = open_with(NULL, NULL);
	uint64_t seed = 1;
	void *p;

	umadv_alloc(adv, &p, MIB, "w", UMADV_PARAM);
	for (int i = 0; i < 99999; i++)
		irregular_op(adv, p, &seed);
	is_int(n_logs, 0, "99,999 ops before the first iteration are a long set-up");
	for (int i = 0; i < 100001; i++)
		irregular_op(adv, p, &seed);
	ok(n_logs == 1 && HAS("umadv_iter") && HAS("100000 ops"),
	   "100,000 ops that do not repeat are logged once, with what to call: %s", logged);
	umadv_close(adv);

	adv = open_with(NULL, NULL);
	umadv_alloc(adv, &p, MIB, "w", UMADV_PARAM);
	for (int i = 0; i < 11000; i++) {
		if (i % 100 == 0)
			umadv_iter(adv, NULL);
		umadv_op(adv, NULL, "op", UMADV_USES(UMADV_UPDATE(p)));
	}
	is_int(n_logs, 0, "a program with iterations is not told of a missing one: %s", logged);
	umadv_close(adv);
}

static void traces(void)
{
	char trace[64];
	struct umadv *a, *b;

	snprintf(trace, sizeof trace, "test_mistakes.%ld.umtrace", (long)getpid());
	a = open_with(trace, NULL);
	is_int(n_logs, 0, "the first context writes its trace");
	b = open_with(trace, NULL);
	ok(n_logs == 1 && HAS("no trace") && HAS(trace), "a second context with the same trace is told of none: %s",
	   logged);
	umadv_iter(a, "of a");
	umadv_iter(b, "of b");
	umadv_close(b);
	ok(access(trace, F_OK) != 0, "the second context leaves no trace behind");
	umadv_close(a);
	ok(access(trace, F_OK) == 0, "the first context's trace is there");
	a = open_with(trace, NULL);
	is_int(n_logs, 0, "a context may write the trace after the first one is closed");
	umadv_close(a);
	remove(trace);
}

static void reports(void)
{
	char report[64], second[80];
	struct umadv *a, *b;

	snprintf(report, sizeof report, "test_mistakes.%ld.umlog", (long)getpid());
	snprintf(second, sizeof second, "%s.2", report);
	a = open_with(NULL, report);
	is_int(n_logs, 0, "the first context writes its report");
	b = open_with(NULL, report);
	ok(n_logs == 1 && HAS(second), "the log names the second context's report: %s", logged);
	umadv_close(b);
	umadv_close(a);
	ok(remove(report) == 0 && remove(second) == 0, "both reports are there");
}

/* Simulated devices: each context has one of its own. */
static void other_contexts(void)
{
	struct umadv *a = open_with(NULL, NULL), *b = open_with(NULL, NULL);
	void *p, *q, *comm;

	if (umadv_alloc(a, &p, MIB, "p", UMADV_PARAM) || umadv_alloc(b, &q, MIB, "q", UMADV_PARAM) ||
	    umadv_alloc(b, &comm, MIB, "comm", UMADV_COMM))
		tap_bail("no memory");
	is_int(umadv_op(a, NULL, "mul", UMADV_USES(UMADV_READ(p), UMADV_UPDATE(q))), -EINVAL,
	       "an op on memory of another context is refused");
	ok(n_logs == 1 && HAS("op 'mul'") && HAS("another context, on device 0"), "the log says so: %s", logged);
	is_int(umadv_op(a, NULL, "add", UMADV_USES(UMADV_READ(comm))), -EINVAL, "so is one on its device memory");
	is_int(umadv_host(a, "sum", UMADV_USES(UMADV_READ(q))), -EINVAL, "and an access of the CPU");
	is_int(umadv_free(a, q), -EINVAL, "it is not freed");
	is_int(umadv_dead(a, q) | umadv_transient(a, q) | umadv_disown(a, q, MIB), -EINVAL, "nor anything else");
	is_int(n_logs, 1, "one line is enough");
	is_u64(stats_of(a).unknown_pointers, 0, "it does not count as unknown");
	is_int(umadv_op(b, NULL, "mul", UMADV_USES(UMADV_READ(q), UMADV_READ(comm))), 0, "its own context takes it");
	is_int(umadv_adopt(a, q, MIB, "q too", UMADV_PARAM), 0, "it may be adopted by another context");
	is_int(umadv_op(a, NULL, "mul", UMADV_USES(UMADV_READ(q))), 0, "which then takes it, too");
	is_int(umadv_disown(a, q, MIB), 0, "until it is disowned");
	umadv_close(b);
	is_int(umadv_op(a, NULL, "mul", UMADV_USES(UMADV_READ(q))), 0, "memory of a closed context is in no tensor");
	is_u64(stats_of(a).unknown_pointers, 1, "and counts so");
	umadv_close(a);
	a = open_with(NULL, NULL);
	b = open_with(NULL, NULL);
	if (umadv_alloc(b, &q, MIB, "q", UMADV_PARAM))
		tap_bail("no memory");
	is_int(umadv_free_async(a, q, NULL), -EINVAL, "a call that names it is refused");
	ok(n_logs == 1 && HAS("umadv_free_async names") && HAS("another context"), "the log names the call: %s",
	   logged);
	umadv_close(a);
	umadv_close(b);
}

int main(void)
{
	other_contexts();
	ranges();
	accesses();
	reserved();
	pointers();
	streams();
	no_iteration();
	traces();
	reports();
	return tap_done();
}
