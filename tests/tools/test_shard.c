/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace of a rank has its part of the batch and all parameters, and reduces gradients as soon as they are written,
 * beside the backward pass.
 */
#include "play/shard.h"

#include "tap.h"

#include <errno.h>

#define MIB (1ull << 20)
#define MS 1000000ull
#define FIRST "forward, b1, b2, all-reduce, b3, all-reduce, wait for all-reduce, norm, step"
#define THIRD ", c1, all-reduce, wait for all-reduce, s1, c2, all-reduce, wait for all-reduce, s2"

/* Parameter 0, optimizer state 1, input 2 and a statistic 3. The first iteration has an activation, gradients of 20, 20
 * and 8 MiB, of which the first is accumulated, and a temporary of the optimizer; the
 * second iteration has no optimizer; in the third each gradient is used at once. */
static const char text[] =
	"{\"umtrace\":1,\"source\":\"test\",\"workload\":\"net\"}\n"
	"{\"ev\":\"alloc\",\"t\":0,\"bytes\":50331648,\"name\":\"w\",\"role\":\"param\"}\n"
	"{\"ev\":\"alloc\",\"t\":1,\"bytes\":50331648,\"name\":\"m\",\"role\":\"optim\"}\n"
	"{\"ev\":\"alloc\",\"t\":2,\"bytes\":10001,\"name\":\"x\",\"role\":\"input\"}\n"
	"{\"ev\":\"alloc\",\"t\":3,\"bytes\":4096,\"name\":\"mean\"}\n"
	"{\"ev\":\"iter\",\"n\":0}\n"
	"{\"ev\":\"alloc\",\"t\":10,\"bytes\":8001,\"name\":\"y\",\"role\":\"act\"}\n"
	"{\"ev\":\"alloc\",\"t\":11,\"bytes\":4000,\"name\":\"mask\"}\n"
	"{\"ev\":\"op\",\"name\":\"forward\",\"r\":[[2,5000,5001],0],\"w\":[10,11,3],\"ns\":40000000,"
	"\"ws\":[[4000,40000000],[1000,60000000]]}\n"
	"{\"ev\":\"alloc\",\"t\":12,\"bytes\":20971520,\"name\":\"g\",\"role\":\"grad\"}\n"
	"{\"ev\":\"alloc\",\"t\":13,\"bytes\":20971520,\"name\":\"g\",\"role\":\"grad\"}\n"
	"{\"ev\":\"alloc\",\"t\":14,\"bytes\":8388608,\"name\":\"g\",\"role\":\"grad\"}\n"
	"{\"ev\":\"op\",\"name\":\"b1\",\"r\":[10],\"w\":[12],\"flops\":1e6,\"bytes\":20979521,\"ns\":20000000}\n"
	"{\"ev\":\"op\",\"name\":\"b2\",\"r\":[10,11,12],\"w\":[13,12],\"flops\":4e12,\"bytes\":1,\"ns\":20000000}\n"
	"{\"ev\":\"op\",\"name\":\"b3\",\"r\":[10],\"w\":[14],\"flops\":4e12,\"bytes\":1,\"ns\":20000000}\n"
	"{\"ev\":\"alloc\",\"t\":15,\"bytes\":1000,\"name\":\"t\",\"role\":\"workspace\"}\n"
	"{\"ev\":\"op\",\"name\":\"norm\",\"r\":[14],\"w\":[15],\"ns\":1000000}\n"
	"{\"ev\":\"op\",\"name\":\"step\",\"r\":[12,13,14,15,0,1],\"w\":[0,1],\"ns\":1000000}\n"
	"{\"ev\":\"free\",\"t\":10}\n"
	"{\"ev\":\"iter\",\"n\":1}\n"
	"{\"ev\":\"alloc\",\"t\":20,\"bytes\":8000,\"name\":\"y\",\"role\":\"act\"}\n"
	"{\"ev\":\"op\",\"name\":\"b1\",\"r\":[20],\"w\":[12],\"ns\":20000000}\n"
	"{\"ev\":\"iter\",\"n\":2}\n"
	"{\"ev\":\"op\",\"name\":\"c1\",\"r\":[20],\"w\":[13],\"ns\":20000000}\n"
	"{\"ev\":\"op\",\"name\":\"s1\",\"r\":[13],\"w\":[0],\"ns\":1000000}\n"
	"{\"ev\":\"op\",\"name\":\"c2\",\"r\":[20],\"w\":[14],\"ns\":20000000}\n"
	"{\"ev\":\"op\",\"name\":\"s2\",\"r\":[14],\"w\":[0],\"ns\":1000000}\n";

static struct um_trace *whole, *part;
static struct um_shard_figures figures;

static int shard(unsigned ranks, double bandwidth)
{
	struct um_shard_options o = {ranks, bandwidth, um_profile_find("v100")};

	um_trace_free(part);
	part = NULL;
	return um_shard(whole, &o, &part, &figures);
}

/* The n-th op of this name, or NULL. */
static const struct um_op *op(const char *name, int n)
{
	for (size_t i = 0; i < um_trace_length(part); i++) {
		const struct um_event *e = um_trace_event(part, i);

		if (e->kind == UM_EV_OP && strcmp(e->op.name, name) == 0 && !n--)
			return &e->op;
	}
	return NULL;
}

static uint64_t bytes_of(uint64_t t)
{
	for (size_t i = 0; i < um_trace_length(part); i++) {
		const struct um_event *e = um_trace_event(part, i);

		if (e->kind == UM_EV_ALLOC && e->alloc.id.v == t + 1)
			return e->alloc.bytes;
	}
	return 0;
}

/* Names of all ops. */
static const char *ops(void)
{
	static char names[512];

	names[0] = 0;
	for (size_t i = 0; i < um_trace_length(part); i++) {
		const struct um_event *e = um_trace_event(part, i);

		if (e->kind == UM_EV_OP)
			snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "",
				 e->op.name);
	}
	return names;
}

static void divides(void)
{
	is_int(shard(4, 1e9), 0, "the trace of a rank is made");
	is_int((long long)bytes_of(2), 2501, "an input has its share, rounded up");
	is_int((long long)bytes_of(10), 2001, "an activation has its share");
	is_int((long long)bytes_of(11), 1000, "what an op with the batch uses first is divided");
	is_int((long long)bytes_of(0), 48 * MIB, "a parameter is replicated");
	is_int((long long)bytes_of(12), 20 * MIB, "a gradient is replicated");
	is_int((long long)bytes_of(3), 4096, "what is there before the first iteration is replicated");
	is_int((long long)bytes_of(15), 1000, "what the optimizer uses first is replicated");
}

static void scales(void)
{
	const struct um_op *f = op("forward", 0);

	is_int((long long)f->uses[0].off, 1250, "a range begins at its share");
	is_int((long long)f->uses[0].bytes, 1251, "a range ends at its share");
	is_int((long long)f->uses[1].bytes, 48 * MIB, "a range of a parameter is whole");
	is_int((long long)f->ws[0].bytes, 1000, "a workspace is divided");
	is_int((long long)op("b2", 0)->cost.flops, (long long)1e12, "an op does its share of the work");
	ok(op("b2", 0)->cost.ns < 5.01 * MS && op("b2", 0)->cost.ns >= 5 * MS,
	   "an op that computes takes its share of the time");
	ok(op("b1", 0)->cost.ns > 19 * MS, "an op that mostly writes a gradient takes its time on each rank");
	is_int((long long)op("step", 0)->cost.ns, MS, "the optimizer takes its time on each rank");
}

static void reduces(void)
{
	is_str(ops(), FIRST ", b1" THIRD,
	       "a bucket is reduced once it has 25 MiB or is the last, and waited for before it is needed");
	is_int(op("all-reduce", 0)->n_uses, 2, "a bucket has the gradients that fit");
	is_int(op("all-reduce", 0)->uses[0].access, UM_UPDATE, "they are updated");
	is_int(figures.buckets, 2, "both buckets of the last iteration are counted");
	is_int((long long)figures.reduced_bytes, 28 * MIB, "so are its bytes");
	is_int((long long)figures.collective_ns, (long long)(1.5 * 20 * MIB) + (long long)(1.5 * 8 * MIB),
	       "a ring of four moves one and a half times the bytes");
	/* The first bucket is sent after b2, the second waits for it. */
	is_int((long long)op("wait for all-reduce", 0)->cost.ns,
	       (long long)(1.5 * 48 * MIB) - (long long)op("b3", 0)->cost.ns - 2,
	       "the wait is what the ring takes beyond the backward pass");
	is_int((long long)figures.exposed_ns,
	       (long long)(op("wait for all-reduce", 1)->cost.ns + op("wait for all-reduce", 2)->cost.ns),
	       "waits are exposed");
	is_int(shard(4, 1e12), 0, "with a fast ring");
	is_str(ops(), FIRST ", b1" THIRD, "only the last bucket is waited for");
	is_int((long long)op("wait for all-reduce", 0)->cost.ns, (long long)(1.5 * 8 * MIB / 1000 + 0.5) - 1,
	       "for its own time");
}

static void others(void)
{
	struct um_diag diag;
	static const char none[] = "{\"umtrace\":1,\"source\":\"test\"}\n"
				   "{\"ev\":\"alloc\",\"t\":0,\"bytes\":64,\"role\":\"param\"}\n"
				   "{\"ev\":\"iter\",\"n\":0}\n"
				   "{\"ev\":\"op\",\"name\":\"a\",\"r\":[0],\"w\":[0]}\n";

	is_int(shard(1, 1e9), 0, "one rank has a trace, too");
	is_int((long long)um_trace_length(part), (long long)um_trace_length(whole), "it has the same events");
	is_int((long long)um_trace_peak_bytes(part), (long long)um_trace_peak_bytes(whole), "and the same memory");
	is_int((long long)op("b2", 0)->cost.ns, 20 * MS, "and the same times");
	is_int(figures.buckets, 0, "it reduces nothing");
	um_trace_free(whole);
	whole = NULL;
	if (um_trace_load_mem(&whole, none, strlen(none), &diag))
		tap_bail("no trace");
	is_int(shard(2, 1e9), -EINVAL, "a trace without a batch is refused");
	ok(!part, "then there is no trace");
}

int main(void)
{
	struct um_diag diag;

	if (um_trace_load_mem(&whole, text, strlen(text), &diag))
		tap_bail("no trace");
	divides();
	scales();
	reduces();
	others();
	um_trace_free(whole);
	um_trace_free(part);
	return tap_done();
}
